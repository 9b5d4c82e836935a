"""The writing thread of the agent's SQLite database: which writes commit together, and which fail alone."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import apsw
import pytest
from tests.support.cases import each

from tocsin.model.errors import OutcomeUnknown, StoreCorrupted, StoreLocked, StoreUnavailable
from tocsin.server.agent import ServiceAgent
from tocsin.settings import load_settings
from tocsin.stores.service_calls.database import Claimant, agent_database
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.sqlite import SqliteDatabase
from tocsin.stores.service_calls.statements import Session, from_text, to_text


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = SqliteDatabase(str(tmp_path / "agent.db"), SqlSettings(group_max=4))
    await opened.open()
    await opened.write(lambda c: c.rows("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT) STRICT", ()))
    yield opened
    await opened.close()


async def add(session: Session, number: int) -> int:
    await session.count("INSERT INTO t (n) VALUES (?)", (number,))
    return number


async def nothing(session: Session) -> None:
    """A work without statements."""


async def numbers(database: SqliteDatabase) -> list[int]:
    return [n for (n,) in await database.read(lambda c: c.rows("SELECT n FROM t ORDER BY n", ()))]


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

    async def half(session: Session) -> None:
        await add(session, 100)
        await add(session, 1)

    async def raising(session: Session) -> None:
        await add(session, 101)
        raise LookupError("decided otherwise")

    results = await asyncio.gather(
        database.write(lambda c: add(c, 1), lambda: reported.append(1)),
        database.write(half, lambda: reported.append(-1)),
        database.write(raising, lambda: reported.append(-2)),
        database.write(lambda c: add(c, 2), lambda: reported.append(2)),
        return_exceptions=True,
    )
    assert [results[0], results[3]] == [1, 2]
    assert isinstance(results[1], apsw.ConstraintError)
    assert isinstance(results[2], LookupError)
    assert reported == [1, 2]
    assert await numbers(database) == [1, 2]


async def test_writes_fail_on_a_full_disk_and_succeed_afterwards(database: SqliteDatabase) -> None:
    ((pages,),) = await database.write(lambda c: c.rows("PRAGMA page_count", ()))
    await database.write(lambda c: c.rows(f"PRAGMA max_page_count = {pages + 2}", ()))

    async def large(session: Session) -> None:
        await session.count("INSERT INTO t (n, text) VALUES (7, ?)", ("x" * 100_000,))

    results = await asyncio.gather(database.write(lambda c: add(c, 1)), database.write(large), return_exceptions=True)
    assert isinstance(results[1], StoreUnavailable)
    # The other write either shared the transaction and was rolled back with it, or had its own.
    assert results[0] == 1 or isinstance(results[0], StoreUnavailable)
    assert await numbers(database) == ([1] if results[0] == 1 else [])
    await database.write(lambda c: c.rows("PRAGMA max_page_count = 1000000", ()))
    await database.write(large)
    assert 7 in await numbers(database)


async def test_an_io_error_during_the_commit_is_an_unknown_outcome_and_fatal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings({"data_dir": tmp_path})
    unused, fatal = cast("Any", None), list[BaseException]()
    agent = ServiceAgent(
        settings, unused, unused, unused, unused, unused, Claimant(), timers_shared=False, fatal=fatal.append
    )
    database = agent._new_database()
    assert isinstance(database, SqliteDatabase)
    await database.open()
    await database.write(lambda c: c.rows("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT) STRICT", ()))
    writer = database._writer
    assert writer is not None
    connection = writer._connection

    class Failing:
        """Reports that the disk failed after each commit."""

        in_transaction = False
        changes = connection.changes

        def execute(self, sql: str, *values: object) -> object:
            result = connection.execute(sql, *values)
            self.in_transaction = connection.in_transaction
            if sql == "COMMIT":
                raise apsw.IOError("disk I/O error")
            return result

    reported: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(writer, "_connection", Failing())
        with pytest.raises(OutcomeUnknown):
            await database.write(lambda c: add(c, 1), lambda: reported.append(1), lambda: reported.append(-1))
    assert reported == [-1]
    assert [type(error) for error in fatal] == [OutcomeUnknown]
    with pytest.raises(StoreUnavailable, match=r"agent\.db accepts no writes after a failed commit"):
        await database.write(lambda c: add(c, 2))
    await database.close()
    await database.open()
    assert await database.write(lambda c: add(c, 3)) == 3
    await database.close()


async def test_the_wal_of_a_crash_is_written_and_synced_again(database: SqliteDatabase, tmp_path: Path) -> None:
    await database.write(lambda c: add(c, 1))
    crash = tmp_path / "crash"
    crash.mkdir()
    for name in ("agent.db", "agent.db-wal"):
        shutil.copy(tmp_path / name, crash)
    wal = crash / "agent.db-wal"
    content = wal.read_bytes()
    os.utime(wal, (1, 1))
    again = SqliteDatabase(str(crash / "agent.db"), SqlSettings())
    await again.open()
    assert wal.stat().st_mtime > 1
    assert wal.read_bytes() == content
    assert await numbers(again) == [1]
    await again.close()


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

        async def pragmas(session: Session) -> list[object]:
            names = ("journal_mode", "foreign_keys", "synchronous", "busy_timeout", "wal_autocheckpoint")
            return [(await session.rows(f"PRAGMA {name}", ()))[0][0] for name in names]

        assert await opened.write(pragmas) == ["wal", 1, number, 5_000, 8_000]
        await opened.close()


async def test_a_write_waits_for_another_writer_and_then_fails(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    opened = SqliteDatabase(str(path), SqlSettings(busy_timeout_ms=20))
    await opened.open()
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        await opened.write(nothing)
    other.execute("ROLLBACK")
    other.close()
    await opened.write(nothing)
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
    with pytest.raises(StoreUnavailable, match=r"agent\.db: File exists; permit .* name another place"):
        await agent_database(f"sqlite:///{tmp_path / 'new' / 'agent.db' / 'agent.db'}").open()


async def test_the_lock_names_its_holder(database: SqliteDatabase, tmp_path: Path) -> None:
    second = SqliteDatabase(str(tmp_path / "agent.db"), SqlSettings(lock_wait_s=0))
    with pytest.raises(StoreLocked, match=r"process \d+"):
        await second.open()


async def test_work_that_waits_for_something_else_is_refused(database: SqliteDatabase) -> None:
    """It would block the thread."""

    async def work(session: Session) -> None:
        await add(session, 1)
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="awaited something else"):
        await database.write(work)
    assert await numbers(database) == []


@each("instant_us", [-62_135_596_800_000_000, -1, 0, 1, 999_999, 1_800_000_000_123_456])
def test_stored_instants_have_fixed_width_and_sort_by_time(instant_us: int) -> None:
    text = to_text(instant_us)
    assert text is not None
    assert (len(text), from_text(text)) == (27, instant_us)
    later = to_text(instant_us + 1)
    assert later is not None
    assert text < later
