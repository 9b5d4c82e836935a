"""The agent's database in a SQLite file, or in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreLocked, StoreUnavailable
from tocsin.ports.store import refuse_other_format
from tocsin.private_files import make_database, make_folder
from tocsin.sql.file_lock import FileLock, unwritable
from tocsin.sql.migrations import migrations_of
from tocsin.sql.threads import Readers, Writer
from tocsin.stores.options import SqliteOptions
from tocsin.stores.service_calls.database import AgentDatabase, StandingBy
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.statements import Row, Work
from tocsin.stores.sqlite.connection import connect, migrate, sync_wal, translate_error, unwritable_after

T = TypeVar("T")

#: Marks the file as an agent's ("TocA"), so that it is not taken for that of the timers.
APPLICATION_ID = 0x546F6341
_PAGE_BYTES = 4_096
#: Page cache of each connection that reads.
_READ_CACHE_BYTES = 2 * 1024 * 1024
_LOCK_PAUSE_S = 0.05


migrations = partial(migrations_of, "tocsin.stores.service_calls", "migrations/sqlite")


def migrate_tables(connection: apsw.Connection, name: str) -> None:
    """Migrates the agent's tables to the newest version. `name` is the database's, for messages."""
    before = "SELECT 1 FROM sqlite_schema WHERE name = 'agent_identity'"
    if connection.pragma("application_id") != APPLICATION_ID and connection.execute(before).get:
        refuse_other_format(name, None)
    migrate(connection, name, migrations(), application_id=APPLICATION_ID, meta="agent_meta")


class SqliteSession:
    """The port Session over a connection. Its methods never wait: `completed` runs what awaits nothing else."""

    postgresql = False

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    async def rows(self, sql: str, values: Sequence[Any]) -> Sequence[Row]:
        return self.connection.execute(sql, values).fetchall()

    async def count(self, sql: str, values: Sequence[Any]) -> int:
        self.connection.execute(sql, values)
        return self.connection.changes()


def completed(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("the work of a transaction awaited something else than its statements")


class SqliteDatabase(AgentDatabase):
    """One thread writes, others read. A database in memory, without a `path`, has only the thread that writes.

    `on_commit_io_error` is called in that thread when a COMMIT fails with an I/O error other than that of a write. What is on
    the disk is unknown then: the call raises OutcomeUnknown, and every later write is refused with StoreUnavailable until
    the file is opened again."""

    shared = False

    def __init__(
        self, path: str, settings: SqlSettings, on_commit_io_error: Callable[[Exception], None] | None = None
    ) -> None:
        super().__init__(settings)
        self._commit_io_error: str | None = None
        self._on_commit_io_error = on_commit_io_error
        self._path = None if path in ("", ":memory:") else Path(path)
        self._name = str(self._path or "SQLite in memory")
        self._lock = None if self._path is None else file_lock(self._path)
        self._writer: Writer[apsw.Connection] | None = None
        self._readers: Readers[apsw.Connection] | None = None

    @property
    def lock_held(self) -> bool:
        """True from `open` to `close`: the kernel gives a file's lock to no other process."""
        return self._writer is not None

    async def _open(self, wait_s: float, standing_by: StandingBy | None) -> None:
        # `standing_by` is not called: no other node can hold the file.
        if self._path:
            try:
                make_folder(self._path.parent)
            except OSError as error:
                raise unwritable(self._path.parent, error) from error
        await self._acquire(wait_s)
        connecting = asyncio.get_running_loop().run_in_executor(None, self._connect)
        try:
            await asyncio.shield(connecting)
        finally:
            # The thread cannot be interrupted, and needs the lock to its end.
            await asyncio.wait([connecting])

    async def _acquire(self, patience: float) -> None:
        if self._lock is None:
            return None
        while True:
            try:
                return self._lock.acquire()
            except StoreLocked:
                if patience <= 0:
                    raise
            patience -= _LOCK_PAUSE_S
            await asyncio.sleep(_LOCK_PAUSE_S)

    async def has_calls(self) -> bool:
        """As the class describes it."""
        path = self._path

        def look() -> bool:
            if path is None or not path.is_file():
                return False
            try:
                with closing(
                    connect(path, SqliteOptions(), cache_bytes=_READ_CACHE_BYTES, read_only=True)
                ) as connection:
                    return connection.execute("SELECT 1 FROM service_calls LIMIT 1").get is not None
            except apsw.Error as error:
                raise translate_error(error, self._name) from error

        return await asyncio.to_thread(look)

    async def write(
        self, work: Work[T], committed: Callable[[], None] | None = None, unknown: Callable[[], None] | None = None
    ) -> T:
        """Runs `work` on the writing thread."""

        def checked(connection: apsw.Connection) -> T:
            if self._commit_io_error is not None:
                raise unwritable_after(self._name, self._commit_io_error)
            return completed(work(SqliteSession(connection)))

        return await self._opened().run(checked, committed, unknown)

    async def read(self, work: Work[T]) -> T:
        """Runs `work` on a reading thread, over one snapshot."""
        writer = self._opened()
        if self._readers is None:
            return await writer.run(lambda connection: completed(work(SqliteSession(connection))))

        def snapshot(connection: apsw.Connection) -> T:
            connection.execute("BEGIN")
            try:
                return completed(work(SqliteSession(connection)))
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

        return await self._readers.run(snapshot)

    def _opened(self) -> Writer[apsw.Connection]:
        if self._writer is None:
            raise StoreUnavailable(f"{self._name} is not open")
        return self._writer

    async def close(self) -> None:
        """Waits for work in progress and ends the threads. Idempotent."""
        parts = (self._readers, self._writer)
        self._readers = self._writer = None
        for part in parts:
            if part is not None:
                await part.close()
        if self._lock is not None:
            self._lock.release()

    # ------------------------------------------------------------------ connections

    def _connect(self) -> None:
        settings, path = self._settings, self._path
        connections: list[apsw.Connection] = []
        try:
            if path:
                make_database(path)
            file = path or Path(":memory:")
            options = SqliteOptions(
                synchronous=settings.synchronous,
                page_bytes=_PAGE_BYTES,
                wal_checkpoint_pages=settings.wal_checkpoint_pages,
                wal_bytes_max=settings.wal_bytes_max,
                busy_timeout_ms=settings.busy_timeout_ms,
            )
            connections.append(connect(file, options, cache_bytes=settings.cache_bytes, read_only=False))
            if path:
                sync_wal(connections[0], path)
            migrate_tables(connections[0], self._name)
            connections[0].pragma("foreign_keys", True)
            readers = range(settings.readers_max if path else 0)
            connections += [connect(file, options, cache_bytes=_READ_CACHE_BYTES, read_only=True) for _ in readers]
        except BaseException as error:
            for connection in connections:
                connection.close()
            if path and isinstance(error, OSError):
                raise unwritable(path, error) from error
            if (translated := self._translate(error)) is error:
                raise
            raise translated from error
        self._commit_io_error = None
        self._writer = Writer("agent-database", connections[0], self._translate, group_max=settings.group_max)
        if path:
            self._readers = Readers("agent-database-read", connections[1:], self._translate)

    def _translate(self, error: BaseException, *, in_commit: bool = False) -> BaseException:
        translated = translate_error(error, self._name, in_commit=in_commit)
        if isinstance(translated, OutcomeUnknown):
            # As for the timers' file: after a failed fsync the next one would report success.
            self._commit_io_error = str(error)
            if self._on_commit_io_error is not None:
                self._on_commit_io_error(translated)
        # Errors of a transaction's work, and of a wrong value, are not the database's: a message that led to a store error
        # would be delivered again forever.
        return error if type(translated) is DefiniteFailure else translated


def file_lock(database: Path) -> FileLock:
    """The lock of an agent on its database."""
    return FileLock(
        database.with_name(database.name + ".lock"),
        subject=str(database),
        holder="agent",
        mend="stop that one or choose another file",
    )
