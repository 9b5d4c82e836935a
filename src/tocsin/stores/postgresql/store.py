"""The store in a PostgreSQL database, which several nodes may share.

`tocsin.sql` has what SQL stores have in common. The statements on timers are in the schema, `writes`, `reads` and `lists`.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from tocsin.ports.store import Applied, Found, Listed, ListQuery, Loaded, Member, ShardBatch
from tocsin.sql.dialect import Step, Value
from tocsin.sql.pool import Activity, ServerOptions
from tocsin.sql.rows import LoadQuery
from tocsin.sql.server_store import ServerStore
from tocsin.sql.store import heartbeat
from tocsin.stores import TOTAL_SHARDS_SHARED_DEFAULT
from tocsin.stores.options import PostgresOptions
from tocsin.stores.postgresql import lists, reads, writes
from tocsin.stores.postgresql.connection import PostgresPool, PostgresServer, refuse_missing_files
from tocsin.stores.postgresql.dialect import DIALECT, numbered
from tocsin.stores.postgresql.driver import Connection
from tocsin.stores.postgresql.schema import migrate


class PostgresStore(ServerStore[PostgresServer, Connection]):
    """Timers in a schema of the PostgreSQL database at `url` (`postgresql://user:password@host:port/database`), which any
    number of nodes may share.

    The URL may name several hosts; the store connects to the primary. All tables are in the schema, which is created if it
    is missing. A connection pooler in between must preserve sessions (PgBouncer's transaction mode does not): statements are
    prepared, and parameters are set for the session.
    """

    dialect = DIALECT
    total_shards_default = TOTAL_SHARDS_SHARED_DEFAULT

    def __init__(
        self,
        url: str,
        options: ServerOptions | None = None,
        postgres: PostgresOptions | None = None,
        *,
        create: bool = True,
    ) -> None:
        refuse_missing_files("store", url)
        schema = (postgres or PostgresOptions()).schema
        super().__init__(PostgresServer(url, options or ServerOptions(), schema), create=create)

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. One statement, one
        transaction."""
        return await self._commit(batches, lambda connection: writes.apply(connection, batches, self._edges))

    async def heartbeat(self, member: Member) -> int:
        """Writes the member row; returns the store's clock in microseconds, read after the row was written. One round trip:
        under load each takes a few turns of the event loop, and the node's lease runs meanwhile."""
        sql = f"{heartbeat(self.dialect)} RETURNING {self.dialect.clock}"
        pool = self._opened(self._leases)
        rows = await pool.run(Activity.WRITING, lambda connection: self._select(connection, sql, member))
        return int(rows[0][0])

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        return await self._load(lambda connection: reads.fetch(connection, shard_id, uuids)) if uuids else {}

    async def list(self, query: ListQuery) -> Listed:
        """A page of timers, live and finished."""
        bytes_max = min(query.bytes_max, self._server.options.read_bytes_max)
        return await self._read(lambda connection: lists.list_rows(connection, query, bytes_max))

    async def _page(self, query: LoadQuery) -> Loaded:
        return await self._load(lambda connection: reads.load(connection, query, self._server.options.read_bytes_max))

    # -- how statements run

    def _pool(self, size: int) -> PostgresPool:
        return PostgresPool(self._server, size)

    async def _migrate(self, connection: Connection) -> None:
        await migrate(connection, self._server.schema, self._server.safe_url, create=self._create)

    async def _select(self, connection: Connection, sql: str, values: Sequence[Value]) -> Sequence[Sequence[Any]]:
        return await connection.fetch(numbered(sql), *values)

    async def _transact(self, connection: Connection, steps: Sequence[Step]) -> int:
        return await writes.transact(connection, steps)
