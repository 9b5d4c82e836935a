"""The timer module: receives schedules and publishes when they are due. `PollingTimers` keeps them in a table that it polls,
`engine_timers` as timers of the timer service."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Sequence

from tocsin.model.ids import uuid7_text
from tocsin.model.instants import INSTANT_MIN
from tocsin.model.retry import backoff_us
from tocsin.ports.bus import Bus, Delivery, Envelope, InvalidMessage
from tocsin.service_calls.background import AgentContext, Batches, Wakeup, describe
from tocsin.service_calls.events import (
    AgentStepFailed,
    DuePollCompleted,
    DuePollFailed,
    DueTimesReached,
    TimersScheduled,
)
from tocsin.service_calls.messages import CallKey, DueTimeReached, Instant, ScheduleTimer, ServiceCallDeleted
from tocsin.service_calls.ports import OnDue, TimerEntry, Timers, TimerStore

SUBSCRIBER = "timer"
TYPES = (ScheduleTimer, ServiceCallDeleted)

#: Longest sleep: a jump of the wall clock is noticed by then.
_SLEEP_US_MAX = 1_000_000
#: While schedules keep falling due, the pause after a poll is this many times the poll's duration.
_REST = 4
#: The first pause after a failed poll; it doubles up to the polling interval.
_BACKOFF_INITIAL_US = 100_000

#: A call and its due time.
Schedule = tuple[CallKey, int]


class TimerModule:
    """Connects the bus with the implementation that keeps the schedules."""

    def __init__(self, timers: Timers, bus: Bus, context: AgentContext) -> None:
        self._timers = timers
        self._bus = bus
        self._context = context

    def attach(self) -> None:
        """Subscribes. Call it before the bus starts."""
        self._bus.subscribe(SUBSCRIBER, [kind.__name__ for kind in TYPES], self.handle)

    async def start(self) -> None:
        """Starts publishing. The bus must be running."""
        await self._timers.start(self.publish_due)

    async def close(self) -> None:
        """Stops publishing. Idempotent."""
        await self._timers.close()

    async def handle(self, deliveries: Sequence[Delivery]) -> None:
        """A tocsin.ports.bus.Handler. A malformed message fails alone."""
        now_us = self._context.clock.now_us()
        # The last command for a call counts, and of several instants the latest: a repetition may arrive after it.
        schedules: dict[CallKey, TimerEntry] = {}
        cancels: dict[CallKey, None] = {}
        for delivery, message in self._context.opened(deliveries):
            envelope = delivery.envelope
            key = CallKey(envelope.tenant_id, envelope.aggregate_id)
            if isinstance(message, ScheduleTimer):
                cancels.pop(key, None)
                if key not in schedules or schedules[key].due_at < message.due_at:
                    # A number like any other: the engine stores it.
                    schedules[key] = TimerEntry(*key, envelope.correlation_id, int(message.due_at), now_us)
            else:
                schedules.pop(key, None)
                cancels[key] = None
        if schedules:
            await self._timers.schedule(list(schedules.values()))
            self._context.observe(TimersScheduled(len(schedules)))
        if cancels:
            await self._timers.cancel(list(cancels))

    async def publish_due(self, entries: Sequence[TimerEntry]) -> None:
        """A tocsin.service_calls.ports.OnDue: publishes DueTimeReached for each entry. Raises the bus's errors."""
        now_us = self._context.clock.now_us()
        envelopes = []
        for entry in entries:
            try:
                envelopes.append(self._seal(entry, now_us))
            except InvalidMessage as error:
                # Raising would block all others forever. The watchdog of orchestration acts on its call.
                self._context.observe(AgentStepFailed("due time", f"{entry.service_call_id}: {error}"))
        await self._bus.publish(envelopes)
        if envelopes:
            lag_us = self._context.clock.now_us() - min(entry.due_at for entry in entries)
            self._context.observe(DueTimesReached(len(envelopes), lag_us))

    def _seal(self, entry: TimerEntry, now_us: int) -> Envelope:
        return self._context.registry.seal(
            DueTimeReached(entry.service_call_id, Instant(entry.due_at), Instant(now_us)),
            tenant_id=entry.tenant_id,
            correlation_id=entry.correlation_id,
            causation_id=None,
            id=envelope_id(entry),
        )


