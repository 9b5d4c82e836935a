"""The backup and the restore that the page shows for systemd and for Compose work. Stand-ins for `systemctl` and `docker` run
their commands here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import blocks_of
from tests.support.calls import Api
from tests.support.server import ServerProcess

_PAGE = "docs/how-to/backup.md"
_STAND_INS = {
    "tocsin": f'exec {sys.executable} -m tocsin "$@"',
    "systemctl": "",
    "docker": """shift
    case $1 in
      exec) shift; if [ "$1" = -T ]; then shift; fi; shift; exec "$@" ;;
      run) while [ "$1" != --entrypoint ]; do shift; done; entry=$2; shift 3; exec "$entry" "$@" ;;
    esac""",
}


def _typed(text: str, there: str, data: Path, folder: Path) -> None:
    """Types a block in which the data folder is `there`."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, script in _STAND_INS.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    env = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "TOCSIN_DATA_DIR": str(data)}
    command = ["bash", "-euc", text.replace(there, str(data))]
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _blocks(word: str) -> list[str]:
    return [block.text for block in blocks_of(_PAGE) if block.language == "sh" and word in block.text]


async def _served(data: Path, *ids: str) -> None:
    """Creates a timer for each id on a server of that folder."""
    server = ServerProcess(data)
    await server.start()
    try:
        for timer_id in ids:
            await Api(server).create(timer_id, "http://127.0.0.1:9000/", delay="1h")
    finally:
        await server.stop()


async def _found(data: Path) -> list[str]:
    server = ServerProcess(data)
    await server.start()
    try:
        status, found = await Api(server)("timers/list", namespace="default")
        assert status == 200
        return sorted(timer["id"] for timer in found["timers"])
    finally:
        await server.stop()


async def test_the_restore_under_systemd(tmp_path: Path):
    data = tmp_path / "private" / "tocsin"
    (restore,) = _blocks("systemctl")
    await _served(data, "before")
    _typed("tocsin backup backup/monday; cp /folder/secrets.key secrets.key.copy", "/folder", data, tmp_path)
    await _served(data, "after")
    _typed(restore, "/var/lib/private/tocsin", data, tmp_path)
    assert await _found(data) == ["before"]
    assert {path.name for path in data.parent.iterdir()} == {"tocsin", "tocsin.before"}


async def test_the_restore_with_compose(tmp_path: Path):
    data = tmp_path / "volume"
    backup, restore = _blocks("docker compose")
    await _served(data, "before")
    _typed(backup, "/data", data, tmp_path)
    await _served(data, "after")
    _typed(restore, "/data", data, tmp_path)
    assert await _found(data) == ["before"]
