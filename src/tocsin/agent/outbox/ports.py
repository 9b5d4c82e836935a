"""What the dispatcher asks of the outbox table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from tocsin.model.envelope import Envelope


class OutboxRow(NamedTuple):
    """A message that was committed with the state that it tells of. Numbers grow in the order of appending; for one
    aggregate also in the order of committing."""

    number: int
    envelope: Envelope


class OutboxStore(Protocol):
    """The table `outbox`. The methods that wait raise StoreError."""

    def on_appended(self, notify: Callable[[Sequence[OutboxRow]], None]) -> None:
        """Calls `told` on the event loop after each commit that appended rows, with those rows in their order. Only a
        short cut: whoever misses a call finds the rows by `unpublished`."""

    def on_unknown(self, notify: Callable[[Sequence[OutboxRow]], None]) -> None:
        """Calls `notified` on the event loop with the rows of each commit whose outcome is unknown: they are in the table,
        may still get there for a moment, or never. It is called before `told` is for any commit that came after."""

    async def unpublished(self, after: int, limit: int) -> list[OutboxRow]:
        """Rows with greater numbers that were neither published nor suspended, in order."""

    async def mark_published(self, numbers: Collection[int], at_us: int) -> None:
        """They are on the bus. What is marked, or gone, is left alone."""

    async def note_failure(self, number: int, attempts: int, error: str) -> None:
        """Remembers how often sending failed, and why last."""

    async def suspend(self, number: int, error: str, at_us: int) -> None:
        """It can never be published: keeps it for people to see, out of the way."""

    async def purge(self, published_before_us: int, limit: int) -> int:
        """Removes rows published before the instant; returns how many."""
