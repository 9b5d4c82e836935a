"""The store in a DynamoDB table that several nodes share.

`keys` and `items` define the table's content; `writes`, `reads`, `lists` and `records` contain the requests. This file has
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
from tocsin.stores.dynamodb import lists, reads, writes
from tocsin.stores.dynamodb.client import DynamoClient, RequestKind, time_of
from tocsin.stores.dynamodb.keys import META, Item, key
from tocsin.stores.dynamodb.records import DynamoRecords
from tocsin.stores.dynamodb.schema import prepare
from tocsin.stores.dynamodb.settings import BESIDE_RECORD_BYTES_MAX, ITEM_BYTES_MAX, DynamoSettings, parse_address
from tocsin.stores.orders import LIVE, SUSPENDED
from tocsin.stores.turns import Turns, outcome_of

#: Timers in one transaction: each may need a delete and a history item, or a put and a run, besides the fence.
_BATCH_ROWS_MAX = 49
#: Half of a transaction's limit, because the last row of a batch may exceed it.
_BATCH_BYTES_MAX = 2 * 1024 * 1024


class DynamoStore(DynamoRecords):
    """Timers in the DynamoDB table at `url` (`dynamodb://TABLE?region=…&endpoint=…`), which any number of nodes may share.

    `options` are the fields of DynamoSettings. The table belongs to Tocsin alone. If it is missing, it is created, billed on
    demand; without `create` that raises StoreUnavailable. Credentials and the default region come from AWS's usual sources.
    """

    capabilities = Capabilities(
        range_delete=False,
        exclusive=False,
        shards_together=False,
        batch_rows_max=_BATCH_ROWS_MAX,
        batch_bytes_max=_BATCH_BYTES_MAX,
        row_bytes_max=ITEM_BYTES_MAX - BESIDE_RECORD_BYTES_MAX,
    )

    def __init__(
        self, url: str, *, create: bool = True, observe: Observer = lambda event: None, **options: Any
    ) -> None:
        self._settings = DynamoSettings(parse_address(url), **options)
        super().__init__(self._settings.address.place)
        self._create = create
        #: Receives events about requests, for metrics.
        self.observe = observe
        self._total_shards = 0
        self._has_data = False
        self._turns = Turns()

    async def open(self, total_shards: int | None) -> int:
        """Connects and fixes the number of shards at first use; returns the number in force. Creates the table if it is
        missing."""
        if self._client is not None:
            raise ConfigError(f"{self._place} is open already")
        client = DynamoClient(self._settings, lambda event: self.observe(event))
        await client.open()
        try:
            self._total_shards = await prepare(client, total_shards, create=self._create)
        except BaseException:
            await client.close()
            raise
        self._client = client
        self._turns = Turns()
        return self._total_shards

    async def close(self) -> None:
        """Waits for calls under way and disconnects."""
        await self._turns.ended()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def now(self) -> int:
        """The machine's clock, limited to the second in the date of DynamoDB's response."""
        sent_us = time.time_ns() // 1_000
        response = await self._open.call(
            "get_item",
            RequestKind.READ,
            TableName=self._open.table,
            Key=key(META, b"meta"),
            ReturnConsumedCapacity="TOTAL",
        )
        return time_of(response, sent_us)

    # -- ownership

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed."""
        return await reads.shards(self._open, self._total_shards)

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch. Waits
        until no transaction of a former owner is in progress."""
        if expected_epoch == 0 and not self._has_data:
            if not await writes.begin_data(self._open, self._total_shards):
                raise StoreUnavailable(f"{self._open.place} has another number of shards by now; start again")
            self._has_data = True
        client = self._open
        return await self._turns.take(
            shard_id, lambda: writes.claim(client, shard_id, expected_epoch, owner, presumed_dead)
        )

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        client = self._open
        return await self._turns.take(shard_id, lambda: writes.release(client, shard_id, epoch, owner))

    async def heartbeat(self, member: Member) -> int:
        """Writes the member's item; returns the store's clock in microseconds."""
        sent_us = time.time_ns() // 1_000
        return time_of(await writes.heartbeat(self._open, member), sent_us)

    async def members(self) -> builtins.list[Member]:
        """All members' items."""
        return await reads.members(self._open)

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member's item; with `counter`, only while the member's heartbeat counter is still that one, so that a
        member that has resumed since stays."""
        await writes.forget_member(self._open, incarnation, counter)

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. Each shard's part is one
        transaction, or several; shards do not wait for each other."""
        client = self._open
        # Rows that exceed a limit are refused before anything is written.
        chunks = [writes.chunks_of(batch, self._settings) for batch in batches]
        results = await asyncio.gather(
            *(
                self._turns.take(batch.shard_id, partial(writes.apply, client, batch, parts))
                for batch, parts in zip(batches, chunks, strict=True)
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
        """Removes up to `limit` finished timers and runs with expires_at ≤ now_us and returns how many, shard by shard.
        Deletes need no condition: the same row, if it is written again, expires at the same instant."""
        found: builtins.list[Item] = []
        for shard_id in range(self._total_shards):
            if len(found) < limit:
                found += await reads.expired(self._open, shard_id, now_us, limit - len(found))
        await self._open.batch_delete(found)
        return len(found)

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Removes run rows of one uuid, smallest generations first, until `keep` are left or `limit` are removed; returns how
        many."""
        found = await reads.runs_beyond(self._open, shard_id, uuid, keep, limit)
        await self._open.batch_delete(found)
        return len(found)
