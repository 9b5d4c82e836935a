"""The last hour in numbers: an observer of the engine's events that counts in short buckets, in memory.

It sits on the hot path, so each event costs a few additions. A restart forgets; Prometheus remembers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tocsin.ports import observer as events
from tocsin.ports.observer import Event
from tocsin.ui.limits import UiLimits

#: Upper bounds of the lag's classes, milliseconds: from 0.25 ms, each half as much again.
LAG_BOUNDS_MS = tuple(0.25 * 1.5**step for step in range(38))
#: Under what the calls of destinations beyond the limit are counted.
OTHER_DESTINATIONS = "other destinations"
_ERROR_CHARS_MAX = 200


@dataclass(slots=True)
class Failing:
    """What went wrong with one destination; `last_error` begins with a stable word such as `HTTP_503`."""

    failures: int = 0
    gave_up: int = 0
    last_error: str = ""


@dataclass(slots=True)
class CallBucket:
    """The same of service calls; lag is from a call's due time to the order to execute it."""

    submitted: int = 0
    succeeded: int = 0
    failed: int = 0
    lag_counts: list[int] = field(default_factory=lambda: [0] * (len(LAG_BOUNDS_MS) + 1))
    lag_max_ms: float = 0.0
    destinations: dict[str, Failing] = field(default_factory=dict)

    def lag_ms(self, share: float) -> float | None:
        """The lag that this share of the calls did not exceed, as `Bucket.lag_ms` has it."""
        return percentile_ms(self.lag_counts, share, self.lag_max_ms)


@dataclass(slots=True)
class Bucket:
    """What happened from `begins_us` on, for the width of a bucket; gauges as they were at its end."""

    begins_us: int
    created: int = 0
    changed: int = 0
    done: int = 0
    rescheduled: int = 0
    retried: int = 0
    failed: int = 0
    superseded: int = 0
    lag_counts: list[int] = field(default_factory=lambda: [0] * (len(LAG_BOUNDS_MS) + 1))
    lag_max_ms: float = 0.0
    destinations: dict[str, Failing] = field(default_factory=dict)
    overdue_s: float = 0.0
    window_timers: float = 0.0
    in_flight: float = 0.0
    calls: CallBucket = field(default_factory=CallBucket)

    @property
    def rings(self) -> int:
        """Calls made, whatever came of them."""
        return self.done + self.rescheduled + self.retried + self.failed + self.superseded

    def lag_ms(self, share: float) -> float | None:
        """The lag that this share of the rings did not exceed, to within half of its size; None without rings."""
        return percentile_ms(self.lag_counts, share, self.lag_max_ms)


@dataclass(slots=True)
class Pulse:
    """How often a namespace's timers have been created or changed since the process began: grows, never falls."""

    created: int = 0
    changed: int = 0


def percentile_ms(counts: list[int], share: float, most_ms: float) -> float | None:
    """The bound of the class in which this share of the counted lags ends; never more than the greatest seen."""
    total = sum(counts)
    if total == 0:
        return None
    wanted, reached = share * total, 0
    for index, count in enumerate(counts):
        reached += count
        if count and reached >= wanted:
            return min(LAG_BOUNDS_MS[index], most_ms) if index < len(LAG_BOUNDS_MS) else most_ms
    return most_ms


class Figures:
    """Observes. `gauges` is asked when a bucket ends, for the gauges that `tocsin.telemetry.metrics` names."""

    def __init__(self, limits: UiLimits, now_us: int, gauges: Callable[[], Mapping[str, float]]) -> None:
        self._limits = limits
        self._gauges = gauges
        self._width_us = round(limits.figures_bucket_s * 1e6)
        self.buckets: deque[Bucket] = deque(maxlen=limits.figures_buckets)
        self.present = Bucket(now_us - now_us % self._width_us)
        self.since_us = now_us
        self.pulses: dict[str, Pulse] = {}

    @property
    def width_s(self) -> float:
        """Seconds of a bucket."""
        return self._limits.figures_bucket_s

    def pulse(self, namespace: str) -> Pulse:
        """The namespace's pulse as it is now. To be asked for before what is shown together with it: what changes in
        between is news to the page then."""
        return replace(self.pulses.get(namespace) or Pulse())

    def roll(self, now_us: int) -> None:
        """Ends the present bucket if its time is over. Buckets in which the process stood still are left out."""
        if now_us < self.present.begins_us + self._width_us:
            return
        self.sample(self.present)
        self.buckets.append(self.present)
        self.present = Bucket(now_us - now_us % self._width_us)

    def sample(self, bucket: Bucket) -> None:
        """Writes the gauges of now into a bucket."""
        gauges = self._gauges()
        bucket.overdue_s = gauges["tocsin_overdue_seconds"]
        bucket.window_timers = gauges["tocsin_window_timers"]
        bucket.in_flight = gauges["tocsin_callbacks_in_flight"]

    def __call__(self, event: Event) -> None:
        """Observes."""
        if isinstance(event, events.AttemptFinished):
            self._attempt(event)
        elif isinstance(event, events.TimersCreated):
            self.present.created += event.timers
            self._pulse(event.namespace).created += event.timers
        elif isinstance(event, events.TimersChanged):
            self.present.changed += event.timers
            self._pulse(event.namespace).changed += event.timers

    def _pulse(self, namespace: str) -> Pulse:
        found = self.pulses.get(namespace)
        if found is None:
            found = self.pulses[namespace] = Pulse()
        return found

    def _attempt(self, event: events.AttemptFinished) -> None:
        bucket, outcome = self.present, event.outcome
        if outcome == "done":
            bucket.done += 1
        elif outcome == "retried":
            bucket.retried += 1
        elif outcome == "failed":
            bucket.failed += 1
        elif outcome == "rescheduled":
            bucket.rescheduled += 1
        else:
            bucket.superseded += 1
        if event.lag_us is not None:
            lag_ms = event.lag_us / 1_000
            bucket.lag_counts[bisect_left(LAG_BOUNDS_MS, lag_ms)] += 1
            bucket.lag_max_ms = max(bucket.lag_max_ms, lag_ms)
        if outcome in ("retried", "failed"):
            gave_up = outcome == "failed"
            self.note_failure(bucket.destinations, event.destination, event.error or "", gave_up=gave_up)
        self._pulse(event.namespace).changed += 1

    def note_failure(self, known: dict[str, Failing], destination: str, error: str, *, gave_up: bool) -> None:
        """Counts a call that went wrong under its destination."""
        if destination not in known and len(known) >= self._limits.figures_destinations_max:
            destination = OTHER_DESTINATIONS
        failing = known.get(destination)
        if failing is None:
            failing = known[destination] = Failing()
        failing.failures += 1
        failing.gave_up += gave_up
        failing.last_error = error[:_ERROR_CHARS_MAX]
