"""Clocks for tests, which set the time themselves."""

from __future__ import annotations

from collections.abc import Callable

#: 2027-01-15T08:00:00Z, the first instant of tests' clocks.
EPOCH_US = 1_800_000_000_000_000


class FakeClock:
    """A clock that moves only when a test moves it. All instants are microseconds."""

    def __init__(self, now_us: int = EPOCH_US, boottime_us: int = 0) -> None:
        self._now_us = now_us
        self._boottime_us = boottime_us

    def now_us(self) -> int:
        """The wall clock."""
        return self._now_us

    def boottime_us(self) -> int:
        """The boot time clock."""
        return self._boottime_us

    def advance(self, duration_us: int) -> None:
        """Lets time pass on both clocks. Raises ValueError for a negative duration."""
        if duration_us < 0:
            raise ValueError("duration_us is negative; use jump to set the wall clock back")
        self._now_us += duration_us
        self._boottime_us += duration_us

    def jump(self, offset_us: int) -> None:
        """Sets the wall clock forwards or backwards by `offset_us`; the boot time clock is not affected."""
        self._now_us += offset_us


class DriftingClock:
    """A node's clock in a simulation: the true time (microseconds, from `true_us`) with an offset and a drift.

    Both clocks of the node depend on one oscillator, so `drift_ppm` (parts per million; positive runs fast) affects both.
    Only the wall clock has the offset, and jumps."""

    def __init__(self, true_us: Callable[[], int], *, offset_us: int = 0, boot_us: int = 0, drift_ppm: int = 0) -> None:
        self._true_us = true_us
        self._since_us = true_us()
        self._wall_us = self._since_us + offset_us
        self._boot_us = boot_us
        self._drift_ppm = drift_ppm

    def now_us(self) -> int:
        """The wall clock."""
        return self._wall_us + self._elapsed_us()

    def boottime_us(self) -> int:
        """The boot time clock, which never jumps."""
        return self._boot_us + self._elapsed_us()

    def jump(self, offset_us: int) -> None:
        """Sets the wall clock forwards or backwards by `offset_us`."""
        self._wall_us += offset_us

    def drift(self, drift_ppm: int) -> None:
        """Changes the rate of both clocks from now on."""
        elapsed = self._elapsed_us()
        self._wall_us += elapsed
        self._boot_us += elapsed
        self._since_us = self._true_us()
        self._drift_ppm = drift_ppm

    def correct(self) -> None:
        """Sets the wall clock to the true time, and ends the drift."""
        self.drift(0)
        self._wall_us = self._true_us()

    def _elapsed_us(self) -> int:
        elapsed = self._true_us() - self._since_us
        return elapsed + elapsed * self._drift_ppm // 1_000_000
