"""A real PostgreSQL server for a benchmark: it syncs like a production server, and its processor time is measured."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tests.support.postgresql import PostgresServer

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")

#: Differences from the server's defaults, as recommended for a dedicated machine (docs/how-to/postgresql.md).
SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
    "wal_compression": "on",
    "autovacuum_naptime": "10s",
    "max_connections": "200",
}


class Database:
    """A running server and the processor time of all of its processes."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    @property
    def port(self) -> int:
        """Port on the loopback address."""
        return self._server.port

    def url(self, database: str = "postgres") -> str:
        """URL of one of its databases."""
        return self._server.url(database)

    async def create(self) -> str:
        """The URL of a new, empty database."""
        return await self._server.create_database()

    def cpu_s(self) -> float:
        """Processor seconds so far, including backends and workers that have ended."""
        assert self._server.process is not None
        main = self._server.process.pid
        # The main process has waited for ended children, so their time is in its third and fourth field.
        seconds = sum(_times(main)[:4])
        for child in Path(f"/proc/{main}/task/{main}/children").read_text().split():
            # A child that ends at this moment is counted by the next call.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                seconds += sum(_times(int(child))[:2])
        return seconds * _TICK_S


def _times(pid: int) -> list[int]:
    """Ticks of a process: user, system, and both of its ended children."""
    return [int(text) for text in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15]]


@contextlib.contextmanager
def database(**settings: str) -> Iterator[Database]:
    """Starts a server with fsync on; stops it and removes its data at the end."""
    server = PostgresServer(fsync=True, settings={**SETTINGS, **settings})
    try:
        server.init()
        server.start()
        yield Database(server)
    finally:
        server.remove()
