"""The machine's clocks."""

from __future__ import annotations

import time


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
