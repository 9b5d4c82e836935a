"""A cluster of the plan: nodes of the real engine on one store, their load, and what is measured of them in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.simulation_loop import SimulationLoop
from tocsin.administration import FLOW_RECORDS, put_namespace
from tocsin.model.errors import TocsinError
from tocsin.model.flow import Flow
from tocsin.model.namespace import Namespace
from tocsin.model.quota import Quotas
from tocsin.model.timer import Timer
from tocsin.ports.http import Invocation
from tocsin.ports.observer import Event
from tocsin.stores.memory import MemoryStore
from tocsin.testing.clock import EPOCH_US, FakeClock
from tocsin.timers.engine.limits import EngineLimits

from .counts import Counts, per_node
from .network import Network
from .node import Node

SECOND = 1_000_000
NAMESPACE = "plan"
#: How often it is checked which shards have an owner.
_LOOK_S = 0.05
#: How long no shard may have changed hands: longer than a node that has joined waits for its share.
_QUIET_S = 7.0
#: A run that takes longer waits for something that never happens.
_RUN_S_MAX = 3_600.0
#: How long after its creation a timer is due.
_DUE_IN_S = 1.0


@dataclass(frozen=True)
class Load:
    """What clients do: timers that each node creates a second, of which the flow key is one of so many; and the flows, one
    rule a key."""

    name: str
    creates_per_s: float = 0.0
    flows: Sequence[Flow] = ()
    quotas: Quotas | None = None


@dataclass
class Costs:
    """What a node did each second, on average; CPU is that of the simulation, in seconds a virtual second."""

    nodes: int
    shards: int
    load: str
    calls: dict[str, float]
    rows: dict[str, float]
    messages: dict[str, float]
    message_bytes: float
    links: float
    creates: float
    fires: float
    cpu_s: float


class Plan:
    """A cluster in virtual time."""

    def __init__(
        self, nodes: int, total_shards: int, *, round_trip_s: float = 0.002, seed: int = 1, load: Load | None = None
    ) -> None:
        self.loop = SimulationLoop(seconds_max=_RUN_S_MAX, turns_per_instant_max=200_000)  # type: ignore[abstract]  # only what a simulation needs
        self.total_shards = total_shards
        self.limits = EngineLimits()
        self.counts = Counts()
        self.seed = seed
        self.load = load or Load("idle")
        self.store = MemoryStore(_StoreClock(self.loop))
        self.network = Network(self.counts)
        self.errors: list[BaseException] = []
        self.round_trip_us = round_trip_s * 1e6
        #: Attempts in flight and the number of first attempts, by the key of their flow.
        self.begins: Callable[[Invocation], None] = lambda invocation: None
        self.ends: Callable[[Invocation], None] = lambda invocation: None
        self.created: set[str] = set()
        self.fired_ids: set[str] = set()
        self._rng = self.rng("store")
        self.nodes = [Node(self, number) for number in range(nodes)]

    def rng(self, *name: object) -> random.Random:
        """A random generator of its own for each part."""
        return random.Random("/".join(str(part) for part in (self.seed, *name)))

    def now_us(self) -> int:
        """The true time, which is also the store's."""
        return EPOCH_US + self.loop.now_us()

    def round_trip_s(self) -> float:
        """How long the next call of the store takes."""
        return self.round_trip_us * self._rng.uniform(0.8, 1.2) / 1e6

    # ------------------------------------------------------------------ what nodes report

    def failed(self, error: BaseException) -> None:
        """A node has failed: a defect."""
        self.errors.append(error)

    def observe(self, event: Event) -> None:
        """Events that a plan has no use for."""

    def fired(self, node: Node, invocation: Invocation) -> None:
        """A node has called a receiver."""
        self.counts.fires += 1
        self.fired_ids.add(invocation.timer_id)
        self.begins(invocation)

    def answered(self, node: Node, invocation: Invocation) -> None:
        """The receiver has answered."""
        self.ends(invocation)

    # ------------------------------------------------------------------ the run

    def run(self, life: Callable[[], Awaitable[None]]) -> None:
        """Starts all nodes within half a second, waits until each shard has an owner, runs `life`, and ends the nodes."""

        async def whole() -> None:
            await self.store.open(self.total_shards)
            namespace = Namespace(NAMESPACE, self.total_shards, 0, 0, quotas=self.load.quotas)
            await put_namespace(self.store, namespace, create=True)
            for flow in self.load.flows:
                await FLOW_RECORDS.put(self.store, flow)
            rng = self.rng("starts")
            await asyncio.gather(*(_later(rng.uniform(0, 0.5), node.start()) for node in self.nodes))
            await self.until_settled()
            await life()
            await asyncio.gather(*(node.kill() for node in self.nodes))

        self.loop.run_until_complete(whole())
        assert not self.errors, self.errors
        assert not self.loop.unhandled, self.loop.unhandled[:3]
        self.loop.close()

    def without_owner(self) -> set[int]:
        """Shards that no node fires now."""
        owned: set[int] = set()
        for node in self.nodes:
            if node.running and node.supervisor is not None and node.supervisor.dispatcher.paused_reason is None:
                owned.update(node.owned)
        return set(range(self.total_shards)) - owned

    async def until_settled(self) -> None:
        """Waits until each shard has an owner, and none has changed hands for a while."""
        former: list[frozenset[int]] = []
        while (present := [frozenset(node.owned) for node in self.nodes]) != former or self.without_owner():
            former = present
            await asyncio.sleep(_QUIET_S)

    async def creates(self, seconds: float) -> None:
        """Clients create timers at each node for that long."""
        await asyncio.gather(*(self._creates_at(node, seconds) for node in self.nodes))

    async def _creates_at(self, node: Node, seconds: float) -> None:
        if not self.load.creates_per_s:
            await asyncio.sleep(seconds)
            return
        rng, number = self.rng("creates", node.name), 0
        until_s = self.loop.time() + seconds
        while (wait_s := rng.expovariate(self.load.creates_per_s)) < until_s - self.loop.time():
            await asyncio.sleep(wait_s)
            number += 1
            due_us = self.now_us() + int(_DUE_IN_S * SECOND)
            key = rng.choice(self.load.flows).match if self.load.flows else ""
            name = f"{node.name}/{number}"
            timer = Timer(NAMESPACE, name, due_us, f"http://host-{rng.randrange(50)}/", due_us, due_us, flow_key=key)
            self.loop.create_task(self._create(node, timer))

    async def _create(self, node: Node, timer: Timer) -> None:
        if node.service is not None:
            with contextlib.suppress(TocsinError):
                await node.service.create(timer)
                self.counts.creates += 1
                self.created.add(timer.id)

    def costs(self, settle_s: float = 5.0, seconds: float = 5.0) -> Costs:
        """What the load costs each node a second, once it has settled."""
        found: list[Costs] = []

        async def life() -> None:
            load = self.loop.create_task(self.creates(settle_s + seconds))
            await asyncio.sleep(settle_s)
            self.counts.clear()
            began_s = time.process_time()
            await asyncio.sleep(seconds)
            cpu_s, counts, nodes = time.process_time() - began_s, self.counts, len(self.nodes)
            each = nodes * seconds
            found.append(
                Costs(
                    nodes,
                    self.total_shards,
                    self.load.name,
                    per_node(counts.calls, nodes, seconds),
                    per_node(counts.rows_read, nodes, seconds),
                    per_node(counts.messages, nodes, seconds),
                    counts.message_bytes / each,
                    self.network.connections / nodes,
                    counts.creates / each,
                    counts.fires / each,
                    cpu_s / each,
                )
            )
            await load

        self.run(life)
        return found[0]


async def _later(delay_s: float, work: Coroutine[Any, Any, None]) -> None:
    await asyncio.sleep(delay_s)
    await work


class _StoreClock(FakeClock):
    def __init__(self, loop: SimulationLoop) -> None:
        super().__init__()
        self._loop = loop

    def now_us(self) -> int:
        return EPOCH_US + self._loop.now_us()
