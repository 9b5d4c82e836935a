"""Servers that tests start: a program in a temporary folder, on a free port."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.support.ports import free_port, wait_for_port

#: Another process may take a free port before the server does.
START_ATTEMPTS = 5
S = TypeVar("S", bound="ServerProgram")


class ServerProgram:
    """A server with its data in `folder`. It keeps them, and its port, when it is started again."""

    #: What ends it in order, and what ends it before its folder is removed.
    stop_signal, end_signal = signal.SIGTERM, signal.SIGKILL
    #: How long it may take to end.
    end_timeout_s = 30.0

    def __init__(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"tocsin-{name}-"))
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, port: int) -> list[str]:
        """The program with its arguments. Writes its configuration, where it has a file for it."""
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        """Variables that are added to the environment."""
        return {}

    def init(self) -> None:
        """Makes what the server needs before its first start."""

    def wait(self, port: int) -> None:
        """Returns when it accepts connections. RuntimeError: it has ended."""
        assert self.process is not None
        wait_for_port(port, self.process)

    def start(self) -> None:
        """Returns when it accepts connections."""
        for attempt in range(START_ATTEMPTS):
            port = self.port or free_port()
            command = self.command(port)
            with (self.folder / "log").open("ab") as log:
                self.process = subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    cwd=self.folder,
                    env={**os.environ, **self.environment()},
                )
            try:
                self.wait(port)
            except RuntimeError:
                if attempt == START_ATTEMPTS - 1:
                    raise RuntimeError((self.folder / "log").read_text()[-4000:]) from None
                continue
            self.port = port
            return

    def kill(self) -> None:
        """SIGKILL, and wait: a crash of the server."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ends it in order."""
        self._end(self.stop_signal)

    def pause(self) -> None:
        """SIGSTOP, and wait until it is stopped: connections stay open, but nothing answers."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def resume(self) -> None:
        """SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        """Ends it and removes its data."""
        self._end(self.end_signal)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(number)
            process.wait(self.end_timeout_s)


@contextmanager
def running(server: S) -> Iterator[S]:
    """The server, started; removed at the end."""
    try:
        server.init()
        server.start()
        yield server
    finally:
        server.remove()
