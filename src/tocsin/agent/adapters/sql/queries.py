"""What the API module reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, Text, bindparam, exists, select, tuple_, union_all

from tocsin.agent.adapters.sql.backend import Database
from tocsin.agent.adapters.sql.service_calls import KEY, TAGS
from tocsin.agent.adapters.sql.statements import Query, Row
from tocsin.agent.adapters.sql.tables import (
    http_execution_log,
    outbox,
    service_call_tags,
    service_calls,
    timer_schedules,
)
from tocsin.agent.adapters.sql.types import Instant
from tocsin.agent.api.ports import CallFilter, CallRecord, ExecutionRecord, TraceEntry
from tocsin.agent.messages import Key, RequestSpec
from tocsin.agent.orchestration.service_call import Status
from tocsin.model.instants import format_instant
from tocsin.model.retry import RetryPolicy

_calls = service_calls.c
_tags = service_call_tags.c
_log = http_execution_log.c
_COLUMNS = (
    _calls.tenant_id,
    _calls.service_call_id,
    _calls.name,
    _calls.status,
    _calls.submitted_at,
    _calls.due_at,
    _calls.started_at,
    _calls.finished_at,
    _calls.request_spec,
    _calls.outcome_meta,
    _calls.correlation_id,
    _calls.retry_policy,
    _calls.attempts,
    _calls.next_attempt_at,
)
_CORRELATION = [column.name for column in _COLUMNS].index("correlation_id")
_ONE = {"tenant": Text(), "call": Text()}


def _of_call(table: Any) -> tuple[Any, Any]:
    return table.c.tenant_id == bindparam("tenant"), table.c.service_call_id == bindparam("call")


FIND = Query({}, lambda given: select(*_COLUMNS).where(*_of_call(service_calls)), _ONE)
FIND_MANY = Query(
    KEY,
    # A join, as for the tags: each call by its key.
    lambda given: select(*_COLUMNS).select_from(given.relation, service_calls).where(*given.same(service_calls, *KEY)),
)
EXECUTIONS = Query(
    {},
    lambda given: (
        select(
            _log.execution_id,
            _log.started_at,
            _log.finished_at,
            _log.request_url,
            _log.request_method,
            _log.request_headers,
            _log.request_body,
            _log.response_status,
            _log.response_headers,
            _log.response_body,
            _log.error_message,
        )
        .where(*_of_call(http_execution_log))
        .order_by(_log.execution_id)
    ),
    _ONE,
)
SCHEDULE = Query(
    {},
    lambda given: select(
        timer_schedules.c.registered_at, timer_schedules.c.state, timer_schedules.c.due_at, timer_schedules.c.reached_at
    ).where(*_of_call(timer_schedules)),
    _ONE,
)
MESSAGES = Query(
    {},
    lambda given: (
        select(
            outbox.c.timestamp_ms,
            outbox.c.event_type,
            outbox.c.envelope_id,
            outbox.c.causation_id,
            outbox.c.id,
            outbox.c.published_at,
            outbox.c.parked_at,
            outbox.c.attempts,
            outbox.c.last_error,
        )
        .where(outbox.c.tenant_id == bindparam("tenant"), outbox.c.correlation_id == bindparam("correlation"))
        .order_by(outbox.c.id)
    ),
    {"tenant": Text(), "correlation": Text()},
)

_decode = msgspec.json.decode
_request_spec = msgspec.json.Decoder(RequestSpec).decode
_headers = msgspec.json.Decoder(dict[str, str]).decode
_policy = msgspec.json.Decoder(RetryPolicy).decode


def page_statement(wanted: CallFilter) -> Select[Any]:
    """The page's calls. By a tag it is a range of the tags' index; else a range of the calls' index, or one for each of
    several statuses, of which only as many rows are read as the page has."""
    if wanted.tags:
        return _by_tag(wanted)
    if not wanted.statuses or len(wanted.statuses) == len(Status):
        return _newest(select(*_COLUMNS).where(*_range(service_calls, wanted)), service_calls, wanted)
    if len(wanted.statuses) == 1:
        (status,) = wanted.statuses
        return _newest(_with_status(wanted, status), service_calls, wanted)
    each = [
        select(_newest(_with_status(wanted, status), service_calls, wanted).subquery())
        for status in sorted(wanted.statuses)
    ]
    merged = union_all(*each).subquery("merged")
    return _newest(select(*(merged.c[column.name] for column in _COLUMNS)), merged, wanted)


def _with_status(wanted: CallFilter, status: str) -> Select[Any]:
    return select(*_COLUMNS).where(*_range(service_calls, wanted), _calls.status == status)


def _by_tag(wanted: CallFilter) -> Select[Any]:
    first, *others = sorted(set(wanted.tags))
    same_call = (_calls.tenant_id == _tags.tenant_id, _calls.service_call_id == _tags.service_call_id)
    found = (
        select(*_COLUMNS)
        .select_from(service_call_tags.join(service_calls, same_call[0] & same_call[1]))
        .where(*_range(service_call_tags, wanted), _tags.tag == first)
    )
    if wanted.statuses:
        found = found.where(_calls.status.in_(sorted(wanted.statuses)))
    for place, tag in enumerate(others):
        other = service_call_tags.alias(f"other_{place}")
        found = found.where(
            exists(
                select(1).where(
                    other.c.tenant_id == _tags.tenant_id,
                    other.c.service_call_id == _tags.service_call_id,
                    other.c.tag == tag,
                )
            )
        )
    return _newest(found, service_call_tags, wanted)


def _range(table: Any, wanted: CallFilter) -> list[Any]:
    """The tenant's rows of the range of time, after the former page."""
    conditions = [table.c.tenant_id == wanted.tenant_id]
    if wanted.submitted_from is not None:
        conditions.append(table.c.submitted_at >= wanted.submitted_from)
    if wanted.submitted_to is not None:
        conditions.append(table.c.submitted_at < wanted.submitted_to)
    if wanted.before is not None:
        place = (wanted.before.submitted_at, wanted.before.service_call_id)
        conditions.append(tuple_(table.c.submitted_at, table.c.service_call_id) < tuple_(*place, types=[Instant, Text]))
    return conditions


