"""A process that runs the agent: the real modules from the real composition root."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from tests.support.simulation_loop import NODE
from tocsin.model.validation import InputLimits, InputRules
from tocsin.ports.bus import Bus
from tocsin.server.agent_modules import AgentModules, OfEngine
from tocsin.service_calls.messages import Registry
from tocsin.settings import Settings

from .bus import SimulatedBus, WatchedEmbeddedBus
from .credentials import SimulatedCredentials
from .database import SimulatedDatabase
from .flows import SimulatedGate
from .receiver import SimulatedClient

if TYPE_CHECKING:
    from .world import World

T = TypeVar("T")


_RULES = InputRules(InputLimits(), lambda url: None)


class Process:
    """One run of the process. `modules` is None before it has started and after its end.

    `over`: a failure is about to replace it, or has. Each process is replaced once, so that the latest holds the database.
    """

    def __init__(self, world: World, number: int) -> None:
        self.name = f"p{number}"
        self.modules: AgentModules | None = None
        self.database: SimulatedDatabase | None = None
        self.over = False
        self.gate = SimulatedGate(world)
        self.credentials: SimulatedCredentials | None = None
        self._world = world
        self._number = number
        self._freezes = 0
        self._starting: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[Any]] = []

    def inside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs the work as part of the process, so that freezing the process stops it."""
        context = contextvars.copy_context()
        context.run(NODE.set, self.name)
        task = self._world.loop.create_task(work, context=context)
        self._tasks.append(task)
        return task

    def forget(self) -> None:
        """Drops requests to a stopped process that it never began."""
        for task in self._tasks:
            work = task.get_coro()
            if inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()

    def start(self) -> None:
        """Retries until the process runs."""
        self._starting = self.inside(self._start())

    async def _start(self) -> None:
        world = self._world
        self.credentials = credentials = SimulatedCredentials(world)
        credentials.learn()
        while not self.over:
            world.log(self.name, "starts")
            self.database = database = SimulatedDatabase(world, world.tables)
            self.gate = SimulatedGate(world)
            modules = AgentModules(
                Settings(agent=world.limits, bus=world.bus_limits),
                database,  # type: ignore[arg-type]
                SimulatedClient(world.receivers),
                # Its timers are polled.
                OfEngine(lambda context: None, self.gate, credentials=credentials),  # type: ignore[arg-type,return-value]
                world,
                _RULES,
                world.observe,
                bus=self._make_bus,
                chance=world.rng("process", self._number),
            )
            try:
                await modules.start()
            except Exception as error:  # noqa: BLE001 -- as the node that runs the agent does it
                world.log(self.name, "did not start", error)
                await modules.abandon()
                await asyncio.sleep(3.0)
            else:
                world.log(self.name, "runs")
                self.modules = modules
                return

    def _make_bus(self, registry: Registry) -> Bus:
        if self._world.broker is None:
            return WatchedEmbeddedBus(self._world, registry)
        return SimulatedBus(self._world.broker, registry)

    async def learn(self, after_s: float) -> None:
        """Reads the credentials after a while."""
        await asyncio.sleep(after_s)
        if self.credentials is not None:
            self.credentials.learn()

    def freeze(self) -> None:
        """Nothing in it runs until each freeze has been thawed."""
        self._freezes += 1
        self._world.loop.freeze(self.name)

    def thaw(self) -> None:
        """Ends one freeze."""
        self._freezes -= 1
        if not self._freezes:
            self._world.log("thaw", self.name)
            self._world.loop.thaw(self.name)

    def kill(self) -> None:
        """SIGKILL: nothing in it runs any more."""
        self.over, self.modules = True, None
        self.freeze()

    async def stop(self) -> None:
        """Stops in order."""
        modules, self.modules, self.over = self.modules, None, True
        if modules is not None:
            await modules.drain()
            await modules.stop()
        await self._close()

    async def abandon(self) -> None:
        """Another process has taken over the database. The server would wait for its turn again; here new processes do."""
        self.over = True
        if self._starting is not None:
            await self._starting
        modules, self.modules = self.modules, None
        if modules is not None:
            await modules.abandon()
        await self._close()

    async def _close(self) -> None:
        if self.credentials is not None:
            await self.credentials.close()
