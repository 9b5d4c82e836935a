"""One node's heartbeats, claims, node lease and releases, step by step, on a fake clock and a shared store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.support.cases import each
from tests.support.cluster import until
from tests.support.simulation_loop import SimulationLoop
from tests.support.supervised import OTHER, OWN, SECOND, THIRD, Node, SharedStore

from tocsin.model.namespace import Namespace
from tocsin.model.timer import Timer
from tocsin.ports.observer import BatchCommitted, BatchFailed, ClaimFailed
from tocsin.ports.store import Capabilities, Member, ShardBatch, ShardState, StoredRow
from tocsin.tasks import end_tasks
from tocsin.timers.engine.context import SHARD_CALLS_MAX
from tocsin.timers.engine.finished import Finished
from tocsin.timers.engine.rows import NextAttempt, OpKind, Row, WriteOp, decoded_row
from tocsin.timers.engine.shard import POLL_INTERVAL_S
from tocsin.timers.engine.supervisor import _steadily

_UUID = b"u" * 16


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    node = Node()
    yield node
    await node.supervisor.kill()


async def test_single_node_claims_every_shard_at_once(node: Node) -> None:
    await node.step()
    assert node.owned == {0, 1, 2, 3}


async def test_second_node_waits_before_it_claims_its_share(node: Node) -> None:
    await node.beat_of(OTHER)
    await node.seconds(5, alive=(OTHER,))
    assert node.owned == set()
    await node.seconds(1, alive=(OTHER,))
    share = {shard for shard in range(4) if node.supervisor.membership.wanted(shard) == OWN}
    assert node.owned == share
    assert 0 < len(share) < 4


async def test_shards_of_a_dead_node_are_claimed_with_its_last_heartbeat_counter(node: Node) -> None:
    await node.beat_of(OTHER)
    for shard in range(4):
        await node.store.claim(shard, expected_epoch=0, owner=OTHER)
    await node.seconds(5, alive=(OTHER,))
    await node.seconds(4)
    assert node.store.claims == []
    await node.seconds(2)
    assert node.owned == {0, 1, 2, 3}
    assert {evidence for _, evidence in node.store.claims} == {(OTHER, 6)}


async def test_node_that_paused_presumes_no_other_dead(node: Node) -> None:
    await node.beat_of(OTHER)
    for shard in range(4):
        await node.store.claim(shard, expected_epoch=0, owner=OTHER)
    await node.seconds(2, alive=(OTHER,))
    await node.seconds(60, stops=True)
    await node.seconds(5)
    assert node.store.claims == []


async def test_shard_of_a_living_owner_is_not_claimed(node: Node) -> None:
    """Whatever made the node want the shard: the decision may be based on an older view than the claim."""
    await node.beat_of(OTHER)
    await node.store.claim(0, expected_epoch=0, owner=OTHER)
    await node.seconds(6, alive=(OTHER,))
    node.store.claims.clear()
    await node.supervisor.ownership.claim(node.supervisor.shards[0])
    assert node.store.claims == []
    assert (await node.store.shards())[0] == ShardState(0, 1, OTHER)


async def test_member_that_resumes_while_its_row_is_removed_stays(node: Node) -> None:
    await node.step()
    await node.beat_of(OTHER)
    await node.seconds(60)

    async def wakes() -> None:
        await node.beat_of(OTHER)
        await node.store.claim(0, expected_epoch=1, owner=OTHER)

    node.store.after_members = wakes
    await node.seconds(1)
    node.store.after_members = None
    assert OTHER in {member.incarnation for member in await node.store.members()}


async def test_dead_member_is_removed_unless_it_owns_a_shard(node: Node) -> None:
    await node.beat_of(OTHER)
    await node.beat_of(THIRD, "t")
    await node.store.claim(0, expected_epoch=0, owner=THIRD)
    node.supervisor.ownership._backing_off_until[0] = 10**18
    await node.seconds(60)
    assert {member.incarnation for member in await node.store.members()} == {OWN, OTHER, THIRD}
    await node.seconds(1)
    assert {member.incarnation for member in await node.store.members()} == {OWN, THIRD}


async def test_node_without_heartbeats_neither_claims_nor_releases(node: Node) -> None:
    await node.step()
    node.store.down = True
    await node.seconds(3)
    assert node.supervisor.dispatcher.paused_reason == "lease"
    await node.seconds(10, alive=(OTHER,))
    assert node.owned == {0, 1, 2, 3}
    node.store.down = False
    await node.seconds(1, alive=(OTHER,))
    assert node.supervisor.dispatcher.paused_reason is None
    assert not node.supervisor.placement.settled(node.clock.boottime_us())


async def test_node_fires_no_timer_of_shards_taken_while_its_lease_was_expired(node: Node) -> None:
    """Another node's claim may also be on its way still, so that the rows show nothing of it."""
    await node.step()
    await node.seconds(20, stops=True)
    assert node.supervisor.dispatcher.paused_reason == "lease"
    await node.store.claim(2, expected_epoch=1, owner=OTHER)
    await node.supervisor.lease.beat_or_report()
    assert node.supervisor.dispatcher.paused_reason is None
    assert (node.owned, node.supervisor.dispatcher.shards) == (set(), {})
    assert node.supervisor.placement.refresh_requested.is_set()
    # All shards that nobody has taken are its own again at once, and a claim that is late takes none of them.
    await node.beat_of(OTHER)
    await node.step()
    assert node.owned == {shard for shard in (0, 1, 3) if node.supervisor.membership.wanted(shard) == OWN}
    assert await node.store.claim(min(node.owned), expected_epoch=1, owner=OTHER) is None


