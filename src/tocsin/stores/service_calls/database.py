"""The agent's database with all of its stores."""

from __future__ import annotations

import asyncio
import secrets
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple
from urllib.parse import urlsplit

from tocsin.model.errors import ConfigError
from tocsin.model.ids import uuid7_text
from tocsin.stores.service_calls.executions import SqlExecutionLog, SqlSuspendedOrders
from tocsin.stores.service_calls.outbox import SqlOutbox
from tocsin.stores.service_calls.queries import SqlCallQueries
from tocsin.stores.service_calls.sealed import SqlSealedTexts
from tocsin.stores.service_calls.service_calls import SqlServiceCalls
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.statements import Database, Query
from tocsin.stores.service_calls.tenant_secrets import SqlTenantSecrets
from tocsin.stores.service_calls.timer_schedules import SqlTimerStore

#: Called, while waiting for the database, with the node that holds it, at first and whenever that changes.
StandingBy = Callable[[str], None]

_IDENTITY = Query("SELECT agent_id FROM agent_identity")
_IDENTIFY = Query("INSERT INTO agent_identity (id, agent_id) VALUES (1, :fresh)")
_VERSION = Query(
    "SELECT meta_value FROM agent_meta WHERE meta_name = 'schema_version'",
    sqlite="SELECT user_version FROM pragma_user_version",
)


class Claimant(NamedTuple):
    """An agent that wants the database: its node's name, for people, and its incarnation, for other nodes."""

    node: str = ""
    incarnation: str = ""


class AgentDatabase(Database):
    """The port Database, and the stores over it.

    One agent uses it at a time: `open` takes a lock. If the database is `shared`, another agent may take it over; then
    this one writes nothing more, must be closed, and may be opened again.

    `identity` is a UUID that was created with the database, `schema_version` the newest migration that was applied.
    Both are available once it is open.
    """

    #: Whether agents of several nodes can take over from one another. Otherwise one process locks the database until it ends.
    shared: ClassVar[bool]

    def __init__(self, settings: SqlSettings) -> None:
        self._settings = settings
        self.identity = ""
        self.schema_version = 0
        self.outbox = SqlOutbox(self)
        self.calls = SqlServiceCalls(self.outbox)
        self.timers = SqlTimerStore(self)
        self.executions = SqlExecutionLog(self, self.outbox)
        self.suspended = SqlSuspendedOrders(self, self.outbox)
        self.queries = SqlCallQueries(self)
        self.secrets = SqlTenantSecrets(self)
        self.sealed = SqlSealedTexts(self)

    @abstractmethod
    async def has_calls(self) -> bool:
        """Whether there is a service call, in tables that exist. Needs neither `open` nor the lock: an agent may hold it.
        Raises StoreError."""

    async def open(self, wait_s: float | None = None, standing_by: StandingBy | None = None) -> None:
        """Locks and migrates the database. Waits up to `wait_s` (None: `agent_sql.lock_wait`) for another agent to
        release it; a shared one calls `standing_by` with the name of the node that holds it. Raises StoreLocked if
        another agent still holds it, SchemaTooNew, StoreCorrupted or StoreUnavailable."""
        try:
            await self._open(self._settings.lock_wait_s if wait_s is None else wait_s, standing_by)
            ((self.schema_version,),) = await self.read(_VERSION.fetch)
            found = await self.read(_IDENTITY.fetch)
            if not found:
                fresh = uuid7_text(time.time_ns() // 1_000_000, secrets.randbits(74))
                await self.write(lambda session: _IDENTIFY.count(session, fresh=fresh))
                found = [(fresh,)]
            ((self.identity,),) = found
        except BaseException:
            await self.close()
            raise

    @property
    def epoch(self) -> int:
        """How often a shared database has changed hands; 0 for one that is not shared, and before it is open."""
        return 0

    @property
    @abstractmethod
    def lock_held(self) -> bool:
        """Whether this agent holds the database, as far as it knows. Nothing is written while it does not."""

    async def lost(self) -> str:
        """Returns the reason once another agent has taken over the database, which does not happen to one that is not
        shared. Nothing is written after that. Await it while the database is open."""
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never

    @abstractmethod
    async def close(self) -> None:
        """Waits for transactions in progress and releases the lock. Idempotent."""

    @abstractmethod
    async def _open(self, wait_s: float, standing_by: StandingBy | None) -> None:
        """Locks, migrates and connects. `close` is called if it raises."""


def agent_database(
    url: str,
    settings: SqlSettings | None = None,
    claimant: Claimant | None = None,
    on_commit_io_error: Callable[[Exception], None] | None = None,
) -> AgentDatabase:
    """`sqlite:///relative/path`, `sqlite:////absolute/path`, `sqlite://` (in memory), or `postgresql://user@host/name`.
    `on_commit_io_error` is called when what SQLite has on the disk is unknown, in any thread. Raises ConfigError for any
    other URL."""
    # Only the driver that is used is imported.
    kind, _, rest = url.partition("://")
    if kind == "sqlite" and (not rest or rest.startswith("/")):
        from tocsin.stores.service_calls.sqlite import SqliteDatabase

        return SqliteDatabase(rest.removeprefix("/"), settings or SqlSettings(), on_commit_io_error)
    if kind == "postgresql" and urlsplit(url).path:
        from tocsin.stores.service_calls.postgresql import PostgresqlDatabase

        return PostgresqlDatabase(url, settings or SqlSettings(), claimant or Claimant())
    raise ConfigError("agent_database is not a URL that begins with sqlite:// or postgresql://")
