"""Injects failures and repairs them."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .world import World


class Chaos:
    """One failure after another, each repaired after a while; several may overlap."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._tasks: list[asyncio.Task[None]] = []
        world.tables.unknown_rate = rng.choice((0.0, 0.02, 0.1))
        world.tables.failure_rate = rng.choice((0.0, 0.0, 0.03))
        if world.broker is not None:
            world.broker.confirmations_lost_rate = rng.choice((0.0, 0.05))
            world.broker.acknowledgements_lost_rate = rng.choice((0.0, 0.1))
            world.broker.deliveries_lost_rate = rng.choice((0.0, 0.3))

    async def run(self, until_s: float) -> None:
        """Returns when everything is repaired."""
        rng, world = self._rng, self._world
        kinds = [self._database_away, self._database_away]
        if world.broker is not None:
            kinds += [self._broker_away, self._broker_away, self._broker_forgets, self._broker_forgets]
        if world.mortal:
            kinds += [self._kill, self._restart, self._freeze, self._take_over]
        else:
            kinds += [self._freeze]
        while world.loop.time() < until_s:
            await asyncio.sleep(rng.uniform(1, 30))
            failure = rng.choice(kinds)
            self._tasks.append(world.loop.create_task(failure(), name=failure.__name__.strip("_")))
            world.awaited.append(self._tasks[-1])
        await asyncio.gather(*self._tasks)
        world.tables.unknown_rate = world.tables.failure_rate = 0.0
        if world.broker is not None:
            world.broker.confirmations_lost_rate = world.broker.acknowledgements_lost_rate = 0.0
            world.broker.deliveries_lost_rate = 0.0

    def _a_while_s(self) -> float:
        return self._rng.choice((2, 20, 90)) * self._rng.random()

    async def _database_away(self) -> None:
        tables = self._world.tables
        if not tables.away:
            tables.away = self._rng.choice(("refusing", "silent"))
            self._world.log("database", tables.away)
            await asyncio.sleep(self._a_while_s())
            tables.away = ""
            self._world.log("database back")

    async def _broker_away(self) -> None:
        broker = self._world.broker
        assert broker is not None
        if not broker.away:
            self._world.log("broker away")
            broker.leave()
            await asyncio.sleep(self._a_while_s())
            self._world.log("broker back")
            broker.come_back()

    async def _broker_forgets(self) -> None:
        broker = self._world.broker
        assert broker is not None
        if not broker.away:
            self._world.log("broker away, and forgets")
            broker.leave()
            await asyncio.sleep(self._rng.uniform(0, 10))
            broker.forget()
            broker.come_back()

    async def _kill(self) -> None:
        process = self._world.process
        if not process.over:
            self._world.log("kill", process.name)
            process.kill()
            await asyncio.sleep(self._a_while_s() / 4)
            self._world.start_process()

    async def _restart(self) -> None:
        process = self._world.process
        if not process.over and process.modules is not None:
            self._world.log("stop", process.name)
            # A frozen process learns of it later, if ever. No other failure may replace it meanwhile.
            process.over = True
            ending = process.inside(process.stop())
            # A supervisor kills a process that does not stop.
            await asyncio.wait({ending}, timeout=60.0)
            process.kill()
            self._world.start_process()

    async def _freeze(self) -> None:
        process = self._world.process
        if not process.over:
            self._world.log("freeze", process.name)
            process.freeze()
            await asyncio.sleep(self._a_while_s() / 2)
            process.thaw()

    async def _take_over(self) -> None:
        """The process freezes, another one takes over, and the first resumes."""
        process = self._world.process
        if process.over:
            return
        self._world.log("freeze", process.name, "and take over")
        process.freeze()
        process.over = True
        await asyncio.sleep(self._rng.uniform(1, 10))
        self._world.start_process()
        await asyncio.sleep(self._a_while_s() / 2)
        process.thaw()
        await asyncio.sleep(self._rng.uniform(0, 2))
        await process.inside(process.abandon())
