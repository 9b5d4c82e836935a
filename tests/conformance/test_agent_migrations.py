"""Migrations keep existing rows and lead to the tables in the code."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine, inspect, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from tests.support.agent_database import NOW, call, entry, insert, load, new_id, rows
from tocsin.model.errors import SchemaTooNew, StoreCorrupted
from tocsin.model.ids import is_uuid7
from tocsin.service_calls.messages import CallKey, CallStatus
from tocsin.stores.service_calls.database import AgentDatabase
from tocsin.stores.service_calls.factory import agent_database
from tocsin.stores.service_calls.schema import migrate, newest, version
from tocsin.stores.service_calls.tables import metadata

TENANT, WAITING, DONE, CORRELATION, EXECUTION = (new_id() for _ in range(5))
AT = "2027-01-15T08:00:00.123Z"
AT_US = 1_800_000_000_123_000

#: Rows of every table, as an agent with the reference schema would have left them.
OLD_ROWS = f"""
INSERT INTO service_calls VALUES ('{TENANT}', '{WAITING}', 'wait', 'Scheduled', '{AT}', '{AT}', NULL, NULL,
  '{{"method":"GET","url":"http://example.test/"}}', NULL);
INSERT INTO service_calls VALUES ('{TENANT}', '{DONE}', 'done', 'Failed', '{AT}', '{AT}', '{AT}', '{AT}',
  '{{"method":"GET","url":"http://example.test/"}}', '{{"errorMeta":{{"kind":"TIMEOUT","message":"late"}}}}');
INSERT INTO service_call_tags VALUES ('{TENANT}', '{WAITING}', 'star');
INSERT INTO timer_schedules VALUES ('{TENANT}', '{WAITING}', '{CORRELATION}', '{AT}', '{AT}', NULL, 'Scheduled');
INSERT INTO http_execution_log VALUES ('{TENANT}', '{DONE}', '{EXECUTION}', '{AT}', '{AT}', 'http://example.test/', 'GET',
  '{{}}', NULL, '504', '{{"a":"b"}}', 'late', 'TIMEOUT');
INSERT INTO outbox VALUES (7, '{TENANT}', '{WAITING}', 'ServiceCallScheduled', '{{"serviceCallId":"{WAITING}"}}', '{AT}',
  NULL);
INSERT INTO outbox VALUES (8, '{TENANT}', '{DONE}', 'ServiceCallFailed', '{{"serviceCallId":"{DONE}"}}', '{AT}',
  '{AT}');
"""


async def on_database(url: str, work: Callable[[Connection], Any]) -> Any:
    """Runs work on the database without the agent's `open`, which would migrate it."""
    if url.startswith("sqlite"):
        engine = create_engine(url, connect_args={"isolation_level": None})
        with engine.connect() as connection:
            result = work(connection)
            connection.commit()
        engine.dispose()
        return result
    asynchronous = create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"))
    async with asynchronous.connect() as connection:
        result = await connection.run_sync(work)
        await connection.commit()
    await asynchronous.dispose()
    return result


def run_script(script: str) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        for statement in filter(str.strip, script.split(";\n")):
            connection.exec_driver_sql(statement)

    return work


