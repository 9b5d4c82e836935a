"""Statistics of the last hour: an observer of the engine's events that counts them in short buckets, in memory.

It is on the hot path, so each event costs a few additions. A restart discards the statistics; the metrics in Prometheus stay.
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
from tocsin.web.pages.limits import UiLimits

#: Upper bounds of the lag histogram's classes in milliseconds: 0.25 ms, each further one 1.5 times the previous. A node
#: recognizes a release with other classes by their number, so different bounds must have a different number.
LAG_BOUNDS_MS = tuple(0.25 * 1.5**step for step in range(38))
#: The name under which the destinations beyond the limit are counted.
OTHER_DESTINATIONS = "other destinations"
_ERROR_CHARS_MAX = 200


class DestinationFailures(msgspec.Struct, array_like=True):
    """Failures of one destination; `last_error` begins with a stable code such as `HTTP_503`."""

    failures: int = 0
    exhausted: int = 0
    last_error: str = ""


def _no_lags() -> list[int]:
    return [0] * (len(LAG_BOUNDS_MS) + 1)


class CallBucket(msgspec.Struct, array_like=True):
    """Statistics of service calls in a bucket; lag is the time from a call's due time to its start."""

    submitted: int = 0
    succeeded: int = 0
    failed: int = 0
    lag_counts: list[int] = msgspec.field(default_factory=_no_lags)
    lag_max_ms: float = 0.0
    destinations: dict[str, DestinationFailures] = msgspec.field(default_factory=dict)

    def lag_ms(self, share: float) -> float | None:
        """A percentile of the start lag in milliseconds, as `Bucket.lag_ms`."""
        return percentile_ms(self.lag_counts, share, self.lag_max_ms)

    @property
    def counts(self) -> bool:
        """Whether anything was counted."""
        return bool(self.submitted or self.succeeded or self.failed or self.destinations)

    def add(self, other: CallBucket, destinations_max: int) -> None:
        """Adds another bucket to this one."""
        self.submitted += other.submitted
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.lag_counts = list(map(add, self.lag_counts, other.lag_counts))
        self.lag_max_ms = max(self.lag_max_ms, other.lag_max_ms)
        add_failing(self.destinations, other.destinations, destinations_max)


class Bucket(msgspec.Struct, array_like=True):
    """Statistics of the period that starts at `begins_us`; gauges have their values at its end.

    Nodes of different releases exchange buckets: fields may only be added, at the end, with a default."""

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
    destinations: dict[str, DestinationFailures] = msgspec.field(default_factory=dict)
    overdue_s: float = 0.0
    window_timers: float = 0.0
    in_flight: float = 0.0
    calls: CallBucket = msgspec.field(default_factory=CallBucket)

    @property
    def fires(self) -> int:
        """All fires, whatever their outcome."""
        return self.done + self.rescheduled + self.retried + self.failed + self.superseded

    def lag_ms(self, share: float) -> float | None:
        """A percentile of the lag in milliseconds, too high by at most a half; None without fires."""
        return percentile_ms(self.lag_counts, share, self.lag_max_ms)

    def add(self, other: Bucket, destinations_max: int) -> None:
        """Adds another node's bucket to this one: counts are summed, the maximum is taken of the overdue time, and lags are
        summed per class, so that percentiles are those of all fires."""
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


def add_failing(
    into: dict[str, DestinationFailures], known: Mapping[str, DestinationFailures], destinations_max: int
) -> None:
    """Adds failures by destination; destinations beyond the limit are counted under one name."""
    for name, one in known.items():
        sums = of_destination(into, name, destinations_max)
        sums.failures += one.failures
        sums.exhausted += one.exhausted
        sums.last_error = one.last_error


def of_destination(known: dict[str, DestinationFailures], name: str, destinations_max: int) -> DestinationFailures:
    """The entry of a destination, or the shared one if the limit is reached."""
    if name not in known and len(known) >= destinations_max:
        name = OTHER_DESTINATIONS
    found = known.get(name)
    if found is None:
        found = known[name] = DestinationFailures()
    return found


