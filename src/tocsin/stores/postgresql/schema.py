"""The schema in PostgreSQL: numbered migrations and the number of shards, under one lock."""

from __future__ import annotations

import re
from importlib import resources

from tocsin.model.errors import ConfigError, SchemaTooNew, StoreCorrupted, StoreUnavailable
from tocsin.stores import TOTAL_SHARDS_SHARED_DEFAULT, shards_are_fixed
from tocsin.stores.postgresql.driver import Connection

_MIGRATION_NAME = re.compile(r"(\d{4})_\w+\.sql")
#: The oldest release with the functions and settings that the store uses.
_SERVER_VERSION_MIN = 14


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order."""
    folder = resources.files("tocsin.stores.postgresql") / "migrations"
    found = ((match, file) for file in folder.iterdir() if (match := _MIGRATION_NAME.fullmatch(file.name)))
    return sorted((int(match[1]), file.read_text(encoding="utf-8")) for match, file in found)


async def prepare(connection: Connection, schema: str, safe_url: str, total_shards: int | None, *, create: bool) -> int:
    """Migrates the schema to the newest version, forward only, and fixes the number of shards; returns that number.

    It is one transaction under an advisory lock, so that of many nodes that start at once one does it. Raises SchemaTooNew
    for a schema of a newer release, StoreCorrupted for one that is not Tocsin's, StoreUnavailable for a missing one without
    `create`, and ConfigError if data exists under another number of shards or the server is not suitable."""
    await _check_server(connection, safe_url)
    async with connection.transaction():
        # Another node's migration may take long, and so may ours.
        await connection.execute(
            "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; "
            "SET LOCAL idle_in_transaction_session_timeout = 0"
        )
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('tocsin ' || $1, 0))", schema)
        if not create and await _is_missing(connection, schema):
            raise StoreUnavailable(f"{safe_url} has no schema {schema}; create it with `tocsin migrate`")
        await _migrate(connection, schema, safe_url)
        return await _fix_total_shards(connection, total_shards)


async def _check_server(connection: Connection, safe_url: str) -> None:
    version = connection.get_server_version().major
    if version < _SERVER_VERSION_MIN:
        raise ConfigError(
            f"store: {safe_url} is PostgreSQL {version}; Tocsin requires PostgreSQL {_SERVER_VERSION_MIN} or newer"
        )
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise ConfigError(
            f"store: {safe_url} has the encoding {encoding}; Tocsin requires a database with encoding UTF8"
        )


async def _migrate(connection: Connection, schema: str, safe_url: str) -> None:
    steps = migrations()
    newest = steps[-1][0]
    version = await _version(connection, schema, safe_url)
    if version > newest:
        raise SchemaTooNew(
            f"{safe_url}: the schema {schema} has version {version}, this release supports versions up to {newest}; run the "
            "newer release, or restore a backup"
        )
    for number, sql in steps:
        if number > version:
            await connection.execute(sql)
    if version < newest:
        await _put_number(connection, "schema_version", newest)


async def _is_missing(connection: Connection, schema: str) -> bool:
    return bool(await connection.fetchval("SELECT to_regclass(format('%I.meta', $1::text)) IS NULL", schema))


async def _version(connection: Connection, schema: str, safe_url: str) -> int:
    """The schema's version; creates an empty schema if there is none."""
    if await _is_missing(connection, schema):
        foreign = await connection.fetchval(
            "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
            "WHERE n.nspname = $1 LIMIT 1",
            schema,
        )
        if foreign is not None:
            raise StoreCorrupted(
                f"{safe_url}: the schema {schema} belongs to another application: it contains {foreign}; use another schema"
            )
        if not await connection.fetchval("SELECT to_regnamespace(format('%I', $1::text)) IS NOT NULL", schema):
            await connection.execute(f'CREATE SCHEMA "{schema}"')
        await connection.execute("CREATE TABLE meta (meta_name text PRIMARY KEY, meta_value bigint NOT NULL)")
        await connection.execute(f"COMMENT ON SCHEMA \"{schema}\" IS 'Timers of Tocsin'")
    return await connection.fetchval("SELECT meta_value FROM meta WHERE meta_name = 'schema_version'") or 0


async def _fix_total_shards(connection: Connection, wanted: int | None) -> int:
    """Fixes the number of shards and returns it. Until the first claim there is no data, and the number may still change."""
    fixed: int | None = await connection.fetchval("SELECT meta_value FROM meta WHERE meta_name = 'total_shards'")
    if fixed is not None and wanted in (None, fixed):
        return fixed
    if fixed is not None and await connection.fetchval("SELECT 1 FROM timers LIMIT 1") is not None:
        raise shards_are_fixed(fixed, wanted)
    number = wanted or TOTAL_SHARDS_SHARED_DEFAULT
    await _put_number(connection, "total_shards", number)
    return number


async def _put_number(connection: Connection, name: str, value: int) -> None:
    await connection.execute(
        "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (meta_name) DO UPDATE SET meta_value = excluded.meta_value",
        name,
        value,
    )
