"""The statements on the inbox's table, with `?` for each value, and what they mean alike in both databases."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

from tocsin.model.errors import StoreUnavailable
from tocsin.ports.inbox import Backlog, DeadRows, DueRow, ListedRow, Outcome
from tocsin.sql.pool import DatabaseServer, Pool

Statement = tuple[str, tuple[Any, ...]]
Rows = Sequence[Sequence[Any]]

#: How long a session may take to end what it does.
_CLOSE_TIMEOUT_S = 3.0
#: Rows that are counted at most, which takes a tenth of a second.
_COUNTED_MAX = 100_000
#: Dead rows that are changed in one transaction.
_CHANGED_AT_ONCE = 1_000
_LISTED = "id, namespace, timer_id, created_at, dead_reason"


class SqlInboxTable(ABC):
    """The port InboxTable over sessions with one of the databases, which a subclass opens."""

    #: The type of the column `request`, and what follows the definition.
    request_type, definition_end = "TEXT", ""

    def __init__(self, name: str, pool: Pool[Any, Any], place: str) -> None:
        self._name, self._sessions, self.place = name, pool, place

    def release(self) -> None:
        """Ends the idle sessions."""
        self._sessions.discard_idle()

    async def close(self) -> None:
        """Ends the sessions in order, if that takes no longer than it should."""
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self._sessions.close()
        except TimeoutError:
            await self._sessions.abort()

    @abstractmethod
    async def _read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """The rows of a statement."""

    @abstractmethod
    async def _write(self, statements: Sequence[Statement]) -> list[int]:
        """Runs the statements in one transaction; how many rows each wrote. They can be repeated."""

    @abstractmethod
    def _among(self, ids: Sequence[str]) -> Statement:
        """A condition for the rows with these ids."""

    @abstractmethod
    def _update(self) -> str:
        """The beginning of an UPDATE by id."""

    @abstractmethod
    def _delete(self) -> str:
        """The beginning of a DELETE by id."""

    def definition(self) -> str:
        """The table. The unique columns are no rule, but the index that finds whether a timer has an earlier row."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self._name} (id VARCHAR(36) NOT NULL PRIMARY KEY, "
            "namespace VARCHAR(255) NOT NULL, timer_id VARCHAR(255) NOT NULL, "
            f"request {self.request_type} NOT NULL, created_at BIGINT NOT NULL, due_at BIGINT NOT NULL, "
            f"dead_reason TEXT, UNIQUE (namespace, timer_id, id)){self.definition_end}"
        )

    async def due(self, now_us: int, rows_max: int) -> list[DueRow]:
        """The oldest rows that are due, of each timer the oldest. It locks none: one node drains, and a row that is created
        twice all the same is created once, by its key."""
        found = await self._read(
            f"SELECT id, created_at, octet_length(request) FROM {self._name} AS due "
            "WHERE due_at <= ? AND dead_reason IS NULL AND NOT EXISTS "
            f"(SELECT 1 FROM {self._name} AS older WHERE older.namespace = due.namespace "
            "AND older.timer_id = due.timer_id AND older.id < due.id AND older.dead_reason IS NULL) "
            f"ORDER BY id LIMIT {rows_max}",
            (now_us,),
        )
        return [DueRow(str(row[0]), int(row[1]), int(row[2])) for row in found]

    async def requests(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The requests of these rows."""
        condition, values = self._among(ids)
        found = await self._read(f"SELECT id, request FROM {self._name} WHERE {condition}", values)
        return {str(row[0]): str(row[1]) for row in found}

    async def settle(self, outcome: Outcome) -> None:
        """Deletes what is created, marks what is dead, and moves the rest ahead."""
        statements: list[Statement] = []
        if outcome.created:
            condition, values = self._among(outcome.created)
            statements.append((f"{self._delete()} WHERE {condition}", values))
        for row_id, reason in outcome.dead.items():
            # PostgreSQL's texts have no NUL.
            statements.append(
                (f"{self._update()} SET dead_reason = ? WHERE id = ?", (reason.replace("\0", "�"), row_id))
            )
        for due_at in set(outcome.later.values()):
            condition, values = self._among([row_id for row_id, at in outcome.later.items() if at == due_at])
            statements.append((f"{self._update()} SET due_at = ? WHERE {condition}", (due_at, *values)))
        if statements:
            await self._write(statements)

    async def backlog(self) -> Backlog:
        """How many rows there are among the oldest."""
        ((waiting, dead, oldest_at),) = await self._read(
            "SELECT count(*) - count(dead_reason), count(dead_reason), "
            f"min(CASE WHEN dead_reason IS NULL THEN created_at END) FROM (SELECT created_at, dead_reason "
            f"FROM {self._name} ORDER BY id LIMIT {_COUNTED_MAX}) AS oldest"
        )
        return Backlog(int(waiting), int(dead), None if oldest_at is None else int(oldest_at))

    async def rows(self, namespace: str | None, rows_max: int, *, dead: bool, after: str = "") -> list[ListedRow]:
        """The oldest rows."""
        condition, values = _selected(namespace, dead=dead, after=after)
        found = await self._read(f"SELECT {_LISTED} FROM {self._name}{condition} ORDER BY id LIMIT {rows_max}", values)
        return [
            ListedRow(str(row[0]), str(row[1]), str(row[2]), int(row[3]), None if row[4] is None else str(row[4]))
            for row in found
        ]

    def revive(self, wanted: DeadRows) -> AsyncGenerator[int, None]:
        """Has dead rows tried again."""
        return self._change(f"{self._update()} SET dead_reason = NULL, due_at = 0", wanted)

    def discard(self, wanted: DeadRows) -> AsyncGenerator[int, None]:
        """Deletes dead rows."""
        return self._change(self._delete(), wanted)

    async def _change(self, change: str, wanted: DeadRows) -> AsyncGenerator[int, None]:
        """Makes this change to dead rows, by their ids: without these, a statement would wait in MySQL for rows that programs
        write."""
        condition, values = _selected(wanted.namespace, dead=True)
        async for ids in self._batches(wanted):
            among, more = self._among(ids)
            (number,) = await self._write([(f"{change}{condition} AND {among}", (*values, *more))])
            yield number

    async def _batches(self, wanted: DeadRows) -> AsyncIterator[Sequence[str]]:
        """The ids, as many at once as are changed in a transaction."""
        for first in range(0, len(wanted.ids), _CHANGED_AT_ONCE):
            yield wanted.ids[first : first + _CHANGED_AT_ONCE]
        left, last = 0 if wanted.ids else wanted.rows_max, ""
        while left > 0:
            rows_max = min(left, _CHANGED_AT_ONCE)
            found = await self.rows(wanted.namespace, rows_max, dead=True, after=last)
            if found:
                yield [row.id for row in found]
            if len(found) < rows_max:
                return
            left, last = left - len(found), found[-1].id


def missing_table(server: DatabaseServer, table: str) -> StoreUnavailable:
    """The error for a table that was not created, or was removed."""
    return StoreUnavailable(f"{server.safe_url}: there is no table {table}; create it with `tocsin inbox migrate`")


def _selected(namespace: str | None, *, dead: bool, after: str = "") -> Statement:
    """The condition for some rows."""
    conditions, values = ["dead_reason IS NOT NULL"] if dead else [], []
    for condition, value in (("namespace = ?", namespace), ("id > ?", after or None)):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    return f" WHERE {' AND '.join(conditions)}" if conditions else "", tuple(values)
