"""Store conformance: damaged rows and namespaces, each of which keeps no other from being read (rule 15)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tocsin.model.errors import RecordUndecodable
from tocsin.model.namespace import DamagedNamespace, Namespace
from tocsin.model.run import decode_run
from tocsin.model.timer import Status, Timer, decode_record, encode_record
from tocsin.ports.store import (
    Found,
    HistoryRow,
    ListQuery,
    RunRow,
    ShardBatch,
    Store,
    StoredRow,
    generation,
    schedules_of,
)
from tocsin.testing.store_conformance_base import (
    ALICE,
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
        query, found = ListQuery("default", _ALL_SHARDS, frozenset(Status)), []
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
            await store.put_namespace(each, create=True)
        await self.damage(store, both[0])
        damaged, sound = sorted(await store.namespaces(), key=lambda each: each.name)
        assert isinstance(damaged, DamagedNamespace)
        assert (damaged.name, damaged.paused) == ("a", True)
        assert damaged.reason
        assert sound == both[1]
