"""Builds a trace from its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tocsin.model.instants import format_instant
from tocsin.service_calls.api.ports import ExecutionRecord, TraceEntry
from tocsin.stores.service_calls.statements import Row
from tocsin.stores.service_calls.tables import http_execution_log, service_calls, timer_schedules

MESSAGE = "message"
_MS = 1_000


def trace_entries(
    call: Row, schedules: Sequence[Row], executions: Sequence[ExecutionRecord], messages: Sequence[Row]
) -> list[TraceEntry]:
    """All entries in order of time, each after its cause. `messages` are in the order in which they were written.

    Messages record the millisecond of their creation, so entries are compared by milliseconds. Within one, messages
    stand in the order in which they were written, and rows, which show what messages led to, after them. A message
    never stands before the one that caused it, even if the clock was set back. A row stands at the time when it reached
    the state that it shows.
    """
    sent = [_message_entry(row) for row in messages]
    at: dict[str, int] = {}
    last_of: dict[str, int] = {}
    for place, entry in enumerate(sent):
        moment = max(entry.at, at.get(entry.causation_id or "", 0))
        at[entry.id] = last_of[entry.name] = moment
        sent[place] = entry._replace(at=moment)
    rows = [
        _call_entry(call, last_of),
        *(_schedule_entry(row, call[1], last_of) for row in schedules),
        *map(_execution_entry, executions),
    ]
    # The sort is stable.
    return sorted(
        [*sent, *(entry._replace(at=entry.at - entry.at % _MS) for entry in rows)], key=lambda entry: entry.at
    )


def _call_entry(row: Row, last_of: dict[str, int]) -> TraceEntry:
    _, call_id, name, status, submitted_at, due_at, started_at, finished_at, *_ = row
    at = max(finished_at or started_at or submitted_at, last_of.get(f"ServiceCall{status}", 0))
    detail = _detail(
        name=name,
        submittedAt=_text(submitted_at),
        dueAt=_text(due_at),
        startedAt=_text(started_at),
        finishedAt=_text(finished_at),
    )
    return TraceEntry(at, service_calls.name, status, call_id, None, detail)


def _schedule_entry(row: Row, call_id: str, last_of: dict[str, int]) -> TraceEntry:
    registered_at, state, due_at, reached_at = row
    at = max(reached_at or registered_at, last_of.get("ScheduleTimer", 0))
    detail = _detail(registeredAt=_text(registered_at), dueAt=_text(due_at), reachedAt=_text(reached_at))
    return TraceEntry(at, timer_schedules.name, state, call_id, None, detail)


def _execution_entry(row: ExecutionRecord) -> TraceEntry:
    detail = _detail(
        startedAt=_text(row.started_at),
        finishedAt=_text(row.finished_at),
        method=row.request_method,
        url=row.request_url,
        responseStatus=row.response_status,
        error=row.error_message,
    )
    name, at = ("Started", row.started_at) if row.finished_at is None else ("Finished", row.finished_at)
    return TraceEntry(at, http_execution_log.name, name, row.execution_id, None, detail)


def _message_entry(row: Row) -> TraceEntry:
    """Without the payload, which may contain secrets."""
    timestamp_ms, name, id_, causation_id, number, published_at, parked_at, attempts, last_error = row
    detail = _detail(
        number=number,
        publishedAt=_text(published_at),
        parkedAt=_text(parked_at),
        failedAttempts=attempts or None,
        lastError=last_error,
    )
    return TraceEntry(timestamp_ms * _MS, MESSAGE, name, id_, causation_id, detail)


def _text(instant_us: int | None) -> str | None:
    return None if instant_us is None else format_instant(instant_us)


def _detail(**values: Any) -> dict[str, Any]:
    """The members that have a value."""
    return {name: value for name, value in values.items() if value is not None}
