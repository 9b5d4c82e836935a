"""What CassandraStore makes of wrong addresses, unsuitable servers, and answers that are lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from tests.support.cases import each
from tests.support.cassandra import CassandraServer
from tests.support.completions import Noted
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tests.support.scylla import scylla
from tocsin.administration import put_namespace
from tocsin.model.errors import (
    ConfigError,
    DefiniteFailure,
    OutcomeUnknown,
    SchemaTooNew,
    StoreCorrupted,
    StoreError,
    StoreUnavailable,
)
from tocsin.model.ids import timer_uuid
from tocsin.model.namespace import Namespace
from tocsin.model.timer import Timer
from tocsin.ports.http import Exchange, Invocation
from tocsin.ports.observer import PartitionSizeMeasured
from tocsin.ports.store import KEY_MAX, KEY_MIN, Applied, ShardBatch, ShardState, generation, schedules_of
from tocsin.stores.cassandra import schema
from tocsin.stores.cassandra.address import parse_address
from tocsin.stores.cassandra.client import TABLE, CassandraClient, Write
from tocsin.stores.cassandra.keys import META, partition_of
from tocsin.stores.cassandra.store import CassandraStore
from tocsin.stores.options import CassandraOptions
from tocsin.stores.orders import SUSPENDED
from tocsin.testing.clock import FakeClock
from tocsin.testing.store_conformance_base import ALICE, BOB, claimed, finished, loaded, put, row, suspended, uuid_of
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.engine.supervisor import Supervisor


@pytest.fixture(scope="module")
def url(shared_cassandra: CassandraServer) -> str:
    return shared_cassandra.new_url()


@pytest_asyncio.fixture
async def store(url: str, request: pytest.FixtureRequest) -> AsyncIterator[CassandraStore]:
    """A store of the test's own."""
    store = CassandraStore(url, CassandraOptions(scope=f"{request.node.name}/", history_ttl_min_s=1))
    await store.open(4)
    yield store
    await store.close()


async def _refused(url: str, *, create: bool = True, **options: Any) -> ConfigError | StoreError:
    store = CassandraStore(url, CassandraOptions(**options), create=create)
    with pytest.raises((ConfigError, StoreError)) as refused:
        await store.open(4)
    await store.close()
    return refused.value


# -- addresses


@each(
    "url, named",
    [
        ("cassandra://host", "names no keyspace"),
        ("cassandra://host/Upper", "names no keyspace"),
        ("cassandra:///k", "is no host"),
        ("cassandra://host:x/k", "is no host"),
        ("cassandra://host/k?speed=1", "no parameter speed; there are consistency"),
        ("cassandra://host/k?consistency=one", "consistency 'one' is unknown; use one of quorum, local_quorum"),
        ("cassandra://host/k?consistency=local_quorum", "requires datacenter"),
        ("cassandra://host/k?replication=many", "replication 'many' is no number"),
        ("cassandra://host/k?ssl-mode=VERIFY_CA&ssl-ca=/nowhere", "ssl-ca, ssl-cert or ssl-key cannot be used"),
    ],
)
def test_a_wrong_address_is_refused_with_its_fault(url: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        parse_address(url)


def test_an_address_never_shows_its_password() -> None:
    address = parse_address("cassandra://me:p%40ss@one:9043,[::1]/k?datacenter=dc1&consistency=local_quorum")
    assert (address.user, address.password, address.hosts) == ("me", "p@ss", (("one", 9043), ("::1", 9042)))
    assert address.place == "cassandra://one:9043,[::1]:9042/k"
    assert "p@ss" not in address.place


# -- servers that cannot be used


async def test_a_missing_server_is_unavailable() -> None:
    error = await _refused(f"cassandra://127.0.0.1:{free_port()}/k", connect_timeout_s=1)
    assert isinstance(error, StoreUnavailable)
    assert "no node can be reached" in str(error)


async def test_an_old_server_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "OLDEST", (99, 1))
    assert "Tocsin requires 99.1 or newer" in str(await _refused(url))


async def test_a_keyspace_of_scylladb_with_tablets_is_refused_with_the_mend(shared_cassandra: CassandraServer) -> None:
    with scylla(shared_cassandra.port) as proxy:
        url = shared_cassandra.new_url()
        refused = await _refused(url.replace(f":{shared_cassandra.port}/", f":{proxy.port}/"))
    assert isinstance(refused, ConfigError)
    assert "create it WITH tablets = {'enabled': false}" in str(refused)


