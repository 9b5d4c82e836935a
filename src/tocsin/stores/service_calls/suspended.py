"""The execution module's orders that wait for their flow or their credential."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.ports.bus import Envelope
from tocsin.service_calls.ports import SuspendedOrder
from tocsin.stores.service_calls.outbox import Appended, SqlOutbox
from tocsin.stores.service_calls.statements import KEY, Batch, Database, Query, Session, insert
from tocsin.stores.service_calls.timer_schedules import CALL_EXISTS

_KEY = (*KEY, "execution_id")
# The columns have the names of the fields.
_COLUMNS = SuspendedOrder._fields
_IS_LOGGED = "EXISTS (SELECT 1 FROM http_execution_log AS logged WHERE {})".format(
    " AND ".join(f"logged.{name} = given.{name}" for name in _KEY)
)

SUSPEND = insert(
    "suspended_executions",
    _COLUMNS,
    key=_KEY,
    more=f" WHERE {CALL_EXISTS} AND NOT {_IS_LOGGED} ON CONFLICT DO NOTHING",
)
FIRST = Query(
    f"SELECT {', '.join(_COLUMNS)} FROM suspended_executions WHERE place = :place ORDER BY execution_id LIMIT :most",
    results=_COLUMNS,
)
PLACES = Query(
    "SELECT place, count(*) FROM suspended_executions WHERE place > :after GROUP BY place ORDER BY place LIMIT :most"
)
UNREPORTED = Query(
    f"SELECT {', '.join(_COLUMNS)} FROM suspended_executions WHERE reported_at IS NULL AND suspended_at < :before_at "
    "ORDER BY suspended_at LIMIT :most",
    results=_COLUMNS,
)
REPORT = Batch(
    "UPDATE suspended_executions SET reported_at = given.reported_at FROM GIVEN WHERE "
    + " AND ".join(f"suspended_executions.{name} = given.{name}" for name in _KEY)
    + " AND suspended_executions.reported_at IS NULL",
    table="suspended_executions",
    given=(*_KEY, "reported_at"),
    key=_KEY,
)
DELETE_SUSPENDED = Query(
    f"DELETE FROM suspended_executions WHERE ({', '.join(_KEY)}) IN "
    f"(SELECT {', '.join(f'given.{name}' for name in _KEY)} FROM GIVEN)",
    given=_KEY,
)


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

    async def unreported(self, before_us: int, limit: int) -> list[SuspendedOrder]:
        rows = await self._database.read(lambda session: UNREPORTED.fetch(session, before_at=before_us, most=limit))
        return list(map(SuspendedOrder._make, rows))

    async def report(self, orders: Sequence[tuple[SuspendedOrder, Envelope]], at_us: int) -> None:
        events = {order[: len(_KEY)]: event for order, event in orders}
        rows = [(*key, at_us) for key in sorted(events)]

        async def work(session: Session, appended: Appended) -> None:
            keys = await REPORT.run(session, rows)
            await appended.append(session, [events[key] for key in sorted(keys)])

        if rows:
            await self._outbox.write(work)

    async def first(self, place: str, limit: int) -> list[SuspendedOrder]:
        rows = await self._database.read(lambda session: FIRST.fetch(session, place=place, most=limit))
        return list(map(SuspendedOrder._make, rows))

    async def places(self, after: str, limit: int) -> list[tuple[str, int]]:
        rows = await self._database.read(lambda session: PLACES.fetch(session, after=after, most=limit))
        return [(key, count) for key, count in rows]
