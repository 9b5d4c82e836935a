"""What the keeping of statistics reports."""

from __future__ import annotations

from logging import WARNING

from tocsin.ports.event import Counter, LineLimit
from tocsin.ports.observer import Event


class StatisticsNotStored(Event, frozen=True):
    """Statistics of a minute, or an outage, could not be stored, or old ones not be removed. They stay in the node's memory
    for an hour, and are stored when the store answers again."""

    error: str
    level = WARNING
    line_limit = LineLimit(1, 10.0)
    counter = Counter("tocsin_statistics_write_failures", "Failed writes of statistics and outages, which are retried.")
