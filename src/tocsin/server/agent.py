"""The service agent of a node: its modules, bus and database tied together."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from functools import partial

from tocsin.agent.adapters.agent_caller import AgentCaller
from tocsin.agent.adapters.engine_timers import EngineTimers
from tocsin.agent.adapters.sql.database import AgentDatabase
from tocsin.agent.api.service_calls import ServiceCalls
from tocsin.agent.api.validation import Checks
from tocsin.agent.events import AgentEvent, AgentObserver
from tocsin.agent.execution.executor import Executor
from tocsin.agent.execution.handlers import ExecutionHandlers
from tocsin.agent.messages import Registry
from tocsin.agent.orchestration.handlers import Orchestration
from tocsin.agent.orchestration.watchdog import Watchdog
from tocsin.agent.outbox.dispatcher import OutboxDispatcher
from tocsin.agent.timer.handlers import TimerModule
from tocsin.agent.timer.polling import PollingTimers
from tocsin.agent.timer.ports import Timers
from tocsin.buses.embedded import EmbeddedBus
from tocsin.buses.nats import NatsBus
from tocsin.callbacks.http import HttpCaller
from tocsin.callbacks.plain import check_request
from tocsin.config import Settings
from tocsin.model.uuid7 import Uuid7Source
from tocsin.model.validation import InputRules
from tocsin.ports.bus import Bus
from tocsin.ports.clock import Clock
from tocsin.service import TimerService
from tocsin.telemetry.agent_logs import AgentLog
from tocsin.telemetry.agent_metrics import AgentMetrics


class ServiceAgent:
    """Everything between a tenant's request and the end of its service call. `calls` is what the API asks, once started;
    `observe` gets the events, beside metrics and logs.

    It shares the node's HTTP client with the timers, and their engine where the settings have it tell due times: then the
    engine has to be given `caller`, which knows both kinds of rings, and to be running before `start`.
    """

    def __init__(
        self, settings: Settings, client: HttpCaller, clock: Clock, rules: InputRules, observe: AgentObserver
    ) -> None:
        self._settings = settings
        self._limits = settings.agent_limits()
        self._clock = clock
        self._client = client
        self._rules = rules
        self._new_id = Uuid7Source(clock.now_us)
        self._registry = Registry(self._new_id, clock.now_us)
        self._log = AgentLog(time.monotonic)
        self._observer = observe
        self.metrics = AgentMetrics(self._gauges, time.time)
        self.caller = (
            AgentCaller(client, clock, self._limits.polling_batch_max) if settings.agent_timer == "engine" else None
        )
        self._database: AgentDatabase | None = None
        self._bus: Bus | None = None
        self._dispatcher: OutboxDispatcher | None = None
        self._timer: TimerModule | None = None
        self._watchdog: Watchdog | None = None
        self._executor: Executor | None = None
        self.calls: ServiceCalls | None = None

    async def open(self) -> None:
        """Locks and migrates the database; raises StoreError. To be called before anything of the node is promised."""
        database = AgentDatabase(self._settings.agent_database_url(), self._settings.sql_settings())
        await database.open()
        self._database = database

    async def start(self, service: TimerService) -> None:
        """Begins to take and make calls. Raises BusUnavailable, StoreError or ConfigError; `stop` has to follow then too."""
        database = self._database
        assert database is not None
        limits, clock, registry, observe = self._limits, self._clock, self._registry, self._observe
        bus = self._bus = self._make_bus(database.identity)
        orchestration = Orchestration(database.calls, registry, clock, limits, observe)
        orchestration.attach(bus)
        self._watchdog = Watchdog(database.calls, registry, clock, limits, observe)
        self._timer = TimerModule(self._make_timers(service), bus, registry, clock, observe)
        self._timer.attach()
        executor = self._executor = Executor(database.executions, self._client, registry, clock, limits, observe)
        ExecutionHandlers(executor, registry).subscribe(bus)
        self._dispatcher = OutboxDispatcher(database.outbox, bus, clock, limits, observe, random.Random())
        # Before the bus may bring anything: a repeated order for an execution that was cut off must not begin it anew.
        await executor.recover()
        await bus.start()
        self._dispatcher.start()
        await self._timer.start()
        self._watchdog.start()
        checks = Checks(
            partial(check_request, limits=self._settings.callback_limits()), self._rules.url, self._rules.instant
        )
        self.calls = ServiceCalls(bus, database.queries, registry, clock, limits, self._new_id, checks)

    async def stop(self) -> None:
        """Ends in the order in which calls flow: nothing new falls due, requests under way end, what follows from them is
        sent as far as it can be. Whatever is left is in the database for the next start. Idempotent."""
        if self._timer is not None:
            await self._timer.close()
        if self._watchdog is not None:
            await self._watchdog.close()
        if self._executor is not None:
            await self._executor.drain(self._settings.engine_limits().drain_timeout_us)
        if self._bus is not None:
            await self._bus.drain()
        if self._dispatcher is not None:
            await self._dispatcher.close()
        if self._bus is not None:
            await self._bus.close()
        if self._database is not None:
            await self._database.close()
        self._timer = self._watchdog = self._executor = self._dispatcher = self._bus = self._database = None

    def _make_bus(self, owner: str) -> Bus:
        limits = self._settings.bus_limits()
        if self._settings.broker is None:
            return EmbeddedBus(limits, self._registry.check, self._observe)
        return NatsBus(
            self._settings.broker,
            limits,
            self._registry.check,
            self._observe,
            prefix=self._settings.broker_prefix,
            owner=owner,
        )

    def _make_timers(self, service: TimerService) -> Timers:
        database = self._database
        assert database is not None
        if self.caller is not None:
            return EngineTimers(service, self.caller, self._clock, self._limits)
        return PollingTimers(database.timers, self._clock, self._limits, self._observe)

    def _observe(self, event: AgentEvent) -> None:
        self.metrics(event)
        self._log(event)
        self._observer(event)

    def _gauges(self) -> Mapping[str, float]:
        executor, bus, dispatcher = self._executor, self._bus, self._dispatcher
        return {
            "tocsin_agent_executions_in_flight": 0 if executor is None else executor.in_flight,
            "tocsin_agent_executions_held": 0 if executor is None else executor.held,
            "tocsin_agent_messages_waiting": 0 if bus is None else bus.waiting,
            "tocsin_agent_outbox_waiting": 0 if dispatcher is None else dispatcher.waiting,
            "tocsin_agent_broker_connected": float(bus is not None and bus.connected),
        }
