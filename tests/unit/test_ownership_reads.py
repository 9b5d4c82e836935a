"""How often a node reads who owns the shards: seldom while each has the owner that it should have, else at each heartbeat."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.supervised import OTHER, THIRD, Node

from tocsin.ports.store import ShardState


class Counting(Node):
    """A node, and how often it has read the shards."""

    def __init__(self) -> None:
        super().__init__(shards=16)
        self.reads = 0
        shards = self.store.shards

        async def counted() -> list[ShardState]:
            self.reads += 1
            return await shards()

        self.store.shards = counted  # type: ignore[method-assign]

    async def settle(self) -> None:
        """Two nodes with their shares."""
        await self.beat_of(OTHER)
        await self.seconds(7, alive=(OTHER,))
        for shard_id in set(range(16)) - self.owned:
            await self.store.claim(shard_id, expected_epoch=0, owner=OTHER)
        await self.seconds(7, alive=(OTHER,))
        assert 0 < len(self.owned) < 16

    async def reads_in(self, seconds: int, *alive: bytes) -> int:
        """How often it reads the shards in so many seconds."""
        before = self.reads
        await self.seconds(seconds, alive=alive)
        return self.reads - before


@pytest.fixture
async def node() -> AsyncIterator[Counting]:
    node = Counting()
    yield node
    await node.supervisor.kill()


async def test_shards_that_have_their_owners_are_read_every_few_seconds(node: Counting) -> None:
    await node.settle()
    assert await node.reads_in(20, OTHER) == 4


async def test_a_request_reads_them_at_once(node: Counting) -> None:
    await node.settle()
    await node.reads_in(5, OTHER)
    node.supervisor.placement.refresh()
    assert await node.reads_in(1, OTHER) == 1


async def test_while_a_member_joins_or_is_silent_they_are_read_at_each_heartbeat(node: Counting) -> None:
    await node.settle()
    await node.beat_of(THIRD, "t")
    assert await node.reads_in(4, OTHER, THIRD) == 4
    await node.seconds(20, alive=(OTHER, THIRD))
    assert await node.reads_in(4, OTHER, THIRD) == 4, "the third node has not claimed its share"


async def test_shards_of_a_dead_node_are_claimed_by_what_was_read_after_its_death(node: Counting) -> None:
    await node.settle()
    theirs = sorted(set(range(16)) - node.owned)
    await node.seconds(1, alive=(OTHER,))
    # It claims one again, which nobody is notified of, and dies.
    await node.store.claim(theirs[0], expected_epoch=1, owner=OTHER)
    await node.seconds(6)
    assert node.owned == set(range(16))


async def test_a_claim_that_is_lost_is_read_at_each_heartbeat(node: Counting) -> None:
    await node.settle()
    shard = node.supervisor.shards[min(node.owned)]
    await node.reads_in(5, OTHER)
    shard.lose("bad_rows")
    assert await node.reads_in(1, OTHER) == 1
