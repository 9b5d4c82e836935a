"""The agent's database in PostgreSQL."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from tocsin.model.errors import (
    DefiniteFailure,
    OutcomeUnknown,
    StoreCorrupted,
    StoreError,
    StoreUnavailable,
    StoreUnreachable,
)
from tocsin.ports.store import refuse_other_format
from tocsin.sql.migrations import migrations_of
from tocsin.sql.pool import Activity, ServerOptions
from tocsin.stores.postgresql.connection import PostgresPool, PostgresServer, refuse_missing_files
from tocsin.stores.postgresql.driver import Connection, affected
from tocsin.stores.postgresql.errors import is_unusable, translate_error
from tocsin.stores.postgresql.schema import make_meta, run_pending
from tocsin.stores.service_calls.database import AgentDatabase, Claimant, StandingBy
from tocsin.stores.service_calls.postgresql_lock import LeaderLock
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.statements import Row, Work

T = TypeVar("T")

#: The server closes the connection of a vanished client, and releases its locks, after half a minute.
_KEEPALIVE = {"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}
#: Serialization failure, deadlock, and a call that was deleted between the read and the insert that refers to it.
_CONFLICTS = frozenset({"40001", "40P01", "23503"})
#: Failures that prove nothing about the values: these, and a statement that took too long.
_PASSING = _CONFLICTS | {"57014"}
_CONFLICT_PAUSE_S = 0.01

#: The tables whose presence shows that a schema is in use.
_TABLES = (
    "service_calls", "service_call_tags", "timer_schedules", "http_execution_log", "suspended_executions", "outbox",
    "tenant_secrets", "agent_identity", "agent_leader", "agent_heartbeat",
)  # fmt: skip
_BEGIN = "BEGIN"
_BEGIN_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

migrations = partial(migrations_of, "tocsin.stores.service_calls", "migrations/postgresql")


@dataclass(frozen=True, slots=True)
class _Server(PostgresServer):
    """All tables are in the schema that the server's `search_path` selects. `idle_ms` limits how long a transaction may be
    idle."""

    idle_ms: int = 0

    def server_settings(self) -> dict[str, str]:
        """The session's parameters. Durations are milliseconds."""
        return {
            "application_name": self.options.application_name,
            "statement_timeout": str(round(self.options.statement_timeout_s * 1e3)),
            "lock_timeout": str(round(self.options.lock_timeout_s * 1e3)),
            "idle_in_transaction_session_timeout": str(self.idle_ms),
            # Otherwise a plan made while the tables are empty would be kept while they fill.
            "plan_cache_mode": "force_custom_plan",
            "jit": "off",
            **_KEEPALIVE,
        }


def _server(url: str, settings: SqlSettings) -> _Server:
    options = ServerOptions(
        connect_timeout_s=settings.connect_timeout_s,
        statement_timeout_s=settings.statement_timeout_ms / 1e3,
        lock_timeout_s=settings.lock_timeout_ms / 1e3,
        acquire_timeout_s=settings.pool_timeout_s,
        application_name="tocsin agent",
    )
    return _Server(url, options, idle_ms=settings.idle_transaction_timeout_ms)


class _Pool(PostgresPool):
    """The outcome of a transaction is unknown only if its connection broke once the commit had been requested. Whatever may
    succeed later is StoreUnavailable, so that DefiniteFailure remains for wrong values."""

    def __init__(self, server: PostgresServer, size: int) -> None:
        super().__init__(server, size)
        #: Weak, for the session of a commit that was cancelled: it has ended, and nothing translates its error.
        self.committing: WeakSet[Connection] = WeakSet()

    def translate_error(self, error: BaseException, activity: Activity, connection: Connection) -> StoreError:
        """The store error for a driver's error."""
        if connection in self.committing:
            self.committing.discard(connection)
            activity = Activity.WRITING
        if getattr(error, "sqlstate", None) in _PASSING:
            return StoreUnavailable(f"{self._server.safe_url}: {error}")
        return super().translate_error(error, activity, connection)


