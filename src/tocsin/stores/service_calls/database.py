"""The agent's database with all of its stores."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from sqlalchemy import Connection, select

from tocsin.stores.service_calls.backend import Database
from tocsin.stores.service_calls.execution_log import SqlExecutionLog
from tocsin.stores.service_calls.outbox import SqlOutbox
from tocsin.stores.service_calls.queries import SqlCallQueries
from tocsin.stores.service_calls.schema import version
from tocsin.stores.service_calls.service_calls import SqlServiceCalls
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.tables import agent_identity
from tocsin.stores.service_calls.tenant_secrets import SqlTenantSecrets
from tocsin.stores.service_calls.timer_schedules import SqlTimerStore

#: Called, while waiting for the database, with the node that holds it, at first and whenever that changes.
StandingBy = Callable[[str], None]


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
        self.schema_version = ""
        self.outbox = SqlOutbox(self)
        self.calls = SqlServiceCalls(self.outbox)
        self.timers = SqlTimerStore(self)
        self.executions = SqlExecutionLog(self, self.outbox)
        self.queries = SqlCallQueries(self)
        self.secrets = SqlTenantSecrets(self)

    async def open(self, wait_s: float | None = None, standing_by: StandingBy | None = None) -> None:
        """Locks and migrates the database. Waits up to `wait_s` (None: `agent_sql.lock_wait`) for another agent to
        release it; a shared one calls `standing_by` with the name of the node that holds it. Raises StoreLocked if
        another agent still holds it, SchemaTooNew, StoreCorrupted or StoreUnavailable."""
        try:
            await self._open(self._settings.lock_wait_s if wait_s is None else wait_s, standing_by)
            self.identity, self.schema_version = await self.read(_identity_and_version)
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


def _identity_and_version(connection: Connection) -> tuple[str, str]:
    identity = connection.execute(select(agent_identity.c.agent_id)).scalar_one()
    return identity, version(connection) or ""
