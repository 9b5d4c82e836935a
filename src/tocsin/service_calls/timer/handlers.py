"""The timer module on the bus: receives schedules and publishes when they are due."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tocsin.model.ids import uuid7_text
from tocsin.ports.bus import Bus, Delivery, Envelope, InvalidMessage
from tocsin.service_calls.context import AgentContext
from tocsin.service_calls.events import AgentStepFailed, DueTimesReached, TimersScheduled
from tocsin.service_calls.messages import CallKey, DueTimeReached, Instant, ScheduleTimer, ServiceCallDeleted
from tocsin.service_calls.timer.ports import TimerEntry, Timers

SUBSCRIBER = "timer"
TYPES = (ScheduleTimer, ServiceCallDeleted)


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
        for delivery in deliveries:
            envelope = delivery.envelope
            try:
                message = self._context.registry.open(envelope)
            except InvalidMessage as error:
                delivery.fail(error)
                continue
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
        """A tocsin.service_calls.timer.ports.OnDue: publishes DueTimeReached for each entry. Raises the bus's errors."""
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
