"""Writes of other nodes at their shard's owner, and a node's own writes for shards of other nodes."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Iterator, Mapping

import pytest
from tests.support.completions import Noted, complete
from tests.support.patience import PATIENCE_S

from tocsin.administration import NAMESPACES, put_namespace
from tocsin.model.errors import NamespaceNotFound, Overloaded, RequestExpired, ShardMoved, TimerNotPending
from tocsin.model.ids import timer_uuid
from tocsin.model.namespace import Namespace
from tocsin.model.timer import Timer, encode_record
from tocsin.ports.completion import Awaited
from tocsin.ports.forward import Write, WriteCompletion, WriteKind, Written
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.parts import Creates
from tocsin.timers.engine.rows import WriteOp
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.service import TimerService, TimerView

OWN = b"n" * 16
DUE = 4_000_000_000_000_000
LEASE_US = 600_000_000


class Silent:
    """A caller that is never used: no timer is due in these tests."""

    def destination(self, url: str) -> str:
        return url


class Elsewhere:
    """A forwarder whose answers the test sets."""

    def __init__(self) -> None:
        self.answer: object = ShardMoved("nobody")
        self.writes: list[Write] = []

    def forward(self, write: Write, completion: WriteCompletion) -> None:
        self.writes.append(write)
        complete(completion, self.answer)

    async def reports(self) -> dict[bytes, object]:
        return {}

    async def refresh_namespaces(self, nodes: Mapping[bytes, str]) -> set[bytes]:
        return set(nodes)


class Node:
    """A node on a shared store. Its lease outlasts every stall of a busy machine."""

    def __init__(self, store: MemoryStore, shards: int = 1, **limits: int) -> None:
        self.clock = SystemClock()
        self.context = Context(
            store=store, caller=Silent(), clock=self.clock, limits=EngineLimits(**{"node_lease_us": LEASE_US} | limits),
            observe=lambda event: None, random=random.Random(1), incarnation=OWN,
        )  # fmt: skip
        self.supervisor = Supervisor(self.context, node="n", address="", total_shards=shards, fatal=self._fatal)
        self.service = TimerService(self.context, self.supervisor, namespace_num_shards=shards, retention_us=10**12)
        self.owned = asyncio.Event()
        self.supervisor.placement.watch(
            lambda: self.owned.set() if all(self.supervisor.shards[each].window for each in range(shards)) else None
        )

    def _fatal(self, error: BaseException) -> None:
        raise error

    async def start(self) -> None:
        """Returns when it owns all shards of its store, which is open, and there is a namespace."""
        await self.service.namespaces.ensure_default()
        await self.supervisor.start()
        await asyncio.wait_for(self.owned.wait(), PATIENCE_S)

    def write(self, *, deadline_us: int | None = None) -> Write:
        deadline = self.clock.boottime_us() + 10_000_000 if deadline_us is None else deadline_us
        return Write(WriteKind.CREATE, 0, b"u" * 16, "default", timer("t"), None, deadline)

    async def ask(self, epoch: int | None) -> object:
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.service.accept(self.write(), epoch, Noted(answer.set_result))
        return await answer


def timer(name: str, namespace: str = "default") -> Timer:
    return Timer(namespace, name, DUE, "http://x/", 1, 1)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    store = MemoryStore(SystemClock())
    await store.open(1)
    made = Node(store)
    await made.start()
    yield made
    await made.supervisor.close()


async def test_forwarded_write_is_accepted_only_in_its_epoch(node: Node) -> None:
    epoch = node.supervisor.shards[0].window.epoch  # type: ignore[union-attr]
    for other in (epoch - 1, epoch + 1):
        with pytest.raises(ShardMoved):
            await node.ask(other)
    for named in (epoch, None):
        answer = await node.ask(named)
        assert isinstance(answer, Written)
        assert (answer.timer.id, answer.next_attempt_at) == ("t", DUE)
    assert node.service.writes_waiting == 0


async def test_late_or_misdirected_forwarded_write_is_refused(node: Node) -> None:
    with pytest.raises(RequestExpired):
        node.service.accept(node.write(deadline_us=node.clock.boottime_us()), None, Noted(print))
    with pytest.raises(ShardMoved):
        node.service.accept(node.write()._replace(shard_id=7), None, Noted(print))


async def test_write_for_a_shard_of_another_node_is_forwarded(node: Node) -> None:
    elsewhere = Elsewhere()
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    assert (await node.service.create(timer("here"))).timer.id == "here"
    assert elsewhere.writes == []
    node.supervisor.shards[0].closed = True
    elsewhere.answer = Written(timer("there"), DUE)
    view = await node.service.create(timer("there"))
    assert (view.timer.id, view.next_attempt_at) == ("there", DUE)
    elsewhere.answer = TimerNotPending("gone")
    with pytest.raises(TimerNotPending):
        await node.service.delete("default", "there")
    elsewhere.answer = None
    await node.service.delete("default", "there")
    assert [write.kind for write in elsewhere.writes] == [WriteKind.CREATE, WriteKind.DELETE, WriteKind.DELETE]
    assert node.service.writes_waiting == 0
    node.supervisor.shards[0].closed = False


async def test_accepted_write_is_forwarded_after_the_claim_is_lost(node: Node) -> None:
    elsewhere = Elsewhere()
    elsewhere.answer = Written(timer("t"), DUE)
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    creating = asyncio.ensure_future(node.service.create(timer("t")))
    await asyncio.sleep(0)
    node.supervisor.shards[0].lose("fenced")
    assert (await creating).timer.id == "t"
    assert [write.timer.firing for write in elsewhere.writes if write.timer] == [""]


async def test_write_is_not_begun_after_its_deadline(node: Node) -> None:
    waiting: list[tuple[Write, WriteCompletion]] = []
    elsewhere = Elsewhere()
    elsewhere.forward = lambda *forwarded: waiting.append(forwarded)  # type: ignore[method-assign]
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    node.supervisor.shards[0].closed = True
    creating = asyncio.ensure_future(node.service.create(timer("t")))
    await asyncio.sleep(0)
    creating.cancel()
    node.supervisor.shards[0].closed = False
    ((write, completion),) = waiting
    assert write.deadline_us - node.clock.boottime_us() <= node.context.limits.write_timeout_us
    answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    node.service.accept(write, None, Noted(answer.set_result))
    assert isinstance(await answer, Written)
    with pytest.raises(RequestExpired):
        node.service.accept(write._replace(deadline_us=node.clock.boottime_us()), None, completion)
    completion.refuse(RequestExpired("late"))
    assert node.service.writes_waiting == 0


async def test_node_without_recent_heartbeat_neither_accepts_nor_forwards_writes(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Elsewhere()
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    monkeypatch.setattr(node.supervisor.lease, "_last_ok", node.clock.boottime_us() - node.context.limits.node_lease_us)
    with pytest.raises(ShardMoved):
        await node.service.create(timer("t"))
    assert elsewhere.writes == []


async def test_unknown_namespace_is_read_once_for_all_waiting_requests(node: Node) -> None:
    reads = 0
    read = node.context.store.records_versions

    async def counted(*kinds: str, urgent: bool) -> tuple[int, ...]:
        nonlocal reads
        reads += NAMESPACES in kinds
        await asyncio.sleep(0)
        return await read(*kinds, urgent=urgent)

    node.context.store.records_versions = counted  # type: ignore[method-assign]
    await put_namespace(node.context.store, Namespace("new", 1, 0, 0), create=True)
    views = await asyncio.gather(*(node.service.create(timer(f"t{number}", "new")) for number in range(20)))
    assert len(views) == 20
    assert reads <= 2
    settled: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    node.service.create_for(Noted(settled.set_result), timer("t", "none"))
    assert isinstance(await settled, NamespaceNotFound)


async def test_creates_of_one_turn_of_the_event_loop_go_on_together(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard, together = node.supervisor.shards[0], list[int]()
    accept = shard.accept_creates

    def noted(creates: Creates, deadline_us: int) -> None:
        together.append(len(creates.uuids))
        accept(creates, deadline_us)

    monkeypatch.setattr(shard, "accept_creates", noted)
    for turn in (["a", "b", "a"], ["c"]):
        created = [Awaited[TimerView | bytes | None]() for _ in turn]
        for client, name in zip(created, turn, strict=True):
            node.service.create_for(client, timer(name))
        views = [await client for client in created]
        assert [view.timer.id for view in views if isinstance(view, TimerView)] == turn
    assert together == [3, 1]
    assert node.service.writes_waiting == 0


class Unanswerable:
    """A create that a codec has made, and of which it can't make the answer."""

    traceparent: str | None = None
    firing = ""
    keys = ()

    def __init__(self, timer: Timer) -> None:
        self.namespace, self.id, self.execute_at = timer.namespace, timer.id, timer.execute_at
        self.uuid = timer_uuid(timer.namespace, timer.id)
        self._timer = timer

    def record(self) -> bytes:
        return encode_record(self._timer)

    def answer(self, shard_id: int) -> bytes:
        raise LookupError("a defect")


