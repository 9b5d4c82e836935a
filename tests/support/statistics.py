"""Statistics without a node."""

from __future__ import annotations

from tocsin.administration import unobserved
from tocsin.ports.clock import Clock
from tocsin.ports.records import Records
from tocsin.statistics.counting import Statistics
from tocsin.statistics.keeping import StatisticsKeeper
from tocsin.statistics.limits import StatisticsLimits
from tocsin.statistics.outages import OutageTracker
from tocsin.statistics.reading import StatisticsReader


def statistics_reader(store: Records, clock: Clock) -> StatisticsReader:
    """A reader on a node that counts nothing."""
    limits = StatisticsLimits()
    statistics = Statistics(limits, clock.now_us(), lambda: {"tocsin_overdue_seconds": 0.0})
    keeper = StatisticsKeeper(
        store,
        statistics,
        OutageTracker(clock, limits, int),
        clock=clock,
        node="a",
        incarnation=b"a" * 16,
        observe=unobserved,
        timeout_s=60.0,
        fatal=unobserved,  # type: ignore[arg-type]
    )
    return StatisticsReader(store, keeper, clock, unobserved, 60.0)
