"""The clock port."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time as this machine sees it. Waiting is done through the event loop, whose clock is monotonic."""

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970-01-01T00:00:00Z. May jump."""

    def boottime_us(self) -> int:
        """Microseconds since some fixed moment; never jumps, and goes on while the machine sleeps (CLOCK_BOOTTIME)."""