@pytest.fixture(params=["sqlite", "postgresql"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database that outlives its connections."""
    if request.param == "postgresql":
        return str(await request.getfixturevalue("shared_postgresql").create_database())
    return f"sqlite:///{tmp_path / 'agent.db'}"


async def test_rows_of_the_reference_schema_are_kept_and_usable(url: str) -> None:
    await on_database(url, lambda connection: migrate(connection, "it", "0001"))
    await on_database(url, run_script(OLD_ROWS))
    database = agent_database(url)
    await database.open()
    try:
        await _check_migrated(database)
    finally:
        await database.close()


async def _check_migrated(database: AgentDatabase) -> None:
    assert database.schema_version == newest()
    waiting = await load(database, CallKey(TENANT, WAITING))
    assert waiting is not None
    assert (waiting.name, waiting.due_at, waiting.correlation_id) == ("wait", AT_US, CORRELATION)
    assert (waiting.watch_at, waiting.executions, waiting.attempts) == (AT_US, 0, 0)
    done = await database.queries.find(CallKey(TENANT, DONE))
    assert done is not None
    assert (done.status, done.finished_at, done.correlation_id) == ("Failed", AT_US, DONE)
    assert (done.attempts, done.retry_policy) == (1, None)
    assert done.outcome == {"errorMeta": {"kind": "TIMEOUT", "message": "late"}}
    (execution,) = await database.queries.executions(CallKey(TENANT, DONE))
    assert (execution.execution_id, execution.started_at, execution.response_status) == (EXECUTION, AT_US, 504)
    assert (await database.queries.find(CallKey(TENANT, WAITING))).tags == ("star",)  # type: ignore[union-attr]
    (due,) = await database.timers.find_due([TENANT], 0, AT_US, 10)
    assert due == (TENANT, WAITING, CORRELATION, AT_US, AT_US, None)
    (message,) = await database.outbox.unpublished(0, 10)
    assert (message.number, message.envelope.correlation_id) == (7, CORRELATION)
    assert is_uuid7(message.envelope.id)
    assert message.envelope.timestamp_ms == AT_US // 1_000
    assert [watched.service_call_id for watched in await database.calls.transact(lambda t: t.to_watch(AT_US, 9))] == [
        WAITING
    ]
    new = call()
    await insert(database, new)
    await database.timers.schedule_timers([entry(new)])
    assert await database.calls.transact(lambda t: t.delete_waiting([waiting.key])) == {waiting.key}
    assert await rows(database, f"SELECT tag FROM service_call_tags WHERE service_call_id = '{WAITING}'") == []
    assert done.status == CallStatus.FAILED


async def test_the_tables_after_all_migrations_are_those_of_the_code(url: str, tmp_path: Path) -> None:
    def differences(connection: Connection) -> list[Any]:
        migrate(connection, "it")
        found = compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)
        assert inspect(connection).get_table_names()
        return found

    assert await on_database(url, differences) == []


async def test_constraints_after_all_migrations_are_those_of_the_code(
    url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """CHECKs, STRICT and partial indexes, which the comparison above does not cover."""
    if url.startswith("sqlite"):
        other = f"sqlite:///{tmp_path / 'other.db'}"
    else:
        other = await request.getfixturevalue("shared_postgresql").create_database()
    await on_database(url, lambda connection: migrate(connection, "it"))
    await on_database(other, metadata.create_all)
    described = [await on_database(place, _description) for place in (url, other)]
    assert described[0] == described[1]


def _description(connection: Connection) -> set[tuple[str, ...]]:
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        # A table that was renamed has its name in quotation marks.
        lines = {(name, re.sub(r"\s+", " ", sql.replace('"', ""))) for name, sql in found}
    else:
        indexes = connection.exec_driver_sql("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'")
        checks = connection.exec_driver_sql(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace"
            " AND contype <> 'n'"
        )
        columns = connection.exec_driver_sql(
            "SELECT table_name || '.' || column_name, concat_ws(' ', data_type, collation_name, is_nullable,"
            " column_default, is_identity) FROM information_schema.columns WHERE table_schema = 'public'"
        )
        lines = {tuple(row) for result in (indexes, checks, columns) for row in result.fetchall()}
    return {line for line in lines if not line[0].startswith(("alembic_version", "sqlite_sequence"))}


async def test_indexes_in_sqlite_have_a_fixed_order(tmp_path: Path) -> None:
    """Without statistics, its planner takes the newer of two that serve alike."""

    def names(connection: Connection) -> list[str]:
        migrate(connection, "it")
        found = connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE tbl_name = 'service_calls' AND sql IS NOT NULL AND type = 'index'"
            " ORDER BY rowid"
        )
        return [name.removeprefix("idx_service_calls_") for (name,) in found]

    assert await on_database(f"sqlite:///{tmp_path / 'agent.db'}", names) == [
        "idempotency_key",
        "submitted_at",
        "status",
        "watch_at",
        "finished_at",
        "correlation_id",
    ]


async def test_a_newer_schema_is_refused(url: str) -> None:
    database = agent_database(url)
    await database.open()
    await database.close()
    await on_database(url, run_script("UPDATE alembic_version SET version_num = '9999';\n"))
    with pytest.raises(SchemaTooNew, match="9999"):
        await agent_database(url).open()


async def test_foreign_tables_are_not_changed(url: str) -> None:
    await on_database(url, run_script("CREATE TABLE outbox (other TEXT);\n"))
    with pytest.raises(StoreCorrupted, match="outbox"):
        await agent_database(url).open()


async def test_the_identity_is_stable(url: str) -> None:
    seen = set()
    for _ in range(2):
        database = agent_database(url)
        await database.open()
        seen.add(database.identity)
        await database.close()
    assert len(seen) == 1
    assert is_uuid7(seen.pop())


async def test_a_migration_that_fails_changes_nothing(url: str) -> None:
    await on_database(url, lambda connection: migrate(connection, "it", "0001"))
    await on_database(url, run_script(OLD_ROWS))
    # A name that the migration needs.
    await on_database(url, run_script("CREATE TABLE agent_identity (other TEXT);\n"))
    with pytest.raises(Exception, match=r"agent_identity"):
        await agent_database(url).open()
    assert await on_database(url, version) == "0001"
    left = await on_database(url, lambda c: c.exec_driver_sql("SELECT count(*) FROM timer_schedules").scalar())
    assert left == 1


async def test_instants_are_readable_by_other_tools(url: str) -> None:
    """Other tools read the file and the server; instants have the usual form there."""
    database = agent_database(url)
    await database.open()
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
