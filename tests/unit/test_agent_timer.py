"""The timer module's handlers, and the behaviour of the poller that only its table and clock show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence

import msgspec
import pytest
from tests.support.agent_memory import MemoryTimerStore
from tests.support.patience import PATIENCE_S

from tocsin.model.errors import StoreUnavailable
from tocsin.model.ids import Uuid7Source, is_uuid7
from tocsin.model.instants import format_instant
from tocsin.ports.bus import BusUnavailable, Envelope, InvalidMessage
from tocsin.service_calls.background import AgentContext, Wakeup
from tocsin.service_calls.events import (
    AgentEvent,
    AgentStepFailed,
    DuePollCompleted,
    DuePollFailed,
    DueTimesReached,
    TimersScheduled,
)
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import (
    CallKey,
    DueTimeReached,
    Instant,
    Message,
    Registry,
    ScheduleTimer,
    ServiceCallDeleted,
)
from tocsin.service_calls.ports import OnDue, TimerEntry
from tocsin.service_calls.timer import PollingTimers, TimerModule, envelope_id
from tocsin.telemetry.clock import SystemClock
from tocsin.testing.clock import EPOCH_US, FakeClock

SECOND = 1_000_000
new_id = Uuid7Source(SystemClock().now_us)


def entry(due_at: int, key: CallKey | None = None) -> TimerEntry:
    key = key or CallKey(new_id(), new_id())
    return TimerEntry(*key, "corr", due_at, EPOCH_US)


class NotedTimers:
    """Records its calls."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[object]]] = []
        self.on_due: OnDue | None = None
        self.fail: Exception | None = None

    async def start(self, on_due: OnDue) -> None:
        self.on_due = on_due

    async def schedule(self, entries: Sequence[TimerEntry]) -> None:
        if self.fail is not None:
            raise self.fail
        self.asked.append(("schedule", list(entries)))

    async def cancel(self, keys: Collection[CallKey]) -> None:
        self.asked.append(("cancel", list(keys)))

    async def close(self) -> None:
        self.asked.append(("close", []))


class NotedBus:
    """Records published messages, and refuses them while `fail` is set."""

    def __init__(self) -> None:
        self.published: list[Envelope] = []
        self.subscribed: list[tuple[str, list[str]]] = []
        self.fail: Exception | None = None

    def subscribe(self, subscriber: str, types: Collection[str], handler: object, *, batch_max: int = 256) -> None:
        self.subscribed.append((subscriber, sorted(types)))

    async def publish(self, envelopes: Sequence[Envelope]) -> None:
        if self.fail is not None:
            raise self.fail
        self.published.extend(envelopes)


class OneDelivery:
    """A delivery that records its failure."""

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope
        self.failed: Exception | None = None

    def fail(self, error: Exception) -> None:
        self.failed = error


