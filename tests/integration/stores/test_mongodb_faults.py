"""MongoStore with lost and late commits, transactions that were left open, servers that are killed, missing or unsuitable,
and databases of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pymongo
import pytest
import pytest_asyncio
from pymongo import DeleteMany
from pymongo import MongoClient as Driver
from pymongo.asynchronous.collection import AsyncCollection

from tests.support.cases import each
from tests.support.mongodb import MongoServer
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tocsin.model.errors import (
    ConfigError,
    DefiniteFailure,
    OutcomeUnknown,
    SchemaTooNew,
    StoreCorrupted,
    StoreUnavailable,
)
from tocsin.ports.store import KEY_MIN, Applied, ShardState
from tocsin.stores.mongodb.address import parse_address
from tocsin.stores.mongodb.client import Document, MongoClient
from tocsin.stores.mongodb.store import MongoStore
from tocsin.stores.options import MongoOptions
from tocsin.testing.store_conformance_base import ALICE, BOB, claimed, finished, loaded, put, row

COMMIT = b"commitTransaction"
#: How long a write takes until the server falls silent, and then waits for it. All else waits as long as it does in a node:
#: others use the server too.
SILENCE_S = 5.0


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[MongoStore]:
    store = MongoStore(url, MongoOptions(**options))
    await store.open(4)
    try:
        yield store
    finally:
        await store.close()


@pytest_asyncio.fixture
async def store(mongodb_url: str) -> AsyncIterator[MongoStore]:
    async with opened(mongodb_url) as store:
        yield store


def database_of(url: str) -> str:
    return parse_address(url).database


# -- range deletes


async def test_a_range_delete_begins_where_the_last_one_ended(
    store: MongoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, filters = await claimed(store), []
    bulk_write = AsyncCollection.bulk_write

    async def noted(collection: Any, requests: list[Any], **options: Any) -> Any:
        filters.extend(request._filter for request in requests if isinstance(request, DeleteMany))
        return await bulk_write(collection, requests, **options)

    monkeypatch.setattr(AsyncCollection, "bulk_write", noted)
    live = [row(number, number * 10) for number in range(1, 6)]
    await put(store, *live)
    for number in (1, 3):
        await store.apply([replace(batch, delete_to=live[number].key)])
    assert await loaded(store) == live[4:]
    instants = [each["at"] for each in filters]
    assert instants == [{"$gte": KEY_MIN[0], "$lt": 20}, 20, {"$gte": 20, "$lt": 40}, 40]
    # At one instant it is the uuid where it begins.
    same = [row(number, 40) for number in (7, 8)]
    await put(store, *same)
    await store.apply([replace(batch, delete_to=same[0].key)])
    last = filters[-1]
    assert (bytes(last["uuid"]["$gte"]), bytes(last["uuid"]["$lte"])) == (live[3].uuid, same[0].uuid)
    assert await loaded(store) == [same[1], live[4]]


# -- unknown outcomes


async def test_a_commit_whose_answer_is_lost_is_an_unknown_outcome(
    shared_mongodb: MongoServer, mongodb_url: str
) -> None:
    async with Proxy(("127.0.0.1", shared_mongodb.port)) as proxy:
        url = shared_mongodb.url(database_of(mongodb_url), proxy.port)
        async with opened(url) as first, opened(mongodb_url) as second:
            batch = await claimed(first)
            proxy.when(COMMIT, lambda: proxy.silence(answers_only=True))
            with pytest.raises(OutcomeUnknown), pymongo.timeout(SILENCE_S):
                await first.apply([replace(batch, upserts=[written := row(1)])])
            # It was committed.
            assert await loaded(second) == [written]
            assert await second.claim(0, expected_epoch=1, owner=BOB) == 2
            proxy.speak()
            assert await first.apply([replace(batch, upserts=[row(2)])]) == [Applied.OWNERSHIP_LOST]
            assert await loaded(second) == [written]


async def test_a_commit_that_comes_after_the_next_claim_has_no_effect(
    shared_mongodb: MongoServer, mongodb_url: str
) -> None:
    async with Proxy(("127.0.0.1", shared_mongodb.port)) as proxy:
        url = shared_mongodb.url(database_of(mongodb_url), proxy.port)
        async with opened(url) as first, opened(mongodb_url) as second:
            batch = await claimed(first)
            proxy.when(COMMIT, proxy.silence)
            with pytest.raises(OutcomeUnknown), pymongo.timeout(SILENCE_S):
                await first.apply([replace(batch, upserts=[row(1)])])
            # The transaction is open in the server, and holds the shard: the claim has it ended.
            assert await second.claim(0, expected_epoch=1, owner=BOB) == 2
            proxy.speak()
            assert await first.shards() == await second.shards()
            assert await loaded(second) == []
            assert await first.claim(0, expected_epoch=2, owner=ALICE) == 3


async def test_a_node_ends_its_own_transaction_when_it_claims_again(
    shared_mongodb: MongoServer, mongodb_url: str
) -> None:
    async with Proxy(("127.0.0.1", shared_mongodb.port)) as proxy:
        url = shared_mongodb.url(database_of(mongodb_url), proxy.port)
        async with opened(url) as store:
            batch = await claimed(store)
            proxy.when(COMMIT, proxy.silence)
            with pytest.raises(OutcomeUnknown), pymongo.timeout(SILENCE_S):
                await store.apply([replace(batch, upserts=[row(1)])])
            proxy.speak()
            assert await store.claim(0, expected_epoch=1, owner=ALICE) == 2
            # The commit may have come before the claim, but not after it.
            found = await loaded(store)
            assert await store.apply([replace(batch, epoch=2, upserts=[later := row(2, 1)])]) == [Applied.DURABLE]
            assert await loaded(store) == [*found, later]


async def test_a_transaction_that_timed_out_before_its_commit_is_not_in_the_way_of_the_next(
    shared_mongodb: MongoServer, mongodb_url: str
) -> None:
    async with Proxy(("127.0.0.1", shared_mongodb.port)) as proxy:
        url = shared_mongodb.url(database_of(mongodb_url), proxy.port)
        async with opened(url) as store:
            batch = await claimed(store)
            # The fence arrives, and its answer does not.
            proxy.when(b"commits", lambda: proxy.silence(answers_only=True))
            with pytest.raises(StoreUnavailable), pymongo.timeout(SILENCE_S):
                await store.apply([replace(batch, upserts=[row(1)])])
            proxy.speak()
            assert await store.apply([replace(batch, upserts=[later := row(2)])]) == [Applied.DURABLE]
            assert await loaded(store) == [later]


async def test_what_a_killed_server_acknowledged_is_there_after_its_restart(mongodb: MongoServer) -> None:
    url = mongodb.new_url()
    async with opened(url, connect_timeout_s=5.0, operation_timeout_s=10.0) as store:
        batch = await claimed(store)
        acknowledged = []

        async def write() -> None:
            for number in range(1, 10_000):
                made = row(number, number)
                history = [finished(made, expires_at=2**60)]
                await store.apply([replace(batch, upserts=[made], history=history)])
                acknowledged.append(made)
                if number == 20:
                    under_way.set()

        under_way = asyncio.Event()
        writing = asyncio.create_task(write())
        await under_way.wait()
        await asyncio.to_thread(mongodb.kill)
        with pytest.raises((OutcomeUnknown, StoreUnavailable)):
            await writing
        with pytest.raises(StoreUnavailable):
            await store.shards()
        await asyncio.to_thread(mongodb.start)
        # The client finds the server again by itself.
        epoch = await store.claim(0, expected_epoch=1, owner=ALICE)
        assert epoch == 2
        found = await loaded(store)
        # One more may have been committed.
        assert found[: len(acknowledged)] == acknowledged
        assert len(found) <= len(acknowledged) + 1
        both = await store.fetch(0, [each.uuid for each in found])
        assert all(each.live is not None and each.finished is not None for each in both.values())


async def test_a_timer_that_does_not_fit_is_refused_and_the_next_batch_is_written(store: MongoStore) -> None:
    batch = await claimed(store)
    with pytest.raises(DefiniteFailure, match="larger than"):
        await store.apply([replace(batch, upserts=[row(1), row(2, record=b"x" * (17 << 20))])])
    await put(store, one := row(1))
    assert await loaded(store) == [one]


# -- errors at the start


@each(
    "url, message",
    [
        ("mongodb://host/timers?w=1", "w=majority"),
        ("mongodb://host/timers?journal=false", "a crash could undo"),
        ("mongodb://host/timers?readPreference=secondary", "an older state"),
        ("mongodb://host/timers?retryReads=true", "unknown parameter retryReads"),
        ("mongodb://host/timers?socketTimeoutMS=1", r"the settings mongodb\.\*"),
        ("mongodb://host", "names no database"),
        ("mongodb://host/admin", "names no database"),
        ("mongodb://u:pa/ss@host/timers", "write / as %2F"),
    ],
)
def test_unsuitable_addresses_are_refused(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        MongoStore(url)
    assert "pa/ss" not in str(refused.value)


def test_an_address_of_atlas_is_accepted() -> None:
    address = parse_address("mongodb+srv://u:p@c.example.net/timers?retryWrites=true&w=majority&appName=c")
    assert (address.database, address.place) == ("timers", "mongodb+srv://c.example.net/timers")


async def test_a_missing_server_is_reported_in_one_line() -> None:
    store = MongoStore(f"mongodb://127.0.0.1:{free_port()}/timers", MongoOptions(connect_timeout_s=0.3))
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:\d+/timers: .*failed") as missing:
        await store.open(4)
    assert "\n" not in str(missing.value)
    assert "Topology" not in str(missing.value)


async def test_a_server_outside_a_replica_set_is_refused() -> None:
    server = MongoServer(standalone=True)
    try:
        await asyncio.to_thread(server.start)
        with pytest.raises(ConfigError, match=r"rs\.initiate\(\)"):
            await MongoStore(server.new_url()).open(4)
    finally:
        server.remove()


@pytest.mark.parametrize(
    ("different", "error", "message"),
    [
        ({"maxWireVersion": 9}, ConfigError, r"older than MongoDB 5\.0"),
        ({"isWritablePrimary": False}, StoreUnavailable, "not the primary"),
        ({"storageEngine": {"name": "inMemory", "persistent": False}}, ConfigError, "keeps nothing on disk"),
    ],
)
async def test_unsuitable_servers_are_refused(
    mongodb_url: str,
    different: Document,
    error: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = MongoClient._admin

    async def answers(client: MongoClient, command: Any) -> Document:
        return {**await asked(client, command), **different}

    monkeypatch.setattr(MongoClient, "_admin", answers)
    with pytest.raises(error, match=message):
        await MongoClient(parse_address(mongodb_url), MongoOptions()).open()


async def test_a_database_of_another_application_is_refused(shared_mongodb: MongoServer, mongodb_url: str) -> None:
    with Driver(mongodb_url) as driver:
        driver[database_of(mongodb_url)]["orders"].insert_one({"_id": 1})
        with pytest.raises(StoreCorrupted, match="collection orders"):
            await MongoStore(mongodb_url).open(4)
        assert driver[database_of(mongodb_url)].list_collection_names() == ["orders"]


async def test_a_newer_layout_and_another_format_are_refused(store: MongoStore, mongodb_url: str) -> None:
    with Driver(mongodb_url) as driver:
        driver[database_of(mongodb_url)]["meta"].update_one({"_id": "meta"}, {"$set": {"layout": 99}})
        # That release permits it.
        async with opened(mongodb_url):
            pass
        driver[database_of(mongodb_url)]["meta"].update_one({"_id": "meta"}, {"$set": {"readable_from": 99}})
        with pytest.raises(SchemaTooNew, match="version 99"):
            await MongoStore(mongodb_url).open(None)
        driver[database_of(mongodb_url)]["meta"].update_one({"_id": "meta"}, {"$unset": {"format": 1}})
    with pytest.raises(StoreCorrupted, match="before its first release"):
        await MongoStore(mongodb_url).open(None)


async def test_a_damaged_shard_is_named_by_its_claim_and_stops_no_other(store: MongoStore, mongodb_url: str) -> None:
    for shard_id in range(3):
        await claimed(store, shard_id)
    with Driver(mongodb_url) as driver:
        for shard_id, lost in ((0, "epoch"), (1, "owner"), (2, "session")):
            driver[database_of(mongodb_url)]["shards"].update_one(
                {"_id": shard_id}, {"$unset": {lost: 1}}, bypass_document_validation=True
            )
    assert await store.shards() == [ShardState(1, 1, None), ShardState(2, 1, ALICE)]
    with pytest.raises(DefiniteFailure, match=r"shard 0 .* no epoch"):
        await store.claim(0, expected_epoch=0, owner=BOB)
    for shard_id in (1, 2):
        assert await store.claim(shard_id, expected_epoch=1, owner=BOB) == 2


async def test_mongodb_deletes_what_has_expired_as_well(store: MongoStore, mongodb_url: str) -> None:
    with Driver(mongodb_url) as driver:
        database = driver[database_of(mongodb_url)]
        for name in ("history", "runs"):
            assert database[name].index_information()["by_expiry"]["expireAfterSeconds"] == 0
