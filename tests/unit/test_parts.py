"""Parts in the engine: what joins them, and what becomes of them when the store, a quota or a deadline is in the way.

That they have the effect of their operations is a property: `tests/properties/test_parts.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.support.cases import each
from tests.support.patience import PATIENCE_S
from tests.support.window_bench import OTHER, UUID, Bench
from tests.unit.test_forwarded_writes import DUE, Elsewhere, Node, timer

from tocsin.model.condition import Condition, CreateKey
from tocsin.model.errors import (
    DefiniteFailure,
    NamespaceNotFound,
    OutcomeUnknown,
    Overloaded,
    QuotaExceeded,
    RequestExpired,
    ShardMoved,
    ShardUnavailable,
    StoreUnavailable,
    Unavailable,
)
from tocsin.model.ids import timer_uuid
from tocsin.model.namespace import HistoryMode
from tocsin.model.quota import Room
from tocsin.model.timer import Timer, decode_record
from tocsin.ports.forward import Written
from tocsin.ports.store import Applied, ShardBatch
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine.assembly import Assembly
from tocsin.timers.engine.parts import JOINED_MAX, JOINED_WITHIN_US, Part
from tocsin.timers.engine.rows import Batch, OpKind, Row, WriteOp
from tocsin.timers.listing import TimerView


class Choosy(MemoryStore):
    """A store that waits while `let` is not set, and raises `error` for the batches in which `refused` finds a row."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.asked, self.let = asyncio.Event(), asyncio.Event()
        self.let.set()
        self.error: Exception | None = None
        self.refused = ""
        self.sizes: list[int] = []

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        names = [row.timer_id for batch in batches for row in batch.upserts]
        self.asked.set()
        await self.let.wait()
        self.sizes.append(len(names))
        if self.error is not None and self.refused in names:
            raise self.error
        return await super().apply(batches)

    def ids(self) -> list[str]:
        """The ids of the timers that are stored."""
        return sorted(row.timer_id for shard in self._shards.values() for row in shard.live.values())


async def started(store: MemoryStore, **limits: int) -> Node:
    await store.open(1)
    node = Node(store, **limits)
    await node.start()
    return node


def named(*names: str) -> list[Timer]:
    return [timer(name) for name in names]


# ---------------------------------------------------------------------- in the queue


def test_creates_that_arrive_together_are_one_part() -> None:
    bench = Bench()
    bench.create_together((10, UUID), deadline_us=100)
    bench.create_together((20, OTHER), (30, b"w" * 16), deadline_us=100 + JOINED_WITHIN_US)
    (part,) = bench.window.pending
    assert isinstance(part, Part)
    assert (len(part), part.deadline_us) == (3, 100)
    batch = bench.assemble()
    assert (batch.ops, batch.writes) == ([], 3)
    bench.commit(batch)
    assert [answer.key for answer in bench.answers] == [(10, UUID), (20, OTHER), (30, b"w" * 16)]
    assert [row.generation for row in bench.stored().values()] == [answer.generation for answer in bench.answers]
    assert sorted(decode_record(row.record).firing for row in bench.stored().values()) == ["1-1", "1-2", "1-3"]


@each("deadline_us", [99, 101 + JOINED_WITHIN_US, None])
def test_creates_with_another_deadline_are_another_part(deadline_us: int | None) -> None:
    """None is written later than it may be, and none is refused much earlier than it has to be."""
    bench = Bench()
    bench.create_together((10, UUID), deadline_us=100)
    bench.create_together((20, OTHER), deadline_us=deadline_us)
    assert [len(part) for part in bench.window.pending if isinstance(part, Part)] == [1, 1]


def test_creates_after_another_operation_are_another_part() -> None:
    bench = Bench()
    bench.create_together((10, UUID))
    bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n", completion=bench.answered))
    bench.create_together((20, UUID))
    bench.commit(bench.assemble())
    assert bench.stored()[UUID].execute_at == 20