class TestModule:
    def setup_method(self) -> None:
        self.clock = FakeClock()
        self.timers, self.bus = NotedTimers(), NotedBus()
        self.events: list[AgentEvent] = []
        self.registry = Registry(new_id, self.clock.now_us)
        self.module = TimerModule(
            self.timers,
            self.bus,  # type: ignore[arg-type]
            AgentContext(self.registry, self.clock, AgentLimits(), self.events.append),
        )

    async def deliver(self, *messages: tuple[CallKey, Message] | Envelope) -> list[OneDelivery]:
        deliveries = [
            OneDelivery(
                message
                if isinstance(message, Envelope)
                else self.registry.seal(
                    message[1], tenant_id=message[0].tenant_id, correlation_id="corr", causation_id=None
                )
            )
            for message in messages
        ]
        await self.module.handle(deliveries)  # type: ignore[arg-type]
        return deliveries

    def test_it_subscribes_to_schedules_and_deletions(self):
        self.module.attach()
        assert self.bus.subscribed == [("timer", ["ScheduleTimer", "ServiceCallDeleted"])]

    async def test_a_batch_is_scheduled_in_one_call(self):
        keys = [CallKey(new_id(), new_id()) for _ in range(3)]
        await self.deliver(*((key, ScheduleTimer(key.service_call_id, Instant(EPOCH_US + 5))) for key in keys))
        assert self.timers.asked == [("schedule", [entry(EPOCH_US + 5, key) for key in keys])]
        assert self.events == [TimersScheduled(3)]

    async def test_the_last_command_for_a_call_counts(self):
        gone, back = CallKey(new_id(), new_id()), CallKey(new_id(), new_id())
        await self.deliver(
            (gone, ScheduleTimer(gone.service_call_id, Instant(EPOCH_US))),
            (back, ServiceCallDeleted(back.service_call_id)),
            (gone, ServiceCallDeleted(gone.service_call_id)),
            (back, ScheduleTimer(back.service_call_id, Instant(EPOCH_US))),
        )
        assert self.timers.asked == [("schedule", [entry(EPOCH_US, back)]), ("cancel", [gone])]

    async def test_a_malformed_message_fails_alone(self):
        key = CallKey(new_id(), new_id())
        good = self.registry.seal(
            ScheduleTimer(key.service_call_id, Instant(1)),
            tenant_id=key.tenant_id,
            correlation_id="corr",
            causation_id=None,
        )
        bad, fine = await self.deliver(msgspec.structs.replace(good, payload=msgspec.Raw(b"[]")), good)
        assert isinstance(bad.failed, InvalidMessage)
        assert fine.failed is None
        assert len(self.timers.asked) == 1

    async def test_an_error_of_the_timers_fails_the_batch(self):
        self.timers.fail = StoreUnavailable("disk full")
        key = CallKey(new_id(), new_id())
        with pytest.raises(StoreUnavailable):
            await self.deliver((key, ScheduleTimer(key.service_call_id, Instant(1))))
        assert not self.events

    async def test_due_times_are_published_without_causation_under_a_stable_id(self):
        await self.module.start()
        assert self.timers.on_due is not None
        wanted = [entry(EPOCH_US - 300), entry(EPOCH_US)]
        await self.timers.on_due(wanted)
        self.clock.advance(SECOND)
        await self.timers.on_due(wanted)
        first = self.bus.published[:2]
        assert [envelope.id for envelope in first] == [envelope.id for envelope in self.bus.published[2:]]
        assert len({envelope.id for envelope in first}) == 2
        assert [msgspec.json.decode(envelope.payload) for envelope in first] == [
            {
                "serviceCallId": one.service_call_id,
                "tenantId": one.tenant_id,
                "dueAt": format_instant(one.due_at),
                "reachedAt": "2027-01-15T08:00:00Z",
            }
            for one in wanted
        ]
        assert [self.registry.open(envelope) for envelope in first] == [
            DueTimeReached(one.service_call_id, Instant(one.due_at), Instant(EPOCH_US), tenant_id=one.tenant_id)
            for one in wanted
        ]
        assert [(e.causation_id, e.correlation_id) for e in first] == [(None, "corr")] * 2
        assert self.events[0] == DueTimesReached(2, 300)

    async def test_an_error_of_the_bus_is_raised(self):
        self.bus.fail = BusUnavailable("gone")
        with pytest.raises(BusUnavailable):
            await self.module.publish_due([entry(EPOCH_US)])
        assert not self.events

    async def test_an_invalid_schedule_does_not_block_others(self):
        fine = entry(EPOCH_US)
        await self.module.publish_due([TimerEntry("no uuid", new_id(), "corr", EPOCH_US, EPOCH_US), fine])
        assert [envelope.aggregate_id for envelope in self.bus.published] == [fine.service_call_id]
        assert isinstance(self.events[0], AgentStepFailed)

    def test_message_ids_differ_by_tenant_call_and_due_time(self):
        one = entry(EPOCH_US)
        others = [one._replace(tenant_id=new_id()), one._replace(service_call_id=new_id()), one._replace(due_at=1)]
        ids = {envelope_id(each) for each in [one, one._replace(registered_at=7), *others]}
        assert len(ids) == 4
        assert all(is_uuid7(id) for id in ids)


class Worker:
    """A poller with its table; waits for its events."""

    def __init__(self, clock: FakeClock | SystemClock, limits: AgentLimits) -> None:
        self.clock = clock
        self.store = MemoryTimerStore()
        self.events: list[AgentEvent] = []
        self.published: list[list[TimerEntry]] = []
        self.happened = Wakeup()
        self.timers = PollingTimers(
            self.store, AgentContext(Registry(new_id, clock.now_us), clock, limits, self._observe)
        )

    def _observe(self, event: AgentEvent) -> None:
        self.events.append(event)
        self.happened.wake()

    async def on_due(self, entries: Sequence[TimerEntry]) -> None:
        self.published.append(list(entries))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await self.happened.wait()

    @property
    def polls(self) -> int:
        return sum(isinstance(event, DuePollCompleted) for event in self.events)


@pytest.fixture
async def fake() -> AsyncIterator[Worker]:
    """A poller with a fake clock."""
    worker = Worker(FakeClock(), AgentLimits(polling_batch_max=3))
    yield worker
    await worker.timers.close()


