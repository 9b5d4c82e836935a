"""The alarm for due timers, on an event loop that rounds sleeps down to milliseconds, as uvloop does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tocsin.testing.clock import FakeClock
from tocsin.timers.engine.alarm import Alarm, LoopWakeUp


class CoarseLoop:
    """Runs each callback after its delay, rounded down to a millisecond, plus the 30 us that a turn takes."""

    def __init__(self, clock: FakeClock) -> None:
        self.turns = 0
        self._clock = clock
        self._next: Callable[[], None] | None = None

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> CoarseLoop:
        self._wait_us, self._next = int(delay_s * 1_000) * 1_000 + 30, callback
        return self

    def cancel(self) -> None:
        self._next = None

    def run(self) -> None:
        while self._next is not None:
            callback, self._next = self._next, None
            self.turns += 1
            self._clock.advance(self._wait_us)
            callback()


@pytest.mark.parametrize("wait_us", [1, 300, 999, 1_000, 1_400, 2_700_300])
def test_the_alarm_is_never_early_and_does_not_spin(monkeypatch: pytest.MonkeyPatch, wait_us: int) -> None:
    clock = FakeClock()
    loop = CoarseLoop(clock)
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    due = clock.now_us() + wait_us
    woken: list[int] = []
    alarm = Alarm(clock, lambda shard_id: woken.append(clock.now_us() - due), LoopWakeUp)
    alarm.set(3, due, clock.now_us())
    loop.run()
    (late_us,) = woken
    assert 0 <= late_us <= 1_100
    # Sleeps are a second at most.
    assert loop.turns <= wait_us // 1_000_000 + 2


def test_postponements_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    loop = CoarseLoop(clock)
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    now = clock.now_us()
    woken: list[int] = []
    alarm = Alarm(clock, woken.append, LoopWakeUp)
    # One shard has the nearest timer, another one's first timer is postponed again and again, as a watchdog's.
    alarm.set(0, now + 250_000_000, now)
    for number in range(20_000):
        alarm.set(1, now + 300_000_000 + number, now)
    assert len(alarm._wakes) < 2_000
    loop.run()
    assert woken == [0, 1]
