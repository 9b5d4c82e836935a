"""How `Dedup` gets into the transactions of the user's program."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from tocsin_client._error_bases import InvalidArgument

if TYPE_CHECKING:
    from asyncpg import Connection as AsyncpgConnection
    from asyncpg import Pool
    from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker
    from sqlalchemy.orm import Session, sessionmaker

TxCo = TypeVar("TxCo", covariant=True)
Result = TypeVar("Result")

#: How many rows a statement changed or found, and the rows that it found.
Executed: TypeAlias = tuple[int, Sequence[Sequence[Any]]]
#: Executes a statement in the transaction. Parameters are written as `?`, and there are no other question marks.
Execute: TypeAlias = Callable[[str, Sequence[Any]], Executed]
#: The same, awaited.
AsyncExecute: TypeAlias = Callable[[str, Sequence[Any]], Awaitable[Executed]]


class Database(Protocol[TxCo]):
    """Runs work in transactions of your program."""

    def transaction(self, work: Callable[[TxCo, Execute], Result], /) -> Result:
        """Begins a transaction and calls `work` with what your code writes with, and with a function that executes a
        statement in the same transaction. Commits when `work` returns, rolls back when it raises."""
        ...


class AsyncDatabase(Protocol[TxCo]):
    """Runs work in transactions of your asynchronous program."""

    async def transaction(self, work: Callable[[TxCo, AsyncExecute], Awaitable[Result]], /) -> Result:
        """As that of `Database`, awaited."""
        ...


class Cursor(Protocol):
    """What is used of a DB-API cursor."""

    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Any: ...

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> object: ...

    def fetchall(self) -> Any: ...

    def close(self) -> object: ...


class Connection(Protocol):
    """What is used of a DB-API connection."""

    def cursor(self) -> Cursor: ...

    def commit(self) -> object: ...

    def rollback(self) -> object: ...

    def close(self) -> object: ...


Conn = TypeVar("Conn", bound=Connection)

_MARKS = {"qmark": "?", "format": "%s", "pyformat": "%s"}


class DbApi(Generic[Conn]):
    """A database by DB-API: sqlite3, psycopg, psycopg2, and PyMySQL for a `Drain`. `connect` returns a connection that is not
    in autocommit mode; it is closed after each transaction, which returns it to its pool where a pool made it, as with
    SQLAlchemy's `engine.raw_connection`. The work gets the connection."""

    def __init__(self, connect: Callable[[], Conn]) -> None:
        self._connect = connect

    def transaction(self, work: Callable[[Conn, Execute], Result]) -> Result:
        """See `Database`. InvalidArgument: the connection is in autocommit mode, or its driver is unknown."""
        connection = self._connect()
        try:
            if _is_autocommit(connection):
                raise InvalidArgument(
                    "connect: the connection is in autocommit mode; the work and its record need a transaction"
                )
            result = work(connection, _executing(connection.cursor(), _mark_of(connection)))
            connection.commit()
            return result
        except BaseException:
            connection.rollback()
            raise
        finally:
            connection.close()


class Django:
    """A database of Django's settings, by its name there. The work runs in `transaction.atomic()`, where models take part in
    the transaction by themselves; it gets Django's connection."""

    def __init__(self, using: str = "default") -> None:
        self._using = using

    def transaction(self, work: Callable[[Any, Execute], Result]) -> Result:
        """See `Database`."""
        from django.db import connections, transaction

        with transaction.atomic(using=self._using), connections[self._using].cursor() as cursor:
            return work(connections[self._using], _executing(cursor, "%s"))


class SqlAlchemy:
    """SQLAlchemy's sessions: `sessions` is your `sessionmaker`. The work gets a session with a transaction of its own."""

    def __init__(self, sessions: sessionmaker[Session]) -> None:
        self._sessions = sessions

    def transaction(self, work: Callable[[Session, Execute], Result]) -> Result:
        """See `Database`. InvalidArgument: the engine is in autocommit mode."""
        from sqlalchemy import text

        with self._sessions.begin() as session:
            _check_session(session)

            def execute(statement: str, parameters: Sequence[Any]) -> Executed:
                return _executed(session.execute(text(_numbered(statement, ":p")), _named(parameters)))

            return work(session, execute)


