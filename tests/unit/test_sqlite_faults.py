"""SqliteStore with locks, full disks, read-only folders, damaged or foreign files, and failing fsyncs."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from tests.support.needs import lacking

from tocsin.administration import api_keys, put_api_key
from tocsin.model.access import ApiKey, Role
from tocsin.model.errors import (
    ConfigError,
    DefiniteFailure,
    OutcomeUnknown,
    SchemaTooNew,
    StoreCorrupted,
    StoreLocked,
    StoreUnavailable,
)
from tocsin.ports.store import Applied
from tocsin.stores.mysql import schema as mysql_schema
from tocsin.stores.options import SqliteOptions
from tocsin.stores.postgresql import schema as postgresql_schema
from tocsin.stores.sqlite import connection as sqlite_connection
from tocsin.stores.sqlite.store import SqliteStore
from tocsin.testing.store_conformance_base import ALICE, claimed, loaded, put, row


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "tocsin.db")
    await store.open(4)
    yield store
    await store.close()


# -- the lock


async def test_a_second_node_in_this_process_is_refused(store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(StoreLocked, match=rf"{tmp_path} .*process {os.getpid()}"):
        await SqliteStore(tmp_path / "tocsin.db").open(None)


def test_folder_lock_refuses_a_second_process_and_ends_with_its_process(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from tocsin.stores.sqlite.store import SqliteStore\n"
        "async def main():\n"
        "    await SqliteStore(sys.argv[1]).open(4)\n"
        "    print('open', flush=True)\n"
        "    sys.stdin.read()\n"
        "asyncio.run(main())\n"
    )
    path = tmp_path / "tocsin.db"
    other = subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreLocked, match=f"process {other.pid}"):
            asyncio.run(SqliteStore(path).open(None))
    finally:
        other.kill()
        other.communicate()

    async def open_and_close() -> int:
        again = SqliteStore(path)
        number = await again.open(None)
        await again.close()
        return number

    assert asyncio.run(open_and_close()) == 4


async def test_folder_lock_is_released_by_close_and_failed_open(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.db"
    path.write_bytes(b"not a database, not a database, not a database" * 100)
    with pytest.raises(StoreCorrupted):
        await SqliteStore(path).open(None)
    path.unlink()
    for _ in range(2):
        store = SqliteStore(path)
        await store.open(4)
        await store.close()


async def test_administration_works_beside_a_node(store: SqliteStore, tmp_path: Path) -> None:
    await claimed(store)
    beside = SqliteStore(tmp_path / "tocsin.db", node=False)
    assert await beside.open(None) == 4
    await put_api_key(beside, ApiKey("k", "0" * 64, Role.READ))
    await put(store, row(1))
    await beside.close()
    assert [key.key_id for key in await api_keys(store)] == ["k"]
    assert len(await loaded(store)) == 1


async def test_busy_database_is_a_definite_failure(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "tocsin.db", SqliteOptions(busy_timeout_ms=1))
    await store.open(4)
    batch = await claimed(store)
    other = apsw.Connection(str(tmp_path / "tocsin.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.apply([replace(batch, upserts=[row(1)])])
    other.execute("ROLLBACK")
    assert await store.apply([replace(batch, upserts=[row(1)])]) == [Applied.DURABLE]
    other.close()
    await store.close()


# -- disks and folders


async def test_a_full_database_refuses_and_recovers(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.db"
    store = SqliteStore(path)
    await store.open(4)
    batch = await claimed(store)
    await put(store, first := row(1, 1))
    await store._writer.run(lambda connection: connection.pragma("max_page_count", connection.pragma("page_count")))
    with pytest.raises(StoreUnavailable, match="full"):
        await store.apply([replace(batch, upserts=[row(i, i, record=b"x" * 4000) for i in range(2, 50)])])
    assert await loaded(store) == [first]
    await store._writer.run(lambda connection: connection.pragma("max_page_count", 1_000_000))
    assert await store.apply([replace(batch, upserts=[row(2, 2, record=b"x" * 9000)])]) == [Applied.DURABLE]
    await store.close()


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A small file system; calling it remounts it with other options."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tocsin-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        lacking("tmpfs", "it takes the right to mount one")

    def remount(options: str) -> Path:
        subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)
        return folder

    yield remount
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_disk_refuses_definitely_and_recovers(mounted: Callable[[str], Path]) -> None:
    store = SqliteStore(mounted("size=2m") / "tocsin.db")
    await store.open(4)
    batch = await claimed(store)
    await put(store, first := row(1, 1))
    big = [row(i, i, record=b"x" * 50_000) for i in range(2, 80)]
    with pytest.raises(DefiniteFailure):
        await store.apply([replace(batch, upserts=big)])
    assert await loaded(store) == [first]
    mounted("size=32m")
    assert await store.apply([replace(batch, upserts=big)]) == [Applied.DURABLE]
    assert len(await loaded(store)) == 79
    await store.close()


async def test_a_read_only_folder_is_unavailable(mounted: Callable[[str], Path]) -> None:
    folder = mounted("ro")
    with pytest.raises(StoreUnavailable, match=str(folder)):
        await SqliteStore(folder / "tocsin.db").open(4)
    with pytest.raises(StoreUnavailable, match=str(folder)):
        await SqliteStore(folder / "tocsin.db", node=False).open(4)
    with pytest.raises(StoreUnavailable, match=str(folder)):
        await SqliteStore(folder / "deeper" / "tocsin.db").open(4)


# -- files


async def test_file_that_is_not_a_database_is_corruption(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.db"
    path.write_bytes(os.urandom(20_000))
    with pytest.raises(StoreCorrupted, match=rf"{path} .*backup"):
        await SqliteStore(path).open(None)


async def test_a_damaged_page_is_corruption(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.db"
    store = SqliteStore(path)
    await store.open(4)
    await claimed(store)
    await put(store, *(row(i, i, record=b"x" * 500) for i in range(1, 200)))
    await store.close()
    content = bytearray(path.read_bytes())
    for page in range(len(content) // 2 // 4096, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)
    store = SqliteStore(path)
    with pytest.raises(StoreCorrupted, match="recover"):
        await store.open(None)
        await loaded(store)
    await store.close()


async def test_database_of_another_application_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    theirs = apsw.Connection(str(path))
    theirs.execute("CREATE TABLE timers (theirs)")
    theirs.close()
    with pytest.raises(StoreCorrupted, match="another application"):
        await SqliteStore(path).open(None)
    theirs = apsw.Connection(str(path))
    assert theirs.execute("SELECT group_concat(name) FROM sqlite_schema").get == "timers"
    theirs.close()


async def test_a_newer_schema_is_used_if_it_is_readable_and_else_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.db"
    store = SqliteStore(path)
    await store.open(4)
    await store.close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 999)
    (newest, _) = sqlite_connection.migrations()[-1]
    connection.execute("UPDATE meta SET meta_value = ? WHERE meta_name = 'readable_from'", (newest + 1,))
    with pytest.raises(SchemaTooNew, match="999"):
        await SqliteStore(path).open(None)
    connection.execute("UPDATE meta SET meta_value = ? WHERE meta_name = 'readable_from'", (newest,))
    earlier = SqliteStore(path)
    await earlier.open(None)
    await claimed(earlier)
    await earlier.close()
    assert connection.pragma("user_version") == 999
    for change in ("UPDATE meta SET meta_value = -1", "DELETE FROM meta"):
        connection.execute(f"{change} WHERE meta_name = 'format'")
        with pytest.raises(StoreCorrupted, match="before its first release"):
            await SqliteStore(path).open(None)
    connection.close()


async def test_older_schema_is_migrated(store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await claimed(store)
    await put(store, kept := row(1))
    await store.close()
    known = sqlite_connection.migrations()
    newer = [*known, (known[-1][0] + 1, "ALTER TABLE members ADD COLUMN member_note TEXT; CREATE TABLE added (a)")]
    monkeypatch.setattr(sqlite_connection, "migrations", lambda: newer)
    again = SqliteStore(tmp_path / "tocsin.db")
    await again.open(None)
    assert await loaded(again) == [kept]
    version = await again._writer.run(lambda connection: connection.pragma("user_version"))
    assert version == newer[-1][0]
    await again.close()


async def test_failed_migration_has_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tocsin.db"
    known = sqlite_connection.migrations()
    broken = [*known, (known[-1][0] + 1, "CREATE TABLE half (a); CREATE TABLE timers (again)")]
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_connection, "migrations", lambda: broken)
        with pytest.raises(DefiniteFailure, match="timers"):
            await SqliteStore(path).open(4)
    store = SqliteStore(path)
    assert await store.open(4) == 4
    tables = await store._writer.run(
        lambda connection: connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").get
    )
    assert tables == 0
    await store.close()


def test_migrations_are_numbered_without_gaps() -> None:
    for store in (sqlite_connection, mysql_schema, postgresql_schema):
        numbers = [number for number, _ in store.migrations()]
        assert numbers == list(range(1, len(numbers) + 1))


# -- commits


class _FailingSync(apsw.VFS):
    """A VFS whose fsync fails while `failing`."""

    def __init__(self, name: str) -> None:
        self.failing = False
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        vfs = self

        class File(apsw.VFSFile):
            def __init__(self) -> None:
                super().__init__("", name, flags)

            def xSync(self, flags: int) -> None:
                if vfs.failing:
                    raise apsw.IOError("fsync failed by test")
                super().xSync(flags)

        return File()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_failed_fsync_makes_the_commit_unknown_and_refuses_later_writes(tmp_path: Path) -> None:
    vfs = _FailingSync(f"failing-sync-{os.getpid()}")
    reported: list[Exception] = []
    store = SqliteStore(
        tmp_path / "tocsin.db", SqliteOptions(vfs=f"failing-sync-{os.getpid()}"), on_commit_io_error=reported.append
    )
    await store.open(4)
    batch = await claimed(store)
    vfs.failing = True
    with pytest.raises(OutcomeUnknown):
        await store.apply([replace(batch, upserts=[row(1)])])
    assert [type(error) for error in reported] == [OutcomeUnknown]
    vfs.failing = False
    with pytest.raises(StoreUnavailable, match="accepts no writes"):
        await store.apply([replace(batch, upserts=[row(2)])])
    await store.close()
    vfs.unregister()


@contextlib.contextmanager
def file_size_max(size: int) -> Iterator[None]:
    """Writes of this process behind that size fail with EFBIG, which SQLite reports as it does EROFS and EDQUOT."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def as_after_a_crash(path: Path, folder: Path) -> Path:
    """Copies an open database as it is in its files, without the checkpoint of closing it."""
    folder.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(path.with_name(path.name + suffix), folder)
    return folder / path.name


