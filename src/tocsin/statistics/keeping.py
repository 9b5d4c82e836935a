"""A node's background work on statistics: it completes minutes, stores them and its outages, and where it owns the first
shard, makes ten-minute slots of old minutes and removes what is too old."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tocsin.model.errors import StoreError
from tocsin.ports.clock import Clock
from tocsin.ports.observer import Observer
from tocsin.ports.records import Records
from tocsin.statistics import records as stored
from tocsin.statistics.counting import Statistics
from tocsin.statistics.events import StatisticsNotStored
from tocsin.statistics.limits import StatisticsLimits
from tocsin.statistics.outages import OutageTracker
from tocsin.tasks import end_tasks, spawn

#: How often parts and minutes are completed, and the engine is looked at.
_INTERVAL_S = 1.0


class StatisticsKeeper:
    """Keeps the statistics of one incarnation of a node in the store. What can't be written is written with the next minute;
    `minutes_in_memory` minutes wait at most. `timeout_s` limits each pass of writes. `fatal` is called with an error that
    is a defect."""

    def __init__(
        self,
        store: Records,
        statistics: Statistics,
        outages: OutageTracker,
        *,
        clock: Clock,
        node: str,
        incarnation: bytes,
        observe: Observer,
        timeout_s: float,
        fatal: Callable[[BaseException], None],
    ) -> None:
        self.statistics, self.outages = statistics, outages
        self.node, self.incarnation = node, incarnation
        #: Whether this node does what one node of the cluster does for all.
        self.tidies: Callable[[], bool] = bool
        self._store = store
        self._clock = clock
        self._observe = observe
        self._timeout_s = timeout_s
        self._fatal = fatal
        self._limits: StatisticsLimits = statistics.limits
        self._stored_us = -1
        #: The earliest minute that was stored late since the last pass that has ended; 0: none was.
        self._backlog_us = 0
        self._merged_to: str | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._storing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to count by the clock. Requires a running event loop."""
        self._tasks.append(spawn(self._keep(), self._fatal))

    async def close(self) -> None:
        """Stores what has been counted, the open minute included, if the store answers. Idempotent."""
        if not self._tasks:
            return
        await end_tasks(*self._tasks, *([] if self._storing is None else [self._storing]))
        self._tasks.clear()
        self.outages.stop()
        self.statistics.end_minute()
        await self.store()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL_S)
            self.tick()

    def tick(self) -> None:
        """Completes what is over, and begins to store it."""
        minutes = self.statistics.minutes
        last = minutes[-1].begins_us if minutes else -1
        self.statistics.roll(self._clock.now_us())
        self.outages.look()
        completed = bool(minutes) and minutes[-1].begins_us != last
        idle = self._storing is None or self._storing.done()
        if idle and (completed or self.outages.is_due(self._clock.now_us())):
            self._storing = spawn(self._pass(tidy=completed), self._fatal)

    async def _pass(self, *, tidy: bool) -> None:
        if await self.store() and tidy and self.tidies():
            await self.tidy()

    async def store(self) -> bool:
        """Writes the minutes and outages that are not stored; whether that succeeded."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._store_minutes()
                await self._store_outages()
        except (StoreError, TimeoutError) as error:
            self._observe(StatisticsNotStored(str(error) or "the store did not answer in time"))
            return False
        return True

    async def _store_minutes(self) -> None:
        waiting = [slot for slot in self.statistics.minutes if slot.begins_us > self._stored_us]
        late = [slot for slot in waiting[:-1] if not slot.idle]
        if late and not self._backlog_us:
            self._backlog_us = late[0].begins_us
        for slot in waiting:
            # Readers learn from the last one that there were others, also if these were stored by a pass that has failed.
            if not slot.idle or (self._backlog_us and slot is waiting[-1]):
                await stored.put_minute(self._store, self.incarnation, self.node, slot, self._backlog_us, self._limits)
            self._stored_us = slot.begins_us
        if waiting:
            self._backlog_us = 0

    async def _store_outages(self) -> None:
        outages = self.outages
        outages.tried_us = self._clock.now_us()
        while outages.unstored:
            # Before it is written: what changes meanwhile has it written again.
            outage = outages.unstored.pop(0)
            try:
                await stored.put_outage(self._store, self.incarnation, outage)
            except BaseException:
                outages.keep(outage)
                raise

    async def tidy(self) -> None:
        """Makes ten-minute slots of minutes that are old enough, some at a time, and removes what is too old."""
        now_us = self._clock.now_us()
        try:
            if self._merged_to is None:
                self._merged_to = await stored.merged_to(self._store)
            for _ in range(self._limits.merged_per_pass_max):
                before_us = now_us - self._limits.minutes_kept_us
                key = await stored.merge(self._store, self._merged_to, before_us, self._limits, self._observe)
                if key is None:
                    break
                self._merged_to = key
            await stored.purge(self._store, now_us, self._limits)
        except StoreError as error:
            self._observe(StatisticsNotStored(str(error)))
