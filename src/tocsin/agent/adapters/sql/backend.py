"""What the stores ask of a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")


class Database(Protocol):
    """Transactions. Work runs on a thread or a greenlet of the database's, may be run again from its start after a
    conflict, and must have no other effects."""

    async def open(self) -> None:
        """Locks the database for this agent and migrates it. Raises StoreLocked, SchemaTooNew, StoreUnavailable."""

    async def write(self, work: Callable[[Connection], T], committed: Callable[[], None] | None = None) -> T:
        """What `work` returns, once it is durable; what it raises, after undoing it. `committed` is called on the event
        loop after the commit, in the order of commits, even when nobody waits any more. Raises StoreUnavailable when
        nothing was written, OutcomeUnknown when that can't be known."""

    async def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns, all of it from one state of the database."""

    async def close(self) -> None:
        """Ends what is under way and gives up the lock. Idempotent."""
