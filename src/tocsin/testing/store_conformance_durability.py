"""Store conformance: records, the number of shards, concurrency, durability, and damaged records."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tocsin.administration import namespaces, put_namespace
from tocsin.model.errors import ConfigError, RecordUndecodable, StoreUnavailable
from tocsin.model.namespace import DamagedNamespace, Namespace
from tocsin.model.run import decode_run
from tocsin.model.timer import Status, Timer, decode_record, encode_record
from tocsin.ports.records import DELETED_AT_ONCE_MAX, KEY_CHARS_MAX, RECORD_KEY_END, VALUE_BYTES_MAX, Record
from tocsin.ports.store import (
    Applied,
    Found,
    HistoryRow,
    ListQuery,
    Member,
    RunRow,
    ShardBatch,
    ShardState,
    Store,
    StoredRow,
    generation,
    schedules_of,
)
from tocsin.testing.store_conformance_base import (
    ALICE,
    BOB,
    TOTAL_SHARDS,
    StoreSuite,
    claimed,
    finished,
    loaded,
    put,
    row,
    run,
    suspended,
)


class RecordsConformance(StoreSuite):
    """Records: what each operation of `tocsin.ports.records` promises."""

    async def test_a_range_of_records_is_read_in_pages_in_both_directions(self, store: Store) -> None:
        keys = ["!", "A", "a", "a!", "a/1", "a/2", "a0", "b", "~", "k" * KEY_CHARS_MAX]
        for key in reversed(keys):
            assert await store.put_record("kind", key, f"{key} ä", None)
            await store.put_record("kinds", key, "of another kind", None)
        everything = [Record(key, f"{key} ä", 1) for key in sorted(keys)]
        for descending in (False, True):
            ordered = everything[::-1] if descending else everything
            assert await store.records("kind", limit=100, descending=descending) == ordered
            paged: list[Record] = []
            after, before = "", RECORD_KEY_END
            while page := await store.records("kind", after, before, limit=3, descending=descending):
                paged += page
                after, before = ("", page[-1].key) if descending else (page[-1].key, RECORD_KEY_END)
            assert paged == ordered
            between = [each for each in ordered if "a" < each.key < "a0"]
            assert await store.records("kind", "a", "a0", limit=len(between), descending=descending) == between
        assert await store.records("kind", "b", "a", limit=9) == await store.records("else", limit=9) == []

    async def test_a_record_is_created_once_and_replaced_in_the_version_that_is_stored(self, store: Store) -> None:
        assert await store.record("kind", "a") is None
        assert not await store.put_record("kind", "a", "without one", 1)
        values = [f'{number} " ? \u2028 ä' for number in range(5)]
        made = await asyncio.gather(*(store.put_record("kind", "a", each, None) for each in values))
        assert sorted(made) == [False] * 4 + [True]
        assert await store.record("kind", "a") == Record("a", values[made.index(True)], 1)
        await store.put_record("kind", "A", "another one", None)
        for stale in (None, 2):
            assert not await store.put_record("kind", "a", "stale", stale)
        made = await asyncio.gather(*(store.put_record("kind", "a", each, 1) for each in values))
        assert sorted(made) == [False] * 4 + [True]
        assert await store.record("kind", "a") == Record("a", values[made.index(True)], 2)
        great = "ä" * (VALUE_BYTES_MAX // 2)
        assert await store.put_record("kind", "a", great, 2)
        found = await store.records("kind", limit=9)
        assert found == [Record("A", "another one", 1), Record("a", great, 3)]
        # No type of a driver: nodes send versions to each other.
        assert {type(each.version) for each in found} == {int}

    async def test_records_are_deleted_together_and_created_again(self, store: Store) -> None:
        keys = [f"{number:03d}" for number in range(DELETED_AT_ONCE_MAX)]
        for key in keys:
            await store.put_record("kind", key, "", None)
        await store.put_record("other", "000", "", None)
        assert await store.delete_records("kind", [*keys[1:], "missing"])
        assert not await store.delete_records("kind", keys[1:3])
        assert await store.records("kind", limit=9) == [Record("000", "", 1)]
        assert await store.delete_records("kind", ["000"])
        assert await store.put_record("kind", "000", "again", None)
        assert await store.record("kind", "000") == Record("000", "again", 1)
        assert await store.record("other", "000") == Record("000", "", 1)

    async def test_every_write_changes_the_version_that_other_connections_see(
        self, store: Store, tmp_path: Path
    ) -> None:
        other = self.make_store(tmp_path) if self.persistent and not store.capabilities.exclusive else store
        if other is not store:
            await other.open(None)
        try:
            seen = [await other.records_versions("kind")]
            assert seen == [(0,)]
            await store.put_record("kind", "a", "1", None)
            seen.append(await other.records_versions("kind"))
            await store.put_record("kind", "a", "2", 1)
            seen.append(await other.records_versions("kind"))
            await store.put_record("kinds", "a", "of another kind", None)
            assert await other.records_versions("kind") == seen[-1]
            await store.delete_records("kind", ["a"])
            seen.append(await other.records_versions("kind"))
            await store.put_record("kind", "a", "1", None)
            seen.append(await other.records_versions("kind"))
            assert len(set(seen)) == len(seen)
            several = await other.records_versions("kinds", "none", "kind")
            assert several == (*await other.records_versions("kinds"), 0, *seen[-1])
            assert several[0]
            assert await other.records("kind", limit=9) == [Record("a", "1", 1)]
        finally:
            if other is not store:
                await other.close()


class OpeningConformance(StoreSuite):
    """The store's clock, and the number of shards."""

    async def test_clock_advances(self, store: Store) -> None:
        first = await store.now()
        assert first <= await store.now()

    async def test_facts_are_those_that_the_database_knows(self, store: Store) -> None:
        await claimed(store)
        facts = await store.facts()
        known = [fact for fact in facts if fact is not None]
        assert known
        assert all(isinstance(fact, str) or fact >= 0 for fact in known)

    async def test_the_number_of_shards_is_fixed_by_the_first_claim(self, store: Store) -> None:
        await claimed(store)
        await store.close()
        with pytest.raises(ConfigError, match=str(TOTAL_SHARDS)):
            await store.open(TOTAL_SHARDS + 1)
        assert await store.open(None) == TOTAL_SHARDS

    async def test_a_first_claim_with_a_number_of_shards_that_has_changed_is_refused(
        self, store: Store, tmp_path: Path
    ) -> None:
        if store.capabilities.exclusive:
            pytest.skip("only one node can have the store open")
        other = self.make_store(tmp_path) if self.persistent else store
        await store.close()
        assert await store.open(16) == 16
        assert await other.open(8) == 8
        try:
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match="has another number of shards by now; start again"):
                    await store.claim(12, expected_epoch=0, owner=ALICE)
            assert await other.shards() == []
            assert await other.claim(3, expected_epoch=0, owner=BOB) == 1
            assert await other.claim(3, expected_epoch=0, owner=ALICE) is None
        finally:
            if other is not store:
                await other.close()


