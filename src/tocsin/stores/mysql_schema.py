"""The schema in MySQL: numbered migrations, and the number of shards, under one lock."""

from __future__ import annotations

import re
from importlib import resources

from asyncmy import errors

from tocsin.model.errors import ConfigError, SchemaTooNew, StoreCorrupted, StoreUnavailable
from tocsin.stores import TOTAL_SHARDS_SHARED_DEFAULT
from tocsin.stores.mysql_driver import Connection
from tocsin.stores.mysql_errors import UNKNOWN_DATABASE, code_of
from tocsin.stores.mysql_text import text

_MIGRATION_NAME = re.compile(r"(\d{4})_\w+\.sql")
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_VERSION = re.compile(r"(\d+)\.(\d+)")
#: What the statements need.
_MYSQL_LEAST, _MARIADB_LEAST = (8, 0), (10, 5)
#: How long one waits for other nodes that make the same schema.
_LOCK_S_MAX = 86_400


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order."""
    folder = resources.files("tocsin.stores") / "schema" / "mysql"
    found = ((match, file) for file in folder.iterdir() if (match := _MIGRATION_NAME.fullmatch(file.name)))
    return sorted((int(match[1]), file.read_text(encoding="utf-8")) for match, file in found)


def statements(sql: str) -> list[bytes]:
    """A migration's statements. None of them has a semicolon in it."""
    return [part.strip().encode() for part in _COMMENT.sub("", sql).split(";") if part.strip()]


async def prepare(
    connection: Connection, database: str, safe_url: str, total_shards: int | None, *, create: bool
) -> int:
    """Brings the schema to the newest version, forward only, and fixes the number of shards; returns that number.

    Under a lock of the database's name, so that of many nodes that start at once one does it; the session keeps it until
    it ends. A migration that breaks off stays half done, since every definition commits by itself, and is done again by
    the next start. Raises SchemaTooNew for a schema that a newer Tocsin wrote, StoreCorrupted for one that isn't Tocsin's,
    StoreUnavailable for none without `create`, ConfigError for another number of shards than that under which data
    exists, or for a server that won't do.
    """
    _check_server(connection.server.version, safe_url)
    lock = b"SELECT GET_LOCK(CONCAT('tocsin ', MD5(%b)), %d)" % (text(database), _LOCK_S_MAX)
    if (await connection.rows(lock))[0][0] != 1:
        raise StoreUnavailable(f"{safe_url}: another node holds the lock of the schema")
    await _use(connection, database, safe_url, create=create)
    await _migrate(connection, safe_url)
    return await _fix_total_shards(connection, total_shards)


def _check_server(version: str, safe_url: str) -> None:
    found = _VERSION.search(version)
    number = (int(found[1]), int(found[2])) if found else (0, 0)
    name, least = ("MariaDB", _MARIADB_LEAST) if "MariaDB" in version else ("MySQL", _MYSQL_LEAST)
    if number < least:
        raise ConfigError(f"store: {safe_url} is {name} {version}; it takes {least[0]}.{least[1]} or newer")


async def _use(connection: Connection, database: str, safe_url: str, *, create: bool) -> None:
    """Goes to the database, which is made where it is missing. It may be there, and nobody have the right to make one."""
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
        raise StoreUnavailable(f"{safe_url} has no tables of Tocsin; `tocsin migrate` makes them")


async def _tables(connection: Connection) -> list[str]:
    sql = b"SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name"
    return [str(row[0]) for row in await connection.rows(sql)]


async def _migrate(connection: Connection, safe_url: str) -> None:
    steps = migrations()
    newest = steps[-1][0]
    tables = await _tables(connection)
    if tables and "meta" not in tables:
        raise StoreCorrupted(
            f"{safe_url}: the database is another application's, it has {tables[0]}; name one of its own"
        )
    if not tables:
        # Only then, because a node need not have the right to make any.
        await connection.run(
            b"CREATE TABLE meta (meta_name varchar(64) PRIMARY KEY, meta_value bigint NOT NULL) "
            b"ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        )
    version = await _number(connection, "schema_version") or 0
    if version > newest:
        raise SchemaTooNew(
            f"{safe_url}: the schema has version {version}, this Tocsin knows up to {newest}; run the newer Tocsin, "
            "or restore a backup"
        )
    for number, sql in steps:
        if number > version:
            for statement in statements(sql):
                await connection.run(statement)
            await _put_number(connection, "schema_version", number)


async def _fix_total_shards(connection: Connection, wanted: int | None) -> int:
    """Data exists from the first claim on; before that, the number may still be chosen."""
    fixed = await _number(connection, "total_shards")
    if fixed is not None and wanted in (None, fixed):
        return fixed
    if fixed is not None and await connection.rows(b"SELECT 1 FROM timers LIMIT 1"):
        raise ConfigError(f"the store holds data under {fixed} shards, not {wanted}")
    number = wanted or TOTAL_SHARDS_SHARED_DEFAULT
    await _put_number(connection, "total_shards", number)
    return number


async def _number(connection: Connection, name: str) -> int | None:
    rows = await connection.rows(b"SELECT meta_value FROM meta WHERE meta_name = %b" % text(name))
    return int(rows[0][0]) if rows else None


async def _put_number(connection: Connection, name: str, value: int) -> None:
    sql = b"INSERT INTO meta VALUES (%b, %d) ON DUPLICATE KEY UPDATE meta_value = VALUES(meta_value)"
    await connection.run(sql % (text(name), value))
