"""The agent's database in PostgreSQL, with asyncpg on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from enum import Enum, auto
from typing import Any, TypeVar

from sqlalchemy import URL, Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from tocsin.model.errors import OutcomeUnknown, StoreUnavailable
from tocsin.stores.service_calls.backend import StandingBy
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


class _Outcome(Enum):
    COMMITTED = auto()
    REFUSED = auto()
    UNKNOWN = auto()


class _Commits:
    """Reports commits in the order in which they were requested.

    Of two transactions on one row, the second can request its commit only after the server has committed the first. But
    the answers arrive on two connections and may be read in the other order.
    """

    def __init__(self) -> None:
        self._requested: deque[_Commit] = deque()

    def request(self, committed: Callable[[], None] | None, unknown: Callable[[], None] | None) -> _Commit:
        commit = _Commit(committed, unknown)
        self._requested.append(commit)
        return commit

    def settle(self, commit: _Commit, outcome: _Outcome) -> None:
        commit.outcome = outcome
        while self._requested and (decided := self._requested[0].outcome) is not None:
            first = self._requested.popleft()
            if decided is _Outcome.COMMITTED and first.committed is not None:
                first.committed()
            elif decided is _Outcome.UNKNOWN and first.unknown is not None:
                first.unknown()


class _Commit:
    def __init__(self, committed: Callable[[], None] | None, unknown: Callable[[], None] | None) -> None:
        self.committed = committed
        self.unknown = unknown
        self.outcome: _Outcome | None = None


class PostgresqlDatabase:
    """Runs work functions as the SQLite database does on its thread, but on a greenlet that yields to the event loop at
    every statement.

    Work is repeated from the start after a conflict with another transaction, or if its connection turns out to be lost
    before the commit was requested. A connection lost during the commit raises OutcomeUnknown. Lost connections are
    replaced automatically. Writes are fenced: nothing is committed once another agent has taken over the database.
    """

    shared = True

    def __init__(self, url: URL, settings: SqlSettings, claimant: Claimant) -> None:
        query = dict(url.query)
        if "sslmode" in query:
            query["ssl"] = query.pop("sslmode")
        self._url = url.set(drivername="postgresql+asyncpg", query=query)
        self._name = url.set(drivername="postgresql").render_as_string(hide_password=True)
        self._settings = settings
        self._claimant = claimant
        self._commits = _Commits()
        self._in_progress: set[asyncio.Task[Any]] = set()
        self._engine: AsyncEngine | None = None
        self._lock: LeaderLock | None = None

    async def open(self, wait_s: float | None = None, standing_by: StandingBy | None = None) -> None:
        """Locks and migrates the database and begins an epoch."""
        engine = create_async_engine(
            self._url,
            pool_size=self._settings.connections_max,
            max_overflow=0,
            pool_timeout=self._settings.pool_timeout_s,
            connect_args={
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
        (_, args) = engine.dialect.create_connect_args(self._url)
        settings = {"application_name": "tocsin agent lock", **_KEEPALIVE}
        args = {**args, "timeout": self._settings.connect_timeout_s, "server_settings": settings}
        lock = LeaderLock(args, self._name, self._claimant, self._settings)
        self._engine, self._lock = engine, lock
        try:
            await lock.acquire(self._settings.lock_wait_s if wait_s is None else wait_s, standing_by)
            await self._migrate(engine)
            await self._claim(engine, lock)
        except BaseException:
            await self.close()
            raise

    async def _migrate(self, engine: AsyncEngine) -> None:
        try:
            async with engine.connect() as connection:
                # A migration may take long; the connection is used for nothing else.
                await connection.exec_driver_sql("SET statement_timeout = 0")
                await connection.commit()
                await connection.run_sync(migrate, self._name)
                await connection.invalidate()
        except DATABASE_ERRORS as error:
            raise translate_postgresql_error(error, self._name) from error

    async def _claim(self, engine: AsyncEngine, lock: LeaderLock) -> None:
        try:
            async with engine.begin() as connection:
                epoch = await connection.run_sync(lock.claim)
        except DATABASE_ERRORS as error:
            raise translate_postgresql_error(error, self._name) from error
        lock.begin(epoch)

    @property
    def epoch(self) -> int:
        """How often the database has changed hands; 0 before it is open."""
        return 0 if self._lock is None else self._lock.epoch

    @property
    def lock_held(self) -> bool:
        """Whether this agent holds the lock, as far as it knows. Nothing is written while it does not."""
        return self._lock is not None and self._lock.lock_held

    async def lost(self) -> str:
        """Returns the reason once another agent has taken over. Call it while the database is open."""
        assert self._lock is not None
        return await self._lock.lost()

    async def write(
        self,
        work: Callable[[Connection], T],
        committed: Callable[[], None] | None = None,
        unknown: Callable[[], None] | None = None,
    ) -> T:
        """Runs `work` in a fenced transaction and returns its result once it is durable. `committed` or `unknown` is
        called on the event loop in the order of commits, even if the caller was cancelled."""
        # In a task of its own: cancelling the caller does not interrupt a commit.
        return await self._run(self._repeat(lambda: self._write_once(work, committed, unknown)))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` in a read-only transaction over one snapshot and returns its result."""
        return await self._run(self._repeat(lambda: self._read(work)))

    async def close(self) -> None:
        """Waits for transactions in progress. Idempotent."""
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
        engine, lock = self._open_engine(), self._lock
        assert lock is not None
        lock.check()

        def fenced(connection: Connection) -> T:
            lock.fence(connection)
            return work(connection)

        connection = await self._connect(engine)
        try:
            result = await connection.run_sync(fenced)
            await self._commit(connection, self._commits.request(committed, unknown))
        except BaseException as error:
            await self._give_back(connection, error)
            raise
        await self._give_back(connection, None)
        return result

    async def _commit(self, connection: AsyncConnection, commit: _Commit) -> None:
        try:
            await connection.commit()
        except DATABASE_ERRORS as error:
            if sqlstate(error) in POSTGRESQL_RETRIED:
                self._commits.settle(commit, _Outcome.REFUSED)
                raise
            meaning = translate_postgresql_error(error, self._name, in_commit=True)
            unknown = isinstance(meaning, OutcomeUnknown)
            self._commits.settle(commit, _Outcome.UNKNOWN if unknown else _Outcome.REFUSED)
            raise meaning from error
        except BaseException:
            self._commits.settle(commit, _Outcome.UNKNOWN)
            raise
        self._commits.settle(commit, _Outcome.COMMITTED)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        engine = self._open_engine().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        connection = await self._connect(engine)
        try:
            result = await connection.run_sync(work)
        except BaseException as error:
            await self._give_back(connection, error)
            raise
        await self._give_back(connection, None)
        return result

    def _open_engine(self) -> AsyncEngine:
        if self._engine is None:
            raise StoreUnavailable(f"{self._name} is not open")
        return self._engine

    @staticmethod
    async def _connect(engine: AsyncEngine) -> AsyncConnection:
        connection = engine.connect()
        await connection.start()
        return connection

    @staticmethod
    async def _give_back(connection: AsyncConnection, error: BaseException | None) -> None:
        """Returns the connection to the pool, which rolls back. A connection in an unknown state is discarded."""
        with contextlib.suppress(*DATABASE_ERRORS):
            if isinstance(error, DATABASE_ERRORS) and postgresql_lost(error):
                await connection.invalidate()
        with contextlib.suppress(*DATABASE_ERRORS):
            await connection.close()
