"""A node whose clock, or whose store's, is wrong: what it still does, and by which time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.supervised import OTHER, OWN, SECOND, Node

from tocsin.model.condition import Condition, OnConflict
from tocsin.model.debounce import Debounce
from tocsin.model.namespace import Namespace
from tocsin.model.timer import Timer
from tocsin.ports.completion import Awaited
from tocsin.ports.observer import ClockDistrusted, ClockTrusted
from tocsin.ports.store import Applied, ShardBatch
from tocsin.telemetry.clock import ConfirmedClock
from tocsin.testing.clock import FakeClock
from tocsin.testing.store_conformance_base import finished, row
from tocsin.timers.engine.retention import purge_history
from tocsin.timers.engine.rows import OpKind, WriteOp


@pytest.mark.parametrize("jump_s", [-30, -1, 1, 30])
async def test_dispatch_pauses_after_a_clock_jump_until_the_clock_is_right(jump_s: int) -> None:
    truth = FakeClock()
    node = Node(store_clock=truth)
    await node.step()
    assert node.supervisor.dispatcher.paused_reason is None
    node.clock.jump(jump_s * SECOND)
    await node.step()
    assert node.supervisor.dispatcher.paused_reason == "clock_skew"
    # Ownership is not affected: clocks of two nodes are never compared.
    assert node.owned == {0, 1, 2, 3}
    node.clock.jump(-jump_s * SECOND)
    await node.step()
    assert node.supervisor.dispatcher.paused_reason is None
    await node.supervisor.kill()


async def test_node_with_a_wrong_clock_hands_its_shards_over_until_it_is_right() -> None:
    truth = FakeClock()
    node = Node(store_clock=truth)
    await node.beat_of(OTHER)
    await node.seconds(7, alive=(OTHER,))
    share = node.owned
    assert share
    node.clock.jump(30 * SECOND)
    await node.seconds(5, alive=(OTHER,))
    # A stepped clock is usually right again soon.
    assert node.owned == share
    await node.seconds(2, alive=(OTHER,))
    assert node.owned == set()
    assert (await node.store.shards())[min(share)].owner is None
    assert node.supervisor.lease.clock_distrusted
    node.clock.jump(-30 * SECOND)
    await node.seconds(5, alive=(OTHER,))
    assert node.owned == set()
    await node.seconds(2, alive=(OTHER,))
    assert node.owned == share
    assert not node.supervisor.lease.clock_distrusted
    reported = [type(event).__name__ for event in node.events if isinstance(event, ClockDistrusted | ClockTrusted)]
    assert reported == ["ClockDistrusted", "ClockTrusted"]
    await node.supervisor.kill()


async def test_node_that_starts_with_a_wrong_clock_claims_nothing_beside_others() -> None:
    node = Node(store_clock=FakeClock(now_us=FakeClock().now_us() + 30 * SECOND))
    await node.beat_of(OTHER)
    await node.seconds(8, alive=(OTHER,))
    assert node.owned == set()
    assert node.supervisor.lease.clock_distrusted
    await node.supervisor.kill()


async def test_single_node_with_a_wrong_clock_keeps_its_shards() -> None:
    """Also if the store's clock is the wrong one: writes continue, and nothing fires early."""
    truth = FakeClock()
    node = Node(store_clock=truth)
    await node.step()
    truth.jump(30 * SECOND)
    await node.seconds(10)
    assert node.owned == {0, 1, 2, 3}
    assert node.supervisor.dispatcher.paused_reason == "clock_skew"
    assert not node.supervisor.lease.clock_distrusted
    await node.supervisor.kill()


async def test_stores_clock_is_confirmed_until_the_nodes_was_right_once() -> None:
    truth = FakeClock(boottime_us=7)
    node = Node(store_clock=truth)
    clock = ConfirmedClock(node.clock, node.context.limits.clock_skew_max_us)
    node.context.confirm_time = clock.confirm
    node.clock.jump(30 * SECOND)
    await node.seconds(2)
    assert clock.now_us() == truth.now_us()
    node.clock.jump(-30 * SECOND)
    await node.seconds(1)
    # From then on the node's own clock is confirmed, even if the store's becomes wrong.
    truth.jump(-30 * SECOND)
    await node.seconds(2)
    assert clock.now_us() == node.clock.now_us() == truth.now_us() + 30 * SECOND
    await node.supervisor.kill()


@pytest.mark.parametrize("wrong", ["node", "store"])
async def test_nothing_is_purged_by_a_clock_that_is_ahead(wrong: str) -> None:
    """Whichever: a database that failed over to a machine with a wrong clock must not lose its history either."""
    truth = FakeClock()
    node = Node(store_clock=truth)
    expiry_us = truth.now_us() + 20 * SECOND
    record = finished(row(1), expires_at=expiry_us)
    await node.step()
    epoch, owner = (await node.store.shards())[0][1:]
    assert owner == OWN
    assert await node.store.apply([ShardBatch(0, epoch, OWN, history=[record])]) == [Applied.DURABLE]
    (node.clock if wrong == "node" else truth).jump(366 * 86_400 * SECOND)
    await node.seconds(5)
    await purge_history(node.context)
    assert record.uuid in await node.store.fetch(0, [record.uuid])
    await node.seconds(20)
    await purge_history(node.context)
    assert record.uuid not in await node.store.fetch(0, [record.uuid])
    await node.supervisor.kill()


@pytest.mark.parametrize("jump_s", [-30, 86_400])
async def test_writes_are_planned_by_the_time_that_was_confirmed_last(jump_s: int) -> None:
    truth = FakeClock()
    node = Node(store_clock=truth)
    clock = ConfirmedClock(node.clock, node.context.limits.clock_skew_max_us)
    node.context.confirm_time, node.context.confirmed = clock.confirm, clock
    await node.step()
    node.clock.jump(jump_s * SECOND)
    await node.seconds(2)
    node.context.namespaces["a"] = Namespace("a", 4, 0, 0)
    shard = node.supervisor.shards[0]
    lane = asyncio.create_task(shard.lane.run())
    answer: Awaited[Any] = Awaited()
    timer = Timer("a", "t", 0, "http://h/", 0, 0)
    debounced = Condition(OnConflict.DEBOUNCE, None, False, Debounce(10 * SECOND, 60 * SECOND))
    shard.accept(WriteOp(OpKind.CREATE, b"u" * 16, "a", timer=timer, condition=debounced, completion=answer))
    await answer
    lane.cancel()
    found = (await node.store.fetch(0, [b"u" * 16]))[b"u" * 16]
    assert found.live is not None
    assert found.live.execute_at == truth.now_us() + 10 * SECOND
    await node.supervisor.kill()