async def test_exclusive_store_keeps_its_claims_when_the_node_lease_expires() -> None:
    node = Node()
    node.store.capabilities = Capabilities(exclusive=True)
    await node.step()
    await node.seconds(20, stops=True)
    await node.supervisor.lease.beat_or_report()
    assert node.owned == {0, 1, 2, 3}
    assert node.supervisor.dispatcher.paused_reason is None
    await node.supervisor.kill()


async def test_claim_that_was_sent_before_the_lease_expired_is_not_used(node: Node) -> None:
    """Another node may have presumed this one dead after the claim, and taken the shard, before this node woke."""
    claim = node.store.claim

    async def claim_and_oversleep(shard_id: int, **how: object) -> int | None:
        node.store.claim = claim  # type: ignore[method-assign]
        epoch = await claim(shard_id, **how)  # type: ignore[arg-type]
        assert await claim(shard_id, expected_epoch=epoch, owner=OTHER) == 2
        node.clock.advance(20 * SECOND)
        await node.supervisor.lease.beat_or_report()
        return epoch

    await node.beat_of(OTHER)
    node.store.claim = claim_and_oversleep  # type: ignore[method-assign]
    await node.seconds(6, alive=(OTHER,))
    (taken,) = [state.shard_id for state in await node.store.shards() if state.owner == OTHER]
    assert taken not in node.owned
    assert ClaimFailed(taken, "the node lease expired in the meantime") in node.events


async def test_owner_that_reads_a_higher_epoch_drops_its_window(node: Node) -> None:
    await node.beat_of(OTHER)
    await node.step()
    shard = node.supervisor.shards[1]
    shard.own(1)
    await node.store.claim(1, expected_epoch=0, owner=OWN)
    await node.store.claim(1, expected_epoch=1, owner=OTHER)
    await node.seconds(1, alive=(OTHER,))
    assert shard.window is None


async def test_shard_whose_claim_is_lost_during_its_hand_over_is_released_all_the_same(node: Node) -> None:
    """Otherwise other nodes would wait for this node's end."""
    await node.step()
    shard = node.supervisor.shards[0]
    shard.accept(WriteOp(OpKind.DELETE, b"u" * 16, "a"))
    closing = asyncio.create_task(node.supervisor.close())
    await asyncio.sleep(0)
    while not shard.draining:  # noqa: ASYNC110 -- it has no notification
        await asyncio.sleep(0)
    node.clock.advance(4 * SECOND)
    await node.supervisor.lease.beat_or_report()
    assert node.owned == set()
    await closing
    assert {state.owner for state in await node.store.shards()} == {None}


async def test_lost_claim_is_retried_after_a_pause(node: Node) -> None:
    await node.step()
    shard = node.supervisor.shards[1]
    await node.store.claim(1, expected_epoch=1, owner=OTHER)
    shard.lose("fenced")
    node.supervisor.placement.states[1] = ShardState(1, 1, OWN)
    await node.supervisor.ownership.claim(shard)
    assert [event.shard_id for event in node.events if isinstance(event, ClaimFailed)] == [1]
    assert (
        0
        < node.supervisor.ownership._backing_off_until[1] - node.clock.boottime_us()
        <= node.context.limits.claim_backoff_us
    )


async def test_nodes_with_one_name_never_own_a_shard_twice(node: Node) -> None:
    """The node with the smaller incarnation owns nothing until the other is gone."""
    for _ in range(6):
        await node.beat_of(OTHER, "n")
        node.clock.advance(SECOND)
        await node.step()
    assert OTHER > OWN
    assert node.owned == set()
    await node.seconds(6)
    assert node.owned == {0, 1, 2, 3}


