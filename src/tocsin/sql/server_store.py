"""The life cycle and the connections of a store on a database server, which several nodes may share."""

from __future__ import annotations

import builtins
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from tocsin.model.errors import ConfigError, StoreUnavailable
from tocsin.ports.store import Applied, Capabilities, ShardBatch, StoreFacts
from tocsin.sql.dialect import Step, Value
from tocsin.sql.keys import LeftEdges
from tocsin.sql.pool import Activity, C, Pool, S, WriterLanes
from tocsin.sql.store import SqlStore, release

T = TypeVar("T")


class ServerStore(SqlStore, Generic[S, C]):
    """A store over pools of connections, which are opened when needed, and again after they broke. Each writing connection
    commits for its own share of the shards, one batch after another. Without `create`, a missing schema raises
    StoreUnavailable."""

    capabilities = Capabilities(range_delete=True, exclusive=False)

    def __init__(self, server: S, *, create: bool) -> None:
        self._server = server
        self._create = create
        self._lanes: WriterLanes[S, C] | None = None
        self._loaders: Pool[S, C] | None = None
        self._readers: Pool[S, C] | None = None
        # What renews the node lease is small, and must not wait for pages of timers or the removal of what has expired.
        self._leases: Pool[S, C] | None = None
        self._edges = LeftEdges()

    # -- what an adapter supplies besides what SqlStore names

    @abstractmethod
    def _pool(self, size: int) -> Pool[S, C]:
        """A pool of up to `size` connections."""

    def _migration_pool(self) -> Pool[S, C]:
        """A pool for a migration, which has no time limit."""
        return self._pool(1)

    @abstractmethod
    async def _migrate(self, connection: C) -> None:
        """Migrates the schema to the newest version; nodes that start at once take turns."""

    @abstractmethod
    async def _select(self, connection: C, sql: str, values: Sequence[Value]) -> Sequence[Sequence[Any]]:
        """The rows of a SELECT."""

    @abstractmethod
    async def _transact(self, connection: C, steps: Sequence[Step]) -> int:
        """Runs the statements of `_change`."""

    # -- life cycle

    async def open(self, total_shards: int | None) -> int:
        """Connects, migrates the schema, and fixes the number of shards at first use; returns the number in force."""
        if self._lanes is not None:
            raise ConfigError(f"{self._server.safe_url} is already open")
        pool = self._migration_pool()
        try:
            await pool.run(Activity.CONNECTING, self._migrate, bounded=False)
        finally:
            await pool.close()
        self._edges = LeftEdges()
        options = self._server.options
        self._loaders, self._readers = self._pool(options.loaders), self._pool(options.readers)
        self._leases = self._pool(1)
        self._lanes = WriterLanes([self._pool(1) for _ in range(options.writers)])
        try:
            return await self._fix_total_shards(total_shards)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Waits for calls under way and disconnects."""
        lanes = self._lanes.pools if self._lanes is not None else []
        pools = [pool for pool in (*lanes, self._loaders, self._readers, self._leases) if pool is not None]
        self._lanes = self._loaders = self._readers = self._leases = None
        for pool in pools:
            await pool.close()

    async def facts(self) -> StoreFacts:
        """What the database reports about itself, and the connections."""
        lanes = self._lanes.pools if self._lanes is not None else []
        pools = [*lanes, *map(self._opened, (self._loaders, self._readers, self._leases))]
        return (await super().facts())._replace(
            connections=sum(pool.size for pool in pools), connections_used=sum(pool.used for pool in pools)
        )

    # -- connections

    async def _commit(
        self, batches: Sequence[ShardBatch], work: Callable[[C], Awaitable[builtins.list[Applied]]]
    ) -> builtins.list[Applied]:
        """Runs the transaction of these batches in their lanes; batches of one shard follow one another."""
        return await self._write((batch.shard_id for batch in batches), work) if batches else []

    async def _write(self, shard_ids: Iterable[int], work: Callable[[C], Awaitable[T]]) -> T:
        """Runs a transaction in the lanes of these shards, behind what is being written of them."""
        if self._lanes is None:
            raise StoreUnavailable(f"{self._server.safe_url} is not open")
        return await self._lanes.commit(shard_ids, work)

    async def _load(self, work: Callable[[C], Awaitable[T]]) -> T:
        """Runs the engine's reads."""
        return await self._opened(self._loaders).run(Activity.READING, work)

    async def _read(self, work: Callable[[C], Awaitable[T]]) -> T:
        return await self._opened(self._readers).run(Activity.READING, work)

    async def _engine_rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        return await self._load(lambda connection: self._select(connection, sql, values))

    async def _rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        return await self._read(lambda connection: self._select(connection, sql, values))

    async def _lease_rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        pool = self._opened(self._leases)
        return await pool.run(Activity.READING, lambda connection: self._select(connection, sql, values))

    async def _change(self, *steps: Step) -> int:
        return await self._change_with(self._loaders, steps)

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner, in the shard's lane (`Store.release`)."""
        step = release(self.dialect, shard_id, epoch, owner)
        return await self._write((shard_id,), lambda connection: self._transact(connection, (step,))) > 0

    async def _lease_change(self, *steps: Step) -> int:
        return await self._change_with(self._leases, steps)

    async def _change_with(self, pool: Pool[S, C] | None, steps: Sequence[Step]) -> int:
        work = self._opened(pool).run(Activity.WRITING, lambda connection: self._transact(connection, steps))
        return await work

    def _opened(self, pool: Pool[S, C] | None) -> Pool[S, C]:
        if pool is None:
            raise StoreUnavailable(f"{self._server.safe_url} is not open")
        return pool
