"""Requests to the API by operation: how many, with which status, and how long they took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tocsin.telemetry.tally import DURATION_SECONDS, Histogram

_COUNTER, _HISTOGRAM = "tocsin_requests", "tocsin_request_duration_seconds"
#: As the tables in `tocsin.telemetry.metrics`.
REQUEST_COUNTERS: dict[str, tuple[tuple[str, ...], str]] = {
    _COUNTER: (
        ("operation", "status"),
        "Responses of the API, by operation, as the OpenAPI document names it (`other`: no operation), and HTTP status.",
    ),
}
REQUEST_HISTOGRAMS: dict[str, tuple[tuple[float, ...], str]] = {
    _HISTOGRAM: (
        DURATION_SECONDS,
        "From a request to the API to its response, by the label `operation`. A write's includes the commit.",
    ),
}


class RequestMetrics(Collector):
    """Plain numbers, like `Tally`, but for a histogram with a label: a create adds to both in one call."""

    def __init__(self) -> None:
        self._operations: dict[str, tuple[dict[int, int], Histogram]] = {}

    def __call__(self, operation: str, status: int, seconds: float) -> None:
        """Counts a response."""
        counted = self._operations.get(operation)
        if counted is None:
            counted = self._operations[operation] = ({}, Histogram(DURATION_SECONDS))
        statuses, durations = counted
        statuses[status] = statuses.get(status, 0) + 1
        durations.add(seconds)

    def collect(self) -> Iterator[Metric]:
        """Both metrics, for the registry."""
        labels, text = REQUEST_COUNTERS[_COUNTER]
        counter = CounterMetricFamily(_COUNTER, text, labels=labels)
        histogram = HistogramMetricFamily(_HISTOGRAM, REQUEST_HISTOGRAMS[_HISTOGRAM][1], labels=labels[:1])
        for operation, (statuses, durations) in list(self._operations.items()):
            for status, count in list(statuses.items()):
                counter.add_metric([operation, str(status)], count)
            histogram.add_metric([operation], durations.cumulative(), durations.total)
        yield counter
        yield histogram

    def describe(self) -> Iterable[Metric]:
        """Nothing, as `Tally` does."""
        return []
