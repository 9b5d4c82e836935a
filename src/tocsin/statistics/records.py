"""Statistics and outages as records: how they are encoded, and under which key. Keys sort by time.

A minute of a node is a record of its own, so that no node changes another's. After a day, those of ten minutes become one
record for all nodes. A reader that finds both takes the latter. All functions raise StoreError.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from tocsin.administration import decoded, delete_all, encoded, every
from tocsin.ports.observer import Observer
from tocsin.ports.records import Record, Records
from tocsin.statistics.limits import StatisticsLimits
from tocsin.statistics.outages import Outage
from tocsin.statistics.slots import Slot, total

MINUTES, TEN_MINUTES, OUTAGES = "statistics_minute", "statistics_ten_minutes", "outage"
#: The end of the key of a slot of all nodes.
_ALL = "all"


class Minute(msgspec.Struct, omit_defaults=True):
    """A minute of one node. `backlog_us`: the earliest minute that the node stored together with this one, because the store
    was away: a reader that has read up to later than that has to go back. 0: none was."""

    node: str
    slot: Slot
    backlog_us: int = 0


class StoredMinute(NamedTuple):
    """A minute and the incarnation that counted it, as hexadecimal digits."""

    incarnation: str
    minute: Minute


_minute_decoder = msgspec.json.Decoder(Minute)
_slot_decoder = msgspec.json.Decoder(Slot)
_outage_decoder = msgspec.json.Decoder(Outage)


def _key(at_us: int, whose: str = "") -> str:
    """Without the last part: sorts before all keys of that instant."""
    return f"{max(at_us, 0):016x}{'/' if whose else ''}{whose}"


def fitting(slot: Slot, limits: StatisticsLimits) -> Slot:
    """The slot with as many namespaces and places apart as a record may have, the busiest ones."""
    namespaces_max, places_max = limits.namespaces_max, limits.places_max
    while True:
        fits = total([slot], places_max)
        fits.begins_us = slot.begins_us
        fits.keep_busiest(namespaces_max)
        if len(encoded(fits)) <= limits.record_bytes_max or namespaces_max <= 1:
            return fits
        namespaces_max, places_max = namespaces_max // 2, places_max // 2


# -- minutes


async def put_minute(
    records: Records, incarnation: bytes, node: str, slot: Slot, backlog_us: int, limits: StatisticsLimits
) -> None:
    """Stores a minute of a node. To repeat it changes nothing."""
    minute = Minute(node, fitting(slot, limits), backlog_us)
    await records.put_record(MINUTES, _key(slot.begins_us, incarnation.hex()), encoded(minute), None)


async def minutes(
    records: Records, from_us: int, to_us: int, limits: StatisticsLimits, observe: Observer
) -> AsyncIterator[StoredMinute]:
    """The minutes that begin in from_us ≤ begin < to_us, the earliest first."""
    async for record in every(records, MINUTES, _key(from_us), _key(to_us), limits.records_read_max):
        for minute in decoded(_minute_decoder, MINUTES, [record], observe):
            yield StoredMinute(record.key.partition("/")[2], minute)


# -- slots of ten minutes


async def ten_minutes(
    records: Records, from_us: int, to_us: int, limits: StatisticsLimits, observe: Observer
) -> AsyncIterator[Slot]:
    """The slots that begin in from_us ≤ begin < to_us, the earliest first."""
    async for record in every(records, TEN_MINUTES, _key(from_us), _key(to_us), limits.records_read_max):
        for slot in decoded(_slot_decoder, TEN_MINUTES, [record], observe):
            yield slot


async def merged_to(records: Records) -> str:
    """The key behind which minutes may be left that were not merged, though they are old enough."""
    newest = await records.records(TEN_MINUTES, limit=1, descending=True)
    return newest[0].key.partition("/")[0] if newest else ""


async def merge(
    records: Records, after: str, before_us: int, limits: StatisticsLimits, observe: Observer
) -> str | None:
    """Replaces the minutes of the first ten behind the key `after` by one slot of all nodes, if the ten end at `before_us` at
    the latest; returns the key to go on behind, None if there are none. If it is interrupted, the next call finishes it: a
    slot that is there has all of its minutes."""
    first = await records.records(MINUTES, after, _key(before_us), limit=1)
    if not first:
        return None
    width_us = limits.ten_minutes_us
    begins_us = _begins(first[0]) // width_us * width_us
    if begins_us + width_us > before_us:
        return None
    keys, slot = [], Slot()
    end = _key(begins_us + width_us)
    async for record in every(records, MINUTES, _key(begins_us), end, limits.records_read_max):
        keys.append(record.key)
        for minute in decoded(_minute_decoder, MINUTES, [record], observe):
            slot.add(minute.slot, limits.places_max)
    slot.begins_us = begins_us
    await records.put_record(TEN_MINUTES, _key(begins_us, _ALL), encoded(fitting(slot, limits)), None)
    await delete_all(records, MINUTES, keys)
    return max(end, first[0].key)


def _begins(record: Record) -> int:
    """The instant in a record's key; 0 for a key that has none."""
    try:
        return int(record.key.partition("/")[0], 16)
    except ValueError:
        return 0


# -- outages


async def put_outage(records: Records, incarnation: bytes, outage: Outage) -> None:
    """Stores what is known of an outage, in place of what was."""
    key = _key(outage.from_us, incarnation.hex())
    stored = await records.record(OUTAGES, key)
    await records.put_record(OUTAGES, key, encoded(outage), None if stored is None else stored.version)


async def outages(records: Records, limits: StatisticsLimits, observe: Observer) -> dict[str, Outage]:
    """The newest outages by the key of their record, the latest first."""
    found = await records.records(OUTAGES, limit=limits.outages_max, descending=True)
    return {record.key: outage for record in found for outage in decoded(_outage_decoder, OUTAGES, [record], observe)}


def outage_key(incarnation: bytes, outage: Outage) -> str:
    """The key of an outage's record."""
    return _key(outage.from_us, incarnation.hex())


# -- the end


async def purge(records: Records, now_us: int, limits: StatisticsLimits) -> None:
    """Removes what is older than it is kept, and the oldest of too many outages; of each kind one page."""
    before = _key(now_us - limits.kept_us)
    for kind in (TEN_MINUTES, OUTAGES):
        old = await records.records(kind, "", before, limit=limits.records_read_max)
        await delete_all(records, kind, [record.key for record in old])
    newest = await records.records(OUTAGES, limit=limits.outages_max, descending=True)
    if len(newest) == limits.outages_max:
        more = await records.records(OUTAGES, "", newest[-1].key, limit=limits.records_read_max)
        await delete_all(records, OUTAGES, [record.key for record in more])
