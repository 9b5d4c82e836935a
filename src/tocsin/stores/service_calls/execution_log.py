"""The execution module's table, with the outbox in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tocsin.ports.bus import Envelope
from tocsin.service_calls.ports import ExecutionEnd, ExecutionStart, LoggedExecution
from tocsin.stores.service_calls.outbox import Appended, SqlOutbox
from tocsin.stores.service_calls.statements import KEY, Batch, Database, Query, Row, Session, insert
from tocsin.stores.service_calls.suspended import DELETE_SUSPENDED
from tocsin.stores.service_calls.timer_schedules import CALL_EXISTS

_KEY = (*KEY, "execution_id")
# The columns have the names of the fields.
_STARTED, _ENDED = ExecutionStart._fields, ExecutionEnd._fields[len(_KEY) :]
_LOGGED = (*_STARTED, *_ENDED)
_SAME = " AND ".join(f"http_execution_log.{name} = given.{name}" for name in _KEY)

BEGIN = insert("http_execution_log", _STARTED, key=_KEY, more=f" WHERE {CALL_EXISTS} ON CONFLICT DO NOTHING")
FINISH = Batch(
    f"UPDATE http_execution_log SET {', '.join(f'{name} = given.{name}' for name in _ENDED)} FROM GIVEN "
    f"WHERE {_SAME} AND http_execution_log.finished_at IS NULL",
    table="http_execution_log",
    given=(*_KEY, *_ENDED),
    key=_KEY,
)
UNFINISHED = Query(
    f"SELECT {', '.join(_STARTED)} FROM http_execution_log WHERE finished_at IS NULL ORDER BY started_at LIMIT :most",
    results=_STARTED,
)
FIND = Query(
    f"SELECT {', '.join(_LOGGED)} FROM http_execution_log WHERE ({', '.join(_KEY)}) IN "
    f"(SELECT {', '.join(f'given.{name}' for name in _KEY)} FROM GIVEN)",
    given=_KEY,
    results=_LOGGED,
)


class SqlExecutionLog:
    """The port ExecutionLog."""

    def __init__(self, database: Database, outbox: SqlOutbox) -> None:
        self._database = database
        self._outbox = outbox

    async def begin(
        self, starts: Sequence[tuple[ExecutionStart, Envelope]], suspended: Collection[tuple[str, str, str]] = ()
    ) -> set[str]:
        return await self._write(BEGIN, starts, sorted(suspended))

    async def finish(self, ends: Sequence[tuple[ExecutionEnd, Envelope]]) -> set[str]:
        return await self._write(FINISH, ends)

    async def _write(
        self, batch: Batch, rows: Sequence[tuple[Row, Envelope]], suspended: Sequence[Row] = ()
    ) -> set[str]:
        # The first row of a key counts. Rows are in key order, so that all transactions lock rows in the same order.
        by_key = {row[: len(_KEY)]: (row, event) for row, event in reversed(rows)}
        ordered = [by_key[key][0] for key in sorted(by_key)]

        async def work(session: Session, appended: Appended) -> set[str]:
            await DELETE_SUSPENDED.count(session, suspended)
            keys = await batch.run(session, ordered)
            await appended.append(session, [event for key, (_, event) in reversed(by_key.items()) if key in keys])
            return {execution_id for _, _, execution_id in keys}

        return await self._outbox.write(work) if rows else set()

    async def unfinished(self, limit: int) -> list[ExecutionStart]:
        rows = await self._database.read(lambda session: UNFINISHED.fetch(session, most=limit))
        return list(map(ExecutionStart._make, rows))

    async def find(self, keys: Collection[tuple[str, str, str]]) -> dict[str, LoggedExecution]:
        ordered = sorted(keys)
        rows = await self._database.read(lambda session: FIND.fetch(session, ordered)) if ordered else []
        return {row[2]: _logged(row[: len(_STARTED)], row[len(_STARTED) :]) for row in rows}

    async def report(self, events: Sequence[Envelope]) -> None:
        await self._outbox.write(lambda session, appended: appended.append(session, events))


def _logged(started: Row, ended: Row) -> LoggedExecution:
    start = ExecutionStart._make(started)
    finished_at = ended[0]
    return LoggedExecution(start, None if finished_at is None else ExecutionEnd._make((*started[: len(_KEY)], *ended)))
