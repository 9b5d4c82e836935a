"""Statistics of service calls and change counters of tenants: an observer of the agent's events.

It is on the hot path, so each event costs a few additions. It counts into the slots of the timers' statistics.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tocsin.ports.statistics import Failures, add_failures
from tocsin.service_calls import events
from tocsin.service_calls.events import AgentEvent
from tocsin.service_calls.messages import CallStatus, SubmitServiceCall
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.overview.statistics import ChangeCounter, Statistics

_ACCEPTED = "accepted"
_SUCCEEDED = "succeeded"
#: Failed executions remembered until their calls fail or are retried.
_FAILED_MAX = 4_096


class CallStatistics:
    """The observer."""

    def __init__(self, statistics: Statistics, limits: UiLimits) -> None:
        self._statistics = statistics
        self._limits = limits
        self._change_counters: OrderedDict[str, ChangeCounter] = OrderedDict()
        # The destination of a call's last failed execution, until the call fails or is retried.
        self._failed: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._handlers: dict[type, Callable[[Any], None]] = {
            events.CommandHandled: self._command,
            events.ServiceCallChanged: self._changed,
            events.ExecutionBegun: self._begun,
            events.ExecutionFinished: self._finished,
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

    def _command(self, event: events.CommandHandled) -> None:
        if event.result != _ACCEPTED:
            return
        change_counter = self._touch(event.tenant_id)
        if event.command == SubmitServiceCall.__name__:
            change_counter.created += 1
            self._statistics.present.calls_submitted += 1
        else:
            change_counter.changed += 1

    def _changed(self, event: events.ServiceCallChanged) -> None:
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

    def _begun(self, event: events.ExecutionBegun) -> None:
        self._touch(event.tenant_id).changed += 1

    def _finished(self, event: events.ExecutionFinished) -> None:
        if event.result != _SUCCEEDED:
            failing = self._statistics.present.calls_failing
            self._statistics.count_failure(failing, event.destination, event.result, exhausted=False)
            self._failed[event.tenant_id, event.service_call_id] = event.destination
            if len(self._failed) > _FAILED_MAX:
                self._failed.popitem(last=False)
