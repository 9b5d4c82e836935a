"""Terminates database sessions without notice, as an administrator or a load balancer would."""

from __future__ import annotations

from urllib.parse import urlsplit

import asyncmy
import asyncpg


class Sessions:
    """The sessions of others in the database of a store's URL, PostgreSQL's or MySQL's."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._postgresql: asyncpg.Connection | None = None
        self._mysql: asyncmy.connection.Connection | None = None

    async def __aenter__(self) -> Sessions:
        if self._url.scheme == "postgresql":
            self._postgresql = await asyncpg.connect(self._url.geturl())
        else:
            self._mysql = await asyncmy.connect(
                host=self._url.hostname, port=self._url.port, user=self._url.username, autocommit=True
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._postgresql is not None:
            await self._postgresql.close()
        if self._mysql is not None:
            await self._mysql.ensure_closed()

    async def end_one(self) -> int:
        """Terminates any one of them; returns how many were terminated."""
        database = self._url.path.lstrip("/")
        if self._postgresql is not None:
            ended = await self._postgresql.fetch(
                "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE datname = $1"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY random() LIMIT 1) AS chosen",
                database,
            )
            return len(ended)
        assert self._mysql is not None
        async with self._mysql.cursor() as cursor:
            await cursor.execute(
                "SELECT id FROM information_schema.processlist WHERE db = %s AND id <> connection_id()"
                " ORDER BY rand() LIMIT 1",
                (database,),
            )
            rows = await cursor.fetchall()
            for (session,) in rows:
                try:
                    await cursor.execute(f"KILL CONNECTION {session}")
                except asyncmy.errors.OperationalError as error:
                    # It has ended by itself meanwhile.
                    if error.args[0] != 1094:
                        raise
                    return 0
        return len(rows)
