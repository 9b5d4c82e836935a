"""The statistics that nodes exchange: numbers in slots of equal length, from which the overview draws its charts.

Nodes of different releases exchange these types: fields are only added at the end, with a default.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import msgspec

#: Upper bounds of the classes of latencies in milliseconds: 0.25 ms, each further one 1.5 times the previous. Nodes refer to
#: the classes by their index, so these bounds never change.
LATENCY_BOUNDS_MS = tuple(0.25 * 1.5**step for step in range(38))
#: The name under which the destinations beyond the limit are counted.
OTHER_DESTINATIONS = "other destinations"


class Latencies(msgspec.Struct, array_like=True, gc=False):
    """The number of latencies in each class that has any, by the class's index, and the greatest latency."""

    counts: dict[int, int] = {}
    max_ms: float = 0.0

    def count(self, latency_us: int) -> None:
        """Counts a latency."""
        latency_ms = latency_us / 1_000
        index = bisect_left(LATENCY_BOUNDS_MS, latency_ms)
        self.counts[index] = self.counts.get(index, 0) + 1
        if latency_ms > self.max_ms:
            self.max_ms = latency_ms

    def add(self, other: Latencies) -> None:
        """Adds other latencies. Percentiles then are those of all of them."""
        for index, number in other.counts.items():
            self.counts[index] = self.counts.get(index, 0) + number
        self.max_ms = max(self.max_ms, other.max_ms)

    def above(self, bound_ms: float) -> int:
        """How many latencies are in classes that begin at the bound or above: those just above the bound may be missing."""
        first = bisect_left(LATENCY_BOUNDS_MS, bound_ms) + 1
        return sum(number for index, number in self.counts.items() if index >= first)

    def percentile_ms(self, share: float) -> float | None:
        """A percentile: the upper bound of the class that contains it, at most the greatest latency, so too high by at most a
        half; None without latencies."""
        wanted, reached = share * sum(self.counts.values()), 0
        for index, number in sorted(self.counts.items()):
            reached += number
            if reached >= wanted:
                return min(LATENCY_BOUNDS_MS[index], self.max_ms) if index < len(LATENCY_BOUNDS_MS) else self.max_ms
        return None


class Failures(msgspec.Struct, array_like=True, gc=False):
    """Failures of one destination; `last_error` begins with a stable code such as `HTTP_503`."""

    failures: int = 0
    exhausted: int = 0
    last_error: str = ""


def add_failures(into: dict[str, Failures], destination: str, more: Failures, destinations_max: int) -> None:
    """Adds failures of a destination; those of destinations beyond the limit are counted together."""
    if destination not in into and len(into) >= destinations_max:
        destination = OTHER_DESTINATIONS
    sums = into.setdefault(destination, Failures())
    sums.failures += more.failures
    sums.exhausted += more.exhausted
    sums.last_error = more.last_error or sums.last_error


#: Numbers of a slot that are summed over slots and nodes.
_SUMMED = (
    "created", "done", "rescheduled", "retried", "failed", "superseded", "window_timers", "in_flight",
    "calls_submitted", "calls_succeeded", "calls_failed", "expired",
)  # fmt: skip


class StatisticsSlot(msgspec.Struct, array_like=True, gc=False):
    """What happened in the slot that starts at `begins_us`: timers created; fires by their outcome, with their lag; timers
    that expired instead; service calls, with the lag from the due time to the start; failures by destination. The gauges
    `overdue_s` (seconds), `window_timers` and `in_flight` have their values at the end of the slot."""

    begins_us: int = 0
    created: int = 0
    done: int = 0
    rescheduled: int = 0
    retried: int = 0
    failed: int = 0
    superseded: int = 0
    lag: Latencies = msgspec.field(default_factory=Latencies)
    failing: dict[str, Failures] = {}
    overdue_s: float = 0.0
    window_timers: float = 0.0
    in_flight: float = 0.0
    calls_submitted: int = 0
    calls_succeeded: int = 0
    calls_failed: int = 0
    calls_lag: Latencies = msgspec.field(default_factory=Latencies)
    calls_failing: dict[str, Failures] = {}
    expired: int = 0

    @property
    def fires(self) -> int:
        """All fires, of any outcome."""
        return self.done + self.rescheduled + self.retried + self.failed + self.superseded

    @property
    def has_calls(self) -> bool:
        """Whether anything of service calls was counted."""
        return bool(self.calls_submitted or self.calls_succeeded or self.calls_failed or self.calls_failing)

    def add(self, other: StatisticsSlot, destinations_max: int) -> None:
        """Adds another slot. Of the overdue time it takes the maximum."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.overdue_s = max(self.overdue_s, other.overdue_s)
        self.lag.add(other.lag)
        self.calls_lag.add(other.calls_lag)
        for into, more in ((self.failing, other.failing), (self.calls_failing, other.calls_failing)):
            for destination, failures in more.items():
                add_failures(into, destination, failures, destinations_max)


def total(slots: Iterable[StatisticsSlot], destinations_max: int) -> StatisticsSlot:
    """The sum of the slots, which stay unchanged."""
    sums = StatisticsSlot(0)
    for slot in slots:
        sums.add(slot, destinations_max)
    return sums


class StatisticsReport(msgspec.Struct, frozen=True, array_like=True):
    """A node's statistics. `slots` are complete, the earliest first; `present` is the current one. `since_us` is when
    counting began, `width_us` the length of a slot. `more`: further complete slots exist."""

    since_us: int
    width_us: int
    slots: list[StatisticsSlot]
    present: StatisticsSlot
    more: bool
