"""Statistics: counted in minutes, kept as records by each node, read by any of them for all; outages as intervals."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tocsin.administration import unobserved
from tocsin.model.errors import StoreUnavailable, Unavailable
from tocsin.ports.batches import BatchAccepted
from tocsin.ports.observer import (
    AttemptFinished,
    DispatchPaused,
    DispatchResumed,
    Event,
    TimersChanged,
    TimersCreated,
)
from tocsin.statistics import records as stored
from tocsin.statistics.counting import Statistics
from tocsin.statistics.events import StatisticsNotStored
from tocsin.statistics.keeping import StatisticsKeeper
from tocsin.statistics.limits import StatisticsLimits
from tocsin.statistics.outages import Outage, OutageTracker
from tocsin.statistics.reading import StatisticsReader
from tocsin.statistics.slots import (
    OTHER_DESTINATIONS,
    OTHER_NAMESPACES,
    Failures,
    Slot,
    failing_place,
    split_place,
)
from tocsin.stores.memory import MemoryStore
from tocsin.testing.clock import FakeClock

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
LIMITS = StatisticsLimits(places_max=2, namespaces_max=3)


class FlakyStore(MemoryStore):
    """A store that refuses writes of records while it is out, but for some that are left."""

    out = False
    writes_left: int | None = None

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        if self.writes_left:
            self.writes_left -= 1
        elif self.out:
            raise StoreUnavailable("out")
        return await super().put_record(kind, key, value, expected)


class FakeEngine:
    """An engine of which a test sets what it reports."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.since_us = 0
        self.behind = False
        self.attempts = 0

    def paused_reason(self) -> str | None:
        return self.reason

    def paused_since_us(self) -> int:
        return self.since_us

    def caught_up(self) -> bool:
        return not self.behind

    def in_flight(self) -> int:
        return self.attempts