class TestPolling:
    async def test_the_table_is_not_read_while_nothing_is_due(self, fake: Worker):
        await fake.timers.start(fake.on_due)
        await fake.until(lambda: fake.polls == 1)
        queries = fake.store.queries
        await fake.timers.schedule([entry(EPOCH_US + 3_600 * SECOND)])
        for _ in range(20):
            await asyncio.sleep(0)
        assert fake.store.queries == queries + 1
        assert fake.polls == 1

    async def test_full_batches_are_polled_without_a_pause(self, fake: Worker):
        await fake.timers.schedule([entry(EPOCH_US - i) for i in range(8)])
        await fake.timers.start(fake.on_due)
        await fake.until(lambda: fake.polls == 3)
        assert [len(batch) for batch in fake.published] == [3, 3, 2]
        assert [event.found for event in fake.events if isinstance(event, DuePollCompleted)] == [3, 3, 2]

    async def test_more_tenants_than_one_poll_reads_are_all_served(self, fake: Worker):
        wanted = [entry(EPOCH_US - i) for i in range(7)]
        await fake.timers.schedule(wanted)
        await fake.timers.start(fake.on_due)
        await fake.until(lambda: sum(map(len, fake.published)) == 7 and fake.polls >= 3)
        assert [one for batch in fake.published for one in batch] == sorted(wanted, key=lambda one: one.due_at)

    async def test_a_clock_that_jumps_ahead_is_noticed_within_a_second(self, fake: Worker):
        await fake.timers.start(fake.on_due)
        await fake.timers.schedule([entry(EPOCH_US + 3_600 * SECOND)])
        await fake.until(lambda: fake.polls == 1)
        assert isinstance(fake.clock, FakeClock)
        fake.clock.jump(3_601 * SECOND)
        await fake.until(lambda: len(fake.published) == 1)

    async def test_a_schedule_added_during_a_poll_is_found(self, fake: Worker):
        await fake.timers.start(fake.on_due)
        await fake.until(lambda: fake.polls == 1)
        ask = fake.store.next_due_at

        async def meanwhile(after_us: int) -> int | None:
            found = await ask(after_us)
            await fake.timers.schedule([entry(EPOCH_US - 1)])
            fake.store.next_due_at = ask  # type: ignore[method-assign]
            return found

        fake.store.next_due_at = meanwhile  # type: ignore[method-assign]
        await fake.timers.schedule([entry(EPOCH_US - 2)])
        assert isinstance(fake.clock, FakeClock)
        fake.clock.advance(SECOND)
        await fake.until(lambda: len(fake.published) >= 1)
        fake.clock.advance(SECOND)
        await fake.until(lambda: len(fake.published) == 2)

    async def test_a_schedule_committed_just_after_the_poll_that_should_have_found_it_is_found(self, fake: Worker):
        ask = fake.store.due_tenants

        async def meanwhile(from_us: int, now_us: int, limit: int) -> list[str]:
            found = await ask(from_us, now_us, limit)
            fake.store.due_tenants = ask  # type: ignore[method-assign]
            await fake.timers.schedule([entry(EPOCH_US - 1)])
            return found

        fake.store.due_tenants = meanwhile  # type: ignore[method-assign]
        await fake.timers.start(fake.on_due)
        await fake.until(lambda: fake.polls == 1)
        assert isinstance(fake.clock, FakeClock)
        fake.clock.jump(SECOND)
        await fake.until(lambda: len(fake.published) == 1)

    async def test_schedules_due_close_together_are_published_together(self):
        clock = SystemClock()
        worker = Worker(clock, AgentLimits(polling_batch_delay_us=200_000))
        await worker.timers.start(worker.on_due)
        await worker.until(lambda: worker.polls == 1)
        base = clock.now_us() + 20_000
        await worker.timers.schedule([entry(base + i * 1_000) for i in range(50)])
        await worker.until(lambda: sum(map(len, worker.published)) == 50)
        await worker.timers.close()
        assert len(worker.published) == 1

    async def test_it_polls_at_least_once_per_interval(self):
        worker = Worker(SystemClock(), AgentLimits(polling_interval_us=5_000))
        await worker.timers.start(worker.on_due)
        await worker.until(lambda: worker.polls == 1)
        unheard = entry(0)
        worker.store.entries[unheard.key] = unheard
        await worker.until(lambda: len(worker.published) == 1)
        await worker.timers.close()

    @pytest.mark.parametrize("error", [StoreUnavailable("gone"), RuntimeError("a fault")])
    async def test_polling_continues_after_failures(self, error: Exception):
        worker = Worker(SystemClock(), AgentLimits(polling_interval_us=2_000))
        await worker.timers.schedule([entry(0)])
        worker.store.fail_next += [error] * 3
        await worker.timers.start(worker.on_due)
        await worker.until(lambda: len(worker.published) == 1)
        await worker.timers.close()
        failures = [event for event in worker.events if isinstance(event, DuePollFailed)]
        assert len(failures) == 3
        assert type(error).__name__ in failures[0].error

    async def test_a_schedule_that_could_not_be_published_is_published_again(self):
        worker = Worker(SystemClock(), AgentLimits(polling_interval_us=2_000))
        left = [BusUnavailable("gone")] * 2

        async def on_due(entries: Sequence[TimerEntry]) -> None:
            if left:
                raise left.pop()
            await worker.on_due(entries)

        await worker.timers.schedule([entry(0)])
        await worker.timers.start(on_due)
        await worker.until(lambda: len(worker.published) == 1)
        await worker.timers.close()
        assert all(one.reached_at is not None for one in worker.store.entries.values())
