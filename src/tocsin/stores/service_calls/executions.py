"""The execution module's tables, with the outbox in the same transaction: the log, and the orders that wait for their flow or
their credential."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tocsin.ports.bus import Envelope
from tocsin.service_calls.ports import (
    DamagedRow,
    ExecutionEnd,
    ExecutionStart,
    LoggedExecution,
    Readable,
    SuspendedOrder,
    UnfinishedExecution,
)
from tocsin.stores.service_calls.outbox import Appended, SqlOutbox
from tocsin.stores.service_calls.statements import KEY, Batch, Database, Query, Row, Session, Undecodable, insert

_KEY = (*KEY, "execution_id")
# The columns have the names of the fields.
_UNFINISHED = UnfinishedExecution._fields
_STARTED, _ENDED = ExecutionStart._fields, ExecutionEnd._fields[len(_KEY) :]
_LOGGED = (*_STARTED, *_ENDED)
_IS_GIVEN = f"({', '.join(_KEY)}) IN (SELECT {', '.join(f'given.{name}' for name in _KEY)} FROM GIVEN)"


def _same(table: str) -> str:
    return " AND ".join(f"{table}.{name} = given.{name}" for name in _KEY)


#: The condition that the given execution is the one that was ordered last of its call. The order of another one is of a call
#: that was deleted and submitted again, or has been executed.
_IS_ORDERED = (
    "EXISTS (SELECT 1 FROM service_calls WHERE service_calls.tenant_id = given.tenant_id "
    "AND service_calls.service_call_id = given.service_call_id AND service_calls.execution_id = given.execution_id)"
)
BEGIN = insert("http_execution_log", _STARTED, key=_KEY, more=f" WHERE {_IS_ORDERED} ON CONFLICT DO NOTHING")
FINISH = Batch(
    f"UPDATE http_execution_log SET {', '.join(f'{name} = given.{name}' for name in _ENDED)} FROM GIVEN "
    f"WHERE {_same('http_execution_log')} AND http_execution_log.finished_at IS NULL",
    table="http_execution_log",
    given=(*_KEY, *_ENDED),
    key=_KEY,
)
UNFINISHED = Query(
    f"SELECT {', '.join(_UNFINISHED)} FROM http_execution_log WHERE finished_at IS NULL ORDER BY started_at LIMIT :most",
    results=_UNFINISHED,
)
FIND = Query(
    f"SELECT {', '.join(_LOGGED)} FROM http_execution_log WHERE {_IS_GIVEN}",
    given=_KEY,
    results=_LOGGED,
)

_SUSPENDED = SuspendedOrder._fields
_IS_LOGGED = f"EXISTS (SELECT 1 FROM http_execution_log AS logged WHERE {_same('logged')})"
SUSPEND = insert(
    "suspended_executions",
    _SUSPENDED,
    key=_KEY,
    more=f" WHERE {_IS_ORDERED} AND NOT {_IS_LOGGED} ON CONFLICT DO NOTHING",
)
FIRST = Query(
    f"SELECT {', '.join(_SUSPENDED)} FROM suspended_executions WHERE place = :place ORDER BY execution_id LIMIT :most",
    results=_SUSPENDED,
)
PLACES = Query(
    "SELECT place, count(*) FROM suspended_executions WHERE place > :after GROUP BY place ORDER BY place LIMIT :most"
)
UNREPORTED = Query(
    f"SELECT {', '.join(_SUSPENDED)} FROM suspended_executions WHERE reported_at IS NULL AND suspended_at < :before_at "
    "ORDER BY suspended_at LIMIT :most",
    results=_SUSPENDED,
)
REPORT = Batch(
    "UPDATE suspended_executions SET reported_at = given.reported_at FROM GIVEN "
    f"WHERE {_same('suspended_executions')} AND suspended_executions.reported_at IS NULL",
    table="suspended_executions",
    given=(*_KEY, "reported_at"),
    key=_KEY,
)
DELETE_SUSPENDED = Query(f"DELETE FROM suspended_executions WHERE {_IS_GIVEN}", given=_KEY)


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

    async def unfinished(self, limit: int) -> Readable[UnfinishedExecution]:
        rows, damaged = await self._database.read(lambda session: UNFINISHED.fetch_decodable(session, most=limit))
        return Readable(list(map(UnfinishedExecution._make, rows)), _damaged("http_execution_log", damaged))

    async def find(self, keys: Collection[tuple[str, str, str]]) -> dict[str, LoggedExecution]:
        ordered = sorted(keys)
        rows = await self._database.read(lambda session: FIND.fetch(session, ordered)) if ordered else []
        return {row[2]: _logged(row[: len(_STARTED)], row[len(_STARTED) :]) for row in rows}

    async def report(self, events: Sequence[Envelope]) -> None:
        await self._outbox.write(lambda session, appended: appended.append(session, events))


def _damaged(table: str, rows: Sequence[Undecodable]) -> list[DamagedRow]:
    return [DamagedRow._make((table, *row.stored[: len(_KEY)], row.error)) for row in rows]


def _logged(started: Row, ended: Row) -> LoggedExecution:
    start = ExecutionStart._make(started)
    finished_at = ended[0]
    return LoggedExecution(start, None if finished_at is None else ExecutionEnd._make((*started[: len(_KEY)], *ended)))


class SqlSuspendedOrders:
    """The port SuspendedOrders."""

    def __init__(self, database: Database, outbox: SqlOutbox) -> None:
        self._database = database
        self._outbox = outbox

    async def suspend(self, orders: Sequence[SuspendedOrder]) -> set[str]:
        # The first row of a key counts, and rows are in key order, as in the execution log.
        by_key = {order[: len(_KEY)]: order for order in reversed(orders)}
        rows = [by_key[key] for key in sorted(by_key)]
        keys = await self._database.write(lambda session: SUSPEND.run(session, rows)) if rows else ()
        return {execution_id for _, _, execution_id in keys}

    async def unreported(self, before_us: int, limit: int) -> Readable[SuspendedOrder]:
        return await self._orders(UNREPORTED, before_at=before_us, most=limit)

    async def report(
        self, orders: Sequence[tuple[SuspendedOrder, Envelope]], at_us: int, damaged: Collection[DamagedRow] = ()
    ) -> None:
        events = {order[: len(_KEY)]: event for order, event in orders}
        rows = [(*key, at_us) for key in sorted({*events, *(row.key for row in damaged)})]

        async def work(session: Session, appended: Appended) -> None:
            keys = await REPORT.run(session, rows)
            await appended.append(session, [events[key] for key in sorted(keys) if key in events])

        if rows:
            await self._outbox.write(work)

    async def first(self, place: str, limit: int) -> Readable[SuspendedOrder]:
        return await self._orders(FIRST, place=place, most=limit)

    async def _orders(self, query: Query, **values: object) -> Readable[SuspendedOrder]:
        rows, damaged = await self._database.read(lambda session: query.fetch_decodable(session, **values))
        return Readable(list(map(SuspendedOrder._make, rows)), _damaged("suspended_executions", damaged))

    async def places(self, after: str, limit: int) -> list[tuple[str, int]]:
        rows = await self._database.read(lambda session: PLACES.fetch(session, after=after, most=limit))
        return [(key, count) for key, count in rows]
