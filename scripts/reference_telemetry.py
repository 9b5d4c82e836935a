"""The reference pages of metrics and events, generated from tables in the code by `scripts/reference.py`."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterable

import tocsin.server.node  # noqa: F401 -- the modules of a node declare its events
from tocsin.ports.event import AnyEvent, declared
from tocsin.ports.observer import Event
from tocsin.service_calls.events import AgentEvent
from tocsin.telemetry.metrics import (
    AGENT_GAUGES,
    BREAKER_GAUGES,
    COUNTERS,
    DISK_GAUGES,
    FLOW_GAUGES,
    GAUGES,
    INFOS,
    REQUEST_DURATION,
    REQUESTS,
)

_METRICS_INTRO = """# Metrics

`GET /metrics` returns these in Prometheus' text format, and the client library's `process_*` and `python_*`.

Watch these first:

- `tocsin_lag_seconds`: how late timers fire.
- `tocsin_overdue_seconds`: above a few seconds, due timers wait.
- `tocsin_dispatching`: 0 means that no timer fires.
- `tocsin_commits_total`: any result other than `durable` and `fenced` means that the store fails.
"""

_EVENTS_INTRO = """# Events

The engine reports to its observers with typed events (`tocsin.ports.observer`); logs and metrics are observers. The log
writes an event's name in words (`ShardLost` as `shard lost`) with its fields. *Level* is the level of the log line. An
`AttemptFinished` after which the timer has failed is a warning, `timer failed`, at most ten lines per second. An outage of
the store fails every shard again and again: `BatchFailed`, `LoadFailed`, `ClaimFailed` and `HeartbeatFailed` are logged once
in ten seconds for each kind. The next line has the number of suppressed ones in the field `suppressed`, and their shards in
`suppressed_shards`. Of a field with many values, such as `timer_ids`, a line has the first five; their number is in
`timer_ids_total`.
"""

_AGENT_EVENTS_INTRO = """## The service agent

The agent's events (`tocsin.service_calls.events`, and those of the buses in `tocsin.ports.bus`). In the log their fields
have the API's names: `tenantId`, `serviceCallId`, `correlationId`. A failed execution is a warning. Warnings and errors are
limited to twenty lines per second; the next line has the number of suppressed ones in the field `suppressed`.
"""


def metrics_page(generated: str) -> str:
    """docs/reference/metrics.md."""
    events = [*_in_order(Event), *_in_order(AgentEvent)]
    # Several events may share a counter.
    counters = {
        counter.name: counter for counter in (*(event.counter for event in events), *COUNTERS, REQUESTS) if counter
    }
    by_name = {histogram.name: histogram for event in events for histogram in event.histograms}
    histograms = [*by_name.values(), REQUEST_DURATION]
    gauges = {event.gauge.name: event.gauge.help for event in events if event.gauge}
    lines = [generated, _METRICS_INTRO, "## Counters", "", "| metric | labels | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{each.name}_total` | {_codes(each.labels)} | {each.help} |" for each in counters.values()]
    lines += ["", "## Histograms", "", "| metric | buckets up to | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{each.name}` | {each.bounds[-1]:,} | {each.help} |" for each in histograms]
    lines += ["", "## Gauges", "", "| metric | meaning |", "| --- | --- |"]
    gauges |= {**GAUGES, **FLOW_GAUGES, **BREAKER_GAUGES, **DISK_GAUGES, **INFOS, **AGENT_GAUGES}
    lines += [f"| `{name}` | {text} |" for name, text in gauges.items()]
    return "\n".join(lines) + "\n"


def events_page(generated: str) -> str:
    """docs/reference/events.md."""
    lines = [generated, _EVENTS_INTRO, *_event_table(_in_order(Event))]
    lines += ["", _AGENT_EVENTS_INTRO, *_event_table(_in_order(AgentEvent))]
    return "\n".join(lines) + "\n"


def _in_order(base: type[AnyEvent]) -> list[type[AnyEvent]]:
    """The events by module, in whatever order modules were imported, and as they are declared there."""
    return sorted(declared(base), key=lambda event: event.__module__)


def _event_table(events: Iterable[type[AnyEvent]]) -> list[str]:
    lines = ["| event | fields | meaning | level |", "| --- | --- | --- | --- |"]
    for event in events:
        text = re.sub(r"\s+", " ", inspect.getdoc(event) or "").strip()
        level = logging.getLevelName(event.level).lower()
        lines.append(f"| `{event.__name__}` | {_codes(event.__struct_fields__)} | {text} | {level} |")
    return lines


def _codes(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)
