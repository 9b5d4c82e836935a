"""The agent's database in a SQLite file, or in memory."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.pool import NullPool

from tocsin.model.errors import StoreLocked, StoreUnavailable
from tocsin.private_files import make_database, make_folder
from tocsin.sql.file_lock import FileLock
from tocsin.sql.threads import Readers, Writer
from tocsin.stores.service_calls.database import AgentDatabase, StandingBy
from tocsin.stores.service_calls.errors import DATABASE_ERRORS, translate_sqlite_error
from tocsin.stores.service_calls.schema import migrate, set_pragmas
from tocsin.stores.service_calls.settings import SqlSettings

T = TypeVar("T")

#: The first version with STRICT tables.
SQLITE_MIN = (3, 37, 0)
#: Prepared statements that a connection keeps.
_STATEMENTS_CACHED = 256
_LOCK_PAUSE_S = 0.05


class SqliteDatabase(AgentDatabase):
    """One thread writes, others read. A database in memory has only the thread that writes."""

    shared = False

    def __init__(self, url: URL, settings: SqlSettings) -> None:
        super().__init__(settings)
        if sqlite3.sqlite_version_info < SQLITE_MIN:
            raise StoreUnavailable(
                f"requires SQLite {'.'.join(map(str, SQLITE_MIN))} or newer; this Python has {sqlite3.sqlite_version}"
            )
        self._path = None if url.database in (None, "", ":memory:") else Path(str(url.database))
        self._name = str(self._path or "SQLite in memory")
        self._engine = create_engine(
            f"sqlite:///{self._path or ':memory:'}",
            poolclass=NullPool,
            connect_args={
                "isolation_level": None,
                "check_same_thread": False,
                "cached_statements": _STATEMENTS_CACHED,
                "timeout": settings.busy_timeout_ms / 1_000,
            },
        )
        self._lock = None if self._path is None else file_lock(self._path)
        self._writer: Writer[Connection] | None = None
        self._readers: Readers[Connection] | None = None

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
                raise StoreUnavailable(f"cannot create the folder {self._path.parent}: {error.strerror}") from error
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

    async def write(
        self,
        work: Callable[[Connection], T],
        committed: Callable[[], None] | None = None,
        unknown: Callable[[], None] | None = None,
    ) -> T:
        """Runs `work` on the writing thread."""
        return await self._opened().run(work, committed, unknown)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` on a reading thread, over one snapshot."""
        writer = self._opened()
        if self._readers is None:
            return await writer.run(work)

        def snapshot(connection: Connection) -> T:
            connection.exec_driver_sql("BEGIN")
            try:
                return work(connection)
            finally:
                connection.rollback()

        return await self._readers.run(snapshot)

    def _opened(self) -> Writer[Connection]:
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
        try:
            if self._path:
                make_database(self._path)
            writing = self._open_writing()
            driver: Any = writing.connection.dbapi_connection
            self._writer = Writer(
                "agent-database", writing, driver, self._translate, group_max=self._settings.group_max
            )
            if self._path:
                reading = [self._open_reading() for _ in range(self._settings.readers_max)]
                self._readers = Readers("agent-database-read", reading, self._translate)
        except DATABASE_ERRORS as error:
            if isinstance(error, OSError):
                raise StoreUnavailable(f"cannot create {self._path}: {error.strerror}") from error
            raise self._translate(error) from error

    def _open_writing(self) -> Connection:
        connection = self._engine.connect()
        try:
            set_pragmas(
                connection,
                busy_timeout=self._settings.busy_timeout_ms,
                journal_mode="WAL",
                synchronous=self._settings.synchronous,
                wal_autocheckpoint=self._settings.wal_checkpoint_pages,
                journal_size_limit=self._settings.wal_bytes_max,
                cache_size=-(self._settings.cache_bytes // 1024),
                temp_store="MEMORY",
            )
            migrate(connection, self._name)
            set_pragmas(connection, foreign_keys="ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_reading(self) -> Connection:
        connection = self._engine.connect()
        set_pragmas(connection, query_only="ON", temp_store="MEMORY")
        return connection

    def _translate(self, error: BaseException, *, in_commit: bool = False) -> BaseException:
        return translate_sqlite_error(error, self._name, in_commit=in_commit)


def file_lock(database: Path) -> FileLock:
    """The lock of an agent on its database."""
    return FileLock(
        database.with_name(database.name + ".lock"),
        subject=str(database),
        holder="agent",
        mend="stop that one or choose another file",
    )