async def test_an_unknown_datacenter_is_refused_with_those_there_are(url: str) -> None:
    assert "there is no datacenter nowhere; there are datacenter1" in str(await _refused(f"{url}?datacenter=nowhere"))


async def test_a_missing_keyspace_is_created_only_by_those_who_may(shared_cassandra: CassandraServer) -> None:
    error = await _refused(shared_cassandra.new_url(), create=False)
    assert "does not exist; `tocsin migrate` creates it" in str(error)


async def test_a_table_that_another_node_is_creating_is_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read, reads = CassandraClient.read, 0

    async def too_soon(client: CassandraClient, *arguments: Any, **options: Any) -> Any:
        nonlocal reads
        reads += 1
        if reads == 1:
            raise DefiniteFailure("Invalid query: table tocsin does not exist")
        return await read(client, *arguments, **options)

    monkeypatch.setattr(CassandraClient, "read", too_soon)
    store = CassandraStore(url)
    assert await store.open(4) == 4
    await store.close()


async def test_a_keyspace_without_commit_log_is_refused_unless_permitted(shared_cassandra: CassandraServer) -> None:
    url = shared_cassandra.new_url()
    store = CassandraStore(url)
    await store.open(4)
    await store._open.plain(f"ALTER KEYSPACE {parse_address(url).keyspace} WITH durable_writes = false")
    await store.close()
    assert "durable_writes = false" in str(await _refused(url))
    permitted = CassandraStore(url, CassandraOptions(durable=False))
    assert await permitted.open(None) == 4
    await permitted.close()


async def test_a_server_that_syncs_periodically_is_refused_unless_permitted() -> None:
    server = CassandraServer(sync="periodic")
    try:
        server.start()
        error = await _refused(server.url("k"))
        assert isinstance(error, ConfigError)
        assert "commitlog_sync periodic" in str(error) and "cassandra.durable = false" in str(error)
        permitted = CassandraStore(server.url("k"), CassandraOptions(durable=False))
        assert await permitted.open(4) == 4
        await permitted.close()
    finally:
        server.remove()