def timers_in(path: Path) -> int:
    connection = apsw.Connection(str(path))
    try:
        count: int = connection.execute("SELECT count(*) FROM timers WHERE row_type = 2").get
        return count
    finally:
        connection.close()


async def test_a_commit_that_can_not_write_has_failed_wherever_it_ends(tmp_path: Path) -> None:
    path, reported = tmp_path / "tocsin.db", list[Exception]()
    store = SqliteStore(path, on_commit_io_error=reported.append)
    await store.open(4)
    batch = await claimed(store)
    await put(store, first := row(1, 1))
    size, failures = path.with_name("tocsin.db-wal").stat().st_size, 0
    wanted = replace(batch, upserts=[row(2, 2, record=b"x" * 9_000)])
    while True:
        # Within a header, within a page, and to the last bytes of the last frame.
        with file_size_max(size + 10 + failures * 590):
            try:
                await store.apply([wanted])
                break
            except StoreUnavailable as error:
                assert isinstance(error.__cause__, apsw.IOError)
        assert await loaded(store) == [first]
        assert timers_in(as_after_a_crash(path, tmp_path / f"crash-{failures}")) == 1
        failures += 1
    assert failures > 20
    assert reported == []
    assert await loaded(store) == [first, *wanted.upserts]
    assert timers_in(as_after_a_crash(path, tmp_path / "crash")) == 2
    await store.close()


