"""What the stores ask of a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")


#: Is told which node has the database, whenever that changes while one waits for it.
StandingBy = Callable[[str], None]


class Database(Protocol):
    """Transactions. Work runs on a thread or a greenlet of the database's, may be run again from its start after a
    conflict, and must have no other effects."""

    #: Whether agents of several nodes can stand by for one another. Otherwise a process locks it until it ends.
    shared: bool

    async def open(self, wait_s: float | None = None, standing_by: StandingBy | None = None) -> None:
        """Locks the database for this agent and migrates it, waiting up to `wait_s` (unset: as the settings say) for
        another to give it up. Raises StoreLocked, SchemaTooNew, StoreUnavailable."""

    @property
    def epoch(self) -> int:
        """How often a shared database has changed hands; 0 for any other."""

    @property
    def lock_held(self) -> bool:
        """Whether it is this agent's now, as far as that is known: nothing is written while it isn't."""

    async def lost(self) -> str:
        """Returns why, once the database has gone over to another agent: nothing is written any more."""

    async def write(
        self,
        work: Callable[[Connection], T],
        committed: Callable[[], None] | None = None,
        unknown: Callable[[], None] | None = None,
    ) -> T:
        """What `work` returns, once it is durable; what it raises, after undoing it. Raises StoreUnavailable when nothing
        was written, OutcomeUnknown when that can't be known. `committed` is called on the event loop after the commit,
        `unknown` instead of it when the outcome isn't known; both in the order of commits, even when nobody waits any
        more."""

    async def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns, all of it from one state of the database."""

    async def close(self) -> None:
        """Ends what is under way and gives up the lock. Idempotent."""
