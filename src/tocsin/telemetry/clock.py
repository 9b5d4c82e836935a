"""The machine's clocks, and what is made of them where the wall clock can't be relied on."""

from __future__ import annotations

import time

from tocsin.ports.clock import Clock


class SystemClock:
    """Wall clock and CLOCK_BOOTTIME (where the system has it; its monotonic clock otherwise)."""

    def __init__(self) -> None:
        self._boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z."""
        return time.time_ns() // 1_000

    def boottime_us(self) -> int:
        """Microseconds since boot, sleep included."""
        return time.clock_gettime_ns(self._boot) // 1_000


class ConfirmedClock:
    """A clock that survives a wall clock that is set wrong: as long as that stays within `tolerance_us` of the time that
    was confirmed last, carried on by the boot time clock, it is the wall clock; otherwise it is that. Before anything was
    confirmed it is the wall clock."""

    def __init__(self, clock: Clock, tolerance_us: int) -> None:
        self._clock = clock
        self._tolerance_us = tolerance_us
        self._base_us: int | None = None
        self.boottime_us = clock.boottime_us

    def confirm(self, now_us: int, boot_us: int) -> None:
        """It was this time when the boot time clock showed that."""
        self._base_us = now_us - boot_us

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z."""
        now_us = self._clock.now_us()
        if self._base_us is None:
            return now_us
        expected_us = self._clock.boottime_us() + self._base_us
        return now_us if abs(now_us - expected_us) <= self._tolerance_us else expected_us
