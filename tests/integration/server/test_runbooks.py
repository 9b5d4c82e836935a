"""The commands of the runbooks, and `tocsin doctor`, run against a server with keys, as in production."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
from pathlib import Path

from tests.support.command import command
from tests.support.server import ServerProcess

_RUNBOOKS = Path(__file__).parents[3] / "docs/runbooks"
_BLOCK = re.compile("^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _commands() -> list[str]:
    """Each command once."""
    texts = (path.read_text() for path in _RUNBOOKS.glob("Tocsin*.md"))
    return sorted({line for text in texts for block in _BLOCK.findall(text) for line in block.splitlines()})


async def _in_shell(line: str, env: dict[str, str]) -> tuple[int | None, str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        "bash", "-o", "pipefail", "-c", line,
        env={**os.environ, "PATH": path, **env}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_the_commands_of_the_runbooks_run(tmp_path: Path):
    data = tmp_path / "data"
    code, key, err = await command("keys", "create", "--role", "admin", "--data-dir", str(data))
    assert code == 0, err
    server = ServerProcess(data)
    await server.start()
    try:
        env = {"TOCSIN_URL": server.url, "TOCSIN_KEY": key.strip()}
        assert len(_commands()) > 30

        async def run(line: str) -> str:
            if line.startswith("tocsin ") and "$" not in line:
                code, out, err = await command(*shlex.split(line)[1:], env=env)
            else:
                code, out, err = await _in_shell(line.replace("http://127.0.0.1:8080", server.url), env)
            return "" if code == 0 and out and not err else f"{line}: {code} {out} {err}"

        wrong = [answer for line in _commands() if (answer := await run(line))]
        assert wrong == []

        here = {"TOCSIN_PORT": str(server.port), "TOCSIN_DATA_DIR": str(data)}
        code, out, err = await command("doctor", env=env | here)
        assert code == 0, out + err
        assert server.process is not None
        assert f"a Tocsin serves at {server.url}" in out
        assert f"in use by the server with process id {server.process.pid}" in out
        assert "tocsin_build_info{" in out
    finally:
        await server.stop()