def envelope_id(entry: TimerEntry) -> str:
    """The id of this schedule's DueTimeReached: the same each time, so that the bus recognizes a repetition. Its
    timestamp is the due time, the rest a digest of tenant, call and due time."""
    text = f"{entry.tenant_id}\0{entry.service_call_id}\0{entry.due_at}"
    digest = hashlib.blake2b(text.encode(), digest_size=10).digest()
    return uuid7_text(entry.due_at // 1_000, int.from_bytes(digest, "big") >> 6)


class PollingTimers:
    """Polls for due schedules at the instant when the next one is due, or after `polling_interval`, whichever is
    earlier. Schedules are published first and marked afterwards: a crash in between causes a repetition, never a loss.

    Publishing and marking run while the next poll is in progress. A poll starts where the previous one ended, so that
    it does not read again what is not marked yet. It starts from the beginning if something was scheduled before that
    point, if publishing or marking failed, and once per interval in any case.
    """

    def __init__(self, store: TimerStore, context: AgentContext) -> None:
        self._store = store
        self._context = context
        self._clock = context.clock
        self._limits = context.limits
        self._on_due: OnDue | None = None
        # The earliest due time known to be waiting.
        self._next_at: int | None = None
        self._polled_at = 0
        self._rest_us = 0
        # Found and not yet marked, by call and due time: a call may have its next schedule before the last one is marked.
        self._in_flight: set[Schedule] = set()
        # Everything due before this was found; and the earliest instant that was scheduled since the current poll began.
        self._found_to = INSTANT_MIN
        self._arrived_at: int | None = None
        self._swept_at = 0
        # Published, to be marked.
        self._published: Batches[Schedule] = Batches(self._mark)
        self._failures = 0
        self._wakeup = Wakeup()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self._publishing: set[asyncio.Task[None]] = set()

    async def start(self, on_due: OnDue) -> None:
        """Starts with a poll for schedules that fell due earlier."""
        self._on_due = on_due
        self._task = asyncio.create_task(self._run())

    async def schedule(self, entries: Sequence[TimerEntry]) -> None:
        """Stores the schedules and wakes the poller earlier if needed, without reading the table."""
        await self._store.schedule_timers(entries)
        if entries:
            self._rescan_from(min(entry.due_at for entry in entries))

    async def cancel(self, keys: Collection[CallKey]) -> None:
        """Deletes the schedules. A schedule that does not exist is ignored."""
        await self._store.delete_timers(keys)

    def clock_moved(self) -> None:
        """The wall clock was set forward: polls at once."""
        self._wakeup.wake()

    async def close(self) -> None:
        """Returns when the schedules that were found are published and marked, or failed to be, which may take as long as
        the bus does not deliver. If it is cancelled, that goes on, and another call waits for it. Idempotent."""
        self._closing = True
        self._wakeup.wake()
        if self._task is not None:
            await asyncio.shield(self._task)
            self._task = None
        await asyncio.shield(asyncio.gather(*self._publishing))
        await self._published.drain()

    # ------------------------------------------------------------------ the poller

    async def _run(self) -> None:
        while not self._closing:
            more = False
            try:
                more = await self._poll()
                if not self._publishing:
                    self._failures = 0
            except Exception as error:  # noqa: BLE001 -- the next poll has to run whatever fails in this one
                self._failed(error)
            if self._failures:
                await self._back_off()
            elif not more:
                await self._until_next()

    async def _poll(self) -> bool:
        """One poll: finds what is due and not in progress, and starts publishing it. Returns whether there is probably
        more."""
        limits = self._limits
        while len(self._in_flight) >= limits.polling_in_flight_max:
            await self._wakeup.wait()
            if self._closing:
                return False
        self._polled_at = self._clock.boottime_us()
        if self._polled_at - self._swept_at >= limits.polling_interval_us:
            self._swept_at, self._found_to = self._polled_at, INSTANT_MIN
        self._arrived_at = None
        from_us, now_us = self._found_to, self._clock.now_us()
        # A schedule that is marked during the query may still be in its result.
        passed_over = {schedule for schedule in self._in_flight if schedule[1] >= from_us}
        most = limits.polling_batch_max + len(passed_over)
        found: list[TimerEntry] = []
        tenants = await self._store.due_tenants(from_us, now_us, most)
        if tenants:
            found = await self._store.find_due(tenants, from_us, now_us, most)
        fresh = [entry for entry in found if (entry.key, entry.due_at) not in passed_over]
        entries = fresh[: limits.polling_batch_max]
        more = len(fresh) > len(entries) or len(found) >= most or len(tenants) >= most
        found_to = now_us if not more else entries[-1].due_at if entries else from_us
        self._found_to = found_to if self._arrived_at is None else min(found_to, self._arrived_at)
        if entries:
            self._start_publishing(entries)
            # Others will probably fall due soon: another poll costs no more than a query for the next due time.
            self._next_at = now_us
        elif not more:
            await self._find_next_due(now_us)
        poll_us, gather_us = self._clock.boottime_us() - self._polled_at, limits.polling_batch_delay_us
        # After a quiet time the first schedule should not wait long; among many, the database needs pauses.
        self._rest_us = max(gather_us, min(_REST * poll_us, 10 * gather_us)) if entries else gather_us
        self._context.observe(DuePollCompleted(len(entries), poll_us))
        return more

    async def _find_next_due(self, now_us: int) -> None:
        """Reads the next due time after `now_us`. Schedules that were added since the poll began, perhaps too late for
        it, count too."""
        self._next_at = self._arrived_at
        found = await self._store.next_due_at(now_us)
        if found is not None:
            self._expect(found)

    def _expect(self, due_at: int) -> None:
        if self._next_at is None or due_at < self._next_at:
            self._next_at = due_at
            self._wakeup.wake()

    # ------------------------------------------------------------------ publishing and marking

    def _start_publishing(self, entries: list[TimerEntry]) -> None:
        self._in_flight.update((entry.key, entry.due_at) for entry in entries)
        task = asyncio.create_task(self._publish(entries))
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _publish(self, entries: list[TimerEntry]) -> None:
        on_due = self._on_due
        assert on_due is not None
        published = [(entry.key, entry.due_at) for entry in entries]
        try:
            await on_due(entries)
        except Exception as error:  # noqa: BLE001 -- they are found again
            self._release(published)
            self._failed(error)
            self._rescan_from(entries[0].due_at)
            return
        self._failures = 0
        for schedule in published:
            self._published.add(schedule)

    async def _mark(self, published: list[Schedule]) -> None:
        try:
            await self._store.mark_fired(published, self._clock.now_us())
        except Exception as error:  # noqa: BLE001 -- they are found, published and marked again
            self._failed(error)
            self._rescan_from(min(due_at for _, due_at in published))
        self._release(published)

    def _release(self, schedules: Sequence[Schedule]) -> None:
        self._in_flight.difference_update(schedules)
        # The poller may be waiting for room.
        self._wakeup.wake()

    def _rescan_from(self, due_at: int) -> None:
        """The next poll has to read schedules due from this instant on."""
        self._found_to = min(self._found_to, due_at)
        self._arrived_at = due_at if self._arrived_at is None else min(self._arrived_at, due_at)
        self._expect(due_at)

    # ------------------------------------------------------------------ pauses

    async def _until_next(self) -> None:
        """Sleeps until the next schedule is due or the polling interval has passed.

        Schedules that fall due close to one another are published together: the pause after the first is
        `polling_batch_delay` or, while polls keep finding some, several times the duration of a poll, so that the database
        has more rest than work.
        """
        limits = self._limits
        while not self._closing:
            left_us = self._polled_at + limits.polling_interval_us - self._clock.boottime_us()
            if self._next_at is not None:
                left_us = min(left_us, self._next_at + self._rest_us - self._clock.now_us())
            if left_us <= 0:
                return
            await self._wakeup.wait(min(left_us, _SLEEP_US_MAX))

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._context.observe(DuePollFailed(describe(error)))

    async def _back_off(self) -> None:
        pause_us = backoff_us(self._failures, _BACKOFF_INITIAL_US, self._limits.polling_interval_us)
        until_us = self._clock.boottime_us() + pause_us
        while not self._closing and (left_us := until_us - self._clock.boottime_us()) > 0:
            await self._wakeup.wait(left_us)
