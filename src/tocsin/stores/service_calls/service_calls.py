"""Orchestration's tables: calls and their tags, with the outbox in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import starmap
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy import Connection, Integer, Select, bindparam, delete, or_, select, text, tuple_, type_coerce, update

from tocsin.ports.bus import Envelope
from tocsin.service_calls.messages import CallKey, CallStatus
from tocsin.service_calls.orchestration.ports import Change, Transaction
from tocsin.service_calls.orchestration.service_call import WAITING, Outcome, ServiceCall
from tocsin.stores.service_calls.outbox import Appended, SqlOutbox
from tocsin.stores.service_calls.statements import Batch, Fields, Given, Query, Row, fields
from tocsin.stores.service_calls.tables import KEY, service_call_tags, service_calls
from tocsin.stores.service_calls.types import Instant, Json, Member

T = TypeVar("T")

_calls = service_calls.c
_tags = service_call_tags.c
_KEY = fields(service_calls, *KEY)

#: The columns of a call by its fields, in their order.
_COLUMNS = {
    field: "outcome_meta" if field == "outcome" else field for field in ServiceCall.__struct_fields__ if field != "tags"
}
#: Types that only this module knows.
_KINDS: Fields = {"status": Member(CallStatus), "outcome_meta": Json(Outcome)}
_ALL = [
    type_coerce(_calls[name], _KINDS[name]).label(name) if name in _KINDS else _calls[name]
    for name in _COLUMNS.values()
]
_row = attrgetter(*_COLUMNS)


def _load(given: Given) -> Select[Any]:
    # Every transaction locks rows in key order, so that no two wait for each other.
    found = select(*_ALL).where(given.names(service_calls)).order_by(_calls.tenant_id, _calls.service_call_id)
    return found.with_for_update(key_share=True)


LOAD = Query(_load, _KEY)
FIND_BY_IDEMPOTENCY_KEY = Query(
    lambda given: _load(given).where(text("idempotency_key IS NOT NULL")),
    fields(service_calls, "tenant_id", "idempotency_key"),
)
INSERT = Batch(
    service_calls,
    {**fields(service_calls, *_COLUMNS.values()), **_KINDS},
    lambda given: given.insert(service_calls).on_conflict_do_nothing(),
    key=KEY,
)

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
)
_CHANGED = {field: name for field, name in _COLUMNS.items() if field not in _FIXED}
_after, _before = attrgetter(*KEY, *_CHANGED), attrgetter("status", "execution_id")


def _change(given: Given) -> object:
    return (
        update(service_calls)
        .where(
            *given.same(service_calls, *KEY),
            # Not `=`: a planner without statistics might prefer the index by status.
            _calls.status.is_not_distinct_from(given["status_before"]),
            _calls.execution_id.is_not_distinct_from(given["execution_id_before"]),
        )
        .values({name: given[name] for name in _CHANGED.values()})
    )


CHANGE = Batch(
    service_calls,
    {
        **fields(service_calls, *KEY, *_CHANGED.values()),
        **_KINDS,
        "status_before": _KINDS["status"],
        "execution_id_before": _KEY["tenant_id"],
    },
    _change,
    key=KEY,
)
DELETE_WAITING = Query(
    lambda given: (
        delete(service_calls)
        # Not plain conditions on the status: a planner without statistics might prefer its index.
        .where(given.names(service_calls), or_(*(_calls.status.is_not_distinct_from(s.value) for s in WAITING)))
        .returning(_calls.tenant_id, _calls.service_call_id)
    ),
    _KEY,
)
TAGS = Query(
    lambda given: (
        select(_tags.tenant_id, _tags.service_call_id, _tags.tag)
        # A join, not a list: with a list SQLite might use only the tenant and read all of its tags.
        .select_from(given.relation, service_call_tags)
        .where(*given.same(service_call_tags, *KEY))
        .order_by(_tags.tenant_id, _tags.service_call_id, _tags.tag)
    ),
    _KEY,
)
#: For a call that was just inserted, whose submission time is known.
INSERT_TAGS = Batch(
    service_call_tags,
    fields(service_call_tags, *KEY, "tag", "submitted_at"),
    lambda given: given.insert(service_call_tags).on_conflict_do_nothing(),
    key=(*KEY, "tag"),
)
SUBMITTED_AT = Query(
    lambda given: (
        select(_calls.tenant_id, _calls.service_call_id, _calls.submitted_at)
        .where(given.names(service_calls))
        .order_by(_calls.tenant_id, _calls.service_call_id)
        .with_for_update(key_share=True, read=True)
    ),
    _KEY,
)
REMOVE_TAGS = Query(
    lambda given: delete(service_call_tags).where(given.names(service_call_tags)),
    fields(service_call_tags, *KEY, "tag"),
)
_MOST = bindparam("most", type_=Integer())
TO_WATCH = Query(
    select(*_ALL)
    .where(text("watch_at IS NOT NULL"), _calls.watch_at <= bindparam("now", type_=Instant()))
    .order_by(_calls.watch_at)
    .limit(_MOST)
    # Locked rows are being handled. Waiting for them, in this order, could deadlock.
    .with_for_update(key_share=True, skip_locked=True)
)
PURGE = Query(
    delete(service_calls).where(
        tuple_(_calls.tenant_id, _calls.service_call_id).in_(
            select(_calls.tenant_id, _calls.service_call_id)
            .where(text("finished_at IS NOT NULL"), _calls.finished_at < bindparam("before", type_=Instant()))
            .order_by(_calls.finished_at)
            .limit(_MOST)
            .with_for_update(skip_locked=True)
        )
    )
)


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

    def __init__(self, connection: Connection, appended: Appended) -> None:
        self._connection = connection
        self._appended = appended

    def load(self, keys: Collection[CallKey]) -> dict[CallKey, ServiceCall]:
        return {CallKey(row[0], row[1]): ServiceCall(*row) for row in LOAD.fetch(self._connection, sorted(set(keys)))}

    def find_by_idempotency_key(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], ServiceCall]:
        calls = starmap(ServiceCall, FIND_BY_IDEMPOTENCY_KEY.fetch(self._connection, sorted(set(keys))))
        return {(call.tenant_id, call.idempotency_key or ""): call for call in calls}

    def insert(self, calls: Sequence[ServiceCall]) -> set[CallKey]:
        first = {call.key: call for call in reversed(calls)}
        rows = [_row(first[key]) for key in sorted(first)]
        added = {CallKey._make(key) for key in INSERT.run(self._connection, rows)}
        tags = sorted({(*key, tag, first[key].submitted_at) for key in added for tag in first[key].tags})
        INSERT_TAGS.count(self._connection, tags)
        return added

    def change(self, changes: Sequence[Change]) -> set[CallKey]:
        written: set[CallKey] = set()
        for round_ in _rounds(changes):
            written |= {CallKey._make(key) for key in CHANGE.run(self._connection, list(map(_change_row, round_)))}
        return written

    def delete_waiting(self, keys: Collection[CallKey]) -> set[CallKey]:
        return {CallKey._make(key) for key in DELETE_WAITING.fetch(self._connection, sorted(set(keys)))}

    def tags(self, keys: Collection[CallKey]) -> dict[CallKey, tuple[str, ...]]:
        found: dict[CallKey, list[str]] = {key: [] for key in keys}
        for tenant_id, service_call_id, tag in TAGS.fetch(self._connection, sorted(found)):
            found[CallKey(tenant_id, service_call_id)].append(tag)
        return {key: tuple(tags) for key, tags in found.items()}

    def add_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        rows = SUBMITTED_AT.fetch(self._connection, sorted({key for key, _ in tags}))
        submitted_at = {CallKey(tenant_id, service_call_id): moment for tenant_id, service_call_id, moment in rows}
        present = sorted({(*key, tag, submitted_at[key]) for key, tag in tags if key in submitted_at})
        INSERT_TAGS.count(self._connection, present)

    def remove_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        REMOVE_TAGS.count(self._connection, sorted({(*key, tag) for key, tag in tags}))

    def to_watch(self, now_us: int, limit: int) -> list[ServiceCall]:
        return list(starmap(ServiceCall, TO_WATCH.fetch(self._connection, now=now_us, most=limit)))

    def purge(self, finished_before_us: int, limit: int) -> int:
        return PURGE.count(self._connection, before=finished_before_us, most=limit)

    def append(self, envelopes: Sequence[Envelope]) -> None:
        self._appended.append(self._connection, envelopes)


class SqlServiceCalls:
    """The port ServiceCallStore."""

    def __init__(self, outbox: SqlOutbox) -> None:
        self._outbox = outbox

    async def transact(self, work: Callable[[Transaction], T]) -> T:
        return await self._outbox.write(lambda connection, appended: work(SqlTransaction(connection, appended)))
