"""Schedules in a table, found by looking."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from tocsin.agent.alarm import Alarm
from tocsin.agent.events import AgentObserver, DuePolled, DuePollFailed
from tocsin.agent.limits import AgentLimits
from tocsin.agent.messages import Key
from tocsin.agent.timer.ports import OnDue, TimerEntry, TimerStore
from tocsin.model.instants import INSTANT_MIN
from tocsin.ports.clock import Clock

#: A sleep never lasts longer: a wall clock that jumped is noticed by then.
_SLEEP_US_MAX = 1_000_000
#: How many times as long as a poll took the next one waits, while schedules go on falling due.
_REST = 4
#: The first pause after a failed poll; it doubles up to the polling interval.
_BACKOFF_INITIAL_US = 100_000

#: A call and its due time.
Schedule = tuple[Key, int]


class PollingTimers:
    """A worker that looks for due schedules at the instant the next one is due, or after `polling_interval`, whichever is
    earlier. Told first, marked afterwards: a crash between the two makes a repetition, never a loss.

    What was found is told and marked while the next look is under way. A look begins where the one before ended, so that
    it does not read again what is not yet marked; it begins at the beginning when something was scheduled before that
    place, when telling or marking failed, and once an interval in any case.
    """

    def __init__(self, store: TimerStore, clock: Clock, limits: AgentLimits, observe: AgentObserver) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._on_due: OnDue | None = None
        # The earliest due time that is known to wait.
        self._next_at: int | None = None
        self._polled_at = 0
        self._rest_us = 0
        # Found, and not yet marked, by call and due time: a call may wait for its next instant before the last is marked.
        self._under_way: set[Schedule] = set()
        # Everything due before this has been found; and the earliest that was scheduled since the look under way began.
        self._found_to = INSTANT_MIN
        self._arrived_at: int | None = None
        self._swept_at = 0
        self._told: list[Schedule] = []
        self._failures = 0
        self._alarm = Alarm()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self._marking: asyncio.Task[None] | None = None
        self._telling: set[asyncio.Task[None]] = set()

    async def start(self, on_due: OnDue) -> None:
        """Begins with a look at what fell due before."""
        self._on_due = on_due
        self._task = asyncio.create_task(self._run())

    async def schedule(self, entries: Sequence[TimerEntry]) -> None:
        """As TimerStore.schedule_timers. Wakes the worker earlier where that is needed, without asking the table."""
        await self._store.schedule_timers(entries)
        if entries:
            self._found_again(min(entry.due_at for entry in entries))

    async def cancel(self, keys: Collection[Key]) -> None:
        """As TimerStore.delete_timers."""
        await self._store.delete_timers(keys)

    async def close(self) -> None:
        """Returns when what was found has been told and marked, as far as that works. Idempotent."""
        self._closing = True
        self._alarm.wake()
        if self._task is not None:
            await self._task
            self._task = None
        await asyncio.gather(*self._telling)
        if self._marking is not None:
            await self._marking

    # ------------------------------------------------------------------ the worker

    async def _run(self) -> None:
        while not self._closing:
            more = False
            try:
                more = await self._poll()
                if not self._telling:
                    self._failures = 0
            except Exception as error:  # noqa: BLE001 -- whatever fails in one poll, the next has to come
                self._failed(error)
            if self._failures:
                await self._back_off()
            elif not more:
                await self._until_next()

    async def _poll(self) -> bool:
        """One look: find what is due and not under way, and have it told. Returns whether there is probably more."""
        limits = self._limits
        while len(self._under_way) >= limits.polling_in_flight_max:
            await self._alarm.wait()
            if self._closing:
                return False
        self._polled_at = self._clock.boottime_us()
        if self._polled_at - self._swept_at >= limits.polling_interval_us:
            self._swept_at, self._found_to = self._polled_at, INSTANT_MIN
        self._arrived_at = None
        from_us, now_us = self._found_to, self._clock.now_us()
        # What is marked while the table answers may stand in the answer all the same.
        passed_over = {schedule for schedule in self._under_way if schedule[1] >= from_us}
        most = limits.polling_batch_max + len(passed_over)
        found: list[TimerEntry] = []
        tenants = await self._store.due_tenants(from_us, now_us, most)
        if tenants:
            found = await self._store.find_due(tenants, from_us, now_us, most)
        fresh = [entry for entry in found if (entry.key, entry.due_at) not in passed_over]
        entries = fresh[: limits.polling_batch_max]
        more = len(fresh) > len(entries) or len(found) >= most or len(tenants) >= most
        found_to = now_us if not more else entries[-1].due_at if entries else from_us
        self._found_to = found_to if self._arrived_at is None else min(found_to, self._arrived_at)
        if entries:
            self._begin(entries)
            # Where some fell due, others soon will: another look costs no more than asking when.
            self._next_at = now_us
        elif not more:
            await self._look_ahead(now_us)
        poll_us, gather_us = self._clock.boottime_us() - self._polled_at, limits.polling_batch_delay_us
        # After a quiet time the first one due should not wait long; amid many, the table should rest.
        self._rest_us = max(gather_us, min(_REST * poll_us, 10 * gather_us)) if entries else gather_us
        self._observe(DuePolled(len(entries), poll_us))
        return more

    async def _look_ahead(self, now_us: int) -> None:
        """Learns the next due time after `now_us`. What was scheduled since the look began, which may have been too late for
        it to be found, counts too."""
        self._next_at = self._arrived_at
        found = await self._store.next_due_at(now_us)
        if found is not None:
            self._expect(found)

    def _expect(self, due_at: int) -> None:
        if self._next_at is None or due_at < self._next_at:
            self._next_at = due_at
            self._alarm.wake()

    # ------------------------------------------------------------------ telling and marking

    def _begin(self, entries: list[TimerEntry]) -> None:
        self._under_way.update((entry.key, entry.due_at) for entry in entries)
        task = asyncio.create_task(self._tell(entries))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self, entries: list[TimerEntry]) -> None:
        on_due = self._on_due
        assert on_due is not None
        told = [(entry.key, entry.due_at) for entry in entries]
        try:
            await on_due(entries)
        except Exception as error:  # noqa: BLE001 -- they are found again
            self._let_go(told)
            self._failed(error)
            self._found_again(entries[0].due_at)
            return
        self._failures = 0
        self._told += told
        if self._marking is None or self._marking.done():
            self._marking = asyncio.create_task(self._mark())

    async def _mark(self) -> None:
        """Marks what was told, until there is nothing more; one transaction at a time, what is told meanwhile gathers."""
        while self._told:
            told, self._told = self._told, []
            try:
                await self._store.mark_fired(told, self._clock.now_us())
            except Exception as error:  # noqa: BLE001 -- they are found, told and marked again
                self._failed(error)
                self._found_again(min(due_at for _, due_at in told))
            self._let_go(told)

    def _let_go(self, schedules: Sequence[Schedule]) -> None:
        self._under_way.difference_update(schedules)
        # The worker may be waiting for room.
        self._alarm.wake()

    def _found_again(self, due_at: int) -> None:
        """What is due from then on has to be looked at once more."""
        self._found_to = min(self._found_to, due_at)
        self._arrived_at = due_at if self._arrived_at is None else min(self._arrived_at, due_at)
        self._expect(due_at)

    # ------------------------------------------------------------------ pauses

    async def _until_next(self) -> None:
        """Sleeps until the next schedule is due, or the polling interval has passed.

        Schedules that fall due close to one another are told together: the pause after the first is `polling_gather`, or as
        long as several polls take while they keep finding something, so that the table has more rest than work.
        """
        limits = self._limits
        while not self._closing:
            left_us = self._polled_at + limits.polling_interval_us - self._clock.boottime_us()
            if self._next_at is not None:
                left_us = min(left_us, self._next_at + self._rest_us - self._clock.now_us())
            if left_us <= 0:
                return
            await self._alarm.wait(min(left_us, _SLEEP_US_MAX))

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._observe(DuePollFailed(f"{type(error).__name__}: {error}"))

    async def _back_off(self) -> None:
        pause_us = min(_BACKOFF_INITIAL_US * 2 ** min(self._failures - 1, 32), self._limits.polling_interval_us)
        until_us = self._clock.boottime_us() + pause_us
        while not self._closing and (left_us := until_us - self._clock.boottime_us()) > 0:
            await self._alarm.wait(left_us)
