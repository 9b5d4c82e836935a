"""Prometheus metrics on plain numbers: counters, histograms and gauges declared in tables, collected at a scrape.

The client library's own counters and histograms take a lock per observation; an engine that fires ten thousand timers a
second on one thread does not need it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

#: Counters by name: labels and help. Histograms: bucket bounds and help. Gauges: help.
Counters = Mapping[str, tuple[tuple[str, ...], str]]
Histograms = Mapping[str, tuple[tuple[float, ...], str]]
Gauges = Mapping[str, str]

LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
DURATION_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Histogram:
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


class Tally(Collector):
    """The metrics declared in three tables. Each scrape calls `read_gauges` for the values of the gauges.

    Counters without labels start at 0, and so do those of `from_zero`, for each of these values of their only label:
    Prometheus cannot see the increase of a series that was not there before, so an alert on the first such event would never
    fire.
    """

    def __init__(
        self,
        counters: Counters,
        histograms: Histograms,
        gauges: Gauges,
        read_gauges: Callable[[], Mapping[str, float]],
        from_zero: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._counter_table = counters
        self._histogram_table = histograms
        self._gauge_table = gauges
        self._read_gauges = read_gauges
        self._counters: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in counters}
        self._histograms = {name: Histogram(bounds) for name, (bounds, _) in histograms.items()}
        for name, (labels, _) in counters.items():
            if not labels:
                self._counters[name][()] = 0
        for name, values in from_zero.items():
            self._counters[name] = {(value,): 0 for value in values}

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Adds to a counter."""
        counter = self._counters[name]
        counter[labels] = counter.get(labels, 0) + by

    def observe(self, name: str, value: float) -> None:
        """Adds an observation to a histogram, in its own unit."""
        self._histograms[name].add(value)

    def collect(self) -> Iterator[Metric]:
        """All metric families, for the registry."""
        for name, (labels, text) in self._counter_table.items():
            counter = CounterMetricFamily(name, text, labels=labels)
            for values, count in list(self._counters[name].items()):
                counter.add_metric(values, count)
            yield counter
        for name, (_, text) in self._histogram_table.items():
            tally = self._histograms[name]
            yield HistogramMetricFamily(name, text, buckets=tally.cumulative(), sum_value=tally.total)
        values_now = self._read_gauges()
        for name, text in self._gauge_table.items():
            yield GaugeMetricFamily(name, text, value=values_now[name])

    def describe(self) -> Iterable[Metric]:
        """Nothing: registration must not read the gauges before the objects that they measure exist."""
        return []
