"""The reference pages of metrics and events, made from tables in the code for `scripts/reference.py`."""

from __future__ import annotations

import inspect
import logging
import re
import typing

from tocsin.agent import events as agent_events
from tocsin.ports import observer
from tocsin.telemetry.agent_logs import AGENT_LEVELS
from tocsin.telemetry.agent_metrics import AGENT_COUNTERS, AGENT_GAUGES, AGENT_HISTOGRAMS
from tocsin.telemetry.logs import LEVELS
from tocsin.telemetry.metrics import COUNTERS, GAUGES, HISTOGRAMS

_METRICS_INTRO = """# Metrics

`GET /metrics` in Prometheus' text format. Beside these, the client library's `process_*` and `python_*`.

What to watch: `tocsin_lag_seconds` is the promise itself; `tocsin_overdue_seconds` above a few seconds means that due
timers wait; `tocsin_dispatching` 0 means that nothing rings; `tocsin_commits_total` with another result than `durable`
means trouble with the store.
"""

_EVENTS_INTRO = """# Events

The engine tells its observers what happens as typed events (`tocsin.ports.observer`); logs and metrics are such
observers. *Level* is where the log puts the event; `-` means that lines about single timers are rationed: a failed timer
is a warning, at most ten a second, everything else is written at debug only.
"""

_AGENT_EVENTS_INTRO = """## The service agent

Its events (`tocsin.agent.events`, and those of the buses in `tocsin.ports.bus`). In the log the fields have the API's
names: `tenantId`, `serviceCallId`, `correlationId`. An execution that fails is a warning; warnings and errors are rationed
to twenty lines a second, and the next line says how many were left out.
"""


def metrics_page(generated: str) -> str:
    """docs/reference/metrics.md."""
    counters, histograms = {**COUNTERS, **AGENT_COUNTERS}, {**HISTOGRAMS, **AGENT_HISTOGRAMS}
    lines = [generated, _METRICS_INTRO, "## Counters", "", "| metric | labels | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{name}_total` | {_codes(labels)} | {text} |" for name, (labels, text) in counters.items()]
    lines += ["", "## Histograms", "", "| metric | buckets up to | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{name}` | {bounds[-1]:,} | {text} |" for name, (bounds, text) in histograms.items()]
    lines += ["", "## Gauges", "", "| metric | meaning |", "| --- | --- |"]
    lines += [f"| `{name}` | {text} |" for name, text in {**GAUGES, **AGENT_GAUGES}.items()]
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
