"""Creates or checks the keyspace and its table, refuses unsuitable servers, and fixes the number of shards."""

from __future__ import annotations

import asyncio
import re
import time

from tocsin.model.errors import (
    ConfigError,
    DefiniteFailure,
    SchemaTooNew,
    StoreCorrupted,
    StoreError,
    StoreUnavailable,
)
from tocsin.ports.store import FORMAT, refuse_other_format, shards_are_fixed
from tocsin.stores import TOTAL_SHARDS_SHARED_DEFAULT
from tocsin.stores.cassandra.address import LAYOUT, OLDEST
from tocsin.stores.cassandra.client import TABLE, CassandraClient
from tocsin.stores.cassandra.keys import META

_COLUMNS = {
    "p": ("text", "partition_key"),
    "k": ("blob", "clustering"),
    "v": ("blob", "regular"),
    "n": ("bigint", "regular"),
    "epoch": ("bigint", "static"),
    "owner": ("blob", "static"),
    "latest": ("blob", "static"),
}
#: Statements of DDL wait until all nodes have the schema.
_DDL_TIMEOUT_S = 60.0
_REPLICATION_DEFAULT = 3
_POLL_S = 0.1
_LAYOUT_KEY, _SHARDS_KEY = b"layout", b"shards"
#: Whether a shard was ever claimed.
_OPEN, _CLAIMED = b"open", b"claimed"

_GET = "SELECT v, n FROM {t} WHERE p = ? AND k = ?"
_FIRST = "INSERT INTO {t} (p, k, v, n) VALUES (?, ?, ?, ?) IF NOT EXISTS"


def table_definition(keyspace: str) -> str:
    """The statement that creates the table."""
    return (
        f"CREATE TABLE IF NOT EXISTS {keyspace}.{TABLE} (p text, k blob, v blob, n bigint, epoch bigint static, "
        "owner blob static, latest blob static, PRIMARY KEY (p, k)) WITH CLUSTERING ORDER BY (k ASC)"
    )


async def prepare(client: CassandraClient, total_shards: int | None, *, create: bool) -> int:
    """Creates what is missing, and fixes the number of shards; returns that number.

    Raises ConfigError for a server that is too old or not durable, missing permissions, or another number of shards than the
    stored one; StoreCorrupted for another application's table, StoreUnavailable for a missing one without `create`,
    SchemaTooNew for a newer layout.
    """
    try:
        is_scylla = await _is_scylla(client)
        # ScyllaDB names an old release of Cassandra as its own, and syncs conditional writes in every mode of its commit log:
        # Tocsin's are all conditional.
        if not is_scylla:
            _check_version(client)
            if client.options.durable:
                await _check_commitlog(client)
        if not await _exists(client):
            if not create:
                raise StoreUnavailable(f"{client.place} does not exist; `tocsin migrate` creates it")
            await _create(client)
        await _check_columns(client)
        await _until_readable(client)
        if client.options.durable:
            await _check_keyspace(client)
        return await _fix_total_shards(client, total_shards)
    except StoreError as error:
        if "permissions" in str(error):
            raise ConfigError(f"store: {error}") from error
        if "LWT is not yet supported with tablets" in str(error):
            raise ConfigError(
                f"store: {client.place}: in this release ScyllaDB has no conditional writes for a keyspace with tablets; "
                f"DROP KEYSPACE {client.address.keyspace}, and create it WITH tablets = {{'enabled': false}}"
            ) from error
        raise


def _check_version(client: CassandraClient) -> None:
    for host in client.hosts():
        version = str(host.release_version or "")
        numbers = tuple(int(each) for each in re.findall(r"\d+", version)[:2])
        if numbers and numbers < OLDEST:
            raise ConfigError(
                f"store: {client.place}: node {host.address} runs Cassandra {version}; Tocsin requires "
                f"{'.'.join(map(str, OLDEST))} or newer"
            )


async def _is_scylla(client: CassandraClient) -> bool:
    """Whether the server is ScyllaDB."""
    return bool(
        await client.plain(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'system' AND table_name = 'scylla_local'"
        )
    )


async def _check_commitlog(client: CassandraClient) -> None:
    """Refuses nodes that acknowledge writes before they are on disk."""
    for host in client.hosts():
        try:
            rows = await client.plain(
                "SELECT value FROM system_views.settings WHERE name = 'commitlog_sync'", host=host
            )
        except DefiniteFailure as error:
            if isinstance(error, StoreUnavailable):
                raise
            rows = []
        mode = str(rows[0][0]).lower() if rows else "unknown"
        if mode not in ("batch", "group"):
            raise ConfigError(
                f"store: {client.place}: node {host.address} has commitlog_sync {mode}, so that it loses acknowledged timers "
                "when it is killed; set commitlog_sync: batch (or group) in cassandra.yaml, or cassandra.durable = false"
            )


async def _check_keyspace(client: CassandraClient) -> None:
    keyspace = client.address.keyspace
    rows = await client.plain(f"SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = '{keyspace}'")
    if rows and not rows[0][0]:
        raise ConfigError(
            f"store: {client.place} has durable_writes = false, so that acknowledged timers are lost when a node ends; "
            f"ALTER KEYSPACE {keyspace} WITH durable_writes = true, or set cassandra.durable = false"
        )


