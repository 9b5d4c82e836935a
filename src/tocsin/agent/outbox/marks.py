"""Publish acknowledgements: what is to be written about rows that were sent, collected and tried until it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tocsin.agent.alarm import Alarm
from tocsin.agent.events import AgentObserver, AgentStepFailed, MessagesPublished
from tocsin.agent.limits import AgentLimits
from tocsin.agent.outbox.ports import OutboxRow, OutboxStore
from tocsin.ports.clock import Clock

#: Failures that wait to be noted; the notes are for people, and each is a transaction. Beyond it they are only told.
_NOTES_MAX = 100


class _Suspended(NamedTuple):
    number: int
    error: str


class Marks:
    """Writes in the background, one transaction at a time; what comes meanwhile makes up the next one."""

    def __init__(
        self,
        store: OutboxStore,
        clock: Clock,
        limits: AgentLimits,
        observe: AgentObserver,
        marked: Callable[[Sequence[int]], None],
    ) -> None:
        """`marked` is called with the numbers of rows that need no more attention, published or suspended."""
        self._store = store
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._marked = marked
        self._published: list[int] = []
        self._oldest_ms: int | None = None
        self._suspended: list[_Suspended] = []
        self._notes: dict[int, tuple[int, str]] = {}
        self._waiting = 0
        self._alarm = Alarm()
        self._closing = False
        self._closer = Alarm()
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Rows that were taken, or given up, and are not marked yet."""
        return self._waiting

    def published(self, row: OutboxRow) -> None:
        """The bus has taken it."""
        made_ms = row.envelope.timestamp_ms
        if self._oldest_ms is None or made_ms < self._oldest_ms:
            self._oldest_ms = made_ms
        self._published.append(row.number)
        self._waiting += 1
        self._alarm.wake()

    def failed(self, number: int, attempts: int, error: str) -> None:
        """It was not taken, and will be sent again."""
        if number in self._notes or len(self._notes) < _NOTES_MAX:
            self._notes[number] = (attempts, error)
            self._alarm.wake()

    def suspend(self, row: OutboxRow, error: str) -> None:
        """It can never be taken."""
        self._suspended.append(_Suspended(row.number, error))
        self._waiting += 1
        self._alarm.wake()

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Begins to write."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Returns when everything is written."""
        self._closing = True
        self._alarm.wake()
        self._closer.wake()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def abandon(self) -> None:
        """Ends, whatever is left: rows that aren't marked are sent again after the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        limits, failures = self._limits, 0
        while True:
            if not (self._published or self._suspended or self._notes):
                if self._closing:
                    return
                await self._alarm.wait()
                await self._pause(limits.outbox_acknowledge_interval_us)
                continue
            try:
                await self._write()
                failures = 0
                await self._pause(limits.outbox_acknowledge_interval_us)
            except Exception as error:  # noqa: BLE001 -- whatever fails now has to be tried again
                failures += 1
                self._observe(AgentStepFailed("outbox mark", f"{type(error).__name__}: {error}"))
                pause_us = limits.outbox_backoff_initial_us * 2 ** min(failures - 1, 32)
                await asyncio.sleep(min(pause_us, limits.outbox_backoff_max_us) / 1e6)

    async def _pause(self, pause_us: int) -> None:
        """Lets marks gather; a close doesn't wait for it."""
        if not self._closing and pause_us:
            await self._closer.wait(pause_us)

    async def _write(self) -> None:
        if self._published:
            await self._write_published()
        while self._suspended:
            number, error = self._suspended[0]
            await self._store.suspend(number, error, self._clock.now_us())
            del self._suspended[0]
            self._waiting -= 1
            self._marked([number])
        while self._notes:
            number, (attempts, error) = next(iter(self._notes.items()))
            await self._store.note_failure(number, attempts, error)
            if self._notes.get(number) == (attempts, error):
                del self._notes[number]

    async def _write_published(self) -> None:
        count = len(self._published)
        numbers, oldest_ms = self._published[:count], self._oldest_ms
        now_us = self._clock.now_us()
        self._oldest_ms = None
        try:
            await self._store.mark_published(numbers, now_us)
        except BaseException:
            if oldest_ms is not None and (self._oldest_ms is None or oldest_ms < self._oldest_ms):
                self._oldest_ms = oldest_ms
            raise
        del self._published[:count]
        self._waiting -= count
        self._marked(numbers)
        lag_us = max(now_us - oldest_ms * 1_000, 0) if oldest_ms is not None else 0
        self._observe(MessagesPublished(count, lag_us))
