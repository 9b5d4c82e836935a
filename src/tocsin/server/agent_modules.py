"""The service agent's modules, tied together by a bus over an open database."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from tocsin.agent.adapters.agent_caller import AgentCaller
from tocsin.agent.adapters.engine_timers import EngineTimers
from tocsin.agent.adapters.sql.database import AgentDatabase
from tocsin.agent.api.service_calls import ServiceCalls
from tocsin.agent.api.validation import Checks
from tocsin.agent.events import AgentObserver, AgentStepFailed
from tocsin.agent.execution.checks import ExecutionChecks
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
from tocsin.callbacks.plain import check_request
from tocsin.config import Settings
from tocsin.model.uuid7 import Uuid7Source
from tocsin.model.validation import InputRules
from tocsin.ports.bus import Bus
from tocsin.ports.clock import Clock
from tocsin.ports.http import Requester
from tocsin.service import TimerService


class AgentModules:
    """One run of them, from `start` to `stop`; for the next one, others are made. `calls` is what the API asks."""

    def __init__(
        self,
        settings: Settings,
        database: AgentDatabase,
        client: Requester,
        caller: AgentCaller,
        service: TimerService,
        clock: Clock,
        rules: InputRules,
        observe: AgentObserver,
        *,
        bus: Callable[[Registry], Bus] | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """`bus` makes another one than the settings name; `chance` is what spreads repetitions."""
        limits = settings.agent_limits()
        new_id = Uuid7Source(clock.now_us)
        registry = Registry(new_id, clock.now_us)
        self._observe = observe
        self._abandon_timeout_us = limits.command_timeout_us
        self._drain_timeout_us = settings.engine_limits().drain_timeout_us
        made = _make_bus(settings, registry, observe, database) if bus is None else bus(registry)
        self._bus = made
        orchestration = Orchestration(database.calls, registry, clock, limits, observe)
        orchestration.attach(made)
        self._watchdog = Watchdog(database.calls, registry, clock, limits, observe)
        timers: Timers
        if settings.agent_timer == "engine":
            timers = EngineTimers(service, caller, clock, limits)
        else:
            timers = PollingTimers(database.timers, clock, limits, observe)
        self._timer = TimerModule(timers, made, registry, clock, observe)
        self._timer.attach()
        self._executor = Executor(database.executions, database.secrets, client, registry, clock, limits, observe)
        checks = ExecutionChecks(database.executions, self._executor, registry, clock, limits, observe)
        ExecutionHandlers(self._executor, checks, registry).subscribe(made)
        self._dispatcher = OutboxDispatcher(database.outbox, made, clock, limits, observe, chance or random.Random())
        check = partial(check_request, limits=settings.callback_limits())
        input_checks = Checks(check, rules.url, rules.instant, rules.delay, rules.retry)
        self.calls = ServiceCalls(
            made, database.queries, registry, clock, limits, new_id, input_checks, database.secrets
        )

    async def start(self) -> None:
        """Begins to take and make calls. Raises BusUnavailable, StoreError or ConfigError; `abandon` has to follow then."""
        # Before the bus may bring anything: a repeated order for an execution that was cut off must not begin it anew.
        await self._executor.recover()
        await self._bus.start()
        self._dispatcher.start()
        await self._timer.start()
        self._watchdog.start()

    async def drain(self) -> None:
        """Nothing new falls due or is executed, and requests under way end, within `drain_timeout`. Commands are still
        taken."""
        await self._timer.close()
        await self._watchdog.close()
        await self._executor.drain(self._drain_timeout_us)

    async def stop(self) -> None:
        """After `drain`: what follows is sent as far as it can be. Whatever is left is in the database for the next
        start."""
        await self._bus.drain()
        await self._dispatcher.close()
        await self._bus.close()

    async def abandon(self) -> None:
        """Ends everything at once, in a database that isn't this agent's any more: nothing could be written. Requests
        under way go on, unheard; whoever has the database takes them for interrupted. Also after a failed start.
        A part that doesn't end is told of and left to itself: its writes are refused."""
        parts: dict[str, Callable[[], Awaitable[object]]] = {
            "executions": partial(self._executor.drain, 0),
            # Whoever waits for a message to be dealt with is told that it won't be.
            "bus": self._bus.close,
            "timer": self._timer.close,
            "watchdog": self._watchdog.close,
            "outbox": self._dispatcher.close,
        }
        for part, end in parts.items():
            try:
                async with asyncio.timeout(self._abandon_timeout_us / 1e6):
                    await end()
            except Exception as error:  # noqa: BLE001 -- the others have to end all the same
                self._observe(AgentStepFailed(f"{part} end", f"{type(error).__name__}: {error}"))

    def gauges(self) -> Mapping[str, float]:
        """By the names of AGENT_GAUGES."""
        return {
            "tocsin_agent_executions_in_flight": self._executor.in_flight,
            "tocsin_agent_executions_deferred": self._executor.held,
            "tocsin_agent_messages_waiting": self._bus.waiting,
            "tocsin_agent_outbox_waiting": self._dispatcher.waiting,
            "tocsin_agent_broker_connected": float(self._bus.connected),
        }


def _make_bus(settings: Settings, registry: Registry, observe: AgentObserver, database: AgentDatabase) -> Bus:
    limits = settings.bus_limits()
    if settings.broker is None:
        return EmbeddedBus(limits, registry.check, observe)
    return NatsBus(
        settings.broker,
        limits,
        registry.check,
        observe,
        prefix=settings.broker_prefix,
        owner=database.identity,
        # A node that stands still stays subscribed for minutes: in one group with it, commands would be lost to it.
        responders=f"-{database.term}",
    )
