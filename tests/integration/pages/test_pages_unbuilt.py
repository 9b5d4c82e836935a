"""A checkout without built pages and without Node.js: everything else works, and messages explain what is missing."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.needs import lacking
from tocsin.server.node import Server
from tocsin.settings import load_settings
from tocsin.web.pages import compose
from tocsin.web.pages.assets import Assets

ROOT = Path(__file__).parents[3]


async def test_server_without_built_pages_explains_and_serves_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "static"
    empty.mkdir()
    monkeypatch.setattr(compose, "Assets", lambda: Assets(empty))
    server = Server(load_settings({"store": "memory://", "port": 0, "data_dir": tmp_path, "shards": 4}))
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.url) as client:
            page = await client.get("/", headers={"accept": "text/html"})
            assert page.status_code == 503
            assert "Node.js</a> 20 or newer" in page.text
            assert "make web" in page.text
            assert (await client.get("/timers", headers={"accept": "text/html"})).status_code == 404
            timer = {"namespace": "default", "id": "t", "delay": "1h", "callbackUrl": "http://127.0.0.1:9/"}
            assert (await client.post("/api/v1/timers/create", json=timer)).status_code == 200
            assert (await client.get("/healthz")).status_code == 200
    finally:
        await server.stop()


async def test_make_pages_succeeds_without_node_and_explains(tmp_path: Path) -> None:
    make = shutil.which("make") or lacking("make", "there is no make on the path")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "env", "touch", "nproc", "test"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "web", checkout / "web", ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(ROOT / "Makefile", checkout)
    done = await asyncio.to_thread(
        subprocess.run, [make, "-C", str(checkout), "pages"], env={"PATH": str(tools)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Node.js 20 or newer with npm was not found" in done.stderr
    assert "The API and the engine work without them" in done.stderr
