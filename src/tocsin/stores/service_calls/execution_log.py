"""The execution module's table, with the outbox in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
from sqlalchemy import Connection, Integer, Text, bindparam, select, text, update

from tocsin.model.envelope import Envelope
from tocsin.service_calls.execution.ports import ExecutionEnd, ExecutionStart, LoggedExecution
from tocsin.stores.service_calls.backend import Database
from tocsin.stores.service_calls.outbox import Appended, SqlOutbox
from tocsin.stores.service_calls.statements import Batch, Fields, Given, Query, Row
from tocsin.stores.service_calls.tables import http_execution_log
from tocsin.stores.service_calls.timer_schedules import call_exists
from tocsin.stores.service_calls.types import FreeText, Instant

_log = http_execution_log.c
_KEY: Fields = {"tenant_id": Text(), "service_call_id": Text(), "execution_id": Text()}
_BEGUN: Fields = {
    **_KEY,
    "correlation_id": Text(),
    "started_at": Instant(),
    "request_url": FreeText(),
    "request_method": Text(),
    "request_headers": Text(),
    "request_body": FreeText(),
}
_FINISHED: Fields = {
    **_KEY,
    "finished_at": Instant(),
    "response_status": Text(),
    "response_headers": Text(),
    "response_body": FreeText(),
    "error_message": FreeText(),
}

BEGIN = Batch(
    http_execution_log,
    _BEGUN,
    lambda given: given.insert(http_execution_log, *_BEGUN, where=call_exists(given)).on_conflict_do_nothing(),
    key=tuple(_KEY),
)


def _finish(given: Given) -> object:
    ends = [name for name in _FINISHED if name not in _KEY]
    return (
        update(http_execution_log)
        .where(*given.same(http_execution_log, *_KEY), _log.finished_at.is_(None))
        .values({name: given[name] for name in ends})
    )


FINISH = Batch(http_execution_log, _FINISHED, _finish, key=tuple(_KEY))
UNFINISHED = Query(
    {},
    lambda given: (
        select(*(_log[name] for name in _BEGUN))
        .where(text("finished_at IS NULL"))
        .order_by(_log.started_at)
        .limit(bindparam("most", type_=Integer()))
    ),
    {"most": Integer()},
)

_FOUND = (*_BEGUN, *(name for name in _FINISHED if name not in _KEY))
FIND = Query(_KEY, lambda given: select(*(_log[name] for name in _FOUND)).where(given.names(http_execution_log, *_KEY)))

_encode = msgspec.json.Encoder().encode
_headers = msgspec.json.Decoder(dict[str, str]).decode


class SqlExecutionLog:
    """The port ExecutionLog."""

    def __init__(self, database: Database, outbox: SqlOutbox) -> None:
        self._database = database
        self._outbox = outbox

    async def begin(self, starts: Sequence[tuple[ExecutionStart, Envelope]]) -> set[str]:
        return await self._write(BEGIN, [(_start_row(start), event) for start, event in starts])

    async def finish(self, ends: Sequence[tuple[ExecutionEnd, Envelope]]) -> set[str]:
        return await self._write(FINISH, [(_end_row(end), event) for end, event in ends])

    async def _write(self, batch: Batch, rows: Sequence[tuple[Row, Envelope]]) -> set[str]:
        # The first row of a key counts. Rows are in key order, so that all transactions lock rows in the same order.
        by_key = {row[: len(_KEY)]: (row, event) for row, event in reversed(rows)}
        ordered = [by_key[key][0] for key in sorted(by_key)]

        def work(connection: Connection, appended: Appended) -> set[str]:
            keys = batch.run(connection, ordered)
            appended.append(connection, [event for key, (_, event) in reversed(by_key.items()) if key in keys])
            return {execution_id for _, _, execution_id in keys}

        return await self._outbox.write(work) if rows else set()

    async def unfinished(self, limit: int) -> list[ExecutionStart]:
        rows = await self._database.read(lambda connection: UNFINISHED.fetch(connection, most=limit))
        return list(map(_start, rows))

    async def find(self, keys: Collection[tuple[str, str, str]]) -> dict[str, LoggedExecution]:
        ordered = sorted(keys)
        rows = await self._database.read(lambda connection: FIND.fetch(connection, ordered)) if ordered else []
        return {row[2]: LoggedExecution(_start(row), _end(row)) for row in rows}

    async def report(self, events: Sequence[Envelope]) -> None:
        await self._outbox.write(lambda connection, appended: appended.append(connection, events))


def _start(row: Row) -> ExecutionStart:
    return ExecutionStart._make((*row[:7], _headers(row[7]), row[8]))


def _end(row: Row) -> ExecutionEnd | None:
    finished_at, status, headers, body, error = row[len(_BEGUN) :]
    if finished_at is None:
        return None
    answered = None if status is None else int(status)
    return ExecutionEnd._make(
        (*row[:3], finished_at, answered, None if headers is None else _headers(headers), body, error)
    )


def _start_row(start: ExecutionStart) -> Row:
    return (*start[:7], _encode(start.request_headers).decode(), start.request_body)


def _end_row(end: ExecutionEnd) -> Row:
    headers = end.response_headers
    return (
        *end[:4],
        None if end.response_status is None else str(end.response_status),
        None if headers is None else _encode(headers).decode(),
        end.response_body,
        end.error_message,
    )