def _newest(found: Select[Any], table: Any, wanted: CallFilter) -> Select[Any]:
    return found.order_by(table.c.submitted_at.desc(), table.c.service_call_id.desc()).limit(wanted.limit)


class SqlCallQueries:
    """The port CallQueries."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, key: Key) -> CallRecord | None:
        def work(connection: Connection) -> CallRecord | None:
            records = _records(connection, FIND.fetch(connection, tenant=key[0], call=key[1]))
            return records[0] if records else None

        return await self._database.read(work)

    async def find_many(self, keys: Sequence[Key]) -> list[CallRecord]:
        def work(connection: Connection) -> list[CallRecord]:
            return _records(connection, FIND_MANY.fetch(connection, keys))

        return await self._database.read(work)

    async def page(self, wanted: CallFilter) -> list[CallRecord]:
        statement = page_statement(wanted)

        def work(connection: Connection) -> list[CallRecord]:
            return _records(connection, [tuple(row) for row in connection.execute(statement)])

        return await self._database.read(work)

    async def executions(self, key: Key) -> list[ExecutionRecord]:
        rows = await self._database.read(lambda connection: EXECUTIONS.fetch(connection, tenant=key[0], call=key[1]))
        return list(map(_execution, rows))

    async def trace(self, key: Key) -> list[TraceEntry]:
        def work(connection: Connection) -> list[TraceEntry]:
            one = {"tenant": key[0], "call": key[1]}
            found = FIND.fetch(connection, **one)
            if not found:
                return []
            messages = MESSAGES.fetch(connection, tenant=key[0], correlation=found[0][_CORRELATION])
            return [
                _call_entry(found[0]),
                *(_schedule_entry(row, key) for row in SCHEDULE.fetch(connection, **one)),
                *(_execution_entry(_execution(row)) for row in EXECUTIONS.fetch(connection, **one)),
                *map(_message_entry, messages),
            ]

        # The sort is stable: at one instant the call comes first, and messages stay in their order.
        return sorted(await self._database.read(work), key=lambda entry: entry.at)


def _records(connection: Connection, rows: Sequence[Row]) -> list[CallRecord]:
    keys = [(row[0], row[1]) for row in rows]
    tags: dict[tuple[str, str], list[str]] = {key: [] for key in keys}
    for tenant_id, service_call_id, tag in TAGS.fetch(connection, keys):
        tags[tenant_id, service_call_id].append(tag)
    return [
        CallRecord._make(
            (
                *row[:8],
                _request_spec(row[8]),
                None if row[9] is None else _decode(row[9]),
                row[10],
                tuple(tags[row[0], row[1]]),
                None if row[11] is None else _policy(row[11]),
                row[12],
                row[13] if row[3] == Status.RETRYING else None,
            )
        )
        for row in rows
    ]


def _execution(row: Row) -> ExecutionRecord:
    (*begun, status, headers, body, error) = row
    return ExecutionRecord._make(
        (
            *begun[:5],
            _headers(begun[5]),
            begun[6],
            None if status is None else int(status),
            None if headers is None else _headers(headers),
            body,
            error,
        )
    )


def _text(instant_us: int | None) -> str | None:
    return None if instant_us is None else format_instant(instant_us)


def _detail(**values: Any) -> dict[str, Any]:
    """What is known of it."""
    return {name: value for name, value in values.items() if value is not None}


def _call_entry(row: Row) -> TraceEntry:
    detail = _detail(name=row[2], dueAt=_text(row[5]), startedAt=_text(row[6]), finishedAt=_text(row[7]))
    return TraceEntry(row[4], service_calls.name, row[3], row[1], None, detail)


def _schedule_entry(row: Row, key: Key) -> TraceEntry:
    registered_at, state, due_at, reached_at = row
    detail = _detail(dueAt=_text(due_at), reachedAt=_text(reached_at))
    return TraceEntry(registered_at, timer_schedules.name, state, key[1], None, detail)


def _execution_entry(row: ExecutionRecord) -> TraceEntry:
    detail = _detail(
        finishedAt=_text(row.finished_at),
        method=row.request_method,
        url=row.request_url,
        responseStatus=row.response_status,
        error=row.error_message,
    )
    name = "Started" if row.finished_at is None else "Finished"
    return TraceEntry(row.started_at, http_execution_log.name, name, row.execution_id, None, detail)


def _message_entry(row: Row) -> TraceEntry:
    """Without its payload, in which secrets may be."""
    timestamp_ms, name, id_, causation_id, number, published_at, parked_at, attempts, last_error = row
    detail = _detail(
        number=number,
        publishedAt=_text(published_at),
        parkedAt=_text(parked_at),
        failedAttempts=attempts or None,
        lastError=last_error,
    )
    return TraceEntry(timestamp_ms * 1_000, "message", name, id_, causation_id, detail)
