"""The clock port."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time as this machine sees it. Waiting uses the event loop, whose clock is monotonic."""

    def now_us(self) -> int:
        """The wall clock in microseconds since 1970-01-01T00:00:00Z. It may jump."""

    def boottime_us(self) -> int:
        """Microseconds since some fixed moment. It never jumps, and advances while the machine sleeps (CLOCK_BOOTTIME)."""
