"""The reference pages of metrics and events, generated from tables in the code by `scripts/reference.py`."""

from __future__ import annotations

import inspect
import logging
import re
import typing

from tocsin.ports import observer
from tocsin.service_calls import events as agent_events
from tocsin.telemetry.agent_logs import AGENT_LEVELS
from tocsin.telemetry.agent_metrics import AGENT_COUNTERS, AGENT_GAUGES, AGENT_HISTOGRAMS
from tocsin.telemetry.disk import DISK_GAUGES
from tocsin.telemetry.logs import LEVELS
from tocsin.telemetry.metrics import COUNTERS, GAUGES, HISTOGRAMS, INFOS
from tocsin.telemetry.requests import REQUEST_COUNTERS, REQUEST_HISTOGRAMS

_METRICS_INTRO = """# Metrics

`GET /metrics` returns these in Prometheus' text format, and the client library's `process_*` and `python_*`.

Watch these first:

- `tocsin_lag_seconds`: how late timers fire.
- `tocsin_overdue_seconds`: above a few seconds, due timers wait.
- `tocsin_dispatching`: 0 means that no timer fires.
- `tocsin_commits_total`: any result other than `durable` means that the store fails.
"""

_EVENTS_INTRO = """# Events

The engine reports to its observers with typed events (`tocsin.ports.observer`); logs and metrics are observers. The log
writes an event's name in words (`ShardLost` as `shard lost`) with its fields. *Level* is the level of the log line; `-` means
that a failed timer is logged as a warning, at most ten lines per second, and every other attempt at debug. An outage of the
store fails every shard again and again: `BatchFailed`, `LoadFailed`, `ClaimFailed` and `HeartbeatFailed` are logged once in
ten seconds for each kind. The next line has the number of suppressed ones in the field `suppressed`, and their shards in
`suppressed_shards`.
"""

_AGENT_EVENTS_INTRO = """## The service agent

The agent's events (`tocsin.service_calls.events`, and those of the buses in `tocsin.ports.bus`). In the log their fields
have the API's names: `tenantId`, `serviceCallId`, `correlationId`. A failed execution is a warning. Warnings and errors are
limited to twenty lines per second; the next line has the number of suppressed ones in the field `suppressed`.
"""


def metrics_page(generated: str) -> str:
    """docs/reference/metrics.md."""
    counters = {**COUNTERS, **REQUEST_COUNTERS, **AGENT_COUNTERS}
    histograms = {**HISTOGRAMS, **REQUEST_HISTOGRAMS, **AGENT_HISTOGRAMS}
    lines = [generated, _METRICS_INTRO, "## Counters", "", "| metric | labels | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{name}_total` | {_codes(labels)} | {text} |" for name, (labels, text) in counters.items()]
    lines += ["", "## Histograms", "", "| metric | buckets up to | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{name}` | {bounds[-1]:,} | {text} |" for name, (bounds, text) in histograms.items()]
    lines += ["", "## Gauges", "", "| metric | meaning |", "| --- | --- |"]
    lines += [f"| `{name}` | {text} |" for name, text in {**GAUGES, **DISK_GAUGES, **INFOS, **AGENT_GAUGES}.items()]
    return "\n".join(lines) + "\n"


def events_page(generated: str) -> str:
    """docs/reference/events.md."""
    lines = [generated, _EVENTS_INTRO]
    lines += _event_table(typing.get_args(observer.Event), LEVELS)
    lines += ["", _AGENT_EVENTS_INTRO]
    lines += _event_table(typing.get_args(agent_events.AgentEvent), AGENT_LEVELS)
    return "\n".join(lines) + "\n"


def _event_table(events: tuple[type, ...], levels: dict[type, int]) -> list[str]:
    lines = ["| event | fields | meaning | level |", "| --- | --- | --- | --- |"]
    for event in events:
        text = re.sub(r"\s+", " ", inspect.getdoc(event) or "").strip()
        level = logging.getLevelName(levels[event]).lower() if event in levels else "-"
        lines.append(f"| `{event.__name__}` | {_codes(event._fields)} | {text} | {level} |")
    return lines


def _codes(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)
