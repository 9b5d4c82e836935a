"""What an event declares of itself: its fields, and what logs and metrics make of it. They know no event by name.

The docstring of an event is its row in `docs/reference/events.md`, its metrics are rows of `docs/reference/metrics.md`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import msgspec

LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
DURATION_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
#: Namespaces with series of their own: each has two or three in every scrape, and Prometheus keeps all in memory.
NAMESPACES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter that an event increases, by one or by its attribute `by`. Labels have few values; the label `namespace` is
    limited to NAMESPACES_MAX of them.

    The values of the labels are the event's attributes with the same names, or those named in `values`. Without labels a
    counter starts at 0, and so it does for each value in `from_zero` of its only label: Prometheus cannot see the increase of
    a series that was not there before, so an alert on the first such event would never fire."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    by: str | None = None
    from_zero: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram to which an event adds its attribute `value`, unless that is None; or each value of a tuple. Those in
    microseconds (`…_us`) are added in seconds. The bounds ascend. Events may share a histogram by its name."""

    name: str
    help: str
    bounds: tuple[float, ...]
    value: str


@dataclass(frozen=True, slots=True)
class Gauge:
    """A gauge that an event sets to its attribute `value`, in the unit of a histogram; without one to the time in seconds
    since 1970."""

    name: str
    help: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class LineLimit:
    """At most `lines` log lines above debug per window, for events that others can cause at any rate, or that affect all
    timers at once. The next line has the number of suppressed ones and, with `shards`, their shards. Each value of the
    attribute `each` is limited alone. Events whose limit is `shared` have it together."""

    lines: int
    window_s: float = 1.0
    each: str | None = None
    shards: bool = False
    shared: bool = False


class AnyEvent(msgspec.Struct, frozen=True, gc=False):
    """Base of all events."""

    level: ClassVar[int] = logging.DEBUG
    line_limit: ClassVar[LineLimit | None] = None
    counter: ClassVar[Counter | None] = None
    histograms: ClassVar[tuple[Histogram, ...]] = ()
    gauge: ClassVar[Gauge | None] = None
    #: Fields that no log line has, because they may contain what only readers of timers should see.
    unlogged: ClassVar[tuple[str, ...]] = ()

    def severity(self) -> int:
        """The level of this event's log line."""
        return self.level

    def sentence(self) -> str:
        """The log line without its fields: the event's name as words, `shard claimed` for `ShardClaimed`."""
        return "".join(f" {char.lower()}" if char.isupper() else char for char in type(self).__name__).lstrip()


def declared(base: type[AnyEvent]) -> Iterator[type[AnyEvent]]:
    """The events that extend `base`, in the order of their declarations."""
    derived = base.__subclasses__()
    if not derived:
        yield base
    for event in derived:
        yield from declared(event)
