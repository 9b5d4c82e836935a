"""How a drill runs on a PostgreSQL server of its own, and what it prints."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

from tests.support.postgresql import PostgresServer

#: Those that docs/how-to/postgresql.md recommends: with the default ones a checkpoint may begin in any phase of a drill.
_SETTINGS = {"shared_buffers": "2GB", "max_wal_size": "8GB", "wal_compression": "on", "checkpoint_timeout": "15min"}


def on_a_new_server(drill: Callable[[PostgresServer, Path], Coroutine[None, None, list[str]]]) -> int:
    """Runs a drill with a new server and a folder, and prints what it finds wrong; returns the exit code."""
    database, folder = PostgresServer(fsync=True, settings=_SETTINGS), Path(tempfile.mkdtemp(prefix="tocsin-drill-"))
    try:
        database.init()
        database.start()
        wrong = asyncio.run(drill(database, folder))
    finally:
        database.remove()
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(["The balance is wrong:", *wrong] if wrong else ["The balance is right."]))
    return bool(wrong)


@contextlib.contextmanager
def standby(primary: PostgresServer) -> Iterator[None]:
    """A streaming replica of a drill's server, which follows it from now on."""
    server = PostgresServer(fsync=True, settings=_SETTINGS)
    try:
        server.follow(primary)
        server.start()
        yield
    finally:
        server.remove()
