"""Servers that all processes of a test run share, because they take long to start or much memory."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol, TypeVar


class Server(Protocol):
    """A server in a folder of its own, not started."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None

    def start(self) -> None:
        """Returns when it accepts connections."""

    def remove(self) -> None:
        """Ends it and removes its data."""


S = TypeVar("S", bound=Server)


@contextlib.contextmanager
def shared_by_run(folder: Path, name: str, server: S) -> Iterator[S]:
    """The server of that name: the first process of the test run starts it, the last one removes it. `folder` is the run's,
    and the same for all of them."""
    with (folder / name).open("a+") as started, (folder / f"{name}-users").open("a") as users:
        with _locked(started):
            started.seek(0)
            if words := started.read().split():
                shutil.rmtree(server.folder)
                server.port, pid, server.folder = int(words[0]), int(words[1]), Path(words[2])
            else:
                server.start()
                assert server.process is not None
                pid = server.process.pid
                started.write(f"{server.port} {pid} {server.folder}")
                started.flush()
            # Kept by each user while it uses the server.
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield server
        finally:
            with _locked(started), contextlib.suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                server.remove()
                started.truncate(0)


@contextlib.contextmanager
def _locked(file: IO[str]) -> Iterator[None]:
    """For one process at a time."""
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def name_of(folder: Path) -> str:
    """The name of what the tests in a folder have of their own on a shared server, such as a database."""
    return "t" + hashlib.sha256(str(folder).encode()).hexdigest()[:24]
