"""The interface of a connection between two nodes, of which the simulation has its own implementation, and what the links and
sessions at its two ends need of this node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.wire import RelayedRequest, RelayedResponse
from tocsin.ports.clock import Clock
from tocsin.ports.forward import LocalWrites, NodeReport, Placement
from tocsin.ports.observer import Event


class Channel(Protocol):
    """Delivers messages to one other node, in order and at most once."""

    congested: bool

    def send(self, payload: bytes) -> None:
        """Sends the message, or drops it if the connection is lost. Never waits; `congested` shows when to pause."""

    def close(self) -> None:
        """Closes the channel after everything was sent."""

    def abort(self) -> None:
        """Closes the channel at once: nothing more is sent or received."""


class End(Protocol):
    """Receives the events of a channel."""

    def received(self, payload: bytes) -> None:
        """A message arrived."""

    def writable(self) -> None:
        """The channel is no longer congested."""

    def lost(self, reason: str) -> None:
        """The channel is closed; no further events follow."""


class CallerEnd(End, Protocol):
    """The end at the node that opened the connection."""

    def opened(self, channel: Channel) -> None:
        """Both nodes are authenticated. This is the first event."""


class PeerUnreachable(Exception):
    """No connection could be opened; `args[0]` is the reason."""


class PeerRefuses(PeerUnreachable):
    """The node does not know this one's secret, which lasts until one of them is restarted."""


#: Connects to the node with this incarnation at this address; has called `opened` when it returns. Raises PeerUnreachable.
Dial = Callable[[bytes, str, CallerEnd], Awaitable[None]]


async def _serves_nothing(request: RelayedRequest) -> RelayedResponse:
    return RelayedResponse(request.id, 0, [], b"")


@dataclass
class ThisNode:
    """The parts of this node that traffic with other nodes uses."""

    placement: Placement
    local: LocalWrites
    #: Returns the node's report.
    report: Callable[[], NodeReport]
    clock: Clock
    limits: ClusterLimits
    observe: Callable[[Event], None]
    #: Serves HTTP requests that other nodes forward.
    serve: Callable[[RelayedRequest], Awaitable[RelayedResponse]] = _serves_nothing
    #: What `spawn` runs.
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine for as long as the cluster lives."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
