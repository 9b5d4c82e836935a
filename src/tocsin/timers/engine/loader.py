"""Keeps a shard's window complete up to the look-ahead, page by page, within the node's memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from tocsin.model.errors import RecordTooNew, RecordUndecodable, StoreError
from tocsin.ports.observer import LoadFailed, PageLoaded, TimerSuspended
from tocsin.ports.store import FireKey
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.rows import LoadRequest, Row, decoded_row, undecodable_row
from tocsin.timers.engine.shard import Shard
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
        """How many rows the next page may have: within the shard's fair share, unless the window is empty."""
        limits, context = self._context.limits, self._context
        share = context.share_timers
        if not window.rows:
            return min(limits.load_page_rows, share)
        if window.bytes >= context.share_bytes // 2:
            return 0
        room = share - len(window.rows)
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
