"""The service agent of a node: decides whether it runs here, and runs its modules."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from tocsin.model.errors import SchemaTooNew, StoreLocked, StoreUnreachable
from tocsin.model.validation import InputRules
from tocsin.ports.bus import BrokerRefused, BusUnavailable
from tocsin.ports.clock import Clock
from tocsin.ports.credentials import CallCredentials, NoCallCredentials
from tocsin.ports.flow_gate import FlowGate
from tocsin.ports.http import Requester
from tocsin.server.agent_modules import AgentModules, OfEngine
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.service_calls.engine_timers import DueCaller, EngineTimers
from tocsin.service_calls.events import (
    AgentEvent,
    AgentLeadershipLost,
    AgentObserver,
    AgentStandby,
    AgentStarted,
    AgentStepFailed,
)
from tocsin.settings import Settings
from tocsin.stores.service_calls.database import AgentDatabase, Claimant, agent_database
from tocsin.tasks import end_tasks
from tocsin.telemetry.logs import EventLog
from tocsin.telemetry.metrics import AgentMetrics
from tocsin.timers.service import TimerService


def agent_database_shared(settings: Settings) -> bool:
    """Whether nodes can take over the agent from one another through its database. If so, any worker may run the agent."""
    return agent_database(settings.agent_database_url(), settings.agent_sql).shared


class ServiceAgent:
    """Everything between a tenant's request and the end of its service call.

    On a database that nodes share, one of them runs the agent and the others stand by. This one starts the agent when
    it acquires the database and stops it when it loses the database, as often as that happens. `calls` is the interface
    for the API, None while the agent runs elsewhere. On any other database the agent runs here from `start` to `stop`.

    `observe` receives the events, in addition to metrics and logs. The agent shares the node's HTTP client with the
    timers and, if `agent_timer` is `engine`, their engine: then the engine invokes `caller` for them, which must be running
    before `start`. `timers_shared`: the other nodes have the same timer store. `fatal` is called, in any thread, with an
    error after which the process has to exit.
    """

    def __init__(
        self,
        settings: Settings,
        client: Requester,
        caller: DueCaller,
        clock: Clock,
        rules: InputRules,
        observe: AgentObserver,
        claimant: Claimant,
        *,
        timers_shared: bool,
        fatal: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._settings = settings
        self.limits = settings.agent
        self._sql = settings.agent_sql
        self._clock = clock
        self._client = client
        self._rules = rules
        self._claimant = claimant
        self._timers_shared = timers_shared
        self._fatal = fatal
        self._log = EventLog(time.monotonic, "tocsin.agent")
        self._observer = observe
        self.metrics = AgentMetrics(self._gauges)
        #: Handles invocations of the agent's timers.
        self.due_caller = caller
        self._service: TimerService | None = None
        self._flows: FlowGate | None = None
        self._credentials: CallCredentials = NoCallCredentials()
        self._database: AgentDatabase | None = None
        self._modules: AgentModules | None = None
        self._takeover_task: asyncio.Task[None] | None = None
        self._leaving = False
        self._requests = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        #: The node that runs the agent, as far as this one knows; empty until it knows one.
        self.runs_at = ""

    @property
    def calls(self) -> ServiceCalls | None:
        """The interface for the API if the agent runs here."""
        modules, database = self._modules, self._database
        here = modules is not None and database is not None and database.lock_held and not self._leaving
        return modules.calls if modules is not None and here else None

    async def open(self) -> None:
        """Locks and migrates the database, or finds that another node holds it, that it can't be reached, or that a node of a
        newer release has migrated it: then nodes of that release run the agent, and this one serves its timers. Raises
        StoreError; StoreLocked and SchemaTooNew if nodes cannot take over from one another. Call it before the node
        announces itself."""
        database = self._new_database()
        try:
            await database.open(standing_by=self._stands_by)
        except StoreLocked:
            if not self._can_stand_by(database):
                raise
        except SchemaTooNew as error:
            if not (self._timers_shared and self._can_stand_by(database)):
                raise
            self._step_failed("start", error)
        except StoreUnreachable as error:
            self._step_failed("start", error)
        else:
            self._database = database

    async def start(self, service: TimerService, flows: FlowGate, credentials: CallCredentials) -> None:
        """Starts the agent, whose calls these flows limit and may name these credentials, if this node holds the database.
        While database or broker can't be reached, the node serves its timers, and this is tried again. Raises BrokerRefused,
        StoreError or ConfigError; call `stop` in that case too."""
        self._service, self._flows, self._credentials = service, flows, credentials
        if self._database is not None:
            try:
                await self._begin(self._database)
            except BrokerRefused:
                raise
            except (BusUnavailable, StoreUnreachable) as error:
                self._step_failed("start", error)
                await self._abandon()
        if self._database is None or self._can_stand_by(self._database):
            self._takeover_task = asyncio.create_task(self._takeover_loop(), name="agent-takeover")

    async def drain(self) -> None:
        """Begins no further request to a service and waits, at most `drain_timeout`, for those in flight. Commands are still
        accepted. Call it before `stop` if no other node can take over."""
        if self._modules is not None:
            await self._drained(self._modules)

    async def stop(self) -> None:
        """Stops in the order in which calls flow: nothing new falls due, requests in flight end, and resulting messages
        are sent as far as possible. Commands are accepted until the requests have ended. Then another node may start.
        Idempotent."""
        if self._takeover_task is not None:
            await end_tasks(self._takeover_task)
            self._takeover_task = None
        await self._hand_over()

    @property
    def modules(self) -> AgentModules | None:
        """The modules, while they run here."""
        return self._modules

    @contextlib.contextmanager
    def serving(self) -> Iterator[bool]:
        """Context of a request that another node forwarded. Yields whether the agent runs here. `stop` waits for such
        requests."""
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
        return agent_database(self._settings.agent_database_url(), self._sql, self._claimant, self._fatal)

    def _can_stand_by(self, database: AgentDatabase) -> bool:
        """False for timers in an engine that other nodes do not share: a takeover would lose them."""
        return database.shared and (self._timers_shared or self._settings.agent_timer == "polling")

    async def _takeover_loop(self) -> None:
        while True:
            pause_s = 0.0
            # A node that runs the agent hands it over in `_run_turn`.
            while self._database is None and self._should_hand_over():  # noqa: ASYNC110 -- the engine has no signal for it
                await asyncio.sleep(self._sql.leader_renew_interval_s)
            try:
                self._observe(AgentLeadershipLost(await self._run_turn()))
            except Exception as error:  # noqa: BLE001 -- whatever fails, it is tried again
                self._step_failed("takeover", error)
                # Gives another node, if any can, time to take over.
                others = self._can_stand_by(self._database or self._new_database())
                pause_s = self._sql.takeover_retry_interval_s if others else self._sql.leader_renew_interval_s
            try:
                await self._abandon()
            except Exception as error:  # noqa: BLE001 -- as above
                self._step_failed("standby", error)
            await asyncio.sleep(pause_s)

    async def _run_turn(self) -> str:
        """Waits for the database unless this node holds it, runs the agent, and returns why the turn ended."""
        if self._database is None:
            database = self._new_database()
            await database.open(math.inf, self._stands_by)
            self._database = database
            await self._begin(database)
        lost = asyncio.create_task(self._database.lost())
        try:
            while not lost.done():
                if self._should_hand_over():
                    await self._hand_over()
                    return "this node's clock deviates from the store's, or its cluster.secret from that of other nodes"
                await asyncio.wait({lost}, timeout=self._sql.leader_renew_interval_s)
            return lost.result()
        finally:
            lost.cancel()

    def _should_hand_over(self) -> bool:
        """Whether a node that is fitter should run the agent instead."""
        if self._service is None or not self._service.unfit:
            return False
        return self._can_stand_by(self._database or self._new_database())

    async def _begin(self, database: AgentDatabase) -> None:
        service, flows = self._service, self._flows
        assert service is not None
        assert flows is not None
        self._leaving = False
        modules = AgentModules(
            self._settings,
            database,
            self._client,
            OfEngine(partial(EngineTimers, service, self.due_caller), flows, service.seals, self._credentials),
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
            self._observe(AgentStarted(database.epoch))

    async def _hand_over(self) -> None:
        """Stops the modules in order, as far as this agent still holds the database. Idempotent."""
        modules = self._modules
        if modules is not None and await self._drained(modules):
            self._leaving = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.limits.command_timeout_us / 1e6):
                    await self._quiet.wait()
            await modules.stop()
        elif modules is not None:
            await modules.abandon()
        self._modules = None
        await self._close_database()

    async def _drained(self, modules: AgentModules) -> bool:
        """Drains the modules, or as much as is possible before the database is lost. Returns whether this agent still holds
        it."""
        database = self._database
        if database is None or not database.lock_held:
            return False
        draining, lost = asyncio.create_task(modules.drain()), asyncio.create_task(database.lost())
        try:
            await asyncio.wait({draining, lost}, return_when=asyncio.FIRST_COMPLETED)
            if draining.done():
                draining.result()
        finally:
            await end_tasks(draining, lost)
        return database.lock_held

    async def _abandon(self) -> None:
        if self._modules is not None:
            await self._modules.abandon()
            self._modules = None
        await self._close_database()

    async def _close_database(self) -> None:
        """`_database` stays set until it is closed, so that a concurrent `stop` completes the close."""
        if self._database is not None:
            try:
                await self._database.close()
            except Exception:
                self._database = None
                raise
            self._database = None

    # ------------------------------------------------------------------ events and metrics

    def _stands_by(self, node: str) -> None:
        if node != self.runs_at:
            self.runs_at = node
            self._observe(AgentStandby(node))

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


#: Gauges that are 0 while no modules run here.
_OF_MODULES = (
    "tocsin_agent_executions_in_flight",
    "tocsin_agent_executions_deferred",
    "tocsin_agent_executions_suspended",
    "tocsin_agent_messages_waiting",
    "tocsin_agent_outbox_waiting",
    "tocsin_agent_broker_connected",
)
