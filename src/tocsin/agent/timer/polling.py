"""Schedules in a table, found by looking."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from tocsin.agent.alarm import Alarm
from tocsin.agent.events import AgentObserver, DuePolled, DuePollFailed
from tocsin.agent.limits import AgentLimits
from tocsin.agent.messages import Key
from tocsin.agent.timer.ports import OnDue, TimerEntry, TimerStore
from tocsin.ports.clock import Clock

#: A sleep never lasts longer: a wall clock that jumped is noticed by then.
_SLEEP_US_MAX = 1_000_000
#: The first pause after a failed poll; it doubles up to the polling interval.
_BACKOFF_INITIAL_US = 100_000


class PollingTimers:
    """A worker that looks for due schedules at the instant the next one is due, or after `polling_interval`, whichever is
    earlier. Told first, marked afterwards: a crash between the two makes a repetition, never a loss."""

    def __init__(self, store: TimerStore, clock: Clock, limits: AgentLimits, observe: AgentObserver) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._on_due: OnDue | None = None
        # The earliest due time that is known to wait.
        self._next_at: int | None = None
        self._polled_at = 0
        self._poll_us = 0
        self._alarm = Alarm()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    async def start(self, on_due: OnDue) -> None:
        """Begins with a look at what fell due before."""
        self._on_due = on_due
        self._task = asyncio.create_task(self._run())

    async def schedule(self, entries: Sequence[TimerEntry]) -> None:
        """As TimerStore.schedule_timers. Wakes the worker earlier where that is needed, without asking the table."""
        await self._store.schedule_timers(entries)
        if entries:
            self._expect(min(entry.due_at for entry in entries))

    async def cancel(self, keys: Collection[Key]) -> None:
        """As TimerStore.delete_timers."""
        await self._store.delete_timers(keys)

    async def close(self) -> None:
        """Returns when the poll under way has ended. Idempotent."""
        self._closing = True
        self._alarm.ring()
        if self._task is not None:
            await self._task
            self._task = None

    # ------------------------------------------------------------------ the worker

    async def _run(self) -> None:
        failures = 0
        while not self._closing:
            try:
                more = await self._poll()
                failures = 0
            except Exception as error:  # noqa: BLE001 -- whatever fails in one poll, the next has to come
                failures += 1
                self._observe(DuePollFailed(f"{type(error).__name__}: {error}"))
                await self._back_off(failures)
                continue
            if not more:
                await self._until_next()

    async def _poll(self) -> bool:
        """One look: tell what is due, mark it. Returns whether there is probably more."""
        on_due, limits = self._on_due, self._limits
        assert on_due is not None
        self._polled_at = self._clock.boottime_us()
        entries: list[TimerEntry] = []
        tenants = await self._store.due_tenants(self._clock.now_us(), limits.polling_batch_max)
        if tenants:
            now_us = self._clock.now_us()
            entries = await self._store.find_due(tenants, now_us, limits.polling_batch_max)
        if entries:
            await on_due(entries)
            await self._store.mark_fired([entry.key for entry in entries], self._clock.now_us())
        more = len(entries) >= limits.polling_batch_max or len(tenants) >= limits.polling_batch_max
        if entries:
            # Where some fell due, others soon will: another look costs no more than asking when.
            self._next_at = self._clock.now_us()
        elif not more:
            await self._look_ahead()
        self._poll_us = self._clock.boottime_us() - self._polled_at
        self._observe(DuePolled(len(entries), self._poll_us))
        return more

    async def _look_ahead(self) -> None:
        """Learns the next due time. What is scheduled while the table answers counts too."""
        self._next_at = None
        found = await self._store.next_due_at()
        if found is not None:
            self._expect(found)

    def _expect(self, due_at: int) -> None:
        if self._next_at is None or due_at < self._next_at:
            self._next_at = due_at
            self._alarm.ring()

    async def _until_next(self) -> None:
        """Sleeps until the next schedule is due, or the polling interval has passed.

        Schedules that fall due close to one another are told together: the pause after the first is `polling_gather`, or as
        long as the last poll took if that is longer, so that the table has at least as much rest as work.
        """
        limits = self._limits
        gather_us = max(limits.polling_gather_us, min(self._poll_us, 10 * limits.polling_gather_us))
        while not self._closing:
            left_us = self._polled_at + limits.polling_interval_us - self._clock.boottime_us()
            if self._next_at is not None:
                left_us = min(left_us, self._next_at + gather_us - self._clock.now_us())
            if left_us <= 0:
                return
            await self._alarm.wait(min(left_us, _SLEEP_US_MAX))

    async def _back_off(self, failures: int) -> None:
        pause_us = min(_BACKOFF_INITIAL_US * 2 ** min(failures - 1, 32), self._limits.polling_interval_us)
        until_us = self._clock.boottime_us() + pause_us
        while not self._closing and (left_us := until_us - self._clock.boottime_us()) > 0:
            await self._alarm.wait(left_us)