class ConcurrencyConformance(StoreSuite):
    """Concurrent and cancelled callers."""

    async def test_one_of_concurrent_claims_succeeds(self, store: Store) -> None:
        owners = [bytes([i]) * 16 for i in range(1, 9)]
        for shard in range(TOTAL_SHARDS):
            claims = [store.claim(shard, expected_epoch=0, owner=owner) for owner in owners]
            results = await asyncio.gather(*claims)
            assert sorted(results, key=str) == [1] + [None] * 7
            assert ShardState(shard, 1, owners[results.index(1)]) in await store.shards()

    async def test_concurrent_batches_of_several_shards_are_atomic(self, store: Store) -> None:
        parts = [replace(await claimed(store, i), upserts=[row(n, n) for n in range(1, 50)]) for i in range(4)]
        results = await asyncio.gather(*(store.apply([part]) for part in parts))
        assert results == [[Applied.DURABLE]] * 4
        assert [len(await loaded(store, i)) for i in range(4)] == [49] * 4

    async def test_cancelled_apply_is_atomic(self, store: Store) -> None:
        batch = await claimed(store)
        for number in range(20):
            rows = [row(1 + 100 * number + i, number) for i in range(50)]
            task = asyncio.ensure_future(store.apply([replace(batch, upserts=rows)]))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        # It runs after everything that was sent: one lane works strictly in order.
        assert await store.apply([batch]) == [Applied.DURABLE]
        instants = [r.execute_at for r in await loaded(store)]
        assert all(instants.count(number) in (0, 50) for number in range(20))


