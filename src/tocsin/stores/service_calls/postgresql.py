"""The agent's database in PostgreSQL, with asyncpg on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from sqlalchemy import URL, Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from tocsin.model.errors import OutcomeUnknown, StoreUnavailable
from tocsin.sql.libpq import refuse_missing_files
from tocsin.stores.service_calls.database import AgentDatabase, StandingBy
from tocsin.stores.service_calls.errors import (
    DATABASE_ERRORS,
    POSTGRESQL_RETRIED,
    postgresql_lost,
    sqlstate,
    translate_postgresql_error,
)
from tocsin.stores.service_calls.postgresql_lock import Claimant, LeaderLock
from tocsin.stores.service_calls.schema import migrate
from tocsin.stores.service_calls.settings import SqlSettings

T = TypeVar("T")

#: The agent has few statements, and their texts do not change.
_STATEMENTS_CACHED = 256
#: The server closes the connection of a vanished client, and releases its locks, after half a minute.
_KEEPALIVE = {"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}
#: Time beyond a statement's timeout for the server's answer to arrive, before the connection counts as lost.
_ANSWER_MARGIN_S = 5.0
_CONFLICT_PAUSE_S = 0.01


class _Commits:
    """Reports commits in the order in which they were requested.

    Of two transactions on one row, the second can request its commit only after the server has committed the first. But
    the answers arrive on two connections and may be read in the other order.
    """

    def __init__(self) -> None:
        self._requested: deque[_Commit] = deque()

    def request(self) -> _Commit:
        commit = _Commit()
        self._requested.append(commit)
        return commit

    def settle(self, commit: _Commit, report: Callable[[], None] | None) -> None:
        """Records that the outcome of a commit is known. `report` is called after the reports of all earlier commits; None if
        there is nothing to report."""
        commit.settled, commit.report = True, report
        while self._requested and self._requested[0].settled:
            first = self._requested.popleft()
            if first.report is not None:
                first.report()


class _Commit:
    def __init__(self) -> None:
        self.settled = False
        self.report: Callable[[], None] | None = None


class PostgresqlDatabase(AgentDatabase):
    """Runs work functions as the SQLite database does on its thread, but on a greenlet that yields to the event loop at
    every statement.

    Work is repeated from the start after a conflict with another transaction, or if its connection turns out to be lost
    before the commit was requested. A connection lost during the commit raises OutcomeUnknown. Lost connections are
    replaced automatically. Writes are fenced: nothing is committed once another agent has taken over the database.
    """

    shared = True

    def __init__(self, url: URL, settings: SqlSettings, claimant: Claimant) -> None:
        super().__init__(settings)
        self._url = url.set(drivername="postgresql+asyncpg", query={})
        # libpq's parameters, such as sslrootcert: SQLAlchemy does not know them, and asyncpg reads them in a URL only.
        self._dsn = URL.create("postgresql", query=url.query).render_as_string()
        refuse_missing_files("agent.database", self._dsn)
        self._name = url.set(drivername="postgresql").render_as_string(hide_password=True)
        self._claimant = claimant
        self._commits = _Commits()
        self._in_progress: set[asyncio.Task[Any]] = set()
        self._engine: AsyncEngine | None = None
        self._lock: LeaderLock | None = None

    async def _open(self, wait_s: float, standing_by: StandingBy | None) -> None:
        """Locks and migrates the database and begins an epoch."""
        self._engine = engine = self._new_engine()
        (_, args) = engine.dialect.create_connect_args(self._url)
        session = {"application_name": "tocsin agent lock", **_KEEPALIVE}
        args = {**args, "dsn": self._dsn, "server_settings": session}
        self._lock = lock = LeaderLock(args, self._name, self._claimant, self._settings)
        await lock.acquire(wait_s, standing_by)
        try:
            async with engine.connect() as connection:
                # A migration may take long; the connection is used for nothing else.
                await connection.exec_driver_sql("SET statement_timeout = 0")
                await connection.commit()
                await connection.run_sync(migrate, self._name)
                await connection.invalidate()
            async with engine.begin() as connection:
                epoch = await connection.run_sync(lock.claim)
        except DATABASE_ERRORS as error:
            raise translate_postgresql_error(error, self._name) from error
        lock.begin(epoch)

    def _new_engine(self) -> AsyncEngine:
        return create_async_engine(
            self._url,
            pool_size=self._settings.connections_max,
            max_overflow=0,
            pool_timeout=self._settings.pool_timeout_s,
            connect_args={
                "dsn": self._dsn,
                "timeout": self._settings.connect_timeout_s,
                "command_timeout": self._settings.statement_timeout_ms / 1_000 + _ANSWER_MARGIN_S,
                "prepared_statement_cache_size": _STATEMENTS_CACHED,
                "server_settings": {
                    "application_name": "tocsin agent",
                    "statement_timeout": str(self._settings.statement_timeout_ms),
                    "lock_timeout": str(self._settings.lock_timeout_ms),
                    "idle_in_transaction_session_timeout": str(self._settings.idle_transaction_timeout_ms),
                    # Otherwise a plan made while the tables are empty would be kept while they fill.
                    "plan_cache_mode": "force_custom_plan",
                    "jit": "off",
                    **_KEEPALIVE,
                },
            },
        )

    @property
    def epoch(self) -> int:
        return 0 if self._lock is None else self._lock.epoch

    @property
    def lock_held(self) -> bool:
        return self._lock is not None and self._lock.lock_held

    async def lost(self) -> str:
        assert self._lock is not None
        return await self._lock.lost()

    async def write(
        self,
        work: Callable[[Connection], T],
        committed: Callable[[], None] | None = None,
        unknown: Callable[[], None] | None = None,
    ) -> T:
        """Runs `work` in a fenced transaction."""
        # In a task of its own: cancelling the caller does not interrupt a commit.
        return await self._run(self._repeat(lambda: self._write_once(work, committed, unknown)))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` in a read-only transaction, over one snapshot."""
        return await self._run(self._repeat(lambda: self._read(work)))

    async def close(self) -> None:
        while self._in_progress:
            await asyncio.wait(self._in_progress)
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.dispose()
        lock, self._lock = self._lock, None
        if lock is not None:
            await lock.release()

    async def _run(self, transaction: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(transaction)
        self._in_progress.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._in_progress.discard(task)
        if not task.cancelled():
            # Marks the exception as retrieved: the caller gets it, unless the caller was cancelled.
            task.exception()

    async def _repeat(self, once: Callable[[], Awaitable[T]]) -> T:
        conflicts, losses = 0, 0
        while True:
            try:
                return await once()
            except DATABASE_ERRORS as error:
                if sqlstate(error) in POSTGRESQL_RETRIED and conflicts < self._settings.conflict_retries_max:
                    conflicts += 1
                    await asyncio.sleep(random.uniform(0, _CONFLICT_PAUSE_S * conflicts))
                elif postgresql_lost(error) and not losses:
                    # The pool discards all earlier connections, so that the next one is new.
                    losses += 1
                else:
                    raise translate_postgresql_error(error, self._name) from error

    async def _write_once(
        self,
        work: Callable[[Connection], T],
        committed: Callable[[], None] | None,
        unknown: Callable[[], None] | None,
    ) -> T:
        lock = self._lock
        if lock is None:
            raise StoreUnavailable(f"{self._name} is not open")
        lock.check()

        def fenced(connection: Connection) -> T:
            lock.fence(connection)
            return work(connection)

        async with self._connected() as connection:
            result = await connection.run_sync(fenced)
            await self._commit(connection, committed, unknown)
        return result

    async def _commit(
        self, connection: AsyncConnection, committed: Callable[[], None] | None, unknown: Callable[[], None] | None
    ) -> None:
        commit = self._commits.request()
        report = unknown
        try:
            await connection.commit()
            report = committed
        except DATABASE_ERRORS as error:
            translated = translate_postgresql_error(error, self._name, in_commit=True)
            if not isinstance(translated, OutcomeUnknown):
                report = None
            if sqlstate(error) in POSTGRESQL_RETRIED:
                raise
            raise translated from error
        finally:
            self._commits.settle(commit, report)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        async with self._connected(isolation_level="REPEATABLE READ", postgresql_readonly=True) as connection:
            return await connection.run_sync(work)

    @contextlib.asynccontextmanager
    async def _connected(self, **options: Any) -> AsyncIterator[AsyncConnection]:
        """A connection of the pool, which rolls back at its return. One that is lost is discarded."""
        if self._engine is None:
            raise StoreUnavailable(f"{self._name} is not open")
        engine = self._engine.execution_options(**options) if options else self._engine
        connection = engine.connect()
        await connection.start()
        try:
            yield connection
        except DATABASE_ERRORS as error:
            if postgresql_lost(error):
                with contextlib.suppress(*DATABASE_ERRORS):
                    await connection.invalidate()
            raise
        finally:
            with contextlib.suppress(*DATABASE_ERRORS):
                await connection.close()
