"""Keeps a shard's window complete up to the look-ahead, page by page, within the node's memory; and resumes suspended timers
when the reason for which they were suspended no longer holds (rules 14 and 24)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tocsin.model.errors import RecordTooNew, RecordUndecodable, StoreError
from tocsin.ports.observer import LoadFailed, PageLoaded, TimersResumed, TimerSuspended
from tocsin.ports.store import EVENTS_END, EVENTS_START, KEY_MAX, KEY_MIN, FireKey, StoredRow
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.resuming import room_for, shared_slots, sharing_rule, waits_in_memory
from tocsin.timers.engine.rows import TURN_REASON, LoadRequest, OpKind, Row, WriteOp, decoded_row, undecodable_row
from tocsin.timers.engine.shard import OTHER_KEYS, Shard
from tocsin.timers.engine.window import Window

_MINUTE_US = 60_000_000
#: Why a node leaves a shard that contains a record of a newer release.
NEWER_FORMAT = "newer_format"
_UUID_MAX = b"\xff" * 16


class Loader:
    """Loads one shard's timers. `leave` is called with the reason when this node must not keep the shard."""

    def __init__(
        self,
        shard: Shard,
        context: Context,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        leave: Callable[[Shard, str], None],
    ) -> None:
        self._shard = shard
        self._context = context
        self._spawn = spawn
        self._leave = leave
        self._loading = False
        self._timer: asyncio.TimerHandle | None = None
        self._bad: deque[int] = deque()

    def consider(self) -> None:
        """Starts a load if the window needs one; otherwise schedules the next check in time. Cheap."""
        if self._loading or self._shard.window is None or self._shard.draining:
            return
        up_to = self._wanted(self._shard.window)
        if up_to is not None:
            self._loading = True
            self._spawn(self._load_pages())

    def stop(self) -> None:
        """Cancels the scheduled check; loads under way end with the supervisor's tasks."""
        if self._timer is not None:
            self._timer.cancel()

    def _wanted(self, window: Window) -> FireKey | None:
        """The key up to which to load; None if enough is loaded or there is no room."""
        limits, now = self._context.limits, self._context.clock.now_us()
        enough_at = now + limits.look_ahead_max_us // 2
        if window.horizon[0] >= enough_at:
            self._check_in((window.horizon[0] - enough_at) / 1e6)
            return None
        if self._page_rows(window) <= 0:
            return None
        return (now + limits.look_ahead_max_us, _UUID_MAX)

    def _page_rows(self, window: Window) -> int:
        """How many rows the next page may have: within the shard's fair share, unless the window is empty. Results that are
        not durable yet count where the node's memory is half full, so that a node that fires faster than the store takes
        results waits for it, but no burst in one of many shards does."""
        limits, context = self._context.limits, self._context
        share, (waiting, waiting_bytes) = context.share_timers, window.awaited()
        if (
            context.window_timers + context.awaited <= limits.window_timers_max // 2
            and context.window_bytes + context.awaited_bytes <= limits.window_bytes_max // 2
        ):
            waiting = waiting_bytes = 0
        if not (window.rows or waiting):
            return min(limits.load_page_rows, share)
        if window.waiting.bytes + waiting_bytes >= context.share_bytes // 2:
            return 0
        room = share - len(window.rows) - waiting
        # Small pages while a full window drains would cost one read for every few timers.
        return min(limits.load_page_rows, room) if room >= min(limits.load_page_rows, share // 2) else 0

    def _check_in(self, delay_s: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(max(min(delay_s, 60.0), 0.001), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.consider()

    async def _load_pages(self) -> None:
        failed = False
        try:
            while (window := self._shard.window) is not None and not failed:
                up_to = self._wanted(window)
                request = window.announce_load(up_to) if up_to is not None else None
                if request is None:
                    return
                failed = not await self._load(window, request)
        finally:
            self._loading = False
            if failed:
                self._check_in(self._context.limits.store_retry_interval_us / 1e6)

    async def _load(self, window: Window, request: LoadRequest) -> bool:
        """Loads one page. False if it could not be read or memory has no room for it: the next try follows after a pause."""
        context, shard_id = self._context, self._shard.shard_id
        began = context.clock.boottime_us()
        try:
            page = await context.in_turn(
                context.store.load(shard_id, request.after, request.up_to, max(self._page_rows(window), 1))
            )
        except StoreError as error:
            window.load_failed(request)
            context.observe(LoadFailed(shard_id, str(error)))
            return False
        if self._shard.window is not window:
            return True
        rows: list[Row] = []
        for found in page.rows:
            try:
                rows.append(decoded_row(found))
            except RecordTooNew as error:
                context.observe(LoadFailed(shard_id, str(error)))
                self._leave(self._shard, NEWER_FORMAT)
                return True
            except RecordUndecodable as error:
                rows.append(undecodable_row(found, str(error)))
        if window.loaded(request, rows, page.complete_to):
            self._suspend_undecodable(window, rows)
            context.observe(PageLoaded(shard_id, len(rows), context.clock.boottime_us() - began))
            self._shard.recount()
            self._shard.changed()
            return window.horizon > request.after
        return True

    def _suspend_undecodable(self, window: Window, rows: list[Row]) -> None:
        """Rule 15: suspends undecodable rows unchanged, with the reason; too many of them in a minute stop the shard."""
        now = self._context.clock.boottime_us()
        for row in rows:
            if row.raw is None or window.awaiting_write.get(row.key[1]) is not row:
                # Readable, superseded, or already counted: memory was short, and its page was loaded again.
                continue
            reason = window.suspend(row, f"bad_record: {row.timer.last_error}")
            self._shard.lane.schedule(self._shard, urgent=False)
            self._context.observe(TimerSuspended(self._shard.shard_id, row.key[1], reason))
            self._bad.append(now)
        while self._bad and self._bad[0] < now - _MINUTE_US:
            self._bad.popleft()
        if len(self._bad) > self._context.limits.unreadable_rows_per_minute_max:
            self._bad.clear()
            self._leave(self._shard, "bad_rows")


#: Pages read in one sweep, so that millions of timers of a paused namespace don't keep the shard or the store from other
#: work. The next sweep continues where this one ended.
SWEEP_PAGES_MAX = 10


async def sweep(shard: Shard, context: Context, dispatcher: Dispatcher) -> None:
    """Resumes suspended timers of the shard whose reason no longer holds, as many as there is room for, in rounds from the
    earliest to the latest. Also suspends deferred timers beyond the shard's share of memory.

    Reads nothing from the store while every known reason still holds.
    """
    window, suspended, order = shard.window, shard.suspended, shard.order
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
            order.round_begins(suspending=window.suspension)
        order.page_requested()
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
        rows, last = page.rows, page.complete_to
        if any(EVENTS_START < row.key <= EVENTS_END for row in rows):
            # The events of sinks, which nothing resumes, lie behind all timers.
            rows, last = [row for row in rows if row.key <= EVENTS_START], max(last, EVENTS_END)
            context.events_changed(shard)
        full_at = resumption.take(rows)
        order.page_taken()
        suspended.after = last if full_at is None else full_at
        if suspended.after >= KEY_MAX:
            suspended.reasons = suspended.found | suspended.recent
            suspended.after = KEY_MIN
            suspended.refused_rounds = max(suspended.refused_rounds - 1, 0)
            order.round_over()
            if order.active or order.ready:
                # Its retries may be due.
                shard.changed()
            break
    if resumption.rows:
        shard.lane.schedule(shard, urgent=True)
        context.observe(TimersResumed(shard.shard_id, resumption.rows))


def may_resume(shard: Shard, dispatcher: Dispatcher) -> bool:
    """Whether the next sweep resumes timers, as far as the reasons are known."""
    return _Resumption(shard, dispatcher, 1).has_some()


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

    __slots__ = ("bytes", "may_begin", "rows", "rule")

    def __init__(self, rows: int, size: int, rule: str | None = None, *, may_begin: bool = False) -> None:
        self.rows = rows
        self.bytes = size
        #: The rule of the flow's key, if these rows share the memory for what waits with those of other keys; and whether the
        #: first of them may begin at once, if the rule lets it.
        self.rule = rule
        self.may_begin = may_begin

    def take(self, size: int) -> None:
        """A row is resumed."""
        self.rows -= 1
        self.bytes -= size
        if self.bytes <= 0:
            self.rows = 0


class _Resumption:
    """What one sweep resumes: at most `resume_rows` in all, and for each reason as much as there is room for, so that no
    reason's timers keep those of another from being resumed. Those of flows, which may have millions of keys, share room."""

    def __init__(self, shard: Shard, dispatcher: Dispatcher, rows_max: int) -> None:
        self.rows = 0
        self._shard = shard
        self._dispatcher = dispatcher
        self._rows_max = rows_max
        self._rooms: dict[str, _Room] = {}
        # What timers of all keys of flows may take of the memory, and how many of each rule need none.
        self._of_flows = _Room(*dispatcher.admission.room_of_flows(shard))
        self._slots: dict[str, int] = {}

    def worthwhile(self) -> bool:
        """Whether more may be resumed, as far as the reasons are known."""
        if self.rows >= self._rows_max:
            return False
        return self._shard.order.wants_round or self.has_some(others=True)

    def has_some(self, *, others: bool = False) -> bool:
        """Whether there is room for something that is suspended for a known reason. `others`: or may be, among the keys of
        flows that are not distinguished."""
        reasons = self._shard.suspended.reasons
        # Sorted, so that each run of a simulation is the same: a reason's room is that of the moment when it is first needed.
        return reasons is None or any(
            self._has_room(self._room_for(reason))
            for reason in sorted(reasons)
            if others or not reason.startswith(OTHER_KEYS)
        )

    def _room_for(self, reason: str) -> _Room:
        room = self._rooms.get(reason)
        if room is None:
            dispatcher = self._dispatcher
            rows_max, bytes_max = dispatcher.admission.room_back()
            rows = min(room_for(dispatcher, self._shard, reason), rows_max)
            rule = sharing_rule(dispatcher, reason)
            may_begin = rule is not None and not waits_in_memory(dispatcher, reason)
            room = self._rooms[reason] = _Room(rows, bytes_max, rule, may_begin=may_begin)
        return room

    def _has_room(self, room: _Room) -> bool:
        if room.rows <= 0:
            return False
        return room.rule is None or self._of_flows.rows > 0 or (room.may_begin and self._slots_of(room.rule) > 0)

    def _slots_of(self, rule: str) -> int:
        slots = self._slots.get(rule)
        if slots is None:
            slots = self._slots[rule] = shared_slots(self._dispatcher, rule)
        return slots

    def _use(self, room: _Room, size: int) -> None:
        """A row is resumed."""
        room.take(size)
        if room.rule is not None:
            if self._of_flows.rows > 0:
                self._of_flows.take(size)
            else:
                self._slots[room.rule] -= 1
            room.may_begin = False

    def take(self, rows: Sequence[StoredRow]) -> tuple[int, bytes] | None:
        """Resumes those rows of a page for which there is room. Returns the key of the last row handled if the sweep's limit
        is reached, else None."""
        window, suspended, order = self._shard.window, self._shard.suspended, self._shard.order
        assert window is not None
        for row in rows:
            reason, line = row.suspended or "", order.found(row)
            if reason.startswith(TURN_REASON):
                continue
            room = self._room_for(reason)
            # Nothing of an ordered key is resumed before what comes earlier.
            if not self._has_room(room) or (line is not None and order.is_left(line, row.key)):
                suspended.left(reason)
                if line is not None:
                    order.leave(line, row.key)
                continue
            if line is not None:
                order.resume(line, row.key)
            self.rows += 1
            self._use(room, len(row.record))
            window.accept(WriteOp(OpKind.RESUME, row.uuid, row.namespace, expected=row.generation))
            if self.rows >= self._rows_max:
                return row.key
        return None
