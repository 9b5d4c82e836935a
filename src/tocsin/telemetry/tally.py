"""Prometheus metrics on plain numbers: counters, histograms and gauges that events declare, collected at a scrape.

The client library's own counters and histograms take a lock per observation; an engine that fires ten thousand timers a
second on one thread does not need it.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tocsin.ports.event import NAMESPACES_MAX, AnyEvent, Counter, Gauge, Histogram

#: The label of all other namespaces. The prefix is reserved, so none has this name.
OTHER_NAMESPACES = "tocsin.other"

#: A counter's values by its labels.
Series = dict[tuple[str, ...], float]
Effect = Callable[[Any], None]
E = TypeVar("E", bound=AnyEvent)


class Buckets:
    """Observations by bucket, and their sum. The bounds ascend."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Adds an observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """Each bound, +Inf last, with the number of observations up to it."""
        buckets, sum_so_far = [], 0
        for bound, count in zip((*map(str, map(float, self.bounds)), "+Inf"), self.counts, strict=True):
            sum_so_far += count
            buckets.append((bound, float(sum_so_far)))
        return buckets


class ScrapedCollector(Collector):
    """Collects at scrapes only."""

    def describe(self) -> Iterable[Metric]:
        """Nothing: registration must not read the gauges before the objects that they measure exist."""
        return []


class Tally(ScrapedCollector):
    """Counts events for Prometheus, as they declare it.

    `counters` are those of no event, increased by `count`. Each scrape calls `read_gauges` for the values of `gauges`, whose
    helps these are. The first `namespaces_max` namespaces have series of their own.
    """

    def __init__(
        self,
        events: Iterable[type[AnyEvent]],
        gauges: Mapping[str, str],
        read_gauges: Callable[[], Mapping[str, float]],
        counters: Iterable[Counter] = (),
        namespaces_max: int = NAMESPACES_MAX,
    ) -> None:
        self._gauge_table = gauges
        self._read_gauges = read_gauges
        self._namespaces_max = namespaces_max
        self._namespaces: set[str] = set()
        self._counters: dict[str, tuple[Counter, Series]] = {}
        self._histograms: dict[str, tuple[Histogram, Buckets]] = {}
        self._gauges: dict[str, tuple[Gauge, list[float]]] = {}
        #: What each event does, the counter first.
        self._effects: dict[type[AnyEvent], list[Effect]] = {}
        for counter in counters:
            self._series(counter)
        for event in events:
            self._effects[event] = list(self._effects_of(event))

    def __call__(self, event: AnyEvent) -> None:
        """Counts the event."""
        for effect in self._effects.get(type(event), ()):
            effect(event)

    def also(self, event: type[E], effect: Callable[[E], None]) -> None:
        """Calls `effect` with each event of this type, too."""
        self._effects[event].append(effect)

    def count(self, name: str, *labels: str) -> None:
        """Adds one to a counter of no event."""
        _, series = self._counters[name]
        series[labels] = series.get(labels, 0) + 1

    def _effects_of(self, event: type[AnyEvent]) -> Iterator[Effect]:
        if event.counter is not None:
            yield self._counting(event.counter)
        for histogram in event.histograms:
            yield self._adding(histogram)
        if event.gauge is not None:
            yield self._setting(event.gauge)

    def _counting(self, counter: Counter) -> Effect:
        series = self._series(counter)
        labels_of = _labels_of(counter.values or counter.labels)
        by = attrgetter(counter.by) if counter.by is not None else _one
        namespaces = self._namespaces if counter.labels[:1] == ("namespace",) else None

        def count(event: AnyEvent) -> None:
            labels = labels_of(event)
            if namespaces is not None and labels[0] not in namespaces:
                labels = (self._with_series(labels[0]), *labels[1:])
            series[labels] = series.get(labels, 0) + by(event)

        return count

    def _series(self, counter: Counter) -> Series:
        """The counter's values, which events may share."""
        if (known := self._counters.get(counter.name)) is not None:
            return known[1]
        series: Series = {(value,): 0 for value in counter.from_zero} if counter.labels else {(): 0}
        self._counters[counter.name] = counter, series
        return series

    def _with_series(self, namespace: str) -> str:
        """The label of a namespace that has no series yet: its name, or that of all those beyond the limit."""
        if len(self._namespaces) >= self._namespaces_max:
            return OTHER_NAMESPACES
        self._namespaces.add(namespace)
        return namespace

    def _adding(self, histogram: Histogram) -> Effect:
        _, buckets = self._histograms.setdefault(histogram.name, (histogram, Buckets(histogram.bounds)))
        value_of, unit = _value_of(histogram.value)

        def add(event: AnyEvent) -> None:
            value = value_of(event)
            if isinstance(value, tuple):
                for each in value:
                    buckets.add(each / unit)
            elif value is not None:
                buckets.add(value / unit)

        return add

    def _setting(self, gauge: Gauge) -> Effect:
        present = [0.0]
        self._gauges[gauge.name] = gauge, present
        value_of, unit = (_now_s, 1.0) if gauge.value is None else _value_of(gauge.value)

        def assign(event: AnyEvent) -> None:
            present[0] = value_of(event) / unit

        return assign

    def collect(self) -> Iterator[Metric]:
        """All metric families, for the registry."""
        for counter, series in self._counters.values():
            counted = CounterMetricFamily(counter.name, counter.help, labels=counter.labels)
            for labels, count in list(series.items()):
                counted.add_metric(labels, count)
            yield counted
        for histogram, buckets in self._histograms.values():
            yield HistogramMetricFamily(
                histogram.name, histogram.help, buckets=buckets.cumulative(), sum_value=buckets.total
            )
        for gauge, (value,) in self._gauges.values():
            yield GaugeMetricFamily(gauge.name, gauge.help, value=value)
        values_now = self._read_gauges()
        for name, text in self._gauge_table.items():
            yield GaugeMetricFamily(name, text, value=values_now[name])


def _one(event: AnyEvent) -> int:
    return 1


def _now_s(event: AnyEvent) -> float:
    return time.time()


def _labels_of(names: tuple[str, ...]) -> Callable[[AnyEvent], tuple[str, ...]]:
    """A function that returns these attributes of an event."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda event: ()
    value_of = attrgetter(names[0])
    return lambda event: (value_of(event),)


def _value_of(name: str) -> tuple[Callable[[AnyEvent], Any], float]:
    """A function that returns this attribute of an event, and the parts of its unit that a metric's has: seconds of
    microseconds."""
    return attrgetter(name), 1e6 if name.endswith("_us") else 1.0
