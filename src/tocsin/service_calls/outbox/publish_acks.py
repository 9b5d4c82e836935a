"""Publish acknowledgements: records in the outbox table which rows were published, suspended or failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tocsin.ports.clock import Clock
from tocsin.service_calls.alarm import Alarm
from tocsin.service_calls.events import AgentObserver, AgentStepFailed, MessagesPublished
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.outbox.ports import OutboxRow, OutboxStore

#: Failures that wait to be written to their rows. They serve people only, and each is a transaction; beyond this number
#: they are only reported as events.
_NOTES_MAX = 100


class _Suspended(NamedTuple):
    number: int
    error: str


class PublishAcks:
    """Writes in the background, one transaction at a time. Acknowledgements that arrive during a transaction go into
    the next. A failed write is repeated until it succeeds."""

    def __init__(
        self,
        store: OutboxStore,
        clock: Clock,
        limits: AgentLimits,
        observe: AgentObserver,
        recorded: Callable[[Sequence[int]], None],
    ) -> None:
        """`recorded` is called with the numbers of rows that are done: published or suspended."""
        self._store = store
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._recorded = recorded
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
        """Rows that were published or are to be suspended, and are not recorded yet."""
        return self._waiting

    def published(self, row: OutboxRow) -> None:
        """The bus accepted the row."""
        made_ms = row.envelope.timestamp_ms
        if self._oldest_ms is None or made_ms < self._oldest_ms:
            self._oldest_ms = made_ms
        self._published.append(row.number)
        self._waiting += 1
        self._alarm.wake()

    def failed(self, number: int, attempts: int, error: str) -> None:
        """The bus did not accept the row; it will be sent again."""
        if number in self._notes or len(self._notes) < _NOTES_MAX:
            self._notes[number] = (attempts, error)
            self._alarm.wake()

    def suspend(self, row: OutboxRow, error: str) -> None:
        """The bus can never accept the row."""
        self._suspended.append(_Suspended(row.number, error))
        self._waiting += 1
        self._alarm.wake()

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Starts writing."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Returns when everything is written."""
        self._closing = True
        self._alarm.wake()
        self._closer.wake()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def abandon(self) -> None:
        """Stops without writing the rest: rows that are not recorded are sent again after the next start."""
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
            except Exception as error:  # noqa: BLE001 -- whatever fails is tried again
                failures += 1
                self._observe(AgentStepFailed("outbox mark", f"{type(error).__name__}: {error}"))
                pause_us = limits.outbox_backoff_initial_us * 2 ** min(failures - 1, 32)
                await asyncio.sleep(min(pause_us, limits.outbox_backoff_max_us) / 1e6)

    async def _pause(self, pause_us: int) -> None:
        """Lets acknowledgements accumulate; `close` ends the pause."""
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
            self._recorded([number])
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
        self._recorded(numbers)
        lag_us = max(now_us - oldest_ms * 1_000, 0) if oldest_ms is not None else 0
        self._observe(MessagesPublished(count, lag_us))
