"""What is remembered of rules: expressions, which take long to parse, and not the instants from which intervals count."""

from __future__ import annotations

import gc

from tocsin.model.occurrences import recurrence_of
from tocsin.model.recurrence import Every

PINGS = 500


def intervals() -> int:
    """How many intervals are in memory."""
    # Of a weak proxy whose object is gone, `isinstance` would ask that for its class.
    return sum(issubclass(type(each), Every) for each in gc.get_objects())


def test_the_intervals_of_a_monitor_are_forgotten_with_each_ping() -> None:
    gc.collect()
    before = intervals()
    for ping in range(PINGS):
        assert recurrence_of(None, "UTC", 10_000_000, ping).after(ping) == ping + 10_000_000
    assert intervals() <= before


def test_an_expression_is_parsed_once() -> None:
    assert recurrence_of("17 3 * * *", "UTC", None, 0) is recurrence_of("17 3 * * *", "UTC", None, 1)
