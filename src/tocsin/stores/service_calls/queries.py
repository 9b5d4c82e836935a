"""The queries of the API module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Select, Text, bindparam, exists, or_, select, tuple_, union_all

from tocsin.service_calls.api.ports import (
    CallFilter,
    CallRecord,
    ExecutionRecord,
    PagePosition,
    SearchResult,
    TraceEntry,
)
from tocsin.service_calls.messages import CallKey, CallStatus
from tocsin.stores.service_calls.backend import Database
from tocsin.stores.service_calls.service_calls import TAGS
from tocsin.stores.service_calls.statements import Query, Row, fields
from tocsin.stores.service_calls.tables import (
    KEY,
    http_execution_log,
    outbox,
    service_call_tags,
    service_calls,
    timer_schedules,
)
from tocsin.stores.service_calls.trace import trace_entries
from tocsin.stores.service_calls.types import Instant

_calls = service_calls.c
_tags = service_call_tags.c
_log = http_execution_log.c
#: The columns of a record. Its outcome is `outcome_meta`, and its tags are in another table.
_COLUMNS = [_calls["outcome_meta" if field == "outcome" else field] for field in CallRecord._fields if field != "tags"]
_TAGS = CallRecord._fields.index("tags")
Columns = Sequence[Any]
#: How many calls one search by name reads: a few tens of milliseconds of the database's time.
SEARCHED_MAX = 10_000
_SEARCHED = (_calls.tenant_id, _calls.service_call_id, _calls.submitted_at, _calls.name)
_CORRELATION = [column.name for column in _COLUMNS].index("correlation_id")


def _of_call(table: Any) -> tuple[Any, Any]:
    return table.c.tenant_id == bindparam("tenant"), table.c.service_call_id == bindparam("call")


FIND = Query(select(*_COLUMNS).where(*_of_call(service_calls)))
FIND_MANY = Query(
    # A join, as for tags: each call is read by its key.
    lambda given: select(*_COLUMNS).select_from(given.relation, service_calls).where(*given.same(service_calls, *KEY)),
    fields(service_calls, *KEY),
)
EXECUTIONS = Query(
    select(*(_log[name] for name in ExecutionRecord._fields))
    .where(*_of_call(http_execution_log))
    .order_by(_log.execution_id)
)
SCHEDULE = Query(
    select(
        timer_schedules.c.registered_at, timer_schedules.c.state, timer_schedules.c.due_at, timer_schedules.c.reached_at
    ).where(*_of_call(timer_schedules))
)
MESSAGES = Query(
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
)


def page_statement(wanted: CallFilter, columns: Columns = _COLUMNS) -> Select[Any]:
    """The calls of a page. A filter by correlation id or tag is a range of that index. Otherwise it is a range of the
    calls' index, or one range for each of several statuses, each limited to the size of the page."""
    if wanted.correlation_id:
        return _by_correlation(wanted, columns)
    if wanted.tags:
        return _by_tag(wanted, columns)
    if not wanted.statuses or len(wanted.statuses) == len(CallStatus):
        return _newest(select(*columns).where(*_range(service_calls, wanted)), service_calls, wanted)
    if len(wanted.statuses) == 1:
        (status,) = wanted.statuses
        return _newest(_with_status(wanted, status, columns), service_calls, wanted)
    each = [
        select(_newest(_with_status(wanted, status, columns), service_calls, wanted).subquery())
        for status in sorted(wanted.statuses)
    ]
    merged = union_all(*each).subquery("merged")
    return _newest(select(*(merged.c[column.name] for column in columns)), merged, wanted)


def search_statement(wanted: CallFilter) -> Select[Any]:
    """Keys and submission times of the calls whose name matches, among the first `SEARCHED_MAX` calls of the filter
    without the name."""
    searched = page_statement(replace(wanted, limit=SEARCHED_MAX), _SEARCHED).subquery("looked_at")
    found = select(*(searched.c[column.name] for column in _SEARCHED[:-1]))
    return _newest(found.where(searched.c.name.icontains(wanted.name, autoescape=True)), searched, wanted)


def _last_searched(wanted: CallFilter) -> Select[Any]:
    """The last call that the search reads, if it reaches its limit."""
    return page_statement(replace(wanted, limit=1), _SEARCHED[1:-1]).offset(SEARCHED_MAX - 1)


