"""Limits of the statistics, by name. Operators have no reason to change them; tests inject smaller ones."""

from __future__ import annotations

from dataclasses import dataclass

_MINUTE_US = 60_000_000
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class StatisticsLimits:
    """Durations in microseconds (`_us`)."""

    #: The length of a slot, of which a node writes one record.
    minute_us: int = _MINUTE_US
    #: The length of the parts in which a node counts, so that its last minute moves.
    part_us: int = _MINUTE_US // 6
    #: The length of the slots that replace minutes.
    ten_minutes_us: int = 10 * _MINUTE_US
    #: How long minutes are kept; then they become ten-minute slots.
    minutes_kept_us: int = _DAY_US
    #: How long ten-minute slots and outages are kept.
    kept_us: int = 30 * _DAY_US
    #: Complete minutes that a node has in memory: those of an outage of the store, and the hour that pages show.
    minutes_in_memory: int = 60
    #: Namespaces that a slot counts apart, the busiest ones; the others are summed.
    namespaces_max: int = 200
    #: Places of failures that a slot counts apart; those of others are summed.
    places_max: int = 100
    #: Bytes of a record, well below what every store holds in one (`VALUE_BYTES_MAX`): a page of records is read at once.
    #: Beyond it, a slot counts fewer namespaces and places apart.
    record_bytes_max: int = 48 * 1024
    #: Records that one read returns: decoding them takes a few milliseconds at most.
    records_read_max: int = 50
    #: Ten-minute slots that one pass makes, so that a node that comes after a long outage works on it in steps.
    merged_per_pass_max: int = 20
    #: Outages that are kept; the oldest go first.
    outages_max: int = 300
    #: A pause that is shorter, and after which nothing was late, is not kept.
    outage_us_min: int = 1_000_000
    #: How long after an outage late attempts are counted for it, at most, though there are still overdue timers.
    aftermath_us_max: int = 30 * _MINUTE_US
    #: How long attempts in flight are awaited when nothing is overdue any more.
    in_flight_us_max: int = _MINUTE_US
    #: How often the record of an outage is written again while its late attempts are counted.
    outage_rewrite_us: int = 10_000_000
