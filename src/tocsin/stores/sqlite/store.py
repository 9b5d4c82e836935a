"""The embedded store: one SQLite file, one writing thread, two reading threads.

This file has the life cycle, the threads, and the translation of errors; `tocsin.sql` has what SQL stores have in common. The
statements on timers are in `writes`, `reads` and `lists`.
"""

from __future__ import annotations

import asyncio
import builtins
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from tocsin.model.errors import ConfigError, OutcomeUnknown, StoreError, StoreUnavailable
from tocsin.ports.clock import Clock
from tocsin.ports.store import (
    Applied,
    Capabilities,
    FailureRow,
    Found,
    Listed,
    ListQuery,
    Loaded,
    ShardBatch,
    StoreFacts,
)
from tocsin.private_files import make_database, make_folder
from tocsin.sql.dialect import Step, Value
from tocsin.sql.file_lock import FileLock, unwritable
from tocsin.sql.rows import LoadQuery
from tocsin.sql.store import SqlStore
from tocsin.sql.threads import Readers, Writer
from tocsin.stores import TOTAL_SHARDS_DEFAULT
from tocsin.stores.options import SqliteOptions
from tocsin.stores.sqlite import lists, reads, writes
from tocsin.stores.sqlite.checkpoint import Checkpointer
from tocsin.stores.sqlite.connection import (
    connect,
    has_no_space,
    migrate,
    no_space,
    sync_wal,
    translate_error,
    unwritable_after,
)
from tocsin.stores.sqlite.dialect import DIALECT
from tocsin.stores.sqlite.rows import FAILURES, FAILURES_DESCENDING, failure_rows

E = TypeVar("E", bound=BaseException)
T = TypeVar("T")
P = TypeVar("P")

#: What locks the data folder: one node at a time.
LOCK_FILE = "tocsin.lock"
#: Writes that one transaction commits together. The engine's are batches already; others are few.
_GROUP_MAX = 16


