"""The agent's schema in new SQLite databases: migrated once in a process, then copied."""

from __future__ import annotations

from functools import cache

import apsw

from tocsin.stores.service_calls.sqlite import migrate_tables


@cache
def migrated() -> apsw.Connection:
    """An empty database with the newest schema, to be copied."""
    connection = apsw.Connection(":memory:")
    migrate_tables(connection, "the database to be copied")
    return connection


def copy_of_migrated() -> apsw.Connection:
    """An empty database in memory with the newest schema."""
    connection = apsw.Connection(":memory:", statementcachesize=256)
    with connection.backup("main", migrated(), "main") as copying:
        copying.step(-1)
    connection.pragma("foreign_keys", True)
    return connection
