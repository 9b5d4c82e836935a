"""Wakes each shard when its next timer falls due, with one event loop timer for all shards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from tocsin.ports.clock import Clock

#: Sleeps never exceed a second (rule 12), so that a jump of the wall clock is noticed by then.
_SLEEP_US_MAX = 1_000_000
#: Instants that no longer hold are dropped once there are so many more than shards with an instant, and twice as many.
_OUTDATED_MAX = 1_000
#: Event loops count sleeps in milliseconds, and some round down: a shorter sleep would return at once, and the loop would
#: spin until the instant is reached.
_SLEEP_STEP_US = 1_000


class Alarm:
    """Calls `wake` with a shard's id when `clock` reaches its instant: never before, and up to a millisecond after it unless
    the event loop is delayed."""

    def __init__(self, clock: Clock, wake: Callable[[int], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._wakes: list[tuple[int, int]] = []
        self._wake_of: dict[int, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0

    def set(self, shard_id: int, at_us: int, now_us: int) -> None:
        """Sets the instant at which the shard is woken, in place of the one set before."""
        if self._wake_of.get(shard_id) != at_us:
            self._wake_of[shard_id] = at_us
            heappush(self._wakes, (at_us, shard_id))
            if len(self._wakes) > 2 * len(self._wake_of) + _OUTDATED_MAX:
                # Each postponement of a shard's first timer leaves an instant behind, below a nearer one of another shard.
                self._wakes = [(at, shard) for shard, at in self._wake_of.items()]
                heapify(self._wakes)
        if self._timer is None or at_us < self._timer_at:
            self._set_timer(self._wakes[0][0], now_us)

    def forget(self, shard_id: int) -> None:
        """Removes the shard's instant."""
        self._wake_of.pop(shard_id, None)

    def close(self) -> None:
        """Cancels all wake-ups."""
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self, at_us: int, now_us: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at_us
        steps = -(-min(max(at_us - now_us, 0), _SLEEP_US_MAX) // _SLEEP_STEP_US)
        self._timer = asyncio.get_running_loop().call_later(steps * _SLEEP_STEP_US / 1e6, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now_us = self._clock.now_us()
        ready: dict[int, None] = {}
        while self._wakes and self._wakes[0][0] <= now_us:
            at_us, shard_id = heappop(self._wakes)
            if self._wake_of.get(shard_id) == at_us:
                del self._wake_of[shard_id]
                ready[shard_id] = None
        for shard_id in ready:
            self._wake(shard_id)
        while self._wakes and self._wake_of.get(self._wakes[0][1]) != self._wakes[0][0]:
            heappop(self._wakes)
        if self._wakes and self._timer is None:
            self._set_timer(self._wakes[0][0], now_us)
