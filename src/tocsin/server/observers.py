"""What counts and logs the events of a node: metrics, the log, and the statistics behind the pages' charts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tocsin.ports.clock import Clock
from tocsin.ports.observer import Observer, fan_out
from tocsin.settings import Settings
from tocsin.statistics.counting import CallStatistics, Statistics
from tocsin.statistics.limits import StatisticsLimits
from tocsin.statistics.outages import OutageTracker
from tocsin.telemetry.logs import EventLog
from tocsin.telemetry.metrics import GAUGES, Metrics
from tocsin.telemetry.vitals import VitalSigns

ReadGauges = Callable[[], Mapping[str, float]]


class Gauges:
    """The values of a node's gauges, read when they are asked for. Each part of the node adds its own once it exists; until
    then they are 0."""

    def __init__(self) -> None:
        self._sources: list[ReadGauges] = []

    def add(self, read: ReadGauges) -> None:
        """Adds gauges; a later source replaces values of an earlier one."""
        self._sources.append(read)

    def __call__(self) -> dict[str, float]:
        """All values, by the names in GAUGES."""
        values = dict.fromkeys(GAUGES, 0.0)
        for read in self._sources:
            values.update(read())
        return values


@dataclass(frozen=True, slots=True)
class Observers:
    """A node's observers. `observe` receives the events of the engine, the store and the web server; `call_statistics` those
    of the service agent."""

    gauges: Gauges
    metrics: Metrics
    statistics: Statistics
    call_statistics: CallStatistics
    outages: OutageTracker
    vitals: VitalSigns
    observe: Observer


def observers(settings: Settings, clock: Clock, limits: StatisticsLimits, more: Sequence[Observer] = ()) -> Observers:
    """The observers of a node whose parts do not exist yet; `more` get the events of the engine as well."""
    gauges = Gauges()
    metrics = Metrics(gauges, settings.metrics_namespaces_max)
    statistics = Statistics(limits, clock.now_us(), gauges)
    outages = OutageTracker(clock, limits, metrics.requests.creates_refused)
    statistics.on_late = outages.count_late
    vitals = VitalSigns(gauges)
    observe = fan_out([metrics, EventLog(time.monotonic), statistics, outages, vitals, *more])
    return Observers(gauges, metrics, statistics, CallStatistics(statistics), outages, vitals, observe)
