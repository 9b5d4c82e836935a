"""Orchestration's tables: calls and their tags, with the outbox in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

import msgspec
from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Text,
    bindparam,
    delete,
    or_,
    select,
    text,
    tuple_,
    update,
)

from tocsin.model.envelope import Envelope
from tocsin.model.retry import RetryPolicy
from tocsin.service_calls.messages import CallKey, RequestSpec
from tocsin.service_calls.orchestration.ports import Change, Transaction
from tocsin.service_calls.orchestration.service_call import WAITING, Outcome, ServiceCall, Status
from tocsin.stores.service_calls.outbox import Appended, SqlOutbox
from tocsin.stores.service_calls.statements import Batch, Fields, Given, Query, Row
from tocsin.stores.service_calls.tables import service_call_tags, service_calls
from tocsin.stores.service_calls.types import FreeText, Instant

T = TypeVar("T")

_calls = service_calls.c
_tags = service_call_tags.c
KEY: Fields = {"tenant_id": Text(), "service_call_id": Text()}
_INSERTED: Fields = {
    **KEY,
    "name": FreeText(),
    "status": Text(),
    "submitted_at": Instant(),
    "due_at": Instant(),
    "request_spec": Text(),
    "correlation_id": Text(),
    "fingerprint": Text(),
    "watch_at": Instant(),
    "idempotency_key": Text(),
    "started_at": Instant(),
    "finished_at": Instant(),
    "outcome_meta": Text(),
    "execution_id": Text(),
    "executions": BigInteger(),
    "retry_policy": Text(),
    "attempts": BigInteger(),
    "first_attempt_at": Instant(),
    "next_attempt_at": Instant(),
}
_ALL = [_calls[name] for name in _INSERTED]

LOAD = Query(
    KEY,
    lambda given: (
        select(*_ALL)
        .where(given.names(service_calls, *KEY))
        # Every transaction locks rows in key order, so that no two wait for each other.
        .order_by(_calls.tenant_id, _calls.service_call_id)
        .with_for_update(key_share=True)
    ),
)
FIND_BY_IDEMPOTENCY_KEY = Query(
    {"tenant_id": Text(), "idempotency_key": Text()},
    lambda given: (
        select(*_ALL)
        .where(given.names(service_calls, "tenant_id", "idempotency_key"), text("idempotency_key IS NOT NULL"))
        .order_by(_calls.tenant_id, _calls.service_call_id)
        .with_for_update(key_share=True)
    ),
)
INSERT = Batch(
    service_calls,
    _INSERTED,
    lambda given: given.insert(service_calls, *_INSERTED).on_conflict_do_nothing(),
    key=tuple(KEY),
)

_CHANGED: Fields = {
    **KEY,
    "status": Text(),
    "due_at": Instant(),
    "watch_at": Instant(),
    "started_at": Instant(),
    "finished_at": Instant(),
    "outcome_meta": Text(),
    "execution_id": Text(),
    "executions": BigInteger(),
    "attempts": BigInteger(),
    "first_attempt_at": Instant(),
    "next_attempt_at": Instant(),
    "status_before": Text(),
    "execution_id_before": Text(),
}


def _change(given: Given) -> object:
    changed = [name for name in _CHANGED if name not in KEY and not name.endswith("_before")]
    return (
        update(service_calls)
        .where(
            *given.same(service_calls, *KEY),
            # Not `=`: a planner without statistics might prefer the index by status.
            _calls.status.is_not_distinct_from(given["status_before"]),
            _calls.execution_id.is_not_distinct_from(given["execution_id_before"]),
        )
        .values({name: given[name] for name in changed})
    )


CHANGE = Batch(service_calls, _CHANGED, _change, key=tuple(KEY))
DELETE_WAITING = Query(
    KEY,
    lambda given: (
        delete(service_calls)
        # Not plain conditions on the status: a planner without statistics might prefer its index.
        .where(given.names(service_calls, *KEY), or_(*(_calls.status.is_not_distinct_from(s.value) for s in WAITING)))
        .returning(_calls.tenant_id, _calls.service_call_id)
    ),
)
TAGS = Query(
    KEY,
    lambda given: (
        select(_tags.tenant_id, _tags.service_call_id, _tags.tag)
        # A join, not a list: with a list SQLite might use only the tenant and read all of its tags.
        .select_from(given.relation, service_call_tags)
        .where(*given.same(service_call_tags, *KEY))
        .order_by(_tags.tenant_id, _tags.service_call_id, _tags.tag)
    ),
)
_TAG: Fields = {**KEY, "tag": Text()}
#: For a call that was just inserted, whose submission time is known.
INSERT_TAGS = Batch(
    service_call_tags,
    {**_TAG, "submitted_at": Instant()},
    lambda given: given.insert(service_call_tags, *_TAG, "submitted_at").on_conflict_do_nothing(),
    key=tuple(_TAG),
)
SUBMITTED_AT = Query(
    KEY,
    lambda given: (
        select(_calls.tenant_id, _calls.service_call_id, _calls.submitted_at)
        .where(given.names(service_calls, *KEY))
        .order_by(_calls.tenant_id, _calls.service_call_id)
        .with_for_update(key_share=True, read=True)
    ),
)
REMOVE_TAGS = Query(_TAG, lambda given: delete(service_call_tags).where(given.names(service_call_tags, *_TAG)))
TO_WATCH = Query(
    {},
    lambda given: (
        select(*_ALL)
        .where(text("watch_at IS NOT NULL"), _calls.watch_at <= bindparam("now", type_=Instant()))
        .order_by(_calls.watch_at)
        .limit(bindparam("most", type_=Integer()))
        # Locked rows are being handled. Waiting for them, in this order, could deadlock.
        .with_for_update(key_share=True, skip_locked=True)
    ),
    {"now": Instant(), "most": Integer()},
)
PURGE = Query(
    {},
    lambda given: delete(service_calls).where(
        tuple_(_calls.tenant_id, _calls.service_call_id).in_(
            select(_calls.tenant_id, _calls.service_call_id)
            .where(text("finished_at IS NOT NULL"), _calls.finished_at < bindparam("before", type_=Instant()))
            .order_by(_calls.finished_at)
            .limit(bindparam("most", type_=Integer()))
            .with_for_update(skip_locked=True)
        )
    ),
    {"before": Instant(), "most": Integer()},
)

_encode = msgspec.json.Encoder().encode
_request_spec = msgspec.json.Decoder(RequestSpec).decode
_outcome = msgspec.json.Decoder(Outcome).decode
_policy = msgspec.json.Decoder(RetryPolicy).decode
#: Enumeration members by value; calling the class costs ten times as much.
_STATUSES = {status.value: status for status in Status}


def _from_row(row: Row) -> ServiceCall:
    (
        tenant_id,
        service_call_id,
        name,
        status,
        submitted_at,
        due_at,
        request_spec,
        correlation_id,
        fingerprint,
        watch_at,
        idempotency_key,
        started_at,
        finished_at,
        outcome,
        execution_id,
        executions,
        retry_policy,
        attempts,
        first_attempt_at,
        next_attempt_at,
    ) = row
    return ServiceCall(
        tenant_id=tenant_id,
        service_call_id=service_call_id,
        name=name,
        status=_STATUSES[status],
        submitted_at=submitted_at,
        due_at=due_at,
        request_spec=_request_spec(request_spec),
        correlation_id=correlation_id,
        fingerprint=fingerprint,
        watch_at=watch_at,
        idempotency_key=idempotency_key,
        started_at=started_at,
        finished_at=finished_at,
        outcome=None if outcome is None else _outcome(outcome),
        execution_id=execution_id,
        executions=executions,
        retry_policy=None if retry_policy is None else _policy(retry_policy),
        attempts=attempts,
        first_attempt_at=first_attempt_at,
        next_attempt_at=next_attempt_at,
    )


def _to_row(call: ServiceCall) -> Row:
    return (
        call.tenant_id,
        call.service_call_id,
        call.name,
        call.status.value,
        call.submitted_at,
        call.due_at,
        _encode(call.request_spec).decode(),
        call.correlation_id,
        call.fingerprint,
        call.watch_at,
        call.idempotency_key,
        call.started_at,
        call.finished_at,
        _outcome_text(call),
        call.execution_id,
        call.executions,
        None if call.retry_policy is None else _encode(call.retry_policy).decode(),
        call.attempts,
        call.first_attempt_at,
        call.next_attempt_at,
    )


def _outcome_text(call: ServiceCall) -> str | None:
    return None if call.outcome is None else _encode(call.outcome).decode()


def _change_row(change: Change) -> Row:
    before, after = change
    return (
        after.tenant_id,
        after.service_call_id,
        after.status.value,
        after.due_at,
        after.watch_at,
        after.started_at,
        after.finished_at,
        _outcome_text(after),
        after.execution_id,
        after.executions,
        after.attempts,
        after.first_attempt_at,
        after.next_attempt_at,
        before.status.value,
        before.execution_id,
    )


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
        return {CallKey(row[0], row[1]): _from_row(row) for row in LOAD.fetch(self._connection, sorted(set(keys)))}

    def find_by_idempotency_key(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], ServiceCall]:
        found = FIND_BY_IDEMPOTENCY_KEY.fetch(self._connection, sorted(set(keys)))
        calls = map(_from_row, found)
        return {(call.tenant_id, call.idempotency_key or ""): call for call in calls}

    def insert(self, calls: Sequence[ServiceCall]) -> set[CallKey]:
        first = {call.key: call for call in reversed(calls)}
        added = {
            CallKey._make(key) for key in INSERT.run(self._connection, [_to_row(first[key]) for key in sorted(first)])
        }
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
        return list(map(_from_row, TO_WATCH.fetch(self._connection, now=now_us, most=limit)))

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