_RIGHTS = """
    SELECT to_regclass('agent_meta') IS NOT NULL, ARRAY(
        SELECT name FROM unnest($1::text[]) AS given (name)
        WHERE to_regclass(name) IS NOT NULL AND NOT (
            has_table_privilege(to_regclass(name), 'SELECT') AND has_table_privilege(to_regclass(name), 'INSERT')
            AND has_table_privilege(to_regclass(name), 'UPDATE') AND has_table_privilege(to_regclass(name), 'DELETE')
        ) ORDER BY name
    )
"""


async def missing_rights(url: str, settings: SqlSettings) -> tuple[str, list[str] | None]:
    """The database's URL without its password, and the tables that its user can't read and write; None if the agent has no
    tables there. Neither locks nor changes anything. Raises StoreError, ConfigError."""
    server = _server(url, settings)
    pool = _Pool(server, 1)
    try:
        ((has_tables, lacking),) = await pool.run(Activity.READING, lambda session: session.fetch(_RIGHTS, _TABLES))
    finally:
        await pool.close()
    return server.safe_url, lacking if has_tables else None


async def _has_calls(session: Connection) -> bool:
    if await session.fetchval("SELECT to_regclass('service_calls') IS NULL"):
        return False
    return await session.fetchval("SELECT EXISTS (SELECT FROM service_calls)") is True


class PostgresSession:
    """The port Session over a connection."""

    postgresql = True

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def rows(self, sql: str, values: Sequence[Any]) -> Sequence[Row]:
        found: Sequence[Any] = await self.connection.fetch(sql, *values)
        return found

    async def count(self, sql: str, values: Sequence[Any]) -> int:
        return affected(await self.connection.execute(sql, *values))