async def test_a_create_without_an_answer_fails_and_is_counted_once(node: Node) -> None:
    created = [Awaited[TimerView | bytes | None]() for _ in range(3)]
    node.service.create_for(created[0], timer("a"))
    node.service.create_for(created[1], Unanswerable(timer("b")))
    node.service.create_for(created[2], timer("c"))
    first, *others = await asyncio.gather(*map(awaited, created), return_exceptions=True)
    assert isinstance(first, TimerView)
    assert [type(other) for other in others] == [LookupError] * 2
    assert node.service.writes_waiting == 0


async def awaited(each: Awaited[TimerView | bytes | None]) -> object:
    return await each


async def test_each_create_of_a_turn_goes_to_the_owner_of_its_shard(node: Node) -> None:
    elsewhere = Elsewhere()
    elsewhere.answer = ShardMoved("nobody")
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    node.supervisor.shards[0].closed = True
    outcomes: list[object] = []
    for name in ("a", "b", "c"):
        node.service.create_for(Noted(outcomes.append), timer(name))
    await asyncio.sleep(0)
    assert [write.timer.id for write in elsewhere.writes if write.timer is not None] == ["a", "b", "c"]
    assert [type(outcome) for outcome in outcomes] == [ShardMoved] * 3
    assert node.service.writes_waiting == 0