async def test_node_without_heartbeats_claims_neither_dead_nodes_nor_free_shards(node: Node) -> None:
    """The heartbeats hang, without a failure being reported."""
    await node.beat_of(OTHER)
    for shard in range(4):
        await node.store.claim(shard, expected_epoch=0, owner=OTHER)
    await node.seconds(7, alive=(OTHER,))
    assert node.supervisor.placement.joined
    node.store.claims.clear()
    node.clock.advance(3 * SECOND)
    for _ in range(10):
        await node.supervisor.supervise()
        node.clock.advance(SECOND)
    await node.store.release(0, epoch=1, owner=OTHER)
    await node.supervisor.supervise()
    assert node.supervisor._tasks == {}
    assert node.store.claims == []


async def test_failed_or_late_heartbeat_restarts_the_stability_period(node: Node) -> None:
    def settled() -> bool:
        return node.supervisor.placement.settled(node.clock.boottime_us())

    await node.seconds(7)
    assert settled()
    node.store.down = True
    await node.seconds(1)
    node.store.down = False
    await node.seconds(4)
    assert not settled()
    await node.seconds(1)
    assert settled()
    node.clock.advance(3 * SECOND)
    await node.seconds(5)
    assert not settled()
    await node.seconds(1)
    assert settled()


async def test_unconfirmed_claim_is_released_when_another_node_should_own_the_shard(node: Node) -> None:
    await node.beat_of(OTHER)
    await node.seconds(7, alive=(OTHER,))
    theirs = next(shard for shard in range(4) if node.supervisor.membership.wanted(shard) == OTHER)
    await node.store.claim(theirs, expected_epoch=0, owner=OWN)
    await node.seconds(1, alive=(OTHER,))
    states = {state.shard_id: state for state in await node.store.shards()}
    assert states[theirs] == ShardState(theirs, 1, None)
    assert theirs not in node.owned


async def test_claim_that_succeeds_while_the_node_closes_is_released(node: Node) -> None:
    claim = node.store.claim

    async def claim_at_the_end(shard_id: int, **how: object) -> int | None:
        node.supervisor.ownership.closing = True
        return await claim(shard_id, **how)  # type: ignore[arg-type]

    node.store.claim = claim_at_the_end  # type: ignore[method-assign]
    await node.step()
    assert node.owned == set()
    assert {state.owner for state in await node.store.shards()} == {None}


async def test_own_shard_without_a_window_is_claimed_again(node: Node) -> None:
    """The store did not confirm the claim that the row shows."""
    await node.store.claim(0, expected_epoch=0, owner=OWN)
    await node.step()
    assert (await node.store.shards())[0] == ShardState(0, 2, OWN)
    window = node.supervisor.shards[0].window
    assert window is not None
    assert window.epoch == 2


async def test_claim_under_release_is_not_used_again(node: Node) -> None:
    """A read that began before the release still shows the claim; another node may own the shard by then."""
    await node.beat_of(OTHER)
    await node.seconds(6, alive=(OTHER,))
    theirs = next(shard for shard in range(4) if node.supervisor.membership.wanted(shard) == OTHER)
    await node.store.claim(theirs, expected_epoch=0, owner=OWN)
    node.store.releases.clear()
    await node.supervisor.supervise()

    async def given_back() -> None:
        node.store.releases.set()
        while node.supervisor._tasks:
            await asyncio.wait(set(node.supervisor._tasks))
        # Now this node should own it.
        await node.store.heartbeat(Member(OTHER, "o", "o:1#leaving", 1_000))

    node.store.after_shards = given_back
    await node.step()
    assert theirs in node.owned
    window = node.supervisor.shards[theirs].window
    assert window is not None
    assert (await node.store.shards())[theirs] == ShardState(theirs, window.epoch, OWN)


async def test_claims_of_many_shards_do_not_delay_heartbeats() -> None:
    class Counted(SharedStore):
        """Counts how many claims are under way at once."""

        claiming, most = 0, 0

        async def claim(self, shard_id, *, expected_epoch, owner, presumed_dead=None) -> int | None:
            self.claiming += 1
            self.most = max(self.most, self.claiming)
            await asyncio.sleep(0)
            self.claiming -= 1
            return await super().claim(
                shard_id, expected_epoch=expected_epoch, owner=owner, presumed_dead=presumed_dead
            )

    node = Node(shards=200)
    node.store = node.context.store = Counted(node.clock)
    await node.step()
    assert len(node.owned) == 200
    assert node.store.most == SHARD_CALLS_MAX
    await node.supervisor.kill()


