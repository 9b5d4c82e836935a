"""Publish acknowledgements: records in the outbox table which rows were published, suspended or failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tocsin.service_calls.background import GroupCommit
from tocsin.service_calls.context import AgentContext
from tocsin.service_calls.events import MessagesPublished
from tocsin.service_calls.outbox.ports import OutboxRow, OutboxStore

#: Failures that wait to be written to their rows. They serve people only, and each is a transaction; beyond this number
#: they are only reported as events.
_NOTES_MAX = 100


class _Suspended(NamedTuple):
    number: int
    error: str


class _Failed(NamedTuple):
    number: int
    attempts: int
    error: str


class PublishAcks:
    """Writes in the background. Acknowledgements that arrive during a transaction go into the next. A failed write is
    repeated until it succeeds."""

    def __init__(self, store: OutboxStore, context: AgentContext, recorded: Callable[[Sequence[int]], None]) -> None:
        """`recorded` is called with the numbers of rows that are done: published or suspended."""
        self._store = store
        self._context = context
        self._recorded = recorded
        gather_us = context.limits.outbox_acknowledge_interval_us
        self._published = GroupCommit("outbox acknowledgement", self._mark_published, context, gather_us=gather_us)
        self._suspended = GroupCommit("outbox acknowledgement", self._suspend, context)
        self._notes = GroupCommit("outbox acknowledgement", self._note, context)
        self._noting = 0
        #: Rows that were published or are to be suspended, and are not recorded yet.
        self.waiting = 0

    def published(self, row: OutboxRow) -> None:
        """The bus accepted the row."""
        self.waiting += 1
        self._published.add(row)

    def failed(self, number: int, attempts: int, error: str) -> None:
        """The bus did not accept the row; it will be sent again."""
        if self._noting < _NOTES_MAX:
            self._noting += 1
            self._notes.add(_Failed(number, attempts, error))

    def suspend(self, number: int, error: str) -> None:
        """The bus can never accept the row."""
        self.waiting += 1
        self._suspended.add(_Suspended(number, error))

    async def drain(self) -> None:
        """Returns when everything is written."""
        for batches in (self._published, self._suspended, self._notes):
            await batches.drain()

    async def close(self) -> None:
        """Stops without writing the rest: rows that are not recorded are sent again after the next start."""
        for batches in (self._published, self._suspended, self._notes):
            await batches.close()

    # ------------------------------------------------------------------ writing

    async def _mark_published(self, rows: list[OutboxRow]) -> None:
        now_us = self._context.clock.now_us()
        await self._store.mark_published([row.number for row in rows], now_us)
        self._done(rows)
        oldest_us = min(row.envelope.timestamp_ms for row in rows) * 1_000
        self._context.observe(MessagesPublished(len(rows), max(now_us - oldest_us, 0)))

    async def _suspend(self, rows: list[_Suspended]) -> None:
        for row in rows:
            await self._store.suspend(row.number, row.error, self._context.clock.now_us())
        self._done(rows)

    def _done(self, rows: Sequence[OutboxRow | _Suspended]) -> None:
        self.waiting -= len(rows)
        self._recorded([row.number for row in rows])

    async def _note(self, notes: list[_Failed]) -> None:
        for note in {note.number: note for note in notes}.values():
            await self._store.note_failure(*note)
        self._noting -= len(notes)
