"""The commands of the runbooks run."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

from tests.support.server import ServerProcess

_RUNBOOKS = Path(__file__).parents[3] / "docs/runbooks"
_BLOCK = re.compile("^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _commands() -> list[str]:
    """Each command once."""
    texts = (path.read_text() for path in _RUNBOOKS.glob("Tocsin*.md"))
    return sorted({line for text in texts for block in _BLOCK.findall(text) for line in block.splitlines()})


async def test_the_commands_of_the_runbooks_run(tmp_path: Path):
    server = ServerProcess(tmp_path / "data")
    await server.start()
    try:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "TOCSIN_URL": server.url, "TOCSIN_DATA_DIR": str(tmp_path / "data")}
        assert len(_commands()) > 30

        async def run(command: str) -> str:
            process = await asyncio.create_subprocess_exec(
                "bash", "-o", "pipefail", "-c", command.replace("http://127.0.0.1:8080", server.url),
                env=env, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            out, err = await process.communicate()
            # grep exits with 1 if a metric has no series yet: its first event has not come.
            right = process.returncode == 0 or (process.returncode == 1 and "| grep" in command)
            return "" if right and not err else f"{command}: {process.returncode} {out.decode()} {err.decode()}"

        wrong = [answer for command in _commands() if (answer := await run(command))]
        assert wrong == []
    finally:
        await server.stop()
