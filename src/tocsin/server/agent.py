"""The service agent of a node: whether it runs here, and what runs then."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Iterator, Mapping

from tocsin.agent.adapters.agent_caller import AgentCaller
from tocsin.agent.adapters.sql.database import AgentDatabase
from tocsin.agent.adapters.sql.postgresql_lock import Claimant
from tocsin.agent.api.service_calls import ServiceCalls
from tocsin.agent.events import (
    AgentEvent,
    AgentLost,
    AgentObserver,
    AgentStandsBy,
    AgentStarted,
    AgentStepFailed,
)
from tocsin.callbacks.http import HttpCaller
from tocsin.config import Settings
from tocsin.model.errors import StoreLocked
from tocsin.model.validation import InputRules
from tocsin.ports.clock import Clock
from tocsin.server.agent_modules import AgentModules
from tocsin.service import TimerService
from tocsin.telemetry.agent_logs import AgentLog
from tocsin.telemetry.agent_metrics import AgentMetrics


def agent_database_shared(settings: Settings) -> bool:
    """Whether nodes can stand by for one another on the agent's database: then every worker may come to run the agent."""
    return AgentDatabase(settings.agent_database_url(), settings.sql_settings()).shared


class ServiceAgent:
    """Everything between a tenant's request and the end of its service call.

    On a database that nodes can share, one of them runs the agent and the others stand by; this one begins when it is
    its turn and ends when it has lost the database, as often as that happens. `calls` is what the API asks, None while
    the agent runs elsewhere. On any other database the agent runs here from `start` to `stop`.

    `observe` gets the events, beside metrics and logs. The agent shares the node's HTTP client with the timers, and
    their engine where the settings have it tell due times: then the engine rings through `caller`, which knows both kinds
    of rings, and has to be running before `start`. `timers_shared` says whether the other nodes have its timers, too.
    """

    def __init__(
        self,
        settings: Settings,
        client: HttpCaller,
        caller: AgentCaller,
        clock: Clock,
        rules: InputRules,
        observe: AgentObserver,
        claimant: Claimant,
        *,
        timers_shared: bool,
    ) -> None:
        self._settings = settings
        self.limits = settings.agent_limits()
        self._sql = settings.sql_settings()
        self._clock = clock
        self._client = client
        self._rules = rules
        self._claimant = claimant
        self._timers_shared = timers_shared
        self._log = AgentLog(time.monotonic)
        self._observer = observe
        self.metrics = AgentMetrics(self._gauges, time.time)
        self._caller = caller
        self._service: TimerService | None = None
        self._database: AgentDatabase | None = None
        self._modules: AgentModules | None = None
        self._turns: asyncio.Task[None] | None = None
        self._leaving = False
        self._requests = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        #: The node that runs the agent, as far as this one knows; empty before it has heard of one.
        self.runs_at = ""

    @property
    def calls(self) -> ServiceCalls | None:
        """The agent, where it runs here."""
        modules, database = self._modules, self._database
        here = modules is not None and database is not None and database.held and not self._leaving
        return modules.calls if modules is not None and here else None

    async def open(self) -> None:
        """Locks and migrates the database, or finds that another node has it. Raises StoreError: StoreLocked where nodes
        can't stand by for one another. To be called before anything of the node is promised."""
        database = self._new_database()
        try:
            await database.open(standing_by=self._stands_by)
        except StoreLocked:
            if not self._can_stand_by(database):
                raise
        else:
            self._database = database

    async def start(self, service: TimerService) -> None:
        """Begins to take and make calls, if it is this node's turn. Raises BusUnavailable, StoreError or ConfigError; `stop`
        has to follow then too."""
        self._service = service
        if self._database is not None:
            await self._begin(self._database)
        if self._can_stand_by(self._database or self._new_database()):
            self._turns = asyncio.create_task(self._take_turns(), name="agent-turns")

    async def stop(self) -> None:
        """Ends in the order in which calls flow: nothing new falls due, requests under way end, what follows from them is
        sent as far as it can be. Until requests have ended, commands are taken. Then another node begins. Idempotent."""
        if self._turns is not None:
            self._turns.cancel()
            await asyncio.gather(self._turns, return_exceptions=True)
            self._turns = None
        await self._hand_over()

    @contextlib.contextmanager
    def serving(self) -> Iterator[bool]:
        """Around a request that another node has brought: whether the agent runs here. An orderly stop waits for it."""
        if self.calls is None:
            yield False
            return
        self._requests += 1
        self._quiet.clear()
        try:
            yield True
        finally:
            self._requests -= 1
            if not self._requests:
                self._quiet.set()

    # ------------------------------------------------------------------ turns

    def _new_database(self) -> AgentDatabase:
        return AgentDatabase(self._settings.agent_database_url(), self._sql, self._claimant)

    def _can_stand_by(self, database: AgentDatabase) -> bool:
        """Timers of an engine that other nodes don't have would be lost to them."""
        return database.shared and (self._timers_shared or self._settings.agent_timer == "polling")

    async def _take_turns(self) -> None:
        while True:
            pause_s = 0.0
            # One that has its turn already hands it over in there.
            while self._database is None and self._better_elsewhere():  # noqa: ASYNC110 -- the engine tells nobody
                await asyncio.sleep(self._sql.leader_renew_interval_s)
            try:
                self._observe(AgentLost(await self._have_a_turn()))
            except Exception as error:  # noqa: BLE001 -- whatever fails this time, it has to be tried again
                self._step_failed("taking over", error)
                # Time for another node, which may be luckier.
                pause_s = self._sql.takeover_retry_interval_s
            try:
                await self._give_up()
            except Exception as error:  # noqa: BLE001 -- as above; what was left open is of no use any more
                self._step_failed("standing by", error)
            await asyncio.sleep(pause_s)

    async def _have_a_turn(self) -> str:
        """Waits for it, unless it has come at the start, and returns why it is over."""
        if self._database is None:
            database = self._new_database()
            await database.open(math.inf, self._stands_by)
            self._database = database
            await self._begin(database)
        lost = asyncio.create_task(self._database.lost())
        try:
            while not lost.done():
                if self._better_elsewhere():
                    await self._hand_over()
                    return "this node's clock is off the store's, and others' are right"
                await asyncio.wait({lost}, timeout=self._sql.leader_renew_interval_s)
            return lost.result()
        finally:
            lost.cancel()

    def _better_elsewhere(self) -> bool:
        """Whether a node whose clock is right should run the agent instead."""
        return self._service is not None and self._service.clock_distrusted

    async def _begin(self, database: AgentDatabase) -> None:
        service = self._service
        assert service is not None
        self._leaving = False
        modules = AgentModules(
            self._settings,
            database,
            self._client,
            self._caller,
            service,
            self._clock,
            self._rules,
            self._observe,
        )
        try:
            await modules.start()
        except BaseException:
            await modules.abandon()
            raise
        self._modules = modules
        self.runs_at = self._claimant.node
        if database.shared:
            self._observe(AgentStarted(database.term))

    async def _hand_over(self) -> None:
        """In order, as far as the database is this agent's still. Idempotent."""
        modules, database = self._modules, self._database
        if modules is not None and database is not None and database.held:
            await modules.drain()
            self._leaving = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.limits.command_timeout_us / 1e6):
                    await self._quiet.wait()
            await modules.stop()
        elif modules is not None:
            await modules.abandon()
        self._modules = None
        await self._close_database()

    async def _give_up(self) -> None:
        if self._modules is not None:
            await self._modules.abandon()
            self._modules = None
        await self._close_database()

    async def _close_database(self) -> None:
        """Known until it is closed: whoever is told to stop meanwhile closes it the rest of the way."""
        if self._database is not None:
            try:
                await self._database.close()
            except Exception:
                self._database = None
                raise
            self._database = None

    # ------------------------------------------------------------------ what is told

    def _stands_by(self, node: str) -> None:
        if node != self.runs_at:
            self.runs_at = node
            self._observe(AgentStandsBy(node))

    def _step_failed(self, step: str, error: Exception) -> None:
        self._observe(AgentStepFailed(step, f"{type(error).__name__}: {error}"))

    def _observe(self, event: AgentEvent) -> None:
        self.metrics(event)
        self._log(event)
        self._observer(event)

    def _gauges(self) -> Mapping[str, float]:
        modules = self._modules
        return {
            "tocsin_agent_running": float(self.calls is not None),
            **(dict.fromkeys(_OF_MODULES, 0.0) if modules is None else modules.gauges()),
        }


#: What is shown where no modules are.
_OF_MODULES = (
    "tocsin_agent_executions_in_flight",
    "tocsin_agent_executions_held",
    "tocsin_agent_messages_waiting",
    "tocsin_agent_outbox_waiting",
    "tocsin_agent_broker_connected",
)
