"""Observers of the engine's and of the agent's events that count them in slots, in memory.

They are on the hot path, so each event costs a few additions.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tocsin.model.access import EVERY
from tocsin.model.answer import EGRESS_REFUSED
from tocsin.ports import observer as events
from tocsin.ports.batches import BatchAccepted
from tocsin.ports.observer import Event
from tocsin.service_calls import events as agent_events
from tocsin.service_calls.events import AgentEvent
from tocsin.service_calls.messages import CallStatus, SubmitServiceCall
from tocsin.statistics.limits import StatisticsLimits
from tocsin.statistics.slots import LATE_US, Counts, Failures, Slot, add_failures, failing_place, total

_ERROR_CHARS_MAX = 120
#: A host name and port have fewer; a path may have more.
_DESTINATION_CHARS_MAX, PATH_CHARS_MAX = 280, 200
#: The error of a destination whose addresses the settings forbid.
_REFUSED = f"{EGRESS_REFUSED}: egress.allow does not list its address; the timers are suspended"


@dataclass(slots=True)
class ChangeCounter:
    """How many times the timers of a namespace have been created or changed since the process started; never decreases."""

    created: int = 0
    changed: int = 0


class Statistics:
    """The observer. It counts in parts of a minute; `roll` completes parts and minutes. `gauges` returns the gauges under
    their names in the metrics."""

    def __init__(self, limits: StatisticsLimits, now_us: int, gauges: Callable[[], Mapping[str, float]]) -> None:
        self.limits = limits
        self._gauges = gauges
        #: Complete minutes, the earliest first, those without any events as well.
        self.minutes: deque[Slot] = deque(maxlen=limits.minutes_in_memory)
        self.present = Slot(_begin(now_us, limits.part_us))
        #: Gets lag and duration of each attempt that begins late, in microseconds, while anybody wants to know.
        self.on_late: Callable[[int, int], None] | None = None
        self._parts: deque[Slot] = deque(maxlen=limits.minute_us // limits.part_us)
        self._minute = Slot(_begin(now_us, limits.minute_us))
        self._change_counters: dict[str, ChangeCounter] = {}

    def change_counter(self, namespace: str, wanted: Callable[[str], bool] | None = None) -> ChangeCounter:
        """A copy of the namespace's change counter; for EVERY, the sum of those that are wanted, None: of all. Read it before
        the data that a page shows with it, so that the page is notified of changes in between."""
        if namespace == EVERY:
            counters = [each for name, each in self._change_counters.items() if wanted is None or wanted(name)]
            return ChangeCounter(sum(each.created for each in counters), sum(each.changed for each in counters))
        return replace(self._change_counters.get(namespace) or ChangeCounter())

    def roll(self, now_us: int) -> None:
        """Completes part and minute if their time is over. Skips those during which the process was suspended."""
        if now_us < self.present.begins_us + self.limits.part_us:
            return
        self.sample()
        self._minute.add(self.present, self.limits.places_max)
        self._parts.append(self.present)
        self.present = Slot(_begin(now_us, self.limits.part_us))
        if now_us >= self._minute.begins_us + self.limits.minute_us:
            self.end_minute(_begin(now_us, self.limits.minute_us))

    def end_minute(self, next_us: int | None = None) -> None:
        """Completes the minute; the next one starts at `next_us`. None: this is the last one, with the present part."""
        if next_us is None:
            self._minute = self.open
            self.present = Slot(self.present.begins_us)
        self._minute.keep_busiest(self.limits.namespaces_max)
        self.minutes.append(self._minute)
        self._minute = Slot(self._minute.begins_us if next_us is None else next_us)

    @property
    def open(self) -> Slot:
        """The minute that is not complete."""
        minute = total([self._minute, self.present], self.limits.places_max)
        minute.begins_us = self._minute.begins_us
        return minute

    def last_minute(self, now_us: int) -> Slot:
        """What was counted within the last minute."""
        from_us = now_us - self.limits.minute_us
        return total(
            (slot for slot in (*self._parts, self.present) if slot.begins_us > from_us), self.limits.places_max
        )

    def sample(self) -> None:
        """Writes the present gauges into the current slot."""
        self.present.overdue_s = max(self.present.overdue_s, self._gauges()["tocsin_overdue_seconds"])

    def gauges(self) -> Mapping[str, float]:
        """The present gauges."""
        return self._gauges()

    def __call__(self, event: Event) -> None:
        """Counts an event."""
        if isinstance(event, events.AttemptFinished):
            self._attempt(event)
        elif isinstance(event, BatchAccepted):
            counts = self.present.of(event.namespace)
            counts.done += event.attempts
            for lag_us in event.lags_us:
                self._began(counts, lag_us, event.duration_us)
            self._change_counter(event.namespace).changed += event.attempts
        elif isinstance(event, events.TimersCreated):
            self.present.of(event.namespace).created += event.timers
            self._change_counter(event.namespace).created += event.timers
        elif isinstance(event, events.TimersChanged):
            counts = self.present.of(event.namespace)
            if event.kind == "deleted":
                counts.canceled += event.timers
            else:
                counts.updated += event.timers
            self._change_counter(event.namespace).changed += event.timers
        elif isinstance(event, events.TimerExpired):
            self.present.of(event.namespace).expired += 1
            self._change_counter(event.namespace).changed += 1
        elif isinstance(event, events.AttemptNotSent) and event.code == EGRESS_REFUSED:
            place = _place(event.namespace, event.destination)
            self._failed(self.present.failing, place, _REFUSED, exhausted=False)
            self._change_counter(event.namespace).changed += 1

    def _change_counter(self, namespace: str) -> ChangeCounter:
        found = self._change_counters.get(namespace)
        if found is None:
            found = self._change_counters[namespace] = ChangeCounter()
        return found

    def _attempt(self, event: events.AttemptFinished) -> None:
        counts, outcome = self.present.of(event.namespace), event.outcome
        if outcome == "done":
            counts.done += 1
        elif outcome == "retried":
            counts.retried += 1
        elif outcome == "failed":
            counts.failed += 1
        elif outcome == "rescheduled":
            counts.rescheduled += 1
        else:
            counts.superseded += 1
        if event.lag_us is not None:
            self._began(counts, event.lag_us, event.duration_us)
        if outcome in ("retried", "failed"):
            place = _place(event.namespace, event.destination, event.path)
            self._failed(self.present.failing, place, event.error or "", exhausted=outcome == "failed")
        self._change_counter(event.namespace).changed += 1

    def _began(self, counts: Counts, lag_us: int, duration_us: int) -> None:
        counts.lag.count(lag_us)
        if lag_us > LATE_US:
            counts.late += 1
            if self.on_late is not None:
                self.on_late(lag_us, duration_us)

    def _failed(self, into: dict[str, Failures], place: str, error: str, *, exhausted: bool) -> None:
        failures = Failures(1, exhausted, error[:_ERROR_CHARS_MAX], self.present.begins_us)
        add_failures(into, place, failures, self.limits.places_max)

    def call_failed(self, destination: str, error: str, *, exhausted: bool) -> None:
        """Counts a failed service call: an execution with an error, or the end of the call without one."""
        failures = Failures(0 if exhausted else 1, exhausted, error[:_ERROR_CHARS_MAX], self.present.begins_us)
        add_failures(self.present.calls_failing, _place("", destination), failures, self.limits.places_max)


def _begin(now_us: int, width_us: int) -> int:
    return now_us - now_us % width_us


def _place(namespace: str, destination: str, path: str = "") -> str:
    return failing_place(namespace, destination[:_DESTINATION_CHARS_MAX], path[:PATH_CHARS_MAX])


_ACCEPTED = "accepted"
_SUCCEEDED = "succeeded"
#: The kind of error that is known by its status.
_HTTP_STATUS = "HTTP_STATUS"
#: Failed executions remembered until their calls fail or are retried.
_FAILED_MAX = 4_096
#: Tenants whose changes are counted for open pages; beyond it the counter that was idle longest starts over.
TENANT_CHANGE_COUNTERS_MAX = 10_000


class CallStatistics:
    """The observer of service calls. It counts into the slots of the timers' statistics, and changes for each tenant."""

    def __init__(self, statistics: Statistics, tenants_max: int = TENANT_CHANGE_COUNTERS_MAX) -> None:
        self._statistics = statistics
        self._tenants_max = tenants_max
        self._change_counters: OrderedDict[str, ChangeCounter] = OrderedDict()
        self._changes = ChangeCounter()
        # The destination of a call's last failed execution, until the call fails or is retried.
        self._failed: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._handlers: dict[type, Callable[[Any], None]] = {
            agent_events.CommandHandled: self._command,
            agent_events.ServiceCallChanged: self._changed,
            agent_events.ExecutionBegun: self._begun,
            agent_events.ExecutionFinished: self._finished,
        }

    def __call__(self, event: AgentEvent) -> None:
        """Counts an event."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def change_counter(self, tenant_id: str, wanted: Callable[[str], bool] | None = None) -> ChangeCounter:
        """A copy of the tenant's change counter, which starts over if the tenant had to make room for others; for EVERY, that
        of the wanted tenants together, None: of all. Read it before the data that a page shows with it, as
        `Statistics.change_counter`."""
        if tenant_id == EVERY:
            if wanted is None:
                return replace(self._changes)
            counters = [each for known, each in self._change_counters.items() if wanted(known)]
            return ChangeCounter(sum(each.created for each in counters), sum(each.changed for each in counters))
        return replace(self._change_counters.get(tenant_id.lower()) or ChangeCounter())

    def _count(self, tenant_id: str, *, created: int = 0, changed: int = 0) -> None:
        for counter in (self._changes, self._touch(tenant_id)):
            counter.created += created
            counter.changed += changed

    def _touch(self, tenant_id: str) -> ChangeCounter:
        found = self._change_counters.setdefault(tenant_id, ChangeCounter())
        self._change_counters.move_to_end(tenant_id)
        if len(self._change_counters) > self._tenants_max:
            self._change_counters.popitem(last=False)
        return found

    def _command(self, event: agent_events.CommandHandled) -> None:
        if event.result != _ACCEPTED:
            return
        if event.command == SubmitServiceCall.__name__:
            self._count(event.tenant_id, created=1)
            self._statistics.present.calls.submitted += 1
        else:
            self._count(event.tenant_id, changed=1)

    def _changed(self, event: agent_events.ServiceCallChanged) -> None:
        self._count(event.tenant_id, changed=1)
        calls = self._statistics.present.calls
        if event.lag_us is not None:
            calls.lag.count(event.lag_us)
        if event.status == CallStatus.SUCCEEDED:
            calls.succeeded += 1
            return
        destination = self._failed.pop((event.tenant_id, event.service_call_id), None)
        if event.status == CallStatus.FAILED:
            calls.failed += 1
            if destination is not None:
                self._statistics.call_failed(destination, "", exhausted=True)

    def _begun(self, event: agent_events.ExecutionBegun) -> None:
        self._count(event.tenant_id, changed=1)

    def _finished(self, event: agent_events.ExecutionFinished) -> None:
        if event.result != _SUCCEEDED:
            error = f"HTTP_{event.status}" if event.result == _HTTP_STATUS else event.result
            self._statistics.call_failed(event.destination, error, exhausted=False)
            self._failed[event.tenant_id, event.service_call_id] = event.destination
            if len(self._failed) > _FAILED_MAX:
                self._failed.popitem(last=False)
