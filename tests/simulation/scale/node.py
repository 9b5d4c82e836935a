"""A node of the plan: the real supervisor, service and cluster, with a receiver that answers after a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tocsin.cluster.channel import ThisNode
from tocsin.cluster.cluster import Cluster
from tocsin.cluster.handshake import ClusterSecrets
from tocsin.cluster.limits import ClusterLimits
from tocsin.model.answer import Response
from tocsin.model.errors import StoreError
from tocsin.ports.http import Exchange, Invocation
from tocsin.testing.clock import DriftingClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.quotas import exchange_quotas
from tocsin.timers.service import TimerService

from .store import CountedStore

if TYPE_CHECKING:
    from .plan import Plan

#: How long a receiver takes.
ANSWERS_IN_S = 0.02
_RETENTION_US = 3_600_000_000


class _Receiver:
    """Accepts all that this node calls."""

    def __init__(self, plan: Plan, node: Node) -> None:
        self._plan = plan
        self._node = node

    def destination(self, url: str) -> str:
        """The host."""
        return url.split("/")[2]

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Answers 200 after a moment."""
        self._plan.fired(self._node, invocation)
        exchange = Exchange(Response(200), self._plan.now_us(), int(ANSWERS_IN_S * 1e6))
        asyncio.get_running_loop().call_later(ANSWERS_IN_S, self._answer, invocation, done, exchange)

    def _answer(self, invocation: Invocation, done: Callable[[Exchange], None], exchange: Exchange) -> None:
        self._plan.answered(self._node, invocation)
        if self._node.running:
            done(exchange)

    async def close(self) -> None:
        """Nothing to close."""


class Node:
    """A node. `side` is that of a network that is cut in two."""

    def __init__(self, plan: Plan, number: int) -> None:
        self.name = f"node-{number}"
        self.side = number % 2
        self.running = False
        self.supervisor: Supervisor | None = None
        self.service: TimerService | None = None
        self._plan = plan
        self._number = number
        self._starts = 0
        self._rng = plan.rng(self.name)
        self._cluster: Cluster | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        drift_ppm = self._rng.randint(-100, 100)
        self.clock = DriftingClock(
            plan.now_us, offset_us=self._rng.randint(-20_000, 20_000), boot_us=self._number * 10**7, drift_ppm=drift_ppm
        )
        self.store = CountedStore(plan.store, plan.counts, plan.round_trip_s)

    async def start(self) -> None:
        """Starts the node; tries again until the store answers."""
        plan = self._plan
        self._starts += 1
        incarnation = self._rng.randbytes(16)
        context = Context(
            store=self.store,  # type: ignore[arg-type]
            caller=_Receiver(plan, self),
            clock=self.clock,
            limits=plan.limits,
            observe=plan.observe,
            random=plan.rng(self.name, self._starts),
            incarnation=incarnation,
        )
        supervisor = Supervisor(
            context, node=self.name, address=self.name, total_shards=plan.total_shards, fatal=plan.failed
        )
        service = TimerService(context, supervisor, namespace_num_shards=1, retention_us=_RETENTION_US)
        here = ThisNode(supervisor.placement, service, service.report, self.clock, ClusterLimits(), plan.observe)
        dial = plan.network.dial_from(self, incarnation)
        cluster = Cluster(incarnation, here, secrets=ClusterSecrets(""), dial_with=dial)
        supervisor.placement.announce = cluster.announce
        service.connect(cluster.router, cluster)
        plan.network.listen(self, cluster, incarnation)
        self.supervisor, self.service, self._cluster, self.running = supervisor, service, cluster, True
        while True:
            try:
                await supervisor.start()
                break
            except StoreError:
                await asyncio.sleep(0.5)
        self._spawn(exchange_quotas(context, service.reports, lambda: len(service.other_nodes())))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    def _disconnect(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        if self._cluster is not None:
            self._cluster.close()
        self._plan.network.gone(self)
        self._cluster = self.service = None

    async def kill(self) -> None:
        """Ends the process at once."""
        self.running = False
        self._disconnect()
        supervisor, self.supervisor = self.supervisor, None
        if supervisor is not None:
            await supervisor.kill()

    async def stop(self) -> None:
        """Ends the process in order."""
        supervisor, cluster = self.supervisor, self._cluster
        assert supervisor is not None
        assert cluster is not None
        self.service = None
        await supervisor.leave()
        if not supervisor.has_successor():
            await supervisor.drain()
        await supervisor.close()
        await cluster.leave(3_000_000)
        self.running, self.supervisor = False, None
        self._disconnect()

    @property
    def owned(self) -> dict[int, Any]:
        """The shards that this node owns, by id."""
        return {} if self.supervisor is None else self.supervisor.dispatcher.shards