async def test_exclusive_store_without_writes_pauses_dispatch_at_the_results_limit() -> None:
    node = Node()
    node.store.capabilities = Capabilities(exclusive=True)
    await node.step()
    node.store.down = True
    await node.seconds(10)
    dispatcher = node.supervisor.dispatcher
    assert dispatcher.paused_reason is None
    window = node.supervisor.shards[0].window
    assert window is not None
    row = Row((0, b"u" * 16), b"", Timer("n", "t", 0, "", 0, 0), node.context.limits.window_bytes_max)
    window.finished[b"u" * 16] = Finished(row, row.timer, 0)
    await node.seconds(1)
    assert dispatcher.paused_reason == "unwritten_results"
    node.store.down = False
    del window.finished[b"u" * 16]
    await node.seconds(1)
    assert dispatcher.paused_reason is None
    await node.supervisor.kill()


async def test_node_that_reads_a_newer_record_format_leaves_its_shards_to_others() -> None:
    node = Node()
    await node.step()
    newer = StoredRow(0, b"u" * 16, b"g" * 32, "n", "t", (), b'{"v":99}')
    await node.store.apply([ShardBatch(0, 1, OWN, upserts=[newer])])
    node.supervisor.shards[0].lose("fenced")
    await node.seconds(2)
    assert 0 not in node.owned
    await node.seconds(2, alive=(OTHER,))
    assert {node.supervisor.membership.wanted(shard) for shard in range(4)} == {OTHER}
    await node.seconds(6, alive=(OTHER,))
    assert node.owned == set()
    assert {state.owner for state in await node.store.shards()} == {None}
    await node.supervisor.kill()


async def test_a_hand_over_waits_for_a_retry_that_is_being_written() -> None:
    node = Node(shards=1)
    await node.step()
    node.context.namespaces["n"] = Namespace("n", 1, 0, 0)
    shard, store, now = node.supervisor.shards[0], node.store, node.clock.now_us()
    lane = asyncio.create_task(shard.lane.run())
    timer = Timer("n", "t", now + SECOND, "http://h/", now, now)
    shard.accept(WriteOp(OpKind.CREATE, _UUID, "n", timer=timer))
    assert shard.window is not None
    window = shard.window

    async def created() -> bool:
        return _UUID in window.rows

    await until(created)
    attempt = shard.window.dispatch(shard.window.rows[_UUID])
    store.applies.clear()
    store.applying.clear()
    failed = msgspec.structs.replace(timer, attempts=1, last_error="500")
    shard.window.answered(attempt, NextAttempt(failed, now + 2 * SECOND), 0)
    shard.lane.schedule(shard, urgent=True)
    await store.applying.wait()
    closing = asyncio.create_task(node.supervisor.ownership.close())
    # It looks several times whether it may release the shard.
    await asyncio.sleep(5 * POLL_INTERVAL_S)
    assert [state.owner for state in await store.shards()] == [OWN]
    store.applies.set()
    await closing
    assert [state.owner for state in await store.shards()] == [None]
    live = (await store.fetch(0, [_UUID]))[_UUID].live
    assert live is not None
    assert decoded_row(live).timer.attempts == 1
    await end_tasks(lane)
    await node.supervisor.kill()


async def test_results_that_the_fence_refuses_after_the_shard_was_given_up_are_reported() -> None:
    node = Node(shards=1)
    await node.step()
    node.context.namespaces["n"] = Namespace("n", 1, 0, 0)
    shard, store, now = node.supervisor.shards[0], node.store, node.clock.now_us()
    row = Row((now, _UUID), b"", Timer("n", "t", now, "", now, now), 100)
    assert shard.window is not None
    shard.window.finished[_UUID] = Finished(row, row.timer, 0)
    store.applies.clear()
    store.applying.clear()
    lane = asyncio.create_task(shard.lane.run())
    shard.lane.schedule(shard, urgent=True)
    await store.applying.wait()
    epoch = shard.window.epoch
    shard.lose("released")
    await store.release(0, epoch=epoch, owner=OWN)
    store.applies.set()

    async def reported() -> bool:
        return any(isinstance(event, BatchFailed) and event.kind == "fenced" for event in node.events)

    await until(reported)
    assert not any(isinstance(event, BatchCommitted) for event in node.events)
    await end_tasks(lane)
    await node.supervisor.kill()


@each("lasts_s, begun", [(0, [0, 1, 2]), (0.3, [0, 1, 2]), (1.4, [0, 1.4, 2.8])])
def test_heartbeats_begin_at_a_steady_interval_or_one_after_another(lasts_s: float, begun: list[float]) -> None:
    loop, found = SimulationLoop(), []

    async def beat() -> None:
        found.append(loop.time())
        await asyncio.sleep(lasts_s)

    async def run() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.9):
                await _steadily(SECOND, beat)

    loop.run_until_complete(run())
    assert found == pytest.approx(begun)
