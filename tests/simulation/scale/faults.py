"""What befalls a cluster, and how long its shards are without an owner then."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .counts import per_node
from .node import Node
from .plan import Plan

#: How often it is checked which shards have an owner, and how long a network stays cut.
_LOOK_S, _CUT_S = 0.05, 20.0
#: When a fault is over that leaves each shard with its owner: longer than a node that joins waits for its share.
_QUIET_S = 8.0
#: How long a process takes from its end to its next start.
_RESTART_S = 2.0
#: How many of the nodes are restarted at once.
_RESTARTED_AT_ONCE = 0.05
#: How long the store takes where it is slow, in seconds.
SLOW_STORE_S = 0.05


@dataclass
class Takeover:
    """What a fault did. `over_s`: until each shard had an owner again; `gap_s`: the longest time for which one had none;
    `peak`: what a node did in the busiest second."""

    fault: str
    nodes: int
    shards: int
    over_s: float
    gap_s: float
    peak_calls: dict[str, float]
    peak_messages: dict[str, float]


class _Watch:
    """Watches which shards have an owner, and the busiest second of each kind."""

    def __init__(self, plan: Plan) -> None:
        self.gap_s = 0.0
        self.over_s = 0.0
        self.calls: Counter[str] = Counter()
        self.messages: Counter[str] = Counter()
        self._plan = plan
        self._since: dict[int, float] = {}
        self._began_s = plan.loop.time()
        plan.counts.clear()

    async def run(self) -> None:
        """Never returns."""
        plan, next_s = self._plan, self._began_s + 1.0
        while True:
            now_s, missing = plan.loop.time(), plan.without_owner()
            for shard_id in [shard_id for shard_id in self._since if shard_id not in missing]:
                self.gap_s = max(self.gap_s, now_s - self._since.pop(shard_id))
                self.over_s = now_s - self._began_s
            for shard_id in missing:
                self._since.setdefault(shard_id, now_s)
            if now_s >= next_s:
                next_s = now_s + 1.0
                self.calls |= plan.counts.calls
                self.messages |= plan.counts.messages
                plan.counts.clear()
            await asyncio.sleep(_LOOK_S)


def take_over(plan: Plan, fault: str, cause: Callable[[Plan], Awaitable[None]]) -> Takeover:
    """Causes the fault in a settled cluster and waits until each shard has an owner that keeps it."""
    found: list[Takeover] = []

    async def life() -> None:
        watch = _Watch(plan)
        watching = plan.loop.create_task(watch.run())
        await cause(plan)
        quiet_since_s = plan.loop.time()
        while plan.loop.time() < quiet_since_s + _QUIET_S:
            if plan.without_owner():
                quiet_since_s = plan.loop.time()
            await asyncio.sleep(_LOOK_S)
        watching.cancel()
        nodes = len(plan.nodes)
        calls, messages = per_node(watch.calls, nodes, 1.0), per_node(watch.messages, nodes, 1.0)
        found.append(Takeover(fault, nodes, plan.total_shards, watch.over_s, watch.gap_s, calls, messages))

    plan.run(life)
    return found[0]


def deaths(number: int) -> Callable[[Plan], Awaitable[None]]:
    """So many nodes die at once, and stay away."""

    async def cause(plan: Plan) -> None:
        await asyncio.gather(*(node.kill() for node in plan.nodes[:number]))

    return cause


async def restarts(plan: Plan) -> None:
    """All nodes are restarted, a few at once. The next ones follow when these own shards again."""
    at_once = max(round(len(plan.nodes) * _RESTARTED_AT_ONCE), 1)
    for first in range(0, len(plan.nodes), at_once):
        await asyncio.gather(*(_restart(plan, node) for node in plan.nodes[first : first + at_once]))


async def _restart(plan: Plan, node: Node) -> None:
    await node.stop()
    await asyncio.sleep(_RESTART_S)
    await node.start()
    for _ in range(round(_QUIET_S / _LOOK_S)):
        if node.owned:
            break
        await asyncio.sleep(_LOOK_S)


async def partition(plan: Plan) -> None:
    """Half of the nodes are cut off from the others for a while; all reach the store."""
    plan.network.cut = True
    await asyncio.sleep(_CUT_S)
    plan.network.cut = False


async def partition_from_store(plan: Plan) -> None:
    """Half of the nodes are cut off from the others and from the store for a while."""
    plan.network.cut = True
    for node in plan.nodes:
        node.store.cut = node.side == 1
    await asyncio.sleep(_CUT_S)
    plan.network.cut = False
    for node in plan.nodes:
        node.store.cut = False


async def slow_store(plan: Plan) -> None:
    """The store takes longer, and a node dies."""
    plan.round_trip_us = SLOW_STORE_S * 1e6
    await asyncio.sleep(3.0)
    await deaths(1)(plan)
