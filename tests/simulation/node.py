"""A node of the simulation: the real supervisor with its own clock, link and receiver, which can crash and restart."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tests.support.simulation_loop import NODE
from tocsin.cluster.channel import ThisNode
from tocsin.cluster.cluster import Cluster
from tocsin.cluster.handshake import ClusterSecrets
from tocsin.model.errors import StoreError
from tocsin.ports.batches import BatchAccepted
from tocsin.ports.observer import (
    AttemptFinished,
    BatchCommitted,
    ClockOffset,
    DispatchResumed,
    Event,
    PageLoaded,
    ShardClaimed,
    WriteRefused,
)
from tocsin.telemetry.clock import ConfirmedClock
from tocsin.testing.clock import DriftingClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.shard import Shard
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.service import TimerService

from .link import Link
from .receiver import Receiver

if TYPE_CHECKING:
    from .world import World

T = TypeVar("T")
_QUIET = (ClockOffset, BatchCommitted, AttemptFinished, BatchAccepted, PageLoaded)


class NodeGone(Exception):
    """The node's process ended before it answered."""


class Node:
    """A simulated node. Its name stays; each start has a new incarnation."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.supervisor: Supervisor | None = None
        self.service: TimerService | None = None
        self.cluster: Cluster | None = None
        self.frozen = False
        self._world = world
        self._rng = world.rng(name)
        self._starts = 0
        offset_us = self._rng.randint(-300_000, 300_000) if world.faulty else self._rng.randint(-100, 100)
        drift_ppm = self._rng.randint(-200, 200) if world.faulty else 0
        self.clock = DriftingClock(
            world.true_us, offset_us=offset_us, boot_us=self._rng.randint(0, 10**9), drift_ppm=drift_ppm
        )
        self.link = Link(world.store, world.rng(name, "link"), world.rng(name, "link", "store"), self._record)
        self.receiver = self._new_receiver()
        self.context: Context | None = None
        self._boot: asyncio.Task[None] | None = None
        #: Requests that end with the process.
        self._asked: set[asyncio.Task[Any]] = set()

    def _record(self, *what: object) -> None:
        self._world.record(self.name, *what)

    def _observe(self, event: Event) -> None:
        if not isinstance(event, _QUIET):
            self._world.record(
                self.name,
                type(event).__name__,
                *(v.hex()[:6] if isinstance(v, bytes) else v for v in msgspec.structs.astuple(event)),
            )

        if isinstance(event, ShardClaimed | DispatchResumed):
            self._world.check_owners()
        if isinstance(event, WriteRefused):
            self._world.ledger.refused(event.uuid)

    def _new_receiver(self, incarnation: bytes = b"") -> Receiver:
        return Receiver(self._world, self, self._world.rng(self.name, "receiver", self._starts), incarnation)

    def inside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs a coroutine in the node's context, so that freezing the node stops it."""
        context = contextvars.copy_context()
        context.run(NODE.set, self.name)
        return self._world.loop.create_task(work, context=context)

    async def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a request at the node and returns its result. Raises NodeGone if the node's process ends meanwhile."""
        task = self.inside(work)
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        await asyncio.wait({task})
        if task.cancelled():
            raise NodeGone(self.name)
        return task.result()

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Starts a new incarnation; retries until the store is available."""
        self._boot = self.inside(self._start())

    async def _start(self) -> None:
        while True:
            self._starts += 1
            incarnation = self._rng.randbytes(16)
            self._record("start", incarnation.hex()[:4])
            self.receiver = self._new_receiver(incarnation)
            confirmed = ConfirmedClock(self.clock, self._world.limits.clock_skew_max_us)
            self.context = Context(
                store=self.link,  # type: ignore[arg-type]
                caller=self.receiver,
                clock=self.clock,
                confirm_time=confirmed.confirm,
                confirmed=confirmed,
                limits=self._world.limits,
                observe=self._observe,
                random=self._world.rng(self.name, "engine", self._starts),
                incarnation=incarnation,
            )
            supervisor = Supervisor(
                self.context,
                node=self.name,
                address=self.name,
                total_shards=self._world.total_shards,
                fatal=lambda error: self._world.broken("FATAL", f"{self.name}: {error!r}"),
            )
            service = self._connect(supervisor, incarnation)
            try:
                await supervisor.start()
            except StoreError as error:
                self._record("start failed", str(error))
                self._disconnect()
                await supervisor.kill()
                await asyncio.sleep(0.5)
                continue
            self.supervisor, self.service = supervisor, service
            return

    def _connect(self, supervisor: Supervisor, incarnation: bytes) -> TimerService:
        assert self.context is not None
        service = TimerService(self.context, supervisor, namespace_num_shards=1, retention_us=3_600_000_000)
        here = ThisNode(
            supervisor.placement, service, service.report, self.clock, self._world.cluster_limits, self._observe
        )
        self.cluster = Cluster(
            incarnation,
            here,
            secrets=ClusterSecrets(""),
            dial_with=self._world.network.dial_from(self, incarnation),
        )
        supervisor.placement.announce = self.cluster.announce
        service.connect(self.cluster.router, self.cluster)
        self._world.network.listen(self, self.cluster, incarnation)
        return service

    def _disconnect(self) -> None:
        cluster, self.cluster = self.cluster, None
        if cluster is not None:
            cluster.close()
        self._world.network.gone(self)

    async def crash(self) -> None:
        """Kills the process."""
        self._record("crash")
        self.thaw()
        self.receiver.connected = False
        if self._boot is not None and not self._boot.done():
            self._boot.cancel()
            await asyncio.wait({self._boot})
        self.service = None
        for task in list(self._asked):
            task.cancel()
        self._disconnect()
        supervisor, self.supervisor = self.supervisor, None
        if supervisor is not None:
            await self.inside(supervisor.kill())

    async def depart(self) -> None:
        """Stops the node like its process: first it finds out whether another one stays."""
        supervisor = self.supervisor
        if supervisor is not None:
            await self.inside(supervisor.leave())
            if not supervisor.has_successor():
                await self.inside(supervisor.drain())
        await self.close()

    async def close(self) -> None:
        """Stops the node gracefully."""
        self._record("close")
        self.thaw()
        if self._boot is not None:
            await asyncio.wait({self._boot})
        supervisor, self.service = self.supervisor, None
        if supervisor is not None:
            await self.inside(supervisor.close())
        if self.cluster is not None:
            await self.inside(self.cluster.leave(3_000_000))
        self._disconnect()
        self.supervisor = None
        self.receiver.connected = False

    def freeze(self) -> None:
        """Freezes the process while time advances."""
        self.frozen = True
        self._world.loop.freeze(self.name)

    def thaw(self) -> None:
        """Resumes the process."""
        if self.frozen:
            self.frozen = False
            self._world.loop.thaw(self.name)

    # ------------------------------------------------------------------ inspection

    def shard(self, shard_id: int) -> Shard | None:
        """The shard, if this node takes itself for its owner and is reachable."""
        if self.supervisor is None or self.frozen:
            return None
        shard = self.supervisor.shards[shard_id]
        return shard if shard.window is not None and not shard.draining else None

    def may_fire(self, shard_id: int) -> bool:
        """Whether the node would fire the shard's timers now, as soon as it runs."""
        if self.supervisor is None or self.supervisor.dispatcher.paused_reason is not None:
            return False
        shard = self.supervisor.shards[shard_id]
        return shard.window is not None and not shard.draining

    def leaks(self) -> Iterator[str]:
        """What a drained node has in memory and should not have."""
        if self.supervisor is None or self.context is None:
            return
        for shard in self.supervisor.shards.values():
            window = shard.window
            if window is None:
                continue
            for part in ("rows", "in_flight", "finished", "awaiting_write", "superseded", "retrying", "pending"):
                left = {
                    uuid: row for uuid, row in dict.fromkeys(getattr(window, part)).items() if part != "pending"
                } or (window.pending if part == "pending" else ())
                if left:
                    yield f"{self.name} shard {shard.shard_id}: {len(left)} {part}"
            if window._client_ops or window.waiting.bytes or window.in_flight_count:
                yield f"{self.name} shard {shard.shard_id}: accounts {window._client_ops} {window.waiting.bytes}"
        if self.context.window_timers or self.context.window_bytes:
            yield f"{self.name}: account of {self.context.window_timers} timers, {self.context.window_bytes} bytes"
        for account, left in self._accounts(self.supervisor):
            if left:
                yield f"{self.name}: {account}: {left}"

    def _accounts(self, supervisor: Supervisor) -> Iterator[tuple[str, object]]:
        dispatcher, admission = supervisor.dispatcher, supervisor.dispatcher.admission
        kinds = (admission.callbacks, admission.messages)
        yield (
            "callbacks in flight",
            dispatcher.in_flight or [each._in_flight_of for each in kinds if each._in_flight_of],
        )
        yield "timers that wait for a destination", dispatcher.waiting or admission._deferred
        yield "queues that wait for a turn", [*admission.callbacks.blocked, *admission.messages.blocked]
        yield (
            "shards that wait for a slot",
            [shard.shard_id for shard in (*dispatcher._starved, *dispatcher._continuing)],
        )
        # Idle destinations are remembered for a while.
        others = [
            path
            for each in admission.destinations.values()
            for path in each.paths.values()
            if path not in admission._idle
        ]
        yield "destinations", [(each.reason, each.limit, each.in_flight, each.waiting) for each in others]
        flows = [each for each in dispatcher.flows.rules.values() if each.usage.in_use or each.blocked]
        yield "rules in use", [each.name for each in flows]
        states = [state for each in dispatcher.flows.rules.values() for state in each.keys.values()]
        yield (
            "keys of flows in use",
            [each.reason for each in states if each.in_use or each.waiting or each.blocked],
        )
        yield (
            "attempts of former claims",
            [attempt for shard in supervisor.shards.values() for attempt in shard._orphaned],
        )
        yield "results on their way to another owner", supervisor.results.pending
        # One task for each lane, each periodic job and the looks at schedules, and up to two for each shard.
        most = len(supervisor.ownership.lanes) + 10 + 2 * supervisor.total_shards
        yield "tasks", len(supervisor._tasks) if len(supervisor._tasks) > most else 0
        if self.service is not None:
            yield "writes that wait for a batch", self.service.writes_waiting
        if self.cluster is not None:
            yield "writes that wait for an owner", self.cluster.router.waiting
            # One may be connecting: a shard released just now is announced to the others.
            waits = [link for link in self.cluster._links.values() if link._queue or link._in_flight]
            waits += [link for link in self.cluster._links.values() if link._in_doubt or link._asked]
            yield "links", [link.address for link in waits]
            yield "writes of other nodes", sum(each._in_flight for each in self.cluster._sessions.values())