async def _exists(client: CassandraClient) -> bool:
    return bool(await _columns(client))


async def _columns(client: CassandraClient) -> dict[str, tuple[str, str]]:
    rows = await client.plain(
        "SELECT column_name, type, kind FROM system_schema.columns "
        f"WHERE keyspace_name = '{client.address.keyspace}' AND table_name = '{TABLE}'"
    )
    return {name: (kind, role) for name, kind, role in rows}


async def _create(client: CassandraClient) -> None:
    """Creates keyspace and table. Cassandra may give a table that two nodes create at once two identities, so that `migrate`
    is run first where several nodes start."""
    address = client.address
    keyspaces = await client.plain(
        f"SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = '{address.keyspace}'"
    )
    if not keyspaces:
        there = [host for host in client.hosts() if address.datacenter in (None, host.datacenter)]
        replicas = address.replication or min(_REPLICATION_DEFAULT, len(there))
        where = "replication_factor" if address.datacenter is None else address.datacenter
        await client.plain(
            f"CREATE KEYSPACE IF NOT EXISTS {address.keyspace} WITH replication = "
            f"{{'class': 'NetworkTopologyStrategy', '{where}': {replicas}}}",
            timeout_s=_DDL_TIMEOUT_S,
        )
        await _agreed(client)
    await client.plain(table_definition(address.keyspace), timeout_s=_DDL_TIMEOUT_S)
    await _agreed(client)


async def _agreed(client: CassandraClient) -> None:
    """Waits until all nodes that are up have the same schema."""
    deadline = time.monotonic() + _DDL_TIMEOUT_S
    while True:
        versions = {row[0] for host in client.hosts()
                    for row in await client.plain("SELECT schema_version FROM system.local", host=host)}  # fmt: skip
        if len(versions) == 1:
            return
        if time.monotonic() >= deadline:
            raise StoreUnavailable(
                f"{client.place}: the nodes do not agree on the schema; see `nodetool describecluster`"
            )
        # There is no notification.
        await asyncio.sleep(_POLL_S)


async def _until_readable(client: CassandraClient) -> None:
    """Waits for a table that another node is creating: the server lists it a moment before statements can name it."""
    deadline = time.monotonic() + _DDL_TIMEOUT_S
    while True:
        try:
            await client.read(_GET, client.partition(META), _LAYOUT_KEY, serial=True)
        except DefiniteFailure as error:
            if "does not exist" not in str(error) or time.monotonic() >= deadline:
                raise
        else:
            return
        # There is no notification.
        await asyncio.sleep(_POLL_S)


async def _check_columns(client: CassandraClient) -> None:
    found = await _columns(client)
    wrong = [name for name, kind in _COLUMNS.items() if found.get(name) != kind]
    if wrong:
        raise StoreCorrupted(
            f"{client.place} has another application's table {TABLE}: its columns {', '.join(wrong)} are missing or of "
            "another type. Name a keyspace of Tocsin's own"
        )


async def _fix_total_shards(client: CassandraClient, wanted: int | None) -> int:
    """Fixes the number. It can be changed until the first claim."""
    partition = client.partition(META)
    while True:
        layout = await client.read(_GET, partition, _LAYOUT_KEY, serial=True)
        if layout:
            refuse_other_format(client.place, int(layout[0][0]) if layout[0][0] else None)
        if layout and layout[0][1] > LAYOUT:
            raise SchemaTooNew(
                f"{client.place} has layout {layout[0][1]}, this Tocsin knows up to {LAYOUT}; run the newer Tocsin, or "
                "restore a backup"
            )
        if not layout:
            await client.write(_FIRST, partition, _LAYOUT_KEY, str(FORMAT).encode(), LAYOUT)
        rows = await client.read(_GET, partition, _SHARDS_KEY, serial=True)
        if rows and wanted in (None, rows[0][1]):
            return int(rows[0][1])
        if rows and rows[0][0] == _CLAIMED:
            raise shards_are_fixed(int(rows[0][1]), wanted)
        number = wanted or TOTAL_SHARDS_SHARED_DEFAULT
        if rows:
            changed = "UPDATE {t} SET n = ? WHERE p = ? AND k = ? IF n = ? AND v = ?"
            applied = await client.write(changed, number, partition, _SHARDS_KEY, rows[0][1], _OPEN)
        else:
            applied = await client.write(_FIRST, partition, _SHARDS_KEY, _OPEN, number)
        if applied[0]:
            return number


async def begin_data(client: CassandraClient, total_shards: int) -> bool:
    """Fixes the number of shards. False if another node has changed it."""
    partition = client.partition(META)
    if [(_CLAIMED, total_shards)] == await client.read(_GET, partition, _SHARDS_KEY):
        return True
    statement = "UPDATE {t} SET v = ? WHERE p = ? AND k = ? IF n = ?"
    applied = await client.write(statement, _CLAIMED, partition, _SHARDS_KEY, total_shards)
    return bool(applied[0])
