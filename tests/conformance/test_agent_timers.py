"""The port `Timers` of the agent, for the polled table, in SQLite, and for the timer engine. `test_agent_tables.py` shows
that the table is the same on each database."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from tests.support.patience import PATIENCE_S
from tocsin.model.errors import TimerNotFound
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import INSTANT_MAX
from tocsin.model.timer import Status as TimerStatus
from tocsin.ports.bus import BusUnavailable
from tocsin.ports.http import Exchange, Invocation
from tocsin.service_calls.background import AgentContext
from tocsin.service_calls.engine_timers import NAMESPACE, DueCaller, EngineTimers
from tocsin.service_calls.events import AgentEvent, DuePollFailed
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import CallKey, CallStatus, Registry, RequestSpec
from tocsin.service_calls.ports import ServiceCall, TimerEntry, Timers, TimerStore
from tocsin.service_calls.timer import PollingTimers, envelope_id
from tocsin.stores.memory import MemoryStore
from tocsin.stores.service_calls.database import agent_database
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.service import TimerService

MS = 1_000
KINDS = ["sqlite", "engine"]
LIMITS = AgentLimits(polling_batch_max=7)
CLOCK = SystemClock()
new_id = Uuid7Source(CLOCK.now_us)
REGISTRY = Registry(new_id, CLOCK.now_us)


class Listener:
    """Records what was reported, and when. The next calls raise the errors in `failures`, after recording."""

    def __init__(self) -> None:
        self.batches: list[list[TimerEntry]] = []
        self.early: list[TimerEntry] = []
        self.failures: list[Exception] = []
        self._changed = asyncio.Condition()

    async def __call__(self, entries: Sequence[TimerEntry]) -> None:
        now_us = CLOCK.now_us()
        self.early += [entry for entry in entries if entry.due_at > now_us]
        self.batches.append(list(entries))
        async with self._changed:
            self._changed.notify_all()
        if self.failures:
            raise self.failures.pop(0)

    @property
    def reported(self) -> list[TimerEntry]:
        """All reported schedules, in order."""
        return [entry for batch in self.batches for entry in batch]

    def times(self, key: CallKey) -> int:
        """How often this schedule was reported."""
        return sum(entry.key == key for entry in self.reported)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(condition)

    async def has(self, *keys: CallKey) -> None:
        """Returns when each of these was reported."""
        await self.until(lambda: all(self.times(key) for key in keys))


class Harness(Protocol):
    """One implementation of timers over storage that outlives it."""

    timers: Timers
    #: Failures other than those that the test's listener raised.
    failures: list[DuePollFailed]

    async def open(self) -> None:
        """Creates the timers over the existing storage."""

    async def prepare(self, keys: Sequence[CallKey]) -> None:
        """Creates the service calls of these schedules, if the storage requires them."""

    async def reached(self, key: CallKey) -> None:
        """Returns when the storage records that this schedule was reported."""

    async def close(self) -> None:
        """Closes the timers; the storage stays."""


class Noticed:
    """A store that reports when it has marked schedules."""

    def __init__(self, store: TimerStore, marked: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._marked = marked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def mark_fired(self, fired: Collection[tuple[CallKey, int]], reached_at_us: int) -> int:
        count = await self._store.mark_fired(fired, reached_at_us)
        await self._marked()
        return count


class PollingHarness:
    """The table of the agent's database."""

    timers: Timers

    def __init__(self, url: str) -> None:
        self._url = url
        self.failures: list[DuePollFailed] = []
        self._polled = asyncio.Condition()

    async def open(self) -> None:
        self._database = agent_database(self._url)
        await self._database.open()
        self._store = self._database.timers
        store = cast(TimerStore, Noticed(self._store, self._notify))
        self.timers = PollingTimers(store, AgentContext(REGISTRY, CLOCK, LIMITS, self._observe))

    async def prepare(self, keys: Sequence[CallKey]) -> None:
        calls = [
            ServiceCall(
                *key, "n", CallStatus.SCHEDULED, 0, 0, RequestSpec("GET", "http://x"), correlation_of(key), "f", None
            )
            for key in keys
        ]
        await self._database.calls.transact(lambda transaction: transaction.insert(calls))

    async def reached(self, key: CallKey) -> None:
        async with asyncio.timeout(PATIENCE_S), self._polled:
            while not await self._is_reached(key):
                await self._polled.wait()

    async def close(self) -> None:
        await self.timers.close()
        await self._database.close()

    async def _is_reached(self, key: CallKey) -> bool:
        """Whether it is no longer waiting."""
        waiting = await self._store.find_due([key.tenant_id], 0, INSTANT_MAX, 1_000)
        return all(entry.key != key for entry in waiting)

    def _observe(self, event: AgentEvent) -> None:
        if isinstance(event, DuePollFailed):
            self.failures.append(event)

    async def _notify(self) -> None:
        async with self._polled:
            self._polled.notify_all()


