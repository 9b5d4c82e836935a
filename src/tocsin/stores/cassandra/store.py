"""The store in a keyspace of Apache Cassandra that several nodes share.

`keys` and `rows` define the table's content; `writes`, `reads`, `lists` and `records` contain the statements. This file has
the life cycle and the order of writes.
"""

from __future__ import annotations

import asyncio
import builtins
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from tocsin.model.errors import ConfigError, StoreUnavailable
from tocsin.ports.observer import Observer
from tocsin.ports.store import (
    KEY_MAX,
    PAGE_BYTES_MAX,
    Applied,
    Capabilities,
    FireKey,
    Found,
    HistoryRow,
    Listed,
    ListQuery,
    Loaded,
    Member,
    RunRow,
    ShardBatch,
    ShardState,
    StoredRow,
)
from tocsin.stores.cassandra import lists, reads, writes
from tocsin.stores.cassandra.client import CassandraClient
from tocsin.stores.cassandra.records import CassandraRecords
from tocsin.stores.cassandra.schema import begin_data, prepare
from tocsin.stores.cassandra.settings import CassandraSettings, parse_address
from tocsin.stores.cassandra.size import SizeWatch
from tocsin.stores.cassandra.writes import WRITE_BYTES_MAX
from tocsin.stores.orders import LIVE, SUSPENDED
from tocsin.stores.turns import Turns, outcome_of

#: Timers in one batch. Each takes up to five statements, and the server's time grows with their number.
_BATCH_ROWS_MAX = 500
_BATCH_BYTES_MAX = 1024 * 1024
#: A batch has room for two rows, and what they have besides their records.
_ROW_BYTES_MAX = WRITE_BYTES_MAX // 2 - 64 * 1024


class CassandraStore(CassandraRecords):
    """Timers in the keyspace of `url` (`cassandra://user:password@host1:9042,host2/KEYSPACE?datacenter=…&consistency=…`),
    which any number of nodes may share.

    `options` are the fields of CassandraSettings. The keyspace belongs to Tocsin alone. If it is missing, it is created;
    without `create` that raises StoreUnavailable. `observe` receives the measured sizes of partitions.
    """

    capabilities = Capabilities(
        range_delete=False,
        delete_watermark=True,
        exclusive=False,
        shards_together=False,
        expires_history=True,
        batch_rows_max=_BATCH_ROWS_MAX,
        batch_bytes_max=_BATCH_BYTES_MAX,
        row_bytes_max=_ROW_BYTES_MAX,
    )

    def __init__(
        self, url: str, *, create: bool = True, observe: Observer = lambda event: None, **options: Any
    ) -> None:
        self._settings = CassandraSettings(parse_address(url), **options)
        super().__init__(self._settings.address.place)
        self._create = create
        #: Receives events about partitions, for metrics.
        self.observe = observe
        self._size: SizeWatch | None = None
        self._total_shards = 0
        self._has_data = False
        self._beginning = asyncio.Lock()
        self._turns = Turns()

    async def open(self, total_shards: int | None) -> int:
        """Connects and fixes the number of shards at first use; returns the number in force. Creates keyspace and table if
        they are missing."""
        if self._client is not None:
            raise ConfigError(f"{self._place} is open already")
        client = CassandraClient(self._settings)
        await client.open()
        try:
            self._total_shards = await prepare(client, total_shards, create=self._create)
        except BaseException:
            await client.close()
            raise
        self._client = client
        self._turns = Turns()
        self._size = SizeWatch(client, lambda event: self.observe(event))
        return self._total_shards

    async def close(self) -> None:
        """Waits for calls under way and disconnects."""
        await self._turns.ended()
        size, self._size = self._size, None
        if size is not None:
            await size.stop()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def now(self) -> int:
        """The clock of a node of the cluster, to the millisecond: this machine's clock, if it agrees."""
        return await _now(self._open)

    # -- ownership

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed."""
        return await reads.shards(self._open, self._total_shards)

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch. Paxos
        completes or excludes what a former owner has begun."""
        if expected_epoch == 0:
            await self._begin_data()
        client = self._open
        return await self._turns.take(
            shard_id, lambda: writes.claim(client, shard_id, expected_epoch, owner, presumed_dead)
        )

    async def _begin_data(self) -> None:
        # One at a time: Paxos on one partition would have the first claims of all shards wait for each other.
        async with self._beginning:
            if not self._has_data and not await begin_data(self._open, self._total_shards):
                raise StoreUnavailable(f"{self._open.place} has another number of shards by now; start again")
            self._has_data = True

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        client = self._open
        return await self._turns.take(shard_id, lambda: writes.release(client, shard_id, epoch, owner))

    async def heartbeat(self, member: Member) -> int:
        """Writes the member's row; returns the store's clock in microseconds."""
        await writes.heartbeat(self._open, member)
        return await _now(self._open)

    async def members(self) -> builtins.list[Member]:
        """All members' rows."""
        return await reads.members(self._open)

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member's row; with `counter`, only while the member's heartbeat counter is still that one, so that a
        member that has resumed meanwhile stays."""
        await writes.forget_member(self._open, incarnation, counter)

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. Each shard's part is one
        conditional batch; shards do not wait for each other."""
        client = self._open
        # Rows that exceed a limit are refused before anything is written.
        tokens = [writes.new_token() for _ in batches]
        parts = [writes.statements_of(client, batch, token) for batch, token in zip(batches, tokens, strict=True)]
        results = await asyncio.gather(
            *(
                self._turns.take(batch.shard_id, partial(writes.apply, client, batch, token, statements))
                for batch, token, statements in zip(batches, tokens, parts, strict=True)
            ),
            return_exceptions=True,
        )
        return outcome_of(results)

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to: at most `limit`, smallest keys first. Each is read as
        of a commit that was durable when the call began, or of a later one."""
        return await reads.load(self._open, LIVE, shard_id, after, up_to, limit)

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, as `load` returns live ones."""
        return await reads.load(self._open, SUSPENDED, shard_id, after, KEY_MAX, limit)

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        return await reads.fetch(self._open, shard_id, uuids) if uuids else {}

    async def list_schedules(
        self, namespace: str, shards: Sequence[int], after_id: str, limit: int
    ) -> builtins.list[StoredRow]:
        """The namespace's schedules in these shards behind an id, in the order of their ids' bytes. It is not a snapshot."""
        return await lists.list_schedules(self._open, namespace, shards, after_id, limit)

    async def list(self, query: ListQuery) -> Listed:
        """A page of one namespace's timers, live and finished. It is not a snapshot."""
        return await lists.list_rows(self._open, query)

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> builtins.list[HistoryRow | RunRow]:
        """The timer's finished rows and runs with generation < before, greatest generation first."""
        return await reads.runs(self._open, shard_id, uuid, before, limit, bytes_max)

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes nothing and returns 0: each row was written with its time to live."""
        return 0

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Removes run rows of one uuid, smallest generations first, until `keep` are left or `limit` are removed; returns how
        many."""
        client = self._open
        found = await reads.runs_beyond(client, shard_id, uuid, keep, limit)
        if not found:
            return 0
        return await self._turns.take(shard_id, lambda: writes.delete_runs(client, shard_id, found))


async def _now(client: CassandraClient) -> int:
    """This machine's clock, limited to the millisecond that a node of the cluster reported in between."""
    sent_us = time.time_ns() // 1_000
    begin_us = await client.clock_us()
    received_us = time.time_ns() // 1_000
    return min(max(received_us, begin_us), begin_us + 999 + received_us - sent_us)
