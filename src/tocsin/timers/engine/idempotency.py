"""Conditional creates and replays: what they find under the timer's name and what they are answered; what is kept of a
finished timer. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from tocsin.model.condition import KEYS_KEPT_US, Condition, OnConflict, Outcome, slim
from tocsin.model.errors import (
    IdempotencyConflict,
    InvalidInput,
    RecordTooNew,
    RecordUndecodable,
    ShardUnavailable,
    TimerExists,
    TimerNotFound,
    TimerNotReplayable,
    TimerPending,
    TocsinError,
)
from tocsin.model.failure import FAILED
from tocsin.model.namespace import HistoryMode
from tocsin.model.timer import Status, Timer, decode_record, unreadable_timer
from tocsin.ports.store import Found, HistoryRow, StoredRow
from tocsin.timers.engine.debouncing import debounce
from tocsin.timers.engine.finished import Finished
from tocsin.timers.engine.rows import Batch, ExistingRow, Row, WriteOp

if TYPE_CHECKING:
    from tocsin.timers.engine.window import Window


def create_if(
    op: WriteOp, batch: Batch, window: Window, found: Found | None, mode: HistoryMode, now_us: int
) -> Row | TocsinError:
    """The outcome of a conditional create (rule 26) at this moment: a row to write, the existing timer (ExistingRow), or an
    error.

    `found` is what the store returned for the timer, `mode` the history mode of its namespace. A first try of a key goes by
    memory alone: it carries over only those keys of a former timer that are there.
    """
    assert op.timer is not None
    assert op.condition is not None
    try:
        former = former_row(op.uuid, batch, window.finished.get(op.uuid), window.present(op.uuid), found, mode)
        answer = None if former is None else _answer(op.condition, former, op.timer.id)
    except RecordTooNew as error:
        # It may have been created under the same key.
        return stored_by_newer(error)
    except IdempotencyConflict as error:
        return error
    if answer is not None:
        return answer
    if op.condition.debounce is not None:
        return debounce(op, former, window, now_us)
    keys = op.condition.keys_after(None if former is None else former.timer)
    # Not in place: this batch may fail, and the next one may find another timer.
    timer = msgspec.structs.replace(op.timer, keys=keys) if keys else op.timer
    return Row((timer.execute_at, op.uuid), op.generation, timer, 0)


def replay(op: WriteOp, former: Row | None, now_us: int, name: str) -> Row | TocsinError:
    """The row of a replayed timer (rule 29), or an error. `former` is what the timer is now (`former_row`), `name` the one
    that the operation would give a firing.

    The row continues the firing that has ended, so that its receiver knows a repetition by its webhook-id; everything else of
    the run starts over."""
    assert op.changes is not None
    if former is None:
        return TimerNotFound("no such timer")
    timer = former.timer
    if not timer.url:
        # The placeholder of a record that can't be read, of a live row or a finished one.
        return TimerNotReplayable(f"the stored record can't be read ({timer.last_error}); create the timer again")
    if timer.status is Status.PENDING:
        return TimerPending("the timer is pending")
    if timer.reduced:
        return TimerNotReplayable("its namespace keeps no history of it, hence no payload; create the timer again")
    if op.expected and op.expected != former.generation:
        return TimerNotReplayable("another run of the timer has finished since")
    try:
        timer = op.changes.apply(timer, now_us)
    except InvalidInput as error:
        return error
    if op.changes.execute_at is UNSET:
        timer.execute_at = now_us
    # A replay of what has been replayed and canceled follows a failure all the same.
    timer.failed_before = timer.failed_before or former.timer.status in FAILED
    timer.status, timer.executed_at, timer.last_error, timer.attempt_log = Status.PENDING, None, None, ()
    timer.attempts, timer.first_attempt_at, timer.replay = 0, None, name
    return Row((timer.execute_at, op.uuid), op.generation, timer, 0)


def stored_by_newer(error: RecordTooNew) -> ShardUnavailable:
    return ShardUnavailable(f"a newer release stored the timer of that id, and its nodes take over the shard: {error}")


def former_row(
    uuid: bytes, batch: Batch, finished: Finished | None, present: Row | None, found: Found | None, mode: HistoryMode
) -> Row | None:
    """The timer as of this batch: the live one, or else the latest finished one that is retained. Raises RecordTooNew."""
    ended: Row | None = None
    if uuid in batch.final:
        row = batch.final[uuid]
        if row is not None:
            return row
        ended = batch.ended[uuid]
    elif finished is not None:
        batch.relied_on.add(uuid)
        ended = Row(finished.row.key, finished.row.generation, finished.timer, finished.row.size)
    elif present is not None:
        return present
    elif found is not None and found.live is not None:
        return _decoded(found.live)
    if ended is not None and (ended.timer.keys or keeps(mode, ended.timer)):
        return ended
    return None if found is None or found.finished is None else _decoded(found.finished)


def _decoded(found: StoredRow | HistoryRow) -> Row:
    """Raises RecordTooNew."""
    key = (found.execute_at, found.uuid)
    try:
        return Row(key, found.generation, decode_record(found.record), len(found.record))
    except RecordTooNew:
        raise
    except RecordUndecodable as error:
        blank = unreadable_timer(found.namespace, found.timer_id, found.execute_at, str(error))
        return Row(key, found.generation, blank, len(found.record))


def _answer(condition: Condition, former: Row, timer_id: str) -> ExistingRow | TimerExists | None:
    """The answer to a create where that timer exists; None: the create is written. Raises IdempotencyConflict."""
    timer, wanted = former.timer, condition.on_conflict
    if condition.is_repeated(timer):
        return ExistingRow(former, Outcome.REPLAYED)
    if wanted is OnConflict.REPLACE or wanted is OnConflict.DEBOUNCE:
        return None
    if not timer.url:
        # The placeholder of an undecodable record has no URL, and perhaps no id.
        return TimerExists(
            f"a timer {timer_id!r} exists, and its stored record can't be read ({timer.last_error}); create it with "
            'onConflict "replace" to overwrite it'
        )
    if wanted is OnConflict.KEEP:
        return ExistingRow(former, Outcome.EXISTING)
    return TimerExists(
        f'a timer {timer.id!r} already exists ({timer.status}); choose another id, or set onConflict to "replace" or "keep"'
    )


def keeps(mode: HistoryMode, timer: Timer) -> bool:
    """Whether a namespace with that history mode keeps the finished timer."""
    return mode is HistoryMode.ALL or (mode is HistoryMode.FAILURES and timer.status in FAILED)


def kept_for_its_keys(timer: Timer, mode: HistoryMode, retention_us: int) -> tuple[Timer, int]:
    """What is kept of a finished timer with idempotency keys, and for how long (microseconds): slim if its namespace would
    not keep it that long."""
    if retention_us < KEYS_KEPT_US or not keeps(mode, timer):
        timer = slim(timer)
    return timer, max(retention_us, KEYS_KEPT_US)