class NoHttp:
    """Stands behind the agent's caller: these tests have no other timers."""

    def destination(self, url: str) -> str:
        raise AssertionError(url)

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        raise AssertionError(invocation)

    async def close(self) -> None:
        pass


class EngineHarness:
    """A node's engine."""

    timers: Timers

    def __init__(self) -> None:
        self.failures: list[DuePollFailed] = []
        self._store = MemoryStore(CLOCK, exclusive=True)
        self._committed = asyncio.Event()

    async def open(self) -> None:
        shards = await self._store.open(4)
        self._caller = DueCaller(CLOCK, LIMITS.polling_batch_max)
        context = Context(
            store=self._store,
            caller=NoHttp(),
            internal={NAMESPACE: self._caller},
            clock=CLOCK,
            limits=EngineLimits(),
            observe=lambda event: self._committed.set(),
            random=random.Random(1),
            incarnation=uuid.uuid4().bytes,
        )
        self._supervisor = Supervisor(context, node="n", address="", total_shards=shards, fatal=self._fatal)
        self._service = TimerService(context, self._supervisor, namespace_num_shards=4, retention_us=10**12)
        await self._supervisor.start()
        assert await self._supervisor.all_owned(int(PATIENCE_S * 1e6))
        self.timers = EngineTimers(self._service, self._caller, AgentContext(REGISTRY, CLOCK, LIMITS, print))

    def _fatal(self, error: BaseException) -> None:
        raise error

    async def prepare(self, keys: Sequence[CallKey]) -> None:
        pass

    async def reached(self, key: CallKey) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not await self._is_reached(key):
                self._committed.clear()
                await self._committed.wait()

    async def _is_reached(self, key: CallKey) -> bool:
        try:
            view = await self._service.get(NAMESPACE, f"{key.tenant_id}:{key.service_call_id}")
        except TimerNotFound:
            return False
        return view.timer.status is TimerStatus.COMPLETED

    async def close(self) -> None:
        await self.timers.close()
        await self._supervisor.close()
        await self._caller.close()


