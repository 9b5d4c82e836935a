"""The schema in MySQL: numbered migrations and the number of shards, under one lock."""

from __future__ import annotations

import re
from importlib import resources

from asyncmy import errors

from tocsin.model.errors import ConfigError, SchemaTooNew, StoreCorrupted, StoreUnavailable
from tocsin.stores import TOTAL_SHARDS_SHARED_DEFAULT, shards_are_fixed
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.errors import UNKNOWN_DATABASE, code_of
from tocsin.stores.mysql.text import text

_MIGRATION_NAME = re.compile(r"(\d{4})_\w+\.sql")
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_VERSION = re.compile(r"(\d+)\.(\d+)")
#: The oldest releases that support the statements.
_MYSQL_MIN, _MARIADB_MIN = (8, 0), (10, 5)
#: How long a node waits for others that migrate the same schema.
_LOCK_S_MAX = 86_400


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order."""
    folder = resources.files("tocsin.stores.mysql") / "migrations"
    found = ((match, file) for file in folder.iterdir() if (match := _MIGRATION_NAME.fullmatch(file.name)))
    return sorted((int(match[1]), file.read_text(encoding="utf-8")) for match, file in found)


def statements(sql: str) -> list[bytes]:
    """A migration's statements. No statement contains a semicolon."""
    return [part.strip().encode() for part in _COMMENT.sub("", sql).split(";") if part.strip()]


async def prepare(
    connection: Connection, database: str, safe_url: str, total_shards: int | None, *, create: bool
) -> int:
    """Migrates the schema to the newest version, forward only, and fixes the number of shards; returns that number.

    It holds a lock with the database's name until the session ends, so that of many nodes that start at once one does it.
    Every definition commits by itself: an interrupted migration stays incomplete and is repeated at the next start. Raises
    SchemaTooNew for a schema of a newer release, StoreCorrupted for one that is not Tocsin's, StoreUnavailable for a missing
    one without `create`, and ConfigError if data exists under another number of shards or the server is not suitable.
    """
    _check_server(connection.server.version, safe_url)
    lock = b"SELECT GET_LOCK(CONCAT('tocsin ', MD5(%b)), %d)" % (text(database), _LOCK_S_MAX)
    if (await connection.rows(lock))[0][0] != 1:
        raise StoreUnavailable(
            f"{safe_url}: another node holds the schema's migration lock; try again when it has finished"
        )
    await _use(connection, database, safe_url, create=create)
    await _migrate(connection, safe_url)
    return await _fix_total_shards(connection, total_shards)


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


async def _migrate(connection: Connection, safe_url: str) -> None:
    steps = migrations()
    newest = steps[-1][0]
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
    version = await _number(connection, "schema_version") or 0
    if version > newest:
        raise SchemaTooNew(
            f"{safe_url}: the schema has version {version}, this release supports versions up to {newest}; run the newer "
            "release, or restore a backup"
        )
    for number, sql in steps:
        if number > version:
            for statement in statements(sql):
                await connection.run(statement)
            await _put_number(connection, "schema_version", number)


async def _fix_total_shards(connection: Connection, wanted: int | None) -> int:
    """Fixes the number of shards and returns it. Until the first claim there is no data, and the number may still change."""
    fixed = await _number(connection, "total_shards")
    if fixed is not None and wanted in (None, fixed):
        return fixed
    if fixed is not None and await connection.rows(b"SELECT 1 FROM timers LIMIT 1"):
        raise shards_are_fixed(fixed, wanted)
    number = wanted or TOTAL_SHARDS_SHARED_DEFAULT
    await _put_number(connection, "total_shards", number)
    return number


async def _number(connection: Connection, name: str) -> int | None:
    rows = await connection.rows(b"SELECT meta_value FROM meta WHERE meta_name = %b" % text(name))
    return int(rows[0][0]) if rows else None


async def _put_number(connection: Connection, name: str, value: int) -> None:
    sql = b"INSERT INTO meta VALUES (%b, %d) ON DUPLICATE KEY UPDATE meta_value = VALUES(meta_value)"
    await connection.run(sql % (text(name), value))
