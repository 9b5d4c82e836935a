"""The queries of the API module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from tocsin.model.instants import format_instant
from tocsin.ports.agent_calls import CallFailure, CallFailurePlace, Tenants
from tocsin.service_calls.messages import CallKey, CallStatus
from tocsin.service_calls.ports import (
    CallFilter,
    CallRecord,
    ExecutionRecord,
    PagePosition,
    SearchResult,
    TraceEntry,
)
from tocsin.stores.service_calls.service_calls import tags_of
from tocsin.stores.service_calls.statements import KEY, Database, Query, Row, Session, json_of

#: The columns of a record. Its outcome is `outcome_meta`, and its tags are in another table.
_COLUMNS = tuple("outcome_meta" if field == "outcome" else field for field in CallRecord._fields if field != "tags")
_TAGS = CallRecord._fields.index("tags")
_CORRELATION = _COLUMNS.index("correlation_id")
#: The API shows the outcome as it is stored.
_KINDS = {"outcome_meta": json_of(dict[str, Any])}
#: How many calls one search reads, by name, over several tenants, or for attempted ones: a few tens of milliseconds of the
#: database's time.
SEARCHED_MAX = 10_000
#: What a search reads of each call.
SEARCHED = (*KEY, "submitted_at", "name", "status", "correlation_id")
_PLACE = SEARCHED[:3]

_OF_CALL = "tenant_id = :tenant AND service_call_id = :call"
FIND = Query(f"SELECT {', '.join(_COLUMNS)} FROM service_calls WHERE {_OF_CALL}", results=_COLUMNS, kinds=_KINDS)
FIND_MANY = Query(
    # A join, as for tags: each call is read by its key.
    f"SELECT {', '.join(f'calls.{name}' for name in _COLUMNS)} FROM GIVEN CROSS JOIN service_calls AS calls "
    "WHERE calls.tenant_id = given.tenant_id AND calls.service_call_id = given.service_call_id",
    given=KEY,
    results=_COLUMNS,
    kinds=_KINDS,
)
EXECUTIONS = Query(
    f"SELECT {', '.join(ExecutionRecord._fields)} FROM http_execution_log WHERE {_OF_CALL} ORDER BY execution_id",
    results=ExecutionRecord._fields,
)
_SCHEDULE = ("registered_at", "state", "due_at", "reached_at")
SCHEDULE = Query(f"SELECT {', '.join(_SCHEDULE)} FROM timer_schedules WHERE {_OF_CALL}", results=_SCHEDULE)
_MESSAGE = (
    "timestamp_ms",
    "event_type",
    "envelope_id",
    "causation_id",
    "id",
    "published_at",
    "suspended_at",
    "attempts",
    "last_error",
)
MESSAGES = Query(
    f"SELECT {', '.join(_MESSAGE)} FROM outbox WHERE tenant_id = :tenant AND correlation_id = :correlation ORDER BY id",
    results=_MESSAGE,
)
_PLACED = ("finished_at", "service_call_id", "tenant_id")
#: What is read of a failure. A call that failed has been executed.
_FAILED = (*_PLACED, "failure", "name", "due_at", "next_attempt_at", "execution_id")
FAILURES = Query(
    # A join, as for tags: each call is read by its key.
    f"SELECT {', '.join(f'calls.{name}' for name in _FAILED)} FROM GIVEN CROSS JOIN service_calls AS calls "
    "WHERE calls.tenant_id = given.tenant_id AND calls.service_call_id = given.service_call_id",
    given=KEY,
    results=_FAILED,
)
#: How many calls have not finished, up to `most`: from the index alone.
UNFINISHED = Query(
    "SELECT count(*) FROM (SELECT 1 FROM service_calls AS calls INDEXED BY idx_service_calls_watch_at "
    "WHERE calls.watch_at IS NOT NULL LIMIT :most) AS unfinished"
)
# The log has the URL in a column of its own; a call's request has its body as well.
ATTEMPTED_URLS = Query(
    "SELECT (SELECT logged.request_url FROM http_execution_log AS logged WHERE logged.tenant_id = calls.tenant_id "
    "AND logged.service_call_id = calls.service_call_id LIMIT 1) AS request_url "
    "FROM service_calls AS calls INDEXED BY idx_service_calls_watch_at "
    "WHERE calls.watch_at IS NOT NULL AND calls.attempts > 0 LIMIT :most",
    results=("request_url",),
)


# ---------------------------------------------------------------------- pages


@lru_cache(maxsize=256)
def _query(sql: str, results: tuple[str, ...]) -> Query:
    return Query(sql, results=results, kinds=_KINDS)


class PageQuery:
    """The calls of a page, as one statement.

    A filter by correlation id or tag is a range of that index. Otherwise it is a range of the calls' index, or one range for
    each of several statuses, each limited to what the page reads. Over several tenants it is always a range of all calls,
    which a search filters.
    """

    def __init__(self, wanted: CallFilter, columns: Sequence[str] = _COLUMNS) -> None:
        self._wanted = wanted
        self._columns = tuple(columns)
        self._statuses = sorted(wanted.statuses) if len(wanted.statuses) < len(CallStatus) else []
        self._tags = sorted(set(wanted.tags))
        self._one_tenant = isinstance(wanted.tenants, str)
        self._among = wanted.tenants if isinstance(wanted.tenants, tuple) else ()
        #: The statement's values but for how many calls it reads.
        self.values: dict[str, Any] = {
            "tenant": wanted.tenants if self._one_tenant else None,
            **{f"tenant_{place}": tenant for place, tenant in enumerate(self._among)},
            "from_at": wanted.submitted_from,
            "to_at": wanted.submitted_to,
            "before_at": None if wanted.before is None else wanted.before.submitted_at,
            "before_id": None if wanted.before is None else wanted.before.service_call_id,
            "correlation": wanted.correlation_id,
            "call": wanted.service_call_id,
            "pattern": _containing(wanted.name),
            **{f"status_{place}": status for place, status in enumerate(self._statuses)},
            **{f"tag_{place}": tag for place, tag in enumerate(self._tags)},
        }

    @property
    def page(self) -> Query:
        """The first `most` calls after `skipped` ones, of the first `among`."""
        return _query(self._text, self._columns)

    @property
    def search(self) -> Query:
        """Keys and submission times of the first `most` calls that match, among the first `among` calls."""
        conditions = ["lower(name) LIKE lower(:pattern) ESCAPE '/'"] if self._wanted.name else []
        if not self._one_tenant:
            conditions += _of_tenants(self._among) if self._wanted.tenants is not None else []
            conditions += ["service_call_id = :call"] * bool(self._wanted.service_call_id)
            conditions += [f"status IN ({', '.join(self._status_names)})"] * bool(self._statuses)
            conditions += ["correlation_id = :correlation"] * bool(self._wanted.correlation_id)
            conditions += [_tagged("looked_at", place) for place in range(len(self._tags))]
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        return _query(
            f"SELECT {', '.join(_PLACE)} FROM ({self._text.replace(':most', ':among')}) AS looked_at "
            f"{where}{_newest('looked_at')} LIMIT :most",
            _PLACE,
        )

    @property
    def _text(self) -> str:
        if not self._one_tenant:
            return self._selected(_calls_by("newest"), "calls", [])
        if self._wanted.correlation_id:
            # Not `IN`: a planner without statistics might prefer the index by status.
            statuses = " OR ".join(f"calls.status IS NOT DISTINCT FROM {name}" for name in self._status_names)
            conditions = ["calls.correlation_id = :correlation", *([f"({statuses})"] if statuses else [])]
            conditions += [_tagged("calls", place) for place in range(len(self._tags))]
            return self._selected(_calls_by("correlation_id"), "calls", conditions)
        if self._tags:
            conditions = ["tags.tag = :tag_0", *(_tagged("tags", place) for place in range(1, len(self._tags)))]
            if self._statuses:
                conditions.append(f"calls.status IN ({', '.join(self._status_names)})")
            joined = (
                "service_call_tags AS tags INDEXED BY idx_service_call_tags_tag JOIN service_calls AS calls "
                "ON calls.tenant_id = tags.tenant_id AND calls.service_call_id = tags.service_call_id"
            )
            return self._selected(joined, "tags", conditions)
        if not self._statuses:
            return self._selected(_calls_by("submitted_at"), "calls", [])
        if len(self._statuses) == 1:
            return self._selected(_calls_by("status"), "calls", ["calls.status = :status_0"])
        each = [
            self._selected(_calls_by("status"), "calls", [f"calls.status = {name}"], "LIMIT :among")
            for name in self._status_names
        ]
        merged = " UNION ALL ".join(f"SELECT * FROM ({one}) AS with_status_{place}" for place, one in enumerate(each))
        return f"SELECT {', '.join(self._columns)} FROM ({merged}) AS merged {_newest('merged')} {_PART}"

    @property
    def _status_names(self) -> list[str]:
        return [f":status_{place}" for place in range(len(self._statuses))]

    def _selected(self, source: str, ranged: str, conditions: Sequence[str], part: str = "") -> str:
        """The calls in the time range, of the tenant or of all, after the previous page. `ranged` is the table whose index
        has the range."""
        wanted = self._wanted
        where = [f"{ranged}.tenant_id = :tenant"] * self._one_tenant + [*conditions]
        if wanted.submitted_from is not None:
            where.append(f"{ranged}.submitted_at >= :from_at")
        if wanted.submitted_to is not None:
            where.append(f"{ranged}.submitted_at < :to_at")
        if wanted.before is not None:
            where.append(f"({ranged}.submitted_at, {ranged}.service_call_id) < (:before_at, :before_id)")
        columns = ", ".join(f"calls.{name}" for name in self._columns)
        condition = f"WHERE {' AND '.join(where)} " if where else ""
        return f"SELECT {columns} FROM {source} {condition}{_newest(ranged)} {part or _PART}"


def _of_tenants(tenants: Sequence[str]) -> list[str]:
    """The condition for the calls of these tenants. No list is empty in SQL; no tenant has an empty id."""
    names = [f":tenant_{place}" for place in range(len(tenants))]
    return [f"tenant_id IN ({', '.join(names) or repr('')})"]


def of_request(tenants: tuple[str, ...] | None) -> Query:
    """The first `most` calls with a correlation id."""
    conditions = ["correlation_id = :correlation", *(_of_tenants(tenants) if tenants is not None else [])]
    return _query(
        f"SELECT {', '.join(_COLUMNS)} FROM {_calls_by('correlation_id')} WHERE {' AND '.join(conditions)} LIMIT :most",
        _COLUMNS,
    )


def counts_of(tenants: Tenants) -> Query:
    """How many calls have each status: of one tenant at most `most` of each, of several among the first `most` of all."""
    if isinstance(tenants, str):
        condition = "tenant_id = :tenant AND status = "
        each = [
            f"SELECT '{status}' AS status, count(*) AS number FROM "
            f"(SELECT 1 FROM {_calls_by('status')} WHERE {condition}'{status}' LIMIT :most) AS with_{status}"
            for status in CallStatus
        ]
        return Query(" UNION ALL ".join(each), results=("status", "number"))
    where = f"WHERE {' AND '.join(_of_tenants(tenants))} " if tenants is not None else ""
    newest = f"SELECT tenant_id, status FROM {_calls_by('newest')} {_newest('calls')} LIMIT :most"
    return _query(
        f"SELECT status, count(*) AS number FROM ({newest}) AS newest {where}GROUP BY status", ("status", "number")
    )


_PART = "LIMIT :most OFFSET :skipped"


def _calls_by(index: str) -> str:
    """The calls along an index. SQLite's planner would take another one that begins alike, and pass over many rows."""
    return f"service_calls AS calls INDEXED BY idx_service_calls_{index}"