class SqliteStore(SqlStore):
    """Timers in the SQLite file at `path`.

    `node` False does not take the folder's lock, for administration while a server runs. A thread checkpoints the write-ahead
    log (WAL); its file is then truncated to `wal_bytes_max`. `clock` replaces the machine's.

    `on_commit_io_error` is called in the writing thread when a COMMIT fails with an I/O error other than that of a write.
    What is on the disk is unknown then: the call raises OutcomeUnknown, and every later write is refused with
    StoreUnavailable until the file is opened again. `on_checkpoint_error` is called, in any thread, when a checkpoint fails;
    no data is lost, the WAL keeps growing.
    """

    capabilities = Capabilities(range_delete=True, exclusive=True)
    dialect = DIALECT
    total_shards_default = TOTAL_SHARDS_DEFAULT

    def __init__(
        self,
        path: str | Path,
        options: SqliteOptions | None = None,
        *,
        node: bool = True,
        clock: Clock | None = None,
        on_commit_io_error: Callable[[Exception], None] | None = None,
        on_checkpoint_error: Callable[[Exception], None] | None = None,
    ) -> None:
        self._path = Path(path)
        self._options = options or SqliteOptions()
        self._clock = clock
        self._lock = folder_lock(self._path.parent) if node else None
        self._writer: Writer[apsw.Connection] | None = None
        self._loader: Readers[apsw.Connection] | None = None
        self._reader: Readers[apsw.Connection] | None = None
        self._commit_io_error: str | None = None
        self._checkpointer: Checkpointer | None = None
        self._on_commit_io_error = on_commit_io_error
        self._on_checkpoint_error = on_checkpoint_error

    async def open(self, total_shards: int | None) -> int:
        """Connects, migrates the schema, and fixes the number of shards at first use; returns the number in force. Creates
        the folder and the file if they are missing."""
        if self._writer is not None:
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
            raise unwritable(self._path.parent, error) from error
        if self._lock is not None:
            self._lock.acquire()
        options, connections = self._options, list[apsw.Connection]()
        try:
            make_database(self._path)
            writer = connect(self._path, options, cache_bytes=options.cache_bytes, read_only=False)
            connections.append(writer)
            if self._lock is not None:
                sync_wal(writer, self._path)
            migrate(writer, self._path)
            for _ in range(2):
                reader = connect(self._path, options, cache_bytes=options.read_cache_bytes, read_only=True)
                connections.append(reader)
            if self._lock is not None:
                self._start_checkpointer(writer)
        except BaseException as error:
            for connection in connections:
                connection.close()
            if self._lock is not None:
                self._lock.release()
            if isinstance(error, apsw.IOError | apsw.FullError | apsw.CantOpenError) and has_no_space(
                self._path.parent
            ):
                raise no_space(self._path.parent) from error
            if (translated := translate_error(error, self._path)) is not error:
                raise translated from error
            if isinstance(error, OSError):
                raise StoreUnavailable(f"{self._path} can't be created: {error.strerror}") from error
            raise
        self._writer = Writer(
            "tocsin-sqlite-write",
            writer,
            self._translate,
            group_max=_GROUP_MAX,
            afterwards=lambda: self._committed(writer),
        )
        self._loader, self._reader = (
            Readers(f"tocsin-sqlite-{name}", [connection], self._translate)
            for name, connection in zip(("load", "read"), connections[1:], strict=True)
        )

    def _start_checkpointer(self, writer: apsw.Connection) -> None:
        options = self._options
        connection = connect(self._path, options, cache_bytes=options.read_cache_bytes, read_only=False)
        for each in (writer, connection):
            each.pragma("wal_autocheckpoint", 0)
        self._checkpointer = Checkpointer(connection, options.wal_checkpoint_pages, self._checkpoint_failed)

    def _committed(self, writer: apsw.Connection) -> None:
        checkpointer = self._checkpointer
        if checkpointer is not None:
            checkpointer.committed(writer)

    def _checkpoint_failed(self, error: Exception) -> None:
        if self._on_checkpoint_error is not None:
            self._on_checkpoint_error(self._translate(error))

    async def close(self) -> None:
        """Waits for calls under way and disconnects. Closing the last connection checkpoints the WAL."""
        # The writer is closed last: reading connections can't checkpoint.
        parts = [part for part in (self._reader, self._loader, self._writer) if part is not None]
        self._reader = self._loader = self._writer = None
        checkpointer, self._checkpointer = self._checkpointer, None
        try:
            if checkpointer is not None:
                await asyncio.get_running_loop().run_in_executor(None, checkpointer.close)
            for part in parts:
                await part.close()
        except apsw.Error as error:
            raise self._translate(error) from error
        finally:
            if parts and self._lock is not None:
                self._lock.release()

    async def facts(self) -> StoreFacts:
        """What the database reports about itself, and the size of its log."""
        wal = self._path.with_name(f"{self._path.name}-wal")
        return (await super().facts())._replace(wal_bytes=wal.stat().st_size if wal.exists() else 0)

    async def now(self) -> int:
        """The clock of its only node: the machine's, unless it has another."""
        return time.time_ns() // 1000 if self._clock is None else self._clock.now_us()

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. One transaction, one
        fsync."""
        return await self._write(lambda connection: writes.apply(connection, batches)) if batches else []

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        return await self._load(lambda connection: reads.fetch(connection, shard_id, uuids))

    async def list(self, query: ListQuery) -> Listed:
        """A page of timers, live and finished."""
        bytes_max = min(query.bytes_max, self._options.read_bytes_max)
        return await self._read(lambda connection: lists.list_rows(connection, query, bytes_max))

    async def _failures(self, values: tuple[Value, ...], *, descending: bool) -> builtins.list[FailureRow]:
        ((rows,),) = await self._rows(FAILURES_DESCENDING if descending else FAILURES, *values)
        return failure_rows(rows)

    async def _page(self, query: LoadQuery) -> Loaded:
        return await self._load(lambda connection: reads.load(connection, query, self._options.read_bytes_max))

    # -- how statements run

    async def _engine_rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        return await self._load(lambda connection: reads.rows_of(connection, sql, values))

    async def _rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
        return await self._read(lambda connection: reads.rows_of(connection, sql, values))

    async def _change(self, *steps: Step) -> int:
        return await self._write(lambda connection: writes.run(connection, steps))

    # -- threads

    async def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        def checked(connection: apsw.Connection) -> T:
            if self._commit_io_error is not None:
                raise unwritable_after(self._path, self._commit_io_error)
            return work(connection)

        return await self._opened(self._writer).run(checked)

    async def _load(self, work: Callable[[apsw.Connection], T]) -> T:
        """The engine's reads have a separate thread, so that a long list never delays them."""
        return await self._opened(self._loader).run(work)

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        return await self._opened(self._reader).run(work)

    def _opened(self, part: P | None) -> P:
        if part is None:
            raise StoreUnavailable(f"{self._path} is not open")
        return part

    def _translate(self, error: E, *, in_commit: bool = False) -> E | StoreError:
        translated = translate_error(error, self._path, in_commit=in_commit)
        if isinstance(translated, OutcomeUnknown):
            # After a failed fsync the kernel may have dropped the pages, and the next fsync would report success.
            self._commit_io_error = str(error)
            if self._on_commit_io_error is not None:
                self._on_commit_io_error(translated)
        return translated


def folder_lock(folder: Path) -> FileLock:
    """The lock of a node on its data folder."""
    return FileLock(
        folder / LOCK_FILE,
        subject=f"the data folder {folder}",
        holder="Tocsin",
        mend="stop it, or use another folder",
    )
