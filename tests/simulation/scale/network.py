"""The network between hundreds of nodes: a millisecond each way, can be cut in two, and counts messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tocsin.cluster.channel import CallerEnd, End, PeerUnreachable
from tocsin.cluster.cluster import Cluster

from .counts import Counts

if TYPE_CHECKING:
    from .node import Node

#: How long a message takes, and how long connecting may take.
LATENCY_S, _DIAL_S = 0.001, 2.0


class Pipe:
    """One side's channel."""

    congested = False

    def __init__(self, network: Network, node: Node) -> None:
        self.other: Pipe
        self.end: End | None = None
        self.over = False
        self.node = node
        self._network = network

    def send(self, payload: bytes) -> None:
        """Sends a message, which arrives unless the nodes are cut off from each other, or one has ended."""
        if self.over or not self._network.passes(self.node, self.other.node):
            return
        self._network.counts.message(payload)
        asyncio.get_running_loop().call_later(LATENCY_S, self.other.arrive, payload)

    def arrive(self, payload: bytes) -> None:
        """A message of the other side."""
        if not self.over and self.end is not None:
            self.end.received(payload)

    def close(self) -> None:
        """Closes the connection; the other side is notified."""
        self.abort()

    def abort(self) -> None:
        """Closes the connection; the other side is notified."""
        if self.over:
            return
        self.over, self.end = True, None
        self._network.ended(self)
        if self._network.passes(self.node, self.other.node):
            asyncio.get_running_loop().call_later(LATENCY_S, self.other.fail)

    def fail(self) -> None:
        """The other side has closed the connection."""
        if self.over:
            return
        end, self.end, self.over = self.end, None, True
        self._network.ended(self)
        if end is not None:
            end.lost("closed")


class Network:
    """All connections. While it is `cut`, nothing passes between nodes of different `side`s."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self.cut = False
        self._listening: dict[str, tuple[Node, Cluster, bytes]] = {}
        self._pipes: dict[str, dict[Pipe, None]] = {}

    def passes(self, one: Node, other: Node) -> bool:
        """Whether messages pass between the nodes."""
        return not (self.cut and one.side != other.side)

    @property
    def connections(self) -> int:
        """Open connections."""
        return sum(map(len, self._pipes.values())) // 2

    def listen(self, node: Node, cluster: Cluster, incarnation: bytes) -> None:
        """Lets the node accept connections."""
        self._listening[node.name] = (node, cluster, incarnation)

    def gone(self, node: Node) -> None:
        """The node's process has ended."""
        self._listening.pop(node.name, None)
        for pipe in list(self._pipes.pop(node.name, ())):
            pipe.abort()

    def ended(self, pipe: Pipe) -> None:
        """One side of a connection has ended."""
        self._pipes.get(pipe.node.name, {}).pop(pipe, None)

    def dial_from(self, node: Node, own: bytes) -> Callable[[bytes, str, CallerEnd], Any]:
        """The function with which the node connects."""

        async def dial(incarnation: bytes, address: str, end: CallerEnd) -> None:
            await asyncio.sleep(2 * LATENCY_S)
            target = self._listening.get(address)
            if target is None or target[2] != incarnation:
                raise PeerUnreachable("connection refused")
            if not self.passes(node, target[0]):
                await asyncio.sleep(_DIAL_S)
                raise PeerUnreachable("no answer in time")
            ours, theirs = Pipe(self, node), Pipe(self, target[0])
            ours.other, theirs.other = theirs, ours
            for each in (ours, theirs):
                self._pipes.setdefault(each.node.name, {})[each] = None
            theirs.end = target[1].arrived(own, theirs)
            ours.end = end
            end.opened(ours)

        return dial
