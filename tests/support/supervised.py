"""A supervisor that tests step by hand, on a fake clock and a shared store."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from tocsin.model.errors import StoreUnavailable
from tocsin.ports.observer import Event
from tocsin.ports.store import Applied, Member, ShardBatch, ShardState
from tocsin.stores.memory import MemoryStore
from tocsin.testing.clock import FakeClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.supervisor import Supervisor

SECOND = 1_000_000
OWN, OTHER, THIRD = b"n" * 16, b"o" * 16, b"t" * 16


class Silent:
    """A caller that is never used: no timer is due in these tests."""

    def destination(self, url: str) -> str:
        return url


class SharedStore(MemoryStore):
    """A store that can be unreachable, and in which other nodes act at a given moment."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.down = False
        self.after_shards: Callable[[], Awaitable[object]] | None = None
        self.after_members: Callable[[], Awaitable[object]] | None = None
        self.releases = asyncio.Event()
        self.releases.set()
        self.applies, self.applying = asyncio.Event(), asyncio.Event()
        self.applies.set()
        self.claims: list[tuple[int, tuple[bytes, int] | None]] = []

    async def heartbeat(self, member: Member) -> int:
        if self.down and member.incarnation == OWN:
            raise StoreUnavailable("out of reach")
        return await super().heartbeat(member)

    async def shards(self) -> list[ShardState]:
        rows = await super().shards()
        if self.after_shards is not None:
            after, self.after_shards = self.after_shards, None
            await after()
        return rows

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        await self.releases.wait()
        return await super().release(shard_id, epoch=epoch, owner=owner)

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        self.applying.set()
        await self.applies.wait()
        return await super().apply(batches)

    async def members(self) -> list[Member]:
        rows = await super().members()
        if self.after_members is not None:
            await self.after_members()
        return rows

    async def claim(self, shard_id, *, expected_epoch, owner, presumed_dead=None) -> int | None:
        if owner == OWN:
            self.claims.append((shard_id, presumed_dead))
        return await super().claim(shard_id, expected_epoch=expected_epoch, owner=owner, presumed_dead=presumed_dead)


class Node:
    """A supervisor that the test steps second by second."""

    def __init__(self, *, shards: int = 4, store_clock: FakeClock | None = None) -> None:
        self.clock = FakeClock(boottime_us=1_000 * SECOND)
        self._clocks = {self.clock, store_clock or self.clock}
        self.store = SharedStore(store_clock or self.clock)
        self.events: list[Event] = []
        self.context = Context(
            store=self.store, caller=Silent(), clock=self.clock, limits=EngineLimits(), observe=self.events.append,
            random=random.Random(1), incarnation=OWN,
        )  # fmt: skip
        self.supervisor = Supervisor(self.context, node="n", address="n:1", total_shards=shards, fatal=self._fatal)
        self._others: dict[bytes, int] = {}

    def _fatal(self, error: BaseException) -> None:
        raise error

    @property
    def owned(self) -> set[int]:
        return {shard.shard_id for shard in self.supervisor.shards.values() if shard.window is not None}

    async def beat_of(self, incarnation: bytes, name: str = "o") -> None:
        """Writes another member's heartbeat."""
        count = self._others[incarnation] = self._others.get(incarnation, 0) + 1
        await self.store.heartbeat(Member(incarnation, name, f"{name}:1", count))

    async def seconds(self, count: int, *, alive: tuple[bytes, ...] = (), stops: bool = False) -> None:
        """Lets seconds pass, with heartbeats of the given other members, and of this node unless it is stopped."""
        for _ in range(count):
            for clock in self._clocks:
                clock.advance(SECOND)
            for incarnation in alive:
                await self.beat_of(incarnation)
            if not stops:
                await self.step()

    async def step(self) -> None:
        """Runs one second's supervision."""
        await self.supervisor.lease.beat_or_report()
        await self.supervisor.supervise()
        while self.supervisor._tasks:
            await asyncio.wait(set(self.supervisor._tasks))
