"""The timer service's use cases: what the API, the CLI's demo and (later) the agent call.

Everything here speaks in domain values; texts, statuses and JSON belong to `tocsin.api`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.model.errors import TocsinError
from tocsin.model.namespace import HistoryMode, Namespace
from tocsin.model.timer import Changes, Status, Timer


@dataclass(frozen=True, slots=True)
class TimerView:
    """A timer as a client sees it. `next_attempt_at` is the key's instant while it is pending, else None."""

    timer: Timer
    shard_id: int
    next_attempt_at: int | None


@dataclass(frozen=True, slots=True)
class ListRequest:
    """`execute_after` is inclusive, `execute_before` exclusive; `cursor` is a former answer's; empty `statuses` mean all."""

    namespace: str
    statuses: frozenset[Status] = frozenset()
    tags: tuple[str, ...] = ()
    id_prefix: str = ""
    execute_after: int | None = None
    execute_before: int | None = None
    limit: int = 100
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ShardView:
    """A shard as this node knows it; window figures only where the node owns it. `lag_us`: how long its oldest due
    timer has been waiting, 0 when none is due."""

    shard_id: int
    version: int
    owner: str | None
    owned_here: bool
    window_timers: int | None = None
    in_flight: int | None = None
    complete_to: int | None = None
    lag_us: int | None = None


@dataclass(frozen=True, slots=True)
class NodeView:
    """A member of the cluster."""

    node: str
    incarnation: str
    address: str
    alive: bool
    self: bool
    shards: int


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything `GET /cluster` shows."""

    total_shards: int
    nodes: list[NodeView]
    shards: list[ShardView]
    dispatching: bool
    dispatch_paused_reason: str | None


class TimerService:
    """Create, read, change and list timers and namespaces. All errors are `TocsinError`s."""

    async def create(self, timer: Timer) -> TimerView:
        """Stores the (validated) timer, replacing a pending one of the same id; durable when it returns.

        Raises InvalidInput, NamespaceNotFound, Unavailable.
        """
        raise NotImplementedError

    async def create_many(self, timers: Sequence[Timer]) -> list[TimerView | TocsinError]:
        """The same for many, in order; each fails alone."""
        raise NotImplementedError

    async def get(self, namespace: str, timer_id: str) -> TimerView:
        """The pending timer, or the most recent finished one; TimerNotFound, NamespaceNotFound."""
        raise NotImplementedError

    async def update(self, namespace: str, timer_id: str, changes: Changes) -> TimerView:
        """Changes a pending timer; TimerNotFound, TimerNotPending, InvalidInput, Unavailable."""
        raise NotImplementedError

    async def delete(self, namespace: str, timer_id: str) -> None:
        """Cancels a pending timer; TimerNotFound, TimerNotPending, Unavailable."""
        raise NotImplementedError

    async def namespaces(self) -> list[Namespace]:
        """All namespaces by name."""
        raise NotImplementedError

    async def create_namespace(
        self,
        name: str,
        *,
        num_shards: int | None = None,
        history: HistoryMode | None = None,
        retention_us: int | None = None,
        secret: str | None = None,
    ) -> Namespace:
        """NamespaceExists, InvalidInput."""
        raise NotImplementedError

    async def update_namespace(
        self,
        name: str,
        *,
        history: HistoryMode | None = None,
        retention_us: int | None = None,
        secret: str | None = None,
        remove_secret: bool = False,
        paused: bool | None = None,
    ) -> Namespace:
        """Changes what is not None; NamespaceNotFound, InvalidInput."""
        raise NotImplementedError

    async def cluster(self) -> ClusterView:
        """Nodes, shards, owners."""
        raise NotImplementedError

    def not_ready_because(self) -> list[str]:
        """Why the node should get no traffic now; empty when it is ready."""
        raise NotImplementedError

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, request: ListRequest) -> tuple[list[TimerView], str | None]:
        """A page in execute order, and the cursor of the next page if one may follow. InvalidInput for a bad cursor."""
        raise NotImplementedError
