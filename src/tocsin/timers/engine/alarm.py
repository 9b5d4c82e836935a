"""The alarm: wakes shards when their next timers are due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from tocsin.ports.clock import Clock, WakeUp

#: Sleeps never exceed a second (rule 12), so that a jump of the wall clock is noticed by then.
_SLEEP_US_MAX = 1_000_000
#: Instants that no longer hold are dropped once there are this many of them, beyond one for each shard with an instant.
_OUTDATED_MAX = 1_000
#: Event loops count sleeps in milliseconds, and some round down: a shorter sleep would return at once, and the loop would
#: spin until the instant is reached.
_SLEEP_STEP_US = 1_000


class Alarm:
    """Calls `wake` with a shard's id when `clock` reaches its instant: never before, and after it as soon as what `wake_up`
    makes allows."""

    def __init__(
        self, clock: Clock, wake: Callable[[int], None], wake_up: Callable[[Callable[[], None]], WakeUp]
    ) -> None:
        self._clock = clock
        self._wake = wake
        self._wakes: list[tuple[int, int]] = []
        self._wake_of: dict[int, int] = {}
        self._wake_up = wake_up(self._on_wake_up)
        # The instant for which the wake-up is set.
        self._set_for: int | None = None

    def set(self, shard_id: int, at_us: int, now_us: int) -> None:
        """Sets the instant at which the shard is woken, in place of the one set before."""
        if self._wake_of.get(shard_id) != at_us:
            self._wake_of[shard_id] = at_us
            heappush(self._wakes, (at_us, shard_id))
            if len(self._wakes) > 2 * len(self._wake_of) + _OUTDATED_MAX:
                # Each postponement of a shard's first timer leaves an instant behind, below a nearer one of another shard.
                self._wakes = [(at, shard) for shard, at in self._wake_of.items()]
                heapify(self._wakes)
        if self._set_for is None or at_us < self._set_for:
            self._sleep(now_us)

    def forget(self, shard_id: int) -> None:
        """Removes the shard's instant."""
        self._wake_of.pop(shard_id, None)

    def close(self) -> None:
        """Cancels all wake-ups, for good."""
        self._wake_up.close()

    def _sleep(self, now_us: int) -> None:
        self._set_for = self._wakes[0][0]
        self._wake_up.set(min(max(self._set_for - now_us, 0), _SLEEP_US_MAX))

    def _on_wake_up(self) -> None:
        self._set_for = None
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
        if self._wakes and self._set_for is None:
            self._sleep(now_us)


class LoopWakeUp:
    """A wake-up by the event loop, up to a millisecond late. Implements `tocsin.ports.clock.WakeUp` on every platform."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._timer: asyncio.TimerHandle | None = None

    def set(self, delay_us: int) -> None:
        """Wakes after the delay, rounded up to a millisecond."""
        self.close()
        steps = -(-delay_us // _SLEEP_STEP_US)
        self._timer = asyncio.get_running_loop().call_later(steps * _SLEEP_STEP_US / 1e6, self._wake)

    def close(self) -> None:
        """Cancels the wake-up that is set."""
        if self._timer is not None:
            self._timer.cancel()
