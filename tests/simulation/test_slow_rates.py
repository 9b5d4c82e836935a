"""Rates whose tokens are farther apart than claims last: each owner goes on where the former one left them (ADR 132)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from tests.simulation.crowd import Crowd
from tests.simulation.test_flows import check_forgotten, check_rate, rule
from tocsin.administration import FLOW_RECORDS, flows
from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreUnavailable
from tocsin.model.flow import Flow, FlowLimits, Rate
from tocsin.model.ids import flow_uuid, shard_of
from tocsin.ports.observer import LoadFailed, WriteRefused
from tocsin.ports.store import Applied, Found, HistoryRow, ShardBatch
from tocsin.testing.clock import EPOCH_US

SECOND = 1_000_000
#: One each five minutes.
RATE = Rate(1, 300 * SECOND)
SHARDS = 2


def crowd_with(*rules: Flow, timers: int = 4, key: str = "customer:x") -> Crowd:
    crowd = Crowd(shards=SHARDS, purge_interval_us=10 * SECOND)
    crowd.flows = list(rules)
    for i in range(timers):
        crowd.keep(f"t{i}", "fine", 0, shard=i % SHARDS, flow=key)
    return crowd


def has_tokens(batches: Sequence[ShardBatch]) -> bool:
    return any(row.namespace == "a/flow" for batch in batches for row in batch.history)


def token_rows(crowd: Crowd) -> list[HistoryRow]:
    """The stored tokens of all flows."""
    ended = [row for shard in crowd.store._shards.values() for of in shard.history.values() for row in of.values()]
    return [row for row in ended if row.namespace == "a/flow"]


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("shared", ["key", "total", "namespace"])
def test_a_node_that_restarts_more_often_than_tokens_come_fires_at_its_rate(crash: bool, shared: str) -> None:
    limits = FlowLimits(RATE)
    if shared == "namespace":
        crowd = crowd_with()
        crowd.limits = {"a": limits}
    else:
        crowd = crowd_with(rule("customer:", limits) if shared == "key" else rule("customer:", None, limits))

    async def restart() -> None:
        while crowd.loop.time() < 950:
            await asyncio.sleep(100)
            await crowd.restart(crash=crash)

    crowd.run(1_000, restart)
    calls = crowd.receivers.calls
    assert len(calls) == 4
    check_rate(calls, RATE, 1)
    # The first at once: nobody has used anything of the key. The others when they may begin, or as soon as a node works.
    assert calls[0].at_us - EPOCH_US < 10 * SECOND
    assert calls[-1].at_us - calls[0].at_us < (3 * 300 + 40) * SECOND
    check_forgotten(crowd)
    assert len(token_rows(crowd)) <= 1


def test_a_burst_is_not_there_again_after_a_restart() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE, burst=3)), timers=6)

    async def restart() -> None:
        for _ in range(3):
            await asyncio.sleep(10)
            await crowd.restart()

    crowd.run(100, restart)
    assert len(crowd.receivers.calls) == 3


def test_tokens_that_were_just_taken_are_stored_before_the_shard_is_left() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE)), timers=0)
    home = shard_of(0, flow_uuid("a", "customer:", "customer:x"), SHARDS, SHARDS)
    for i in range(2):
        crowd.keep(f"t{i}", "fine", 0, shard=1 - home, flow="customer:x")
    apply = crowd.store.apply

    async def away(batches: Sequence[ShardBatch]) -> list[Applied]:
        if crowd.loop.time() < 7 and has_tokens(batches):
            raise StoreUnavailable("away")
        return await apply(batches)

    crowd.store.apply = away  # type: ignore[method-assign]

    async def restart() -> None:
        await asyncio.sleep(5)
        assert len(crowd.receivers.calls) == 1
        await crowd.restart()

    crowd.run(100, restart)
    assert len(crowd.receivers.calls) == 1


def test_a_home_of_which_only_tokens_are_left_to_store_grants_no_more() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE)), timers=0)
    home = shard_of(0, flow_uuid("a", "customer:", "customer:x"), SHARDS, SHARDS)
    crowd.keep("t", "fine", 0, shard=1 - home, flow="customer:x")
    apply, supervisor = crowd.store.apply, crowd.supervisor

    async def away(batches: Sequence[ShardBatch]) -> list[Applied]:
        if crowd.loop.time() < 7 and has_tokens(batches):
            raise StoreUnavailable("away")
        return await apply(batches)

    crowd.store.apply = away  # type: ignore[method-assign]

    async def hand_over() -> None:
        await asyncio.sleep(3)
        assert home in supervisor.dispatcher.flows.homes
        leaving = asyncio.create_task(supervisor.ownership._hand_over(supervisor.shards[home]))
        await asyncio.sleep(1)
        assert home not in supervisor.dispatcher.flows.homes
        # It is not released before they are stored.
        assert supervisor.shards[home].window is not None
        await leaving
        assert len(token_rows(crowd)) == 1

    crowd.run(20, hand_over)


def test_tokens_that_are_taken_during_a_commit_are_stored_by_the_next() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE, burst=2)), timers=1)
    crowd.keep("during", "fine", 2, shard=1, flow="customer:x")
    crowd.keep("later", "fine", 20, shard=0, flow="customer:x")
    apply, slow = crowd.store.apply, [3]

    async def slowly(batches: Sequence[ShardBatch]) -> list[Applied]:
        if slow and has_tokens(batches):
            await asyncio.sleep(slow.pop())
        return await apply(batches)

    crowd.store.apply = slowly  # type: ignore[method-assign]

    async def restart() -> None:
        await asyncio.sleep(10)
        assert len(crowd.receivers.calls) == 2
        await crowd.restart(crash=True)

    crowd.run(100, restart)
    assert len(crowd.receivers.calls) == 2


def test_a_claim_that_is_lost_before_its_tokens_are_stored_forgets_nothing() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE)), timers=0)
    home = shard_of(0, flow_uuid("a", "customer:", "customer:x"), SHARDS, SHARDS)
    for i in range(4):
        crowd.keep(f"t{i}", "fine", 0, shard=1 - home, flow="customer:x")
    apply, failures = crowd.store.apply, [1, 2]

    async def unconfirmed(batches: Sequence[ShardBatch]) -> list[Applied]:
        if failures and has_tokens(batches):
            failures.pop()
            raise OutcomeUnknown("no answer")
        return await apply(batches)

    crowd.store.apply = unconfirmed  # type: ignore[method-assign]

    async def restart() -> None:
        await asyncio.sleep(30)
        await crowd.restart()

    crowd.run(60, restart)
    assert not failures
    assert len(crowd.receivers.calls) == 1


def test_a_refused_row_leaves_those_of_other_keys() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE)), timers=0)
    for key in "wxyz":
        for i in range(2):
            crowd.keep(f"{key}{i}", "fine", 0, shard=i, flow=f"customer:{key}")
    refused, apply, transient = flow_uuid("a", "customer:", "customer:x"), crowd.store.apply, [1]

    async def refusing(batches: Sequence[ShardBatch]) -> list[Applied]:
        rows = [row for batch in batches for row in batch.history if row.namespace == "a/flow"]
        if any(row.uuid == refused for row in rows) or (len(rows) == 1 and transient and transient.pop()):
            raise DefiniteFailure("refused")
        return await apply(batches)

    crowd.store.apply = refusing  # type: ignore[method-assign]

    async def restart() -> None:
        await asyncio.sleep(10)
        assert sum(isinstance(event, WriteRefused) for event in crowd.events) == 1
        await crowd.restart()

    crowd.run(60, restart)
    # That of which no row could be written twice, the others once.
    assert len(crowd.receivers.calls) == 5
    assert not transient


def test_a_rule_that_is_deleted_and_made_again_goes_by_its_rows() -> None:
    rate = Rate(1, 61 * SECOND)
    crowd = crowd_with(rule("customer:", FlowLimits(rate)), timers=0)
    # The home is older than the bucket takes to fill.
    crowd.keep("before", "fine", 100, flow="customer:x")
    crowd.keep("after", "fine", 120, flow="customer:x")

    async def change() -> None:
        await asyncio.sleep(102)
        (known,) = await flows(crowd.store)
        await FLOW_RECORDS.delete(crowd.store, "a", "customer:")
        await crowd.context.refresh_namespaces()
        await asyncio.sleep(8)
        await FLOW_RECORDS.put(crowd.store, known)
        await crowd.context.refresh_namespaces()

    crowd.run(180, change)
    first, second = crowd.receivers.calls
    assert 61 * SECOND <= second.at_us - first.at_us < 65 * SECOND


def test_tokens_are_kept_in_the_shard_of_the_home_until_all_are_there_again() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE)), timers=1)
    uuid = flow_uuid("a", "customer:", "customer:x")
    seen: list[HistoryRow] = []

    async def look() -> None:
        await asyncio.sleep(5)
        found = await crowd.store.fetch(shard_of(0, uuid, SHARDS, SHARDS), [uuid])
        assert found[uuid].finished is not None
        seen.append(found[uuid].finished)

    crowd.run(330, look)
    (row,) = seen
    (call,) = crowd.receivers.calls
    assert 300 * SECOND <= row.expires_at - call.at_us <= 302 * SECOND
    assert token_rows(crowd) == []


def test_a_fast_rate_is_neither_stored_nor_looked_up() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(Rate(1, 60 * SECOND))), timers=2)
    asked: list[Sequence[bytes]] = []
    fetch = crowd.store.fetch

    async def noted(shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        asked.append(uuids)
        return await fetch(shard_id, uuids)

    crowd.store.fetch = noted  # type: ignore[method-assign]
    crowd.run(130)
    assert len(crowd.receivers.calls) == 2
    assert not asked
    assert not token_rows(crowd)


def test_many_keys_are_looked_up_together_and_forgotten() -> None:
    crowd = Crowd(shards=SHARDS)
    crowd.flows = [rule("customer:", FlowLimits(Rate(1, 61 * SECOND)))]
    for i in range(300):
        crowd.keep(f"t{i}", "fine", 0, shard=i % SHARDS, flow=f"customer:{i}")
    asked: list[int] = []
    fetch = crowd.store.fetch

    async def noted(shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        asked.append(len(uuids))
        return await fetch(shard_id, uuids)

    crowd.store.fetch = noted  # type: ignore[method-assign]

    async def look() -> None:
        await asyncio.sleep(2)
        assert len(token_rows(crowd)) == 300

    crowd.run(70, look)
    assert len(crowd.receivers.calls) == 300
    assert max(crowd.late_s().values()) < 3
    assert sum(asked) == 300
    assert len(asked) < 20
    homes = crowd.supervisor.dispatcher.flows.homes.values()
    assert sum(len(accounts) for home in homes for accounts in home.rules.values()) == 0


def test_nothing_begins_until_a_lookup_has_succeeded() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE)), timers=1)
    fetch = crowd.store.fetch

    async def failing(shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        if crowd.loop.time() < 10:
            raise StoreUnavailable("away")
        return await fetch(shard_id, uuids)

    crowd.store.fetch = failing  # type: ignore[method-assign]
    crowd.run(20)
    (call,) = crowd.receivers.calls
    assert 10 * SECOND <= call.at_us - EPOCH_US < 16 * SECOND
    assert 3 < sum(isinstance(event, LoadFailed) for event in crowd.events) < 12


def test_a_store_that_refuses_the_row_stops_nothing_else() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE)), timers=1)
    for i in range(10):
        crowd.keep(f"free{i}", "fine", 1 + i, shard=i % SHARDS)
    apply = crowd.store.apply

    async def refusing(batches: Sequence[ShardBatch]) -> list[Applied]:
        if has_tokens(batches):
            raise DefiniteFailure("refused")
        return await apply(batches)

    crowd.store.apply = refusing  # type: ignore[method-assign]
    crowd.run(15)
    assert len(crowd.receivers.calls) == 11
    assert sum(isinstance(event, WriteRefused) for event in crowd.events) == 1
    assert not [row for shard in crowd.store._shards.values() for row in shard.live.values()]


@pytest.mark.parametrize(("per_s", "wait_s"), [(100, 100), (600, 600), (30, 30)])
def test_a_rule_that_changes_goes_on_with_the_tokens_that_there_are(per_s: int, wait_s: int) -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE)), timers=2)

    async def change() -> None:
        await asyncio.sleep(9)
        (known,) = await flows(crowd.store)
        limits = FlowLimits(Rate(1, per_s * SECOND))
        await FLOW_RECORDS.put(crowd.store, msgspec.structs.replace(known, per_key=limits, version=2))
        await crowd.context.refresh_namespaces()
        await asyncio.sleep(10)
        if limits.is_slow:
            await crowd.restart()

    crowd.run(wait_s + 30, change)
    first, second = crowd.receivers.calls
    assert wait_s * SECOND <= second.at_us - first.at_us <= (wait_s + 15) * SECOND


def test_a_clock_that_was_wrong_closes_no_key_for_longer_than_the_bucket_takes() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE)), timers=2)

    async def tamper() -> None:
        await asyncio.sleep(5)
        (row,) = token_rows(crowd)
        decoded = msgspec.msgpack.decode(row.record)
        far = row._replace(record=msgspec.msgpack.encode([decoded[0] + 10**15, *decoded[1:]]), expires_at=2**62)
        for shard in crowd.store._shards.values():
            if row.uuid in shard.history:
                shard.remember([far])
        # Also if the node restarts again and again.
        for _ in range(3):
            await crowd.restart()
            await asyncio.sleep(90)

    crowd.run(330, tamper)
    assert len(crowd.receivers.calls) == 2


def test_a_damaged_row_counts_as_no_token() -> None:
    crowd = crowd_with(rule("customer:", FlowLimits(RATE)), timers=2)

    async def damage() -> None:
        await asyncio.sleep(5)
        (row,) = token_rows(crowd)
        for shard in crowd.store._shards.values():
            if row.uuid in shard.history:
                shard.remember([row._replace(record=b"?", expires_at=2**62)])
        await crowd.restart()

    crowd.run(330, damage)
    first, second = crowd.receivers.calls
    assert second.at_us - first.at_us >= 300 * SECOND
