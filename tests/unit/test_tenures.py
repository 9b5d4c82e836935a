"""What the next owner of a shard knows of outages before its claim (rule 33)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tests.support.faulty_store import Fault, FaultyStore

from tocsin.server.transfer_records import copy_records, differing_records
from tocsin.stores.memory import MemoryStore
from tocsin.testing.clock import FakeClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.monitoring import Outage
from tocsin.timers.engine.tenures import TENURES, Tenures

S = 1_000_000


class Cluster:
    """Nodes with one store and one clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store: Any = FaultyStore(MemoryStore(self.clock))

    def node(self, number: int, *, owned: Sequence[int] = (), seen: bool = True) -> tuple[Tenures, bytes]:
        """A node whose lease never ends, with the shards that it owns, and its incarnation."""
        context = Context(
            store=self.store,
            caller=None,  # type: ignore[arg-type]  # nobody is called
            clock=self.clock,
            limits=EngineLimits(),
            observe=lambda event: None,
            random=random.Random(number),
            incarnation=bytes([number]) * 16,
        )
        context.lease_until, context.monitors_seen = 2**62, seen
        context.owned = lambda: [SimpleNamespace(shard_id=each, window=None) for each in owned]  # type: ignore[misc]
        return Tenures(context), context.incarnation


async def opened() -> Cluster:
    """A cluster whose store has four shards."""
    cluster = Cluster()
    await cluster.store.open(4)
    return cluster


async def test_next_owner_knows_since_when_nobody_worked_and_what_was_before() -> None:
    cluster = await opened()
    first, name = cluster.node(1, owned=(0,))
    await first.keep()
    worked_until = cluster.clock.now_us()
    cluster.clock.advance(60 * S)
    second, second_name = cluster.node(2, owned=(0,))
    (outage,) = await second.claimed(0, name, 0)
    assert outage == Outage(worked_until, cluster.clock.now_us())
    await second.close()
    again_until = cluster.clock.now_us()
    cluster.clock.advance(30 * S)
    third, _ = cluster.node(3)
    assert await third.claimed(0, second_name, 0) == (outage, Outage(again_until, cluster.clock.now_us()))
    # Another shard had none of these. Whose it was is unknown: some node worked until the others had stopped.
    assert await third.claimed(1, None, 0) == (Outage(again_until, cluster.clock.now_us()),)


async def test_owner_that_dies_soon_after_its_claim_is_known_to_have_worked() -> None:
    cluster = await opened()
    first, name = cluster.node(1, owned=(0,))
    await first.keep()
    cluster.clock.advance(60 * S)
    owned: list[int] = []
    second, second_name = cluster.node(2, owned=owned)
    (before,) = await second.claimed(0, name, 0)
    owned.append(0)
    cluster.clock.advance(S)
    await second.keep()
    worked_until = cluster.clock.now_us()
    cluster.clock.advance(5 * S)
    third, _ = cluster.node(3)
    assert await third.claimed(0, second_name, 0) == (before, Outage(worked_until, cluster.clock.now_us()))


async def test_shard_that_no_record_names_was_out_since_all_others_stopped() -> None:
    cluster = await opened()
    for number in (1, 2):
        node, _ = cluster.node(number, owned=(number,))
        await node.keep()
        cluster.clock.advance(20 * S)
    stopped = cluster.clock.now_us() - 20 * S
    last, _ = cluster.node(3)
    assert await last.claimed(0, None, 0) == (Outage(stopped, cluster.clock.now_us()),)


async def test_record_that_could_not_be_written_is_written_at_the_next_heartbeat() -> None:
    cluster = await opened()
    node, _ = cluster.node(1, owned=(0,))
    await node.keep()
    cluster.clock.advance(S)
    node._everywhere(cluster.clock.now_us() - S, cluster.clock.now_us())
    cluster.store.script("put_record", Fault.FAIL)
    await node.keep()
    await node.keep()
    next_one, _ = cluster.node(2)
    assert len(await next_one.claimed(0, None, 0)) == 2


async def test_outages_concern_the_shards_of_the_store_to_which_monitors_were_transferred() -> None:
    """With another number of shards, a monitor's new shard may be one that its node never had."""
    cluster, target = await opened(), await opened()
    target.clock = cluster.clock
    first, name = cluster.node(1, owned=(0, 1))
    await first.keep()
    worked_until = cluster.clock.now_us()
    cluster.clock.advance(60 * S)
    second, _ = cluster.node(2, owned=(0,))
    (before,) = await second.claimed(0, name, 0)
    second.lost(3, cluster.clock.now_us() + S)
    await second.close()
    await cluster.store.put_record(TENURES, "damaged", "{", None)
    cluster.clock.advance(3_600 * S)
    await copy_records(cluster.store, 4, target.store, 8)
    assert await differing_records(cluster.store, 4, target.store, 8) == []
    third, _ = target.node(3)
    outages = await third.claimed(7, None, 0)
    assert outages == (before, Outage(worked_until + 61 * S, cluster.clock.now_us()))
    # Where the shards are the same, so is what is known of each.
    await copy_records(cluster.store, 4, target.store, 4)
    assert await differing_records(cluster.store, 4, target.store, 4) == []
    fourth, _ = target.node(4)
    assert (await fourth.claimed(1, None, 0))[-1].from_us == worked_until


async def test_hand_over_between_nodes_that_work_loses_nothing() -> None:
    cluster = await opened()
    first, _ = cluster.node(1, owned=(0,))
    second, _ = cluster.node(2)
    await first.keep()
    second.followed(0)
    cluster.clock.advance(S)
    (outage,) = await second.claimed(0, None, 0)
    assert not outage.lossy
    second.followed(1)
    cluster.clock.advance(60 * S)
    (*_, outage) = await second.claimed(1, None, 0)
    assert outage.lossy


async def test_a_lone_node_that_stopped_is_out_until_it_starts_again() -> None:
    cluster = await opened()
    first, _ = cluster.node(1, owned=(0,))
    await first.keep()
    cluster.clock.advance(5 * S)
    first.lost(0, cluster.clock.now_us())
    await first.close()
    stopped = cluster.clock.now_us()
    cluster.clock.advance(3_600 * S)
    second, _ = cluster.node(2, seen=False)
    assert await second.claimed(0, None, 0) == (Outage(stopped, cluster.clock.now_us()),)


async def test_without_monitors_nothing_is_written() -> None:
    cluster = await opened()
    node, _ = cluster.node(1, owned=(0,), seen=False)
    await node.keep()
    assert await node.claimed(0, None, 0) == ()
    await node.close()
    assert await cluster.store.records(TENURES, limit=10) == []
