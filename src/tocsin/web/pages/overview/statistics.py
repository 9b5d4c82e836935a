"""Statistics of the last hour: observers of the engine's and of the agent's events that count them in short slots, in memory.

They are on the hot path, so each event costs a few additions. A restart discards the statistics; the metrics in Prometheus
stay.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tocsin.model.access import EVERY
from tocsin.model.answer import EGRESS_REFUSED
from tocsin.ports import observer as events
from tocsin.ports.observer import Event
from tocsin.ports.statistics import Failures, StatisticsReport, StatisticsSlot, add_failures
from tocsin.service_calls import events as agent_events
from tocsin.service_calls.events import AgentEvent
from tocsin.service_calls.messages import CallStatus, SubmitServiceCall
from tocsin.web.pages.limits import UiLimits

_ERROR_CHARS_MAX = 200
#: The error of a destination whose addresses the settings forbid.
_REFUSED = f"{EGRESS_REFUSED}: egress.allow does not list its address; the timers are suspended"


@dataclass(slots=True)
class ChangeCounter:
    """How many times the timers of a namespace have been created or changed since the process started; never decreases."""

    created: int = 0
    changed: int = 0


class Statistics:
    """The observer. `gauges` is called at the end of a slot; it returns the gauges under their names in the metrics."""

    def __init__(self, limits: UiLimits, now_us: int, gauges: Callable[[], Mapping[str, float]]) -> None:
        self._limits = limits
        self._gauges = gauges
        self._width_us = round(limits.chart_interval_s * 1e6)
        self.slots: deque[StatisticsSlot] = deque(maxlen=limits.chart_points)
        self.present = StatisticsSlot(now_us - now_us % self._width_us)
        self.since_us = now_us
        self._change_counters: dict[str, ChangeCounter] = {}

    def change_counter(self, namespace: str) -> ChangeCounter:
        """A copy of the namespace's change counter, or the sum of all for EVERY. Read it before the data that a page shows
        with it, so that the page is notified of changes in between."""
        if namespace == EVERY:
            counters = self._change_counters.values()
            return ChangeCounter(sum(each.created for each in counters), sum(each.changed for each in counters))
        return replace(self._change_counters.get(namespace) or ChangeCounter())

    def roll(self, now_us: int) -> None:
        """Completes the current slot if its time is over. Skips slots during which the process was suspended."""
        if now_us < self.present.begins_us + self._width_us:
            return
        self.sample()
        self.slots.append(self.present)
        self.present = StatisticsSlot(now_us - now_us % self._width_us)

    def report(self, after_us: int) -> StatisticsReport:
        """The statistics for another node: the slots that began after an instant, as many as fit in one message."""
        wanted = [slot for slot in self.slots if slot.begins_us > after_us]
        sent = wanted[: self._limits.statistics_slots_max]
        self.sample()
        return StatisticsReport(self.since_us, self._width_us, sent, self.present, len(sent) < len(wanted))

    def sample(self) -> None:
        """Writes the present gauges into the current slot."""
        gauges, slot = self._gauges(), self.present
        slot.overdue_s = gauges["tocsin_overdue_seconds"]
        slot.window_timers = gauges["tocsin_window_timers"]
        slot.in_flight = gauges["tocsin_callbacks_in_flight"]

    def __call__(self, event: Event) -> None:
        """Counts an event."""
        if isinstance(event, events.AttemptFinished):
            self._attempt(event)
        elif isinstance(event, events.TimersCreated):
            self.present.created += event.timers
            self._change_counter(event.namespace).created += event.timers
        elif isinstance(event, events.TimersChanged):
            self._change_counter(event.namespace).changed += event.timers
        elif isinstance(event, events.TimerExpired):
            self.present.expired += 1
            self._change_counter(event.namespace).changed += 1

        elif isinstance(event, events.AttemptNotSent) and event.code == EGRESS_REFUSED:
            self.count_failure(self.present.failing, event.destination, _REFUSED, exhausted=False)
            self._change_counter(event.namespace).changed += 1

    def _change_counter(self, namespace: str) -> ChangeCounter:
        found = self._change_counters.get(namespace)
        if found is None:
            found = self._change_counters[namespace] = ChangeCounter()
        return found

    def _attempt(self, event: events.AttemptFinished) -> None:
        slot, outcome = self.present, event.outcome
        if outcome == "done":
            slot.done += 1
        elif outcome == "retried":
            slot.retried += 1
        elif outcome == "failed":
            slot.failed += 1
        elif outcome == "rescheduled":
            slot.rescheduled += 1
        else:
            slot.superseded += 1
        if event.lag_us is not None:
            slot.lag.count(event.lag_us)
        if outcome in ("retried", "failed"):
            exhausted = outcome == "failed"
            self.count_failure(slot.failing, event.destination, event.error or "", exhausted=exhausted)
        self._change_counter(event.namespace).changed += 1

    def count_failure(self, into: dict[str, Failures], destination: str, error: str, *, exhausted: bool) -> None:
        """Counts a failed call under its destination."""
        failure = Failures(1, exhausted, error[:_ERROR_CHARS_MAX])
        add_failures(into, destination, failure, self._limits.chart_destinations_max)


_ACCEPTED = "accepted"
_SUCCEEDED = "succeeded"
#: Failed executions remembered until their calls fail or are retried.
_FAILED_MAX = 4_096


class CallStatistics:
    """The observer of service calls. It counts into the slots of the timers' statistics, and changes for each tenant."""

    def __init__(self, statistics: Statistics, limits: UiLimits) -> None:
        self._statistics = statistics
        self._limits = limits
        self._change_counters: OrderedDict[str, ChangeCounter] = OrderedDict()
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

    def change_counter(self, tenant_id: str) -> ChangeCounter:
        """A copy of the tenant's change counter, which starts over if the tenant had to make room for others. Read it before
        the data that a page shows with it, as `Statistics.change_counter`."""
        return replace(self._change_counters.get(tenant_id.lower()) or ChangeCounter())

    def _touch(self, tenant_id: str) -> ChangeCounter:
        found = self._change_counters.setdefault(tenant_id, ChangeCounter())
        self._change_counters.move_to_end(tenant_id)
        if len(self._change_counters) > self._limits.tenant_change_counters_max:
            self._change_counters.popitem(last=False)
        return found

    def _command(self, event: agent_events.CommandHandled) -> None:
        if event.result != _ACCEPTED:
            return
        change_counter = self._touch(event.tenant_id)
        if event.command == SubmitServiceCall.__name__:
            change_counter.created += 1
            self._statistics.present.calls_submitted += 1
        else:
            change_counter.changed += 1

    def _changed(self, event: agent_events.ServiceCallChanged) -> None:
        self._touch(event.tenant_id).changed += 1
        slot = self._statistics.present
        if event.lag_us is not None:
            slot.calls_lag.count(event.lag_us)
        if event.status == CallStatus.SUCCEEDED:
            slot.calls_succeeded += 1
            return
        destination = self._failed.pop((event.tenant_id, event.service_call_id), None)
        if event.status == CallStatus.FAILED:
            slot.calls_failed += 1
            if destination is not None:
                most = self._limits.chart_destinations_max
                add_failures(slot.calls_failing, destination, Failures(exhausted=1), most)

    def _begun(self, event: agent_events.ExecutionBegun) -> None:
        self._touch(event.tenant_id).changed += 1

    def _finished(self, event: agent_events.ExecutionFinished) -> None:
        if event.result != _SUCCEEDED:
            failing = self._statistics.present.calls_failing
            self._statistics.count_failure(failing, event.destination, event.result, exhausted=False)
            self._failed[event.tenant_id, event.service_call_id] = event.destination
            if len(self._failed) > _FAILED_MAX:
                self._failed.popitem(last=False)
