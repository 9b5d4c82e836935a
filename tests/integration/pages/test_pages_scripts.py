"""The scripts of the pages, under Node.js."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from tests.support.needs import lacking

_WEB = Path(__file__).parents[3] / "web"


async def test_open_pages_state_what_they_know() -> None:
    if shutil.which("node") is None:
        lacking("node", "there is no node")
    if not (_WEB / "node_modules" / "esbuild").exists():
        lacking("pages", "the tools that build the web pages are not installed; run `make web`")
    program = await asyncio.create_subprocess_exec(
        "node", "--test", cwd=_WEB, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    printed, _ = await program.communicate()
    assert program.returncode == 0, printed.decode()
