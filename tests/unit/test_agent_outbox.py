"""The outbox dispatcher over an in-memory table and a bus that the test controls."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import msgspec
import pytest
from tests.support.agent_memory import MemoryOutbox, MemoryTables
from tests.support.patience import PATIENCE_S

from tocsin.model.errors import StoreUnavailable
from tocsin.model.ids import Uuid7Source
from tocsin.ports.bus import BusOverloaded, BusUnavailable, Envelope, InvalidMessage
from tocsin.service_calls.background import AgentContext, Wakeup
from tocsin.service_calls.events import (
    AgentEvent,
    AgentRowsPurged,
    AgentStepFailed,
    MessagesPublished,
    MessageSuspended,
    PublishFailed,
)
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import CheckExecution, DueTimeReached, Instant, Registry, RequestSpec, StartExecution
from tocsin.service_calls.outbox import OutboxDispatcher
from tocsin.service_calls.ports import OutboxRow
from tocsin.testing.clock import EPOCH_US, FakeClock

LIMITS = AgentLimits(
    outbox_acknowledge_interval_us=0, outbox_backoff_initial_us=1_000, outbox_backoff_max_us=4_000, outbox_batch_max=10
)

PostOutcome = Callable[[Envelope], Exception | None]


class ScriptedBus:
    """Settles posts as `answer` decides, at once or, while `held` is set, when the test does."""

    def __init__(self) -> None:
        self.answer: PostOutcome = lambda envelope: None
        self.paused = False
        self.posts: list[Envelope] = []
        self.under_way: dict[str, Callable[[Exception | None], None]] = {}
        self.most_under_way = 0
        self.per_aggregate: dict[tuple[str, str], int] = defaultdict(int)
        self.posted = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def post(self, envelope: Envelope, done: Callable[[Exception | None], None]) -> None:
        self.posts.append(envelope)
        aggregate = envelope.tenant_id, envelope.aggregate_id
        self.per_aggregate[aggregate] += 1
        assert self.per_aggregate[aggregate] == 1, "two messages of one aggregate are under way"
        self.under_way[envelope.id] = done
        self.most_under_way = max(self.most_under_way, len(self.under_way))
        if not self.paused:
            asyncio.get_running_loop().call_soon(self.settle, envelope)
        task = asyncio.create_task(self._announce())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def settle(self, envelope: Envelope) -> None:
        self.per_aggregate[envelope.tenant_id, envelope.aggregate_id] -= 1
        self.under_way.pop(envelope.id)(self.answer(envelope))

    async def count(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE_S), self.posted:
            await self.posted.wait_for(lambda: len(self.posts) >= number)

    async def _announce(self) -> None:
        async with self.posted:
            self.posted.notify_all()


class World:
    """A dispatcher between its table and the bus."""

    def __init__(self, limits: AgentLimits = LIMITS) -> None:
        self.clock = FakeClock()
        self.new_id = Uuid7Source(self.clock.now_us)
        self.registry = Registry(self.new_id, self.clock.now_us)
        self.tables = MemoryTables()
        self.outbox = MemoryOutbox(self.tables)
        self.bus = ScriptedBus()
        self.events: list[AgentEvent] = []
        self.happened = Wakeup()
        self.tenant = self.new_id()
        self.dispatcher = OutboxDispatcher(
            self.outbox,
            self.bus,  # type: ignore[arg-type]
            AgentContext(self.registry, self.clock, limits, self._observe),
            random.Random(1),
        )

    def _observe(self, event: AgentEvent) -> None:
        self.events.append(event)
        self.happened.wake()

    def envelopes(self, count: int, aggregate_id: str | None = None) -> list[Envelope]:
        return [
            self.registry.seal(
                DueTimeReached(aggregate_id or self.new_id(), Instant(EPOCH_US), Instant(EPOCH_US)),
                tenant_id=self.tenant,
                correlation_id="corr",
                causation_id=None,
            )
            for _ in range(count)
        ]

    def append(self, count: int, aggregate_id: str | None = None) -> list[Envelope]:
        envelopes = self.envelopes(count, aggregate_id)
        self.tables.append(envelopes)
        return envelopes

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await self.happened.wait()

    def reported(self, kind: type) -> list[AgentEvent]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    world.bus.paused = False
    await world.dispatcher.close()


async def test_rows_left_by_an_earlier_run_are_published_page_by_page(world: World):
    sent = world.append(35)
    world.dispatcher.start()
    await world.outbox.all_settled()
    assert world.bus.posts == sent
    assert len(world.tables.published) == 35
    assert world.outbox.pages == 4


async def test_appended_rows_are_published_without_reading_the_table(world: World):
    world.dispatcher.start()
    await world.bus.count(0)
    world.append(1)
    await world.outbox.all_settled()
    pages = world.outbox.pages
    sent = world.append(3)
    await world.outbox.all_settled()
    assert world.bus.posts[-3:] == sent
    assert world.outbox.pages == pages
    assert world.dispatcher.waiting == 0
    assert sum(e.messages for e in world.events if isinstance(e, MessagesPublished)) == 4


async def test_rows_of_one_aggregate_are_published_one_by_one_and_others_concurrently(world: World):
    world.dispatcher.start()
    world.bus.paused = True
    world.append(1)
    await world.bus.count(1)
    mine = world.append(4, aggregate_id=world.new_id())
    others = world.append(3)
    await world.bus.count(5)
    assert world.bus.posts[1:] == [mine[0], *others]
    world.bus.paused = False
    for envelope in list(world.bus.posts):
        world.bus.settle(envelope)
    await world.outbox.all_settled()
    assert [envelope for envelope in world.bus.posts if envelope in mine] == mine


async def test_tenants_with_the_same_call_id_do_not_wait_for_one_another(world: World):
    world.dispatcher.start()
    world.bus.paused = True
    (mine,) = world.append(1)
    await world.bus.count(1)
    theirs = msgspec.structs.replace(mine, id=world.new_id(), tenant_id=world.new_id())
    world.tables.append([theirs])
    await world.bus.count(2)
    assert world.bus.posts == [mine, theirs]
    for envelope in (mine, theirs):
        world.bus.settle(envelope)
    await world.outbox.all_settled()


@pytest.mark.parametrize("error", [BusUnavailable("gone"), BusOverloaded("full"), RuntimeError("a fault")])
async def test_a_row_that_the_bus_refuses_is_published_again(world: World, error: Exception):
    left = [error] * 3
    world.bus.answer = lambda envelope: left.pop() if left else None
    world.dispatcher.start()
    mine = world.append(2, aggregate_id=world.new_id())
    await world.outbox.all_settled()
    assert world.bus.posts == [mine[0]] * 4 + [mine[1]]
    failures = world.reported(PublishFailed)
    assert [failure.attempts for failure in failures] == [1, 2, 3]
    assert world.tables.failures[1][0] in (1, 2, 3)
    assert type(error).__name__ in world.tables.failures[1][1]


async def test_an_invalid_row_is_suspended_and_its_aggregate_continues(world: World):
    mine = world.envelopes(3, aggregate_id=world.new_id())
    world.bus.answer = lambda envelope: InvalidMessage("no such type") if envelope is mine[1] else None
    world.dispatcher.start()
    world.tables.append(mine)
    await world.outbox.all_settled()
    assert world.tables.suspended == {2: "no such type"}
    assert sorted(world.tables.published) == [1, 3]
    assert world.bus.posts == mine
    assert len(world.reported(MessageSuspended)) == 1


async def test_the_execution_is_failed_whose_order_can_never_be_published(world: World):
    """By the module that knows whether an earlier copy of the order has arrived."""
    message = StartExecution(world.new_id(), world.new_id(), RequestSpec("POST", "http://example.test/"))
    order = world.registry.seal(message, tenant_id=world.tenant, correlation_id="corr", causation_id=None)
    world.bus.answer = lambda envelope: InvalidMessage("too large") if envelope is order else None
    world.dispatcher.start()
    world.tables.append([order])
    await world.outbox.all_settled()
    assert world.tables.suspended == {1: "too large"}
    (check,) = world.bus.posts[1:]
    assert world.registry.open(check) == CheckExecution(
        message.service_call_id, message.execution_id, refused="too large", tenant_id=world.tenant
    )
    assert check.causation_id == order.id


async def test_recording_is_retried_until_it_succeeds(world: World):
    world.dispatcher.start()
    world.append(1)
    await world.outbox.all_settled()
    world.tables.fail_next += [StoreUnavailable("disk full")] * 2
    sent = world.append(3)
    await world.outbox.all_settled()
    assert world.bus.posts[1:] == sent
    assert {event.step for event in world.reported(AgentStepFailed) if isinstance(event, AgentStepFailed)} == {
        "outbox acknowledgement"
    }


async def test_reading_is_retried_until_it_succeeds(world: World):
    world.append(3)
    world.tables.fail_next += [StoreUnavailable("disk full")] * 2
    world.dispatcher.start()
    await world.outbox.all_settled()
    assert len(world.reported(AgentStepFailed)) == 2


async def test_rows_in_memory_stay_within_the_limit_without_loss_or_reordering():
    limits = replace(LIMITS, outbox_in_flight_max=20)
    world = World(limits)
    aggregates = [world.new_id() for _ in range(30)]
    world.dispatcher.start()
    sent: dict[str, list[Envelope]] = defaultdict(list)
    chooser = random.Random(2)
    for _ in range(60):
        batch = [
            envelope for aggregate_id in chooser.sample(aggregates, 8) for envelope in world.envelopes(1, aggregate_id)
        ]
        for envelope in batch:
            sent[envelope.aggregate_id].append(envelope)
        world.tables.append(batch)
        assert world.dispatcher.waiting <= 20
        await asyncio.sleep(0)
    await world.outbox.all_settled()
    assert world.bus.most_under_way <= 20
    for aggregate_id, envelopes in sent.items():
        assert [e for e in world.bus.posts if e.aggregate_id == aggregate_id] == envelopes
    await world.until(lambda: not world.dispatcher.behind)
    assert not world.reported(AgentStepFailed)
    last = world.append(1)
    await world.outbox.all_settled()
    assert world.bus.posts[-1:] == last
    await world.dispatcher.close()


async def test_rows_that_were_never_announced_are_found():
    world = World(replace(LIMITS, outbox_sweep_interval_us=1_000))
    world.dispatcher.start()
    world.append(1)
    await world.outbox.all_settled()
    world.tables.announce = False
    unheard = world.append(2)
    await world.outbox.all_settled()
    assert world.bus.posts[1:] == unheard
    await world.dispatcher.close()


async def test_rows_of_a_commit_with_unknown_outcome_precede_later_rows_of_their_aggregate(world: World):
    world.dispatcher.start()
    world.append(1)
    await world.outbox.all_settled()
    aggregate_id = world.new_id()
    for landed in (True, False):
        world.tables.announce = False
        unknown = world.append(2, aggregate_id) if landed else world.envelopes(2, aggregate_id)
        numbers = range(100, 102)
        for notified in world.tables.notified:
            notified([OutboxRow(number, envelope) for number, envelope in zip(numbers, unknown, strict=True)])
        world.tables.announce = True
        later = world.append(1, aggregate_id)
        other = world.append(1)
        await world.outbox.all_settled()
        expected = [*(unknown if landed else []), *later]
        assert [sent for sent in world.bus.posts if sent.aggregate_id == aggregate_id][-len(expected) :] == expected
        assert other[0] in world.bus.posts


async def test_rows_committed_after_the_search_precede_later_rows(world: World):
    world.dispatcher.start()
    aggregate_id = world.new_id()
    unknown = world.envelopes(1, aggregate_id)
    for notified in world.tables.notified:
        notified([OutboxRow(1, unknown[0])])
    searched = world.outbox.pages
    async with asyncio.timeout(PATIENCE_S):
        while world.dispatcher.behind or world.outbox.pages == searched:  # noqa: ASYNC110 -- nothing reports the end of a search
            await asyncio.sleep(0)
    world.tables.announce = False
    world.tables.append(unknown)
    world.tables.announce = True
    later = world.append(1, aggregate_id)
    await world.outbox.all_settled()
    assert world.bus.posts == [*unknown, *later]


async def test_close_waits_for_rows_in_flight_and_publishes_nothing_more(world: World):
    world.bus.paused = True
    world.dispatcher.start()
    mine = world.append(2, aggregate_id=world.new_id())
    await world.bus.count(1)
    closing = asyncio.create_task(world.dispatcher.close())
    await asyncio.sleep(0)
    assert not closing.done()
    world.bus.settle(mine[0])
    await closing
    assert list(world.tables.published) == [1]
    world.append(1)
    assert world.bus.posts == [mine[0]]


async def test_close_has_a_timeout():
    world = World(replace(LIMITS, outbox_close_timeout_us=1_000))
    world.bus.paused = True
    world.dispatcher.start()
    world.append(1)
    await world.bus.count(1)
    await world.dispatcher.close()
    assert not world.tables.published
    world.bus.answer = lambda envelope: BusUnavailable("the bus was closed")
    world.bus.settle(world.bus.posts[0])
    assert not world.events


async def test_close_reports_rows_that_could_not_be_recorded():
    world = World(replace(LIMITS, outbox_close_timeout_us=1_000))
    world.dispatcher.start()
    world.append(1)
    await world.outbox.all_settled()
    world.tables.fail_next += [StoreUnavailable("gone")] * 1_000
    world.append(1)
    await world.bus.count(2)
    await world.dispatcher.close()
    steps = [event.step for event in world.events if isinstance(event, AgentStepFailed)]
    assert steps[-1] == "outbox close"


async def test_a_published_but_unrecorded_row_is_published_again_after_a_crash():
    world = World(replace(LIMITS, outbox_close_timeout_us=1_000))
    world.dispatcher.start()
    world.append(1)
    await world.outbox.all_settled()
    sent = world.append(2)
    world.tables.fail_next += [StoreUnavailable("gone")] * 1_000
    await world.bus.count(3)
    await world.dispatcher.close()
    after = World()
    after.tables = world.tables
    after.tables.fail_next.clear()
    after.tables.reported.clear()
    after.outbox = MemoryOutbox(after.tables)
    after.dispatcher = OutboxDispatcher(
        after.outbox,
        after.bus,  # type: ignore[arg-type]
        AgentContext(after.registry, after.clock, LIMITS, after.events.append),
        random.Random(1),
    )
    after.dispatcher.start()
    await after.outbox.all_settled()
    assert after.bus.posts == sent
    await after.dispatcher.close()


async def test_old_published_rows_are_purged():
    limits = replace(LIMITS, purge_batch_max=4)
    world = World(limits)
    world.dispatcher.start()
    world.append(10)
    await world.outbox.all_settled()
    assert await world.dispatcher.purge() == 0
    world.clock.advance(limits.outbox_retention_us + 1)
    assert await world.dispatcher.purge() == 10
    assert world.tables.outbox == []
    assert world.events[-1] == AgentRowsPurged("messages", 10)
    await world.dispatcher.close()