def test_creates_after_a_generation_that_was_given_meanwhile_are_another_part() -> None:
    """A batch that is assembled gives generations to its notifications, while parts wait for the next one."""
    bench = Bench()
    bench.create_together((10, UUID))
    between = bench.window.queue.next_generation()
    bench.create_together((20, OTHER))
    bench.commit(bench.assemble())
    assert sorted([between, *(row.generation for row in bench.stored().values())])[1] == between
    assert len({between, *(row.generation for row in bench.stored().values())}) == 3


def test_a_part_has_a_size_that_no_further_request_exceeds() -> None:
    bench = Bench()
    many = [(10, number.to_bytes(16, "big")) for number in range(JOINED_MAX)]
    bench.create_together(*many)
    bench.create_together((10, UUID))
    assert [len(part) for part in bench.window.pending if isinstance(part, Part)] == [JOINED_MAX, 1]


def test_of_two_creates_of_one_id_in_a_part_the_later_counts() -> None:
    bench = Bench()
    bench.create_together((20, UUID), (10, UUID))
    bench.commit(bench.assemble())
    assert [answer.key[0] for answer in bench.answers] == [20, 10]
    assert (bench.stored()[UUID].execute_at, bench.window.next_key()) == (10, (10, UUID))
    assert not bench.window.queue.superseding


def test_a_timer_that_is_created_again_beyond_the_horizon_leaves_the_window() -> None:
    bench = Bench()
    bench.created(10)
    assert UUID in bench.window.rows
    later = bench.window.horizon[0] + 1
    bench.create_together((later, UUID))
    bench.commit(bench.assemble())
    assert bench.stored()[UUID].execute_at == later
    assert UUID not in bench.window.rows
    assert bench.window.due(later) is None


def test_an_attempt_that_ends_while_its_timers_create_waits_decides_nothing() -> None:
    bench = Bench()
    bench.created(10)
    bench.fire()
    bench.create_together((50, UUID))
    assert not bench.finish()
    bench.commit(bench.assemble())
    assert (bench.window.next_key(), bench.stored()[UUID].execute_at) == ((50, UUID), 50)


def test_an_attempt_decides_again_when_the_part_with_its_timer_is_refused() -> None:
    bench = Bench()
    bench.created(10)
    bench.fire()
    bench.create_together((50, UUID), (60, OTHER))
    assert not bench.finish()
    bench.window.refuse_clients(Unavailable("no"), 0)
    assert UUID in bench.window.finished
    assert [type(answer) for answer in bench.answers[1:]] == [Unavailable, Unavailable]


def test_a_part_that_was_refused_with_its_batch_goes_on_as_operations_in_its_place() -> None:
    bench = Bench()
    bench.window.accept(WriteOp(OpKind.DELETE, OTHER, "n", completion=bench.answered))
    bench.create_together((10, UUID), (20, OTHER))
    bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n", completion=bench.answered))
    batch = bench.assemble()
    generations = [row.generation for row in batch.parts[0].rows]
    bench.window.abandon(batch)
    ops = [entry for entry in bench.window.pending if isinstance(entry, WriteOp)]
    assert [op.kind for op in ops] == [OpKind.DELETE, OpKind.CREATE, OpKind.CREATE, OpKind.DELETE]
    assert [op.generation for op in ops[1:3]] == generations
    bench.commit(bench.assemble())
    assert bench.stored().keys() == {OTHER}


# ---------------------------------------------------------------------- each by itself


def _assembled(bench: Bench, room: Room | None = None, refused: Exception | None = None) -> Batch:
    assembly = Assembly(
        bench.window, now_us=0, boot_us=0, history_rule=lambda _: (HistoryMode.ALL, 1), failure_retention_us=1,
        refusal_of=lambda namespace: refused,  # type: ignore[arg-type, return-value]
    )  # fmt: skip
    if room is not None:
        assembly.room_for = lambda namespace: room
    batch = assembly.batch(rows_max=100, bytes_max=10_000, finished_max=0, exact_after_us=0)
    bench.commit(batch)
    return batch


