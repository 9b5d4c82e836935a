"""A requesting node and an owner, each with its own clock, with links and sessions but without sockets."""

from __future__ import annotations

import asyncio
from copy import copy
from dataclasses import dataclass, field
from functools import partial

import msgspec

from tests.support.completions import Noted
from tocsin.cluster import wire
from tocsin.cluster.channel import PeerUnreachable, ThisNode
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.link import PeerLink
from tocsin.cluster.session import PeerSession
from tocsin.cluster.wire import RelayedRequest, RelayedResponse
from tocsin.model.errors import RequestExpired, ShardMoved
from tocsin.model.retry import RetryPolicy
from tocsin.model.timer import Timer
from tocsin.ports.forward import (
    FlowCounts,
    Located,
    NodeReport,
    Owner,
    RowPlace,
    Whereabouts,
    Write,
    WriteCompletion,
    WriteKind,
)
from tocsin.ports.observer import Event
from tocsin.testing.clock import FakeClock

SECOND = 1_000_000
TIMER = Timer(
    "default",
    "t",
    5,
    "http://x/",
    1,
    2,
    payload=msgspec.Raw(b'{"a": 1}'),
    retry=RetryPolicy(max_attempts=3),
    tags=("x",),
)


class Pipe:
    """One side's channel; frames wait in `sent` until `deliver` transfers them."""

    def __init__(self) -> None:
        self.congested = False
        self.sent: list[bytes] = []
        self.open = True

    def send(self, payload: bytes) -> None:
        if self.open:
            self.sent.append(payload)

    def close(self) -> None:
        self.open = False

    def abort(self) -> None:
        self.open = False


class Owned:
    """The owner's shards: records what it accepts; refuses any epoch other than `epoch`."""

    def __init__(self, clock: FakeClock) -> None:
        self.epoch = 3
        self.accepted: list[tuple[Write, WriteCompletion]] = []
        #: The namespaces that it knows, and those it knows after a refresh, once `reads` is set.
        self.namespace_version = self.stored_version = 1
        self.reads = asyncio.Event()
        self.reads.set()
        self._clock = clock

    def knows_namespace(self, name: str, version: int) -> bool:
        return self.namespace_version >= version

    async def refresh_namespaces(self) -> None:
        await self.reads.wait()
        self.namespace_version = self.stored_version

    def locate(self, timers: Located) -> list[Whereabouts | None]:
        return [Whereabouts(RowPlace.WINDOW) if shard_id == 1 else None for shard_id, _ in timers]

    def flow_counts(self, namespace: str) -> dict[str, FlowCounts]:
        return {"customer:": FlowCounts(1, 2)} if namespace == "default" else {}

    def accept(self, write: Write, epoch: int | None, completion: WriteCompletion) -> None:
        if epoch != self.epoch:
            raise ShardMoved("another epoch")
        if write.deadline_us <= self._clock.boottime_us():
            raise RequestExpired("late")
        self.accepted.append((write, completion))


class Map:
    """Ownership as the requesting node knows it."""

    incarnation = b"a" * 16

    def __init__(self) -> None:
        self.epoch = 3
        self.nobody = False

    def owner(self, shard_id: int) -> Owner | None:
        return None if self.nobody else Owner(b"b" * 16, self.epoch, "there")

    def refresh(self) -> None:
        pass


@dataclass
class Spawning(ThisNode):
    """Keeps the tasks that have ended."""

    ended: list[asyncio.Task[None]] = field(default_factory=list)

    def spawn(self, work) -> None:
        before = set(self.tasks)
        super().spawn(work)
        for task in self.tasks - before:
            task.add_done_callback(self.ended.append)


class Pair:
    """A requesting node and an owner, each with its own clock."""

    def __init__(self, **limits: int) -> None:
        self.limits = ClusterLimits(reconnect_interval_us=1, **limits)
        self.here, self.there = FakeClock(boottime_us=5 * SECOND), FakeClock(boottime_us=900 * SECOND)
        self.owned, self.map = Owned(self.there), Map()
        self.reachable = True
        self.reaches = asyncio.Event()
        self.reaches.set()
        self.dials = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.ended: list[asyncio.Task[None]] = []
        self.answers: dict[str, object] = {}
        self.events: list[Event] = []
        self.ours = self.theirs = Pipe()
        self.session: PeerSession | None = None
        #: What each reports about itself.
        self.report = NodeReport("1", True, None, False, [])
        #: The body of the owner's responses to relayed requests; None: serving fails.
        self.serves: bytes | None = b""
        self.link = PeerLink(b"b" * 16, "there", self._node(self.here), self._dial)

    def _node(self, clock: FakeClock) -> ThisNode:
        return Spawning(
            self.map, self.owned, lambda: self.report, clock, self.limits,
            self.events.append, self._serve, self.tasks, self.ended,
        )  # fmt: skip

    async def _serve(self, request: RelayedRequest) -> RelayedResponse:
        if self.serves is None:
            raise RuntimeError("a defect")
        return RelayedResponse(request.id, 200, [], self.serves)

    async def _dial(self, incarnation: bytes, address: str, end) -> None:
        self.dials += 1
        await self.reaches.wait()
        if not self.reachable:
            raise PeerUnreachable("connection refused")
        self.ours, self.theirs = Pipe(), Pipe()
        if self.session is not None:
            self.session.void()
        self.session = PeerSession(self.theirs, self._node(self.there), lambda session: None)
        end.opened(self.ours)
        self.session.begin()

    def write(self, name: str, *, budget_us: int = 10 * SECOND) -> Write:
        """A write for shard 1."""
        return Write(
            WriteKind.CREATE, 1, name.encode(), "default", copy(TIMER), None, self.here.boottime_us() + budget_us
        )

    def send(self, name: str, *, budget_us: int = 10 * SECOND) -> None:
        """Sends a write; its result is appended to `answers`."""
        self.link.send(self.write(name, budget_us=budget_us), 3, Noted(partial(self.answers.__setitem__, name)))

    async def meet(self) -> None:
        """Connects the nodes; both have just received a message."""
        self.link.notify(wire.OwnershipChanged())
        if self.session is not None:
            self.session._timer.cancel()  # type: ignore[union-attr]
            self.session._tick()
        await self.turn()

    async def turn(self, *, to_owner: bool = True, to_asker: bool = True) -> None:
        """Runs pending callbacks and transfers frames."""
        for _ in range(6):
            await asyncio.sleep(0)
            ours, theirs, session = self.ours, self.theirs, self.session
            if to_asker:
                frames, theirs.sent = theirs.sent, []
                for frame in frames:
                    self.link.received(frame)
            if to_owner and session is not None:
                frames, ours.sent = ours.sent, []
                for frame in frames:
                    session.received(frame)

    def passes(self, microseconds: int) -> None:
        """Advances both clocks."""
        self.here.advance(microseconds)
        self.there.advance(microseconds)

    def end(self) -> None:
        """Closes link and session."""
        self.link.close()
        if self.session is not None:
            self.session.void()
