"""Resumes suspended timers when the reason for which they were suspended no longer holds (rules 14 and 24)."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.model.errors import StoreError
from tocsin.ports.observer import LoadFailed, TimersResumed
from tocsin.ports.store import KEY_MAX, KEY_MIN, StoredRow
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.engine.shard import Shard

#: Pages read in one sweep, so that millions of timers of a paused namespace don't keep the shard or the store from other
#: work. The next sweep continues where this one ended.
SWEEP_PAGES_MAX = 10


async def sweep(shard: Shard, context: Context, dispatcher: Dispatcher) -> None:
    """Resumes suspended timers of the shard whose reason no longer holds, as many as there is room for, in rounds from the
    earliest to the latest. Also suspends deferred timers beyond the shard's share of memory.

    Reads nothing from the store while every known reason still holds.
    """
    window, suspended = shard.window, shard.suspended
    if window is None:
        return
    dispatcher.trim(shard)
    _retry_refused(shard, context)
    resumption = _Resumption(shard, dispatcher, context.limits.resume_rows)
    pages = 0
    while pages < SWEEP_PAGES_MAX and resumption.worthwhile():
        if suspended.after == KEY_MIN:
            suspended.found = set()
            # Rows whose suspension is not durable yet may be missing from the pages.
            suspended.recent = set(suspended.recent) if window.suspension else set()
        try:
            page = await context.in_turn(
                context.store.load_suspended(shard.shard_id, suspended.after, context.limits.load_page_rows)
            )
        except StoreError as error:
            context.observe(LoadFailed(shard.shard_id, str(error)))
            break
        if shard.window is not window:
            return
        pages += 1
        full_at = resumption.take(page.rows)
        suspended.after = page.complete_to if full_at is None else full_at
        if suspended.after >= KEY_MAX:
            suspended.reasons = suspended.found | suspended.recent
            suspended.after = KEY_MIN
            suspended.refused_rounds = max(suspended.refused_rounds - 1, 0)
            break
    if resumption.rows:
        shard.lane.schedule(shard, urgent=True)
        context.observe(TimersResumed(shard.shard_id, resumption.rows))


def _retry_refused(shard: Shard, context: Context) -> None:
    """Every `refused_retry_interval`, timers whose address was refused are resumed in one round; one that is refused again is
    behind the round by then, and waits for the next."""
    suspended, now_us = shard.suspended, context.clock.boottime_us()
    if now_us < suspended.refused_at:
        return
    suspended.refused_at = now_us + context.limits.refused_retry_interval_us
    # Those that a round under way has passed are resumed by the one after it.
    suspended.refused_rounds = 1 if suspended.after == KEY_MIN else 2


class _Room:
    """How many rows, and bytes of records, may still be resumed for one reason."""

    __slots__ = ("bytes", "rows")

    def __init__(self, rows: int, size: int) -> None:
        self.rows = rows
        self.bytes = size


class _Resumption:
    """What one sweep resumes: at most `resume_rows` in all, and for each reason as much as there is room for, so that no
    reason's timers keep those of another from being resumed."""

    def __init__(self, shard: Shard, dispatcher: Dispatcher, rows_max: int) -> None:
        self.rows = 0
        self._shard = shard
        self._dispatcher = dispatcher
        self._rows_max = rows_max
        self._rooms: dict[str, _Room] = {}

    def worthwhile(self) -> bool:
        """Whether more may be resumed, as far as the reasons are known."""
        if self.rows >= self._rows_max:
            return False
        reasons = self._shard.suspended.reasons
        return reasons is None or any(self._room_for(reason).rows > 0 for reason in reasons)

    def _room_for(self, reason: str) -> _Room:
        room = self._rooms.get(reason)
        if room is None:
            rows_max, bytes_max = self._dispatcher.room_back()
            rows = min(self._dispatcher.room_for(self._shard, reason), rows_max)
            room = self._rooms[reason] = _Room(rows, bytes_max)
        return room

    def take(self, rows: Sequence[StoredRow]) -> tuple[int, bytes] | None:
        """Resumes those rows of a page for which there is room. Returns the key of the last row handled if the sweep's limit
        is reached, else None."""
        window, found = self._shard.window, self._shard.suspended.found
        assert window is not None
        for row in rows:
            reason = row.suspended or ""
            room = self._room_for(reason)
            if room.rows <= 0:
                found.add(reason)
                continue
            self.rows += 1
            room.rows -= 1
            room.bytes -= len(row.record)
            if room.bytes <= 0:
                room.rows = 0
            window.accept(WriteOp(OpKind.RESUME, row.uuid, row.namespace, expected=row.generation))
            if self.rows >= self._rows_max:
                return row.key
        return None
