"""The store in a MongoDB database that several nodes share.

`schema` and `documents` define the database's content; `writes`, `reads`, `lists`, `retention` and `records` contain the
statements. This file has the life cycle and the order of writes.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from tocsin.model.errors import ConfigError, StoreUnavailable
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
from tocsin.stores.mongodb import lists, reads, retention, writes
from tocsin.stores.mongodb.client import MongoClient, Session
from tocsin.stores.mongodb.records import MongoRecords
from tocsin.stores.mongodb.schema import begin_data, prepare
from tocsin.stores.mongodb.settings import MongoSettings, parse_address
from tocsin.stores.turns import Turns, outcome_of

T = TypeVar("T")

#: Timers in one transaction: each may need a delete and a document of history, or an upsert and a run, and MongoDB advises
#: at most 1,000 documents.
_BATCH_ROWS_MAX = 450
#: Half of the size up to which one entry of the oplog has room.
_BATCH_BYTES_MAX = 8 * 1024 * 1024
#: MongoDB's limit of a document, less what a document has besides its record.
_ROW_BYTES_MAX = 16 * 1024 * 1024 - 64 * 1024


class MongoStore(MongoRecords):
    """Timers in the MongoDB database at `url` (`mongodb://HOST/DATABASE?replicaSet=…`), which any number of nodes may share.

    `options` are the fields of MongoSettings. The database belongs to Tocsin alone. Its collections are created; without
    `create`, a database without them raises StoreUnavailable.
    """

    capabilities = Capabilities(
        shards_together=False,
        batch_rows_max=_BATCH_ROWS_MAX,
        batch_bytes_max=_BATCH_BYTES_MAX,
        row_bytes_max=_ROW_BYTES_MAX,
    )

    def __init__(self, url: str, *, create: bool = True, **options: Any) -> None:
        self._settings = MongoSettings(parse_address(url), **options)
        super().__init__(self._settings.address.place)
        self._create = create
        self._total_shards = 0
        self._has_data = False
        self._turns = Turns()
        #: The session in which each shard's claims and batches are written.
        self._sessions: dict[int, Session] = {}

    async def open(self, total_shards: int | None) -> int:
        """Connects, creates what is missing, and fixes the number of shards at first use; returns the number in force."""
        if self._client is not None:
            raise ConfigError(f"{self._place} is open already")
        client = MongoClient(self._settings)
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
        """Waits for writes under way and disconnects."""
        await self._turns.ended()
        client, self._client = self._client, None
        sessions, self._sessions = self._sessions, {}
        if client is not None:
            for session in sessions.values():
                await session.end_session()
            await client.close()

    async def now(self) -> int:
        """The primary's clock in microseconds, accurate to the millisecond."""
        return await self._open.now()

    # -- ownership

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed."""
        return await reads.shards(self._open)

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch. Ends a
        transaction of a former owner that was never committed."""
        client = self._open
        if expected_epoch == 0 and not self._has_data:
            if not await begin_data(client, self._total_shards):
                raise StoreUnavailable(f"{client.place} has another number of shards by now; start again")
            self._has_data = True
        return await self._in_turn(
            shard_id, lambda session: writes.claim(client, session, shard_id, expected_epoch, owner, presumed_dead)
        )

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        client = self._open
        return await self._turns.take(shard_id, lambda: writes.release(client, shard_id, epoch, owner))

    async def heartbeat(self, member: Member) -> int:
        """Writes the member's document; returns the store's clock in microseconds."""
        await writes.heartbeat(self._open, member)
        return await self._open.now()

    async def members(self) -> builtins.list[Member]:
        """All members."""
        return await reads.members(self._open)

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member's document; with `counter`, only while the member's heartbeat counter is still that one, so that a
        member that has resumed since stays."""
        await writes.forget_member(self._open, incarnation, counter)

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. Each shard's part is one
        transaction; shards do not wait for each other."""
        client = self._open
        # Rows that do not fit are refused before anything is written.
        parts = [writes.writes_of(batch) for batch in batches]
        results = await asyncio.gather(
            *(
                self._in_turn(batch.shard_id, partial(_apply, client, batch, part))
                for batch, part in zip(batches, parts, strict=True)
            ),
            return_exceptions=True,
        )
        return outcome_of(results)

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to: at most `limit`, smallest keys first, from a snapshot
        that began after the call."""
        return await reads.load(self._open, shard_id, after, up_to, limit, suspended=False)

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, as `load` returns live ones."""
        return await reads.load(self._open, shard_id, after, KEY_MAX, limit, suspended=True)

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        return await reads.fetch(self._open, shard_id, uuids) if uuids else {}

    async def list_schedules(
        self, namespace: str, shards: Sequence[int], after_id: str, limit: int
    ) -> builtins.list[StoredRow]:
        """The namespace's schedules in these shards behind an id, in the order of their ids' bytes."""
        return await lists.list_schedules(self._open, namespace, shards, after_id, limit)

    async def list(self, query: ListQuery) -> Listed:
        """A page of one namespace's timers, live and finished, from one snapshot."""
        return await lists.list_rows(self._open, query)

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> builtins.list[HistoryRow | RunRow]:
        """The timer's finished rows and runs with generation < before, greatest generation first."""
        return await reads.runs(self._open, shard_id, uuid, before, limit, bytes_max)

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` finished timers and runs with expires_at ≤ now_us and returns how many."""
        return await retention.purge_history(self._open, now_us, limit)

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Removes run rows of one uuid, smallest generations first, until `keep` are left or `limit` are removed; returns how
        many."""
        return await retention.trim_runs(self._open, shard_id, uuid, keep, limit)

    # -- turns

    def _in_turn(self, shard_id: int, work: Callable[[Session], Awaitable[T]]) -> asyncio.Future[T]:
        """The result of a transaction in the shard's session. A transaction that was left open after a failure is ended by
        the next one of the same session, and what arrives of it later is refused."""

        async def run() -> T:
            if shard_id not in self._sessions:
                self._sessions[shard_id] = self._open.start_session()
            return await work(self._sessions[shard_id])

        return self._turns.take(shard_id, run)


def _apply(client: MongoClient, batch: ShardBatch, part: writes.Part, session: Session) -> Awaitable[Applied]:
    return writes.apply(client, session, batch, part)
