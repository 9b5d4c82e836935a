"""What the agent's stores require of a database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")


#: Called, while waiting for the database, with the node that holds it, at first and whenever that changes.
StandingBy = Callable[[str], None]


class Database(Protocol):
    """Transactions. The work function runs on a thread or greenlet of the database, may be repeated from the start
    after a conflict, and must have no other effects."""

    #: Whether agents of several nodes can take over from one another. Otherwise one process locks the database until it ends.
    shared: bool

    async def open(self, wait_s: float | None = None, standing_by: StandingBy | None = None) -> None:
        """Locks the database for this agent and migrates it. Waits up to `wait_s` (None: `agent_sql.lock_wait`) for
        another agent to release it. Raises StoreLocked, SchemaTooNew or StoreUnavailable."""

    @property
    def epoch(self) -> int:
        """How often a shared database has changed hands; 0 for a database that is not shared."""

    @property
    def lock_held(self) -> bool:
        """Whether this agent holds the database, as far as it knows. Nothing is written while it does not."""

    async def lost(self) -> str:
        """Returns the reason once another agent has taken over the database. Nothing is written after that."""

    async def write(
        self,
        work: Callable[[Connection], T],
        committed: Callable[[], None] | None = None,
        unknown: Callable[[], None] | None = None,
    ) -> T:
        """Returns the result of `work` once it is durable. If `work` raises, its changes are rolled back and its error
        is raised.

        Raises StoreUnavailable if nothing was written and OutcomeUnknown if that is not known. `committed` is called on
        the event loop after the commit, `unknown` instead of it if the outcome is unknown; both in the order of
        commits, even if the caller was cancelled.
        """

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Returns the result of `work`, which reads one snapshot of the database."""

    async def close(self) -> None:
        """Waits for transactions in progress and releases the lock. Idempotent."""
