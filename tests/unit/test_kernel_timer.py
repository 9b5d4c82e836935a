"""The wake-up by a timer of the kernel, on both event loops."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from tocsin.server.kernel_timer import KernelTimer, wake_up
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine.alarm import Alarm, LoopWakeUp

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has timerfd")


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    return LOOPS[request.param]


class Counted(KernelTimer):
    """Counts how often it wakes, and how often the event loop reports it."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.reports = 0
        super().__init__(wake)

    def _on_expiry(self) -> None:
        self.reports += 1
        super()._on_expiry()


@LINUX
def test_the_alarm_is_never_early_and_sleeps_in_between(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def late_us(wait_us: int) -> int:
        clock, woken = SystemClock(), asyncio.get_running_loop().create_future()
        timers: list[Counted] = []

        def made(wake: Callable[[], None]) -> Counted:
            timers.append(Counted(wake))
            return timers[0]

        alarm = Alarm(clock, lambda _: woken.set_result(clock.now_us()), made)
        begun = clock.now_us()
        alarm.set(3, begun + wait_us, begun)
        late = await woken - begun - wait_us
        # Turns of the event loop, in which an expired timer that is still readable would be reported again.
        for _ in range(10):
            await asyncio.sleep(0)
        alarm.close()
        # A wall clock that is slewed may take one more.
        assert timers[0].reports <= 2
        return late

    for wait_us in (-5, 0, 1, 300, 999, 1_400, 20_000):
        with asyncio.Runner(loop_factory=loop) as runner:
            assert runner.run(late_us(wait_us)) >= 0


@LINUX
def test_each_setting_replaces_the_one_before(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def wakes() -> None:
        woken = asyncio.Event()
        timer = KernelTimer(woken.set)
        for delay_us in (10**9, 0, 10**9, 500):
            timer.set(delay_us)
        await woken.wait()
        timer.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(wakes())


@LINUX
def test_a_closed_timer_wakes_nobody_and_holds_no_descriptor(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def closed_while_it_wakes() -> None:
        woken = asyncio.Event()

        def wake() -> None:
            woken.set()
            timer.close()

        timer = KernelTimer(wake)
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        timer.set(0)
        await woken.wait()
        timer.close()
        assert len(list(Path("/proc/self/fd").iterdir())) == descriptors - 1

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(closed_while_it_wakes())


def test_elsewhere_the_event_loop_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isinstance(wake_up(lambda: None), LoopWakeUp)
