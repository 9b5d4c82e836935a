"""What happened on all nodes: this node's minutes from its memory, those of the others, and older ones, from the store.

The last hour stays in memory, so that a page reads only what is new. Complete minutes do not change; those that a node stores
late, because the store was away, are read when its next one announces them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import ne
from typing import NamedTuple

import msgspec

from tocsin.model.errors import StoreError, Unavailable
from tocsin.ports.clock import Clock
from tocsin.ports.observer import Observer
from tocsin.ports.records import Records
from tocsin.statistics import records as stored
from tocsin.statistics.keeping import StatisticsKeeper
from tocsin.statistics.outages import Outage
from tocsin.statistics.slots import Counts, Failures, Slot, add_failures, split_place, total
from tocsin.tasks import Refreshed, Turns

#: The minimum time between two reads, however many pages and requests ask.
_INTERVAL_S = 1.0
#: So long after its end the other nodes may not have stored a minute yet. Later, one that is not there was idle.
_STORED_WITHIN_US = 10_000_000
#: Minutes that are read again, because a node may have stored its own some seconds after another.
_OVERLAP_MINUTES = 2
#: How often a read begins again because minutes became a ten-minute slot meanwhile, which happens every ten minutes.
_READS_MAX = 3

#: Whether a namespace's numbers are wanted.
Wanted = Callable[[str], bool]


class Hour(NamedTuple):
    """The last hour. `slots` are the complete minutes in which something happened, the earliest first, and `complete` is
    their sum; `open` is the present one, as far as this node counted it. `last_minute` is the last minute of this node
    and the latest complete one of the others."""

    at_us: int
    slots: list[Slot]
    complete: Slot
    open: Slot
    last_minute: Slot


@dataclass(slots=True)
class Result:
    """Counts by the begin of their slot, the earliest first, without those in which nothing happened, and failures by
    `failing_place`, over all of it."""

    counts: dict[int, Counts] = field(default_factory=dict)
    failing: dict[str, Failures] = field(default_factory=dict)

    def add(self, slot: Slot, width_us: int, wanted: Wanted, places_max: int) -> None:
        """Adds what is wanted of a slot."""
        counts = slot.counts(wanted)
        if counts.weight:
            self.counts.setdefault(slot.begins_us // width_us * width_us, Counts()).add(counts)
        for place, failures in slot.failing.items():
            if wanted(split_place(place)[0]):
                add_failures(self.failing, place, failures, places_max)


class StatisticsReader(Refreshed):
    """Reads, and keeps the last hour. `refresh` does not raise; `failure` is why the last read failed."""

    def __init__(
        self, store: Records, keeper: StatisticsKeeper, clock: Clock, observe: Observer, timeout_s: float
    ) -> None:
        super().__init__(_INTERVAL_S)
        self._store = store
        self._keeper = keeper
        self._clock = clock
        self._observe = observe
        self._timeout_s = timeout_s
        #: The limits of what is kept.
        self.limits = keeper.statistics.limits
        self._own = keeper.incarnation.hex()
        self._turns = Turns()
        self._long_reads = asyncio.Lock()
        #: The other nodes' minutes of the last hour, and which incarnations are in each.
        self._sums: dict[int, Slot] = {}
        self._seen: dict[int, set[str]] = {}
        self._read_to_us = 0
        self._outages: dict[str, Outage] = {}
        self._versions: tuple[int | None, ...] = (None, None)
        # The complete minutes and their sum, which change once a minute and are asked for every second.
        self._known: tuple[object, list[Slot], Slot] = (None, [], Slot())
        self.failure: str | None = None
        # How often minutes of other nodes were read.
        self._loads = 0

    # ------------------------------------------------------------------ the last hour

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._read_new()
        except (StoreError, TimeoutError) as error:
            self.failure = str(error) or "the store did not answer in time"
        else:
            self.failure = None

    async def _read_new(self) -> None:
        limits, now_us = self.limits, self._clock.now_us()
        hour_us = now_us - limits.minutes_in_memory * limits.minute_us
        for begins_us in [each for each in self._sums if each + limits.minute_us <= hour_us]:
            del self._sums[begins_us], self._seen[begins_us]
        # First: what is read after it is at least as new.
        versions = await self._store.records_versions(stored.MINUTES, stored.OUTAGES)
        new_minutes, new_outages = map(ne, versions, self._versions)
        if new_minutes:
            from_us = max(self._read_to_us - _OVERLAP_MINUTES * limits.minute_us, hour_us)
            back_us = await self._load(from_us, now_us + limits.minute_us)
            if back_us < from_us:
                await self._load(max(back_us, hour_us), from_us)
            self._read_to_us = now_us
        if new_outages:
            self._outages = await stored.outages(self._store, limits, self._observe)
        self._versions = versions

    async def _load(self, from_us: int, to_us: int) -> int:
        """Adds the other nodes' minutes in this range; returns the earliest one that they have stored late."""
        back_us, self._loads = from_us, self._loads + 1
        async for incarnation, minute in stored.minutes(self._store, from_us, to_us, self.limits, self._observe):
            slot = minute.slot
            seen = self._seen.setdefault(slot.begins_us, set())
            sums = self._sums.setdefault(slot.begins_us, Slot(slot.begins_us))
            if incarnation not in seen and incarnation != self._own:
                seen.add(incarnation)
                await self._turns.run(sums.add, slot, self.limits.places_max)
                sums.keep_busiest(self.limits.namespaces_max)
                back_us = min(back_us, minute.backlog_us or back_us)
        self._loads += 1
        return back_us

    def hour(self) -> Hour:
        """The last hour, as of the last `refresh`."""
        statistics, now_us, width_us = self._keeper.statistics, self._clock.now_us(), self.limits.minute_us
        statistics.sample()
        present_us = now_us - now_us % width_us
        state = (self._loads, present_us, statistics.minutes[-1].begins_us if statistics.minutes else 0)
        if self._known[0] != state:
            slots = self._complete(now_us - self.limits.minutes_in_memory * width_us)
            self._known = (state, slots, total(slots, self.limits.places_max))
        _, slots, complete = self._known
        latest = self._sums.get(present_us - width_us)
        if latest is None and now_us - present_us < _STORED_WITHIN_US:
            latest = self._sums.get(present_us - 2 * width_us)
        last = total([statistics.last_minute(now_us), latest or Slot()], self.limits.places_max)
        return Hour(now_us, slots, complete, statistics.open, last)

    def _complete(self, from_us: int) -> list[Slot]:
        """The complete minutes of all nodes that end after an instant, without those in which nothing happened."""
        own, slots = {slot.begins_us: slot for slot in self._keeper.statistics.minutes}, []
        for begins_us in sorted({*own, *self._sums}):
            both = [slot for slot in (own.get(begins_us), self._sums.get(begins_us)) if slot is not None]
            slot = both[0] if len(both) == 1 else total(both, self.limits.places_max)
            slot.begins_us = begins_us
            if begins_us + self.limits.minute_us > from_us and not slot.idle:
                slots.append(slot)
        return slots

    def outages(self, from_us: int, to_us: int) -> list[Outage]:
        """The outages that overlap the range, the latest first: stored ones, and those in this node's memory."""
        tracker, incarnation = self._keeper.outages, self._keeper.incarnation
        own = [*tracker.unstored, *tracker.aftermath, tracker.present]
        known = {key: self._final(each) for key, each in self._outages.items()}
        known |= {stored.outage_key(incarnation, each): each for each in own if each is not None}
        return sorted(
            (each for each in known.values() if each.from_us < to_us and (each.to_us is None or each.to_us > from_us)),
            key=lambda each: (-each.from_us, each.node),
        )

    def _final(self, outage: Outage) -> Outage:
        """A stored outage. A node that was killed has left it as one whose late attempts are counted."""
        latest_us = (outage.to_us or 0) + self.limits.aftermath_us_max + self.limits.outage_rewrite_us
        if outage.counting and self._clock.now_us() > latest_us:
            return msgspec.structs.replace(outage, counting=False)
        return outage

    # ------------------------------------------------------------------ any range

    async def read(self, from_us: int, to_us: int, width_us: int, wanted: Wanted) -> Result:
        """The counts of slots of this width that begin in from_us ≤ begin < to_us; `from_us` begins one. Raises
        Unavailable."""
        await self.refresh()
        if self.failure is not None:
            raise Unavailable(f"the statistics can't be read: {self.failure}")
        if from_us >= self._clock.now_us() - (self.limits.minutes_in_memory - 1) * self.limits.minute_us:
            hour, result = self.hour(), Result()
            for slot in (*hour.slots, hour.open):
                if from_us <= slot.begins_us < to_us:
                    result.add(slot, width_us, wanted, self.limits.places_max)
            return result
        async with self._long_reads:
            try:
                return await self._read_stored(from_us, to_us, width_us, wanted)
            except StoreError as error:
                raise Unavailable(f"the statistics can't be read: {error}") from error

    async def _read_stored(self, from_us: int, to_us: int, width_us: int, wanted: Wanted) -> Result:
        result = Result()
        for _ in range(_READS_MAX):
            merged_to = await stored.merged_to(self._store)
            result = await self._read_once(from_us, to_us, width_us, wanted)
            if await stored.merged_to(self._store) == merged_to:
                break
        result.counts = dict(sorted(result.counts.items()))
        return result

    async def _read_once(self, from_us: int, to_us: int, width_us: int, wanted: Wanted) -> Result:
        limits, statistics, result = self.limits, self._keeper.statistics, Result()
        ten_us, places_max, merged = limits.ten_minutes_us, limits.places_max, set()
        if width_us == ten_us:
            async for slot in stored.ten_minutes(self._store, from_us, to_us, limits, self._observe):
                merged.add(slot.begins_us)
                await self._turns.run(result.add, slot, width_us, wanted, places_max)
        held = list(statistics.minutes)
        async for incarnation, minute in stored.minutes(self._store, from_us, to_us, limits, self._observe):
            begins_us = minute.slot.begins_us
            in_memory = incarnation == self._own and (not held or begins_us >= held[0].begins_us)
            if in_memory or begins_us // ten_us * ten_us in merged:
                continue
            await self._turns.run(result.add, minute.slot, width_us, wanted, places_max)
        newer = [slot for slot in statistics.minutes if not held or slot.begins_us > held[-1].begins_us]
        for slot in (*held, *newer, statistics.open):
            if from_us <= slot.begins_us < to_us and slot.begins_us // ten_us * ten_us not in merged:
                result.add(slot, width_us, wanted, places_max)
        return result