async def test_a_node_writes_and_syncs_the_wal_of_a_crash_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "tocsin.db")
    await store.open(4)
    await claimed(store)
    rows = [row(number, number, record=b"x" * 4_000) for number in range(1, 400)]
    await put(store, *rows)
    path = as_after_a_crash(tmp_path / "tocsin.db", tmp_path / "crash")
    await store.close()
    wal = path.with_name("tocsin.db-wal")
    content = wal.read_bytes()
    assert len(content) > 1_500_000
    os.utime(wal, (1, 1))
    beside = SqliteStore(path, node=False)
    await beside.open(None)
    assert wal.stat().st_mtime == 1

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    again = SqliteStore(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(
            StoreUnavailable, match=r"tocsin\.db-wal can't be synced: Input/output error; check the disk"
        ):
            await again.open(None)
    os.utime(wal, (1, 1))
    synced: list[tuple[int, float]] = []
    other = apsw.Connection(str(path))

    def observe(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, wal.stat().st_mtime))
        # Administration can't append to the file meanwhile, nor start it over.
        with pytest.raises(apsw.BusyError):
            other.execute("BEGIN IMMEDIATE")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", observe)
        await again.open(None)
    assert [inode for inode, _ in synced] == [wal.stat().st_ino]
    assert synced[0][1] > 1
    assert wal.read_bytes() == content
    assert await loaded(again, page_rows=1000) == rows
    other.close()
    await beside.close()
    await again.close()


async def test_values_that_do_not_fit_a_column_are_definite_failures(store: SqliteStore) -> None:
    batch = await claimed(store)
    for bad in (
        row(1, timer_id="\ud800"),
        row(1, uuid=b"short"),
        row(1, tags=("a\x1fb",)),
        row(1)._replace(generation=b"x"),
    ):
        with pytest.raises(DefiniteFailure):
            await store.apply([replace(batch, upserts=[row(2), bad])])
    assert await loaded(store) == []


async def test_a_closed_store_is_unavailable_and_can_be_opened_again(store: SqliteStore) -> None:
    with pytest.raises(ConfigError, match="open"):
        await store.open(4)
    await store.close()
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.claim(0, expected_epoch=0, owner=ALICE)
    assert await store.open(4) == 4


async def test_wal_is_checkpointed_and_stays_bounded(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "tocsin.db", SqliteOptions(wal_checkpoint_pages=200, wal_bytes_max=2**20))
    await store.open(4)
    batch = await claimed(store)
    for number in range(150):
        rows = [row(1 + number * 50 + i, number, record=b"x" * 1000) for i in range(50)]
        await store.apply([replace(batch, upserts=rows)])
    # Without checkpoints the WAL would have all pages, and the database file none.
    assert (tmp_path / "tocsin.db").stat().st_size > 4_000_000
    assert (tmp_path / "tocsin.db-wal").stat().st_size < 8_000_000
    assert len(await loaded(store, page_rows=1000)) == 7_500
    await store.close()
    assert not (tmp_path / "tocsin.db-wal").exists()


async def test_a_folder_that_can_not_be_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"/file/data: Not a directory; permit .* or name another place"):
        await SqliteStore(tmp_path / "file" / "data" / "tocsin.db").open(1)
