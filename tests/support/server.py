"""Starts the real server as a process of its own, in a given data folder, on a free port."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from pathlib import Path

from tests.support import preloaded

_PROGRAM = (sys.executable, "-m", "tocsin")
_LINE = re.compile(rb"serves on http://(.+?):(\d+) ")


class ServerProcess:
    """`tocsin serve` under test, or another command that serves. Its log goes to `server.log` in the data folder."""

    def __init__(
        self,
        data_dir: Path,
        *flags: str,
        env: dict[str, str] | None = None,
        command: str = "serve",
        program: tuple[str, ...] = _PROGRAM,
    ) -> None:
        self.data_dir = data_dir
        self.command = command
        self.program = program
        self.flags = flags
        self.env = env or {}
        self.port = 0
        self.log_path = data_dir / "server.log"
        self.process: asyncio.subprocess.Process | preloaded.PreloadedProcess | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def address(self) -> tuple[str, int]:
        """Host and port."""
        return "127.0.0.1", self.port

    async def start(self, timeout_s: float = 90.0) -> None:
        """Returns when it answers requests; AssertionError with its log if it ends before."""
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        arguments = [self.command, "--port", "0", "--data-dir", str(self.data_dir), *self.flags]
        env = {**os.environ, **self.env}
        with self.log_path.open("ab") as log:
            if self.program == _PROGRAM and preloaded.suits(self.env):
                self.process = await preloaded.start(arguments, env, log.fileno())
            else:
                self.process = await asyncio.create_subprocess_exec(
                    *self.program, *arguments, stdout=asyncio.subprocess.PIPE, stderr=log, env=env
                )
        assert self.process.stdout is not None
        async with asyncio.timeout(timeout_s):
            while True:
                line = await self.process.stdout.readline()
                found = _LINE.search(line)
                if found:
                    self.port = int(found[2])
                    return
                assert line, f"the server ended: {self.log()[-4000:]}"

    def log(self) -> str:
        """What it wrote to standard error so far."""
        return self.log_path.read_text(errors="replace")

    async def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        return await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        return await self.process.wait()
