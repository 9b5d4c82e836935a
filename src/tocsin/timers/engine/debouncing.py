"""Debounced creates (rule 31): which of them are one firing, when it is due, and what it delivers. Pure.

A window of creates is a timer that waits for the instant of its first attempt. A create that meets one joins it. One that
meets anything else opens a window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tocsin.model.debounce import COLLECTION_BYTES_MAX, Debounce, DebounceWindow
from tocsin.model.errors import CollectionFull
from tocsin.model.instants import format_instant
from tocsin.model.timer import Status, Timer
from tocsin.timers.engine.attempt import HAND_OVER_MARGIN_US
from tocsin.timers.engine.rows import FinalAttempt, Row, WriteOp

if TYPE_CHECKING:
    from tocsin.timers.engine.window import Window


def debounce(op: WriteOp, former: Row | None, window: Window, now_us: int) -> Row | CollectionFull:
    """The row of a debounced create at this moment of the owner's clock, or an error. `former` is what the timer is now,
    pending or finished.

    Each create is a firing of its own name, also one that joins: an attempt of the former row may begin until the batch is
    durable, or may have been made by a former owner, and its receiver would take the later contents for a repetition."""
    timer, wanted = op.timer, None if op.condition is None else op.condition.debounce
    assert timer is not None
    assert wanted is not None
    state = DebounceWindow(now_us, now_us + wanted.max_delay_us)
    before: Timer | None = None
    if former is not None and former.timer.debounced is not None and former.timer.status is Status.PENDING:
        if not _has_begun(former, window):
            before, state = former.timer, _joined(former.timer.debounced, wanted)
        elif wanted.collect and not _is_delivered(former, window):
            before, state = former.timer, _continued(state, former, window)
    payload, collected = timer.payload, 0
    if wanted.collect:
        payload, collected = _collection(before, timer.payload)
        if collected > wanted.collect or (collected > 1 and len(payload) > COLLECTION_BYTES_MAX):
            assert former is not None
            return _full(former.timer, collected - 1)
    assert op.condition is not None
    changed = msgspec.structs.replace(
        timer,
        execute_at=max(min(now_us + wanted.delay_us, state.latest_at), state.earliest_at),
        payload=payload,
        keys=op.condition.keys_after(None if former is None else former.timer),
        debounced=msgspec.structs.replace(state, collected=collected),
    )
    if changed.has_joined and former is not None:
        changed.created_at = former.timer.created_at
    return Row((changed.execute_at, op.uuid), op.generation, changed, 0)


def _has_begun(row: Row, window: Window) -> bool:
    """Whether an attempt of the pending row was made, or is under way, as far as this owner knows. A row that waits for
    another instant than its timer's was handed over with an attempt in flight (rule 25); a replayed one continues a firing
    that was sent."""
    timer = row.timer
    recorded = timer.attempts or timer.attempt_log or timer.replay or row.key[0] != timer.execute_at
    return bool(recorded) or window.has_begun(row)


def _is_delivered(row: Row, window: Window) -> bool:
    """Whether an attempt of the row has succeeded and decides nothing, because a client's write came first. What it has
    delivered is known in the batch that replaces the row."""
    uuid = row.key[1]
    conclusion = window.superseded.get(uuid) if window.awaiting_write.get(uuid) is row else None
    return isinstance(conclusion, FinalAttempt) and conclusion.timer.status is Status.COMPLETED


def _joined(state: DebounceWindow, wanted: Debounce) -> DebounceWindow:
    """The window with one create more. It keeps the longest delay of each, so the shortest of these counts."""
    latest_at = max(min(state.latest_at, state.first_at + wanted.max_delay_us), state.earliest_at)
    return msgspec.structs.replace(state, creates=state.creates + 1, latest_at=latest_at)


def _continued(state: DebounceWindow, former: Row, window: Window) -> DebounceWindow:
    """A new window that takes over the payloads of a row with an attempt. It fires after the end of that attempt, if it is
    under way, so that no two requests with the same payloads are."""
    key_us, uuid = former.key
    handed_over = not former.timer.attempts and key_us != former.timer.execute_at
    ends = [key_us - HAND_OVER_MARGIN_US] if handed_over else [0]
    ends += [
        attempt.fired_at + attempt.row.timer.timeout_us
        for attempt in window.in_flight.get(uuid, ())
        if attempt.row.identity == former.identity
    ]
    earliest_at = max(ends)
    return msgspec.structs.replace(state, latest_at=max(state.latest_at, earliest_at), earliest_at=earliest_at)


def _collection(before: Timer | None, payload: msgspec.Raw) -> tuple[msgspec.Raw, int]:
    """The JSON array of the payloads of a timer, whose body is none of them, and of one more; and how many there are."""
    if before is None or before.debounced is None or before.body is not None:
        return msgspec.Raw(b"[%b]" % bytes(payload)), 1
    collected, former = before.debounced.collected, bytes(before.payload)
    return msgspec.Raw(b"[%b,%b]" % (former[1:-1] if collected else former, bytes(payload))), (collected or 1) + 1


def _full(former: Timer, collected: int) -> CollectionFull:
    return CollectionFull(
        f"timer {former.id!r} has collected {collected} payloads of {len(former.payload)} bytes and has no room for this "
        f"one; it is due at {format_instant(former.execute_at)}: create it again when it has fired, or let it collect less "
        "by a shorter maxDelay"
    )
