"""The reference pages of metrics, events and the API, made from tables in the code for `scripts/reference.py`."""

from __future__ import annotations

import inspect
import json
import logging
import re
import typing

import msgspec

from tocsin.agent import events as agent_events
from tocsin.api.operations import OPERATIONS, Operation
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

_API_INTRO = """# API

JSON over HTTP. `GET /openapi.json` is the full description (OpenAPI 3.1), `/docs` a page to read it. Members are
camelCase, instants RFC 3339 (`2027-01-31T12:00:00.123456Z`; offsets are accepted, naive times refused), durations texts
such as `500ms`, `30s`, `5m`, `24h`. Unknown members are refused by name, and so are unknown parameters in the query
(`INVALID_INPUT`), except by `/healthz`, `/readyz`, `/metrics` and the documentation. With an API key:
`Authorization: Bearer tk_…`.

Errors are `application/problem+json` (RFC 9457) with a stable `error` code, a `correlationId` (the request's
`x-correlation-id`, or a new one; every answer carries it as a header) and, for bad input, `errors` with the path and
reason of each bad field. 429 and 503 bring `Retry-After`. Every call can also answer 400, 401, 403, 408,
413, 415, 431, 500 and 503.
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


def api_page(generated: str) -> str:
    """docs/reference/api.md."""
    lines = [generated, _API_INTRO]
    for operation in OPERATIONS:
        if operation.documented:
            lines += _operation(operation)
    return "\n".join(lines)


def _operation(operation: Operation) -> list[str]:
    errors = ", ".join(
        f"{status} {' '.join(f'`{code}`' for code in codes)}" for status, codes in operation.errors.items()
    )
    role = f"Needs the role `{operation.role}`." if operation.role is not None else "Open to everybody."
    lines = [
        f"## {operation.method} {operation.path}",
        "",
        f"{operation.summary}. {operation.description} {role}".strip(),
        "",
    ]
    lines.append(f"Answers {operation.status}{'; ' + errors if errors else ''}.")
    lines.append("")
    if operation.parameters:
        lines += ["| parameter | in | meaning |", "| --- | --- | --- |"]
        lines += [f"| `{given.name}` | {given.place} | {given.description} |" for given in operation.parameters]
        lines.append("")
    if operation.request is not None:
        lines += ["| member | required |", "| --- | --- |"]
        for field in msgspec.structs.fields(operation.request):
            lines.append(f"| `{field.encode_name}` | {'yes' if field.required else ''} |")
        lines.append("")
    if operation.example:
        lines += ["```json", json.dumps(operation.example, indent=2), "```", ""]
    return lines


def _codes(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)