def test_a_quota_refuses_only_the_creates_for_which_it_has_no_room() -> None:
    bench = Bench()
    bench.create_together((10, UUID), (20, OTHER), (30, b"w" * 16))
    assert _assembled(bench, Room(2, 2)).creates == {"n": 2}
    assert [type(answer) for answer in bench.answers] == [Row, Row, QuotaExceeded]
    assert bench.stored().keys() == {UUID, OTHER}


def test_a_part_for_which_a_quota_has_room_is_written_as_a_whole() -> None:
    bench = Bench()
    bench.create_together((10, UUID), (20, OTHER), deadline_us=10)
    bench.create_together((30, b"w" * 16))
    batch = _assembled(bench, Room(3, 3))
    assert ([len(part) for part, _, _ in batch.parts], batch.creates) == ([2, 1], {"n": 3})
    assert bench.stored().keys() == {UUID, OTHER, b"w" * 16}


def test_parts_of_one_batch_share_what_is_left_of_a_quota() -> None:
    bench = Bench()
    bench.create_together((10, UUID), deadline_us=10)
    bench.create_together((20, OTHER), (30, b"w" * 16))
    assert _assembled(bench, Room(2, 2)).creates == {"n": 2}
    assert [type(answer) for answer in bench.answers] == [Row, Row, QuotaExceeded]


def test_nothing_is_created_in_a_namespace_that_is_being_deleted() -> None:
    bench = Bench()
    bench.create_together((10, UUID), (20, OTHER))
    _assembled(bench, refused=NamespaceNotFound("gone"))
    assert [type(answer) for answer in bench.answers] == [NamespaceNotFound, NamespaceNotFound]
    assert not bench.stored()


# ---------------------------------------------------------------------- commits


async def test_a_row_that_the_store_refuses_refuses_no_other_of_its_part() -> None:
    store = Choosy()
    node = await started(store)
    store.error, store.refused = DefiniteFailure("not this one"), "b"
    outcomes = await node.service.create_many(named("a", "b", "c", "d", "e"))
    assert [type(outcome) for outcome in outcomes] == [TimerView, DefiniteFailure, TimerView, TimerView, TimerView]
    assert store.ids() == ["a", "c", "d", "e"]
    assert (store.sizes[0], node.service.writes_waiting) == (5, 0)
    await node.supervisor.close()


async def test_all_of_a_part_is_refused_while_the_store_takes_no_writes() -> None:
    store = Choosy()
    node = await started(store)
    store.error, store.refused = StoreUnavailable("away"), "a"
    outcomes = await node.service.create_many(named("a", "b"))
    assert [type(outcome) for outcome in outcomes] == [Unavailable, Unavailable]
    store.error = None
    assert isinstance(await node.service.create(timer("a")), TimerView)
    assert (store.ids(), node.service.writes_waiting) == (["a"], 0)
    await node.supervisor.close()


async def test_an_unknown_outcome_of_a_part_ends_the_claim() -> None:
    store = Choosy()
    node = await started(store)
    epoch = node.supervisor.shards[0].window.epoch  # type: ignore[union-attr]
    store.error, store.refused = OutcomeUnknown("who knows"), "a"
    node.owned.clear()
    outcomes = await node.service.create_many(named("a", "b"))
    assert [type(outcome) for outcome in outcomes] == [ShardUnavailable, ShardUnavailable]
    store.error = None
    await asyncio.wait_for(node.owned.wait(), PATIENCE_S)
    assert node.supervisor.shards[0].window.epoch > epoch  # type: ignore[union-attr]
    assert isinstance(await node.service.create(timer("a")), TimerView)
    await node.supervisor.close()


