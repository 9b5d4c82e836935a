"""Does the work of each firing once, in the transaction that does it."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Generator
from datetime import timedelta
from typing import Any, Generic, TypeAlias, TypeVar

from tocsin_client._error_bases import InvalidArgument
from tocsin_client._values import Duration, seconds_of
from tocsin_client.receiver._answers import Answer
from tocsin_client.receiver._databases import (
    AsyncDatabase,
    AsyncExecute,
    Connection,
    Database,
    DbApi,
    Execute,
    Executed,
)
from tocsin_client.receiver._firing import Firing

Tx = TypeVar("Tx")
Conn = TypeVar("Conn", bound=Connection)

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?", re.ASCII)
_FORGOTTEN_AFTER = timedelta(days=7)

_Statement: TypeAlias = tuple[str, tuple[Any, ...]]
#: Statements to execute, None where the work is to be done, and the answer.
_Steps: TypeAlias = "Generator[_Statement | None, Executed | Answer, Answer]"


class _RolledBack(Exception):
    """Ends a transaction whose work was not done."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


class _Table:
    """The statements."""

    def __init__(self, name: str) -> None:
        if not _TABLE.fullmatch(name):
            raise InvalidArgument(
                f"table: {name!r} is not a table's name, such as tocsin_firings or jobs.tocsin_firings"
            )
        self._name = name

    def create(self) -> _Statement:
        columns = "webhook_id TEXT PRIMARY KEY, answer TEXT, handled_at BIGINT NOT NULL"
        return f"CREATE TABLE IF NOT EXISTS {self._name} ({columns})", ()

    def forget(self, older_than: Duration) -> _Statement:
        before = int(time.time() - seconds_of("older_than", older_than))
        return f"DELETE FROM {self._name} WHERE handled_at < ?", (before,)

    def once(self, firing: Firing) -> _Steps:
        """Where two callbacks come at once, the insert of the second waits for the transaction of the first."""
        webhook_id = firing.webhook_id
        insert = f"INSERT INTO {self._name} (webhook_id, handled_at) VALUES (?, ?) ON CONFLICT DO NOTHING"
        inserted = yield insert, (webhook_id, int(time.time()))
        assert not isinstance(inserted, Answer)
        if inserted[0] == 0:
            found = yield f"SELECT answer FROM {self._name} WHERE webhook_id = ?", (webhook_id,)
            assert not isinstance(found, Answer)
            rows = found[1]
            if not rows or rows[0][0] is None:
                raise RuntimeError(f"firing {webhook_id} has no answer: something else wrote {self._name}")
            return Answer.from_text(rows[0][0])
        answer: object = yield None
        if not isinstance(answer, Answer):
            raise TypeError(f"the work returned {answer!r}; return done(), reschedule_at(), retry() or fail()")
        if not answer.is_done:
            raise _RolledBack(answer)
        yield f"UPDATE {self._name} SET answer = ? WHERE webhook_id = ?", (answer.to_text(), webhook_id)
        return answer


class Dedup(Generic[Tx]):
    """Remembers firings and their answers in a table, in the transaction that does the work: both are there, or neither.

    `database` begins transactions and gives the work what it writes with: `Django`, `SqlAlchemy`, or an object of your own,
    see `Database`. A function that returns a DB-API connection is enough, as in `DbApi`. SQLite and PostgreSQL.
    """

    def __init__(self, database: Database[Tx] | Callable[[], Tx], *, table: str = "tocsin_firings") -> None:
        self._database: Database[Tx] = DbApi(database) if callable(database) else database  # type: ignore[type-var]
        self._table = _Table(table)

    def create_table(self) -> None:
        """Creates the table if it isn't there."""
        self._execute(*self._table.create())

    def forget(self, older_than: Duration = _FORGOTTEN_AFTER) -> int:
        """Removes the firings that were handled before; returns how many. Keep them for longer than a timer's retries can
        take, and than the age of a backup of the server that you might restore."""
        return self._execute(*self._table.forget(older_than))[0]

    def once(self, firing: Firing, work: Callable[[Tx], Answer]) -> Answer:
        """Calls `work` with the transaction, and commits what it did together with its answer. A repetition of the firing
        gets this answer again, and `work` is not called. `retry()` and `fail()`, like an exception, roll back: nothing was
        done, and a replay calls `work` again. `work` must not commit."""

        def do(tx: Tx, execute: Execute) -> Answer:
            steps = self._table.once(firing)
            try:
                step = next(steps)
                while True:
                    step = steps.send(work(tx) if step is None else execute(*step))
            except StopIteration as done:
                answer: Answer = done.value
                return answer

        try:
            return self._database.transaction(do)
        except _RolledBack as rolled_back:
            return rolled_back.answer

    def _execute(self, statement: str, parameters: tuple[Any, ...]) -> Executed:
        return self._database.transaction(lambda _, execute: execute(statement, parameters))


class AsyncDedup(Generic[Tx]):
    """The same for asynchronous programs. `database` is `AsyncSqlAlchemy`, `Asyncpg`, or an object of your own, see
    `AsyncDatabase`."""

    def __init__(self, database: AsyncDatabase[Tx], *, table: str = "tocsin_firings") -> None:
        self._database = database
        self._table = _Table(table)

    async def create_table(self) -> None:
        """Creates the table if it isn't there."""
        await self._execute(*self._table.create())

    async def forget(self, older_than: Duration = _FORGOTTEN_AFTER) -> int:
        """Removes the firings that were handled before; returns how many. Keep them for longer than a timer's retries can
        take, and than the age of a backup of the server that you might restore."""
        return (await self._execute(*self._table.forget(older_than)))[0]

    async def once(self, firing: Firing, work: Callable[[Tx], Awaitable[Answer]]) -> Answer:
        """Awaits `work` with the transaction, and commits what it did together with its answer. A repetition of the firing
        gets this answer again, and `work` is not called. `retry()` and `fail()`, like an exception, roll back: nothing was
        done, and a replay calls `work` again. `work` must not commit."""

        async def do(tx: Tx, execute: AsyncExecute) -> Answer:
            steps = self._table.once(firing)
            try:
                step = next(steps)
                while True:
                    step = steps.send(await work(tx) if step is None else await execute(*step))
            except StopIteration as done:
                answer: Answer = done.value
                return answer

        try:
            return await self._database.transaction(do)
        except _RolledBack as rolled_back:
            return rolled_back.answer

    async def _execute(self, statement: str, parameters: tuple[Any, ...]) -> Executed:
        async def do(_: Tx, execute: AsyncExecute) -> Executed:
            return await execute(statement, parameters)

        return await self._database.transaction(do)