def _newest(table: str) -> str:
    return f"ORDER BY {table}.submitted_at DESC, {table}.service_call_id DESC"


def _tagged(table: str, place: int) -> str:
    other = f"other_{place}"
    return (
        f"EXISTS (SELECT 1 FROM service_call_tags AS {other} WHERE {other}.tenant_id = {table}.tenant_id "
        f"AND {other}.service_call_id = {table}.service_call_id AND {other}.tag = :tag_{place})"
    )


def _containing(text: str) -> str:
    """The pattern of LIKE for texts that contain this one; `/` escapes."""
    return f"%{text.replace('/', '//').replace('%', '/%').replace('_', '/_')}%"


# ---------------------------------------------------------------------- failures


@lru_cache(maxsize=8)
def causes_of(*, one: bool, behind: bool) -> Query:
    """The first `most` failures since an instant, behind a place or from the newest one, of one tenant or of all: from an
    index that has all of it."""
    where = ["tenant_id = :tenant"] * one + ["failure IS NOT NULL", "finished_at >= :since_at"]
    place = _PLACED[:2] if one else _PLACED
    if behind:
        values = (":before_at", ":before_id", ":before_tenant")[: len(place)]
        where.append(f"({', '.join(place)}) < ({', '.join(values)})")
    newest = ", ".join(f"{name} DESC" for name in place)
    index = f"idx_service_calls_{'failures' if one else 'all_failures'}"
    return Query(
        f"SELECT {', '.join(_PLACED)}, failure FROM service_calls AS calls INDEXED BY {index} "
        f"WHERE {' AND '.join(where)} ORDER BY {newest} LIMIT :most",
        results=(*_PLACED, "failure"),
    )