async def test_clients_of_parts_get_an_error_in_time_when_the_store_does_not_respond() -> None:
    store = Choosy()
    node = await started(store, write_timeout_us=200_000)
    store.let.clear()
    store.asked.clear()
    under_way = asyncio.ensure_future(node.service.create_many(named("a", "b")))
    await store.asked.wait()
    behind = asyncio.ensure_future(node.service.create_many(named("c", "d")))
    assert [type(outcome) for outcome in await under_way] == [ShardUnavailable, ShardUnavailable]
    assert [type(outcome) for outcome in await behind] == [RequestExpired, RequestExpired]
    store.let.set()
    assert isinstance(await node.service.create(timer("e")), TimerView)
    assert (store.ids(), node.service.writes_waiting) == (["a", "b", "e"], 0)
    await node.supervisor.close()


async def test_a_part_that_was_answered_in_time_and_then_refused_is_not_written() -> None:
    store = Choosy()
    node = await started(store, write_timeout_us=200_000)
    store.let.clear()
    store.error, store.refused = DefiniteFailure("not now"), "a"
    outcomes = await node.service.create_many(named("a", "b"))
    assert [type(outcome) for outcome in outcomes] == [ShardUnavailable, ShardUnavailable]
    store.let.set()
    assert isinstance(await node.service.create(timer("c")), TimerView)
    assert store.ids() == ["c"]
    window = node.supervisor.shards[0].window
    assert window is not None
    assert not window.queue.superseding
    await node.supervisor.close()


async def test_a_claim_that_ends_moves_each_create_of_its_parts() -> None:
    """To the shard's next owner, which is another node here."""
    store = Choosy()
    node = await started(store)
    elsewhere = Elsewhere()
    elsewhere.answer = Written(timer("a"), DUE)
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    store.let.clear()
    store.asked.clear()
    first = asyncio.ensure_future(node.service.create(timer("first")))
    await store.asked.wait()
    batch = asyncio.ensure_future(node.service.create_many(named("a", "b")))
    single = asyncio.ensure_future(node.service.create(timer("c")))
    await asyncio.sleep(0)
    node.supervisor.shards[0].lose("test")
    assert all(isinstance(outcome, TimerView) and outcome.forwarded for outcome in [*await batch, await single])
    assert [(write.timer.id, write.timer.firing) for write in elsewhere.writes if write.timer] == [
        ("a", ""), ("b", ""), ("c", ""),
    ]  # fmt: skip
    store.let.set()
    await first
    assert node.service.writes_waiting == 0
    await node.supervisor.close()


async def test_creates_beyond_the_writes_that_may_wait_are_refused() -> None:
    store = Choosy()
    node = await started(store, pending_writes_max=3)
    outcomes = await node.service.create_many(named("a", "b", "c", "d"))
    assert [type(outcome) for outcome in outcomes] == [TimerView, TimerView, TimerView, Overloaded]
    assert (store.ids(), node.service.writes_waiting) == (["a", "b", "c"], 0)
    await node.supervisor.close()


async def test_creates_of_one_id_keep_their_order_whether_they_have_a_condition() -> None:
    store = Choosy()
    node = await started(store)
    timers = [timer("a") for _ in range(4)]
    for number, timer_ in enumerate(timers):
        timer_.execute_at += number
    keyed = Condition(key=CreateKey("k", "b"), first_try=True)
    outcomes = await node.service.create_many(timers, [None, keyed, None, None])
    assert [outcome.next_attempt_at for outcome in outcomes if isinstance(outcome, TimerView)] == [
        DUE, DUE + 1, DUE + 2, DUE + 3,
    ]  # fmt: skip
    (row,) = (await store.fetch(0, [timer_uuid("default", "a")])).values()
    assert row.live is not None
    assert row.live.execute_at == DUE + 3
    await node.supervisor.close()


async def test_creates_are_refused_where_no_node_can_be_asked() -> None:
    store = Choosy()
    node = await started(store)
    node.supervisor.shards[0].closed = True
    outcomes = await node.service.create_many(named("a", "b"))
    assert [type(outcome) for outcome in outcomes] == [ShardMoved, ShardMoved]
    assert (store.ids(), node.service.writes_waiting) == ([], 0)
    node.supervisor.shards[0].closed = False
    await node.supervisor.close()
