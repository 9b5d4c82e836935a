"""What the parts of one node's engine share."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tocsin.engine.limits import EngineLimits
from tocsin.model.errors import OutcomeUnknown, StoreError
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
    #: When the latest successful reading of the namespaces was begun, in boot time: all of them are known at least as they
    #: were then. None: never.
    namespaces_as_of: int | None = None
    # Readings and changes of namespaces in the order in which they began, and from which of them each is known.
    _learned: int = 0
    _learned_from: dict[str, int] = field(default_factory=dict)
    # Shared readings: who reads, how many have begun, the number of the last that has ended, and how it failed.
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _begun: int = 0
    _ended: int = 0
    _failure: StoreError | None = None

    @property
    def share_timers(self) -> int:
        """How many timers one shard's window may have, at least 1."""
        return max(self.limits.window_timers_max // self.shards_owned, 1)

    @property
    def share_bytes(self) -> int:
        """How many bytes of stored records, at least 1."""
        return max(self.limits.window_bytes_max // self.shards_owned, 1)

    def lanes(self, total_shards: int) -> int:
        """How many commits may be in progress at once: `lanes`, or one per shard where each shard's batch is a transaction of
        its own, so that no shard waits for another."""
        return self.limits.lanes if self.store.capabilities.shards_together else total_shards

    @property
    def batch_rows_max(self) -> int:
        """Rows of one batch, by the limit and by what the store takes in one transaction."""
        return min(self.limits.batch_rows_max, self.store.capabilities.batch_rows_max or self.limits.batch_rows_max)

    @property
    def batch_bytes_max(self) -> int:
        """Bytes of one batch's records, likewise."""
        return min(self.limits.batch_bytes_max, self.store.capabilities.batch_bytes_max or self.limits.batch_bytes_max)

    @property
    def namespaces_until(self) -> int:
        """Until when this node may fire by what it knows of the namespaces, in boot time (rule 23)."""
        return 0 if self.namespaces_as_of is None else self.namespaces_as_of + self.limits.namespaces_lease_us

    async def read_namespaces(self) -> list[Namespace]:
        """All of them, as the store has them; raises what the store raises. What this node has learned otherwise since it
        asked, by a change of its own or a later reading, stays as it knows it: the answer may be of before."""
        self._learned += 1
        number, begun_at = self._learned, self.clock.boottime_us()
        listed = await self.bounded(self.store.namespaces())
        for namespace in listed:
            if self._learned_from.get(namespace.name, 0) < number:
                self._learned_from[namespace.name] = number
                self.namespaces[namespace.name] = namespace
        self.namespaces_as_of = max(begun_at, self.namespaces_as_of or begun_at)
        return listed

    async def refresh_namespaces(self) -> None:
        """Returns once they have been read by a reading begun after the call, which is shared by all who wait for one.
        Raises what the store raises."""
        asked = self._begun
        async with self._reading:
            if self._ended > asked:
                if self._failure is not None:
                    raise self._failure
                return
            self._begun += 1
            self._failure = None
            try:
                await self.read_namespaces()
            except StoreError as error:
                self._failure = error
            # Not reached by one that was given up: it has answered nobody.
            self._ended = self._begun
            if self._failure is not None:
                raise self._failure

    def knows_namespace(self, name: str, version: int) -> bool:
        """Whether it is known here, in that version or a later one."""
        known = self.namespaces.get(name)
        return known is not None and known.version >= version

    def changed_namespace(self, namespace: Namespace) -> None:
        """This node has written it."""
        if not self.knows_namespace(namespace.name, namespace.version + 1):
            self._learned += 1
            self._learned_from[namespace.name] = self._learned
            self.namespaces[namespace.name] = namespace

    async def in_turn(self, call: Awaitable[T]) -> T:
        """As `bounded`, for what each of a node's shards wants at once: few at a time, so that heartbeats, commits and reads
        of who owns what never wait behind hundreds of claims for a connection to the store."""
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
