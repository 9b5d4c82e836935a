"""The agent's schema in new SQLite databases: migrated once in a process, then copied."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import cache

import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import StaticPool

from tocsin.stores.service_calls import sqlite
from tocsin.stores.service_calls.schema import migrate


@cache
def migrated() -> sqlite3.Connection:
    """An empty database with the newest schema, to be copied."""
    engine = create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"isolation_level": None, "check_same_thread": False}
    )
    with engine.connect() as connection:
        migrate(connection, "the database to be copied")
    return _driver(engine.connect())


def _driver(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.dbapi_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _copy_or_migrate(connection: Connection, name: str) -> None:
    if connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar():
        connection.rollback()
        migrate(connection, name)
    else:
        connection.rollback()
        migrated().backup(_driver(connection))


@pytest.fixture(autouse=True, scope="session")
def agent_schema_copied() -> Iterator[None]:
    """The migrations, whose test is tests/conformance/test_agent_migrations.py, take a hundred times as long as a copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "migrate", _copy_or_migrate)
        yield
