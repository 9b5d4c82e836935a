"""Orchestration's tables: calls and their tags, with the outbox in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from itertools import starmap
from operator import attrgetter
from typing import Any, TypeVar

from tocsin.ports.bus import Envelope
from tocsin.service_calls.messages import CallKey
from tocsin.service_calls.ports import WAITING, Change, DamagedRow, Readable, ServiceCall, Transaction
from tocsin.stores.service_calls.outbox import Appended, SqlOutbox
from tocsin.stores.service_calls.statements import KEY, Batch, Query, Row, Session, insert, purging

T = TypeVar("T")

#: The columns of a call by its fields, in their order.
_COLUMNS = {
    field: "outcome_meta" if field == "outcome" else field for field in ServiceCall.__struct_fields__ if field != "tags"
}
_ALL = tuple(_COLUMNS.values())
_row = attrgetter(*_COLUMNS)

_IS_GIVEN = "(tenant_id, service_call_id) IN (SELECT given.tenant_id, given.service_call_id FROM GIVEN)"
_SAME = "{0}.tenant_id = given.tenant_id AND {0}.service_call_id = given.service_call_id"
# Every transaction locks rows in key order, so that no two wait for each other.
_LOCKED = "ORDER BY tenant_id, service_call_id FOR NO KEY UPDATE"

LOAD = Query(f"SELECT {', '.join(_ALL)} FROM service_calls WHERE {_IS_GIVEN} {_LOCKED}", given=KEY, results=_ALL)
FIND_BY_IDEMPOTENCY_KEY = Query(
    f"SELECT {', '.join(_ALL)} FROM service_calls WHERE (tenant_id, idempotency_key) IN "
    f"(SELECT given.tenant_id, given.idempotency_key FROM GIVEN) AND idempotency_key IS NOT NULL {_LOCKED}",
    given=("tenant_id", "idempotency_key"),
    results=_ALL,
)
_UNLESS_EXISTS = " WHERE true ON CONFLICT DO NOTHING"
INSERT = insert("service_calls", _ALL, key=KEY, more=_UNLESS_EXISTS)

#: Fields that never change.
_FIXED = (
    *KEY,
    "name",
    "submitted_at",
    "request_spec",
    "correlation_id",
    "fingerprint",
    "idempotency_key",
    "retry_policy",
    "traceparent",
    "hooks",
    "flow_key",
)
_CHANGED = {field: name for field, name in _COLUMNS.items() if field not in _FIXED}
_after, _before = attrgetter(*KEY, *_CHANGED), attrgetter("status", "execution_id")

CHANGE = Batch(
    f"UPDATE service_calls SET {', '.join(f'{name} = given.{name}' for name in _CHANGED.values())} FROM GIVEN "
    f"WHERE {_SAME.format('service_calls')} "
    # Not `=`: a planner without statistics might prefer the index by status.
    "AND service_calls.status IS NOT DISTINCT FROM given.status_before "
    "AND service_calls.execution_id IS NOT DISTINCT FROM given.execution_id_before",
    table="service_calls",
    given=(*KEY, *_CHANGED.values(), "status_before", "execution_id_before"),
    key=KEY,
)
# Not plain conditions on the status: a planner without statistics might prefer its index.
_WAITS = " OR ".join(f"status IS NOT DISTINCT FROM '{status.value}'" for status in sorted(WAITING))
DELETE_WAITING = Query(
    f"DELETE FROM service_calls WHERE {_IS_GIVEN} AND ({_WAITS}) RETURNING tenant_id, service_call_id", given=KEY
)
TAGS = Query(
    "SELECT tags.tenant_id, tags.service_call_id, tags.tag "
    # A join, not a list: with a list SQLite might use only the tenant and read all of its tags.
    f"FROM GIVEN CROSS JOIN service_call_tags AS tags WHERE {_SAME.format('tags')} "
    "ORDER BY tags.tenant_id, tags.service_call_id, tags.tag",
    given=KEY,
)
_TAG = (*KEY, "tag", "submitted_at")
#: For a call that was just inserted, whose submission time is known.
INSERT_TAGS = insert("service_call_tags", _TAG, key=(*KEY, "tag"), more=_UNLESS_EXISTS)
SUBMITTED_AT = Query(
    f"SELECT tenant_id, service_call_id, submitted_at FROM service_calls WHERE {_IS_GIVEN} "
    "ORDER BY tenant_id, service_call_id FOR KEY SHARE",
    given=KEY,
    results=(*KEY, "submitted_at"),
)
REMOVE_TAGS = Query(
    "DELETE FROM service_call_tags WHERE (tenant_id, service_call_id, tag) IN "
    "(SELECT given.tenant_id, given.service_call_id, given.tag FROM GIVEN)",
    given=(*KEY, "tag"),
)
TO_WATCH = Query(
    f"SELECT {', '.join(_ALL)} FROM service_calls WHERE watch_at IS NOT NULL AND watch_at <= :now_at "
    # Locked rows are being handled. Waiting for them, in this order, could deadlock.
    "ORDER BY watch_at LIMIT :most FOR NO KEY UPDATE SKIP LOCKED",
    results=_ALL,
)
POSTPONE = Query(
    f"UPDATE service_calls SET watch_at = :watch_at WHERE {_IS_GIVEN} AND watch_at IS NOT NULL",
    given=KEY,
)
PURGE = purging(
    "DELETE FROM service_calls WHERE (tenant_id, service_call_id) IN (SELECT tenant_id, service_call_id FROM service_calls "
    "WHERE finished_at IS NOT NULL AND finished_at < BEFORE ORDER BY finished_at LIMIT :most FOR UPDATE SKIP LOCKED)"
)


async def tags_of(session: Session, keys: Collection[CallKey]) -> dict[CallKey, tuple[str, ...]]:
    """The tags of each call, sorted."""
    found: dict[CallKey, list[str]] = {key: [] for key in keys}
    for tenant_id, service_call_id, tag in await TAGS.fetch(session, sorted(found)):
        found[CallKey(tenant_id, service_call_id)].append(tag)
    return {key: tuple(tags) for key, tags in found.items()}


def _change_row(change: Change) -> Row:
    return (*_after(change.after), *_before(change.before))


def _rounds(changes: Sequence[Change]) -> Iterable[list[Change]]:
    """Splits the changes into rounds in which no call occurs twice; the changes of each call keep their order."""
    rounds: list[dict[CallKey, Change]] = [{}]
    of: dict[CallKey, int] = {}
    for change in changes:
        key = change.after.key
        place = of[key] = of.get(key, -1) + 1
        if place == len(rounds):
            rounds.append({})
        rounds[place][key] = change
    return ([round_[key] for key in sorted(round_)] for round_ in rounds)


class SqlTransaction:
    """The port Transaction."""

    def __init__(self, session: Session, appended: Appended) -> None:
        self._session = session
        self._appended = appended

    async def load(self, keys: Collection[CallKey]) -> dict[CallKey, ServiceCall]:
        return {
            CallKey(row[0], row[1]): ServiceCall(*row) for row in await LOAD.fetch(self._session, sorted(set(keys)))
        }

    async def find_by_idempotency_key(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], ServiceCall]:
        calls = starmap(ServiceCall, await FIND_BY_IDEMPOTENCY_KEY.fetch(self._session, sorted(set(keys))))
        return {(call.tenant_id, call.idempotency_key or ""): call for call in calls}

    async def insert(self, calls: Sequence[ServiceCall]) -> set[CallKey]:
        first = {call.key: call for call in reversed(calls)}
        rows = [_row(first[key]) for key in sorted(first)]
        added = {CallKey._make(key) for key in await INSERT.run(self._session, rows)}
        tags = sorted({(*key, tag, first[key].submitted_at) for key in added for tag in first[key].tags})
        await INSERT_TAGS.run(self._session, tags)
        return added

    async def change(self, changes: Sequence[Change]) -> set[CallKey]:
        written: set[CallKey] = set()
        for round_ in _rounds(changes):
            written |= {CallKey._make(key) for key in await CHANGE.run(self._session, list(map(_change_row, round_)))}
        return written

    async def delete_waiting(self, keys: Collection[CallKey]) -> set[CallKey]:
        return {CallKey._make(key) for key in await DELETE_WAITING.fetch(self._session, sorted(set(keys)))}

    async def tags(self, keys: Collection[CallKey]) -> dict[CallKey, tuple[str, ...]]:
        return await tags_of(self._session, keys)

    async def add_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        rows = await SUBMITTED_AT.fetch(self._session, sorted({key for key, _ in tags}))
        submitted_at = {CallKey(tenant_id, service_call_id): moment for tenant_id, service_call_id, moment in rows}
        present = sorted({(*key, tag, submitted_at[key]) for key, tag in tags if key in submitted_at})
        await INSERT_TAGS.run(self._session, present)

    async def remove_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        await REMOVE_TAGS.count(self._session, sorted({(*key, tag) for key, tag in tags}))

    async def to_watch(self, now_us: int, limit: int) -> Readable[ServiceCall]:
        rows, damaged = await TO_WATCH.fetch_decodable(self._session, now_at=now_us, most=limit)
        return Readable(
            list(starmap(ServiceCall, rows)),
            [DamagedRow._make(("service_calls", *row.stored[:2], "", row.error)) for row in damaged],
        )

    async def postpone(self, keys: Collection[CallKey], watch_at_us: int) -> None:
        await POSTPONE.count(self._session, sorted(set(keys)), watch_at=watch_at_us)

    async def purge(self, now_us: int, kept_us: int, limit: int) -> int:
        return await PURGE.count(self._session, before_at=now_us - kept_us, kept_us=kept_us, most=limit)

    async def append(self, envelopes: Sequence[Envelope]) -> None:
        await self._appended.append(self._session, envelopes)


class SqlServiceCalls:
    """The port ServiceCallStore."""

    def __init__(self, outbox: SqlOutbox) -> None:
        self._outbox = outbox

    async def transact(self, work: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        return await self._outbox.write(lambda session, appended: work(SqlTransaction(session, appended)))
