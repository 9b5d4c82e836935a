"""The last hour of service calls in numbers, and which tenant has news: an observer of the agent's events.

It sits on the hot path, so each event costs a few additions. The buckets are the timers', so that one clock ends both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tocsin.agent import events
from tocsin.agent.api.validation import CallStatus
from tocsin.agent.events import AgentEvent
from tocsin.agent.messages import SubmitServiceCall
from tocsin.ui.limits import UiLimits
from tocsin.ui.statistics import LAG_BOUNDS_MS, Pulse, Statistics, of_destination

_ACCEPTED = "accepted"
_SUCCEEDED = "succeeded"
#: Failed executions whose calls have not been decided upon: a moment's worth.
_FAILED_MAX = 4_096


class CallStatistics:
    """Observes."""

    def __init__(self, statistics: Statistics, limits: UiLimits) -> None:
        self._statistics = statistics
        self._limits = limits
        self._pulses: OrderedDict[str, Pulse] = OrderedDict()
        # By call, where its last execution failed, until it is known whether there is another.
        self._failed: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._handlers: dict[type, Callable[[Any], None]] = {
            events.CommandHandled: self._command,
            events.ServiceCallChanged: self._changed,
            events.ExecutionBegun: self._begun,
            events.ExecutionFinished: self._finished,
        }

    def __call__(self, event: AgentEvent) -> None:
        """Observes."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def pulse(self, tenant_id: str) -> Pulse:
        """How often the tenant's calls have been submitted or changed since the process began, or since the tenant was
        forgotten for others. As `Statistics.pulse`, it is what it is now, and to be asked for first."""
        return replace(self._pulses.get(tenant_id.lower()) or Pulse())

    def _touch(self, tenant_id: str) -> Pulse:
        pulses = self._pulses
        found = pulses.get(tenant_id)
        if found is None:
            found = pulses[tenant_id] = Pulse()
            if len(pulses) > self._limits.tenant_change_counters_max:
                pulses.popitem(last=False)
        else:
            pulses.move_to_end(tenant_id)
        return found

    def _command(self, event: events.CommandHandled) -> None:
        if event.result != _ACCEPTED:
            return
        pulse = self._touch(event.tenant_id)
        if event.command == SubmitServiceCall.__name__:
            pulse.created += 1
            self._statistics.present.calls.submitted += 1
        else:
            pulse.changed += 1

    def _changed(self, event: events.ServiceCallChanged) -> None:
        self._touch(event.tenant_id).changed += 1
        bucket = self._statistics.present.calls
        if event.lag_us is not None:
            lag_ms = event.lag_us / 1_000
            bucket.lag_counts[bisect_left(LAG_BOUNDS_MS, lag_ms)] += 1
            bucket.lag_max_ms = max(bucket.lag_max_ms, lag_ms)
        if event.status == CallStatus.SUCCEEDED:
            bucket.succeeded += 1
            return
        destination = self._failed.pop((event.tenant_id, event.service_call_id), None)
        if event.status == CallStatus.FAILED:
            bucket.failed += 1
            if destination is not None:
                most = self._limits.chart_destinations_max
                of_destination(bucket.destinations, destination, most).gave_up += 1

    def _begun(self, event: events.ExecutionBegun) -> None:
        self._touch(event.tenant_id).changed += 1

    def _finished(self, event: events.ExecutionFinished) -> None:
        if event.result != _SUCCEEDED:
            known = self._statistics.present.calls.destinations
            self._statistics.note_failure(known, event.destination, event.result, gave_up=False)
            self._failed[event.tenant_id, event.service_call_id] = event.destination
            if len(self._failed) > _FAILED_MAX:
                self._failed.popitem(last=False)
