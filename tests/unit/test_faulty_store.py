"""The faulty store injects faults as documented, and reproducibly for a seed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest
from tests.support.faulty_store import Fault, FaultPlan, FaultyStore

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreUnavailable
from tocsin.ports.store import Applied, ShardBatch, Store
from tocsin.stores.memory import MemoryStore
from tocsin.testing.store_conformance_base import ALICE, BOB, claimed, loaded, row


async def opened() -> MemoryStore:
    store = MemoryStore()
    await store.open(4)
    return store


def with_row(batch: ShardBatch, number: int) -> ShardBatch:
    return replace(batch, upserts=[row(number, number)])


async def test_scripted_faults_precede_the_plan() -> None:
    inner = await opened()
    batch = await claimed(inner)
    store = FaultyStore(inner, Random(1), FaultPlan(late_s_max=0.0))
    store.script("apply", Fault.FAIL, Fault.UNKNOWN_LOST, Fault.UNKNOWN_DONE)
    with pytest.raises(DefiniteFailure):
        await store.apply([with_row(batch, 1)])
    with pytest.raises(OutcomeUnknown):
        await store.apply([with_row(batch, 2)])
    assert await loaded(inner) == []
    with pytest.raises(OutcomeUnknown):
        await store.apply([with_row(batch, 3)])
    assert [r.execute_at for r in await loaded(inner)] == [3]
    assert await store.apply([with_row(batch, 4)]) == [Applied.DURABLE]
    assert store.injected == {"fail": 1, "unknown_lost": 1, "unknown_done": 1}


async def test_late_effect_is_the_call_as_sent_unless_fenced() -> None:
    inner = await opened()
    batch = await claimed(inner)
    store = FaultyStore(inner, Random(1), FaultPlan(late_s_max=0.0))
    store.script("apply", Fault.LATE, Fault.LATE)
    sent = with_row(batch, 1)
    with pytest.raises(OutcomeUnknown):
        await store.apply([sent])
    assert await loaded(inner) == []
    sent.upserts.clear()
    await store.settle()
    assert [r.execute_at for r in await loaded(inner)] == [1]
    with pytest.raises(OutcomeUnknown):
        await store.apply([with_row(batch, 2)])
    await inner.claim(0, expected_epoch=1, owner=BOB)
    await store.settle()
    assert [r.execute_at for r in await loaded(inner)] == [1]


async def test_cut_node_reaches_nothing_and_others_are_unaffected() -> None:
    inner = await opened()
    both = FaultyStore(inner, Random(1), FaultPlan(cut_timeout_s=0.0))
    one, other = both.partitioned("one"), both.partitioned("other")
    one.cut()
    with pytest.raises(StoreUnavailable):
        await one.claim(0, expected_epoch=0, owner=ALICE)
    assert await other.claim(0, expected_epoch=0, owner=ALICE) == 1
    one.heal()
    assert len(await one.shards()) == 1


async def test_outcome_of_writes_under_way_at_a_cut_is_unknown() -> None:
    arrived = []
    for seed in range(20):
        inner = await opened()
        batch = await claimed(inner)
        store = FaultyStore(inner, Random(seed))
        write = asyncio.ensure_future(store.apply([with_row(batch, 1)]))
        read = asyncio.ensure_future(store.shards())
        await asyncio.sleep(0)
        store.cut()
        with pytest.raises(OutcomeUnknown):
            await write
        with pytest.raises(StoreUnavailable):
            await read
        arrived.append(len(await loaded(inner)))
    assert set(arrived) == {0, 1}


async def outcomes(seed: int) -> list[str]:
    inner = await opened()
    plan = FaultPlan(
        slow=0.1, slow_s_max=0.0, fail=0.2, read_fail=0.2, unknown_done=0.2, unknown_lost=0.1, late=0.1, late_s_max=0.0
    )
    store: Store = FaultyStore(inner, Random(seed), plan)
    batch = await claimed(inner)
    seen = []
    for number in range(1, 60):
        try:
            await store.apply([with_row(batch, number)])
            seen.append(str(len((await store.load(0, (0, b""), (99, b""), 99)).rows)))
        except (DefiniteFailure, OutcomeUnknown) as error:
            seen.append(str(error))
    return seen


async def test_a_seed_replays() -> None:
    first = await outcomes(5)
    assert first == await outcomes(5)
    assert first != await outcomes(6)
