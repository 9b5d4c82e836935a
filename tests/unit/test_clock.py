"""The clock of a node whose wall clock may be set wrong."""

from __future__ import annotations

from tocsin.telemetry.clock import ConfirmedClock
from tocsin.testing.clock import EPOCH_US, FakeClock

SECOND = 1_000_000


def test_before_a_confirmation_the_wall_clock_is_used() -> None:
    machine = FakeClock(boottime_us=77 * SECOND)
    clock = ConfirmedClock(machine, SECOND // 2)
    machine.jump(-3 * SECOND)
    assert (clock.now_us(), clock.boottime_us()) == (EPOCH_US - 3 * SECOND, 77 * SECOND)


def test_a_wrong_wall_clock_is_ignored_until_it_is_confirmed_or_corrected() -> None:
    machine = FakeClock(boottime_us=77 * SECOND)
    clock = ConfirmedClock(machine, SECOND // 2)
    clock.confirm(machine.now_us(), machine.boottime_us())
    machine.jump(SECOND // 2)
    assert clock.now_us() == machine.now_us()
    for jump_us in (20 * SECOND, -40 * SECOND):
        machine.jump(jump_us)
        machine.advance(SECOND)
        assert clock.now_us() == EPOCH_US + machine.boottime_us() - 77 * SECOND
    clock.confirm(machine.now_us(), machine.boottime_us())
    assert clock.now_us() == machine.now_us()