async def test_client_of_a_create_that_fails_unexpectedly_gets_the_exception(node: Node) -> None:
    async def broken(*kinds: str, urgent: bool) -> tuple[int, ...]:
        raise LookupError("a defect")

    node.context.store.records_versions = broken  # type: ignore[method-assign]
    created: Awaited[TimerView | None] = Awaited()
    node.service.create_for(created, timer("t", "unknown"))
    with pytest.raises(LookupError):
        await created


async def test_client_of_a_write_that_cannot_be_forwarded_gets_the_exception(node: Node) -> None:
    def broken(write: Write, completion: WriteCompletion) -> None:
        raise LookupError("a defect")

    elsewhere = Elsewhere()
    elsewhere.forward = broken  # type: ignore[method-assign]
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    node.supervisor.shards[0].closed = True
    with pytest.raises(LookupError):
        await node.service.create(timer("t"))
    assert node.service.writes_waiting == 0


async def test_too_many_forwarded_writes_are_refused(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node.service._writes, "waiting", node.context.limits.pending_writes_max)
    with pytest.raises(Overloaded):
        node.service.accept(node.write(), None, Noted(print))


async def test_batch_beyond_the_room_for_writes_is_refused_in_part(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node.service._writes, "waiting", node.context.limits.pending_writes_max - 2)
    outcomes = await node.service.create_many([timer(f"t{number}") for number in range(3)])
    assert [isinstance(outcome, Overloaded) for outcome in outcomes] == [False, False, True]
    assert node.service.writes_waiting == node.context.limits.pending_writes_max - 2


def ops_in_circles() -> int:
    """Operations kept alive only by reference cycles, which the garbage collector has to free in growing pauses."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return sum(isinstance(each, WriteOp) for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


@pytest.fixture
def uncollected() -> Iterator[None]:
    """The test finds what it has left for the garbage collector, and nothing from before."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
async def test_answered_write_is_freed_at_once(node: Node) -> None:
    await node.service.create_many([timer(f"many-{number}") for number in range(50)])
    await node.service.create(timer("one"))
    await node.service.delete("default", "one")
    assert ops_in_circles() == 0


async def refused(node: Node) -> None:
    answers = await node.service.create_many([timer(f"many-{number}") for number in range(50)])
    assert all(isinstance(answer, ShardMoved) for answer in answers)


@pytest.mark.usefixtures("uncollected")
async def test_refused_write_is_freed_at_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node.supervisor.lease, "_last_ok", node.clock.boottime_us() - LEASE_US)
    await refused(node)
    assert ops_in_circles() == 0


@pytest.mark.usefixtures("uncollected")
async def test_answered_forwarded_write_is_freed_at_once(node: Node) -> None:
    elsewhere = Elsewhere()
    elsewhere.answer = ShardMoved("nobody")
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    node.supervisor.shards[0].closed = True
    await refused(node)
    assert ops_in_circles() == 0
