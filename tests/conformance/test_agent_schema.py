"""The agent's schema: made once, described by its format, and refused where it is another's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import asyncpg
import pytest

from tests.support.agent_database import NOW, call, insert, rows
from tocsin.model.errors import SchemaTooNew, StoreCorrupted
from tocsin.model.ids import is_uuid7
from tocsin.stores.service_calls import postgresql, sqlite
from tocsin.stores.service_calls.database import AgentDatabase, agent_database

#: The indexes of each table besides its primary key.
INDEXES = {
    "service_calls": [
        "idempotency_key",
        "submitted_at",
        "status",
        "watch_at",
        "finished_at",
        "correlation_id",
        "newest",
        "failures",
        "all_failures",
    ],
    "service_call_tags": ["tag"],
    "timer_schedules": ["due_at", "correlation_id", "waiting"],
    "http_execution_log": ["unfinished"],
    "suspended_executions": ["place", "unreported"],
    "outbox": ["unpublished", "correlation_id", "published_at"],
}


@pytest.fixture(params=["sqlite", "postgresql"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database that outlives its connections."""
    if request.param == "postgresql":
        return str(await request.getfixturevalue("shared_postgresql").create_database())
    return f"sqlite:///{tmp_path / 'agent.db'}"


async def on_database(url: str, script: str) -> None:
    """Runs statements on the database without the agent's `open`, which would migrate it."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.executescript(script)
        connection.close()
    else:
        server = await asyncpg.connect(url)
        await server.execute(script)
        await server.close()


async def opened(url: str) -> AgentDatabase:
    database = agent_database(url)
    await database.open()
    return database


async def test_both_databases_have_the_same_tables(url: str) -> None:
    database = await opened(url)
    if url.startswith("sqlite"):
        # Without statistics, its planner takes the newer of two indexes that serve alike: their order is fixed.
        sql = "SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY rowid"
    else:
        sql = (
            "SELECT tablename, indexname FROM pg_indexes WHERE schemaname = 'public' AND indexname LIKE 'idx%' "
            "ORDER BY indexname::regclass::oid"
        )
    found: dict[str, list[str]] = {}
    for table, name in await rows(database, sql):
        found.setdefault(table, []).append(name.removeprefix(f"idx_{table}_"))
    await database.close()
    assert found == INDEXES
    assert {len(module.migrations()) for module in (sqlite, postgresql)} == {database.schema_version}


async def test_a_newer_schema_is_refused(url: str) -> None:
    await (await opened(url)).close()
    newer = "UPDATE agent_meta SET meta_value = 9999 WHERE meta_name IN ('schema_version', 'readable_from');"
    await on_database(url, newer + ("PRAGMA user_version = 9999" if url.startswith("sqlite") else ""))
    with pytest.raises(SchemaTooNew, match="9999"):
        await agent_database(url).open()


@pytest.mark.parametrize("change", ["UPDATE agent_meta SET meta_value = -1", "DELETE FROM agent_meta"])
async def test_another_format_is_refused(url: str, change: str) -> None:
    await (await opened(url)).close()
    await on_database(url, f"{change} WHERE meta_name = 'format'")
    with pytest.raises(StoreCorrupted, match="before its first release"):
        await agent_database(url).open()


async def test_tables_without_a_format_are_refused(url: str) -> None:
    await on_database(url, "CREATE TABLE outbox (id INTEGER); CREATE TABLE agent_identity (id INTEGER)")
    with pytest.raises(StoreCorrupted, match="before its first release"):
        await agent_database(url).open()


async def test_foreign_tables_are_not_changed(url: str) -> None:
    await on_database(url, "CREATE TABLE outbox (other TEXT)")
    with pytest.raises(StoreCorrupted, match=r"outbox|another application"):
        await agent_database(url).open()


async def test_the_timers_file_is_not_taken_for_the_agents(tmp_path: Path) -> None:
    await on_database(f"sqlite:///{tmp_path / 'tocsin.db'}", "CREATE TABLE t (n); PRAGMA application_id = 0x546F6373")
    with pytest.raises(StoreCorrupted, match="another application"):
        await agent_database(f"sqlite:///{tmp_path / 'tocsin.db'}").open()


async def test_timers_and_calls_may_share_a_schema_in_postgresql(postgresql_url: str) -> None:
    """The first schema of the search path may be the timers': by default it is that of the user's name."""
    await on_database(
        postgresql_url,
        "CREATE SCHEMA postgres; SET search_path = postgres; "
        "CREATE TABLE meta (meta_name text PRIMARY KEY, meta_value bigint NOT NULL)",
    )
    database = await opened(postgresql_url)
    await insert(database, call())
    await database.close()


async def test_the_identity_is_stable(url: str) -> None:
    seen = set()
    for _ in range(2):
        database = await opened(url)
        seen.add(database.identity)
        await database.close()
    assert len(seen) == 1
    assert is_uuid7(seen.pop())


async def test_a_migration_that_fails_changes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sqlite if url.startswith("sqlite") else postgresql
    ((_, schema),) = module.migrations()
    with monkeypatch.context() as patched:
        patched.setattr(module, "migrations", lambda: [(1, f"{schema}; CREATE TABLE outbox (again TEXT)")])
        with pytest.raises(Exception, match="outbox"):
            await agent_database(url).open()
    await (await opened(url)).close()


async def test_instants_are_readable_by_other_tools(url: str) -> None:
    """Other tools read the file and the server; instants have the usual form there."""
    database = await opened(url)
    await insert(database, call(submitted_at=NOW))
    await database.close()
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            (found,) = connection.execute("SELECT submitted_at FROM service_calls").fetchone()
        assert found == "2027-01-15T08:00:00.123456Z"
    else:
        connection = await asyncpg.connect(url)
        found = await connection.fetchval("SELECT submitted_at FROM service_calls")
        await connection.close()
        assert found.isoformat() == "2027-01-15T08:00:00.123456+00:00"
