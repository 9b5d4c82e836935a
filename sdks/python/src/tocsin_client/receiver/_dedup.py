"""Does the work of each firing once, with SQL over DB-API."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

from tocsin_client.receiver._answers import Answer
from tocsin_client.receiver._firing import Firing


class Cursor(Protocol):
    """What is used of a DB-API cursor."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> object: ...

    def fetchone(self) -> Any: ...

    def close(self) -> object: ...


class Connection(Protocol):
    """What is used of a DB-API connection."""

    def cursor(self) -> Cursor: ...

    def commit(self) -> object: ...

    def rollback(self) -> object: ...

    def close(self) -> object: ...


Tx = TypeVar("Tx", bound=Connection)
Done = TypeVar("Done")

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?", re.ASCII)
_MARKS = {"qmark": "?", "format": "%s", "pyformat": "%s"}


class Dedup(Generic[Tx]):
    """Remembers firings and their answers in a table, in the transaction that does the work: both are there, or neither.

    `connect` returns a connection that is not in autocommit mode; it is closed afterwards, which returns it to its pool
    where a pool made it, as with SQLAlchemy's `engine.raw_connection`. SQLite and PostgreSQL.
    """

    def __init__(self, connect: Callable[[], Tx], *, table: str = "tocsin_firings") -> None:
        if not _TABLE.fullmatch(table):
            raise ValueError(f"table: {table!r} is not a table's name, such as tocsin_firings or jobs.tocsin_firings")
        self._connect = connect
        self._table = table

    def create_table(self) -> None:
        """Creates the table if it isn't there."""
        self._in_transaction(
            lambda execute: execute(
                f"CREATE TABLE IF NOT EXISTS {self._table}"
                " (webhook_id TEXT PRIMARY KEY, answer TEXT, handled_at BIGINT NOT NULL)"
            )
        )

    def forget(self, older_than: timedelta = timedelta(days=7)) -> int:
        """Removes the firings that were handled before; returns how many. Keep them for longer than a timer's retries can
        take, and than the age of a backup of the server that you might restore."""
        before = int(time.time() - older_than.total_seconds())
        return self._in_transaction(
            lambda execute: execute(f"DELETE FROM {self._table} WHERE handled_at < ?", before).rowcount
        )

    def once(self, firing: Firing, work: Callable[[Tx], Answer]) -> Answer:
        """Calls `work` with the connection, and commits what it did together with its answer. A repetition of the firing
        gets this answer again, and `work` is not called. `retry()`, like an exception, rolls back. `work` must not commit."""
        connection = self._connect()
        try:
            execute = _Executor(connection)
            inserted = execute(
                f"INSERT INTO {self._table} (webhook_id, handled_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
                firing.webhook_id,
                int(time.time()),
            ).rowcount
            if not inserted:
                row = execute(f"SELECT answer FROM {self._table} WHERE webhook_id = ?", firing.webhook_id).fetchone()
                connection.rollback()
                if row is None or row[0] is None:
                    raise RuntimeError(f"firing {firing.webhook_id} has no answer: something else wrote {self._table}")
                return Answer.from_text(row[0])
            answer = work(connection)
            if not isinstance(answer, Answer):
                raise TypeError(f"the work returned {answer!r}; return done(), reschedule_at(), retry() or fail()")
            if answer.retries:
                connection.rollback()
                return answer
            execute(f"UPDATE {self._table} SET answer = ? WHERE webhook_id = ?", answer.to_text(), firing.webhook_id)
            connection.commit()
            return answer
        except BaseException:
            connection.rollback()
            raise
        finally:
            connection.close()

    def _in_transaction(self, do: Callable[[_Executor], Done]) -> Done:
        connection = self._connect()
        try:
            result = do(_Executor(connection))
            connection.commit()
            return result
        finally:
            connection.close()


class _Executor:
    """Executes statements written with `?`."""

    def __init__(self, connection: Connection) -> None:
        if _is_autocommit(connection):
            raise ValueError(
                "connect: the connection is in autocommit mode; the work and its record need a transaction"
            )
        self._cursor = connection.cursor()
        self._mark = _mark_of(connection)

    def __call__(self, statement: str, *parameters: object) -> Cursor:
        self._cursor.execute(statement.replace("?", self._mark), parameters)
        return self._cursor


def _is_autocommit(connection: object) -> bool:
    """Whether each statement is a transaction of its own. `isolation_level` means this only with sqlite3."""
    legacy = -1
    autocommit = getattr(connection, "autocommit", legacy)
    return autocommit is True or (autocommit == legacy and getattr(connection, "isolation_level", "") is None)


def _mark_of(connection: object) -> str:
    """How the connection's driver writes a parameter."""
    # A pool's connection leads to the driver's own.
    driver = getattr(connection, "driver_connection", connection)
    module = sys.modules.get(type(driver).__module__.partition(".")[0])
    style = getattr(module, "paramstyle", None)
    if style not in _MARKS:
        raise ValueError(f"connect: the driver of {driver!r} is unknown; sqlite3, psycopg and psycopg2 are known")
    return _MARKS[style]
