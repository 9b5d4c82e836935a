"""The machine's clocks, and a clock that tolerates a wrong wall clock."""

from __future__ import annotations

import time

from tocsin.ports.clock import Clock


class SystemClock:
    """Wall clock and CLOCK_BOOTTIME, or the monotonic clock on systems without it."""

    def __init__(self) -> None:
        self._boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z."""
        return time.time_ns() // 1_000

    def boottime_us(self) -> int:
        """Microseconds since boot, sleep included."""
        return time.clock_gettime_ns(self._boot) // 1_000


class MovableClock:
    """The machine's clocks, of which the wall clock can be set forward (`tocsin dev`). The boot time clock stays as it is, so
    that leases, heartbeats and time-outs pass in real time."""

    def __init__(self, machine: Clock, offset_us: int = 0) -> None:
        self._machine = machine
        #: How far the wall clock is ahead of the machine's.
        self.offset_us = offset_us
        self.boottime_us = machine.boottime_us

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z, moved."""
        return self._machine.now_us() + self.offset_us


class ConfirmedClock:
    """A clock that tolerates a wall clock that is set wrong. It compares the wall clock with the time confirmed last plus the
    boot time elapsed since: within `tolerance_us` it returns the wall clock, otherwise the latter. Before the first
    confirmation it returns the wall clock."""

    def __init__(self, clock: Clock, tolerance_us: int) -> None:
        self._clock = clock
        self._tolerance_us = tolerance_us
        self._base_us: int | None = None
        self.boottime_us = clock.boottime_us

    def confirm(self, now_us: int, boot_us: int) -> None:
        """Records that the time was `now_us` when the boot time clock showed `boot_us`."""
        self._base_us = now_us - boot_us

    def moved(self, by_us: int) -> None:
        """The wall clock was set forward on purpose."""
        if self._base_us is not None:
            self._base_us += by_us

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z."""
        now_us = self._clock.now_us()
        if self._base_us is None:
            return now_us
        expected_us = self._clock.boottime_us() + self._base_us
        return now_us if abs(now_us - expected_us) <= self._tolerance_us else expected_us
