"""The network between the nodes: slow or cut, with connections that one side takes for open longer than the other."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.support.simulation_loop import NODE
from tocsin.cluster.channel import CallerEnd, End, PeerUnreachable
from tocsin.cluster.cluster import Cluster

if TYPE_CHECKING:
    from .node import Node
    from .world import World

#: Time limit for connecting and authenticating, as in the real one.
DIAL_S = 2.0


def within(node: Node) -> contextvars.Context:
    """Runs its body in the node's context, so that it waits while the node is frozen."""
    context = contextvars.copy_context()
    context.run(NODE.set, node.name)
    return context


class Pipe:
    """One side's channel. Its messages arrive in order, up to a moment from which on none arrives."""

    def __init__(self, network: Network, node: Node, rng: random.Random) -> None:
        self.congested = False
        self.other: Pipe | None = None
        self.end: End | None = None
        self._network = network
        self._node = node
        self._rng = rng
        self._arrives_at = 0.0
        self._over = False

    def send(self, payload: bytes) -> None:
        """Sends a message, if the connection still passes messages."""
        other = self.other
        if self._over or other is None or self._network.swallows(self._node, other._node):
            return
        delay_s = self._rng.uniform(0.0001, 0.002)
        if self._rng.random() < self._network.slow_rate:
            delay_s += self._rng.expovariate(1.0)
        loop = asyncio.get_running_loop()
        self._arrives_at = max(self._arrives_at, loop.time() + delay_s, self._network.read_at(other._node))
        loop.call_at(self._arrives_at, other._arrive, payload, context=within(other._node))
        if self._rng.random() < self._network.repeat_rate:
            again_s = self._arrives_at + self._rng.uniform(0, 2.0)
            loop.call_at(again_s, other._arrive, payload, context=within(other._node))

    def _arrive(self, payload: bytes) -> None:
        if not self._over and self.end is not None:
            self.end.received(payload)

    def close(self) -> None:
        """Closes the channel. The other side is notified later, after it has read what was sent before."""
        self.abort()

    def abort(self) -> None:
        """Closes the channel. The other side is notified later, after it has read what was sent before."""
        if self._over:
            return
        self._over, self.end = True, None
        other = self.other
        if other is None or self._network.swallows(self._node, other._node):
            return
        loop = asyncio.get_running_loop()
        delay_s = self._rng.choice((0.001, 0.01, self._rng.uniform(0, 3.0)))
        loop.call_at(max(self._arrives_at, loop.time() + delay_s), other.fail, "closed", context=within(other._node))

    def fail(self, reason: str) -> None:
        """Ends the connection for this side."""
        end, self.end = self.end, None
        self._over = True
        if end is not None:
            end.lost(reason)


class Network:
    """All connections. `cuts` are pairs of nodes between which nothing passes; senders are not notified."""

    def __init__(self, world: World) -> None:
        self.slow_rate = 0.0
        self.repeat_rate = 0.0
        self.cuts: set[frozenset[str]] = set()
        self._unread_until: dict[str, float] = {}
        self._world = world
        self._rng = world.rng("network")
        self._listening: dict[str, tuple[Node, Cluster, bytes]] = {}
        self._pipes: list[Pipe] = []

    def swallows(self, one: Node, other: Node) -> bool:
        """Whether nothing passes between them now."""
        return frozenset((one.name, other.name)) in self.cuts

    def leave_unread(self, node: Node, seconds: float) -> None:
        """Keeps messages to the node unread for a time while the node runs otherwise. The senders' connections break
        meanwhile, which the node notices when it reads again."""
        loop = asyncio.get_running_loop()
        until_s = self._unread_until[node.name] = loop.time() + seconds
        for pipe in [pipe for pipe in self._pipes if pipe.other is not None and pipe.other._node is node]:
            loop.call_later(self._rng.uniform(0, seconds), pipe.fail, "broken", context=within(pipe._node))
            if pipe.other is not None:
                late_s = until_s + self._rng.expovariate(1.0)
                loop.call_at(late_s, pipe.other.fail, "broken", context=within(node))

    def read_at(self, node: Node) -> float:
        """The earliest time at which the node reads a message that is sent now."""
        until_s = self._unread_until.get(node.name, 0.0)
        if until_s <= asyncio.get_running_loop().time():
            return 0.0
        return until_s + self._rng.choice((0.0, self._rng.expovariate(1.0)))

    def listen(self, node: Node, cluster: Cluster, incarnation: bytes) -> None:
        """Lets the node accept connections."""
        self._listening[node.name] = (node, cluster, incarnation)

    def gone(self, node: Node) -> None:
        """Closes the connections of a node whose process has ended."""
        self._listening.pop(node.name, None)
        for pipe in [pipe for pipe in self._pipes if pipe._node is node]:
            pipe.abort()
        self._pipes = [pipe for pipe in self._pipes if not pipe._over]

    def break_some(self) -> list[frozenset[str]]:
        """Breaks connections, for one side first; returns the nodes concerned."""
        broken = []
        for pipe in self._pipes:
            if not pipe._over and self._rng.random() < 0.5:
                self._world.record("connection breaks", pipe._node.name)
                other = pipe.other
                loop = asyncio.get_running_loop()
                loop.call_soon(pipe.fail, "broken", context=within(pipe._node))
                if other is not None:
                    broken.append(frozenset((pipe._node.name, other._node.name)))
                    late_s = self._rng.choice((0.0, 0.1, self._rng.uniform(0, 6.0)))
                    loop.call_later(late_s, other.fail, "broken", context=within(other._node))
        return broken

    def dial_from(self, node: Node, own: bytes) -> Callable[[bytes, str, CallerEnd], Any]:
        """The function with which the node connects."""

        async def dial(incarnation: bytes, address: str, end: CallerEnd) -> None:
            met: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            target = self._listening.get(address)
            if target is not None and not self.swallows(node, target[0]):
                if target[2] != incarnation:
                    await asyncio.sleep(0.001)
                    raise PeerUnreachable("another start of the node answers there")
                loop = asyncio.get_running_loop()
                proven_s = max(loop.time() + self._rng.uniform(0.0005, 0.005), self.read_at(target[0]))
                loop.call_at(proven_s, self._proven, node, own, target, end, met, context=within(target[0]))
            elif target is None:
                await asyncio.sleep(0.001)
                raise PeerUnreachable("connection refused")
            await asyncio.wait({met}, timeout=DIAL_S)
            if not met.done():
                met.cancel()
                raise PeerUnreachable("no answer in time")

        return dial

    def _proven(
        self, node: Node, own: bytes, target: tuple[Node, Cluster, bytes], end: CallerEnd, met: asyncio.Future[None]
    ) -> None:
        """Completes the connection at the called node: the caller is authenticated, and its welcome is under way."""
        called, cluster, _ = target
        if met.done() or self._listening.get(called.name) != target or self.swallows(node, called):
            return
        ours, theirs = Pipe(self, node, self._rng), Pipe(self, called, self._rng)
        ours.other, theirs.other = theirs, ours
        self._pipes = [pipe for pipe in self._pipes if not pipe._over] + [ours, theirs]
        theirs.end = cluster.arrived(own, theirs)

        def welcome() -> None:
            if met.done() or self.swallows(node, called):
                theirs.fail("the caller went away")
                return
            ours.end = end
            end.opened(ours)
            met.set_result(None)

        # Messages of the called node arrive after its welcome.
        theirs._arrives_at = asyncio.get_running_loop().time() + self._rng.uniform(0.0005, 0.005)
        asyncio.get_running_loop().call_at(theirs._arrives_at, welcome, context=within(node))
