"""The agent's database: its real statements on SQLite in memory, behind a failing connection."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tests.support.agent_schema import copy_of_migrated
from tocsin.model.errors import OutcomeUnknown, StoreUnavailable
from tocsin.stores.service_calls.executions import SqlExecutionLog, SqlSuspendedOrders
from tocsin.stores.service_calls.outbox import SqlOutbox
from tocsin.stores.service_calls.queries import SqlCallQueries
from tocsin.stores.service_calls.sealed import SqlSealedTexts
from tocsin.stores.service_calls.service_calls import SqlServiceCalls
from tocsin.stores.service_calls.sqlite import SqliteSession, completed
from tocsin.stores.service_calls.statements import Work
from tocsin.stores.service_calls.tenant_secrets import SqlTenantSecrets
from tocsin.stores.service_calls.timer_schedules import SqlTimerStore
from tocsin.stores.sqlite.connection import transact

if TYPE_CHECKING:
    from .world import World

T = TypeVar("T")

#: How long a client of a silent server waits before it fails.
_PATIENCE_S = 5.0


class Tables:
    """The durable state. `epoch` counts the processes that have held it. `away` is the kind of outage of the server: ""
    (none), "refusing" or "silent"."""

    def __init__(self, rng: random.Random) -> None:
        self.epoch = 0
        self.away = ""
        self.unknown_rate = 0.0
        self.failure_rate = 0.0
        self.rng = rng
        self.connection = copy_of_migrated()
        self.answers_s = 0.0

    def transaction(self, work: Work[T]) -> T:
        """Runs the work in one transaction."""
        return transact(self.connection, lambda: completed(work(SqliteSession(self.connection))))

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Reads rows without a process."""
        return list(self.connection.execute(sql))


class SimulatedDatabase:
    """Implements `statements.Database` for one process. Writes are fenced by its epoch."""

    shared = True

    def __init__(self, world: World, tables: Tables) -> None:
        self._world = world
        self._tables = tables
        tables.epoch += 1
        self.epoch = tables.epoch
        self.identity = "simulated"
        self.outbox = SqlOutbox(self)
        self.calls = SqlServiceCalls(self.outbox)
        self.timers = SqlTimerStore(self)
        self.executions = SqlExecutionLog(self, self.outbox)
        self.suspended = SqlSuspendedOrders(self, self.outbox)
        self.queries = SqlCallQueries(self)
        self.secrets = SqlTenantSecrets(self)
        self.sealed = SqlSealedTexts(self)

    @property
    def lock_held(self) -> bool:
        return self.epoch == self._tables.epoch

    async def write(
        self,
        work: Work[T],
        committed: Callable[[], None] | None = None,
        unknown: Callable[[], None] | None = None,
    ) -> T:
        task = asyncio.get_running_loop().create_task(self._write(work, committed, unknown))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _write(
        self,
        work: Work[T],
        committed: Callable[[], None] | None,
        unknown: Callable[[], None] | None,
    ) -> T:
        tables, rng = self._tables, self._tables.rng
        await self._ask()
        if rng.random() < tables.failure_rate:
            raise StoreUnavailable("the server had enough")
        lost = rng.random() < tables.unknown_rate
        if lost and rng.random() < 0.5:
            self._world.log("commit lost")
        else:
            result = tables.transaction(work)
        # Results arrive in the order of commits.
        answered_s = max(self._world.loop.time() + rng.uniform(0.0005, 0.02), tables.answers_s)
        tables.answers_s = answered_s
        await asyncio.sleep(answered_s - self._world.loop.time())
        if lost or tables.away:
            self._world.log("commit unknown")
            if unknown is not None:
                unknown()
            raise OutcomeUnknown("the connection broke during the commit")
        if committed is not None:
            committed()
        return result

    async def read(self, work: Work[T]) -> T:
        await self._ask()
        result = self._tables.transaction(work)
        await asyncio.sleep(self._tables.rng.uniform(0.0005, 0.01))
        if self._tables.away or self._tables.rng.random() < self._tables.failure_rate:
            raise StoreUnavailable("the answer was lost")
        return result

    async def _ask(self) -> None:
        tables = self._tables
        await asyncio.sleep(tables.rng.uniform(0.0005, 0.01))
        if tables.away == "silent":
            await asyncio.sleep(_PATIENCE_S)
        if tables.away:
            raise StoreUnavailable("the server is away")
        if not self.lock_held:
            raise StoreUnavailable("another process runs the agent now")
