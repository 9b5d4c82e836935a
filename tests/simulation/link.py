"""A node's link to the shared store: slow, failing or cut, with unknown outcomes and late effects."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from tests.support.window_bench import at_once
from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreError, StoreUnavailable
from tocsin.ports.records import Record
from tocsin.ports.store import (
    PAGE_BYTES_MAX,
    Applied,
    FailurePlace,
    FailureRow,
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

from .weak_store import WeakStore

T = TypeVar("T")

#: The context of the store and the receiver, which belong to no node.
OUTSIDE = contextvars.Context()


class Link:
    """The part of the store port that the engine uses, over a network that may lose and delay everything but corrupts
    nothing. The claim is Cassandra's: it reads the heartbeat counter, then writes, and time passes in between. So may the
    load be: it reads the entries, then the rows."""

    def __init__(
        self, store: WeakStore, rng: random.Random, rng_of_store: random.Random, record: Callable[..., None]
    ) -> None:
        self.capabilities = store.capabilities
        self.fault_rate = 0.0
        self.slow_rate = 0.0
        #: How long a claim is under way since it compared the counter of an owner that is presumed dead, at most, in seconds.
        self.claims_held_s = 0.0
        #: Whether it is until the owner's next heartbeat instead, which is the worst moment; and those that are.
        self.claims_await_owner = False
        self.claims_waiting = 0
        #: Until when commits are under way, in loop time.
        self.commits_held_until_s = 0.0
        #: The share of conditional writes that arrive twice, so that either answer may be received.
        self.twice_rate = 0.0
        #: "": connected; "refused": fails fast; "silent": never answers; "deaf": delivers, but loses the answers.
        self.cut = ""
        self.poison: set[bytes] = set()
        #: Whether the namespaces can't be read, while everything else works.
        self.blind = False
        self.round_trip_us_max = 0
        self._store = store
        self._rng = rng
        self._rng_of_store = rng_of_store
        self._record = record

    async def _call(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        writes: str = "",
        shards: Sequence[int] = (),
        held: Callable[[], bool] = lambda: False,
        repeatable: bool = False,
    ) -> T:
        """Sends the request, executes it when it arrives and is no longer `held`, and waits for the answer: when nothing of
        these shards is under way in the store. If it is `repeatable`, it may arrive twice; a commit never does."""
        loop, rng = asyncio.get_running_loop(), self._rng
        there, back = rng.uniform(0.0003, 0.003), rng.uniform(0.0003, 0.003)
        if rng.random() < self.slow_rate:
            there, back = there + rng.expovariate(2.0), back + rng.expovariate(2.0)
        fate = rng.random()
        kind = rng.choice(_FATES) if fate < self.fault_rate else ""
        late = rng.uniform(0.0, 12.0) if kind == "late" else 0.0
        if kind and writes:
            self._record("fate", writes, kind, round(late, 3))
        if kind in ("definite", "unavailable") or self.cut == "refused":
            await asyncio.sleep(there)
            raise DefiniteFailure("deadlock") if kind == "definite" else StoreUnavailable("connection refused")
        answer: asyncio.Future[T] = loop.create_future()
        unheard = kind in ("silent", "vanished", "late")
        if kind != "vanished":
            there_s = there + late
            if repeatable and self.twice_rate and self._rng_of_store.random() < self.twice_rate:
                again_s = there_s + self._rng_of_store.uniform(0.0, 3.0)
                self._record("twice", writes)
                loop.call_later(again_s, self._arrive, work, answer, back, shards, unheard, held, context=OUTSIDE)
                unheard = unheard or self._rng_of_store.random() < 0.5
            loop.call_later(there_s, self._arrive, work, answer, back, shards, unheard, held, context=OUTSIDE)
        if kind == "late" or (kind == "vanished" and rng.random() < 0.5):
            await asyncio.sleep(there)
            raise OutcomeUnknown("connection reset") if writes else StoreUnavailable("connection reset")
        return await answer

    def _arrive(
        self,
        work: Callable[[], Coroutine[Any, Any, Any]],
        answer: asyncio.Future[Any],
        back: float,
        shards: Sequence[int],
        unheard: bool,
        held: Callable[[], bool],
    ) -> None:
        if self.cut == "silent":
            return
        if held():
            asyncio.get_running_loop().call_later(
                _HELD_S, self._arrive, work, answer, back, shards, unheard, held, context=OUTSIDE
            )
            return
        error: BaseException | None = None
        result = None
        try:
            result = at_once(work())
        except StoreError as raised:
            error = raised
        except ValueError as raised:
            error = AssertionError(f"a batch breaks the store's rules: {raised}")
        if not unheard and not self.cut:
            back += self._store.unsettled_s(shards) if error is None else 0.0
            asyncio.get_running_loop().call_later(back, self._deliver, answer, result, error, context=OUTSIDE)

    def _deliver(self, answer: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        if answer.done() or self.cut:
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)

    # ------------------------------------------------------------------ the port

    async def shards(self) -> list[ShardState]:
        return await self._call(self._store.shards)

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        if presumed_dead is not None:
            members = await self._call(self._store.members)
            if presumed_dead not in [(member.incarnation, member.counter) for member in members]:
                return None
        time, awaits_owner = asyncio.get_running_loop().time, self.claims_await_owner
        until_s = time() + (_HELD_S_MAX if awaits_owner else self._rng_of_store.uniform(0.0, self.claims_held_s))

        def held() -> bool:
            if presumed_dead is None or time() >= until_s:
                return False
            unchanged = self._store.counter(presumed_dead[0]) == presumed_dead[1]
            self.claims_waiting += awaits_owner and unchanged
            return unchanged or not awaits_owner

        def work() -> Coroutine[Any, Any, int | None]:
            self._record("claim arrives", shard_id, expected_epoch, owner.hex()[:4])
            return self._store.claim(shard_id, expected_epoch=expected_epoch, owner=owner)

        return await self._call(work, writes="claim", shards=[shard_id], held=held, repeatable=True)

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        return await self._call(
            lambda: self._store.release(shard_id, epoch=epoch, owner=owner), writes="release", repeatable=True
        )

    async def heartbeat(self, member: Member) -> int:
        began = asyncio.get_running_loop().time()
        now = await self._call(lambda: self._store.heartbeat(member), writes="heartbeat", repeatable=True)
        self.round_trip_us_max = max(self.round_trip_us_max, int((asyncio.get_running_loop().time() - began) * 1e6))
        return now

    async def members(self) -> list[Member]:
        return await self._call(self._store.members)

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        if counter is not None:
            self._record("forgets", incarnation.hex()[:4], counter)
        return await self._call(lambda: self._store.forget_member(incarnation, counter), writes="forget")

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        def work() -> Coroutine[Any, Any, list[Applied]]:
            if self.poison and any(row.uuid in self.poison for batch in batches for row in batch.upserts):
                raise DefiniteFailure("the database refuses this row")
            self._record_batches(batches)
            return self._store.apply(batches)

        time = asyncio.get_running_loop().time
        shards = [batch.shard_id for batch in batches]
        return await self._call(work, writes="apply", shards=shards, held=lambda: time() < self.commits_held_until_s)

    def _record_batches(self, batches: Sequence[ShardBatch]) -> None:
        for batch in batches:
            self._record(
                "batch",
                f"shard {batch.shard_id} v{batch.epoch} of {batch.owner.hex()[:4]}",
                [(row.execute_at, row.uuid.hex()[:6], row.generation[-1], row.suspended) for row in batch.upserts],
                [uuid.hex()[:6] for uuid in batch.deletes],
                batch.delete_to and (batch.delete_to[0], batch.delete_to[1].hex()[:6]),
            )

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        # A database may shorten a page; only `complete_to` states how far it is complete.
        if limit > 1 and self._rng.random() < 0.2:
            limit = self._rng.randint(1, limit)
        return await self._led_to(shard_id, await self._call(lambda: self._store.load(shard_id, after, up_to, limit)))

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        return await self._led_to(
            shard_id, await self._call(lambda: self._store.load_suspended(shard_id, after, limit))
        )

    async def _led_to(self, shard_id: int, entries: Loaded) -> Loaded:
        if not self._store.reads_apart:
            return entries
        await asyncio.sleep(self._rng_of_store.uniform(0.0, self._store.apart_s))
        page = await self._call(lambda: self._store.led_to(shard_id, entries))
        if len(page.rows) < len(entries.rows):
            self._record("outdated entries", shard_id, len(entries.rows) - len(page.rows))
        return page

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        return await self._call(lambda: self._store.fetch(shard_id, uuids))

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> list[HistoryRow | RunRow]:
        return await self._call(lambda: self._store.runs(shard_id, uuid, before, limit, bytes_max))

    async def purge_history(self, now_us: int, limit: int) -> int:
        return await self._call(lambda: self._store.purge_history(now_us, limit), writes="purge")

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        return await self._call(lambda: self._store.trim_runs(shard_id, uuid, keep, limit), writes="trim")

    async def forget(self, shard_id: int, uuids: Sequence[bytes]) -> None:
        await self._call(lambda: self._store.forget(shard_id, uuids), writes="forget")

    async def failures(
        self, shard_id: int, after: FailurePlace | None, limit: int, *, descending: bool = False
    ) -> list[FailureRow]:
        return await self._call(lambda: self._store.failures(shard_id, after, limit, descending=descending))

    async def list_schedules(self, namespace: str, shards: Sequence[int], after_id: str, limit: int) -> list[StoredRow]:
        return await self._call(lambda: self._store.list_schedules(namespace, shards, after_id, limit))

    async def list_all_schedules(
        self, shards: Sequence[int], after: tuple[str, str] | None, limit: int
    ) -> list[StoredRow]:
        return await self._call(lambda: self._store.list_all_schedules(shards, after, limit))

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        def work() -> Coroutine[Any, Any, bool]:
            self._record("record arrives", kind, key, value, expected)
            return self._store.put_record(kind, key, value, expected)

        return await self._call(work, writes="put_record")

    async def delete_records(self, kind: str, keys: Sequence[str]) -> bool:
        return await self._call(lambda: self._store.delete_records(kind, keys), writes="delete_records")

    async def record(self, kind: str, key: str) -> Record | None:
        return await self._call(lambda: self._store.record(kind, key))

    async def records(self, kind: str, *range: str, limit: int) -> list[Record]:
        await self._see()
        return await self._call(lambda: self._store.records(kind, *range, limit=limit))

    async def records_versions(self, *kinds: str, urgent: bool = False) -> tuple[int, ...]:
        await self._see()
        return await self._call(lambda: self._store.records_versions(*kinds, urgent=urgent))

    async def _see(self) -> None:
        if self.blind:
            await asyncio.sleep(0.001)
            raise StoreUnavailable("the namespaces can't be read now")

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, query: ListQuery) -> Listed:
        return await self._call(lambda: self._store.list(query))


#: How often it is checked whether a request is still held, and how long one waits at most, in seconds.
_HELD_S, _HELD_S_MAX = 0.05, 20.0
_FATES = ("definite", "unavailable", "silent", "vanished", "vanished", "late", "late")