def _by_correlation(wanted: CallFilter, columns: Columns) -> Select[Any]:
    found = select(*columns).where(*_range(service_calls, wanted), _calls.correlation_id == wanted.correlation_id)
    if wanted.statuses:
        # Not `IN`: a planner without statistics might prefer the index by status.
        found = found.where(or_(*(_calls.status.is_not_distinct_from(status) for status in sorted(wanted.statuses))))
    for place, tag in enumerate(sorted(set(wanted.tags))):
        found = found.where(_tagged(service_calls, tag, place))
    return _newest(found, service_calls, wanted)


def _with_status(wanted: CallFilter, status: str, columns: Columns) -> Select[Any]:
    return select(*columns).where(*_range(service_calls, wanted), _calls.status == status)


def _tagged(table: Any, tag: str, place: int) -> Any:
    other = service_call_tags.alias(f"other_{place}")
    same_call = (other.c.tenant_id == table.c.tenant_id, other.c.service_call_id == table.c.service_call_id)
    return exists(select(1).where(*same_call, other.c.tag == tag))


def _by_tag(wanted: CallFilter, columns: Columns) -> Select[Any]:
    first, *others = sorted(set(wanted.tags))
    same_call = (_calls.tenant_id == _tags.tenant_id, _calls.service_call_id == _tags.service_call_id)
    found = (
        select(*columns)
        .select_from(service_call_tags.join(service_calls, same_call[0] & same_call[1]))
        .where(*_range(service_call_tags, wanted), _tags.tag == first)
    )
    if wanted.statuses:
        found = found.where(_calls.status.in_(sorted(wanted.statuses)))
    for place, tag in enumerate(others):
        found = found.where(_tagged(service_call_tags, tag, place))
    return _newest(found, service_call_tags, wanted)


def _range(table: Any, wanted: CallFilter) -> list[Any]:
    """The tenant's rows in the time range, after the previous page."""
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

    async def find(self, key: CallKey) -> CallRecord | None:
        def work(connection: Connection) -> CallRecord | None:
            records = _records(connection, FIND.fetch(connection, tenant=key[0], call=key[1]))
            return records[0] if records else None

        return await self._database.read(work)

    async def find_many(self, keys: Sequence[CallKey]) -> list[CallRecord]:
        def work(connection: Connection) -> list[CallRecord]:
            return _records(connection, FIND_MANY.fetch(connection, keys))

        return await self._database.read(work)

    async def page(self, wanted: CallFilter) -> list[CallRecord]:
        statement = page_statement(wanted)

        def work(connection: Connection) -> list[CallRecord]:
            return _records(connection, [tuple(row) for row in connection.execute(statement)])

        return await self._database.read(work)

    async def search(self, wanted: CallFilter) -> SearchResult:
        found, last = search_statement(wanted), _last_searched(wanted)

        def work(connection: Connection) -> SearchResult:
            keys = [tuple(row) for row in connection.execute(found)]
            reached = None
            if len(keys) < wanted.limit and (row := connection.execute(last).first()) is not None:
                reached = PagePosition(row[1], row[0])
            records = _records(connection, FIND_MANY.fetch(connection, [key[:2] for key in keys]))
            by_id = {record.service_call_id: record for record in records}
            return SearchResult([by_id[key[1]] for key in keys], reached)

        return await self._database.read(work)

    async def executions(self, key: CallKey) -> list[ExecutionRecord]:
        rows = await self._database.read(lambda connection: EXECUTIONS.fetch(connection, tenant=key[0], call=key[1]))
        return list(map(ExecutionRecord._make, rows))

    async def trace(self, key: CallKey) -> list[TraceEntry]:
        def work(connection: Connection) -> list[TraceEntry]:
            one = {"tenant": key[0], "call": key[1]}
            found = FIND.fetch(connection, **one)
            if not found:
                return []
            return trace_entries(
                found[0],
                SCHEDULE.fetch(connection, **one),
                list(map(ExecutionRecord._make, EXECUTIONS.fetch(connection, **one))),
                MESSAGES.fetch(connection, tenant=key[0], correlation=found[0][_CORRELATION]),
            )

        return await self._database.read(work)


def _records(connection: Connection, rows: Sequence[Row]) -> list[CallRecord]:
    keys = [(row[0], row[1]) for row in rows]
    tags: dict[tuple[str, str], list[str]] = {key: [] for key in keys}
    for tenant_id, service_call_id, tag in TAGS.fetch(connection, keys):
        tags[tenant_id, service_call_id].append(tag)
    return [_record(row, tuple(tags[row[0], row[1]])) for row in rows]


def _record(row: Row, tags: tuple[str, ...]) -> CallRecord:
    record = CallRecord._make((*row[:_TAGS], tags, *row[_TAGS:]))
    return record if record.status == CallStatus.RETRYING else record._replace(next_attempt_at=None)
