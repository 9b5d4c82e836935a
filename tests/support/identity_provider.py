"""A real OpenID Connect provider on loopback, and a browser without pages that signs in at it."""

from __future__ import annotations

import asyncio
import fcntl
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S

_BUILD = Path(__file__).parents[2] / "build"
_FOLDER = _BUILD / "identity-provider"
_FORM = re.compile(r'action="([^"]+)".*?name="prompt" value="(\w+)"', re.DOTALL)
CLIENT_SECRET, PROGRAM_SECRET = "a secret of the tests", "a secret of a program"


@asynccontextmanager
async def identity_provider(redirect_uri: str, audience: str) -> AsyncIterator[str]:
    """Its issuer, while it runs. `make` installs it first."""
    if shutil.which("npm") is None:
        lacking("node", "the identity provider needs Node.js and npm")
    _BUILD.mkdir(exist_ok=True)
    with (_BUILD / "identity-provider.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(
            ["make", "identity-provider"], cwd=_BUILD.parent, capture_output=True, text=True, check=False
        )
    if made.returncode:
        lacking("node", f"`make identity-provider` failed: {made.stdout}{made.stderr}"[-2000:])
    process = await asyncio.create_subprocess_exec(
        "node", _FOLDER / "provider.mjs", redirect_uri, audience,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()


async def sign_in(browser: httpx.AsyncClient, url: str, name: str, until: str) -> str:
    """Follows the ways from a URL, signs in at the provider by a name, agrees to everything, and returns the URL that begins
    with `until`, which it does not open."""
    for _ in range(20):
        if url.startswith(until):
            return url
        answer = await browser.get(url)
        if answer.is_redirect:
            url = str(answer.url.join(answer.headers["location"]))
            continue
        found = _FORM.search(answer.text)
        assert found is not None, answer.text
        form = {"prompt": found[2], "login": name, "password": "-"}
        answer = await browser.post(found[1], data=form)
        url = str(answer.url.join(answer.headers["location"]))
    raise AssertionError(f"{url} leads nowhere")
