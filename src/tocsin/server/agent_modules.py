"""The service agent's modules, connected by a bus, over an open database."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

from tocsin.http_client.plain import check_request
from tocsin.messaging.embedded import EmbeddedBus
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import INSTANT_MIN
from tocsin.model.validation import InputRules
from tocsin.ports.bus import Bus
from tocsin.ports.clock import Clock
from tocsin.ports.credentials import CallCredentials, NoCallCredentials
from tocsin.ports.flow_gate import FlowGate
from tocsin.ports.http import Requester
from tocsin.ports.seals import NoSeals, Seals
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.service_calls.api.validation import Named
from tocsin.service_calls.background import AgentContext
from tocsin.service_calls.events import AgentObserver, AgentStepFailed
from tocsin.service_calls.execution.executor import Executor
from tocsin.service_calls.execution.flow_queue import FlowQueue
from tocsin.service_calls.execution.handlers import ExecutionHandlers
from tocsin.service_calls.execution.turns import Turns
from tocsin.service_calls.messages import Registry
from tocsin.service_calls.orchestration.handlers import Orchestration, Watchdog
from tocsin.service_calls.outbox import OutboxDispatcher
from tocsin.service_calls.ports import Timers, TimerStore
from tocsin.service_calls.resealing import CallResealing
from tocsin.service_calls.timer import PollingTimers, TimerModule
from tocsin.settings import Settings
from tocsin.stores.service_calls.database import AgentDatabase


class OfEngine(NamedTuple):
    """What the engine of timers does for the agent: `timers` makes those of `agent.timer = engine`, `flows` limits the calls
    that name a flow key, `seals` encrypt secrets, `credentials` are those that calls may name."""

    timers: Callable[[AgentContext], Timers]
    flows: FlowGate
    seals: Seals = NoSeals()
    credentials: CallCredentials = NoCallCredentials()


class AgentModules:
    """The modules of one run, from `start` to `stop`; each run has its own instance. `calls` is the interface for the
    API."""

    def __init__(
        self,
        settings: Settings,
        database: AgentDatabase,
        client: Requester,
        engine: OfEngine,
        clock: Clock,
        rules: InputRules,
        observe: AgentObserver,
        *,
        bus: Callable[[Registry], Bus] | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """`bus` replaces the bus that the settings select. `chance` is the source of the jitter of retries."""
        limits = settings.agent
        new_id = Uuid7Source(clock.now_us)
        registry = Registry(new_id, clock.now_us)
        self._observe = observe
        self._abandon_timeout_us = limits.command_timeout_us
        self._drain_timeout_us = settings.engine.drain_timeout_us
        context = AgentContext(registry, clock, limits, observe, engine.seals)
        made = _make_bus(settings, registry, observe, database) if bus is None else bus(registry)
        self._bus = made
        Orchestration(database.calls, context).attach(made)
        self._watchdog = Watchdog(database.calls, context)
        timers: Timers
        self._schedules: TimerStore | None = None
        self._polling: PollingTimers | None = None
        if settings.agent_timer == "engine":
            timers = engine.timers(context)
        else:
            timers = self._polling = PollingTimers(database.timers, context)
            self._schedules = database.timers
        self._timer = TimerModule(timers, made, context)
        self._timer.attach()
        self._flows = FlowQueue(database.suspended, Turns(engine.flows, engine.credentials), context)
        self._executor = Executor(
            database.executions, database.secrets, client, self._flows, context, engine.credentials
        )
        ExecutionHandlers(self._executor, database.executions, context).attach(made)
        self._dispatcher = OutboxDispatcher(database.outbox, made, context, chance or random.Random())
        check = partial(check_request, limits=settings.callbacks)
        self.calls = ServiceCalls(
            made,
            database.queries,
            database.secrets,
            context,
            new_id,
            rules,
            check,
            settings.engine.failure_retention_us,
            Named(engine.flows, engine.credentials),
        )
        self.calls.sealed = CallResealing(database.sealed, engine.seals)

    async def start(self) -> None:
        """Starts the modules. Raises BusUnavailable, StoreError or ConfigError; call `abandon` in that case."""
        # Before the bus delivers anything: a repeated order for an interrupted execution must not start it again.
        await self._executor.recover()
        self._flows.start()
        await self._bus.start()
        self._dispatcher.start()
        await self._timer.start()
        self._watchdog.start()

    async def drain(self) -> None:
        """Nothing new falls due or is executed, and what has fallen due is delivered and requests in flight end, all within
        `drain_timeout`. Commands are still accepted. If it is cancelled, `stop` or `abandon` ends the rest."""
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + self._drain_timeout_us / 1e6
        with contextlib.suppress(TimeoutError):
            # While the database is away, no message is delivered.
            async with asyncio.timeout_at(ends_s):
                await self._timer.close()
                await self._watchdog.close()
        await self._executor.drain(max(0, round((ends_s - loop.time()) * 1e6)))

    async def stop(self) -> None:
        """Call it after `drain`. Sends the resulting messages as far as possible; the rest stays in the database for
        the next start."""
        await self._bus.drain()
        await self._dispatcher.close()
        await self._bus.close()

    async def abandon(self) -> None:
        """Ends everything at once after the database was lost: nothing could be written. Requests in flight continue,
        but their results are ignored; the new owner of the database closes them as interrupted. Also for a failed
        start. A part that does not end in time is reported and left alone: its writes are refused."""
        parts: dict[str, Callable[[], Awaitable[object]]] = {
            "executions": partial(self._executor.drain, 0),
            # Pending posts fail.
            "bus": self._bus.close,
            "timer": self._timer.close,
            "watchdog": self._watchdog.close,
            "outbox": self._dispatcher.close,
        }
        for part, end in parts.items():
            try:
                async with asyncio.timeout(self._abandon_timeout_us / 1e6):
                    await end()
            except Exception as error:  # noqa: BLE001 -- the other parts have to end nonetheless
                self._observe(AgentStepFailed(f"{part} end", f"{type(error).__name__}: {error}"))

    def busy(self) -> str:
        """What goes on in the modules; empty if no message is under way and no call is being executed."""
        if self._executor.in_flight or self._executor.deferred:
            return f"service calls are being executed: {self._executor.in_flight + self._executor.deferred}"
        if self._bus.waiting or self._dispatcher.waiting or self._dispatcher.behind:
            return "messages of service calls are under way"
        return ""

    async def next_due_us(self) -> int | None:
        """The instant of the first schedule that waits in the agent's own table, even if it has come; None if none waits.
        Raises StoreError."""
        return None if self._schedules is None else await self._schedules.next_due_at(INSTANT_MIN)

    def clock_moved(self) -> None:
        """The wall clock was set forward."""
        if self._polling is not None:
            self._polling.clock_moved()

    def gauges(self) -> Mapping[str, float]:
        """Values by the names in AGENT_GAUGES."""
        return {
            "tocsin_agent_executions_in_flight": self._executor.in_flight,
            "tocsin_agent_executions_deferred": self._executor.deferred,
            "tocsin_agent_executions_suspended": self._executor.suspended,
            "tocsin_agent_messages_waiting": self._bus.waiting,
            "tocsin_agent_outbox_waiting": self._dispatcher.waiting,
            "tocsin_agent_broker_connected": float(self._bus.connected),
        }


def _make_bus(settings: Settings, registry: Registry, observe: AgentObserver, database: AgentDatabase) -> Bus:
    limits = settings.bus
    if settings.broker is None:
        return EmbeddedBus(limits, registry.check, observe)
    # Its driver imports aiohttp where that is installed, which takes a tenth of a second.
    from tocsin.messaging.nats.bus import NatsBus

    return NatsBus(
        settings.broker,
        limits,
        registry.check,
        observe,
        prefix=settings.broker_prefix,
        owner=database.identity,
        epoch=database.epoch,
        leads=lambda: database.lock_held,
    )
