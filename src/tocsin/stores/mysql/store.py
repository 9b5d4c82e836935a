"""The store in a MySQL or MariaDB database, which several nodes may share.

`tocsin.sql` has what SQL stores have in common. The statements on timers are in `writes`, `reads` and `lists`.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tocsin.ports.store import (
    Applied,
    Found,
    Listed,
    ListQuery,
    Loaded,
    ShardBatch,
    ShardState,
    StoredRow,
    schedules_of,
)
from tocsin.sql.dialect import Step, Value
from tocsin.sql.pool import ServerOptions
from tocsin.sql.rows import ROW_COLUMNS, LoadQuery, cut, stored_row
from tocsin.sql.server_store import ServerStore
from tocsin.stores import TOTAL_SHARDS_SHARED_DEFAULT
from tocsin.stores.mysql import lists, reads, writes
from tocsin.stores.mysql.connection import MysqlPool, MysqlServer
from tocsin.stores.mysql.dialect import DIALECT
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.schema import migrate
from tocsin.stores.mysql.text import filled
from tocsin.stores.options import MysqlOptions

#: What a row of a statement has besides its record, in hexadecimal digits, and the statement's own text.
_BESIDE_RECORD_BYTES_MAX = 64 * 1024


class MysqlStore(ServerStore[MysqlServer, Connection]):
    """Timers in the MySQL or MariaDB database at `url` (`mysql://user:password@host:port/database`), which any number of
    nodes may share. The database belongs to Tocsin alone, and is created if it is missing."""

    dialect = DIALECT
    total_shards_default = TOTAL_SHARDS_SHARED_DEFAULT

    def __init__(
        self, url: str, options: ServerOptions | None = None, mysql: MysqlOptions | None = None, *, create: bool = True
    ) -> None:
        server = MysqlServer(url, options or ServerOptions(), mysql or MysqlOptions())
        super().__init__(server, create=create)
        # A statement has at least one row whole, and each byte of its record may need two.
        row_bytes_max = server.mysql.statement_bytes_max // 2 - _BESIDE_RECORD_BYTES_MAX
        self.capabilities = replace(self.capabilities, row_bytes_max=row_bytes_max)

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed."""
        states: list[ShardState] = []
        for shard_ids in cut(range(self._total_shards)):
            states += [ShardState(*row) for row in await self._engine_rows(reads.shard_rows(shard_ids))]
        return states

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. One transaction."""
        mysql = self._server.mysql
        return await self._commit(batches, lambda connection: writes.apply(connection, batches, self._edges, mysql))

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        return await self._load(lambda connection: reads.fetch(connection, shard_id, uuids)) if uuids else {}

    async def list_schedules(
        self, namespace: str, shards: Sequence[int], after_id: str, limit: int
    ) -> builtins.list[StoredRow]:
        """The namespace's schedules behind an id, in the order of their ids' bytes, along the table of their ids."""
        sql = self.dialect.schedules.format(columns=ROW_COLUMNS)
        values = (schedules_of(namespace).encode(), after_id.encode(), limit)
        return [stored_row(found) for found in await self._rows(sql, *values)]

    async def list_all_schedules(
        self, shards: Sequence[int], after: tuple[str, str] | None, limit: int
    ) -> builtins.list[StoredRow]:
        """All schedules behind a namespace and id, by the name under which they are stored and id, along the same table."""
        sql = self.dialect.all_schedules.format(columns=ROW_COLUMNS)
        name, after_id = ("", "") if after is None else (schedules_of(after[0]), after[1])
        values = (name.encode(), after_id.encode(), name.encode(), limit)
        return [stored_row(found) for found in await self._rows(sql, *values)]

    async def list(self, query: ListQuery) -> Listed:
        """A page of timers, live and finished."""
        bytes_max = min(query.bytes_max, self._server.options.read_bytes_max)
        return await self._read(lambda connection: lists.list_rows(connection, query, bytes_max))

    async def _page(self, query: LoadQuery) -> Loaded:
        return await self._load(lambda connection: reads.load(connection, query, self._server.options.read_bytes_max))

    # -- how statements run

    def _pool(self, size: int) -> MysqlPool:
        return MysqlPool(self._server, size)

    def _migration_pool(self) -> MysqlPool:
        # The database may not exist yet. The lock of a migration ends with its session.
        return MysqlPool(self._server, 1, database=False, bounded=False)

    async def _migrate(self, connection: Connection) -> None:
        await migrate(connection, self._server.database, self._server.safe_url, create=self._create)

    async def _select(self, connection: Connection, sql: str, values: Sequence[Value]) -> Sequence[Sequence[Any]]:
        return await connection.rows(filled(sql, values))

    async def _transact(self, connection: Connection, steps: Sequence[Step]) -> int:
        return await writes.transact(connection, steps, self._server.mysql.undone_retries_max)
