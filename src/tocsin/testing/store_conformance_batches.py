"""Store conformance: claims and the fence, batches, loads and fetches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tocsin.model.errors import DefiniteFailure
from tocsin.model.timer import Status
from tocsin.model.validation import InputLimits
from tocsin.ports.store import KEY_MAX, KEY_MIN, Applied, Found, Member, ShardState, Store, schedules_of
from tocsin.testing.store_conformance_base import (
    ALICE,
    BOB,
    StoreSuite,
    claimed,
    finished,
    loaded,
    put,
    row,
    suspended,
    uuid_of,
)
from tocsin.timers.engine.window import REASON_CHARS_MAX


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


class BatchConformance(StoreSuite):
    """Upserts, deletes, range deletes and history are applied atomically."""

    async def test_upsert_moves_a_uuid_from_any_key(self, store: Store) -> None:
        await claimed(store)
        await put(store, row(1, 10), row(2, 20))
        later, earlier = row(1, 30), row(2, 5)
        await put(store, later, earlier)
        assert await loaded(store) == [earlier, later]

    async def test_an_upsert_replaces_every_column(self, store: Store) -> None:
        await claimed(store)
        await put(store, row(1, 10, tags=("a", "b"), record=b"old"))
        new = row(1, 10, namespace="other", timer_id="renamed", record=b"new")
        await put(store, new)
        assert await loaded(store) == [new]

    async def test_suspending_and_resuming_keeps_one_row(self, store: Store) -> None:
        await claimed(store)
        await put(store, row(1, 10))
        suspended_row = row(1, 10, suspended="namespace:default")
        await put(store, suspended_row)
        assert (await loaded(store), await suspended(store)) == ([], [suspended_row])
        back = row(1, 12)
        await put(store, back)
        assert (await loaded(store), await suspended(store)) == ([back], [])

    async def test_deletes_by_uuid_reach_live_and_suspended_rows_and_ignore_others(self, store: Store) -> None:
        batch = await claimed(store)
        await put(store, row(1, 10), row(2, 20, suspended="why"), kept := row(3, 30))
        deletes = [uuid_of(1), uuid_of(2), uuid_of(99)]
        assert await store.apply([replace(batch, deletes=deletes)]) == [Applied.DURABLE]
        assert (await loaded(store), await suspended(store)) == ([kept], [])

    async def test_range_delete_ends_exactly_at_its_key(self, store: Store) -> None:
        self.require_range_delete(store)
        batch = await claimed(store)
        rows = [row(1, -5), row(2, 10), row(3, 10), row(4, 10), row(5, 11)]
        await put(store, *rows)
        await store.apply([replace(batch, delete_to=(10, uuid_of(3)))])
        assert await loaded(store) == rows[3:]

    async def test_range_delete_keeps_suspended_rows_and_other_shards(self, store: Store) -> None:
        self.require_range_delete(store)
        batch = await claimed(store)
        await claimed(store, 1)
        await put(store, row(1, 10), suspended_row := row(2, 10, suspended="why"))
        await put(store, neighbour := row(3, 5), shard_id=1)
        await store.apply([replace(batch, delete_to=(10, uuid_of(9)))])
        assert (await loaded(store), await suspended(store), await loaded(store, 1)) == (
            [],
            [suspended_row],
            [neighbour],
        )

    async def test_a_row_can_be_suspended_inside_the_deleted_range(self, store: Store) -> None:
        self.require_range_delete(store)
        batch = await claimed(store)
        await put(store, row(1, 10), row(2, 10))
        suspended_row = row(1, 10, suspended="why")
        await store.apply([replace(batch, upserts=[suspended_row], delete_to=(10, uuid_of(9)))])
        assert (await loaded(store), await suspended(store)) == ([], [suspended_row])

    async def test_a_watermark_beside_its_deletes_leaves_only_later_rows(self, store: Store) -> None:
        if not store.capabilities.delete_watermark:
            pytest.skip("no watermark beside deletes")
        batch = await claimed(store)
        await put(store, row(1, 10), row(2, 20), suspended_row := row(3, 15, suspended="why"), kept := row(4, 21))
        # It has moved, and its former place is below the watermark.
        await put(store, moved := row(1, 30))
        await store.apply([replace(batch, deletes=[uuid_of(2)], delete_to=(20, uuid_of(2)))])
        assert (await loaded(store), await suspended(store)) == ([kept, moved], [suspended_row])
        await put(store, late := row(2, 5))
        assert await loaded(store) == [late, kept, moved]

    async def test_all_parts_of_a_batch_are_atomic(self, store: Store) -> None:
        batch = await claimed(store)
        await put(store, done := row(1, 10), row(2, 20), gone := row(3, 30))
        retried, new = row(2, 40), row(4, 5)
        history = [finished(done), finished(gone, Status.CANCELED)]
        parts = replace(batch, upserts=[retried, new], deletes=[done.uuid, gone.uuid], history=history)
        assert await store.apply([parts]) == [Applied.DURABLE]
        assert await loaded(store) == [new, retried]
        found = await store.fetch(0, [uuid_of(i) for i in range(1, 5)])
        assert found[uuid_of(1)] == Found(None, history[0])
        assert found[uuid_of(3)] == Found(None, history[1])

    async def test_definite_failure_has_no_effect(self, store: Store) -> None:
        batch, other = await claimed(store), await claimed(store, 1)
        bad = row(2, 2**63)
        with pytest.raises(DefiniteFailure):
            await store.apply([replace(batch, upserts=[row(1)]), replace(other, upserts=[bad])])
        assert (await loaded(store), await loaded(store, 1)) == ([], [])
        assert await store.apply([replace(batch, upserts=[row(1)])]) == [Applied.DURABLE]

    @pytest.mark.parametrize("rows", [1, 2, 31, 33, 512, 513, 1100])
    async def test_batches_of_every_size_are_complete(self, store: Store, rows: int) -> None:
        batch = await claimed(store)
        written = [row(i, -i) for i in range(1, rows + 1)]
        history = [finished(each) for each in written]
        await store.apply([replace(batch, upserts=written, history=history)])
        assert await loaded(store, page_rows=1000) == written[::-1]
        deletes = [each.uuid for each in written]
        await store.apply([replace(batch, deletes=deletes)])
        assert await loaded(store) == []
        assert await store.fetch(0, deletes) == {each.uuid: Found(None, each) for each in history}

    async def test_values_round_trip(self, store: Store) -> None:
        await claimed(store)
        rows = [
            row(1, 1, record=b"\x00\xff\xfe not text", timer_id="Grüße 🚨", namespace="a.b:c-d_e"),
            row(2, 2, record=b"", tags=("", "é", "a b")),
            row(3, 3, record='{"text":"ü\\u0000"}'.encode(), tags=('"quoted"',), timer_id='back\\slash"'),
            row(4, 4, record=b"x" * 300_000),
            row(5, 5, suspended="bad_record: line\nbreak"),
        ]
        await put(store, *rows)
        assert await loaded(store) == rows[:4]
        assert await suspended(store) == rows[4:]
        assert await store.fetch(0, [r.uuid for r in rows]) == {r.uuid: Found(r, None) for r in rows}

    async def test_a_row_of_the_greatest_size_is_stored_with_its_history(self, store: Store) -> None:
        if store.capabilities.row_bytes_max is None:
            pytest.skip("no limit on rows")
        batch, limits = await claimed(store), InputLimits()
        record = b"\\" * store.capabilities.row_bytes_max
        name, widest = schedules_of("n" * 255), "\U0001f514"
        tags = tuple(f"{number:02}" + widest * (limits.tag_chars_max - 2) for number in range(limits.tags_max))
        timer_id, reason = widest * limits.id_chars_max, widest * REASON_CHARS_MAX
        largest = row(1, namespace=name, timer_id=timer_id, tags=tags, record=record, suspended=reason)
        ended = finished(largest._replace(generation=row(1).generation))
        batch.upserts, batch.history = [largest], [ended]
        assert await store.apply([batch]) == [Applied.DURABLE]
        assert await store.fetch(0, [largest.uuid]) == {largest.uuid: Found(largest, ended)}


class LoadConformance(StoreSuite):
    """Loads return pages in key order that state how far they are complete."""

    async def test_an_empty_or_unclaimed_shard_is_complete_at_once(self, store: Store) -> None:
        assert await store.load(0, KEY_MIN, (50, uuid_of(1)), 10) == ([], (50, uuid_of(1)))
        assert await store.load_suspended(0, KEY_MIN, 10) == ([], KEY_MAX)
        await claimed(store)
        assert await store.load(0, KEY_MIN, KEY_MAX, 10) == ([], KEY_MAX)

    async def test_equal_instants_are_ordered_by_unsigned_bytes(self, store: Store) -> None:
        await claimed(store)
        # Orders that some databases get wrong: signed bytes, little-endian fields, time-based UUID orders, text.
        uuids = [
            bytes.fromhex(text)
            for text in (
                "00000000000000000000000000000001",
                "000000000000000000000000000000ff",
                "00000000000010ff8000000000000000",
                "00000000010010008000000000000000",
                "0a000000000000000000000000000000",
                "7fffffffffffffffffffffffffffffff",
                "80000000000000000000000000000000",
                "a0000000000000000000000000000000",
                "ff000000000000000000000000000000",
                "ffffffffffffffffffffffffffffffff",
            )
        ]
        rows = [row(i, 7, uuid=uuid) for i, uuid in enumerate(uuids)]
        await put(store, *rows[::2], *rows[1::2])
        for page_rows in (1, 3, 100):
            assert await loaded(store, page_rows=page_rows) == rows

    async def test_instants_are_exact_and_signed(self, store: Store) -> None:
        await claimed(store)
        instants = [-(2**63), -(2**62), -1, 0, 1, 999_999, 1_000_000, 2**53 + 1, 2**53 + 2, 2**63 - 1]
        rows = [row(i + 1, at) for i, at in enumerate(instants)]
        await put(store, *rows)
        assert await loaded(store, page_rows=3) == rows

    async def test_bounds_are_exclusive_and_inclusive(self, store: Store) -> None:
        await claimed(store)
        rows = [row(i, 10) for i in range(1, 6)]
        await put(store, *rows)
        assert await loaded(store, after=rows[0].key, up_to=rows[3].key) == rows[1:4]
        assert await loaded(store, after=(10, b""), up_to=(10, uuid_of(0))) == []
        assert await loaded(store, after=(9, b"\xff" * 16), up_to=(11, uuid_of(0))) == rows

    async def test_full_page_is_complete_only_up_to_its_last_row(self, store: Store) -> None:
        await claimed(store)
        rows = [row(i, i) for i in range(1, 8)]
        await put(store, *rows)
        page = await store.load(0, KEY_MIN, KEY_MAX, 3)
        assert 1 <= len(page.rows) <= 3
        assert page.rows == rows[: len(page.rows)]
        assert page.complete_to < rows[len(page.rows)].key
        assert await loaded(store, page_rows=3) == rows

    async def test_suspended_rows_do_not_load(self, store: Store) -> None:
        await claimed(store)
        await put(store, row(1, 1, suspended="why"), live := row(2, 2), row(3, 3, suspended="why"))
        assert await loaded(store, page_rows=1) == [live]
        assert [r.uuid for r in await suspended(store, page_rows=1)] == [uuid_of(1), uuid_of(3)]

    async def test_a_load_sees_what_was_just_applied(self, store: Store) -> None:
        batch = await claimed(store)
        for number in range(1, 30):
            await put(store, latest := row(number, 0))
            assert (await loaded(store))[-1] == latest
        await store.apply([replace(batch, deletes=[uuid_of(i) for i in range(1, 30)])])
        assert await loaded(store) == []

    async def test_large_records_may_shorten_a_page_without_losing_rows(self, store: Store) -> None:
        await claimed(store)
        rows = [row(i, i, record=bytes([48 + i % 10]) * 100_000) for i in range(1, 60)]
        await put(store, *rows)
        assert await loaded(store) == rows


class FetchConformance(StoreSuite):
    """Fetches return the live row and the newest history row of each uuid."""

    async def test_unknown_uuids_are_absent(self, store: Store) -> None:
        assert await store.fetch(0, [uuid_of(1)]) == {}
        await claimed(store)
        await put(store, one := row(1))
        assert await store.fetch(0, [uuid_of(1), uuid_of(2), uuid_of(1)]) == {uuid_of(1): Found(one, None)}
        assert await store.fetch(0, []) == {}

    async def test_fetch_reads_only_its_shard(self, store: Store) -> None:
        await claimed(store)
        await claimed(store, 1)
        await put(store, row(1))
        assert await store.fetch(1, [uuid_of(1)]) == {}

    async def test_suspended_and_finished_rows_are_found(self, store: Store) -> None:
        batch = await claimed(store)
        first, second, present = row(1, 10), row(1, 5), row(1, 20, suspended="why")
        history = [finished(first, Status.FAILED), finished(second)]
        await store.apply([replace(batch, upserts=[present], history=history)])
        # The newest generation counts, not the latest instant or the last one written.
        await store.apply([replace(batch, history=[history[0]])])
        assert await store.fetch(0, [uuid_of(1)]) == {uuid_of(1): Found(present, history[1])}