async def test_another_applications_table_is_refused(shared_cassandra: CassandraServer, store: CassandraStore) -> None:
    url = shared_cassandra.new_url()
    keyspace = parse_address(url).keyspace
    await store._open.plain(
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    await store._open.plain(f"CREATE TABLE {keyspace}.tocsin (p text PRIMARY KEY, v int)")
    error = await _refused(url)
    assert isinstance(error, StoreCorrupted)
    assert "Name a keyspace of Tocsin's own" in str(error)


async def test_a_newer_layout_and_another_format_are_refused(
    store: CassandraStore, url: str, request: pytest.FixtureRequest
) -> None:
    scope = f"{request.node.name}/"
    await store._open.write("UPDATE {t} SET n = 2 WHERE p = ? AND k = ? IF n = 1", scope + META, b"layout")
    assert isinstance(await _refused(url, scope=scope), SchemaTooNew)
    await store._open.write("UPDATE {t} SET v = ? WHERE p = ? AND k = ? IF n = 2", None, scope + META, b"layout")
    assert "before its first release" in str(await _refused(url, scope=scope))


# -- what is deleted


async def test_commits_and_lists_of_shards_pass_no_deleted_rows(shared_cassandra: CassandraServer) -> None:
    """They read the partition's first live row, and the server refuses reads that pass 100,000 deleted or expired ones."""
    store = CassandraStore(shared_cassandra.new_url(), CassandraOptions(history_ttl_min_s=3_600))
    await store.open(1)
    batch = await claimed(store)
    ended = [row(number, number) for number in range(100)]
    assert await store.apply([replace(batch, history=[finished(each) for each in ended])]) == [Applied.DURABLE]
    await store.forget(0, [each.uuid for each in ended])
    for _ in range(3):
        assert await store.apply([replace(batch, upserts=[row(1, 1)])]) == [Applied.DURABLE]
        assert await store.shards() == [ShardState(0, 1, ALICE)]
    keyspace = store._open.address.keyspace
    view = f"SELECT max FROM system_views.tombstones_per_read WHERE keyspace_name = '{keyspace}'"
    ((passed, *_),) = await store._open.plain(f"{view} AND table_name = '{TABLE}'")
    await store.close()
    assert passed < 10


# -- lost answers


class _LosesAnswers:
    """Stands for `write_all`: the write is carried out or not, and there is no answer."""

    def __init__(self, client: CassandraClient, *, arrives: bool) -> None:
        self._write_all = client.write_all
        self._arrives = arrives

    async def __call__(self, writes: Iterable[Write]) -> Any:
        if self._arrives:
            await self._write_all(writes)
        raise OutcomeUnknown("no answer")


async def test_a_commit_without_answer_is_durable_if_it_is_found(
    store: CassandraStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = await claimed(store)
    monkeypatch.setattr(store._open, "write_all", _LosesAnswers(store._open, arrives=True))
    assert await store.apply([replace(batch, upserts=[live := row(1, 10)])]) == [Applied.DURABLE]
    assert await loaded(store) == [live]


async def test_a_commit_without_answer_that_is_not_found_may_still_come(
    store: CassandraStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = await claimed(store)
    with monkeypatch.context() as patched:
        patched.setattr(store._open, "write_all", _LosesAnswers(store._open, arrives=False))
        with pytest.raises(OutcomeUnknown):
            await store.apply([replace(batch, upserts=[row(1, 10)])])
    assert await store.claim(0, expected_epoch=1, owner=BOB) == 2
    # The batch arrives late.
    assert await store.apply([replace(batch, upserts=[row(1, 10)])]) == [Applied.OWNERSHIP_LOST]
    assert await loaded(store) == []


async def test_a_commit_that_another_coordinator_completed_before_a_claim_is_durable(
    store: CassandraStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, batch = store._open, await claimed(store)
    write_all = client.write_all

    async def evaluated_again_after_a_claim(writes: Iterable[Write]) -> Any:
        sent = list(writes)
        await write_all(sent)
        # Not through this store, whose batch has its turn.
        assert await store._claim(batch.shard_id, batch.epoch, BOB, None) == batch.epoch + 1
        return await write_all(sent)

    with monkeypatch.context() as patched:
        patched.setattr(client, "write_all", evaluated_again_after_a_claim)
        assert await store.apply([replace(batch, upserts=[row(1, 1)])]) == [Applied.DURABLE]
    assert await store.apply([replace(batch, upserts=[row(2, 2)])]) == [Applied.OWNERSHIP_LOST]


class _OthersComeBetween:
    """Stands for `write_all`: the batch is refused after other owners have claimed and written, one after another. If
    `completed`, another coordinator has completed it before them."""

    def __init__(self, store: CassandraStore, *, completed: bool, owners: int = 1) -> None:
        self._store, self._write_all = store, store._open.write_all
        self._completed, self._owners = completed, owners

    async def __call__(self, writes: Iterable[Write]) -> Any:
        sent = list(writes)
        if self._completed:
            await self._write_all(sent)
        # Not through the store's turns, in which the batch is.
        for epoch in range(1, 1 + self._owners):
            assert await self._store._claim(0, epoch, BOB, None) == epoch + 1
            _, _, fence = self._store._write(ShardBatch(0, epoch + 1, BOB)).args  # type: ignore[attr-defined]
            assert (await self._write_all(fence))[0]
        return await self._write_all(sent)


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("completed", [True, False])
async def test_a_batch_that_is_refused_after_the_next_owner_wrote_has_the_outcome_that_its_claim_found(
    store: CassandraStore, monkeypatch: pytest.MonkeyPatch, completed: bool, earlier: bool
) -> None:
    batch = await claimed(store)
    if earlier:
        await put(store, row(2, 2))
    expected = Applied.DURABLE if completed else Applied.OWNERSHIP_LOST
    with monkeypatch.context() as patched:
        patched.setattr(store._open, "write_all", _OthersComeBetween(store, completed=completed))
        assert await store.apply([replace(batch, upserts=[row(1, 1)])]) == [expected]
    assert ((await store.fetch(0, [uuid_of(1)])) != {}) == completed


@pytest.mark.parametrize("completed", [True, False])
async def test_a_batch_that_is_refused_after_several_owners_wrote_has_an_unknown_outcome(
    store: CassandraStore, monkeypatch: pytest.MonkeyPatch, completed: bool
) -> None:
    batch = await claimed(store)
    monkeypatch.setattr(store._open, "write_all", _OthersComeBetween(store, completed=completed, owners=2))
    with pytest.raises(OutcomeUnknown):
        await store.apply([replace(batch, upserts=[row(1, 1)])])


async def test_a_refused_batch_whose_outcome_cannot_be_read_has_an_unknown_one(
    store: CassandraStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = await claimed(store)

    async def unreadable(*arguments: Any, **options: Any) -> Any:
        raise StoreUnavailable("no node can be reached")

    monkeypatch.setattr(store._open, "read", unreadable)
    with pytest.raises(OutcomeUnknown):
        await store.apply([replace(batch, epoch=2)])


async def test_a_claim_that_another_coordinator_completed_is_not_used(
    store: CassandraStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier claim of the same owner, from before its node lease lapsed, would look the same."""
    client = store._open
    write = client.write

    async def evaluated_twice(cql: str, *values: Any) -> Any:
        await write(cql, *values)
        return await write(cql, *values)

    monkeypatch.setattr(client, "write", evaluated_twice)
    assert await store.claim(1, expected_epoch=0, owner=ALICE) is None
    assert await store.shards() == [ShardState(1, 1, ALICE)]


async def test_a_batch_above_the_limit_is_refused_unsent(store: CassandraStore) -> None:
    batch = await claimed(store)
    large = [row(number, number, record=b"x" * 3_000_000) for number in range(3)]
    with pytest.raises(DefiniteFailure, match="Cassandra takes"):
        await store.apply([replace(batch, upserts=large)])
    assert await store.apply([replace(batch, upserts=large[:1])]) == [Applied.DURABLE]


# -- pages


async def test_a_page_of_large_rows_ends_with_its_bytes(store: CassandraStore) -> None:
    await claimed(store)
    rows = [row(number, number, record=bytes([number]) * (1 << 20)) for number in range(1, 61)]
    paused = [row(number, number, record=b"x" * (1 << 20), suspended="paused") for number in range(101, 121)]
    for number in range(0, 60, 2):
        await put(store, *rows[number : number + 2])
    for each_row in paused:
        await put(store, each_row)
    page = await store.load(0, KEY_MIN, KEY_MAX, 1_000)
    assert (page.rows, page.complete_to) == (rows[:16], rows[15].key)
    assert await loaded(store, page_rows=1_000) == rows
    first = await store.load_suspended(0, KEY_MIN, 1_000)
    assert (first.rows, first.complete_to) == (paused[:16], paused[15].key)
    assert await suspended(store, page_rows=1_000) == paused


# -- claims


class _Owner:
    """An engine with a store and a clock of its own. It beats and supervises when the test asks for it."""

    def __init__(self, store: CassandraStore, name: str) -> None:
        self.clock = FakeClock()
        self.called: list[str] = []
        context = Context(
            store=store, caller=self, clock=self.clock, limits=EngineLimits(clock_skew_max_us=10**18),
            observe=lambda _: None, random=random.Random(1), incarnation=name.encode() * 16,
        )  # fmt: skip
        self.engine = Supervisor(context, node=name, address="", total_shards=1, fatal=lambda _: None)
        self.shard = self.engine.shards[0]
        self.engine._spawn(self.shard.lane.run())

    def destination(self, url: str) -> str:
        return url

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        self.called.append(invocation.timer_id)

    async def close(self) -> None:
        await self.engine.kill()

    async def supervises(self, seconds: int = 0) -> None:
        self.clock.advance(seconds * 1_000_000)
        await self.engine.lease.beat()
        await self.engine.supervise()

    async def owns(self) -> None:
        while self.engine.ownership._claims:
            await asyncio.wait(set(self.engine.ownership._claims))

    async def write(self, kind: OpKind, timer: Timer) -> object:
        answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        uuid, identity = timer_uuid(timer.namespace, timer.id), generation(0, bytes(16), 1)
        op = WriteOp(kind, uuid, timer.namespace, identity, timer, completion=Noted(answered.set_result))
        self.shard.accept(op)
        async with asyncio.timeout(PATIENCE_S):
            return await answered


@pytest.mark.parametrize("first", ["the claim", "the owner"])
async def test_a_claim_that_takes_effect_after_its_owner_woke_makes_no_deleted_timer_fire(
    store: CassandraStore, url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """The owner was silent for so long that another node compared its counter and sent a claim, which arrives later."""
    other = CassandraStore(url, CassandraOptions(scope=f"{request.node.name}/"))
    await other.open(None)
    assert await put_namespace(store, Namespace("n", 1, 0, 0), create=True)
    # The shard belongs to the first of these names while both are alive.
    owner, heir = _Owner(store, "a"), _Owner(other, "b")
    held, let_go, write = asyncio.Event(), asyncio.Event(), other._open.write

    async def held_back(cql: str, *values: Any) -> Any:
        if cql.startswith("UPDATE {t} SET epoch"):
            held.set()
            await let_go.wait()
        return await write(cql, *values)

    monkeypatch.setattr(other._open, "write", held_back)
    timer = Timer("n", "t", owner.clock.now_us() + 8_000_000, "http://h/", 0, 0)
    try:
        await owner.supervises()
        await owner.owns()
        assert await owner.write(OpKind.CREATE, timer) is not None
        for _ in range(9):
            await heir.supervises(seconds=1)
        await asyncio.wait_for(held.wait(), PATIENCE_S)
        owner.clock.advance(6_000_000)
        await owner.engine.lease.beat()
        if first == "the owner":
            await owner.engine.supervise()
            await owner.owns()
        let_go.set()
        await heir.owns()
        present = owner if first == "the owner" else heir
        assert await store.shards() == [ShardState(0, 2, present.engine.incarnation)]
        assert (await present.write(OpKind.DELETE, timer)) is None
        owner.clock.advance(2_500_000)
        assert owner.engine.dispatcher.paused_reason is None
        for shard in list(owner.engine.dispatcher.shards.values()):
            owner.engine.dispatcher.dispatch_due(shard)
        assert owner.called == []
    finally:
        await owner.close()
        await heir.close()
        await other.close()


# -- what is left behind


async def test_history_expires_by_itself(store: CassandraStore) -> None:
    batch = await claimed(store)
    assert await store.apply([replace(batch, history=[finished(row(1))])]) == [Applied.DURABLE]
    async with asyncio.timeout(PATIENCE_S):
        while await store.fetch(0, [uuid_of(1)]):  # noqa: ASYNC110 -- the server has no notification of it
            await asyncio.sleep(0.1)


async def test_outdated_entries_are_removed_when_they_are_found(store: CassandraStore) -> None:
    await claimed(store)
    scheduled = row(2, 20, namespace=schedules_of("default"), timer_id="daily")
    await put(store, row(1, 10, suspended="why"), scheduled)
    batch = ShardBatch(0, 1, ALICE)
    await store.apply([replace(batch, upserts=[row(1, 10)], deletes=[scheduled.uuid])])
    partition = store._open.partition(partition_of(0))

    async def entries(kind: bytes) -> int:
        statement = "SELECT k FROM {t} WHERE p = ? AND k >= ? AND k < ?"
        return len(await store._open.read(statement, partition, kind, kind + b"\xff"))

    assert (await entries(SUSPENDED), await entries(b"N")) == (1, 1)
    assert (await suspended(store), await store.list_schedules("default", (0,), "", 10)) == ([], [])
    assert (await entries(SUSPENDED), await entries(b"N")) == (0, 0)


async def test_a_watermark_removes_the_entries_that_it_covers(store: CassandraStore) -> None:
    batch = await claimed(store)
    await put(store, row(1, 10), row(2, 20))
    await store.apply([replace(batch, deletes=[uuid_of(1), uuid_of(2)], delete_to=(20, uuid_of(2)))])
    partition = store._open.partition(partition_of(0))
    assert await store._open.read("SELECT k FROM {t} WHERE p = ? AND k >= ?", partition, b"L") == []
    assert (await store.load(0, KEY_MIN, (30, b""), 10)).rows == []


async def test_the_size_of_the_largest_partition_is_reported(url: str) -> None:
    events: asyncio.Queue[Any] = asyncio.Queue()
    store = CassandraStore(url, CassandraOptions(scope="size/"), observe=events.put_nowait)
    await store.open(4)
    async with asyncio.timeout(PATIENCE_S):
        measured = await events.get()
    await store.close()
    assert isinstance(measured, PartitionSizeMeasured)
    assert measured.size_bytes % (1 << 20) == 0