class AsyncSqlAlchemy:
    """SQLAlchemy's asynchronous sessions: `sessions` is your `async_sessionmaker`. The work gets a session with a transaction
    of its own."""

    def __init__(self, sessions: async_sessionmaker[AsyncSession]) -> None:
        self._sessions = sessions

    async def transaction(self, work: Callable[[AsyncSession, AsyncExecute], Awaitable[Result]]) -> Result:
        """See `AsyncDatabase`. InvalidArgument: the engine is in autocommit mode."""
        from sqlalchemy import text

        async with self._sessions.begin() as session:
            await session.run_sync(_check_session)

            async def execute(statement: str, parameters: Sequence[Any]) -> Executed:
                return _executed(await session.execute(text(_numbered(statement, ":p")), _named(parameters)))

            return await work(session, execute)


class Asyncpg:
    """PostgreSQL by asyncpg: `pool` is your pool. The work gets a connection with a transaction of its own."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def transaction(self, work: Callable[[AsyncpgConnection, AsyncExecute], Awaitable[Result]]) -> Result:
        """See `AsyncDatabase`."""
        async with self._pool.acquire() as connection, connection.transaction():

            async def execute(statement: str, parameters: Sequence[Any]) -> Executed:
                prepared = await connection.prepare(_numbered(statement, "$"))
                rows = await prepared.fetch(*parameters)
                # Such as INSERT 0 1; CREATE TABLE has no number.
                number = prepared.get_statusmsg().rpartition(" ")[2]
                return int(number) if number.isdigit() else 0, rows

            return await work(connection, execute)


def _check_session(session: Session) -> None:
    """InvalidArgument: each statement of the session is a transaction of its own."""
    if _is_autocommit(session.connection().connection.dbapi_connection):
        raise InvalidArgument(
            "sessions: the engine is in autocommit mode; the work and its record need a transaction, so leave out "
            'isolation_level="AUTOCOMMIT"'
        )


def _executing(cursor: Cursor, mark: str) -> Execute:
    def execute(statement: str, parameters: Sequence[Any]) -> Executed:
        cursor.execute(statement.replace("?", mark), parameters)
        return cursor.rowcount, cursor.fetchall() if cursor.description else ()

    return execute


def _executed(result: Any) -> Executed:
    """Of SQLAlchemy, whose results with rows count none on some drivers."""
    rows = result.fetchall() if result.returns_rows else ()
    return len(rows) or result.rowcount, rows


def _numbered(statement: str, prefix: str) -> str:
    """With parameters such as $1, $2."""
    first, *rest = statement.split("?")
    return first + "".join(f"{prefix}{number}{part}" for number, part in zip(count(1), rest))


def _named(parameters: Sequence[Any]) -> dict[str, Any]:
    return {f"p{number}": parameter for number, parameter in enumerate(parameters, 1)}


def _is_autocommit(connection: object) -> bool:
    """Whether each statement is a transaction of its own. `isolation_level` means this only with sqlite3, and not where the
    program has begun a transaction itself."""
    legacy = -1
    autocommit = getattr(connection, "autocommit", legacy)
    if autocommit != legacy or getattr(connection, "isolation_level", "") is not None:
        return autocommit is True
    # SQLAlchemy's adapter of aiosqlite leads to the driver's connection.
    driver = getattr(connection, "driver_connection", connection)
    return not getattr(driver, "in_transaction", False)


def _mark_of(connection: object) -> str:
    """How the connection's driver writes a parameter."""
    # A pool's connection leads to the driver's own.
    driver = getattr(connection, "driver_connection", connection)
    module = sys.modules.get(type(driver).__module__.partition(".")[0])
    style = getattr(module, "paramstyle", None)
    if style not in _MARKS:
        raise InvalidArgument(f"connect: the driver of {driver!r} is unknown; sqlite3, psycopg and PyMySQL are known")
    return _MARKS[style]
