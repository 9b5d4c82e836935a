"""Store conformance: claims, fences, releases and members."""

from __future__ import annotations

from dataclasses import replace

from tocsin.ports.store import Applied, Member, ShardState, Store
from tocsin.testing.store_conformance_base import ALICE, BOB, StoreSuite, claimed, finished, loaded, row, uuid_of


class ClaimConformance(StoreSuite):
    """A shard has one owner at a time, and its epoch only grows."""

    async def test_an_unclaimed_shard_is_not_listed(self, store: Store) -> None:
        assert await store.shards() == []

    async def test_claim_increments_the_epoch(self, store: Store) -> None:
        assert await store.claim(3, expected_epoch=0, owner=ALICE) == 1
        assert await store.claim(3, expected_epoch=1, owner=BOB) == 2
        assert await store.claim(1, expected_epoch=0, owner=ALICE) == 1
        states = {state.shard_id: state for state in await store.shards()}
        assert states == {3: ShardState(3, 2, BOB), 1: ShardState(1, 1, ALICE)}

    async def test_claim_with_another_epoch_is_refused(self, store: Store) -> None:
        assert await store.claim(0, expected_epoch=1, owner=ALICE) is None
        await store.claim(0, expected_epoch=0, owner=ALICE)
        assert await store.claim(0, expected_epoch=0, owner=BOB) is None
        assert await store.claim(0, expected_epoch=2, owner=BOB) is None
        assert await store.shards() == [ShardState(0, 1, ALICE)]

    async def test_the_owner_may_claim_again(self, store: Store) -> None:
        await store.claim(0, expected_epoch=0, owner=ALICE)
        assert await store.claim(0, expected_epoch=1, owner=ALICE) == 2

    async def test_release_clears_the_owner_and_keeps_the_epoch(self, store: Store) -> None:
        await claimed(store)
        assert await store.release(0, epoch=1, owner=ALICE) is True
        assert await store.shards() == [ShardState(0, 1, None)]
        assert await store.release(0, epoch=1, owner=ALICE) is False
        assert await store.claim(0, expected_epoch=1, owner=BOB) == 2

    async def test_release_requires_the_present_owner_and_epoch(self, store: Store) -> None:
        await claimed(store)
        assert await store.release(0, epoch=1, owner=BOB) is False
        assert await store.release(0, epoch=0, owner=ALICE) is False
        assert await store.release(7, epoch=1, owner=ALICE) is False
        assert await store.shards() == [ShardState(0, 1, ALICE)]

    async def test_claim_is_refused_while_the_owners_counter_moves(self, store: Store) -> None:
        await claimed(store)
        await store.heartbeat(Member(ALICE, "a", "http://a", 5))
        assert await store.claim(0, expected_epoch=1, owner=BOB, presumed_dead=(ALICE, 4)) is None
        assert await store.claim(0, expected_epoch=1, owner=BOB, presumed_dead=(ALICE, 5)) == 2

    async def test_member_without_a_row_cannot_be_presumed_dead(self, store: Store) -> None:
        await claimed(store)
        assert await store.claim(0, expected_epoch=1, owner=BOB, presumed_dead=(ALICE, 0)) is None

    async def test_a_first_claim_can_depend_on_a_member_too(self, store: Store) -> None:
        await store.heartbeat(Member(ALICE, "a", "http://a", 5))
        assert await store.claim(0, expected_epoch=0, owner=BOB, presumed_dead=(ALICE, 6)) is None
        assert await store.shards() == []

    async def test_heartbeats_replace_the_member_row(self, store: Store) -> None:
        await store.heartbeat(Member(ALICE, "a", "http://a", 1))
        await store.heartbeat(Member(BOB, "b", "http://b", 1))
        now = await store.heartbeat(Member(ALICE, "a", "http://a:2", 2))
        assert now <= await store.now()
        members = {member.incarnation: member for member in await store.members()}
        assert members == {ALICE: Member(ALICE, "a", "http://a:2", 2), BOB: Member(BOB, "b", "http://b", 1)}

    async def test_members_can_be_removed(self, store: Store) -> None:
        await store.heartbeat(Member(ALICE, "a", "http://a", 1))
        await store.forget_member(ALICE)
        await store.forget_member(BOB)
        assert await store.members() == []

    async def test_member_whose_counter_moved_is_not_removed(self, store: Store) -> None:
        moved = Member(ALICE, "a", "http://a", 2)
        await store.heartbeat(moved)
        await store.forget_member(ALICE, 1)
        assert await store.members() == [moved]
        await store.forget_member(ALICE, 2)
        assert await store.members() == []


class FenceConformance(StoreSuite):
    """A batch whose fence fails has no effect."""

    async def test_batch_for_an_unclaimed_shard_is_refused(self, store: Store) -> None:
        batch = replace(await claimed(store, 1), shard_id=0, upserts=[row(1)])
        assert await store.apply([batch]) == [Applied.OWNERSHIP_LOST]
        assert await loaded(store) == []

    async def test_batches_of_stale_epochs_and_other_owners_have_no_effect(self, store: Store) -> None:
        batch = await claimed(store)
        kept = row(1, 10)
        await store.apply([replace(batch, upserts=[kept])])
        await store.claim(0, expected_epoch=1, owner=BOB)
        attack = replace(batch, upserts=[row(2)], deletes=[uuid_of(1)], history=[finished(kept)])
        for epoch, owner in ((1, ALICE), (2, ALICE), (1, BOB), (3, BOB)):
            stale = replace(attack, epoch=epoch, owner=owner)
            assert await store.apply([stale]) == [Applied.OWNERSHIP_LOST]
            assert await store.apply([replace(stale, upserts=[], deletes=[], delete_to=kept.key)]) == [
                Applied.OWNERSHIP_LOST
            ]
        assert await loaded(store) == [kept]
        assert (await store.fetch(0, [uuid_of(1)]))[uuid_of(1)].finished is None

    async def test_released_shard_accepts_no_batch(self, store: Store) -> None:
        batch = await claimed(store)
        await store.release(0, epoch=1, owner=ALICE)
        assert await store.apply([replace(batch, upserts=[row(1)])]) == [Applied.OWNERSHIP_LOST]
        assert await loaded(store) == []

    async def test_an_empty_batch_tests_the_fence(self, store: Store) -> None:
        batch = await claimed(store)
        assert await store.apply([batch]) == [Applied.DURABLE]
        assert await store.apply([replace(batch, epoch=2)]) == [Applied.OWNERSHIP_LOST]

    async def test_lost_shard_does_not_affect_the_others(self, store: Store) -> None:
        parts = [replace(await claimed(store, shard_id), upserts=[row(shard_id)]) for shard_id in (5, 2, 7)]
        await store.claim(2, expected_epoch=1, owner=BOB)
        assert await store.apply(parts) == [Applied.DURABLE, Applied.OWNERSHIP_LOST, Applied.DURABLE]
        assert [len(await loaded(store, shard_id)) for shard_id in (5, 2, 7)] == [1, 0, 1]

    async def test_the_fence_survives_many_shards_at_once(self, store: Store) -> None:
        parts = [replace(await claimed(store, i), upserts=[row(i, i)]) for i in range(8)]
        assert await store.apply(parts[::-1]) == [Applied.DURABLE] * 8
        assert [len(await loaded(store, i)) for i in range(8)] == [1] * 8

    async def test_empty_apply_has_no_effect(self, store: Store) -> None:
        assert await store.apply([]) == []
