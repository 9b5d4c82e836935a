"""The writing thread of the agent's SQLite database: which writes commit together, and which fail alone."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, make_url

from tocsin.model.errors import OutcomeUnknown, StoreCorrupted, StoreLocked, StoreUnavailable
from tocsin.stores.service_calls import sqlite as module
from tocsin.stores.service_calls.database import agent_database
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.sqlite import SqliteDatabase
from tocsin.stores.service_calls.statements import from_text, to_text


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = SqliteDatabase(make_url(f"sqlite:///{tmp_path / 'agent.db'}"), SqlSettings(group_max=4))
    await opened.open()
    await opened.write(lambda c: c.exec_driver_sql("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT) STRICT") and None)
    yield opened
    await opened.close()


def add(connection: Connection, number: int) -> int:
    connection.exec_driver_sql("INSERT INTO t (n) VALUES (?)", (number,))
    return number


async def numbers(database: SqliteDatabase) -> list[int]:
    return await database.read(lambda c: [n for (n,) in c.exec_driver_sql("SELECT n FROM t ORDER BY n")])


async def test_concurrent_writes_are_committed_together_and_reported_in_order(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[int] = []
    writer = database._writer
    assert writer is not None
    together = writer._write_together

    def counted(jobs: list[object]) -> object:
        groups.append(len(jobs))
        return together(jobs)  # type: ignore[arg-type]

    monkeypatch.setattr(writer, "_write_together", counted)
    reported: list[int] = []
    works = [
        database.write(lambda c, n=n: add(c, n), lambda n=n: reported.append(n))  # type: ignore[misc]
        for n in range(20)
    ]
    assert await asyncio.gather(*works) == list(range(20))
    assert reported == list(range(20)) == await numbers(database)
    assert sum(groups) == 20
    assert max(groups) == 4


async def test_a_failing_write_rolls_back_only_itself(database: SqliteDatabase) -> None:
    reported: list[int] = []

    def half(connection: Connection) -> None:
        add(connection, 100)
        add(connection, 1)

    def raising(connection: Connection) -> None:
        add(connection, 101)
        raise LookupError("decided otherwise")

    results = await asyncio.gather(
        database.write(lambda c: add(c, 1), lambda: reported.append(1)),
        database.write(half, lambda: reported.append(-1)),
        database.write(raising, lambda: reported.append(-2)),
        database.write(lambda c: add(c, 2), lambda: reported.append(2)),
        return_exceptions=True,
    )
    assert [results[0], results[3]] == [1, 2]
    assert isinstance(results[1], sqlite3.IntegrityError)
    assert isinstance(results[2], LookupError)
    assert reported == [1, 2]
    assert await numbers(database) == [1, 2]


async def test_writes_fail_on_a_full_disk_and_succeed_afterwards(database: SqliteDatabase) -> None:
    (pages,) = await database.write(lambda c: tuple(c.exec_driver_sql("PRAGMA page_count").one()))
    await database.write(lambda c: c.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}").close())

    def large(connection: Connection) -> None:
        connection.exec_driver_sql("INSERT INTO t (n, text) VALUES (7, ?)", ("x" * 100_000,))

    results = await asyncio.gather(database.write(lambda c: add(c, 1)), database.write(large), return_exceptions=True)
    assert isinstance(results[1], StoreUnavailable)
    # The other write either shared the transaction and was rolled back with it, or had its own.
    assert results[0] == 1 or isinstance(results[0], StoreUnavailable)
    assert await numbers(database) == ([1] if results[0] == 1 else [])
    await database.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count = 1000000").close())
    await database.write(large)
    assert 7 in await numbers(database)


async def test_an_io_error_during_the_commit_is_an_unknown_outcome(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = database._writer
    assert writer is not None
    driver = writer._driver

    class Failing:
        """Reports that the disk failed after each commit."""

        in_transaction = False

        def execute(self, sql: str) -> object:
            result = driver.execute(sql)
            self.in_transaction = driver.in_transaction
            if sql == "COMMIT":
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
                raise error
            return result

    reported: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(writer, "_driver", Failing())
        with pytest.raises(OutcomeUnknown):
            await database.write(lambda c: add(c, 1), lambda: reported.append(1), lambda: reported.append(-1))
    assert reported == [-1]
    assert await database.write(lambda c: add(c, 2)) == 2


async def test_readers_see_committed_rows_and_cannot_write(database: SqliteDatabase) -> None:
    await database.write(lambda c: add(c, 1))
    assert await numbers(database) == [1]
    with pytest.raises(StoreUnavailable, match="readonly"):
        await database.read(lambda c: add(c, 2))
    assert await asyncio.gather(*(numbers(database) for _ in range(10))) == [[1]] * 10


async def test_the_pragmas_are_set(tmp_path: Path) -> None:
    for synchronous, number in (("FULL", 2), ("NORMAL", 1)):
        opened = agent_database(f"sqlite:///{tmp_path / 'agent.db'}", SqlSettings(synchronous=synchronous))
        await opened.open()

        def pragmas(connection: Connection) -> list[object]:
            names = ("journal_mode", "foreign_keys", "synchronous", "busy_timeout", "wal_autocheckpoint")
            return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

        assert await opened.write(pragmas) == ["wal", 1, number, 5_000, 8_000]
        await opened.close()


async def test_a_write_waits_for_another_writer_and_then_fails(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    opened = SqliteDatabase(make_url(f"sqlite:///{path}"), SqlSettings(busy_timeout_ms=20))
    await opened.open()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        await opened.write(lambda c: None)
    other.execute("ROLLBACK")
    other.close()
    await opened.write(lambda c: None)
    await opened.close()


async def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    path.write_bytes(b"something else " * 1_000)
    with pytest.raises(StoreCorrupted, match="not a SQLite database"):
        await agent_database(f"sqlite:///{path}").open()
    # The lock was released.
    path.unlink()
    opened = agent_database(f"sqlite:///{path}")
    await opened.open()
    await opened.close()


async def test_a_missing_folder_is_created_or_named_in_the_error(tmp_path: Path) -> None:
    opened = agent_database(f"sqlite:///{tmp_path / 'new' / 'agent.db'}")
    await opened.open()
    await opened.close()
    with pytest.raises(StoreUnavailable, match=r"cannot create .*agent.db"):
        await agent_database(f"sqlite:///{tmp_path / 'new' / 'agent.db' / 'agent.db'}").open()


async def test_the_lock_names_its_holder(database: SqliteDatabase, tmp_path: Path) -> None:
    second = SqliteDatabase(make_url(f"sqlite:///{tmp_path / 'agent.db'}"), SqlSettings(lock_wait_s=0))
    with pytest.raises(StoreLocked, match=r"process \d+"):
        await second.open()


def test_an_old_sqlite_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sqlite3, "sqlite_version_info", (3, 36, 0))
    monkeypatch.setattr(module.sqlite3, "sqlite_version", "3.36.0")
    with pytest.raises(StoreUnavailable, match=r"requires SQLite 3.37.0 or newer; this Python has 3.36.0"):
        agent_database("sqlite://")


@pytest.mark.parametrize("instant_us", [-62_135_596_800_000_000, -1, 0, 1, 999_999, 1_800_000_000_123_456])
def test_stored_instants_have_fixed_width_and_sort_by_time(instant_us: int) -> None:
    text = to_text(instant_us)
    assert text is not None
    assert (len(text), from_text(text)) == (27, instant_us)
    later = to_text(instant_us + 1)
    assert later is not None
    assert text < later
    assert from_text("2027-01-15T10:00:00+02:00") == 1_800_000_000_000_000
