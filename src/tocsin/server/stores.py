"""Selects the timers' store by the settings' URL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

import structlog

from tocsin.model.errors import ConfigError, StoreUnavailable
from tocsin.ports.clock import Clock
from tocsin.ports.observer import Observer
from tocsin.ports.store import Capabilities, Store
from tocsin.private_files import other_owner
from tocsin.server.extras import require_driver
from tocsin.settings import Settings
from tocsin.stores.cassandra import address as cassandra
from tocsin.stores.dynamodb import address as dynamodb
from tocsin.stores.memory import MemoryStore
from tocsin.stores.mongodb import address as mongodb
from tocsin.stores.sqlite.store import SqliteStore
from tocsin.telemetry.clock import SystemClock

_log = structlog.get_logger("tocsin.server")


def open_store(
    settings: Settings,
    *,
    node: bool = True,
    memory: bool = True,
    create: bool = True,
    clock: Clock | None = None,
    observe: Observer = lambda event: None,
    on_fatal: Callable[[BaseException], None] | None = None,
) -> Store:
    """The store that the settings' URL names, not yet open. Raises ConfigError for an unknown scheme, and for a driver that
    is not installed.

    `node` False is for administration while a server may run. Without `memory`, a memory store raises ConfigError. Without
    `create`, a missing store raises StoreUnavailable, here or when it is opened, instead of being created: a typo in a
    path or name must not go unnoticed; a schema that a server of an earlier release may use raises SchemaNotMigrated.
    An embedded store goes by `clock` instead of the machine's. `observe` receives the store's events. `on_fatal` is
    called, in any thread, when the state on disk is uncertain and only a restart can determine it.
    """
    url, name = settings.store_url(), settings.application_name()
    scheme = urlsplit(url).scheme
    if scheme == "memory" and memory:
        return MemoryStore(clock or SystemClock(), exclusive=True)
    require_driver(url, "store")
    # Each of the engine's lanes has a writing connection.
    server = replace(settings.database, writers=settings.engine.lanes, application_name=name)
    # Only the store in use is imported: a server's driver takes a tenth of a second, DynamoDB's half of one.
    if scheme == "postgresql":
        from tocsin.stores.postgresql.store import PostgresStore

        return PostgresStore(url, server, settings.postgresql, create=create)
    if scheme == "mysql":
        from tocsin.stores.mysql.store import MysqlStore

        return MysqlStore(url, server, settings.mysql, create=create)
    if scheme == "dynamodb":
        from tocsin.stores.dynamodb.store import DynamoStore

        return DynamoStore(url, replace(settings.dynamodb, application_name=name), create=create, observe=observe)
    if scheme == "cassandra":
        from tocsin.stores.cassandra.store import CassandraStore

        return CassandraStore(url, replace(settings.cassandra, application_name=name), create=create, observe=observe)
    if scheme in mongodb.SCHEMES:
        from tocsin.stores.mongodb.store import MongoStore

        return MongoStore(url, replace(settings.mongodb, application_name=name), create=create)
    if scheme not in ("sqlite", "memory"):
        raise ConfigError(
            f"store: unknown scheme {scheme}://; use sqlite:///path, postgresql://…, mysql://…, dynamodb://…, "
            "mongodb://…, cassandra://… or memory://"
        )
    path = settings.sqlite_path()
    if not create and not path.exists():
        raise StoreUnavailable(
            f"there is no store at {path}; check the path, which --data-dir or the store's URL names"
        )
    if (node or not path.exists()) and (owner := other_owner(path.parent)) is not None:
        raise ConfigError(
            f"data_dir: {path.parent} belongs to the user {owner}, who couldn't use the files that root leaves there; run "
            f"this as {owner}, or make root the folder's owner"
        )
    return SqliteStore(
        path,
        settings.sqlite,
        node=node,
        clock=clock,
        on_commit_io_error=on_fatal,
        on_checkpoint_error=_log_checkpoint_error,
    )


_NAMES = {
    "postgresql": "PostgreSQL",
    "mysql": "MySQL",
    "dynamodb": "DynamoDB",
    "cassandra": "Cassandra",
    "mongodb": "MongoDB",
    "mongodb+srv": "MongoDB",
    "sqlite": "SQLite",
    "memory": "the store in memory",
}


def store_name(settings: Settings) -> str:
    """The kind of store and where it is, for people, without credentials: `PostgreSQL at db.example:5432`."""
    return _name(settings.store_url())


def agent_database_name(settings: Settings) -> str | None:
    """The same of the database of service calls; None if that is the store."""
    url = settings.agent_database_url()
    return None if url == settings.store_url() else _name(url)


def _name(url: str) -> str:
    parts = urlsplit(url)
    place = parts.path[1:] if parts.scheme == "sqlite" else parts.netloc.rpartition("@")[2]
    name = _NAMES.get(parts.scheme, parts.scheme)
    return f"{name} at {place}" if place else name


def check_payload_limit(settings: Settings, capabilities: Capabilities) -> None:
    """Raises ConfigError if `payload_bytes_max` is more than the store can hold, with room for what the engine adds."""
    allowed, reserve = settings.input.payload_bytes_max, settings.engine.row_reserve_bytes
    if capabilities.row_bytes_max is not None and allowed > (most := capabilities.row_bytes_max - reserve):
        raise ConfigError(
            f"payload_bytes_max: {allowed} must be at most {most}, which is what this store can hold of a timer "
            f"({urlsplit(settings.store_url()).scheme})"
        )


def _log_checkpoint_error(error: Exception) -> None:
    _log.warning("WAL checkpoint failed", effect="no data is lost; the WAL keeps growing", error=str(error))


def newest_schema(settings: Settings) -> int:
    """The schema version to which opening the store migrates it."""
    scheme = urlsplit(settings.store_url()).scheme
    if scheme == "dynamodb":
        return dynamodb.LAYOUT
    if scheme == "cassandra":
        return cassandra.LAYOUT
    if scheme in mongodb.SCHEMES:
        return mongodb.LAYOUT
    if scheme == "postgresql":
        from tocsin.stores.postgresql.schema import migrations
    elif scheme == "mysql":
        from tocsin.stores.mysql.schema import migrations
    else:
        from tocsin.stores.sqlite.connection import migrations
    return migrations()[-1][0]