@pytest.fixture(params=KINDS)
def unopened(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    """One of each kind."""
    return EngineHarness() if request.param == "engine" else PollingHarness(f"sqlite:///{tmp_path / 'agent.db'}")


@pytest.fixture
async def harness(unopened: Harness) -> AsyncIterator[Harness]:
    await unopened.open()
    yield unopened
    await unopened.close()
    assert not unopened.failures


@pytest.fixture
def listener() -> Listener:
    return Listener()


def correlation_of(key: CallKey) -> str:
    """A unique correlation id for each key."""
    return f"corr-{key.service_call_id}"


def entry(ahead_us: int, key: CallKey | None = None) -> TimerEntry:
    key = key or CallKey(new_id(), new_id())
    now_us = CLOCK.now_us()
    return TimerEntry(key.tenant_id, key.service_call_id, correlation_of(key), now_us + ahead_us, now_us)


async def schedule(harness: Harness, *entries: TimerEntry) -> None:
    """Schedules the entries; creates their service calls first."""
    await harness.prepare(sorted({one.key for one in entries}))
    await harness.timers.schedule(entries)


async def pass_by(harness: Harness, listener: Listener, ahead_us: int) -> None:
    """Returns when a schedule this far ahead has been reported: everything due before it would have been reported by
    then."""
    fence = entry(ahead_us)
    await schedule(harness, fence)
    await listener.has(fence.key)


async def test_schedules_are_reported_once_due_and_never_early(harness: Harness, listener: Listener):
    await harness.timers.start(listener)
    wanted = [entry(ahead_us) for ahead_us in (-50 * MS, 0, 3 * MS, 40 * MS, 41 * MS, 120 * MS)]
    await schedule(harness, *wanted)
    await listener.has(*(one.key for one in wanted))
    assert sorted(listener.reported) == sorted(wanted)
    assert not listener.early


async def test_a_new_earliest_schedule_is_reported_first(harness: Harness, listener: Listener):
    await harness.timers.start(listener)
    late, soon = entry(3_600_000 * MS), entry(30 * MS)
    await schedule(harness, late)
    await schedule(harness, soon)
    await listener.has(soon.key)
    assert listener.reported == [soon]
    assert not listener.early


async def test_overdue_schedules_are_reported_at_the_start(harness: Harness, listener: Listener):
    wanted = [entry(-60_000 * MS + i) for i in range(20)]
    await schedule(harness, *wanted)
    await harness.timers.start(listener)
    await listener.has(*(one.key for one in wanted))
    assert not listener.early


async def test_schedules_survive_a_restart(harness: Harness, listener: Listener):
    reported, waiting = entry(0), entry(300 * MS)
    await harness.timers.start(listener)
    await schedule(harness, reported, waiting)
    await harness.reached(reported.key)
    await harness.close()
    await harness.open()
    after = Listener()
    await harness.timers.start(after)
    # Perhaps by the first one, if the machine was frozen for that long.
    await after.until(lambda: listener.times(waiting.key) + after.times(waiting.key) > 0)
    assert listener.reported + after.reported == [reported, waiting]


async def test_a_published_but_unmarked_schedule_is_reported_again_under_the_same_id(
    harness: Harness, listener: Listener
):
    listener.failures = [BusUnavailable("the process ended here"), RuntimeError("and here")]
    await harness.timers.start(listener)
    one = entry(20 * MS)
    await schedule(harness, one)
    await harness.reached(one.key)
    assert listener.reported == [one] * 3
    assert len(harness.failures) in (0, 2)
    harness.failures.clear()
    assert len({envelope_id(reported) for reported in listener.reported}) == 1


async def test_a_waiting_schedule_moves_only_to_a_later_instant(harness: Harness, listener: Listener):
    moved, repeated = entry(0), entry(100 * MS)
    await schedule(harness, moved, repeated)
    later = entry(60 * MS, moved.key)
    # An instant that is not later comes from an older message delivered again, and must not undo the newer one.
    await schedule(harness, later, repeated._replace(due_at=repeated.due_at - 50 * MS))
    await harness.timers.start(listener)
    await listener.has(moved.key, repeated.key)
    assert sorted(listener.reported) == sorted([later._replace(registered_at=moved.registered_at), repeated])
    assert not listener.early


async def test_a_reached_schedule_is_reported_again_only_for_a_later_instant(harness: Harness, listener: Listener):
    await harness.timers.start(listener)
    one = entry(0)
    await schedule(harness, one)
    await harness.reached(one.key)
    await schedule(harness, one)
    await schedule(harness, one._replace(due_at=one.due_at - 30 * MS))
    await pass_by(harness, listener, 80 * MS)
    assert listener.times(one.key) == 1
    again = entry(30 * MS, one.key)
    await schedule(harness, again)
    await listener.until(lambda: listener.times(one.key) == 2)
    assert listener.reported[-1] == again._replace(registered_at=one.registered_at)
    assert not listener.early


async def test_a_schedule_may_be_replaced_while_it_is_being_reported(harness: Harness, listener: Listener):
    """A call whose attempt fails at once is scheduled again before its last schedule is marked."""
    first = entry(0)
    again = entry(50 * MS, first.key)

    async def on_due(entries: Sequence[TimerEntry]) -> None:
        if any(reported.due_at == first.due_at for reported in entries):
            await harness.timers.schedule([again])
        await listener(entries)

    await harness.timers.start(on_due)
    await schedule(harness, first)
    await listener.until(lambda: listener.times(first.key) == 2)
    assert [reported.due_at for reported in listener.reported] == [first.due_at, again.due_at]


async def test_a_canceled_schedule_is_not_reported(harness: Harness, listener: Listener):
    gone, stays = entry(0), entry(0)
    await schedule(harness, gone, stays)
    await harness.timers.cancel([gone.key])
    await harness.timers.start(listener)
    await harness.reached(stays.key)
    await harness.timers.cancel([stays.key, CallKey(new_id(), new_id())])
    await pass_by(harness, listener, 0)
    assert (listener.times(gone.key), listener.times(stays.key)) == (0, 1)


async def test_schedules_of_tenants_are_separate(harness: Harness, listener: Listener):
    mine = entry(0)
    theirs = entry(0, CallKey(new_id(), mine.service_call_id))
    gone = entry(0, CallKey(new_id(), mine.service_call_id))
    await schedule(harness, mine, theirs, gone)
    await harness.timers.cancel([gone.key])
    await harness.timers.start(listener)
    await listener.has(mine.key, theirs.key)
    await pass_by(harness, listener, 0)
    assert {
        reported.key: reported for reported in listener.reported if reported.service_call_id == mine.service_call_id
    } == {
        mine.key: mine,
        theirs.key: theirs,
    }


async def test_many_due_schedules_are_reported_in_batches_in_due_order(harness: Harness, listener: Listener):
    tenants = [new_id() for _ in range(10)]
    wanted = [entry(-1_000 * MS + i * MS, CallKey(tenants[i % 10], new_id())) for i in range(200)]
    shuffled = list(wanted)
    random.Random(3).shuffle(shuffled)
    await schedule(harness, *shuffled)
    await harness.timers.start(listener)
    await listener.has(*(one.key for one in wanted))
    assert max(len(batch) for batch in listener.batches) <= LIMITS.polling_batch_max
    for batch in listener.batches:
        assert [one.due_at for one in batch] == sorted(one.due_at for one in batch)
    assert len(listener.reported) == len(wanted)


async def test_nothing_is_reported_after_close(harness: Harness, listener: Listener):
    await harness.timers.start(listener)
    await schedule(harness, entry(60_000 * MS))
    await harness.timers.close()
    await harness.timers.close()
    assert listener.reported == []
