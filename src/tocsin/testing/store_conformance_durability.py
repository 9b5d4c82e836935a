"""Conformance: namespaces, keys and what else is administered, the number of shards, and what outlives the store object."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tocsin.model.access import ApiKey, Role
from tocsin.model.errors import ConfigError
from tocsin.model.namespace import HistoryMode, Namespace
from tocsin.ports.store import Applied, Found, Member, ShardState, SignOut, Store
from tocsin.testing.store_conformance_base import (
    ALICE,
    TOTAL_SHARDS,
    StoreSuite,
    claimed,
    finished,
    loaded,
    parked,
    row,
)


def namespace(name: str, **settings: object) -> Namespace:
    """A namespace with some settings changed."""
    return msgspec.structs.replace(Namespace(name, num_shards=2, created_at=1, updated_at=1), **settings)


class AdministrationConformance(StoreSuite):
    """Namespaces, API keys, secrets and sign-outs."""

    async def test_namespaces_are_created_once_and_replaced_whole(self, store: Store) -> None:
        assert await store.namespaces() == []
        assert await store.put_namespace(namespace("b"), create=False) is False
        assert await store.put_namespace(namespace("b"), create=True) is True
        assert await store.put_namespace(namespace("a", secret="whsec_x"), create=True) is True
        assert await store.put_namespace(namespace("b", paused=True), create=True) is False
        assert sorted(n.name for n in await store.namespaces() if not n.paused) == ["a", "b"]
        changed = namespace("b", paused=True, history=HistoryMode.NONE, retention_us=5, updated_at=9, version=1)
        assert await store.put_namespace(changed, create=False) is True
        assert {n.name: n for n in await store.namespaces()}["b"] == changed

    async def test_of_changes_to_one_version_of_a_namespace_one_is_made(self, store: Store) -> None:
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

    async def test_a_secret_is_the_first_one_given(self, store: Store) -> None:
        asked = await asyncio.gather(*(store.shared_secret("cluster", f"fresh {number}") for number in range(5)))
        assert len(set(asked)) == 1
        assert asked[0].startswith("fresh ")
        assert await store.shared_secret("cluster", "later") == asked[0]
        assert await store.shared_secret("sign-in", "other") == "other"

    async def test_a_sign_out_is_kept_once(self, store: Store) -> None:
        assert await store.sign_outs() == []
        for sign_out in (SignOut("b", 7), SignOut("a", 5), SignOut("b", 9)):
            await store.put_sign_out(sign_out)
        assert sorted(await store.sign_outs()) == [SignOut("a", 5), SignOut("b", 7)]
        # Names differ by case, and by nothing less.
        await store.put_sign_out(SignOut("A", 5))
        await asyncio.gather(*(store.put_sign_out(SignOut("-_9", 5)) for _ in range(3)))
        assert sorted(await store.sign_outs()) == [("-_9", 5), ("A", 5), ("a", 5), ("b", 7)]

    async def test_sign_outs_go_when_they_expire_and_the_earliest_when_there_are_too_many(self, store: Store) -> None:
        for name, expires_at in (("a", 10), ("b", 20), ("c", 20), ("d", 20), ("e", 30)):
            await store.put_sign_out(SignOut(name, expires_at))
        assert await store.purge_sign_outs(9, keep=5) == 0
        assert await store.purge_sign_outs(10, keep=5) == 1
        # Of those that expire at the same instant the last ones stay: never fewer than may.
        assert await store.purge_sign_outs(10, keep=3) == 1
        assert sorted(await store.sign_outs()) == [("c", 20), ("d", 20), ("e", 30)]
        removed = await asyncio.gather(*(store.purge_sign_outs(10, keep=2) for _ in range(4)))
        assert sum(removed) == 1
        assert sorted(await store.sign_outs()) == [("d", 20), ("e", 30)]
        assert await store.purge_sign_outs(30, keep=2) == 2
        assert await store.sign_outs() == []

    async def test_the_clock_goes_on(self, store: Store) -> None:
        first = await store.now()
        assert first <= await store.now()

    async def test_the_number_of_shards_is_fixed_by_the_first_claim(self, store: Store) -> None:
        await claimed(store)
        await store.close()
        with pytest.raises(ConfigError, match=str(TOTAL_SHARDS)):
            await store.open(TOTAL_SHARDS + 1)
        assert await store.open(None) == TOTAL_SHARDS


class ConcurrencyConformance(StoreSuite):
    """Callers at the same time, and callers that give up."""

    async def test_of_many_claims_of_one_version_one_wins(self, store: Store) -> None:
        owners = [bytes([i]) * 16 for i in range(1, 9)]
        for shard in range(TOTAL_SHARDS):
            claims = [store.claim(shard, expected_version=0, owner=owner) for owner in owners]
            results = await asyncio.gather(*claims)
            assert sorted(results, key=str) == [1] + [None] * 7
            assert ShardState(shard, 1, owners[results.index(1)]) in await store.shards()

    async def test_batches_of_several_shards_at_once_are_whole(self, store: Store) -> None:
        parts = [replace(await claimed(store, i), upserts=[row(n, n) for n in range(1, 50)]) for i in range(4)]
        results = await asyncio.gather(*(store.apply([part]) for part in parts))
        assert results == [[Applied.DURABLE]] * 4
        assert [len(await loaded(store, i)) for i in range(4)] == [49] * 4

    async def test_a_cancelled_caller_leaves_all_or_nothing(self, store: Store) -> None:
        batch = await claimed(store)
        for number in range(20):
            rows = [row(1 + 100 * number + i, number) for i in range(50)]
            task = asyncio.ensure_future(store.apply([replace(batch, upserts=rows)]))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        # Behind everything that was sent: one lane, strictly in order.
        assert await store.apply([batch]) == [Applied.DURABLE]
        instants = [r.execute_at for r in await loaded(store)]
        assert all(instants.count(number) in (0, 50) for number in range(20))


class DurabilityConformance(StoreSuite):
    """What was answered is there when the store is opened again."""

    async def test_everything_survives_a_reopening(self, store: Store, tmp_path: Path) -> None:
        self.require_persistent()
        batch = await claimed(store)
        live, aside, done = row(1, 10, tags=("t",)), row(2, 20, parked="why"), finished(row(3, 30))
        await store.apply([replace(batch, upserts=[live, aside], history=[done])])
        await store.heartbeat(Member(ALICE, "a", "http://a", 7))
        await store.put_namespace(namespace("n"), create=True)
        await store.put_api_key(ApiKey("k", "0" * 64, Role.READ))
        await store.put_sign_out(SignOut("s", 2**62))
        await store.close()
        again = self.make_store(tmp_path)
        assert await again.open(None) == TOTAL_SHARDS
        try:
            assert await again.shards() == [ShardState(0, 1, ALICE)]
            assert (await loaded(again), await parked(again)) == ([live], [aside])
            assert await again.fetch(0, [done.uuid]) == {done.uuid: Found(None, done)}
            assert await again.members() == [Member(ALICE, "a", "http://a", 7)]
            assert await again.namespaces() == [namespace("n")]
            assert [key.key_id for key in await again.api_keys()] == ["k"]
            assert await again.sign_outs() == [SignOut("s", 2**62)]
            assert await again.apply([replace(batch, deletes=[live.uuid])]) == [Applied.DURABLE]
        finally:
            await again.close()

    async def test_closing_twice_is_harmless(self, store: Store) -> None:
        await store.close()
        await store.close()
