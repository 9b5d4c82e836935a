"""The execution module's table, with the outbox in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, Integer, bindparam, select, text, update

from tocsin.ports.bus import Envelope
from tocsin.service_calls.execution.ports import ExecutionEnd, ExecutionStart, LoggedExecution
from tocsin.stores.service_calls.backend import Database
from tocsin.stores.service_calls.outbox import Appended, SqlOutbox
from tocsin.stores.service_calls.statements import Batch, Given, Query, Row, fields
from tocsin.stores.service_calls.tables import KEY, http_execution_log
from tocsin.stores.service_calls.timer_schedules import call_exists

_log = http_execution_log.c
_KEY = (*KEY, "execution_id")
# The columns have the names of the fields.
_STARTED, _ENDED = ExecutionStart._fields, ExecutionEnd._fields[len(_KEY) :]

BEGIN = Batch(
    http_execution_log,
    fields(http_execution_log, *_STARTED),
    lambda given: given.insert(http_execution_log, where=call_exists(given)).on_conflict_do_nothing(),
    key=_KEY,
)


def _finish(given: Given) -> object:
    return (
        update(http_execution_log)
        .where(*given.same(http_execution_log, *_KEY), _log.finished_at.is_(None))
        .values({name: given[name] for name in _ENDED})
    )


FINISH = Batch(http_execution_log, fields(http_execution_log, *_KEY, *_ENDED), _finish, key=_KEY)
UNFINISHED = Query(
    select(*(_log[name] for name in _STARTED))
    .where(text("finished_at IS NULL"))
    .order_by(_log.started_at)
    .limit(bindparam("most", type_=Integer()))
)
FIND = Query(
    lambda given: select(*(_log[name] for name in _STARTED + _ENDED)).where(given.names(http_execution_log)),
    fields(http_execution_log, *_KEY),
)


class SqlExecutionLog:
    """The port ExecutionLog."""

    def __init__(self, database: Database, outbox: SqlOutbox) -> None:
        self._database = database
        self._outbox = outbox

    async def begin(self, starts: Sequence[tuple[ExecutionStart, Envelope]]) -> set[str]:
        return await self._write(BEGIN, starts)

    async def finish(self, ends: Sequence[tuple[ExecutionEnd, Envelope]]) -> set[str]:
        return await self._write(FINISH, ends)

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
        return list(map(ExecutionStart._make, rows))

    async def find(self, keys: Collection[tuple[str, str, str]]) -> dict[str, LoggedExecution]:
        ordered = sorted(keys)
        rows = await self._database.read(lambda connection: FIND.fetch(connection, ordered)) if ordered else []
        return {row[2]: _logged(row[: len(_STARTED)], row[len(_STARTED) :]) for row in rows}

    async def report(self, events: Sequence[Envelope]) -> None:
        await self._outbox.write(lambda connection, appended: appended.append(connection, events))


def _logged(started: Row, ended: Row) -> LoggedExecution:
    start = ExecutionStart._make(started)
    finished_at = ended[0]
    return LoggedExecution(start, None if finished_at is None else ExecutionEnd._make((*started[: len(_KEY)], *ended)))
