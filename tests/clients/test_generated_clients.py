"""Clients that others' tools generate from the committed OpenAPI document compile, make a timer fire, and change nothing with
an update but what it names."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator

from tests.support.command import command
from tests.support.http import Receiver
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
DOCUMENT = ROOT / "docs" / "reference" / "openapi.json"
#: Where `make clients` puts the generators.
TOOLS = ROOT / "build" / "clients"
#: What oapi-codegen needs.
GO_LEAST = (1, 25)

pytestmark = pytest.mark.timeout(900)


async def run(*words: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Standard output; AssertionError with all output if it fails."""
    process = await asyncio.create_subprocess_exec(
        *map(str, words), cwd=cwd, env={**os.environ, **(env or {})},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, f"{words[0]} failed:\n{out.decode()[-6000:]}"
    return out.decode()


async def tools(language: str, need: str) -> None:
    """Installs the language's generator unless `make clients` has. Skips if it is not available."""
    try:
        await run("make", "--silent", f"clients-{language}", f"PYTHON={sys.executable}", cwd=ROOT)
    except AssertionError as error:
        lacking(need, f"`make clients-{language}` failed: {str(error)[-500:]}")


class Trial:
    """A real server and a receiver; `fired` has the received callbacks by timer."""

    def __init__(self, url: str, key: str, callback_url: str, fired: dict[str, asyncio.Future[dict[str, Any]]]) -> None:
        #: The drivers'.
        self.arguments = (url, key, callback_url)
        self._client = httpx.AsyncClient(
            base_url=f"{url}/api/v1/timers/", headers={"authorization": f"Bearer {key}"}, timeout=PATIENCE_S
        )
        self._fired = fired

    async def check(self, language: str) -> None:
        """Checks the effects of the driver's requests on the server."""
        async with asyncio.timeout(PATIENCE_S):
            callback = await self._fired.setdefault(f"{language}-fired", asyncio.get_running_loop().create_future())
        document = json.loads(DOCUMENT.read_bytes())
        Draft202012Validator(document["components"]["schemas"]["Callback"]).validate(callback)
        assert callback["payload"] == {"by": language}
        async with self._client as client:
            named = {"namespace": "default", "timerId": f"{language}-kept"}
            kept = (await client.post("get", json=named)).json()
        policy = kept.pop("retryPolicy")
        assert (policy["maxAttempts"], policy["initialInterval"]) == (7, "7s")
        assert kept["callbackTimeoutSeconds"] == 33.5
        assert (kept["payload"], kept["method"], kept["headers"]) == ({"order": 17}, "PUT", {"x-shop": "eu"})
        assert kept["tags"] == ["after"]


@pytest_asyncio.fixture
async def trial(tmp_path: Path) -> AsyncIterator[Trial]:
    fired: dict[str, asyncio.Future[dict[str, Any]]] = {}
    loop = asyncio.get_running_loop()

    def answer(body: dict[str, Any], _headers: dict[str, str]) -> tuple[int, bytes]:
        came = fired.setdefault(body["timerId"], loop.create_future())
        if not came.done():
            came.set_result(body)
        return 200, b""

    data = tmp_path / "data"
    code, key, complaint = await command("keys", "create", "--role", "admin", "--data-dir", str(data))
    assert code == 0, complaint
    server = ServerProcess(data, env={"TOCSIN_EGRESS_ALLOW_PRIVATE": "true"})
    async with Receiver(answer) as receiver:
        await server.start()
        try:
            yield Trial(server.url, key.strip(), receiver.url, fired)
        finally:
            await server.stop()


async def test_python(trial: Trial, tmp_path: Path) -> None:
    await tools("python", "openapi-python-client")
    python = TOOLS / "python" / "bin"
    shutil.copytree(HERE / "python", tmp_path, dirs_exist_ok=True)
    await run(
        python / "openapi-python-client", "generate", "--path", DOCUMENT, "--config", "config.yaml", "--meta", "none",
        "--output-path", "tocsin_generated", "--fail-on-warning",
        cwd=tmp_path, env={"PATH": f"{python}:{os.environ['PATH']}"},
    )  # fmt: skip
    # The client's own frame isn't strict; what is made from the document is.
    checked = ["tocsin_generated/models", "tocsin_generated/api", "drive.py"]
    await run(
        sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--python-executable", python / "python",
        *checked, cwd=tmp_path,
    )  # fmt: skip
    await run(python / "python", "drive.py", *trial.arguments, cwd=tmp_path)
    await trial.check("python")


async def test_typescript(trial: Trial, tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        lacking("node", "openapi-typescript needs Node.js and npm")
    await tools("typescript", "openapi-typescript")
    shutil.copytree(HERE / "typescript", tmp_path, dirs_exist_ok=True)
    modules = TOOLS / "typescript" / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    await run("node", modules / ".bin" / "openapi-typescript", DOCUMENT, "-o", "tocsin.d.ts", cwd=tmp_path)
    await run("node", modules / ".bin" / "tsc", cwd=tmp_path)
    await run("node", "built/drive.js", *trial.arguments, cwd=tmp_path)
    await trial.check("typescript")


async def test_go(trial: Trial, tmp_path: Path) -> None:
    version = (
        shutil.which("go") and subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    )
    found = re.search(r"go(\d+)\.(\d+)", version or "")
    if found is None or (int(found[1]), int(found[2])) < GO_LEAST:
        lacking("go", f"oapi-codegen needs Go {GO_LEAST[0]}.{GO_LEAST[1]} or newer")
    await tools("go", "oapi-codegen")
    shutil.copytree(HERE / "go", tmp_path / "go")
    (tmp_path / "go" / "tocsin").mkdir()
    await run(
        TOOLS / "go" / "oapi-codegen", "-config", "oapi-codegen.yaml", "-o", "tocsin/client.go", DOCUMENT,
        cwd=tmp_path / "go",
    )  # fmt: skip
    await run("go", "vet", "./...", cwd=tmp_path / "go")
    await run("go", "run", ".", *trial.arguments, cwd=tmp_path / "go")
    await trial.check("go")
