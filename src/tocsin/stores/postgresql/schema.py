"""The schema in PostgreSQL: numbered migrations under one lock."""

from __future__ import annotations

from functools import partial

from tocsin.model.errors import ConfigError, StoreCorrupted, StoreUnavailable
from tocsin.ports.store import FORMAT, refuse_other_format
from tocsin.sql.migrations import migrations_of, older_schema, pending, readable_from
from tocsin.stores.postgresql.driver import Connection

#: The oldest release with the functions and settings that the store uses.
_SERVER_VERSION_MIN = 14


migrations = partial(migrations_of, "tocsin.stores.postgresql")


async def migrate(connection: Connection, schema: str, safe_url: str, *, create: bool) -> None:
    """Migrates the schema to the newest version.

    It is one transaction under an advisory lock, so that of many nodes that start at once one does it. Raises SchemaTooNew
    for a schema of a newer release, StoreCorrupted for one that is not Tocsin's, StoreUnavailable for a missing or older one
    without `create`, and ConfigError if the server is not suitable."""
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
        version = await _version(connection, schema, safe_url)
        known = migrations()
        place = f"{safe_url}: the schema {schema}"
        if version:
            refuse_other_format(place, await _meta(connection, "format"))
        steps = pending(known, version, place, await _meta(connection, "readable_from"))
        if steps and not create:
            raise older_schema(place, version, known[-1][0])
        for _, sql in steps:
            await connection.execute(sql)
        if steps:
            await _put_meta(connection, "schema_version", steps[-1][0])
            await _put_meta(connection, "readable_from", readable_from(known))
            await _put_meta(connection, "format", FORMAT)


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
    return await _meta(connection, "schema_version") or 0


async def _meta(connection: Connection, name: str) -> int | None:
    found: int | None = await connection.fetchval("SELECT meta_value FROM meta WHERE meta_name = $1", name)
    return found


async def _put_meta(connection: Connection, name: str, value: int) -> None:
    await connection.execute(
        "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (meta_name) DO UPDATE SET meta_value = $2", name, value
    )
