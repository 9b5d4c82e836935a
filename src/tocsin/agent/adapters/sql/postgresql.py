"""The agent's database in PostgreSQL, by asyncpg on the event loop."""

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

from tocsin.agent.adapters.sql.backend import StandingBy
from tocsin.agent.adapters.sql.errors import (
    DATABASE_ERRORS,
    POSTGRESQL_RETRIED,
    postgresql_lost,
    postgresql_meaning,
    sqlstate,
)
from tocsin.agent.adapters.sql.postgresql_lock import Claimant, LeaderLock
from tocsin.agent.adapters.sql.schema import migrate
from tocsin.agent.adapters.sql.settings import SqlSettings
from tocsin.model.errors import OutcomeUnknown, StoreUnavailable

T = TypeVar("T")

#: The texts of the agent's statements are few and fixed.
_STATEMENTS_CACHED = 256
#: The server gives up on a client that has vanished, and with it on its locks, after half a minute.
_KEEPALIVE = {"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}
#: Beyond a statement's own limit, for the answer to arrive, before the connection counts as lost.
_ANSWER_MARGIN_S = 5.0
_CONFLICT_PAUSE_S = 0.01


class _Outcome(Enum):
    COMMITTED = auto()
    REFUSED = auto()
    UNKNOWN = auto()


class _Commits:
    """Tells of commits in the order in which they were ordered.

    Two transactions on one row: the second can order its commit only after the server has committed the first, but the
    answers come by two connections, and may be read in the other order.
    """

    def __init__(self) -> None:
        self._ordered: deque[_Commit] = deque()

    def order(self, committed: Callable[[], None] | None, unknown: Callable[[], None] | None) -> _Commit:
        commit = _Commit(committed, unknown)
        self._ordered.append(commit)
        return commit

    def settle(self, commit: _Commit, outcome: _Outcome) -> None:
        commit.outcome = outcome
        while self._ordered and (decided := self._ordered[0].outcome) is not None:
            first = self._ordered.popleft()
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
    """Works run as they do on SQLite's thread, on a greenlet that gives way to the event loop at every statement.

    A work is run again from its start after a conflict with another transaction, or when its connection turns out to be
    gone before the commit was ordered. One that is lost during the commit raises OutcomeUnknown. Afterwards connections
    are made anew by themselves. What writes is fenced: nothing is committed once another agent has the database.
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
        self._under_way: set[asyncio.Task[Any]] = set()
        self._engine: AsyncEngine | None = None
        self._lock: LeaderLock | None = None

    async def open(self, wait_s: float | None = None, standing_by: StandingBy | None = None) -> None:
        """Locks, migrates, begins a term."""
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
                    # A plan that was made when the tables were still empty would be kept while they fill.
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
                # A migration may take its time; the connection isn't used for anything else.
                await connection.exec_driver_sql("SET statement_timeout = 0")
                await connection.commit()
                await connection.run_sync(migrate, self._name)
                await connection.invalidate()
        except DATABASE_ERRORS as error:
            raise postgresql_meaning(error, self._name) from error

    async def _claim(self, engine: AsyncEngine, lock: LeaderLock) -> None:
        try:
            async with engine.begin() as connection:
                term = await connection.run_sync(lock.claim)
        except DATABASE_ERRORS as error:
            raise postgresql_meaning(error, self._name) from error
        lock.begin(term)

    @property
    def term(self) -> int:
        """See the port."""
        return 0 if self._lock is None else self._lock.term

    @property
    def held(self) -> bool:
        """See the port."""
        return self._lock is not None and self._lock.held

    async def lost(self) -> str:
        """See the port."""
        assert self._lock is not None
        return await self._lock.lost()

    async def write(
        self,
        work: Callable[[Connection], T],
        committed: Callable[[], None] | None = None,
        unknown: Callable[[], None] | None = None,
    ) -> T:
        """What `work` returns, once it is durable. `committed` is called on the event loop then, or `unknown`, in the order
        of the commits, even when nobody waits any more."""
        # In a task of its own: whoever gives up waiting doesn't interrupt a commit.
        return await self._run(self._repeat(lambda: self._write_once(work, committed, unknown)))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns, from one state of the database."""
        return await self._run(self._repeat(lambda: self._read(work)))

    async def close(self) -> None:
        """Waits for what is under way. Idempotent."""
        while self._under_way:
            await asyncio.wait(self._under_way)
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.dispose()
        lock, self._lock = self._lock, None
        if lock is not None:
            await lock.release()

    async def _run(self, transaction: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(transaction)
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            # Raised where it is waited for, if it is; nobody else has to hear of it.
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
                    # The pool throws away all connections of before, so that the second is a new one.
                    losses += 1
                else:
                    raise postgresql_meaning(error, self._name) from error

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
            await self._commit(connection, self._commits.order(committed, unknown))
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
            meaning = postgresql_meaning(error, self._name, in_commit=True)
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
        """To the pool, which rolls back; not there when its state isn't known."""
        with contextlib.suppress(*DATABASE_ERRORS):
            if isinstance(error, DATABASE_ERRORS) and postgresql_lost(error):
                await connection.invalidate()
        with contextlib.suppress(*DATABASE_ERRORS):
            await connection.close()
