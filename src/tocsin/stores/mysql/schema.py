"""The schema in MySQL: numbered migrations under one lock."""

from __future__ import annotations

import re
from functools import partial

from asyncmy import errors

from tocsin.model.errors import ConfigError, StoreCorrupted, StoreUnavailable, StoreUnreachable
from tocsin.ports.store import FORMAT, refuse_other_format
from tocsin.sql.migrations import migrations_of, older_schema, pending, readable_from
from tocsin.stores.mysql.dialect import DIALECT
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.errors import DENIED, TABLE_EXISTS, UNKNOWN_DATABASE, code_of
from tocsin.stores.mysql.text import filled, text

_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_VERSION = re.compile(r"(\d+)\.(\d+)")
#: How the definition of a view begins.
_VIEW = b"CREATE SQL SECURITY INVOKER VIEW "
#: The oldest releases that support the statements.
_MYSQL_MIN, _MARIADB_MIN = (8, 0), (10, 5)
#: How long a node waits for others that migrate the same schema.
_LOCK_S_MAX = 86_400


migrations = partial(migrations_of, "tocsin.stores.mysql")


def statements(sql: str) -> list[bytes]:
    """A migration's statements. No statement contains a semicolon."""
    return [part.strip().encode() for part in _COMMENT.sub("", sql).split(";") if part.strip()]


async def migrate(connection: Connection, database: str, safe_url: str, *, create: bool) -> None:
    """Migrates the schema to the newest version.

    It holds a lock with the database's name until the session ends, so that of many nodes that start at once one does it.
    Every definition commits by itself: an interrupted migration stays incomplete and is repeated at the next start. Raises
    SchemaTooNew for a schema of a newer release, StoreCorrupted for one that is not Tocsin's, StoreUnavailable for a missing
    or older one without `create`, and ConfigError if the server is not suitable.
    """
    _check_server(connection.server.version, safe_url)
    lock = b"SELECT GET_LOCK(CONCAT('tocsin ', MD5(%b)), %d)" % (text(database), _LOCK_S_MAX)
    if (await connection.rows(lock))[0][0] != 1:
        raise StoreUnreachable(
            f"{safe_url}: another node holds the schema's migration lock; try again when it has finished"
        )
    await _use(connection, database, safe_url, create=create)
    version = await _version(connection, safe_url)
    known, place = migrations(), f"{safe_url}: the schema"
    if version:
        refuse_other_format(place, await _meta(connection, "format"))
    steps = pending(known, version, place, await _meta(connection, "readable_from"))
    if steps and not create:
        raise older_schema(place, version, known[-1][0])
    if steps:
        # Before the definitions, each of which commits by itself: an older release must not start on some of them.
        await _put_meta(connection, "readable_from", readable_from(known))
        await _put_meta(connection, "format", FORMAT)
    for number, sql in steps:
        for statement in statements(sql):
            await _define(connection, statement, safe_url)
        await _put_meta(connection, "schema_version", number)


async def _define(connection: Connection, statement: bytes, safe_url: str) -> None:
    """Runs a statement of a migration. Raises ConfigError if the user lacks a privilege."""
    try:
        await connection.run(statement)
    except errors.MySQLError as error:
        if code_of(error) == DENIED:
            raise ConfigError(
                f"store: {safe_url}: the user may not change the schema ({error.args[1]}); for `tocsin migrate`, grant "
                "CREATE, ALTER, INDEX, CREATE VIEW, SELECT, INSERT, UPDATE and DELETE on the database"
            ) from error
        # A migration that was interrupted left the view. MySQL 8 can't create one only if it is missing.
        if code_of(error) != TABLE_EXISTS or not statement.startswith(_VIEW):
            raise


def _check_server(version: str, safe_url: str) -> None:
    found = _VERSION.search(version)
    number = (int(found[1]), int(found[2])) if found else (0, 0)
    name, oldest = ("MariaDB", _MARIADB_MIN) if "MariaDB" in version else ("MySQL", _MYSQL_MIN)
    if number < oldest:
        raise ConfigError(
            f"store: {safe_url} is {name} {version}; Tocsin requires {name} {oldest[0]}.{oldest[1]} or newer"
        )


async def _use(connection: Connection, database: str, safe_url: str, *, create: bool) -> None:
    """Selects the database, and creates it only if it is missing: the user may lack the right to create one."""
    try:
        await connection.run(b"USE `%b`" % database.encode())
        missing = not await _tables(connection)
    except errors.MySQLError as error:
        if code_of(error) != UNKNOWN_DATABASE:
            raise
        if create:
            await connection.run(
                b"CREATE DATABASE `%b` DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" % database.encode(),
                b"USE `%b`" % database.encode(),
            )
        missing = True
    if missing and not create:
        raise StoreUnavailable(f"{safe_url} does not have Tocsin's tables; create them with `tocsin migrate`")


async def _tables(connection: Connection) -> list[str]:
    sql = b"SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name"
    return [str(row[0]) for row in await connection.rows(sql)]


async def _version(connection: Connection, safe_url: str) -> int:
    """The schema's version; creates an empty schema if there is none."""
    tables = await _tables(connection)
    if tables and "meta" not in tables:
        raise StoreCorrupted(
            f"{safe_url}: the database belongs to another application: it contains {tables[0]}; use another database"
        )
    if not tables:
        # Only then, because a node need not have the right to create tables.
        await connection.run(
            b"CREATE TABLE meta (meta_name varchar(64) PRIMARY KEY, meta_value bigint NOT NULL) "
            b"ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        )
    return await _meta(connection, "schema_version") or 0


async def _meta(connection: Connection, name: str) -> int | None:
    rows = await connection.rows(filled("SELECT meta_value FROM meta WHERE meta_name = ?", (name,)))
    return int(rows[0][0]) if rows else None


async def _put_meta(connection: Connection, name: str, value: int) -> None:
    put = "INSERT INTO meta VALUES (?, ?)" + DIALECT.or_update("meta_name", "meta_value")
    await connection.run(filled(put, (name, value)))
