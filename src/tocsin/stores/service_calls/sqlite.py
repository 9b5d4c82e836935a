"""The agent's database in a SQLite file, or in memory: one writing thread and some reading threads."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine
from sqlalchemy.pool import NullPool

from tocsin.model.errors import OutcomeUnknown, StoreLocked, StoreUnavailable
from tocsin.private_files import make_database, make_folder
from tocsin.stores.service_calls.backend import StandingBy
from tocsin.stores.service_calls.errors import DATABASE_ERRORS, translate_sqlite_error
from tocsin.stores.service_calls.schema import migrate
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.sqlite_lock import FileLock

T = TypeVar("T")
Work = Callable[[Connection], Any]

#: The first version with STRICT tables.
SQLITE_MIN = (3, 37, 0)
#: Prepared statements that a connection keeps.
_STATEMENTS_CACHED = 256
_LOCK_PAUSE_S = 0.05
_SAVEPOINT = "one_work"


class _Job(NamedTuple):
    work: Work
    done: asyncio.Future[Any]
    committed: Callable[[], None] | None
    unknown: Callable[[], None] | None


class _Settled(NamedTuple):
    job: _Job
    result: Any
    error: BaseException | None


class SqliteDatabase:
    """One thread does all writing. Work that accumulates while it is busy is committed together, each behind a
    savepoint of its own, so that a failing one rolls back only itself. With many small writes at once, most of their
    cost is the commit."""

    shared = False

    def __init__(self, url: URL, settings: SqlSettings) -> None:
        if sqlite3.sqlite_version_info < SQLITE_MIN:
            raise StoreUnavailable(
                f"requires SQLite {'.'.join(map(str, SQLITE_MIN))} or newer; this Python has {sqlite3.sqlite_version}"
            )
        self._path = None if url.database in (None, "", ":memory:") else Path(str(url.database))
        self._name = str(self._path or "SQLite in memory")
        self._settings = settings
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
        self._lock = FileLock(self._path) if self._path else None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._idle_readers: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._open_readers: list[Connection] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def engine(self) -> Engine:
        """Gives access to its dialect."""
        return self._engine

    async def open(self, wait_s: float | None = None, standing_by: StandingBy | None = None) -> None:
        """Locks and migrates the database and starts the threads. Creates the folder and the file if they are missing.
        `standing_by` is never called: other agents get StoreLocked."""
        self._loop = asyncio.get_running_loop()
        if self._path:
            try:
                make_folder(self._path.parent)
            except OSError as error:
                raise StoreUnavailable(f"cannot create the folder {self._path.parent}: {error.strerror}") from error
        await self._acquire(self._settings.lock_wait_s if wait_s is None else wait_s)
        if self._path:
            try:
                make_database(self._path)
            except OSError as error:
                raise StoreUnavailable(f"cannot create {self._path}: {error.strerror}") from error
        opened = self._loop.create_future()
        self._thread = threading.Thread(target=self._write_all, args=(opened,), name="agent-database", daemon=True)
        self._thread.start()
        try:
            await opened
            if self._path:
                await self._loop.run_in_executor(None, self._open_reading)
        except BaseException:
            await self.close()
            raise

    @property
    def epoch(self) -> int:
        """Always 0."""
        return 0

    @property
    def lock_held(self) -> bool:
        """True from `open` to `close`: the kernel gives a file's lock to no other process."""
        return self._loop is not None and not self._closed

    async def lost(self) -> str:
        """Never returns."""
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never

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
        """Runs `work` on the writing thread and returns its result once it is durable. `committed` or `unknown` is
        called on the event loop in the order of commits, even if the caller was cancelled."""
        if self._loop is None or self._closed:
            raise StoreUnavailable(f"{self._name} is not open")
        done: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(work, done, committed, unknown))
        return await done

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` on a reading thread over one snapshot and returns its result."""
        if self._readers is None:
            return await self.write(work)
        if self._loop is None or self._closed:
            raise StoreUnavailable(f"{self._name} is not open")
        return await self._loop.run_in_executor(self._readers, self._read, work)

    async def close(self) -> None:
        """Waits for work in progress and ends the threads. Idempotent."""
        self._closed = True
        loop = asyncio.get_running_loop()
        if self._thread is not None:
            self._jobs.put(None)
            await loop.run_in_executor(None, self._thread.join)
            self._thread = None
        if self._readers is not None:
            await loop.run_in_executor(None, self._readers.shutdown)
            self._readers = None
        for connection in self._open_readers:
            connection.close()
        self._open_readers.clear()
        if self._lock is not None:
            self._lock.release()

    # ------------------------------------------------------------------ the reading threads

    def _open_reading(self) -> None:
        try:
            for _ in range(self._settings.readers_max):
                connection = self._engine.connect()
                self._open_readers.append(connection)
                self._pragmas(connection, {"query_only": "ON", "temp_store": "MEMORY"})
                self._idle_readers.put(connection)
        except DATABASE_ERRORS as error:
            raise translate_sqlite_error(error, self._name) from error
        self._readers = ThreadPoolExecutor(self._settings.readers_max, thread_name_prefix="agent-database-read")

    def _read(self, work: Callable[[Connection], T]) -> T:
        connection = self._idle_readers.get()
        try:
            connection.exec_driver_sql("BEGIN")
            try:
                return work(connection)
            finally:
                connection.rollback()
        except DATABASE_ERRORS as error:
            raise translate_sqlite_error(error, self._name) from error
        finally:
            self._idle_readers.put(connection)

    # ------------------------------------------------------------------ the writing thread

    def _write_all(self, opened: asyncio.Future[None]) -> None:
        try:
            connection = self._open_writing()
        except BaseException as error:  # noqa: BLE001 - `open` raises it
            self._call_in_loop(_settle_open, opened, translate_sqlite_error(error, self._name))
            return
        self._call_in_loop(_settle_open, opened, None)
        try:
            while (jobs := self._next()) is not None:
                self._call_in_loop(_settle, self._write_together(connection, jobs))
        finally:
            connection.close()

    def _open_writing(self) -> Connection:
        connection = self._engine.connect()
        try:
            self._pragmas(
                connection,
                {
                    "busy_timeout": self._settings.busy_timeout_ms,
                    "journal_mode": "WAL",
                    "synchronous": self._settings.synchronous,
                    "wal_autocheckpoint": self._settings.wal_checkpoint_pages,
                    "journal_size_limit": self._settings.wal_bytes_max,
                    "cache_size": -(self._settings.cache_bytes // 1024),
                    "temp_store": "MEMORY",
                },
            )
            migrate(connection, self._name)
            self._pragmas(connection, {"foreign_keys": "ON"})
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def _pragmas(connection: Connection, pragmas: dict[str, int | str]) -> None:
        for name, value in pragmas.items():
            connection.exec_driver_sql(f"PRAGMA {name} = {value}").close()
        connection.rollback()

    def _next(self) -> list[_Job] | None:
        """The work that waits, up to `group_max`; None at the end, when nothing is left."""
        job = self._jobs.get()
        jobs: list[_Job] = []
        while job is not None:
            jobs.append(job)
            if len(jobs) == self._settings.group_max:
                return jobs
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs
        if jobs:
            self._jobs.put(None)
            return jobs
        return None

    def _write_together(self, connection: Connection, jobs: list[_Job]) -> list[_Settled]:
        settled: list[_Settled] = []
        driver: Any = connection.connection.dbapi_connection
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            for job in jobs:
                settled.append(self._write_one(connection, job, alone=len(jobs) == 1))
                if not driver.in_transaction:
                    # SQLite rolls the whole transaction back on some errors, such as a full disk.
                    raise settled[-1].error or StoreUnavailable(f"{self._name}: the work ended the transaction")
        except BaseException as error:  # noqa: BLE001 - it is raised where the works' callers wait
            return self._undo(connection, jobs, error)
        try:
            connection.commit()
        except BaseException as error:  # noqa: BLE001 - it is raised where the works' callers wait
            return self._undo(connection, jobs, error, in_commit=True)
        return settled

    def _write_one(self, connection: Connection, job: _Job, *, alone: bool) -> _Settled:
        if not alone:
            connection.exec_driver_sql(f"SAVEPOINT {_SAVEPOINT}")
        try:
            settled = _Settled(job, job.work(connection), None)
        except BaseException as error:
            settled = _Settled(job, None, translate_sqlite_error(error, self._name))
            driver: Any = connection.connection.dbapi_connection
            if alone or not driver.in_transaction:
                raise settled.error or error from error
            connection.exec_driver_sql(f"ROLLBACK TO {_SAVEPOINT}")
        if not alone:
            connection.exec_driver_sql(f"RELEASE {_SAVEPOINT}")
        return settled

    def _undo(
        self, connection: Connection, jobs: list[_Job], error: BaseException, *, in_commit: bool = False
    ) -> list[_Settled]:
        with contextlib.suppress(*DATABASE_ERRORS):
            connection.rollback()
        meaning = translate_sqlite_error(error, self._name, in_commit=in_commit)
        return [_Settled(job, None, meaning) for job in jobs]

    def _call_in_loop(self, callback: Callable[..., None], *args: Any) -> None:
        assert self._loop is not None
        # The loop may be closed already while the process ends.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *args)


def _settle_open(opened: asyncio.Future[None], error: BaseException | None) -> None:
    if opened.done():
        return
    if error is None:
        opened.set_result(None)
    else:
        opened.set_exception(error)


def _settle(settled: list[_Settled]) -> None:
    for job, result, error in settled:
        if error is None and job.committed is not None:
            job.committed()
        elif isinstance(error, OutcomeUnknown) and job.unknown is not None:
            job.unknown()
        if job.done.done():
            continue
        if error is None:
            job.done.set_result(result)
        else:
            job.done.set_exception(error)
