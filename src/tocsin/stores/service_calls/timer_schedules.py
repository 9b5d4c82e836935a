"""The timer module's table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tocsin.service_calls.messages import CallKey
from tocsin.service_calls.ports import TimerEntry
from tocsin.stores.service_calls.statements import KEY, Database, Query, insert

#: To find tenants with due schedules, this many rows per tenant are read, the earliest first. A longer backlog of few
#: tenants is processed before other tenants are found.
ROWS_PER_TENANT = 10

#: The condition that the service call of a given row exists.
CALL_EXISTS = (
    "EXISTS (SELECT 1 FROM service_calls WHERE service_calls.tenant_id = given.tenant_id "
    "AND service_calls.service_call_id = given.service_call_id)"
)
# They have the names of the fields.
_COLUMNS = TimerEntry._fields
_SCHEDULED = (*KEY, "correlation_id", "due_at", "registered_at")
#: Whether a schedule that exists, Scheduled or Reached, gives way to the new one.
_IS_LATER = "timer_schedules.due_at < excluded.due_at"

SCHEDULE = insert(
    "timer_schedules",
    _SCHEDULED,
    key=KEY,
    more=f" WHERE {CALL_EXISTS} ON CONFLICT (tenant_id, service_call_id) DO UPDATE SET due_at = excluded.due_at, "
    f"correlation_id = excluded.correlation_id, state = 'Scheduled', reached_at = NULL WHERE {_IS_LATER}",
)
DELETE = Query(
    "DELETE FROM timer_schedules WHERE (tenant_id, service_call_id) IN "
    "(SELECT given.tenant_id, given.service_call_id FROM GIVEN)",
    given=KEY,
)
_FIRED = (*KEY, "due_at")
#: What a schedule has in common with the one that fired: a later instant may have replaced that one.
_SAME = _FIRED
MARK_FIRED = Query(
    # Not `=`: a planner without statistics might prefer the index by state.
    "UPDATE timer_schedules SET state = 'Reached', reached_at = :moment_at "
    f"WHERE ({', '.join(_SAME)}) IN (SELECT {', '.join(f'given.{name}' for name in _SAME)} FROM GIVEN) "
    "AND state IS NOT DISTINCT FROM 'Scheduled'",
    given=_FIRED,
)
#: The lower bound is for SQLite's planner: without one it may read and sort all waiting schedules.
NEXT_DUE_AT = Query(
    "SELECT due_at FROM timer_schedules WHERE state = 'Scheduled' AND due_at > :after_at ORDER BY due_at LIMIT 1",
    results=("due_at",),
)
DUE_TENANTS = Query(
    "SELECT tenant_id FROM (SELECT tenant_id, due_at FROM timer_schedules WHERE state = 'Scheduled' "
    "AND due_at >= :from_at AND due_at <= :now_at ORDER BY due_at LIMIT :among) AS earliest "
    "GROUP BY tenant_id ORDER BY min(due_at), tenant_id LIMIT :most"
)
_DUE = (
    "FROM timer_schedules AS due WHERE due.tenant_id = given.tenant_id AND due.state = 'Scheduled' "
    "AND due.due_at >= :from_at AND due.due_at <= :now_at ORDER BY due.due_at LIMIT :most"
)
#: The earliest schedules of each tenant, one index range per tenant, then the earliest of all. SQLite has no LATERAL; a
#: correlated subquery does the same.
FIND_DUE = Query(
    f"SELECT {', '.join(f'each_of.{name}' for name in _COLUMNS)} FROM GIVEN CROSS JOIN LATERAL "
    f"(SELECT {', '.join(f'due.{name}' for name in _COLUMNS)} {_DUE}) AS each_of "
    "ORDER BY each_of.due_at, each_of.tenant_id, each_of.service_call_id LIMIT :most",
    sqlite=f"SELECT {', '.join(f'timer_schedules.{name}' for name in _COLUMNS)} FROM GIVEN CROSS JOIN timer_schedules "
    "WHERE timer_schedules.tenant_id = given.tenant_id "
    f"AND timer_schedules.service_call_id IN (SELECT due.service_call_id {_DUE}) "
    "ORDER BY timer_schedules.due_at, timer_schedules.tenant_id, timer_schedules.service_call_id LIMIT :most",
    given=("tenant_id",),
    results=_COLUMNS,
)


class SqlTimerStore:
    """The port TimerStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def schedule_timers(self, entries: Sequence[TimerEntry]) -> None:
        if entries:
            # The latest of a key counts. Rows are in key order, so that all transactions lock rows in the same order.
            latest = {entry.key: entry[:5] for entry in sorted(entries, key=lambda entry: entry.due_at)}
            rows = sorted(latest.values())
            await self._database.write(lambda session: SCHEDULE.run(session, rows))

    async def delete_timers(self, keys: Collection[CallKey]) -> None:
        if keys:
            await self._database.write(lambda session: DELETE.count(session, sorted(keys)))

    async def due_tenants(self, from_us: int, now_us: int, limit: int) -> list[str]:
        given = {"from_at": from_us, "now_at": now_us, "among": limit * ROWS_PER_TENANT, "most": limit}
        rows = await self._database.read(lambda session: DUE_TENANTS.fetch(session, **given))
        return [tenant_id for (tenant_id,) in rows]

    async def find_due(self, tenant_ids: Collection[str], from_us: int, now_us: int, limit: int) -> list[TimerEntry]:
        tenants = [(tenant_id,) for tenant_id in sorted(set(tenant_ids))]
        given = {"from_at": from_us, "now_at": now_us, "most": limit}
        rows = await self._database.read(lambda session: FIND_DUE.fetch(session, tenants, **given))
        return list(map(TimerEntry._make, rows))

    async def mark_fired(self, fired: Collection[tuple[CallKey, int]], reached_at_us: int) -> int:
        if not fired:
            return 0
        rows = sorted((*key, due_at) for key, due_at in fired)
        return await self._database.write(lambda session: MARK_FIRED.count(session, rows, moment_at=reached_at_us))

    async def next_due_at(self, after_us: int) -> int | None:
        rows = await self._database.read(lambda session: NEXT_DUE_AT.fetch(session, after_at=after_us))
        return rows[0][0] if rows else None
