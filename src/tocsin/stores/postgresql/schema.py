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
        await _make_schema(connection, schema, safe_url)
        await run_pending(connection, migrations(), f"{safe_url}: the schema {schema}", create=create)


async def run_pending(
    connection: Connection, known: list[tuple[int, str]], place: str, *, create: bool = True, meta: str = "meta"
) -> None:
    """Runs the migrations that the table `meta` lacks, in the caller's transaction. `place` names the schema."""
    version = await _meta(connection, meta, "schema_version") or 0
    if version:
        refuse_other_format(place, await _meta(connection, meta, "format"))
    steps = pending(known, version, place, await _meta(connection, meta, "readable_from"))
    if steps and not create:
        raise older_schema(place, version, known[-1][0])
    for _, sql in steps:
        await connection.execute(sql)
    values = {"schema_version": known[-1][0], "readable_from": readable_from(known), "format": FORMAT}
    for name, value in values.items() if steps else ():
        put = f"INSERT INTO {meta} VALUES ($1, $2) ON CONFLICT (meta_name) DO UPDATE SET meta_value = $2"
        await connection.execute(put, name, value)


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


async def _make_schema(connection: Connection, schema: str, safe_url: str) -> None:
    """Creates an empty schema if there is none."""
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
        await make_meta(connection, "meta")
        await connection.execute(f"COMMENT ON SCHEMA \"{schema}\" IS 'Timers of Tocsin'")


async def make_meta(connection: Connection, table: str) -> None:
    """Creates the table of numbers about a schema."""
    await connection.execute(f"CREATE TABLE {table} (meta_name text PRIMARY KEY, meta_value bigint NOT NULL)")


async def _meta(connection: Connection, table: str, name: str) -> int | None:
    found: int | None = await connection.fetchval(f"SELECT meta_value FROM {table} WHERE meta_name = $1", name)
    return found
