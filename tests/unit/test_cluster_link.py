"""Writes between two nodes, and what is told of them when the connection fails: links against sessions, without sockets."""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from tocsin.cluster.channel import PeerUnreachable
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.link import PeerLink
from tocsin.cluster.session import PeerSession
from tocsin.cluster.wire import Answer, Op, answer_of, encode, op_of, read_to_owner, result_of, write_of
from tocsin.model import errors
from tocsin.model.errors import (
    FieldError,
    InvalidInput,
    Overloaded,
    RequestExpired,
    ShardMoved,
    ShardUnavailable,
    TimerNotFound,
)
from tocsin.model.retry import RetryPolicy
from tocsin.model.timer import Changes, Timer
from tocsin.ports.forward import NodeReport, Owner, Write, WriteKind, Written
from tocsin.ports.observer import Event, WritesSent
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
    """One side's channel; frames wait in `sent` until `deliver` brings them over."""

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
    """The owner's shards: holds what it accepts; refuses another version than `version`."""

    def __init__(self, clock: FakeClock) -> None:
        self.version = 3
        self.accepted: list[tuple[Write, partial]] = []
        self._clock = clock

    def accept(self, write: Write, version: int | None, settle) -> None:
        if version != self.version:
            raise ShardMoved("another version")
        if write.deadline_us <= self._clock.boottime_us():
            raise RequestExpired("late")
        self.accepted.append((write, settle))


class Map:
    """Ownership as the asking node knows it."""

    incarnation = b"a" * 16

    def __init__(self) -> None:
        self.version = 3

    def owner(self, shard_id: int) -> Owner:
        return Owner(b"b" * 16, self.version, "there")

    def look(self) -> None:
        pass


class Pair:
    """An asking node and an owner, each with its own clock."""

    def __init__(self, **limits: int) -> None:
        self.limits = ClusterLimits(reconnect_interval_us=1, **limits)
        self.here, self.there = FakeClock(boottime_us=5 * SECOND), FakeClock(boottime_us=900 * SECOND)
        self.owned, self.map = Owned(self.there), Map()
        self.reachable = True
        self.dials = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.answers: dict[str, object] = {}
        self.events: list[Event] = []
        self.ours = self.theirs = Pipe()
        self.session: PeerSession | None = None
        self.link = PeerLink(
            b"b" * 16, "there", dial=self._dial, placement=self.map, clock=self.here, limits=self.limits,
            observe=self.events.append, spawn=self._spawn,
        )  # fmt: skip

    def _spawn(self, work) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _dial(self, incarnation: bytes, address: str, end) -> None:
        self.dials += 1
        if not self.reachable:
            raise PeerUnreachable("connection refused")
        self.ours, self.theirs = Pipe(), Pipe()
        if self.session is not None:
            self.session.void()
        self.session = PeerSession(
            self.theirs, local=self.owned, placement=self.map, report=lambda: NodeReport("1", True, None, False, []),
            serve=None, clock=self.there, limits=self.limits, spawn=self._spawn, ended=lambda session: None,
        )  # fmt: skip
        end.opened(self.ours)
        self.session.begin()

    def send(self, name: str, *, budget_us: int = 10 * SECOND) -> None:
        write = Write(WriteKind.CREATE, 1, name.encode(), "default", TIMER, None, self.here.boottime_us() + budget_us)
        self.link.send(write, 3, partial(self.answers.__setitem__, name))

    async def turn(self, *, to_owner: bool = True, to_asker: bool = True) -> None:
        """Everything gets its turn, and frames go over."""
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
        self.here.advance(microseconds)
        self.there.advance(microseconds)

    def end(self) -> None:
        self.link.close()
        if self.session is not None:
            self.session.void()


async def test_writes_that_come_together_travel_together_and_are_answered_one_by_one() -> None:
    pair = Pair()
    for name in ("a", "b", "c"):
        pair.send(name)
    await pair.turn(to_owner=False)
    frames = [read_to_owner(frame) for frame in pair.ours.sent]
    assert [len(frame.ops) for frame in frames] == [3]
    assert [event for event in pair.events if isinstance(event, WritesSent)] == [WritesSent(3)]
    await pair.turn()
    for write, settle in pair.owned.accepted:
        settle(Written(write.timer, 7) if write.uuid != b"b" else TimerNotFound("none"))
    await pair.turn()
    assert pair.answers["a"] == Written(TIMER, 7)
    assert isinstance(pair.answers["b"], TimerNotFound)
    assert pair.link.idle
    pair.end()


async def test_what_was_not_sent_may_go_elsewhere_at_once() -> None:
    pair = Pair()
    pair.reachable = False
    pair.send("a")
    await pair.turn()
    assert isinstance(pair.answers["a"], ShardMoved)
    pair.end()


async def test_an_unknown_outcome_is_told_once_the_shard_has_another_version() -> None:
    pair = Pair()
    pair.send("a")
    await pair.turn()
    pair.reachable = False
    pair.link.lost("broken")
    pair.link._watch()
    assert pair.answers == {}
    pair.map.version = 4
    pair.link._watch()
    assert type(pair.answers["a"]) is ShardUnavailable
    pair.end()


