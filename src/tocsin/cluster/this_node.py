"""What the links and sessions of this node have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.wire import RelayedRequest, RelayedResponse
from tocsin.ports.clock import Clock
from tocsin.ports.forward import LocalWrites, NodeReport, Placement
from tocsin.ports.observer import Event
from tocsin.ports.statistics import StatisticsReport


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
    #: The node's statistics in slots that began after an instant.
    statistics: Callable[[int], StatisticsReport | None] = lambda after_us: None
    #: What `spawn` runs.
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine for as long as the cluster lives."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
