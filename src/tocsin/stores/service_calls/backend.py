"""What the agent's stores require of a database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")


class Database(Protocol):
    """Transactions. The work function runs on a thread or greenlet of the database, may be repeated from the start
    after a conflict, and must have no other effects."""

    @abstractmethod
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

    @abstractmethod
    async def read(self, work: Callable[[Connection], T]) -> T:
        """Returns the result of `work`, which reads one snapshot of the database."""