class DurabilityConformance(StoreSuite):
    """What was acknowledged is there when the store is opened again."""

    async def test_data_survives_reopening(self, store: Store, tmp_path: Path) -> None:
        self.require_persistent()
        batch = await claimed(store)
        live, suspended_row, done = row(1, 10, tags=("t",)), row(2, 20, suspended="why"), finished(row(3, 30))
        await store.apply([replace(batch, upserts=[live, suspended_row], history=[done])])
        await store.heartbeat(Member(ALICE, "a", "http://a", 7))
        await store.put_record("kind", "key", "value", None)
        await store.put_record("kind", "key", "changed", 1)
        await store.close()
        again = self.make_store(tmp_path)
        assert await again.open(None) == TOTAL_SHARDS
        try:
            assert await again.shards() == [ShardState(0, 1, ALICE)]
            assert (await loaded(again), await suspended(again)) == ([live], [suspended_row])
            assert await again.fetch(0, [done.uuid]) == {done.uuid: Found(None, done)}
            assert await again.members() == [Member(ALICE, "a", "http://a", 7)]
            assert await again.records("kind", limit=9) == [Record("key", "changed", 2)]
            assert await again.apply([replace(batch, deletes=[live.uuid])]) == [Applied.DURABLE]
        finally:
            await again.close()

    async def test_closing_twice_is_harmless(self, store: Store) -> None:
        await store.close()
        await store.close()


_ALL_SHARDS = tuple(range(TOTAL_SHARDS))


def timers(count: int, *, namespace: str = "default", reason: str | None = None) -> list[StoredRow]:
    """Live rows with records that can be decoded."""
    rows = [row(number, at=number, namespace=namespace, suspended=reason) for number in range(1, count + 1)]
    return [
        each._replace(record=encode_record(Timer(namespace, each.timer_id, each.execute_at, "http://a/", 0, 0)))
        for each in rows
    ]


def is_damaged(found: StoredRow | HistoryRow) -> bool:
    """Whether the engine would suspend the row instead of using it."""
    try:
        decode_record(found.record)
    except RecordUndecodable:
        return True
    return False


