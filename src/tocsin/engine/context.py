"""What the parts of one node's engine share."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tocsin.engine.limits import EngineLimits
from tocsin.model.errors import OutcomeUnknown
from tocsin.model.namespace import RETENTION_DEFAULT_US, HistoryMode, Namespace
from tocsin.ports.callback import Caller
from tocsin.ports.clock import Clock
from tocsin.ports.observer import Event
from tocsin.ports.store import Store

T = TypeVar("T")

#: Claims, loads, sweeps and releases under way on a node. More than stores have connections for them would queue there, and
#: heartbeats behind them.
SHARD_CALLS_MAX = 8


@dataclass(slots=True)
class Context:
    """Ports, limits, and the namespaces as last read. Time, randomness and ids come only from here."""

    store: Store
    caller: Caller
    clock: Clock
    limits: EngineLimits
    observe: Callable[[Event], None]
    random: random.Random
    incarnation: bytes
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    #: Told at heartbeats what time it is, wall clock and boot time clock of one moment: by this node's clock while that is
    #: near enough to the store's, else, before it ever was, by the store's. For whoever else goes by a clock here; what
    #: rings doesn't, and waits (rule 12).
    confirm_time: Callable[[int, int], None] = field(default=lambda now_us, boot_us: None)
    #: What the node's windows hold, all shards together.
    window_timers: int = 0
    window_bytes: int = 0
    #: How many shards the node owns (at least 1), for their fair share of the window.
    shards_owned: int = 1
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SHARD_CALLS_MAX))
    # How often this node has changed a namespace, and which one with which of these changes.
    _changes: int = 0
    _changed: dict[str, int] = field(default_factory=dict)

    async def read_namespaces(self) -> list[Namespace]:
        """All of them, as the store has them; raises what the store raises. What this node has changed since it asked stays
        as it knows it: the answer may be of before."""
        asked = self._changes
        listed = await self.bounded(self.store.namespaces())
        for namespace in listed:
            if self._changed.get(namespace.name, 0) <= asked:
                self.namespaces[namespace.name] = namespace
        return listed

    def changed_namespace(self, namespace: Namespace) -> None:
        """This node has written it."""
        self._changes += 1
        self._changed[namespace.name] = self._changes
        self.namespaces[namespace.name] = namespace

    async def in_turn(self, call: Awaitable[T]) -> T:
        """The same, for what each of a node's shards wants at once: few at a time, so that heartbeats, commits and reads of
        who owns what never wait behind hundreds of claims for a connection to the store."""
        async with self._turns:
            return await self.bounded(call)

    async def bounded(self, call: Awaitable[T]) -> T:
        """The store call's result; OutcomeUnknown once it has taken longer than `store_timeout`."""
        try:
            # Not wait_for: it swallows a cancellation that meets the call's end, and costs a task.
            async with asyncio.timeout(self.limits.store_timeout_us / 1e6):
                return await call
        except TimeoutError:
            raise OutcomeUnknown("the store did not answer in time") from None

    def history_rule(self, namespace: str) -> tuple[HistoryMode, int]:
        """Whether and how long finished timers of the namespace stay visible."""
        known = self.namespaces.get(namespace)
        return (known.history, known.retention_us) if known else (HistoryMode.ALL, RETENTION_DEFAULT_US)
