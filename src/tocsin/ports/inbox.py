"""The port of the inbox's table, which programs fill in their own transactions and the inbox drains."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class DueRow(NamedTuple):
    """A row whose timer is to be created: its id, which is the timer's idempotency key; when it was written, in microseconds
    since 1970; and the bytes of its request."""

    id: str
    created_at: int
    request_bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of rows, by their ids: `created`, which are deleted; `dead` with the reason, which stay and are not tried
    again; `later`, which are not tried before that instant, in microseconds since 1970."""

    created: list[str] = field(default_factory=list)
    dead: dict[str, str] = field(default_factory=dict)
    later: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.created or self.dead or self.later)


#: No row has this id: settling it changes nothing, and takes the rights that settling takes.
PROBE = Outcome(created=["-"], later={"-": 0})


class Backlog(NamedTuple):
    """What the table has: rows that wait for their timers, dead ones, and when the oldest that waits was written (None if
    none does)."""

    waiting: int
    dead: int
    oldest_at: int | None


class ListedRow(NamedTuple):
    """A row as people read it. `dead_reason` None: it waits for its timer."""

    id: str
    namespace: str
    timer_id: str
    created_at: int
    dead_reason: str | None


class DeadRows(NamedTuple):
    """Which dead rows are meant: those with these ids or, without ids, the oldest `rows_max`; of one namespace, or of all.
    They are changed in transactions of a bounded number of rows, each row once, also if it dies again meanwhile."""

    namespace: str | None = None
    ids: Sequence[str] = ()
    rows_max: int = 10_000


class InboxTable(Protocol):
    """A table in a database of the user's. Every method but `wait`, `release` and `close` raises StoreError or ConfigError if
    the database can't be asked, or lacks the table."""

    @property
    def place(self) -> str:
        """The database's URL without user and password."""

    async def due(self, now_us: int, rows_max: int) -> list[DueRow]:
        """The oldest rows that are due; of the rows of one timer only the oldest, so that they are created in order."""

    async def requests(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The requests of these rows, as far as they are still there."""

    async def settle(self, outcome: Outcome) -> None:
        """Stores what became of rows, in one transaction. Repeating it changes nothing."""

    async def backlog(self) -> Backlog:
        """How many rows there are, counted among the oldest 100,000."""

    async def wait(self, timeout_s: float) -> None:
        """Returns when rows may have been committed since the last `due`, at the latest after the time-out."""

    async def create(self, *, notify: bool) -> bool:
        """Creates the table where it is missing. With `notify`, commits of rows are announced from then on, where the
        database can, which is the result; without it they are not any more."""

    async def rows(self, namespace: str | None, rows_max: int, *, dead: bool, after: str = "") -> list[ListedRow]:
        """The oldest rows whose ids follow `after`: all, or those that are dead; of all namespaces, or of one."""

    def revive(self, wanted: DeadRows) -> AsyncGenerator[int, None]:
        """Has dead rows tried again; how many, after each transaction. The next one begins when its number is asked for.
        Raises OutcomeUnknown if a transaction may have taken effect or not."""

    def discard(self, wanted: DeadRows) -> AsyncGenerator[int, None]:
        """Deletes dead rows, whose timers are never created then; numbers and errors are those of `revive`."""

    def release(self) -> None:
        """Ends the sessions; a later call opens them again."""

    async def close(self) -> None:
        """Ends the sessions: in order, or after seconds whatever they do, so that a database that hangs delays no stop."""


class NodeInbox(NamedTuple):
    """The inbox of a node, as people reach it: its table, and how the audit trail names those who write its rows."""

    table: InboxTable
    source: str