# ---------------------------------------------------------------------- the port


class SqlCallQueries:
    """The port CallQueries."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, key: CallKey) -> CallRecord | None:
        records = await self._database.read(lambda session: _records(session, FIND, tenant=key[0], call=key[1]))
        return records[0] if records else None

    async def find_many(self, keys: Sequence[CallKey]) -> list[CallRecord]:
        return await self._database.read(lambda session: _records(session, FIND_MANY, keys))

    async def page(self, wanted: CallFilter) -> list[CallRecord]:
        asked = PageQuery(wanted)
        values = asked.values | part_of(wanted.limit)
        return await self._database.read(lambda session: _records(session, asked.page, **values))

    async def search(self, wanted: CallFilter) -> SearchResult:
        asked, searched = PageQuery(wanted, SEARCHED), PageQuery(wanted, _PLACE)
        last = part_of(1, after=SEARCHED_MAX - 1)

        async def work(session: Session) -> SearchResult:
            part = part_of(wanted.limit, among=SEARCHED_MAX)
            keys = await asked.search.fetch(session, **asked.values, **part)
            reached = None
            if len(keys) < wanted.limit and (row := await searched.page.fetch(session, **searched.values, **last)):
                reached = PagePosition(row[0][2], row[0][1])
            records = await _records(session, FIND_MANY, [key[:2] for key in keys])
            by_key = {(record.tenant_id, record.service_call_id): record for record in records}
            return SearchResult([by_key[key[0], key[1]] for key in keys], reached)

        return await self._database.read(work)

    async def of_request(self, correlation_id: str, tenants: tuple[str, ...] | None, limit: int) -> list[CallRecord]:
        values: dict[str, Any] = {f"tenant_{place}": tenant for place, tenant in enumerate(tenants or ())}
        return await self._database.read(
            lambda session: _records(session, of_request(tenants), correlation=correlation_id, most=limit, **values)
        )

    async def counts(self, tenants: Tenants, most: int) -> Mapping[str, tuple[int, bool]]:
        among = () if tenants is None or isinstance(tenants, str) else tenants
        values: dict[str, Any] = {f"tenant_{place}": tenant for place, tenant in enumerate(among)}
        one = isinstance(tenants, str)
        values |= {"tenant": tenants, "most": most + 1} if one else {"most": SEARCHED_MAX}
        query, every = counts_of(tenants), counts_of(None)

        async def work(session: Session) -> Mapping[str, tuple[int, bool]]:
            counted: dict[str, int] = dict(await query.fetch(session, **values))
            if one:
                return {
                    status: (min(counted.get(status, 0), most), counted.get(status, 0) > most) for status in CallStatus
                }
            looked_at = sum(number for _, number in await every.fetch(session, most=SEARCHED_MAX))
            return {status: (counted.get(status, 0), looked_at >= SEARCHED_MAX) for status in CallStatus}

        return await self._database.read(work)

    async def causes(
        self, tenants: Tenants, since_us: int, before: CallFailurePlace | None, limit: int
    ) -> list[tuple[CallFailurePlace, str]]:
        query = causes_of(one=isinstance(tenants, str), behind=before is not None)
        values: dict[str, Any] = {"since_at": since_us, "most": limit}
        values |= {"tenant": tenants} if isinstance(tenants, str) else {}
        if before is not None:
            values |= {"before_at": before.failed_at, "before_id": before.service_call_id}
            values |= {"before_tenant": before.tenant_id}
        rows = await self._database.read(lambda session: query.fetch(session, **values))
        return [(CallFailurePlace(*row[:3]), row[3]) for row in rows]

    async def failures(self, places: Sequence[CallFailurePlace]) -> list[CallFailure]:
        # Another end of the same call is another failure.
        keys, wanted = [CallKey(place.tenant_id, place.service_call_id) for place in places], set(places)

        async def work(session: Session) -> list[CallFailure]:
            rows = await FAILURES.fetch(session, keys)
            tags = await tags_of(session, keys)
            return [
                CallFailure(tenant, call, at, failure, name, again_at or due_at, run, tags[CallKey(tenant, call)])
                for at, call, tenant, failure, name, due_at, again_at, run in rows
                if failure is not None and (at, call, tenant) in wanted
            ]

        found = await self._database.read(work)
        return sorted(found, key=lambda failure: failure.place, reverse=True)

    async def attempted_urls(self, most: int) -> list[str] | None:
        async def work(session: Session) -> list[str] | None:
            ((unfinished,),) = await UNFINISHED.fetch(session, most=SEARCHED_MAX + 1)
            if unfinished > SEARCHED_MAX:
                return None
            rows = await ATTEMPTED_URLS.fetch(session, most=most + 1)
            return None if len(rows) > most else [url for (url,) in rows if url is not None]

        return await self._database.read(work)

    async def executions(self, key: CallKey) -> list[ExecutionRecord]:
        rows = await self._database.read(lambda session: EXECUTIONS.fetch(session, tenant=key[0], call=key[1]))
        return list(map(ExecutionRecord._make, rows))

    async def trace(self, key: CallKey) -> list[TraceEntry]:
        async def work(session: Session) -> list[TraceEntry]:
            one = {"tenant": key[0], "call": key[1]}
            found = await FIND.fetch(session, **one)
            if not found:
                return []
            return trace_entries(
                found[0],
                await SCHEDULE.fetch(session, **one),
                list(map(ExecutionRecord._make, await EXECUTIONS.fetch(session, **one))),
                await MESSAGES.fetch(session, tenant=key[0], correlation=found[0][_CORRELATION]),
            )

        return await self._database.read(work)


def part_of(most: int, *, after: int = 0, among: int | None = None) -> dict[str, int]:
    """Which of the calls that match a page has: `most` after the first `after`. It reads at most `among`."""
    return {"most": most, "skipped": after, "among": after + most if among is None else among}


async def _records(session: Session, query: Query, given: Sequence[Row] = (), **values: Any) -> list[CallRecord]:
    """The calls that a query finds, with their tags."""
    rows = await query.fetch(session, given, **values)
    tags = await tags_of(session, [CallKey(row[0], row[1]) for row in rows])
    return [_record(row, tags[CallKey(row[0], row[1])]) for row in rows]


def _record(row: Row, tags: tuple[str, ...]) -> CallRecord:
    record = CallRecord._make((*row[:_TAGS], tags, *row[_TAGS:]))
    return record if record.status == CallStatus.RETRYING else record._replace(next_attempt_at=None)


# ---------------------------------------------------------------------- traces


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
    return TraceEntry(at, "service_calls", status, call_id, None, detail)


def _schedule_entry(row: Row, call_id: str, last_of: dict[str, int]) -> TraceEntry:
    registered_at, state, due_at, reached_at = row
    at = max(reached_at or registered_at, last_of.get("ScheduleTimer", 0))
    detail = _detail(registeredAt=_text(registered_at), dueAt=_text(due_at), reachedAt=_text(reached_at))
    return TraceEntry(at, "timer_schedules", state, call_id, None, detail)


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
    return TraceEntry(at, "http_execution_log", name, row.execution_id, None, detail)


def _message_entry(row: Row) -> TraceEntry:
    """Without the payload, which may contain secrets."""
    timestamp_ms, name, id_, causation_id, number, published_at, suspended_at, attempts, last_error = row
    detail = _detail(
        number=number,
        publishedAt=_text(published_at),
        suspendedAt=_text(suspended_at),
        failedAttempts=attempts or None,
        lastError=last_error,
    )
    return TraceEntry(timestamp_ms * _MS, MESSAGE, name, id_, causation_id, detail)


def _text(instant_us: int | None) -> str | None:
    return None if instant_us is None else format_instant(instant_us)


def _detail(**values: Any) -> dict[str, Any]:
    """The members that have a value."""
    return {name: value for name, value in values.items() if value is not None}
