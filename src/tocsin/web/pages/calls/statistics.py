"""Statistics of service calls and change counters of tenants: an observer of the agent's events.

It is on the hot path, so each event costs a few additions. It counts into the buckets of the timers' statistics.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tocsin.service_calls import events
from tocsin.service_calls.events import AgentEvent
from tocsin.service_calls.messages import CallStatus, SubmitServiceCall
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.overview.statistics import LAG_BOUNDS_MS, ChangeCounter, Statistics, of_destination

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
        change_counters = self._change_counters
        found = change_counters.get(tenant_id)
        if found is None:
            found = change_counters[tenant_id] = ChangeCounter()
            if len(change_counters) > self._limits.tenant_change_counters_max:
                change_counters.popitem(last=False)
        else:
            change_counters.move_to_end(tenant_id)
        return found

    def _command(self, event: events.CommandHandled) -> None:
        if event.result != _ACCEPTED:
            return
        change_counter = self._touch(event.tenant_id)
        if event.command == SubmitServiceCall.__name__:
            change_counter.created += 1
            self._statistics.present.calls.submitted += 1
        else:
            change_counter.changed += 1

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
                of_destination(bucket.destinations, destination, most).exhausted += 1

    def _begun(self, event: events.ExecutionBegun) -> None:
        self._touch(event.tenant_id).changed += 1

    def _finished(self, event: events.ExecutionFinished) -> None:
        if event.result != _SUCCEEDED:
            known = self._statistics.present.calls.destinations
            self._statistics.note_failure(known, event.destination, event.result, exhausted=False)
            self._failed[event.tenant_id, event.service_call_id] = event.destination
            if len(self._failed) > _FAILED_MAX:
                self._failed.popitem(last=False)
