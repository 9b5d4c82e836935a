"""What is counted in a slot of time: by namespace, with lags in classes, and failures by where they happened.

Slots are stored as JSON (`tocsin.statistics.records`): fields are only added, with a default.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

import msgspec

#: Upper bounds of the classes of latencies in milliseconds: 0.25 ms, each further one 1.5 times the previous. Records refer
#: to the classes by their index, so these bounds never change.
LATENCY_BOUNDS_MS = tuple(0.25 * 1.5**step for step in range(38))
#: An attempt that begins later than this after its instant is late.
LATE_US = 1_000_000
#: The name under which namespaces beyond the limit are counted. The prefix is reserved, so none has this name.
OTHER_NAMESPACES = "tocsin.other"
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

    def percentile_ms(self, share: float) -> float | None:
        """A percentile: the upper bound of the class that contains it, at most the greatest latency, so too high by at most a
        half; None without latencies."""
        wanted, reached = share * sum(self.counts.values()), 0
        for index, number in sorted(self.counts.items()):
            reached += number
            if reached >= wanted:
                return min(LATENCY_BOUNDS_MS[index], self.max_ms) if index < len(LATENCY_BOUNDS_MS) else self.max_ms
        return None


class Failures(msgspec.Struct, omit_defaults=True, gc=False):
    """Failed attempts of one place; `last_error` begins with a stable code such as `HTTP_503`. `last_at` is the start of the
    latest slot with one, in microseconds."""

    failures: int = 0
    exhausted: int = 0
    last_error: str = ""
    last_at: int = 0

    def add(self, other: Failures) -> None:
        """Adds others."""
        self.failures += other.failures
        self.exhausted += other.exhausted
        if other.last_error and other.last_at >= self.last_at:
            self.last_error, self.last_at = other.last_error, other.last_at


def add_failures(into: dict[str, Failures], place: str, more: Failures, places_max: int) -> None:
    """Adds failures of a place; those of places beyond the limit are counted together, by namespace."""
    if place not in into and len(into) >= places_max:
        place = failing_place(place.partition(" ")[0], OTHER_DESTINATIONS)
        if place not in into and len(into) >= 2 * places_max:
            place = failing_place(OTHER_NAMESPACES, OTHER_DESTINATIONS)
    into.setdefault(place, Failures()).add(more)


def failing_place(namespace: str, destination: str, path: str = "") -> str:
    """The key of failures: namespace, destination and path of the URL, of which only the last may have spaces."""
    return f"{namespace} {destination.replace(' ', chr(160))} {path}"


def split_place(place: str) -> tuple[str, str, str]:
    """Namespace, destination and path of a key of failures."""
    namespace, _, rest = place.partition(" ")
    destination, _, path = rest.partition(" ")
    return namespace, destination.replace(chr(160), " "), path


#: Numbers of timers that are summed.
_COUNTED = (
    "created", "updated", "canceled", "done", "rescheduled", "retried", "failed", "superseded", "expired", "late",
)  # fmt: skip


class Counts(msgspec.Struct, omit_defaults=True, gc=False):
    """What happened to timers: created, updated, canceled; attempts by their outcome, with their lag, and how many of them
    were late; timers that expired instead."""

    created: int = 0
    updated: int = 0
    canceled: int = 0
    done: int = 0
    rescheduled: int = 0
    retried: int = 0
    failed: int = 0
    superseded: int = 0
    expired: int = 0
    late: int = 0
    lag: Latencies = msgspec.field(default_factory=Latencies)

    @property
    def fires(self) -> int:
        """All attempts, of any outcome."""
        return self.done + self.rescheduled + self.retried + self.failed + self.superseded

    @property
    def weight(self) -> int:
        """How busy: by this it is decided which namespaces are kept apart."""
        return self.fires + self.created + self.updated + self.canceled + self.expired

    def add(self, other: Counts) -> None:
        """Adds others."""
        for name in _COUNTED:
            if more := getattr(other, name):
                setattr(self, name, getattr(self, name) + more)
        self.lag.add(other.lag)


class CallCounts(msgspec.Struct, omit_defaults=True, gc=False):
    """What happened to service calls, with the lag from the due time to the start."""

    submitted: int = 0
    succeeded: int = 0
    failed: int = 0
    lag: Latencies = msgspec.field(default_factory=Latencies)

    @property
    def any(self) -> bool:
        """Whether anything was counted."""
        return bool(self.submitted or self.succeeded or self.failed or self.lag.counts)

    def add(self, other: CallCounts) -> None:
        """Adds others."""
        self.submitted += other.submitted
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.lag.add(other.lag)


class Slot(msgspec.Struct, omit_defaults=True):
    """What happened in the slot that starts at `begins_us`: timers by namespace, failures by `failing_place`; service calls,
    with failures by destination. `overdue_s` is how long the oldest due timer had waited, at most."""

    begins_us: int = 0
    namespaces: dict[str, Counts] = {}
    failing: dict[str, Failures] = {}
    calls: CallCounts = msgspec.field(default_factory=CallCounts)
    calls_failing: dict[str, Failures] = {}
    overdue_s: float = 0.0

    @property
    def idle(self) -> bool:
        """Whether nothing happened."""
        return not (self.namespaces or self.failing or self.calls.any or self.calls_failing or self.overdue_s)

    def of(self, namespace: str) -> Counts:
        """The counts of a namespace, to count into."""
        found = self.namespaces.get(namespace)
        if found is None:
            found = self.namespaces[namespace] = Counts()
        return found

    def counts(self, wanted: Callable[[str], bool] | None = None) -> Counts:
        """The sum over the wanted namespaces; None: all."""
        sums = Counts()
        for name, counts in self.namespaces.items():
            if wanted is None or wanted(name):
                sums.add(counts)
        return sums

    def add(self, other: Slot, places_max: int) -> None:
        """Adds another slot, which stays unchanged."""
        for name, counts in other.namespaces.items():
            self.of(name).add(counts)
        for into, more in ((self.failing, other.failing), (self.calls_failing, other.calls_failing)):
            for place, failures in more.items():
                add_failures(into, place, failures, places_max)
        self.calls.add(other.calls)
        self.overdue_s = max(self.overdue_s, other.overdue_s)

    def keep_busiest(self, namespaces_max: int) -> None:
        """Counts all but the busiest namespaces together; so are their failures."""
        if len(self.namespaces) <= namespaces_max:
            return
        rest = self.namespaces.pop(OTHER_NAMESPACES, None) or Counts()
        by_weight = sorted(self.namespaces, key=lambda name: -self.namespaces[name].weight)
        folded = set(by_weight[max(namespaces_max - 1, 0) :])
        for name in folded:
            rest.add(self.namespaces.pop(name))
        self.namespaces[OTHER_NAMESPACES] = rest
        failing, self.failing = self.failing, {}
        for place, failures in failing.items():
            namespace, destination, path = split_place(place)
            shown = OTHER_NAMESPACES if namespace in folded else namespace
            self.failing.setdefault(failing_place(shown, destination, path), Failures()).add(failures)


def total(slots: Iterable[Slot], places_max: int) -> Slot:
    """The sum of the slots, which stay unchanged."""
    sums = Slot()
    for slot in slots:
        sums.add(slot, places_max)
    return sums
