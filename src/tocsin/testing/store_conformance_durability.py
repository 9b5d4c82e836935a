"""Store conformance: administration, the number of shards, concurrency, durability, and damaged records."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tocsin.model.access import ApiKey, Role
from tocsin.model.audit import AuditEntry
from tocsin.model.errors import ConfigError, RecordUndecodable
from tocsin.model.namespace import DamagedNamespace, HistoryMode, Namespace
from tocsin.model.run import decode_run
from tocsin.model.timer import Status, Timer, decode_record, encode_record
from tocsin.ports.store import (
    Applied,
    AuditQuery,
    Found,
    HistoryRow,
    ListQuery,
    Member,
    RunRow,
    ShardBatch,
    ShardState,
    SignIn,
    Store,
    StoredRow,
    generation,
    schedules_of,
)
from tocsin.stores.memory import in_audit
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


def namespace(name: str, **settings: object) -> Namespace:
    """A namespace with some settings changed."""
    return msgspec.structs.replace(Namespace(name, num_shards=2, created_at=1, updated_at=1), **settings)


class AdministrationConformance(StoreSuite):
    """Namespaces, API keys, secrets, sign-ins and the audit trail."""

    async def test_namespaces_are_created_once_and_replaced_completely(self, store: Store) -> None:
        assert await store.namespaces() == []
        assert await store.put_namespace(namespace("b"), create=False) is False
        assert await store.put_namespace(namespace("b"), create=True) is True
        assert await store.put_namespace(namespace("a", secret="whsec_x"), create=True) is True
        assert await store.put_namespace(namespace("b", paused=True), create=True) is False
        assert sorted(n.name for n in await store.namespaces() if not n.paused) == ["a", "b"]
        changed = namespace("b", paused=True, history=HistoryMode.NONE, retention_us=5, updated_at=9, version=1)
        assert await store.put_namespace(changed, create=False) is True
        assert {n.name: n for n in await store.namespaces()}["b"] == changed

    async def test_one_of_concurrent_changes_to_a_namespace_version_succeeds(self, store: Store) -> None:
        await store.put_namespace(namespace("n", version=1), create=True)
        await store.put_namespace(namespace("other", version=1), create=True)
        for stale in (0, 1, 3):
            assert await store.put_namespace(namespace("n", paused=True, version=stale), create=False) is False
        changes = [namespace("n", retention_us=number, version=2) for number in range(5)]
        made = await asyncio.gather(*(store.put_namespace(change, create=False) for change in changes))
        assert sorted(made) == [False] * 4 + [True]
        assert await store.namespaces() == [changes[made.index(True)], namespace("other", version=1)]

    async def test_api_keys(self, store: Store) -> None:
        key = ApiKey("k1", "0" * 64, Role.WRITE, ("default",), (), 5, "für CI")
        await store.put_api_key(key)
        await store.put_api_key(ApiKey("k2", "1" * 64, Role.ADMIN))
        await store.put_api_key(msgspec.structs.replace(key, note="changed"))
        keys = {each.key_id: each for each in await store.api_keys()}
        assert keys["k1"] == msgspec.structs.replace(key, note="changed")
        assert await store.delete_api_key("k1") is True
        assert await store.delete_api_key("k1") is False
        assert [each.key_id for each in await store.api_keys()] == ["k2"]

    async def test_shared_secret_is_the_first_one_stored(self, store: Store) -> None:
        asked = await asyncio.gather(*(store.shared_secret("cluster", f"fresh {number}") for number in range(5)))
        assert len(set(asked)) == 1
        assert asked[0].startswith("fresh ")
        assert await store.shared_secret("cluster", "later") == asked[0]
        assert await store.shared_secret("sign-in", "other") == "other"

    async def test_sign_in_ends_by_deletion_or_with_its_key(self, store: Store) -> None:
        key = ApiKey("k", "0" * 64, Role.READ, expires_at=99)
        await store.put_api_key(key)
        assert await store.api_keys() == [key]
        one, two, other = SignIn("a", "k", 5, 50), SignIn("A", "k", 6, 50), SignIn("b", "else", 5, 50)
        for each in (one, two, other, other):
            await store.put_sign_in(each, 1, 10)
        assert sorted(await store.sign_ins(["a", "A", "b", "c"])) == [two, one, other]
        assert await store.sign_ins([]) == []
        # The last use never moves back, and a touch does not restore a deleted sign-in.
        assert await store.touch_sign_in("a", 9) is True
        assert await store.touch_sign_in("a", 7) is True
        assert await store.sign_ins(["a"]) == [one._replace(seen_at=9)]
        assert await store.delete_sign_in("a") is True
        assert await store.delete_sign_in("a") is False
        assert await store.touch_sign_in("a", 10) is False
        assert await store.delete_api_key("k") is True
        assert await store.sign_ins(["a", "A", "b"]) == [other]

    async def test_expired_and_excess_sign_ins_are_removed(self, store: Store) -> None:
        for name, key_id, seen_at, expires_at in (
            ("a", "k", 3, 50),
            ("b", "k", 2, 50),
            ("c", "k", 1, 9),
            ("d", "l", 1, 50),
        ):
            await store.put_sign_in(SignIn(name, key_id, seen_at, expires_at), 0, 9)
        await store.put_sign_in(SignIn("e", "m", 0, 50), 9, 9)
        assert sorted(each.token_hash for each in await store.sign_ins(["a", "b", "c", "d", "e"])) == [
            "a",
            "b",
            "d",
            "e",
        ]
        # The new one stays, and of the key's others those that were last seen.
        await store.put_sign_in(SignIn("f", "k", 0, 50), 10, 2)
        assert sorted(each.token_hash for each in await store.sign_ins(["a", "b", "d", "f"])) == ["a", "d", "f"]

    async def test_audit_trail_is_read_in_pages_newest_first(self, store: Store) -> None:
        entries = [
            AuditEntry(
                at, bytes([15 - at]) * 16, action, key_id, subject, "api", "10.0.0.1", "n", {"fields": ["ä", "b"]}
            )
            for at, action, key_id, subject in (
                (1, "sign_in", "k", ""),
                (2, "key_created", None, "k"),
                (2, "namespace_changed", "k", "orders"),
                (3, "sign_in", "K", ""),
                (4, "a later action", "k", "Orders"),
            )
        ]
        entries[2] = msgspec.structs.replace(entries[2], entry_id=b"\xff" * 16)
        for entry in (*entries, entries[0]):
            await store.put_audit(entry)
        newest = entries[::-1]
        assert await store.audit(AuditQuery()) == newest
        paged: list[AuditEntry] = []
        while page := await store.audit(AuditQuery(limit=2, cursor=paged[-1].place if paged else None)):
            paged += page
        assert paged == newest
        for query in (
            AuditQuery(actions=frozenset({"sign_in", "key_created"})),
            AuditQuery(key_id="k"),
            AuditQuery(subject="orders"),
            AuditQuery(after=2, before=4),
            AuditQuery(actions=frozenset({"sign_in"}), key_id="k", after=1, before=2, cursor=(2, b"\x00" * 16)),
        ):
            assert await store.audit(query) == [entry for entry in newest if in_audit(query, entry)] != []
        assert await store.purge_audit(4, 3) == 3
        assert await store.purge_audit(4, 3) == 1
        assert await store.audit(AuditQuery()) == [entries[4]]

    async def test_clock_advances(self, store: Store) -> None:
        first = await store.now()
        assert first <= await store.now()

    async def test_the_number_of_shards_is_fixed_by_the_first_claim(self, store: Store) -> None:
        await claimed(store)
        await store.close()
        with pytest.raises(ConfigError, match=str(TOTAL_SHARDS)):
            await store.open(TOTAL_SHARDS + 1)
        assert await store.open(None) == TOTAL_SHARDS


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
        await store.put_namespace(namespace("n"), create=True)
        await store.put_api_key(ApiKey("k", "0" * 64, Role.READ))
        await store.put_sign_in(SignIn("s", "k", 1, 2**62), 1, 10)
        entry = AuditEntry(5, b"e" * 16, "key_created", None, "k", "cli", "", "n")
        await store.put_audit(entry)
        await store.close()
        again = self.make_store(tmp_path)
        assert await again.open(None) == TOTAL_SHARDS
        try:
            assert await again.shards() == [ShardState(0, 1, ALICE)]
            assert (await loaded(again), await suspended(again)) == ([live], [suspended_row])
            assert await again.fetch(0, [done.uuid]) == {done.uuid: Found(None, done)}
            assert await again.members() == [Member(ALICE, "a", "http://a", 7)]
            assert await again.namespaces() == [namespace("n")]
            assert [key.key_id for key in await again.api_keys()] == ["k"]
            assert await again.sign_ins(["s"]) == [SignIn("s", "k", 1, 2**62)]
            assert await again.audit(AuditQuery()) == [entry]
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
