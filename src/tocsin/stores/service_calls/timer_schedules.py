"""The timer module's table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    null,
    select,
    text,
    true,
    update,
)

from tocsin.service_calls.messages import CallKey
from tocsin.service_calls.timer.ports import TimerEntry
from tocsin.stores.service_calls.backend import Database
from tocsin.stores.service_calls.statements import Batch, Given, Query, fields
from tocsin.stores.service_calls.tables import KEY, service_calls, timer_schedules
from tocsin.stores.service_calls.types import Instant

#: To find tenants with due schedules, this many rows per tenant are read, the earliest first. A longer backlog of few
#: tenants is processed before other tenants are found.
ROWS_PER_TENANT = 10

_waits = text("timer_schedules.state = 'Scheduled'")
_schedules = timer_schedules.c
#: They have the names of the fields.
_COLUMNS = [_schedules[name] for name in TimerEntry._fields]
_MOST = bindparam("most", type_=Integer())
_NOW = bindparam("now", type_=Instant())


def call_exists(given: Given) -> ColumnElement[bool]:
    """The condition that the service call of a given row exists."""
    return exists(select(1).select_from(service_calls).where(*given.same(service_calls, *KEY)))


def _schedule(given: Given) -> object:
    insert = given.insert(timer_schedules, where=call_exists(given))
    return insert.on_conflict_do_update(
        index_elements=KEY,
        set_={
            "due_at": insert.excluded.due_at,
            "correlation_id": insert.excluded.correlation_id,
            "state": text("'Scheduled'"),
            "reached_at": null(),
        },
        where=_schedules.due_at < insert.excluded.due_at,
    )


SCHEDULE = Batch(
    timer_schedules, fields(timer_schedules, *KEY, "correlation_id", "due_at", "registered_at"), _schedule, key=KEY
)
DELETE = Query(lambda given: delete(timer_schedules).where(given.names(timer_schedules)), fields(timer_schedules, *KEY))
_FIRED = (*KEY, "due_at")
MARK_FIRED = Query(
    lambda given: (
        update(timer_schedules)
        # Not `=`: a planner without statistics might prefer the index by state.
        .where(given.names(timer_schedules, *_FIRED), _schedules.state.is_not_distinct_from("Scheduled"))
        .values(state=text("'Reached'"), reached_at=bindparam("moment", type_=Instant()))
    ),
    fields(timer_schedules, *_FIRED),
)
#: The lower bound is for SQLite's planner: without one it may read and sort all waiting schedules.
NEXT_DUE_AT = Query(
    select(_schedules.due_at)
    .where(_waits, _schedules.due_at > bindparam("after", type_=Instant()))
    .order_by(_schedules.due_at)
    .limit(literal_column("1"))
)


_earliest = (
    select(_schedules.tenant_id, _schedules.due_at)
    .where(_waits, _schedules.due_at >= bindparam("from", type_=Instant()), _schedules.due_at <= _NOW)
    .order_by(_schedules.due_at)
    .limit(bindparam("among", type_=Integer()))
    .subquery("earliest")
)
DUE_TENANTS = Query(
    select(_earliest.c.tenant_id)
    .group_by(_earliest.c.tenant_id)
    .order_by(func.min(_earliest.c.due_at), _earliest.c.tenant_id)
    .limit(_MOST)
)


def _find_due(given: Given) -> Select[Any]:
    """The earliest schedules of each tenant, one index range per tenant, then the earliest of all."""
    due = timer_schedules.alias("due")
    theirs = (
        select(*(due.c[column.name] for column in _COLUMNS))
        .where(
            due.c.tenant_id == given["tenant_id"],
            text("due.state = 'Scheduled'"),
            due.c.due_at >= bindparam("from", type_=Instant()),
            due.c.due_at <= _NOW,
        )
        .order_by(due.c.due_at)
        .limit(_MOST)
    )
    if given.postgresql:
        each = theirs.lateral("each")
        return (
            select(*(each.c[column.name] for column in _COLUMNS))
            .select_from(given.relation.join(each, true()))
            .order_by(each.c.due_at, each.c.tenant_id, each.c.service_call_id)
            .limit(_MOST)
        )
    # SQLite has no LATERAL; a correlated subquery does the same.
    calls = theirs.with_only_columns(due.c.service_call_id).correlate(given.relation)
    return (
        select(*_COLUMNS)
        .select_from(given.relation, timer_schedules)
        .where(_schedules.tenant_id == given["tenant_id"], _schedules.service_call_id.in_(calls))
        .order_by(_schedules.due_at, _schedules.tenant_id, _schedules.service_call_id)
        .limit(_MOST)
    )


FIND_DUE = Query(_find_due, fields(timer_schedules, "tenant_id"))


class SqlTimerStore:
    """The port TimerStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def schedule_timers(self, entries: Sequence[TimerEntry]) -> None:
        if entries:
            # The latest of a key counts. Rows are in key order, so that all transactions lock rows in the same order.
            latest = {entry.key: entry[:5] for entry in sorted(entries, key=lambda entry: entry.due_at)}
            rows = sorted(latest.values())
            await self._database.write(lambda connection: SCHEDULE.count(connection, rows))

    async def delete_timers(self, keys: Collection[CallKey]) -> None:
        if keys:
            await self._database.write(lambda connection: DELETE.count(connection, sorted(keys)))

    async def due_tenants(self, from_us: int, now_us: int, limit: int) -> list[str]:
        given = {"from": from_us, "now": now_us, "among": limit * ROWS_PER_TENANT, "most": limit}
        rows = await self._database.read(lambda connection: DUE_TENANTS.fetch(connection, **given))
        return [tenant_id for (tenant_id,) in rows]

    async def find_due(self, tenant_ids: Collection[str], from_us: int, now_us: int, limit: int) -> list[TimerEntry]:
        tenants = [(tenant_id,) for tenant_id in sorted(set(tenant_ids))]
        given = {"from": from_us, "now": now_us, "most": limit}
        rows = await self._database.read(lambda connection: FIND_DUE.fetch(connection, tenants, **given))
        return list(map(TimerEntry._make, rows))

    async def mark_fired(self, fired: Collection[tuple[CallKey, int]], reached_at_us: int) -> int:
        if not fired:
            return 0
        rows = sorted((*key, due_at) for key, due_at in fired)
        return await self._database.write(lambda connection: MARK_FIRED.count(connection, rows, moment=reached_at_us))

    async def next_due_at(self, after_us: int) -> int | None:
        rows = await self._database.read(lambda connection: NEXT_DUE_AT.fetch(connection, after=after_us))
        return rows[0][0] if rows else None
