"""The last hour in numbers: an observer of the engine's events that counts in short buckets, in memory.

It sits on the hot path, so each event costs a few additions. A restart forgets; Prometheus remembers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import add

import msgspec

from tocsin.ports import observer as events
from tocsin.ports.forward import StatisticsReport
from tocsin.ports.observer import Event
from tocsin.ui.limits import UiLimits

#: Upper bounds of the lag's classes, milliseconds: from 0.25 ms, each half as much again. Nodes tell releases with other
#: classes by their number, so other bounds need another number.
LAG_BOUNDS_MS = tuple(0.25 * 1.5**step for step in range(38))
#: Under what the calls of destinations beyond the limit are counted.
OTHER_DESTINATIONS = "other destinations"
_ERROR_CHARS_MAX = 200


class Failing(msgspec.Struct, array_like=True):
    """What went wrong with one destination; `last_error` begins with a stable word such as `HTTP_503`."""

    failures: int = 0
    gave_up: int = 0
    last_error: str = ""


def _no_lags() -> list[int]:
    return [0] * (len(LAG_BOUNDS_MS) + 1)


class CallBucket(msgspec.Struct, array_like=True):
    """The same of service calls; lag is from a call's due time to the order to execute it."""

    submitted: int = 0
    succeeded: int = 0
    failed: int = 0
    lag_counts: list[int] = msgspec.field(default_factory=_no_lags)
    lag_max_ms: float = 0.0
    destinations: dict[str, Failing] = msgspec.field(default_factory=dict)

    def lag_ms(self, share: float) -> float | None:
        """The lag that this share of the calls did not exceed, as `Bucket.lag_ms` has it."""
        return percentile_ms(self.lag_counts, share, self.lag_max_ms)

    @property
    def counts(self) -> bool:
        """Whether anything was counted."""
        return bool(self.submitted or self.succeeded or self.failed or self.destinations)

    def add(self, other: CallBucket, destinations_max: int) -> None:
        """Counts the other's into this one."""
        self.submitted += other.submitted
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.lag_counts = list(map(add, self.lag_counts, other.lag_counts))
        self.lag_max_ms = max(self.lag_max_ms, other.lag_max_ms)
        add_failing(self.destinations, other.destinations, destinations_max)


class Bucket(msgspec.Struct, array_like=True):
    """What happened from `begins_us` on, for the width of a bucket; gauges as they were at its end.

    Nodes of two releases tell one another theirs: fields are only added, at the end, with a default."""

    begins_us: int
    created: int = 0
    changed: int = 0
    done: int = 0
    rescheduled: int = 0
    retried: int = 0
    failed: int = 0
    superseded: int = 0
    lag_counts: list[int] = msgspec.field(default_factory=_no_lags)
    lag_max_ms: float = 0.0
    destinations: dict[str, Failing] = msgspec.field(default_factory=dict)
    overdue_s: float = 0.0
    window_timers: float = 0.0
    in_flight: float = 0.0
    calls: CallBucket = msgspec.field(default_factory=CallBucket)

    @property
    def rings(self) -> int:
        """Calls made, whatever came of them."""
        return self.done + self.rescheduled + self.retried + self.failed + self.superseded

    def lag_ms(self, share: float) -> float | None:
        """The lag that this share of the rings did not exceed, to within half of its size; None without rings."""
        return percentile_ms(self.lag_counts, share, self.lag_max_ms)

    def add(self, other: Bucket, destinations_max: int) -> None:
        """Counts another node's into this one: sums, of the overdue the greatest, and lags class by class, so that the
        percentiles are those of all rings."""
        self.created += other.created
        self.changed += other.changed
        self.done += other.done
        self.rescheduled += other.rescheduled
        self.retried += other.retried
        self.failed += other.failed
        self.superseded += other.superseded
        self.lag_counts = list(map(add, self.lag_counts, other.lag_counts))
        self.lag_max_ms = max(self.lag_max_ms, other.lag_max_ms)
        add_failing(self.destinations, other.destinations, destinations_max)
        self.overdue_s = max(self.overdue_s, other.overdue_s)
        self.window_timers += other.window_timers
        self.in_flight += other.in_flight
        self.calls.add(other.calls, destinations_max)


def add_failing(into: dict[str, Failing], known: Mapping[str, Failing], destinations_max: int) -> None:
    """Counts failures by destination together; those of destinations beyond the limit under one name."""
    for name, one in known.items():
        sums = of_destination(into, name, destinations_max)
        sums.failures += one.failures
        sums.gave_up += one.gave_up
        sums.last_error = one.last_error


def of_destination(known: dict[str, Failing], name: str, destinations_max: int) -> Failing:
    """The destination's entry, or that of all others when there are as many as may be."""
    if name not in known and len(known) >= destinations_max:
        name = OTHER_DESTINATIONS
    found = known.get(name)
    if found is None:
        found = known[name] = Failing()
    return found


class Unreadable(ValueError):
    """A bucket that this release can't read."""


_packer = msgspec.msgpack.Encoder()
_unpacker = msgspec.msgpack.Decoder(Bucket)


def pack(bucket: Bucket) -> bytes:
    """The bucket as it travels between nodes."""
    return _packer.encode(bucket)


def unpack(packed: bytes) -> Bucket:
    """The bucket as it came; Unreadable, also for one whose lags are counted in other classes."""
    try:
        bucket = _unpacker.decode(packed)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(str(error)) from error
    classes = len(LAG_BOUNDS_MS) + 1
    if not len(bucket.lag_counts) == len(bucket.calls.lag_counts) == classes:
        raise Unreadable(f"it counts lags in {len(bucket.lag_counts)} classes, not in {classes}")
    return bucket


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


class Statistics:
    """Observes. `gauges` is asked when a bucket ends, for the gauges that `tocsin.telemetry.metrics` names."""

    def __init__(self, limits: UiLimits, now_us: int, gauges: Callable[[], Mapping[str, float]]) -> None:
        self._limits = limits
        self._gauges = gauges
        self._width_us = round(limits.chart_interval_s * 1e6)
        self.buckets: deque[Bucket] = deque(maxlen=limits.chart_points)
        self.present = Bucket(now_us - now_us % self._width_us)
        self.since_us = now_us
        self.pulses: dict[str, Pulse] = {}

    @property
    def width_s(self) -> float:
        """Seconds of a bucket."""
        return self._limits.chart_interval_s

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

    def report(self, after_us: int) -> StatisticsReport:
        """What another node is told: buckets that began after an instant, the earliest first, up to about
        `ui.statistics_message_bytes` of them."""
        points: list[bytes] = []
        size, most = 0, self._limits.statistics_message_bytes
        wanted = [bucket for bucket in self.buckets if bucket.begins_us > after_us]
        for bucket in wanted:
            points.append(pack(bucket))
            size += len(points[-1])
            if size >= most:
                break
        self.sample(self.present)
        return StatisticsReport(self.since_us, self._width_us, points, pack(self.present), len(points) < len(wanted))

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
        failing = of_destination(known, destination, self._limits.chart_destinations_max)
        failing.failures += 1
        failing.gave_up += gave_up
        failing.last_error = error[:_ERROR_CHARS_MAX]