class DamageConformance(StoreSuite):
    """Damage of one row or namespace."""

    async def damage(self, store: Store, what: StoredRow | HistoryRow | RunRow | Namespace) -> None:
        """Damages what is stored of a row of shard 0, or of a namespace, as an operator's console or a restore in part would.
        Override it to run these tests."""
        pytest.skip("no way to damage a row")

    async def test_a_damaged_live_row_is_loaded_with_its_key_among_the_others(self, store: Store) -> None:
        await claimed(store)
        rows = timers(5)
        await put(store, *rows)
        await self.damage(store, rows[2])
        found = await loaded(store)
        assert [each.key for each in found] == [each.key for each in rows]
        assert [each for each in found if not is_damaged(each)] == [*rows[:2], *rows[3:]]

    async def test_a_damaged_live_row_is_fetched_among_the_others(self, store: Store) -> None:
        await claimed(store)
        rows = timers(3)
        await put(store, *rows)
        await self.damage(store, rows[1])
        found = await store.fetch(0, [each.uuid for each in rows])
        damaged = found.pop(rows[1].uuid)
        assert found == {each.uuid: Found(each, None) for each in (rows[0], rows[2])}
        assert damaged.live is not None
        assert damaged.live.uuid == rows[1].uuid
        assert is_damaged(damaged.live)

    async def test_a_damaged_row_can_be_suspended_and_deleted(self, store: Store) -> None:
        await claimed(store)
        rows = timers(3)
        await put(store, *rows)
        await self.damage(store, rows[1])
        raw = (await loaded(store))[1]
        await put(store, raw._replace(generation=generation(1, ALICE, 10_000), suspended="bad_record: …"))
        assert await loaded(store) == [rows[0], rows[2]]
        (kept,) = await suspended(store)
        assert (kept.key, kept.suspended, kept.record) == (rows[1].key, "bad_record: …", raw.record)
        await self.damage(store, kept)
        assert [each.key for each in await suspended(store)] == [rows[1].key]
        await store.apply([ShardBatch(0, 1, ALICE, deletes=[rows[1].uuid])])
        assert await suspended(store) == []
        assert set(await store.fetch(0, [each.uuid for each in rows])) == {rows[0].uuid, rows[2].uuid}

    async def test_a_damaged_row_is_replaced(self, store: Store) -> None:
        await claimed(store)
        rows = timers(2)
        await put(store, *rows)
        await self.damage(store, rows[1])
        again = rows[1]._replace(generation=generation(1, ALICE, 10_000), execute_at=7)
        await put(store, again)
        assert await loaded(store) == [rows[0], again]

    async def test_a_damaged_row_hides_no_other_in_a_list(self, store: Store) -> None:
        batch = await claimed(store)
        live, ended = timers(3), [finished(each, Status.COMPLETED) for each in timers(6)[3:]]
        batch.upserts, batch.history = live, ended
        await store.apply([batch])
        await self.damage(store, live[1])
        await self.damage(store, ended[1])
        query, found = ListQuery(("default",), _ALL_SHARDS, frozenset(Status)), []
        while True:
            page = await store.list(query)
            found += page.rows
            if page.cursor is None:
                break
            query = replace(query, cursor=page.cursor)
        assert [each for each in found if not is_damaged(each)] == [live[0], live[2], ended[0], ended[2]]
        assert len(found) <= 6

    async def test_a_damaged_schedule_hides_no_other(self, store: Store) -> None:
        await claimed(store)
        name = schedules_of("default")
        rows = timers(3, namespace=name)
        await put(store, *rows)
        await self.damage(store, rows[1])
        for _ in range(2):
            listed = await store.list_schedules("default", _ALL_SHARDS, "", 10)
            assert [each for each in listed if not is_damaged(each)] == [rows[0], rows[2]]
            assert [each.timer_id for each in listed] == [each.timer_id for each in rows]

    async def test_damaged_history_and_runs_hide_no_others(self, store: Store) -> None:
        batch = await claimed(store)
        live = timers(1)[0]
        ends = [live._replace(generation=generation(1, ALICE, number)) for number in (1, 2, 3, 4)]
        history = [finished(each) for each in ends[:2]]
        runs = [run(each) for each in ends[2:]]
        batch.upserts, batch.history, batch.runs = [live], history, runs
        await store.apply([batch])
        await self.damage(store, history[1])
        await self.damage(store, runs[0])
        found = await store.runs(0, live.uuid, None, 10)
        assert [each.generation for each in found] == [each.generation for each in reversed(ends)]
        assert (found[0], found[3]) == (runs[1], history[0])
        assert isinstance(found[2], HistoryRow)
        assert is_damaged(found[2])
        with pytest.raises(RecordUndecodable):
            decode_run(found[1].record)
        fetched = (await store.fetch(0, [live.uuid]))[live.uuid]
        assert fetched.live == live
        assert fetched.finished is not None
        assert is_damaged(fetched.finished)

    async def test_a_damaged_namespace_is_named_among_the_others(self, store: Store) -> None:
        both = [Namespace(name, num_shards=2, created_at=1, updated_at=1, version=1) for name in ("a", "b")]
        for each in both:
            await put_namespace(store, each, create=True)
        await self.damage(store, both[0])
        damaged, sound = sorted(await namespaces(store), key=lambda each: each.name)
        assert isinstance(damaged, DamagedNamespace)
        assert (damaged.name, damaged.paused) == ("a", True)
        assert damaged.reason
        assert sound == both[1]
