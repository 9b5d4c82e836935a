"""Rules that matter only when rare events occur in a certain order, which few seeds produce: scenarios in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.simulation.crowd import SECOND, Crowd
from tests.support.completions import Noted
from tocsin.model.errors import StoreUnavailable
from tocsin.model.ids import timer_uuid
from tocsin.ports.store import Found, Member, ShardBatch
from tocsin.timers.engine.admission import IDLE_DESTINATION_US
from tocsin.timers.engine.membership import Flag, flags_of
from tocsin.timers.engine.rows import OpKind, WriteOp, stored

OTHER = b"o" * 16


def test_deferred_timer_is_not_early_after_the_clock_is_set_back() -> None:
    crowd = Crowd(destination_in_flight_max=1, destination_in_flight_min=1)
    for i in range(2):
        crowd.keep(f"t{i}", "hung", 5, timeout_s=0.3)

    async def set_back() -> None:
        await asyncio.sleep(5.1 - crowd.loop.time())
        assert (len(crowd.receivers.calls), crowd.supervisor.dispatcher.waiting) == (1, 1)
        # Shorter than what a node notices.
        crowd.clock.jump(-400_000)

    crowd.run(10, set_back)
    assert [call.invocation.timer_id for call in crowd.receivers.calls] == ["t0", "t1"]
    assert all(call.invocation.fired_at >= call.invocation.execute_at for call in crowd.receivers.calls)


def test_destination_is_forgotten_when_its_last_deferred_timer_is_canceled() -> None:
    crowd = Crowd(callbacks_in_flight_max=5)
    for i in range(5):
        crowd.keep(f"h{i}", f"hung{i}", 5, timeout_s=2 + i)
    # Its namespace has used up its share of the slots; its own host has room.
    crowd.keep("w", "fine", 6)

    async def cancel() -> None:
        await asyncio.sleep(6.5 - crowd.loop.time())
        admission = crowd.supervisor.dispatcher.admission
        assert "fine" in admission.destinations
        assert admission.callbacks.blocked
        crowd.supervisor.shards[0].accept(WriteOp(OpKind.DELETE, timer_uuid("a", "w"), "a"))
        await asyncio.sleep(15 + IDLE_DESTINATION_US / 1e6)
        assert "fine" not in admission.destinations

    crowd.run(25, cancel)
    assert "w" not in {call.invocation.timer_id for call in crowd.receivers.calls}


def test_owner_that_resumes_just_before_a_claim_keeps_its_shard() -> None:
    """If the claim succeeded, the old owner would continue to write with a lease that the new owner doesn't know."""
    crowd = Crowd()
    claim, tries = crowd.store.claim, list[tuple[bytes, int] | None]()

    async def claim_once_it_woke(
        shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        tries.append(presumed_dead)
        await crowd.store.heartbeat(Member(OTHER, "o", "", 8))
        return await claim(shard_id, expected_epoch=expected_epoch, owner=owner, presumed_dead=presumed_dead)

    async def before() -> None:
        await crowd.store.heartbeat(Member(OTHER, "o", "", 7))
        await claim(0, expected_epoch=0, owner=OTHER)
        crowd.store.claim = claim_once_it_woke  # type: ignore[method-assign]

    crowd.run(10, before=before)
    assert tries == [(OTHER, 7)]
    assert crowd.store._shards[0].owner == OTHER


def test_node_lease_begins_when_the_heartbeat_is_sent() -> None:
    """Other nodes count from the moment at which it reached the store: a slow answer must not extend this node's lease."""
    crowd = Crowd()
    for i in range(200):
        crowd.keep(f"t{i}", "fine", i / 10)
    write, sent_us = crowd.store.heartbeat, list[int]()

    async def heartbeat(member: Member) -> int:
        if sent_us:
            raise StoreUnavailable("out of reach")
        answer = await write(member)
        if crowd.loop.time() > 5:
            sent_us.append(crowd.now_us())
            await asyncio.sleep(2.5)
        return answer

    crowd.store.heartbeat = heartbeat  # type: ignore[method-assign]
    crowd.run(20)
    last_us = max(call.at_us for call in crowd.receivers.calls)
    assert sent_us[0] + 2 * SECOND < last_us < sent_us[0] + crowd.context.limits.node_lease_us


def test_nothing_fires_between_a_clock_jump_and_the_next_heartbeat() -> None:
    crowd = Crowd()
    for i in range(200):
        crowd.keep(f"t{i}", "fine", i / 10)

    async def jump() -> None:
        await asyncio.sleep(10.35 - crowd.loop.time())
        crowd.clock.jump(30 * SECOND)

    crowd.run(15, jump)
    assert len(crowd.receivers.calls) > 90
    assert [call for call in crowd.receivers.calls if call.at_us < call.invocation.execute_at] == []


def test_slow_heartbeat_does_not_clear_the_leaving_flag() -> None:
    crowd = Crowd()
    write, slow, tasks = crowd.store.heartbeat, list[Member](), list[asyncio.Task[None]]()

    async def heartbeat(member: Member) -> int:
        if not slow and crowd.loop.time() > 3:
            slow.append(member)
            tasks.append(asyncio.get_running_loop().create_task(crowd.supervisor.close()))
            await asyncio.sleep(0.2)
        return await write(member)

    rows = list[list[Member]]()

    async def release(shard_id: int, *, epoch: int, owner: bytes) -> bool:
        # By then the slow heartbeat has arrived.
        await asyncio.sleep(0.3)
        rows.append(list(await crowd.store.members()))
        return await give_back(shard_id, epoch=epoch, owner=owner)

    give_back = crowd.store.release
    crowd.store.heartbeat, crowd.store.release = heartbeat, release  # type: ignore[method-assign]
    crowd.run(10)
    assert slow
    ((member,),) = rows
    assert Flag.LEAVING in flags_of(member)


def test_result_of_a_handed_over_attempt_reaches_the_new_owner() -> None:
    crowd = Crowd()
    crowd.keep("t", "hung", 5, timeout_s=4)
    brought: list[tuple[int, OpKind, float]] = []

    async def submit(shard_id: int, op: WriteOp) -> None:
        brought.append((shard_id, op.kind, crowd.loop.time()))

    async def leave() -> None:
        crowd.supervisor.results.submit = submit
        for second in range(5):
            await crowd.store.heartbeat(Member(OTHER, "o", "o:1", second))
            await asyncio.sleep(1.0)
        assert crowd.supervisor.dispatcher.in_flight == 1
        await crowd.supervisor.close()
        assert crowd.store._shards[0].owner is None

    crowd.run(10, leave)
    ((shard_id, kind, at_s),) = brought
    assert (shard_id, kind) == (0, OpKind.CONCLUDE)
    assert at_s >= 9


@pytest.mark.parametrize("lost", ["during the reading", "after the reading"])
def test_state_read_under_a_former_claim_is_not_used(lost: str) -> None:
    """Between the two claims another node owned the shard, and created the timer that the first read did not find."""
    crowd = Crowd(shards=2)
    created = stored(crowd.row("t", "fine", 60))
    answers: list[object] = []

    async def change_hands() -> None:
        store, shard = crowd.store, crowd.supervisor.shards[0]
        assert shard.window is not None
        shard.lose("fenced")
        theirs = await store.claim(0, expected_epoch=1, owner=OTHER)
        assert theirs == 2
        batch = ShardBatch(0, theirs, OTHER)
        batch.upserts = [created]
        await store.apply([batch])
        ours = await store.claim(0, expected_epoch=theirs, owner=crowd.context.incarnation)
        assert ours == 3
        shard.own(ours)

    async def delete() -> None:
        first, second = crowd.supervisor.shards.values()
        read = crowd.store.fetch
        assert first.window is not None
        assert second.window is not None
        # Without scheduling the lane: this scenario takes the lane's part.
        first.window.accept(WriteOp(OpKind.DELETE, created.uuid, "a"))
        second.window.accept(WriteOp(OpKind.DELETE, created.uuid, "a"))

        async def fetch(shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
            found = await read(shard_id, uuids)
            if shard_id == (0 if lost == "during the reading" else 1):
                await change_hands()
                first.window.accept(WriteOp(OpKind.DELETE, created.uuid, "a", completion=Noted(answers.append)))
            return found

        crowd.store.fetch = fetch  # type: ignore[method-assign]
        batches = await first.lane._assembled([first, second], 100, 0)
        crowd.store.fetch = read  # type: ignore[method-assign]
        assert [shard for shard, _ in batches] == [second]
        first.lane.schedule(first, urgent=True)

    crowd.run(5, delete)
    assert answers == [None]
    assert not crowd.store._shards[0].live