async def test_an_unknown_outcome_is_told_when_the_deadline_has_passed() -> None:
    pair = Pair()
    pair.send("a")
    await pair.turn()
    pair.reachable = False
    pair.link.lost("broken")
    pair.passes(10 * SECOND - 1)
    pair.link._watch()
    assert pair.answers == {}
    pair.passes(1)
    pair.link._watch()
    assert type(pair.answers["a"]) is ShardUnavailable
    pair.end()


async def test_an_unknown_outcome_is_told_when_a_new_connection_has_made_the_former_void() -> None:
    pair = Pair()
    pair.send("a")
    await pair.turn(to_owner=False)
    unread, former = pair.ours.sent, pair.session
    pair.link.lost("broken")
    assert pair.answers == {}
    await pair.turn()
    assert pair.dials == 2
    assert type(pair.answers["a"]) is ShardUnavailable
    assert former is not None
    for frame in unread:
        former.received(frame)
    assert pair.owned.accepted == []
    pair.end()


async def test_a_write_that_lay_unread_is_as_old_as_it_is() -> None:
    pair = Pair(message_age_max_us=2 * SECOND)
    pair.send("a", budget_us=4 * SECOND)
    pair.send("b", budget_us=1 * SECOND)
    await pair.turn(to_owner=False)
    pair.passes(1 * SECOND)
    await pair.turn()
    assert [(write.uuid, write.deadline_us) for write, _ in pair.owned.accepted] == [(b"a", 904 * SECOND)]
    assert isinstance(pair.answers["b"], RequestExpired)
    pair.send("c")
    await pair.turn(to_owner=False)
    pair.passes(2 * SECOND + 1)
    await pair.turn()
    assert isinstance(pair.answers["c"], ShardMoved)
    pair.end()


async def test_a_write_counts_once_and_in_the_version_that_it_names() -> None:
    pair = Pair()
    pair.send("a")
    await pair.turn(to_owner=False)
    pair.ours.sent *= 2
    await pair.turn()
    assert len(pair.owned.accepted) == 1
    pair.owned.version = 4
    pair.send("b")
    await pair.turn()
    assert isinstance(pair.answers["b"], ShardMoved)
    pair.end()


async def test_an_owner_that_leaves_says_what_it_has_not_looked_at() -> None:
    pair = Pair()
    pair.send("a")
    await pair.turn()
    pair.send("b")
    await pair.turn(to_owner=False)
    assert pair.session is not None
    assert not pair.session.quiet.is_set()
    pair.owned.accepted[0][1](Written(TIMER, 7))
    pair.reachable = False
    pair.session.leave()
    await pair.turn(to_owner=False)
    assert pair.answers["a"] == Written(TIMER, 7)
    assert isinstance(pair.answers["b"], ShardMoved)
    pair.end()


async def test_a_silent_connection_is_given_up() -> None:
    pair = Pair(silence_max_us=2 * SECOND)
    pair.send("a")
    await pair.turn()
    pair.reachable = False
    pair.passes(2 * SECOND + 1)
    pair.link._watch()
    assert not pair.ours.open
    pair.end()


async def test_what_waits_and_what_is_under_way_are_bounded() -> None:
    pair = Pair(queue_max=3, in_flight_max=2, frame_writes_max=1)
    for name in ("a", "b", "c"):
        pair.send(name)
    try:
        pair.send("d")
    except Overloaded as error:
        assert "queue_max" in str(error)
    else:
        raise AssertionError("a fourth was taken")
    await pair.turn()
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a", b"b"]
    pair.owned.accepted[0][1](None)
    await pair.turn()
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a", b"b", b"c"]
    pair.end()


def test_writes_and_answers_arrive_as_they_were() -> None:
    changes = Changes(execute_at=9, retry=None, payload=msgspec.Raw(b"[1]"))
    for write in (
        Write(WriteKind.CREATE, 3, b"u" * 16, "a", TIMER, None, 77),
        Write(WriteKind.UPDATE, 3, b"u" * 16, "a", None, changes, 77),
        Write(WriteKind.DELETE, 3, b"u" * 16, "a", None, None, 77),
    ):
        op = op_of(write, 1, 2, 5)
        assert isinstance(op, Op)
        came = write_of(op, 77)
        assert came._replace(timer=None, changes=None) == write._replace(timer=None, changes=None)
        assert (came.timer is None) == (write.timer is None)
        assert came.timer is None or came.timer == TIMER
        assert came.changes is None or (came.changes.execute_at, came.changes.retry) == (9, None)
    assert result_of(answer_of(1, None)) is None
    refused = result_of(answer_of(1, InvalidInput(FieldError("executeAt", "is too far away"))))
    assert isinstance(refused, InvalidInput)
    assert refused.errors == (FieldError("executeAt", "is too far away"),)
    for kind in (errors.TimerNotPending, errors.Overloaded, errors.ShardMoved, errors.RequestExpired):
        came_error = result_of(answer_of(1, kind("why")))
        assert (type(came_error), str(came_error)) == (kind, "why")


def test_an_error_of_a_later_release_decides_nothing() -> None:
    answer = answer_of(1, ShardUnavailable("x"))
    assert isinstance(answer, Answer)
    assert answer.failure is not None
    answer.failure.kind = "SomethingNew"
    assert type(result_of(answer)) is ShardUnavailable
    assert encode(read_to_owner(encode(read_to_owner(b"\x91\xa1l"))))
