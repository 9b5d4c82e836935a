"""The embedded store: one SQLite file, one writing thread, two reading threads.

This file has the life cycle, the threads, and the translation of errors; `tocsin.sql` has what SQL stores have in common. The
statements on timers are in `writes`, `reads` and `lists`.
"""

from __future__ import annotations

import asyncio
import builtins
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from tocsin.model.errors import ConfigError, StoreError, StoreUnavailable
from tocsin.ports.store import Applied, Capabilities, FireKey, Found, Listed, ListQuery, Loaded, ShardBatch
from tocsin.private_files import make_database, make_folder
from tocsin.sql.dialect import Step, Value
from tocsin.sql.store import SqlStore
from tocsin.stores import TOTAL_SHARDS_DEFAULT
from tocsin.stores.sqlite import lists, reads, writes
from tocsin.stores.sqlite.checkpoint import Checkpointer
from tocsin.stores.sqlite.connection import (
    TRANSLATED,
    CommitFailed,
    SqliteSettings,
    connect,
    migrate,
    transact,
    translate_error,
)
from tocsin.stores.sqlite.dialect import DIALECT
from tocsin.stores.sqlite.lock import FolderLock

T = TypeVar("T")

_MIB = 1024 * 1024


class _ConnectionThread:
    """A thread with a connection that only it uses."""

    def __init__(self, name: str, connection: apsw.Connection) -> None:
        self.connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"tocsin-sqlite-{name}")

    async def run(self, work: Callable[[apsw.Connection], T]) -> T:
        """Runs `work` in the thread. Work that has begun continues to its end if the caller is cancelled."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self.connection)

    async def close(self) -> None:
        """Waits for the work under way, then closes the connection."""
        await self.run(lambda connection: connection.close())
        self._thread.shutdown()


class SqliteStore(SqlStore):
    """Timers in the SQLite file at `path`.

    `node` False does not take the folder's lock, for administration beside a running server. With `synchronous` FULL an
    acknowledged write survives a power failure, with NORMAL only a crash of the process. `cache_bytes` is the page cache of
    the writing connection, `read_cache_bytes` that of each reading one; `mmap_bytes` maps that much of the file instead of
    reading it. A thread checkpoints the write-ahead log (WAL) after every `wal_checkpoint_pages` pages; the WAL file is then
    truncated to `wal_bytes_max`. `busy_timeout_ms` limits the wait for another process's transaction. `read_bytes_max` limits
    the records in one page of `load` or `list`.

    `on_commit_io_error` is called in the writing thread when a COMMIT fails with an I/O error. What is on the disk is unknown
    then: the call raises OutcomeUnknown, and every later write is refused with StoreUnavailable until the file is opened
    again. `on_checkpoint_error` is called, in any thread, when a checkpoint fails; no data is lost, the WAL keeps growing.
    """

    capabilities = Capabilities(range_delete=True, exclusive=True)
    dialect = DIALECT
    total_shards_default = TOTAL_SHARDS_DEFAULT

    def __init__(
        self,
        path: str | Path,
        *,
        node: bool = True,
        synchronous: str = "FULL",
        page_bytes: int = 4096,
        cache_bytes: int = 64 * _MIB,
        read_cache_bytes: int = 8 * _MIB,
        mmap_bytes: int = 0,
        wal_checkpoint_pages: int = 20_000,
        wal_bytes_max: int = 256 * _MIB,
        busy_timeout_ms: int = 5_000,
        read_bytes_max: int = 16 * _MIB,
        vfs: str | None = None,
        on_commit_io_error: Callable[[Exception], None] | None = None,
        on_checkpoint_error: Callable[[Exception], None] | None = None,
    ) -> None:
        if synchronous not in ("FULL", "NORMAL", "EXTRA"):
            raise ConfigError(f"synchronous is {synchronous!r}; use FULL, NORMAL or EXTRA")
        self._path = Path(path)
        self._settings = SqliteSettings(
            path=self._path,
            synchronous=synchronous,
            page_bytes=page_bytes,
            cache_bytes=cache_bytes,
            mmap_bytes=mmap_bytes,
            wal_checkpoint_pages=wal_checkpoint_pages,
            wal_bytes_max=wal_bytes_max,
            busy_timeout_ms=busy_timeout_ms,
            vfs=vfs,
        )
        self._read_cache_bytes = read_cache_bytes
        self._read_bytes_max = read_bytes_max
        self._lock = FolderLock(self._path.parent) if node else None
        self._threads: list[_ConnectionThread] = []
        self._commit_io_error: str | None = None
        self._checkpointer: Checkpointer | None = None
        self.on_commit_io_error = on_commit_io_error
        self.on_checkpoint_error = on_checkpoint_error

    async def open(self, total_shards: int | None) -> int:
        """Connects, migrates the schema, and fixes the number of shards at first use; returns the number in force. Creates
        the folder and the file if they are missing."""
        if self._threads:
            raise ConfigError(f"{self._path} is already open")
        await asyncio.get_running_loop().run_in_executor(None, self._open)
        try:
            return await self._fix_total_shards(total_shards)
        except BaseException:
            await self.close()
            raise

    def _open(self) -> None:
        try:
            make_folder(self._path.parent)
        except OSError as error:
            raise StoreUnavailable(f"the data folder {self._path.parent} can't be created: {error.strerror}") from error
        if self._lock is not None:
            self._lock.acquire()
        connections: list[apsw.Connection] = []
        try:
            make_database(self._path)
            writer = connect(self._settings, cache_bytes=self._settings.cache_bytes, read_only=False)
            connections.append(writer)
            migrate(writer, self._path)
            for _ in range(2):
                reader = connect(self._settings, cache_bytes=self._read_cache_bytes, read_only=True)
                connections.append(reader)
            if self._lock is not None:
                self._start_checkpointer(writer)
        except BaseException as error:
            for connection in connections:
                connection.close()
            if self._lock is not None:
                self._lock.release()
            if isinstance(error, TRANSLATED):
                raise translate_error(error, self._path) from error
            if isinstance(error, OSError):
                raise StoreUnavailable(f"{self._path} can't be created: {error.strerror}") from error
            raise
        self._threads = [_ConnectionThread(*pair) for pair in zip(("write", "load", "read"), connections, strict=True)]

    def _start_checkpointer(self, writer: apsw.Connection) -> None:
        connection = connect(self._settings, cache_bytes=self._read_cache_bytes, read_only=False)
        for each in (writer, connection):
            each.pragma("wal_autocheckpoint", 0)
        self._checkpointer = Checkpointer(connection, self._settings.wal_checkpoint_pages, self._checkpoint_failed)

    def _checkpoint_failed(self, error: Exception) -> None:
        if self.on_checkpoint_error is not None:
            self.on_checkpoint_error(translate_error(error, self._path))

    async def close(self) -> None:
        """Waits for calls under way and disconnects. Closing the last connection checkpoints the WAL."""
        # The writer is closed last: reading connections can't checkpoint.
        threads, self._threads = self._threads[::-1], []
        checkpointer, self._checkpointer = self._checkpointer, None
        try:
            if checkpointer is not None:
                await asyncio.get_running_loop().run_in_executor(None, checkpointer.close)
            for thread in threads:
                await thread.close()
        except apsw.Error as error:
            raise translate_error(error, self._path) from error
        finally:
            if threads and self._lock is not None:
                self._lock.release()

    async def now(self) -> int:
        """The machine's clock, because the store is exclusive."""
        return time.time_ns() // 1000

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. One transaction, one
        fsync."""
        return await self._write(lambda connection: writes.apply(connection, batches)) if batches else []

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        return await self._load(lambda connection: reads.fetch(connection, shard_id, uuids))

    async def list(self, query: ListQuery) -> Listed:
        """A page of one namespace's timers, live and finished."""
        return await self._read(lambda connection: lists.list_rows(connection, query, self._read_bytes_max))

    async def _page(self, row_type: int, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        bytes_max = self._read_bytes_max
        return await self._load(
            lambda connection: reads.load(connection, row_type, shard_id, after, up_to, limit, bytes_max)
        )

    # -- how statements run

    async def _engine_rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        return await self._load(lambda connection: connection.execute(sql, values).fetchall())

    async def _rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        return await self._read(lambda connection: connection.execute(sql, values).fetchall())

    async def _change(self, *steps: Step) -> int:
        return await self._write(lambda connection: writes.run(connection, steps))

    # -- threads

    async def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        return await self._thread(0).run(lambda connection: self._transact(connection, work))

    async def _load(self, work: Callable[[apsw.Connection], T]) -> T:
        """The engine's reads have a thread of their own, so that a long list never delays them."""
        return await self._thread(1).run(lambda connection: self._translated(connection, work))

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        return await self._thread(2).run(lambda connection: self._translated(connection, work))

    def _thread(self, index: int) -> _ConnectionThread:
        if not self._threads:
            raise StoreUnavailable(f"{self._path} is not open")
        return self._threads[index]

    def _transact(self, connection: apsw.Connection, work: Callable[[apsw.Connection], T]) -> T:
        if self._commit_io_error is not None:
            raise StoreUnavailable(
                f"{self._path} accepts no writes after a failed commit ({self._commit_io_error}); check the disk and restart"
            )
        try:
            result = transact(connection, lambda: work(connection))
        except CommitFailed as error:
            raise self._commit_failed(error) from error
        except TRANSLATED as error:
            raise translate_error(error, self._path) from error
        if self._checkpointer is not None:
            self._checkpointer.committed(connection)
        return result

    def _commit_failed(self, error: CommitFailed) -> StoreError:
        store_error = translate_error(error, self._path)
        if isinstance(error.__cause__, apsw.IOError):
            # After a failed fsync the kernel may have dropped the pages, and the next fsync would report success.
            self._commit_io_error = str(error)
            if self.on_commit_io_error is not None:
                self.on_commit_io_error(store_error)
        return store_error

    def _translated(self, connection: apsw.Connection, work: Callable[[apsw.Connection], T]) -> T:
        try:
            return work(connection)
        except (*TRANSLATED, msgspec.DecodeError) as error:
            raise translate_error(error, self._path) from error