class Unreadable(ValueError):
    """A bucket in a format that this release can't read."""


_packer = msgspec.msgpack.Encoder()
_unpacker = msgspec.msgpack.Decoder(Bucket)


def pack(bucket: Bucket) -> bytes:
    """Encodes a bucket for another node."""
    return _packer.encode(bucket)


def unpack(packed: bytes) -> Bucket:
    """Decodes a bucket. Raises Unreadable, also if its lags are counted in other classes."""
    try:
        bucket = _unpacker.decode(packed)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(str(error)) from error
    classes = len(LAG_BOUNDS_MS) + 1
    if not len(bucket.lag_counts) == len(bucket.calls.lag_counts) == classes:
        raise Unreadable(f"the bucket has {len(bucket.lag_counts)} lag classes instead of {classes}")
    return bucket


@dataclass(slots=True)
class ChangeCounter:
    """How many times the timers of a namespace have been created or changed since the process started; never decreases."""

    created: int = 0
    changed: int = 0


def percentile_ms(counts: list[int], share: float, most_ms: float) -> float | None:
    """A percentile: the upper bound of the class that contains it, at most the greatest lag; None without lags."""
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
    """The observer. `gauges` is called at the end of a bucket; it returns the gauges under their names in the metrics."""

    def __init__(self, limits: UiLimits, now_us: int, gauges: Callable[[], Mapping[str, float]]) -> None:
        self._limits = limits
        self._gauges = gauges
        self._width_us = round(limits.chart_interval_s * 1e6)
        self.buckets: deque[Bucket] = deque(maxlen=limits.chart_points)
        self.present = Bucket(now_us - now_us % self._width_us)
        self.since_us = now_us
        self.change_counters: dict[str, ChangeCounter] = {}

    @property
    def width_s(self) -> float:
        """The width of a bucket in seconds."""
        return self._limits.chart_interval_s

    def change_counter(self, namespace: str) -> ChangeCounter:
        """A copy of the namespace's change counter. Read it before the data that a page shows with it, so that the page is
        notified of changes in between."""
        return replace(self.change_counters.get(namespace) or ChangeCounter())

    def roll(self, now_us: int) -> None:
        """Completes the current bucket if its time is over. Skips buckets during which the process was suspended."""
        if now_us < self.present.begins_us + self._width_us:
            return
        self.sample(self.present)
        self.buckets.append(self.present)
        self.present = Bucket(now_us - now_us % self._width_us)

    def report(self, after_us: int) -> StatisticsReport:
        """The statistics for another node: the buckets that began after an instant, the earliest first, up to about
        `statistics_message_bytes`."""
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
        """Writes the current gauges into a bucket."""
        gauges = self._gauges()
        bucket.overdue_s = gauges["tocsin_overdue_seconds"]
        bucket.window_timers = gauges["tocsin_window_timers"]
        bucket.in_flight = gauges["tocsin_callbacks_in_flight"]

    def __call__(self, event: Event) -> None:
        """Counts an event."""
        if isinstance(event, events.AttemptFinished):
            self._attempt(event)
        elif isinstance(event, events.TimersCreated):
            self.present.created += event.timers
            self._change_counter(event.namespace).created += event.timers
        elif isinstance(event, events.TimersChanged):
            self.present.changed += event.timers
            self._change_counter(event.namespace).changed += event.timers

    def _change_counter(self, namespace: str) -> ChangeCounter:
        found = self.change_counters.get(namespace)
        if found is None:
            found = self.change_counters[namespace] = ChangeCounter()
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
            exhausted = outcome == "failed"
            self.note_failure(bucket.destinations, event.destination, event.error or "", exhausted=exhausted)
        self._change_counter(event.namespace).changed += 1

    def note_failure(
        self, known: dict[str, DestinationFailures], destination: str, error: str, *, exhausted: bool
    ) -> None:
        """Counts a failed call under its destination."""
        failing = of_destination(known, destination, self._limits.chart_destinations_max)
        failing.failures += 1
        failing.exhausted += exhausted
        failing.last_error = error[:_ERROR_CHARS_MAX]
