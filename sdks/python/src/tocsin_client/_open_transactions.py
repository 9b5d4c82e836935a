"""How `outbox` gets into the transaction that the user's program has open, and which database that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tocsin_client._core.outbox import Dialect
from tocsin_client._error_bases import InvalidArgument
from tocsin_client.receiver._databases import (
    AsyncExecute,
    Execute,
    Executed,
    _executed,
    _executing,
    _is_autocommit,
    _mark_of,
    _named,
    _numbered,
)

#: Of a driver's connection, libpq's status of one that is in a transaction, and MySQL's bit of it.
_IN_TRANSACTION = 2
_MYSQL_IN_TRANSACTION = 1
_DRIVERS: dict[str, Dialect] = {
    "sqlite3": "sqlite", "aiosqlite": "sqlite", "psycopg": "postgresql", "psycopg2": "postgresql",
    "asyncpg": "postgresql", "pymysql": "mysql", "MySQLdb": "mysql", "mysql": "mysql", "asyncmy": "mysql",
    "aiomysql": "mysql",
}  # fmt: skip
_NAMES: dict[str, Dialect] = {
    "sqlite": "sqlite", "postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql",
}  # fmt: skip
_NO_TRANSACTION = (
    "connection: it is in autocommit mode, and no transaction is open; the row and your work need one that both are in"
)
_KNOWN = "give a connection of DB-API, Django or SQLAlchemy, a Session, or a function execute(statement, parameters)"


def execute_in(connection: Any) -> Execute:
    """Executes statements in the connection's open transaction. InvalidArgument: there is none, or it is no connection."""
    if hasattr(connection, "in_atomic_block"):
        if not connection.in_atomic_block:
            raise InvalidArgument(_NO_TRANSACTION + ": with transaction.atomic()")
        return lambda statement, parameters: _executing(connection.cursor(), "%s")(statement, parameters)
    if hasattr(connection, "get_bind") or hasattr(connection, "exec_driver_sql"):
        return _in_sqlalchemy(connection)
    if hasattr(connection, "cursor"):
        _require_transaction(connection)
        return _executing(connection.cursor(), _mark_of(connection))
    if callable(connection):
        given: Execute = connection
        return given
    raise InvalidArgument(f"connection: {type(connection).__name__} is unknown; {_KNOWN}")


def async_execute_in(connection: Any) -> AsyncExecute:
    """The same, awaited."""
    if hasattr(connection, "is_in_transaction"):
        if not connection.is_in_transaction():
            raise InvalidArgument(_NO_TRANSACTION + ": async with connection.transaction()")
        return _in_asyncpg(connection)
    if hasattr(connection, "run_sync"):

        async def in_sqlalchemy(statement: str, parameters: Sequence[Any]) -> Executed:
            found: Executed = await connection.run_sync(lambda used: _in_sqlalchemy(used)(statement, parameters))
            return found

        return in_sqlalchemy
    if hasattr(connection, "cursor"):
        _require_transaction(connection)

        async def in_cursor(statement: str, parameters: Sequence[Any]) -> Executed:
            async with connection.cursor() as cursor:
                await cursor.execute(statement.replace("?", _mark_of(connection)), parameters)
                return cursor.rowcount, ()

        return in_cursor
    if callable(connection):
        given: AsyncExecute = connection
        return given
    raise InvalidArgument(f"connection: {type(connection).__name__} is unknown; {_KNOWN}, awaited")


def _in_sqlalchemy(used: Any) -> Execute:
    """Of a Session or a Connection, which begin a transaction by themselves."""
    from sqlalchemy import text

    connection = used.connection() if hasattr(used, "get_bind") else used
    _require_transaction(connection.connection.dbapi_connection)

    def execute(statement: str, parameters: Sequence[Any]) -> Executed:
        return _executed(used.execute(text(_numbered(statement, ":p")), _named(parameters)))

    return execute


def _in_asyncpg(connection: Any) -> AsyncExecute:
    async def execute(statement: str, parameters: Sequence[Any]) -> Executed:
        await connection.execute(_numbered(statement, "$"), *parameters)
        return 1, ()

    return execute


def _require_transaction(connection: Any) -> None:
    driver = getattr(connection, "driver_connection", connection)
    if hasattr(driver, "get_autocommit"):  # PyMySQL, mysqlclient
        alone = bool(driver.get_autocommit()) and not getattr(driver, "server_status", 0) & _MYSQL_IN_TRANSACTION
    else:
        alone = _is_autocommit(connection) and not _in_transaction(driver)
    if alone:
        raise InvalidArgument(_NO_TRANSACTION)


def _in_transaction(driver: Any) -> bool:
    if hasattr(driver, "in_transaction"):  # sqlite3, mysql-connector
        return bool(driver.in_transaction)
    status = getattr(getattr(driver, "info", None), "transaction_status", None)  # psycopg, psycopg2
    return status is not None and int(status) == _IN_TRANSACTION


def dialect_of(tx: Any) -> Dialect:
    """The database of a transaction. InvalidArgument: its kind is unknown."""
    driver = getattr(tx, "driver_connection", tx)
    if hasattr(tx, "vendor"):  # Django's
        name = str(tx.vendor)
    elif hasattr(tx, "get_bind"):
        name = str(tx.get_bind().dialect.name)
    elif hasattr(tx, "dialect"):
        name = str(tx.dialect.name)
    else:
        name = _DRIVERS.get(type(driver).__module__.partition(".")[0], "")
    if name not in _NAMES:
        raise InvalidArgument(
            f'dialect: that of {type(driver).__name__} is unknown; give dialect="postgresql", "mysql" or "sqlite"'
        )
    return _NAMES[name]


__all__ = ["async_execute_in", "dialect_of", "execute_in"]