class CountingNode:
    """A node's statistics without the node."""

    def __init__(self, name: str, store: FlakyStore, clock: FakeClock, limits: StatisticsLimits = LIMITS) -> None:
        self.clock = clock
        self.gauges = {"tocsin_overdue_seconds": 0.0}
        self.statistics = Statistics(limits, clock.now_us(), lambda: self.gauges)
        self.engine, self.refused = FakeEngine(), 0
        self.outages = OutageTracker(clock, limits, lambda: self.refused)
        self.outages.attach(name, self.engine)
        self.statistics.on_late = self.outages.count_late
        self.events: list[Event] = []
        self.keeper = StatisticsKeeper(
            store,
            self.statistics,
            self.outages,
            clock=clock,
            node=name,
            incarnation=name.encode() * 8,
            observe=self.events.append,
            timeout_s=60.0,
            fatal=unobserved,  # type: ignore[arg-type]
        )
        self.reader = StatisticsReader(store, self.keeper, clock, unobserved, 60.0)

    def fires(self, outcome: str = "done", *, lag_us: int = 5_000, namespace: str = "a", path: str = "/") -> None:
        error = None if outcome == "done" else "HTTP_503"
        self.statistics(AttemptFinished(0, namespace, "t", 1, outcome, error, lag_us, 10, "http://x:80", path))

    async def passes(self, duration_us: int = MINUTE, step_us: int = 10 * SECOND) -> None:
        """Time passes on this node; what is complete is stored."""
        for _ in range(duration_us // step_us):
            self.clock.advance(step_us)
            self.statistics.roll(self.clock.now_us())
            self.outages.look()
        await self.keeper.store()

    async def read(self, back_us: int = 30 * MINUTE, width_us: int = MINUTE, namespaces: Sequence[str] = ()) -> Slot:
        """What the node reads of all nodes: the sum, with the number of slots as its start."""
        await self.reader._read()
        now_us = self.clock.now_us()
        found = await self.reader.read(
            (now_us - back_us) // width_us * width_us,
            now_us + 1,
            width_us,
            lambda name: not namespaces or name in namespaces,
        )
        sums = Slot(len(found.counts), failing=found.failing)
        for counts in found.counts.values():
            sums.of("sum").add(counts)
        return sums


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(clock: FakeClock) -> FlakyStore:
    store = FlakyStore(clock)
    await store.open(4)
    return store


async def fires_read(node: CountingNode, back_us: int = 30 * MINUTE, width_us: int = MINUTE) -> int:
    return (await node.read(back_us, width_us)).counts().fires


# -- counting


def test_a_slot_counts_by_namespace_and_place_within_limits(clock: FakeClock) -> None:
    statistics = Statistics(LIMITS, clock.now_us(), lambda: {"tocsin_overdue_seconds": 1.5})
    for outcome in ("done", "done", "retried", "failed", "rescheduled", "superseded"):
        error = None if outcome == "done" else "HTTP_503"
        statistics(AttemptFinished(0, "a", "t", 1, outcome, error, 1_000_001, 10, "http://x:80", "/p"))
    statistics(TimersCreated("a", 5))
    statistics(TimersChanged("a", "deleted", 2))
    statistics(TimersChanged("b", "updated", 3))
    counts = statistics.present.counts()
    assert (counts.fires, counts.done, counts.retried, counts.failed, counts.created) == (6, 2, 1, 1, 5)
    assert (counts.canceled, counts.updated, counts.late) == (2, 3, 6)
    assert statistics.present.failing[failing_place("a", "http://x:80", "/p")].failures == 2
    for number in range(5):
        statistics(AttemptFinished(0, "a", "t", 1, "failed", "X", 0, 10, f"http://{number}:80", "/p"))
    others = failing_place("a", OTHER_DESTINATIONS)
    assert len(statistics.present.failing) == 3
    assert statistics.present.failing[others].failures == 4
    assert split_place(others) == ("a", OTHER_DESTINATIONS, "")
    statistics.sample()
    assert statistics.open.overdue_s == 1.5


def test_the_timers_that_a_batch_s_receiver_accepted_count_like_single_ones(clock: FakeClock) -> None:
    singly, together = (Statistics(LIMITS, clock.now_us(), dict) for _ in range(2))
    late: list[list[tuple[int, int]]] = [[], []]
    for statistics, found in zip((singly, together), late, strict=True):
        statistics.on_late = lambda lag_us, duration_us, found=found: found.append((lag_us, duration_us))
    lags_us = (0, 5_000, 1_000_001)
    for number, lag_us in enumerate(lags_us):
        singly(AttemptFinished(0, "a", f"t{number}", 1, "done", None, lag_us, 10, "http://x:80"))
    together(BatchAccepted("a", "batch_1", ("t0", "t1", "t2"), lags_us, 10, "http://x:80"))
    assert together.present == singly.present
    assert together.present.counts().done == 3
    assert together.change_counter("a") == singly.change_counter("a")
    assert late == [[(1_000_001, 10)]] * 2


def test_only_the_busiest_namespaces_are_kept_apart() -> None:
    slot = Slot()
    for number in range(6):
        slot.of(f"n{number}").done = number + 1
        slot.failing[failing_place(f"n{number}", "http://x:80", "/")] = Failures(number + 1)
    slot.keep_busiest(3)
    assert {name: counts.done for name, counts in slot.namespaces.items()} == {"n5": 6, "n4": 5, OTHER_NAMESPACES: 10}
    assert slot.failing[failing_place(OTHER_NAMESPACES, "http://x:80", "/")].failures == 10
    assert slot.failing[failing_place("n5", "http://x:80", "/")].failures == 6


def test_a_record_stays_within_its_bytes() -> None:
    limits = StatisticsLimits(record_bytes_max=4_000)
    slot = Slot()
    for number in range(150):
        counts = slot.of(f"namespace-{number}")
        counts.done = number
        for lag_ms in (1, 10, 100, 1_000):
            counts.lag.count(lag_ms * 1_000)
    fits = stored.fitting(slot, limits)
    assert len(stored.encoded(fits)) <= limits.record_bytes_max
    assert fits.counts() == slot.counts()
    assert len(slot.namespaces) == 150


# -- keeping and reading


async def test_numbers_survive_the_node_that_counted_them(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    one.fires()
    one.fires("failed", path="/hook")
    await one.passes()
    # The open minute is lost with its node.
    one.fires()
    other = CountingNode("other", store, clock)
    found = await other.read()
    assert (found.counts().fires, found.counts().failed) == (2, 1)
    assert list(found.failing) == [failing_place("a", "http://x:80", "/hook")]
    hour = other.reader.hour()
    assert [slot.counts().fires for slot in hour.slots] == [2]


async def test_a_clean_end_stores_the_open_minute(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    one.keeper.start()
    one.fires()
    await one.keeper.close()
    await one.keeper.close()
    assert await fires_read(CountingNode("other", store, clock)) == 1


async def test_an_idle_minute_stores_nothing(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    await one.passes(3 * MINUTE)
    assert await store.records(stored.MINUTES, limit=9) == []


async def test_each_minute_of_a_node_counts_once(store: FlakyStore, clock: FakeClock) -> None:
    nodes = [CountingNode("one", store, clock), CountingNode("two", store, clock)]
    for minute in range(4):
        for node in nodes:
            node.fires()
        clock.advance(MINUTE)
        for node in nodes:
            node.statistics.roll(clock.now_us())
            await node.keeper.store()
        for node in nodes:
            assert await fires_read(node) == 2 * (minute + 1)
            assert sum(slot.counts().fires for slot in node.reader.hour().slots) == 2 * (minute + 1)
    nodes[0].fires()
    # Its own open minute counts, the other's does not yet.
    assert [await fires_read(node) for node in nodes] == [9, 8]


async def test_the_last_minute_is_no_older_one_where_the_others_were_idle(store: FlakyStore, clock: FakeClock) -> None:
    one, other = CountingNode("one", store, clock), CountingNode("other", store, clock)
    other.fires()
    await other.passes(MINUTE - clock.now_us() % MINUTE)
    await one.read()
    assert one.reader.hour().last_minute.counts().fires == 1
    # That an idle minute is not stored shows only once it would have been.
    for passed_us, fires in ((MINUTE + 5 * SECOND, 1), (10 * SECOND, 0)):
        await other.passes(passed_us, step_us=SECOND)
        await one.read()
        assert one.reader.hour().last_minute.counts().fires == fires


async def test_minutes_of_an_outage_are_stored_afterwards_and_found(store: FlakyStore, clock: FakeClock) -> None:
    one, other = CountingNode("one", store, clock), CountingNode("other", store, clock)
    await fires_read(other)
    store.out = True
    for _ in range(10):
        one.fires()
        await one.passes()
        other.fires("failed")
        other.statistics.roll(clock.now_us())
        await other.read()
    assert any(isinstance(event, StatisticsNotStored) for event in one.events)
    store.out = False
    await one.passes()
    found = await other.read()
    assert (found.counts().done, found.counts().failed) == (10, 10)


async def test_minutes_of_an_outage_are_found_though_storing_them_failed_half_way(
    store: FlakyStore, clock: FakeClock
) -> None:
    one, other = CountingNode("one", store, clock), CountingNode("other", store, clock)
    for _ in range(10):
        # Only one of them can't reach the store.
        one.fires()
        other.fires("failed")
        clock.advance(MINUTE)
        one.statistics.roll(clock.now_us())
        other.statistics.roll(clock.now_us())
        await other.keeper.store()
        await other.read()
    store.out, store.writes_left = True, 5
    await one.passes()
    await other.read()
    store.out = False
    await one.passes()
    await other.read()
    assert sum(slot.counts().done for slot in other.reader.hour().slots) == 10


async def test_memory_holds_an_hour_of_an_outage(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    store.out = True
    for _ in range(70):
        one.fires()
        await one.passes(step_us=MINUTE)
    store.out = False
    await one.passes()
    assert await fires_read(CountingNode("other", store, clock), 3 * HOUR) == 59


async def test_old_minutes_become_slots_of_ten_minutes(store: FlakyStore, clock: FakeClock) -> None:
    nodes = [CountingNode("one", store, clock), CountingNode("two", store, clock)]
    for _ in range(25):
        for node in nodes:
            node.fires()
        clock.advance(MINUTE)
        for node in nodes:
            node.statistics.roll(clock.now_us())
            await node.keeper.store()
    clock.advance(25 * HOUR)
    reader = CountingNode("three", store, clock)
    assert await fires_read(reader, 26 * HOUR, 10 * MINUTE) == 50
    await reader.keeper.tidy()
    assert await store.records(stored.MINUTES, limit=9) == []
    assert len(await store.records(stored.TEN_MINUTES, limit=9)) == 3
    assert await fires_read(reader, 26 * HOUR, 10 * MINUTE) == 50
    # Again, and by another node: nothing changes.
    await nodes[0].keeper.tidy()
    assert await fires_read(reader, 26 * HOUR, 10 * MINUTE) == 50
    clock.advance(31 * 24 * HOUR)
    await reader.keeper.tidy()
    assert await store.records(stored.TEN_MINUTES, limit=9) == []


async def test_a_merge_that_was_interrupted_is_finished(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    one.fires()
    await one.passes()
    one.fires()
    await one.passes()
    minutes = await store.records(stored.MINUTES, limit=9)
    clock.advance(25 * HOUR)
    await one.keeper.tidy()
    # As if the node had ended before it removed the minutes.
    for minute in minutes[1:]:
        await store.put_record(stored.MINUTES, minute.key, minute.value, None)
    other = CountingNode("other", store, clock)
    assert await fires_read(other, 26 * HOUR, 10 * MINUTE) == 2
    await other.keeper.tidy()
    assert await store.records(stored.MINUTES, limit=9) == []
    assert await fires_read(other, 26 * HOUR, 10 * MINUTE) == 2


async def test_namespaces_are_read_apart(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    one.fires("failed", namespace="a", path="/a")
    one.fires("failed", namespace="b", path="/b")
    await one.passes()
    found = await one.read(namespaces=["b"])
    assert found.counts().failed == 1
    assert list(found.failing) == [failing_place("b", "http://x:80", "/b")]


async def test_a_store_that_does_not_answer_is_reported(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    one.fires()

    async def fails(*kinds: str, urgent: bool = False) -> tuple[int, ...]:
        raise StoreUnavailable("out")

    store.records_versions = fails  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="can't be read: out"):
        await one.reader.read(0, 1, MINUTE, bool)
    # Pages show what this node knows.
    assert one.reader.hour().open.counts().fires == 1


# -- outages


def pause(node: CountingNode, reason: str = "lease", since_us: int | None = None) -> None:
    node.engine.reason = reason
    node.engine.since_us = node.clock.now_us() if since_us is None else since_us
    node.outages(DispatchPaused(reason, "why"))


def resume(node: CountingNode) -> None:
    reason, node.engine.reason = node.engine.reason or "", None
    node.outages(DispatchResumed(reason))


async def outages_read(node: CountingNode) -> list[Outage]:
    await node.reader._read()
    return node.reader.outages(0, node.clock.now_us() + 1)


async def test_an_outage_is_an_interval_with_what_it_did(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    began_us = clock.now_us()
    pause(one)
    await one.passes(30 * SECOND)
    (lasting,) = await outages_read(one)
    assert (lasting.from_us, lasting.to_us, lasting.reason) == (began_us, None, "lease")
    one.refused += 3
    one.engine.behind, one.engine.attempts = True, 1
    resume(one)
    clock.advance(SECOND)
    one.fires(lag_us=20 * SECOND)
    one.fires(lag_us=5 * SECOND)
    # Due after the outage, or not late.
    clock.advance(10 * SECOND)
    one.fires(lag_us=2 * SECOND)
    one.fires(lag_us=900_000)
    await one.passes(10 * SECOND)
    one.engine.behind, one.engine.attempts = False, 0
    await one.passes(10 * SECOND)
    other = CountingNode("other", store, clock)
    assert await outages_read(other) == [
        Outage("one", "lease", began_us, began_us + 30 * SECOND, "why", 2, 20 * SECOND, 3, counting=False)
    ]
    # What comes late afterwards has another reason.
    one.fires(lag_us=3_600 * SECOND)
    await one.passes()
    assert (await outages_read(one))[0].late == 2


async def test_what_was_due_in_an_outage_counts_for_it_also_behind_another_one(
    store: FlakyStore, clock: FakeClock
) -> None:
    one = CountingNode("one", store, clock)
    one.engine.behind, one.engine.attempts = True, 1
    ends = []
    for refused in (20, 10):
        pause(one)
        await one.passes(20 * SECOND)
        one.refused += refused
        resume(one)
        ends.append(clock.now_us())
        await one.passes(10 * SECOND)
    # Due in the first one, between them, and in the second one.
    for due_us in (ends[0] - 2 * SECOND, ends[0] + SECOND, ends[1] - SECOND):
        one.fires(lag_us=clock.now_us() - due_us)
    one.engine.behind, one.engine.attempts = False, 0
    await one.passes(10 * SECOND)
    assert [(each.creates_refused, each.late, each.counting) for each in await outages_read(one)] == [
        (10, 2, False),
        (20, 1, False),
    ]


async def test_a_pause_that_was_noticed_late_began_with_its_lease(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    began_us = clock.now_us()
    clock.advance(40 * SECOND)
    pause(one, since_us=began_us)
    resume(one)
    await one.passes()
    assert [(each.from_us, each.to_us) for each in await outages_read(one)] == [(began_us, began_us + 40 * SECOND)]


async def test_a_moment_after_which_nothing_was_late_is_no_outage(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    pause(one, "clock_jump")
    clock.advance(SECOND // 2)
    resume(one)
    await one.passes()
    assert await outages_read(one) == []
    one.engine.reason = "starting"
    await one.passes()
    one.outages.stop()
    assert await outages_read(one) == []


async def test_a_moment_is_not_stored_while_it_may_still_delay_something(store: FlakyStore, clock: FakeClock) -> None:
    one, other = CountingNode("one", store, clock), CountingNode("other", store, clock)
    one.engine.attempts = 1
    pause(one)
    clock.advance(SECOND // 2)
    resume(one)
    await one.passes()
    one.engine.attempts = 0
    await one.passes()
    assert await outages_read(one) == await outages_read(other) == []
    # Once it has delayed something, it is, and without the node that counted, it is final after a while.
    one.engine.attempts = 1
    pause(one)
    clock.advance(SECOND // 2)
    resume(one)
    clock.advance(SECOND // 2)
    one.fires(lag_us=2 * SECOND)
    await one.keeper.store()
    assert [(each.late, each.counting) for each in await outages_read(other)] == [(1, True)]
    clock.advance(31 * MINUTE)
    assert [(each.late, each.counting) for each in await outages_read(other)] == [(1, False)]


async def test_another_reason_begins_another_outage(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock)
    pause(one)
    await one.passes(20 * SECOND)
    pause(one, "clock_skew")
    await one.passes(20 * SECOND)
    resume(one)
    await one.passes()
    assert [each.reason for each in await outages_read(one)] == ["clock_skew", "lease"]


async def test_outages_are_bounded(store: FlakyStore, clock: FakeClock) -> None:
    one = CountingNode("one", store, clock, StatisticsLimits(outages_max=2))
    for _ in range(4):
        pause(one)
        await one.passes(20 * SECOND)
        resume(one)
        await one.passes()
    await one.keeper.tidy()
    assert len(await store.records(stored.OUTAGES, limit=9)) == 2
    clock.advance(31 * 24 * HOUR)
    await one.keeper.tidy()
    assert await store.records(stored.OUTAGES, limit=9) == []
