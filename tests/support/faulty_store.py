"""A store decorator that injects faults, for simulations: slow calls, failures, unknown outcomes, late effects.

All randomness comes from the given `random.Random` and all time from the running event loop, so that a seed can be replayed.
"""

from __future__ import annotations

import asyncio
import builtins
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Any, Concatenate, ParamSpec, TypeVar

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreError, StoreUnavailable
from tocsin.ports.store import Applied, ShardBatch, Store

P = ParamSpec("P")
T = TypeVar("T")


class Fault(Enum):
    """A fault of one call."""

    #: No fault.
    NONE = "none"
    #: DefiniteFailure, without effect. The only fault of reads.
    FAIL = "fail"
    #: OutcomeUnknown; the call took effect.
    UNKNOWN_DONE = "unknown_done"
    #: OutcomeUnknown; the call took no effect and never will.
    UNKNOWN_LOST = "unknown_lost"
    #: OutcomeUnknown; the call takes effect some time later.
    LATE = "late"


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The probability of each fault per call, and delays in seconds.

    Each way, to the store and back, takes between `delay_s_min` and `delay_s_max`; a call is slow with probability `slow`,
    and then takes up to `slow_s_max` longer. Late effects happen within `late_s_max`. A call while the store is cut off fails
    after `cut_timeout_s`."""

    delay_s_min: float = 0.0
    delay_s_max: float = 0.0
    slow: float = 0.0
    slow_s_max: float = 1.0
    fail: float = 0.0
    read_fail: float = 0.0
    unknown_done: float = 0.0
    unknown_lost: float = 0.0
    late: float = 0.0
    late_s_max: float = 10.0
    cut_timeout_s: float = 1.0


#: A plan without random faults; scripts and cuts still work.
NO_FAULTS = FaultPlan()


def _read(
    method: Callable[Concatenate[Store, P], Awaitable[T]],
) -> Callable[Concatenate[FaultyStore, P], Coroutine[Any, Any, T]]:
    """The method of the port, with the faults of reads."""
    return _faulty(method, write=False)


def _write(
    method: Callable[Concatenate[Store, P], Awaitable[T]],
) -> Callable[Concatenate[FaultyStore, P], Coroutine[Any, Any, T]]:
    """The method of the port, with the faults of writes."""
    return _faulty(method, write=True)


def _faulty(
    method: Callable[Concatenate[Store, P], Awaitable[T]], *, write: bool
) -> Callable[Concatenate[FaultyStore, P], Coroutine[Any, Any, T]]:
    name = method.__name__

    async def call(store: FaultyStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store._call(name, lambda: getattr(store.inner, name)(*args, **kwargs), write=write)

    return call


class FaultyStore:
    """A decorator of any store, as one node sees it.

    Faults come from `script` first, then from the plan's probabilities. `cut` disconnects the node from the store: each new
    call raises StoreUnavailable after a time, and the outcome of writes under way is unknown. `injected` counts the injected
    faults, so that a run knows whether it had any.
    """

    def __init__(self, inner: Store, random: Random, plan: FaultPlan = NO_FAULTS) -> None:
        self.inner = inner
        self.capabilities = inner.capabilities
        self.plan = plan
        self.injected: Counter[str] = Counter()
        self._random = random
        self._scripts: dict[str, deque[Fault]] = defaultdict(deque)
        self._cuts = 0
        self._is_cut = False
        self._late: list[asyncio.Task[None]] = []

    def partitioned(self, node: str) -> FaultyStore:
        """Another node's view of the same store, with its own faults, which depend on the seed and the node's name."""
        return FaultyStore(self.inner, Random(f"{self._random.getrandbits(64)}/{node}"), self.plan)

    def script(self, method: str, *faults: Fault) -> None:
        """Sets the faults of a method's next calls, in order; then the plan applies again."""
        self._scripts[method].extend(faults)

    @property
    def is_cut(self) -> bool:
        """Whether this node is cut off from the store."""
        return self._is_cut

    def cut(self) -> None:
        """Cuts this node off from the store. Late effects still happen."""
        self._is_cut = True
        self._cuts += 1

    def heal(self) -> None:
        """Connects the node again."""
        self._is_cut = False

    async def settle(self) -> None:
        """Waits until all late effects have happened."""
        while self._late:
            await asyncio.gather(*self._late)

    # -- the faults

    def _next(self, method: str, *, write: bool) -> Fault:
        script = self._scripts[method]
        if script:
            return script.popleft()
        plan, draw = self.plan, self._random.random()
        if not write:
            return Fault.FAIL if draw < plan.read_fail else Fault.NONE
        for fault, probability in (
            (Fault.FAIL, plan.fail),
            (Fault.UNKNOWN_DONE, plan.unknown_done),
            (Fault.UNKNOWN_LOST, plan.unknown_lost),
            (Fault.LATE, plan.late),
        ):
            if draw < probability:
                return fault
            draw -= probability
        return Fault.NONE

    async def _way(self) -> None:
        """Waits for the delay of one way, to the store or back."""
        plan = self.plan
        delay_s = self._random.uniform(plan.delay_s_min, plan.delay_s_max)
        if self._random.random() < plan.slow:
            self.injected["slow"] += 1
            delay_s += self._random.uniform(0, plan.slow_s_max)
        await asyncio.sleep(delay_s)

    async def _call(self, method: str, call: Callable[[], Awaitable[T]], *, write: bool) -> T:
        if self._is_cut:
            self.injected["cut"] += 1
            await asyncio.sleep(self.plan.cut_timeout_s)
            raise StoreUnavailable(f"{method}: the store can't be reached")
        cuts, fault = self._cuts, self._next(method, write=write)
        arrives_despite_cut = self._random.random() < 0.5
        if fault is not Fault.NONE:
            self.injected[fault.value] += 1
        await self._way()
        if fault is Fault.FAIL:
            raise DefiniteFailure(f"{method}: injected failure")
        if self._cuts != cuts and not arrives_despite_cut:
            raise self._interrupted(method, write=write)
        if fault is Fault.UNKNOWN_LOST:
            raise OutcomeUnknown(f"{method}: injected loss of the call")
        if fault is Fault.LATE:
            self._land_late(call)
            raise OutcomeUnknown(f"{method}: injected late effect")
        result = await call()
        await self._way()
        if self._cuts != cuts:
            raise self._interrupted(method, write=write)
        if fault is Fault.UNKNOWN_DONE:
            raise OutcomeUnknown(f"{method}: injected loss of the answer")
        return result

    def _interrupted(self, method: str, *, write: bool) -> StoreError:
        self.injected["interrupted"] += 1
        kind = OutcomeUnknown if write else StoreUnavailable
        return kind(f"{method}: the connection was cut")

    def _land_late(self, call: Callable[[], Awaitable[T]]) -> None:
        delay_s = self._random.uniform(0, self.plan.late_s_max)

        async def land() -> None:
            try:
                await asyncio.sleep(delay_s)
                # Nobody receives the result, as with a real database.
                await call()
            except StoreError:
                self.injected["late_refused"] += 1
            finally:
                self._late.remove(task)

        task = asyncio.get_running_loop().create_task(land())
        self._late.append(task)

    # -- the port

    async def open(self, total_shards: int | None) -> int:
        """Opens the inner store, without faults."""
        return await self.inner.open(total_shards)

    async def close(self) -> None:
        """Leaves the inner store open, because other nodes may use it."""

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. The batches are copied: what
        lands late is what was sent, whatever the caller does with its lists."""
        sent = [
            replace(batch, upserts=[*batch.upserts], deletes=[*batch.deletes], history=[*batch.history])
            for batch in batches
        ]
        return await self._call("apply", lambda: self.inner.apply(sent), write=True)

    now = _read(Store.now)
    shards = _read(Store.shards)
    members = _read(Store.members)
    load = _read(Store.load)
    load_suspended = _read(Store.load_suspended)
    fetch = _read(Store.fetch)
    runs = _read(Store.runs)
    list_schedules = _read(Store.list_schedules)
    list = _read(Store.list)
    record = _read(Store.record)
    records = _read(Store.records)
    records_version = _read(Store.records_version)

    claim = _write(Store.claim)
    release = _write(Store.release)
    heartbeat = _write(Store.heartbeat)
    forget_member = _write(Store.forget_member)
    purge_history = _write(Store.purge_history)
    trim_runs = _write(Store.trim_runs)
    put_record = _write(Store.put_record)
    delete_records = _write(Store.delete_records)
