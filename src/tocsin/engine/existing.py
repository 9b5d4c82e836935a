"""What a create on a condition finds where a timer of its name stands, and is answered. Pure."""

from __future__ import annotations

from tocsin.engine.rows import Row, Standing
from tocsin.model.condition import Condition, OnConflict, Outcome
from tocsin.model.errors import RecordTooNew, RecordUndecodable, TimerExists
from tocsin.model.namespace import HistoryMode
from tocsin.model.timer import Status, Timer, decode_record, unreadable_timer
from tocsin.ports.store import HistoryRow, StoredRow


def keeps(mode: HistoryMode, timer: Timer) -> bool:
    """Whether a namespace of that mode keeps the finished timer for its own sake."""
    return mode is HistoryMode.ALL or (mode is HistoryMode.FAILURES and timer.status is Status.FAILED)


def retains(mode: HistoryMode, timer: Timer) -> bool:
    """Whether the finished timer leaves a history row at all: one with keys always does, in a slim form if need be."""
    return bool(timer.keys) or keeps(mode, timer)


def decoded(found: StoredRow | HistoryRow) -> Row:
    """A stored timer as a create on a condition judges it. RecordTooNew: it may have been created under the same key."""
    key = (found.execute_at, found.uuid)
    try:
        return Row(key, found.generation, decode_record(found.record), len(found.record))
    except RecordTooNew:
        raise
    except RecordUndecodable as error:
        blank = unreadable_timer(found.namespace, found.timer_id, found.execute_at, str(error))
        return Row(key, found.generation, blank, len(found.record))


def answer_if(condition: Condition, former: Row) -> Standing | TimerExists | None:
    """What a create on the condition is answered where that timer is; None: it is to be written. IdempotencyConflict."""
    timer, wanted = former.timer, condition.on_conflict
    if condition.is_repeated(timer):
        return Standing(former, Outcome.REPLAYED)
    if wanted is OnConflict.REPLACE:
        return None
    if not timer.url:
        # What stands for a record that can't be read has none.
        return TimerExists(
            f"a timer {timer.id!r} exists, and its stored record can't be read ({timer.last_error}); create it with "
            'onConflict "replace" to write it anew'
        )
    if wanted is OnConflict.KEEP:
        return Standing(former, Outcome.EXISTING)
    return TimerExists(
        f'a timer {timer.id!r} exists already ({timer.status}); choose another id, or onConflict "replace" or "keep"'
    )
