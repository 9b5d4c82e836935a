"""The agent's database with all of its stores."""

from __future__ import annotations

from sqlalchemy import Connection, make_url, select
from sqlalchemy.exc import ArgumentError

from tocsin.model.errors import ConfigError
from tocsin.stores.service_calls.backend import Database, StandingBy
from tocsin.stores.service_calls.execution_log import SqlExecutionLog
from tocsin.stores.service_calls.outbox import SqlOutbox
from tocsin.stores.service_calls.postgresql import PostgresqlDatabase
from tocsin.stores.service_calls.postgresql_lock import Claimant
from tocsin.stores.service_calls.queries import SqlCallQueries
from tocsin.stores.service_calls.schema import version
from tocsin.stores.service_calls.service_calls import SqlServiceCalls
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.sqlite import SqliteDatabase
from tocsin.stores.service_calls.tables import agent_identity
from tocsin.stores.service_calls.tenant_secrets import SqlTenantSecrets
from tocsin.stores.service_calls.timer_schedules import SqlTimerStore


class AgentDatabase:
    """`sqlite:///relative/path`, `sqlite:////absolute/path`, `sqlite://` (in memory), or `postgresql://user@host/name`.

    One agent uses it at a time: `open` takes a lock. If the database is `shared`, another agent may take it over; then
    this one writes nothing more, must be closed, and may be opened again.
    """

    def __init__(
        self,
        url: str,
        settings: SqlSettings | None = None,
        claimant: Claimant = Claimant(),  # noqa: B008 -- immutable
    ) -> None:
        self._database = _backend(url, settings or SqlSettings(), claimant)
        self._identity: str | None = None
        self._version: str | None = None
        self.outbox = SqlOutbox(self._database)
        self.calls = SqlServiceCalls(self.outbox)
        self.timers = SqlTimerStore(self._database)
        self.executions = SqlExecutionLog(self._database, self.outbox)
        self.queries = SqlCallQueries(self._database)
        self.secrets = SqlTenantSecrets(self._database)

    @property
    def backend(self) -> Database:
        """Runs transactions directly."""
        return self._database

    @property
    def identity(self) -> str:
        """A UUID that was created with the database. Available once it is open."""
        if self._identity is None:
            raise RuntimeError("the database is not open")
        return self._identity

    @property
    def schema_version(self) -> str:
        """The newest migration that was applied. Available once it is open."""
        if self._version is None:
            raise RuntimeError("the database is not open")
        return self._version

    @property
    def shared(self) -> bool:
        """Whether agents of several nodes can take over from one another. Known before it is open."""
        return self._database.shared

    @property
    def epoch(self) -> int:
        """How often a shared database has changed hands."""
        return self._database.epoch

    @property
    def lock_held(self) -> bool:
        """Whether this agent holds the database, as far as it knows. Nothing is written while it does not."""
        return self._database.lock_held

    async def lost(self) -> str:
        """Returns the reason once another agent has taken over. Await it while the database is open."""
        return await self._database.lost()

    async def open(self, wait_s: float | None = None, standing_by: StandingBy | None = None) -> None:
        """Locks and migrates the database. Waits up to `wait_s` (None: `agent_sql.lock_wait`) for another agent to
        release it; `standing_by` is called with the name of the node that holds it. Raises StoreLocked if another agent
        still holds it, SchemaTooNew, StoreCorrupted or StoreUnavailable."""
        await self._database.open(wait_s, standing_by)
        try:
            self._identity, self._version = await self._database.read(_identity_and_version)
        except BaseException:
            await self._database.close()
            raise

    async def close(self) -> None:
        """Waits for transactions in progress and releases the lock. Idempotent."""
        await self._database.close()


def _backend(url: str, settings: SqlSettings, claimant: Claimant) -> Database:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise ConfigError(f"agent_database is not a database URL: {error}") from error
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        return SqliteDatabase(parsed, settings)
    if kind == "postgresql":
        return PostgresqlDatabase(parsed, settings, claimant)
    raise ConfigError(f"agent_database must be a sqlite or postgresql URL, not {kind}")


def _identity_and_version(connection: Connection) -> tuple[str, str]:
    identity = connection.execute(select(agent_identity.c.agent_id)).scalar_one()
    return identity, version(connection) or ""
