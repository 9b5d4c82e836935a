"""Clocks that tests move."""

from __future__ import annotations

from collections.abc import Callable

#: 2027-01-15T08:00:00Z, where clocks of tests begin.
EPOCH_US = 1_800_000_000_000_000


class FakeClock:
    """Stands still until it is moved. All instants are microseconds."""

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
        """Time passes: both clocks go on. Raises ValueError for a negative duration."""
        if duration_us < 0:
            raise ValueError("time does not run backwards; use jump for the wall clock")
        self._now_us += duration_us
        self._boottime_us += duration_us

    def jump(self, offset_us: int) -> None:
        """The wall clock is set, forwards or backwards; the boot time clock doesn't notice."""
        self._now_us += offset_us


class DriftingClock:
    """A node's clock in a simulation: true time (microseconds, from `true_us`), seen with an offset and a drift.

    Both clocks of the node come from one oscillator, so that `drift_ppm` (millionths; positive runs fast) bends both;
    only the wall clock has the offset and jumps.
    """

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
        """The boot time clock: never jumps."""
        return self._boot_us + self._elapsed_us()

    def jump(self, offset_us: int) -> None:
        """The wall clock is set forwards or backwards by so much."""
        self._wall_us += offset_us

    def drift(self, drift_ppm: int) -> None:
        """From now on both clocks run at another rate."""
        elapsed = self._elapsed_us()
        self._wall_us += elapsed
        self._boot_us += elapsed
        self._since_us = self._true_us()
        self._drift_ppm = drift_ppm

    def correct(self) -> None:
        """The wall clock is set to true time, and the drift ends."""
        self.drift(0)
        self._wall_us = self._true_us()

    def _elapsed_us(self) -> int:
        elapsed = self._true_us() - self._since_us
        return elapsed + elapsed * self._drift_ppm // 1_000_000
