"""The ports of the clock, of a wake-up, and of a wall clock that can be set forward, for the API of `tocsin dev`."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol


class Clock(Protocol):
    """Time as this machine sees it. Waiting uses the event loop, whose clock is monotonic."""

    def now_us(self) -> int:
        """The wall clock in microseconds since 1970-01-01T00:00:00Z. It may jump."""

    def boottime_us(self) -> int:
        """Microseconds since some fixed moment. It never jumps, and advances while the machine sleeps (CLOCK_BOOTTIME)."""


class WakeUp(Protocol):
    """Calls the function that it was made with, on the event loop: once for each setting, unless another one replaces it."""

    def set(self, delay_us: int) -> None:
        """Wakes this many microseconds from now by a monotonic clock, or as soon as possible after that. It may wake earlier:
        after a setting that another one has just replaced."""

    def close(self) -> None:
        """Cancels the setting, for good: it must not be set again."""


class AdvanceMode(Enum):
    """How the clock gets to an instant. `step` halts at each instant at which something is due, until the answers are
    durable; `jump` goes there at once, so that all that was due in between is late, as after a downtime."""

    STEP = "step"
    JUMP = "jump"


class ClockReading(NamedTuple):
    """What the clock shows, and how far it is ahead of the machine's; both in microseconds."""

    now_us: int
    offset_us: int


class ClockMover(Protocol):
    """A node's clock, and the only way to move it."""

    def read(self) -> ClockReading:
        """The clock's present state."""

    async def advance(
        self, mode: AdvanceMode, *, by_us: int | None = None, to_us: int | None = None
    ) -> tuple[ClockReading, int]:
        """Moves the clock by a duration or to an instant; returns what it shows then, and the number of instants at which it
        halted. Raises InvalidInput, naming `by` or `to`, for an instant that has passed or is too far, ClockHalted if it
        can't get there, and Unavailable if the node stops before."""