class _Ended(Generic[T]):
    """A transaction that has ended in order: committed with a result, or rolled back for an error of its work, which is not
    the connection's."""

    def __init__(self, result: T | None = None, error: Exception | None = None) -> None:
        self.result = result
        self.error = error


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
    """Work is repeated from the start after a conflict with another transaction, or if its connection turns out to be lost
    before the commit was requested. A connection lost during the commit raises OutcomeUnknown. Lost connections are
    replaced automatically. Writes are fenced: nothing is committed once another agent has taken over the database.
    """

    shared = True

    def __init__(self, url: str, settings: SqlSettings, claimant: Claimant) -> None:
        super().__init__(settings)
        refuse_missing_files("agent.database", url)
        self._server = _server(url, settings)
        self._name = self._server.safe_url
        self._claimant = claimant
        self._commits = _Commits()
        self._pool: _Pool | None = None
        self._lock: LeaderLock | None = None

    async def has_calls(self) -> bool:
        """As the class describes it."""
        pool = _Pool(self._server, 1)
        try:
            return bool(await pool.run(Activity.READING, _has_calls))
        finally:
            await pool.close()

    async def _open(self, wait_s: float, standing_by: StandingBy | None) -> None:
        """Locks and migrates the database and begins an epoch."""
        session = {"application_name": "tocsin agent lock", **_KEEPALIVE}
        self._lock = lock = LeaderLock(self._server.hosts, session, self._name, self._claimant, self._settings)
        await lock.acquire(wait_s, standing_by)
        self._pool = pool = _Pool(self._server, self._settings.connections_max)
        await pool.run(Activity.CONNECTING, self._migrate, bounded=False)
        lock.begin(await pool.run(Activity.CONNECTING, self._claim))

    async def _migrate(self, connection: Connection) -> None:
        async with connection.transaction():
            # A migration may take long.
            await connection.execute("SET LOCAL statement_timeout = 0")
            if await connection.fetchval("SELECT to_regclass('agent_meta') IS NULL"):
                foreign = await connection.fetch(
                    "SELECT name FROM unnest($1::text[]) AS given (name) WHERE to_regclass(name) IS NOT NULL", _TABLES
                )
                names = sorted(name for (name,) in foreign)
                if "agent_identity" in names:
                    refuse_other_format(self._name, None)
                if names:
                    raise StoreCorrupted(
                        f"{self._name} has tables named {', '.join(names)} that Tocsin did not create; choose another "
                        "database"
                    )
                await make_meta(connection, "agent_meta")
            await run_pending(connection, migrations(), self._name, meta="agent_meta")

    async def _claim(self, connection: Connection) -> int:
        assert self._lock is not None
        async with connection.transaction():
            return await self._lock.claim(connection)

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
        self, work: Work[T], committed: Callable[[], None] | None = None, unknown: Callable[[], None] | None = None
    ) -> T:
        """Runs `work` in a fenced transaction."""
        lock = self._lock
        if lock is None:
            raise StoreUnavailable(f"{self._name} is not open")
        lock.check()

        async def fenced(connection: Connection) -> T:
            await lock.fence(connection)
            return await work(PostgresSession(connection))

        async def once(pool: _Pool, connection: Connection) -> _Ended[T]:
            ended = await _transact(connection, _BEGIN, fenced)
            if ended.error is None:
                await self._commit(pool, connection, committed, unknown)
            return ended

        return await self._repeat(once)

    async def read(self, work: Work[T]) -> T:
        """Runs `work` in a read-only transaction, over one snapshot."""

        async def once(_: _Pool, connection: Connection) -> _Ended[T]:
            ended = await _transact(connection, _BEGIN_SNAPSHOT, lambda each: work(PostgresSession(each)))
            if ended.error is None:
                await connection.execute("COMMIT")
            return ended

        return await self._repeat(once)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()
        lock, self._lock = self._lock, None
        if lock is not None:
            await lock.release()

    async def _repeat(self, once: Callable[[_Pool, Connection], Awaitable[_Ended[T]]]) -> T:
        conflicts, losses = 0, 0
        while True:
            pool = self._pool
            if pool is None:
                raise StoreUnavailable(f"{self._name} is not open")
            try:
                ended = await pool.run(Activity.READING, partial(once, pool))
            except OutcomeUnknown:
                raise
            except StoreError as error:
                cause = error.__cause__
                if getattr(cause, "sqlstate", None) in _CONFLICTS and conflicts < self._settings.conflict_retries_max:
                    conflicts += 1
                    await asyncio.sleep(random.uniform(0, _CONFLICT_PAUSE_S * conflicts))
                elif (
                    cause is not None and is_unusable(cause) and not losses and not isinstance(error, StoreUnreachable)
                ):
                    # Others may have broken with it.
                    losses += 1
                    pool.discard_idle()
                elif type(error) is DefiniteFailure and cause is not None:
                    # A wrong value, which is a defect: a message that led to a store error would be delivered again forever.
                    raise cause from None
                else:
                    raise
                continue
            if ended.error is not None:
                raise ended.error
            result: Any = ended.result
            return result  # type: ignore[no-any-return]

    async def _commit(
        self,
        pool: _Pool,
        connection: Connection,
        committed: Callable[[], None] | None,
        unknown: Callable[[], None] | None,
    ) -> None:
        commit = self._commits.request()
        report = unknown
        # Until it is answered: a time-out comes here as a cancellation, and `translate_error` still needs to know.
        pool.committing.add(connection)
        try:
            await connection.execute("COMMIT")
            report = committed
            pool.committing.discard(connection)
        except pool.translated as error:
            if not isinstance(translate_error(error, self._name, Activity.WRITING), OutcomeUnknown):
                report = None
            raise
        finally:
            self._commits.settle(commit, report)


async def _transact(connection: Connection, begin: str, work: Callable[[Connection], Awaitable[T]]) -> _Ended[T]:
    """Begins a transaction and runs `work`; the caller commits. After an error the transaction is rolled back, unless the
    connection can't be used any more."""
    await connection.execute(begin)
    try:
        return _Ended(await work(connection))
    except PostgresPool.translated as error:
        if not is_unusable(error):
            await connection.execute("ROLLBACK")
        raise
    except StoreError:
        await connection.execute("ROLLBACK")
        raise
    except Exception as error:  # noqa: BLE001 -- `_repeat` raises it: it does not concern the connection
        await connection.execute("ROLLBACK")
        return _Ended(error=error)
