"""Timers as clients see them, and which of them a list shows."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tocsin.engine.rows import Row, Standing
from tocsin.model.condition import Outcome
from tocsin.model.errors import RecordUndecodable
from tocsin.model.timer import Status, Timer, decode_record, unreadable_timer
from tocsin.ports.store import HistoryRow, StoredRow

#: How many bounded reads of the store one list call may make before it answers with a short page and a cursor.
LIST_READS_MAX = 20


class TimerView(msgspec.Struct, frozen=True, gc=False):
    """A timer as a client sees it. `next_attempt_at` is the key's instant while it is pending, else None. `parked`, where
    the store was read: why a pending timer is set aside, such as `namespace:…` or `destination:…`. `outcome`: what a create
    came to."""

    timer: Timer
    uuid: bytes
    shard_id: int
    next_attempt_at: int | None
    parked: str | None = None
    outcome: Outcome = Outcome.CREATED


@dataclass(frozen=True, slots=True)
class ListRequest:
    """`execute_after` is inclusive, `execute_before` exclusive; `cursor` is a former answer's; empty `statuses` mean all.
    `reads_max` bounds the reads of the store, each of which is bounded itself, after which the page is short."""

    namespace: str
    statuses: frozenset[Status] = frozenset()
    tags: tuple[str, ...] = ()
    id_prefix: str = ""
    execute_after: int | None = None
    execute_before: int | None = None
    limit: int = 100
    cursor: str | None = None
    reads_max: int = LIST_READS_MAX


def view_of(row: Row | None, shard_id: int) -> TimerView:
    """What a write is answered with."""
    assert row is not None
    at, uuid = row.key
    if isinstance(row, Standing):
        next_at = at if row.timer.status is Status.PENDING else None
        return TimerView(row.timer, uuid, shard_id, next_at, outcome=row.outcome)
    return TimerView(row.timer, uuid, shard_id, at)


def view_of_stored(row: StoredRow | HistoryRow, shard_id: int) -> TimerView:
    """A row as it was read; one that can't be decoded has its reason as `last_error`."""
    try:
        timer = decode_record(row.record)
    except RecordUndecodable as error:
        reason = f"its stored record can't be read: {error}"
        timer = unreadable_timer(row.namespace, row.timer_id, row.execute_at, reason)
        timer.tags = row.tags
    if isinstance(row, StoredRow):
        return TimerView(timer, row.uuid, shard_id, row.execute_at, row.parked)
    return TimerView(timer, row.uuid, shard_id, None)
