"""The store port without SQL, as far as it is the same for every database: life cycle, one write of a shard at a time,
several requests at once."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from tocsin.model.errors import ConfigError, DefiniteFailure, OutcomeUnknown, StoreUnavailable
from tocsin.ports.store import KEY_MAX, Applied, FireKey, Loaded, ShardBatch, StoreFacts, total_shards_changed
from tocsin.stores.orders import LIVE, SUSPENDED

T = TypeVar("T")


class Turns:
    """Runs writes of one shard one after another (rule 2), those of different shards at once."""

    def __init__(self) -> None:
        self._locks: dict[int, asyncio.Lock] = {}
        self._running: set[asyncio.Task[Any]] = set()

    def take(self, shard_id: int, work: Callable[[], Awaitable[T]]) -> asyncio.Future[T]:
        """The result of the work. It continues if the caller is cancelled, and the next write waits until its outcome is
        known."""

        async def run() -> T:
            async with self._locks.setdefault(shard_id, asyncio.Lock()):
                return await work()

        task = asyncio.get_running_loop().create_task(run())
        self._running.add(task)
        task.add_done_callback(self._ended)
        return asyncio.shield(task)

    async def ended(self) -> None:
        """Returns when no work is in progress."""
        while self._running:
            await asyncio.wait(self._running)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Retrieved, so that asyncio does not log it if the caller was cancelled.
            task.exception()


def outcome_of(results: Sequence[Applied | BaseException]) -> list[Applied]:
    """The results of all parts. A failure is definite only if no part was written."""
    failures = [result for result in results if isinstance(result, BaseException)]
    if not failures:
        return [result for result in results if isinstance(result, Applied)]
    for failure in failures:
        if not isinstance(failure, DefiniteFailure):
            raise failure
    if Applied.DURABLE in results:
        raise OutcomeUnknown(f"other shards' parts were written: {failures[0]}") from failures[0]
    raise next((failure for failure in failures if isinstance(failure, StoreUnavailable)), failures[0])


class Client(Protocol):
    """What a store needs of its client, besides statements."""

    @property
    def place(self) -> str:
        """The database for people."""

    async def open(self) -> None:
        """Connects."""

    async def close(self) -> None:
        """Disconnects. Idempotent."""

    async def now(self) -> int:
        """The database's clock in microseconds."""

    async def facts(self) -> StoreFacts:
        """What the database reports about itself."""


C = TypeVar("C", bound=Client)
C_contra = TypeVar("C_contra", contravariant=True)


class Schema(Protocol[C_contra]):
    """What a store keeps besides rows and records: a module of each adapter."""

    async def prepare(self, client: C_contra, total_shards: int | None, /, *, create: bool) -> int:
        """Creates what is missing, and fixes the number of shards at first use; returns the number in force."""

    async def begin_data(self, client: C_contra, total_shards: int, /) -> bool:
        """Fixes the number of shards for good. False if another node has changed it."""


class ClientStore(ABC, Generic[C]):
    """A store that speaks to its database through a client while it is open. `place` names it in errors; without `create`, a
    missing database raises StoreUnavailable. The port documents what each method guarantees."""

    def __init__(self, place: str, new_client: Callable[[], C], schema: Schema[C], *, create: bool) -> None:
        self._place = place
        self._new_client = new_client
        self._schema = schema
        self._create = create
        self._client: C | None = None
        self._total_shards = 0
        self._has_data = False
        self._beginning = asyncio.Lock()
        self._turns = Turns()

    # -- what an adapter supplies besides the rest of the port

    @abstractmethod
    async def _claim(
        self, shard_id: int, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None
    ) -> int | None:
        """Claims the shard, in its turn."""

    @abstractmethod
    async def _release(self, shard_id: int, epoch: int, owner: bytes) -> bool:
        """Releases the shard, in its turn."""

    @abstractmethod
    def _write(self, batch: ShardBatch) -> Callable[[], Awaitable[Applied]]:
        """What writes the batch, in its shard's turn. Raises DefiniteFailure for rows that exceed a limit."""

    @abstractmethod
    async def _page(self, kind: bytes, shard_id: int, after: FireKey, last: FireKey, limit: int) -> Loaded:
        """Rows of a kind of `tocsin.stores.orders`, as `load` returns them."""

    # -- life cycle

    @property
    def _open(self) -> C:
        if self._client is None:
            raise StoreUnavailable(f"{self._place} is not open")
        return self._client

    async def open(self, total_shards: int | None) -> int:
        """Connects, creates what is missing, and fixes the number of shards at first use; returns the number in force."""
        if self._client is not None:
            raise ConfigError(f"{self._place} is open already")
        client = self._new_client()
        await client.open()
        try:
            self._total_shards = await self._schema.prepare(client, total_shards, create=self._create)
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
        if client is not None:
            await client.close()

    async def now(self) -> int:
        """The store's clock in microseconds."""
        return await self._open.now()

    async def facts(self) -> StoreFacts:
        """What the database reports about itself."""
        return await self._open.facts()

    # -- ownership

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch."""
        if expected_epoch == 0:
            # One at a time: on Cassandra, the first claims of all shards would contend for one partition.
            async with self._beginning:
                if not self._has_data and not await self._schema.begin_data(self._open, self._total_shards):
                    raise total_shards_changed(self._place)
                self._has_data = True
        work = partial(self._claim, shard_id, expected_epoch, owner, presumed_dead)
        return await self._turns.take(shard_id, work)

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        return await self._turns.take(shard_id, partial(self._release, shard_id, epoch, owner))

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. Each shard's part is written
        by itself; shards do not wait for each other."""
        # Rows that exceed a limit are refused before anything is written.
        works = [(batch.shard_id, self._write(batch)) for batch in batches]
        turns = (self._turns.take(shard_id, work) for shard_id, work in works)
        return outcome_of(await asyncio.gather(*turns, return_exceptions=True))

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to: at most `limit`, smallest keys first."""
        return await self._page(LIVE, shard_id, after, up_to, limit)

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, as `load` returns live ones."""
        return await self._page(SUSPENDED, shard_id, after, KEY_MAX, limit)
