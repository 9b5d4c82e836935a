"""The port of the outbox dispatcher: the outbox table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from tocsin.ports.bus import Envelope


class OutboxRow(NamedTuple):
    """A message that was committed together with the state change it reports. Numbers grow in the order of appending
    and, for one aggregate, also in the order of commits."""

    number: int
    envelope: Envelope


class OutboxStore(Protocol):
    """The table `outbox`. The async methods raise StoreError."""

    def on_appended(self, notify: Callable[[Sequence[OutboxRow]], None]) -> None:
        """Registers a callback: `notify` is called on the event loop after each commit that appended rows, with those
        rows in order. It only saves time: `unpublished` returns the same rows."""

    def on_unknown(self, notify: Callable[[Sequence[OutboxRow]], None]) -> None:
        """Registers a callback: `notify` is called on the event loop with the rows of each commit whose outcome is
        unknown. The rows are in the table, may still appear there for a moment, or never will. It is called before the
        `on_appended` callback of any later commit."""

    async def unpublished(self, after: int, limit: int) -> list[OutboxRow]:
        """Rows with greater numbers that are neither published nor suspended, in order."""

    async def mark_published(self, numbers: Collection[int], at_us: int) -> None:
        """Marks rows as published. Rows that are marked already or no longer exist are ignored."""

    async def note_failure(self, number: int, attempts: int, error: str) -> None:
        """Records how often publishing the row failed, and the last error."""

    async def suspend(self, number: int, error: str, at_us: int) -> None:
        """Suspends a row that can never be published: it stays in the table for inspection and is not read again."""

    async def purge(self, published_before_us: int, limit: int) -> int:
        """Deletes rows that were published before the instant. Returns how many."""
