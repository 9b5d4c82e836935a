"""What DynamoStore makes of conflicts, throttling, lost and slow answers, parts left undone, short pages, missing rights."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from tests.support.dynamodb import DynamoServer
from tests.support.dynamodb_proxy import (
    DynamoProxy,
    Fault,
    ProxyAnswer,
    Request,
    canceled,
    lost_answer,
    lost_request,
    page,
    page_of,
    refused,
    slow,
    unprocessed,
)
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tocsin.model.errors import (
    ConfigError,
    DefiniteFailure,
    OutcomeUnknown,
    SchemaTooNew,
    StoreCorrupted,
    StoreUnavailable,
)
from tocsin.ports.observer import ShardSizeEstimated, StoreRequestRepeated
from tocsin.ports.store import (
    KEY_MAX,
    KEY_MIN,
    Applied,
    Found,
    Member,
    ShardBatch,
    ShardState,
    StoredRow,
    schedules_of,
)
from tocsin.stores.dynamodb.client import RequestKind, time_of
from tocsin.stores.dynamodb.keys import META, key, shard_key
from tocsin.stores.dynamodb.schema import definition
from tocsin.stores.dynamodb.store import DynamoStore
from tocsin.stores.options import DynamoOptions
from tocsin.testing.store_conformance_base import ALICE, BOB, claimed, finished, loaded, put, row, uuid_of

TRANSACT = "TransactWriteItems"


class _Run:
    """A store, the proxy before it, and what it has reported."""

    def __init__(self, proxy: DynamoProxy, store: DynamoStore, events: list[Any]) -> None:
        self.proxy, self.store, self.events = proxy, store, events

    def repeated(self) -> Counter[str]:
        """Why requests were sent again."""
        return Counter(event.reason for event in self.events if isinstance(event, StoreRequestRepeated))

    async def item(self, name: Any) -> Any:
        return await self.store._open.get(name)


@asynccontextmanager
async def _running(server: DynamoServer, table: str, **options: Any) -> AsyncIterator[_Run]:
    async with DynamoProxy(server.port) as proxy:
        options = {"patience_s": PATIENCE_S, "request_timeout_s": 5.0, "connect_timeout_s": PATIENCE_S} | options
        events: list[Any] = []
        store = DynamoStore(server.url(table, proxy.port), DynamoOptions(**options), observe=events.append)
        await store.open(4)
        try:
            yield _Run(proxy, store, events)
        finally:
            await store.close()


@pytest_asyncio.fixture
async def run(shared_dynamodb: DynamoServer, table: str) -> AsyncIterator[_Run]:
    async with _running(shared_dynamodb, table) as run:
        yield run


@pytest_asyncio.fixture
async def impatient(shared_dynamodb: DynamoServer, table: str) -> AsyncIterator[_Run]:
    """For what fails as long as the store tries."""
    async with _running(shared_dynamodb, table, patience_s=0.5) as run:
        yield run


@pytest.fixture
def table(shared_dynamodb: DynamoServer) -> str:
    return shared_dynamodb.new_url().partition("?")[0].removeprefix("dynamodb://")


# -- refused for now


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("TransactionConflict", "conflict"),
        ("ThrottlingError", "throttled"),
        ("ProvisionedThroughputExceeded", "throttled"),
    ],
)
async def test_a_transaction_that_is_canceled_for_now_is_sent_again(run: _Run, code: str, reason: str) -> None:
    batch = await claimed(run.store)
    run.proxy.once(TRANSACT, canceled(code), canceled(code))
    assert await run.store.apply([replace(batch, upserts=[one := row(1)])]) == [Applied.DURABLE]
    assert await loaded(run.store) == [one]
    assert run.repeated() == {reason: 2}


async def test_provisioned_capacity_that_is_exceeded_is_waited_for(run: _Run, shared_dynamodb: DynamoServer) -> None:
    table = f"{run.store._open.table}.provisioned"
    capacity = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    made = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": capacity, **definition()}
    await run.store._open.call("create_table", RequestKind.WRITE, TableName=table, **made)
    store = DynamoStore(shared_dynamodb.url(table, run.proxy.port), observe=run.events.append)
    operations = (TRANSACT, "TransactGetItems", "PutItem", "UpdateItem", "Query", "BatchGetItem", "BatchWriteItem")
    for operation in operations:
        run.proxy.once(operation, refused("ProvisionedThroughputExceededException"))
    assert await store.open(4) == 4
    await store.heartbeat(Member(ALICE, "alice", "", 1))
    batch = await claimed(store)
    await store.apply([replace(batch, upserts=[one := row(1)], history=[finished(row(2), expires_at=5)])])
    assert await loaded(store) == [one]
    assert await store.purge_history(5, 10) == 1
    assert [state.shard_id for state in await store.shards()] == [0]
    assert run.repeated() == {"throttled": len(operations)}
    await store.close()


async def test_lasting_throttling_is_unavailability_within_the_patience(impatient: _Run) -> None:
    batch = await claimed(impatient.store)
    impatient.proxy.always(TRANSACT, refused("ThrottlingException"))
    with pytest.raises(StoreUnavailable, match="Throttling"):
        await impatient.store.apply([replace(batch, upserts=[row(1)])])
    impatient.proxy.always(TRANSACT, None)
    assert await loaded(impatient.store) == []
    assert await impatient.store.apply([batch]) == [Applied.DURABLE]


async def test_of_two_shards_a_throttled_one_leaves_the_outcome_in_doubt(impatient: _Run) -> None:
    parts = [replace(await claimed(impatient.store, number), upserts=[row(number)]) for number in (0, 1)]

    async def refuse_one(request: Request) -> ProxyAnswer:
        fence = request.content["TransactItems"][0]["Update"]
        if fence["Key"]["p"]["S"] == "shard/1":
            return await canceled("ThrottlingError")(request)
        return await request.forward()

    impatient.proxy.always(TRANSACT, refuse_one)
    with pytest.raises(OutcomeUnknown):
        await impatient.store.apply(parts)
    assert [len(await loaded(impatient.store, number)) for number in (0, 1)] == [1, 0]


async def test_a_full_shard_refuses_the_batch_definitely(run: _Run) -> None:
    batch = await claimed(run.store)
    run.proxy.once(TRANSACT, canceled("ItemCollectionSizeLimitExceeded"))
    with pytest.raises(DefiniteFailure, match="ItemCollectionSizeLimitExceeded") as caught:
        await run.store.apply([replace(batch, upserts=[row(1)])])
    assert not isinstance(caught.value, StoreUnavailable)
    assert run.repeated() == {}


# -- in doubt


async def test_a_transaction_whose_answer_was_lost_happens_once(run: _Run) -> None:
    batch = await claimed(run.store)
    run.proxy.once(TRANSACT, page(200), lost_answer, lost_request)
    assert await run.store.apply([replace(batch, upserts=[one := row(1)])]) == [Applied.DURABLE]
    assert await loaded(run.store) == [one]
    assert run.repeated() == {"unanswered": 3}
    assert (await run.item(shard_key(0)))["c"] == {"N": "1"}
    tokens = {each.content["ClientRequestToken"] for each in run.proxy.requests[-8:] if each.operation == TRANSACT}
    assert len(tokens) <= 2


async def test_answers_lost_beyond_the_patience_leave_the_outcome_unknown(impatient: _Run) -> None:
    batch = await claimed(impatient.store)
    impatient.proxy.always(TRANSACT, lost_answer)
    with pytest.raises(OutcomeUnknown):
        await impatient.store.apply([replace(batch, upserts=[one := row(1)])])
    impatient.proxy.always(TRANSACT, None)
    assert await impatient.store.claim(0, expected_epoch=1, owner=ALICE) == 2
    assert await loaded(impatient.store) == [one]


async def test_throttling_after_a_lost_answer_does_not_make_the_outcome_known(impatient: _Run) -> None:
    batch = await claimed(impatient.store)
    impatient.proxy.once(TRANSACT, lost_answer)
    impatient.proxy.always(TRANSACT, refused("ThrottlingException"))
    with pytest.raises(OutcomeUnknown):
        await impatient.store.apply([replace(batch, upserts=[row(1)])])


async def test_a_transaction_that_comes_after_the_next_claim_does_nothing(impatient: _Run) -> None:
    batch = await claimed(impatient.store)
    late: list[Request] = []

    async def hold(request: Request) -> ProxyAnswer:
        late.append(request)
        return None

    impatient.proxy.always(TRANSACT, hold)
    with pytest.raises(OutcomeUnknown):
        await impatient.store.apply([replace(batch, upserts=[row(1)])])
    impatient.proxy.always(TRANSACT, None)
    assert await impatient.store.claim(0, expected_epoch=1, owner=BOB) == 2
    status, answer = await late[0].forward()
    assert (status, answer["__type"].rpartition("#")[2]) == (400, "TransactionCanceledException")
    assert await loaded(impatient.store) == []


async def test_a_slow_answer_is_asked_for_again(shared_dynamodb: DynamoServer, table: str) -> None:
    async with _running(shared_dynamodb, table, request_timeout_s=1.0, patience_s=20.0) as run:
        batch = await claimed(run.store)
        run.proxy.once(TRANSACT, slow(60))
        run.proxy.once("Query", slow(60))
        assert await run.store.apply([replace(batch, upserts=[one := row(1)])]) == [Applied.DURABLE]
        assert await loaded(run.store) == [one]
        assert run.repeated()["unanswered"] >= 2
        assert (await run.item(shard_key(0)))["c"] == {"N": "1"}


async def test_a_claim_whose_answer_was_lost_is_made_once(run: _Run) -> None:
    run.proxy.once(TRANSACT, lost_answer)
    assert await run.store.claim(0, expected_epoch=0, owner=ALICE) == 1
    assert await run.store.shards() == [ShardState(0, 1, ALICE)]


async def test_a_release_whose_answer_was_lost_is_in_doubt(run: _Run) -> None:
    await claimed(run.store)
    run.proxy.once("UpdateItem", lost_answer)
    with pytest.raises(OutcomeUnknown):
        await run.store.release(0, epoch=1, owner=ALICE)
    assert await run.store.shards() == [ShardState(0, 1, None)]


async def test_a_read_that_never_gets_an_answer_is_unavailability(impatient: _Run) -> None:
    impatient.proxy.always("Query", lost_request)
    with pytest.raises(StoreUnavailable):
        await impatient.store.members()


# -- chunks


async def test_a_batch_that_breaks_off_has_written_upserts_and_whole_timers_only(
    shared_dynamodb: DynamoServer, table: str
) -> None:
    async with _running(shared_dynamodb, table, actions_max=4, patience_s=0.1) as run:
        batch = await claimed(run.store)
        old = [row(number, number) for number in range(1, 7)]
        await put(run.store, *old)
        new = row(9, 9)
        retried = [each._replace(execute_at=100) for each in old[:2]]
        ended = old[2:]
        parts = replace(
            batch, upserts=[*retried, new], deletes=[each.uuid for each in ended], history=[finished(e) for e in ended]
        )
        run.proxy.once(TRANSACT, Request.forward, Request.forward)
        run.proxy.always(TRANSACT, canceled("ThrottlingError"))
        with pytest.raises(OutcomeUnknown, match="a part of the batch was written"):
            await run.store.apply([parts])
        left = {each.uuid for each in await loaded(run.store)}
        assert {each.uuid for each in (*retried, new)} <= left
        found = await run.store.fetch(0, [each.uuid for each in ended])
        assert all((uuid in left) == (state.finished is None) for uuid, state in found.items())
        assert 0 < len(left & {each.uuid for each in ended}) < len(ended)


async def test_a_claim_in_the_middle_of_a_batch_leaves_it_in_doubt(shared_dynamodb: DynamoServer, table: str) -> None:
    async with _running(shared_dynamodb, table, actions_max=2) as run:
        batch = await claimed(run.store)
        other = DynamoStore(shared_dynamodb.url(table))
        await other.open(None)

        async def claim_first(request: Request) -> ProxyAnswer:
            assert await other.claim(0, expected_epoch=1, owner=BOB) == 2
            return await request.forward()

        run.proxy.once(TRANSACT, Request.forward, claim_first)
        with pytest.raises(OutcomeUnknown, match="changed hands"):
            await run.store.apply([replace(batch, upserts=[row(1), row(2)])])
        await other.close()


async def test_a_claim_waits_for_the_former_owners_last_transaction(run: _Run) -> None:
    await claimed(run.store)
    await put(run.store, row(1), row(2))
    run.proxy.once("TransactGetItems", canceled("TransactionConflict"), canceled("TransactionConflict"))
    assert await run.store.claim(0, expected_epoch=1, owner=BOB) == 2
    asked = [len(each.content["TransactItems"]) for each in run.proxy.requests if each.operation == "TransactGetItems"]
    assert asked == [1, 2, 2, 2], "the first was sent when the store was opened"
    run.proxy.always("TransactGetItems", canceled("TransactionConflict"))
    run.store._open.options = replace(run.store._open.options, patience_s=0.5)
    with pytest.raises(OutcomeUnknown, match="is not known whether"):
        await run.store.claim(0, expected_epoch=2, owner=ALICE)
    assert ShardState(0, 3, ALICE) in await run.store.shards()


# -- parts and pages


async def test_what_was_left_unprocessed_is_asked_for_again(run: _Run) -> None:
    batch = await claimed(run.store)
    await claimed(run.store, 2)
    run.proxy.once("BatchGetItem", unprocessed(1), unprocessed(0))
    assert [state.shard_id for state in await run.store.shards()] == [0, 2]
    history = [finished(row(number), expires_at=5) for number in range(1, 41)]
    await run.store.apply([replace(batch, history=history)])
    run.proxy.once("BatchWriteItem", unprocessed(3), unprocessed(2))
    assert await run.store.purge_history(5, 100) == 40
    assert await run.store.purge_history(5, 100) == 0
    assert run.repeated()["unprocessed"] == 4


async def test_what_is_left_unprocessed_for_long_is_unavailability(impatient: _Run) -> None:
    impatient.proxy.always("BatchGetItem", unprocessed(0))
    with pytest.raises(StoreUnavailable, match="unprocessed"):
        await impatient.store.shards()


async def test_a_short_page_is_complete_only_as_far_as_it_was_read(run: _Run) -> None:
    await claimed(run.store)
    rows = [row(number, number) for number in range(1, 6)]
    await put(run.store, *rows)
    run.proxy.once("Query", page_of(2))
    assert await run.store.load(0, KEY_MIN, KEY_MAX, 100) == (rows[:2], rows[1].key)
    # Pages may be empty and yet not the last.
    run.proxy.once("Query", page_of(0), page_of(0), page_of(2))
    assert await run.store.load(0, KEY_MIN, KEY_MAX, 100) == (rows[2:4], rows[3].key)
    assert await loaded(run.store) == rows


async def test_a_timer_is_found_across_empty_pages(run: _Run) -> None:
    batch = await claimed(run.store)
    live, ended = row(1, 10), finished(row(1, 5))
    await run.store.apply([replace(batch, upserts=[live], history=[ended])])
    run.proxy.once("Query", page_of(1), page_of(1), page_of(1))
    assert await run.store.fetch(0, [uuid_of(1)]) == {uuid_of(1): Found(live, ended)}


async def _schedules(run: _Run, *names: str) -> list[StoredRow]:
    """Schedules a, b and c of each namespace."""
    await claimed(run.store)
    rows = [
        row(3 * number + place, place, namespace=schedules_of(name), timer_id=schedule_id)
        for number, name in enumerate(names)
        for place, schedule_id in enumerate("abc")
    ]
    await put(run.store, *rows)
    return rows


async def test_a_schedule_that_ends_while_a_list_is_read_makes_room_for_the_next(run: _Run) -> None:
    rows = await _schedules(run, "default")

    async def end_the_first(request: Request) -> ProxyAnswer:
        await run.store.apply([ShardBatch(0, 1, ALICE, deletes=[rows[0].uuid])])
        return await request.forward()

    run.proxy.once("BatchGetItem", end_the_first)
    assert await run.store.list_schedules("default", [0], "", 2) == rows[1:]


async def test_namespaces_of_the_same_hash_have_their_own_schedules(run: _Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.stores.dynamodb.keys._NAMESPACE_HASH_BYTES", 0)
    rows = await _schedules(run, "one", "two")
    for name, of_name in (("one", rows[:3]), ("two", rows[3:])):
        for limit in (1, 2, 9):
            assert await run.store.list_schedules(name, [0], "", limit) == of_name[:limit]
            assert await run.store.list_schedules(name, [0], "a", limit) == of_name[1:][:limit]


async def test_requests_that_wait_for_a_connection_are_not_in_doubt(shared_dynamodb: DynamoServer, table: str) -> None:
    # Each answer is in time; the last request waits longer than connecting may take, and all takes longer than both limits.
    async with _running(shared_dynamodb, table, connections_max=1, connect_timeout_s=5, request_timeout_s=5) as run:
        parts = [replace(await claimed(run.store, number), upserts=[row(number)]) for number in range(4)]
        run.proxy.always(TRANSACT, slow(3.0))
        assert await run.store.apply(parts) == [Applied.DURABLE] * 4
        assert run.repeated() == {}


async def test_members_come_from_all_pages(run: _Run) -> None:
    for number in range(5):
        await run.store.heartbeat(Member(bytes([number]) * 16, f"node-{number}", "", 1))
    run.proxy.always("Query", page_of(2))
    assert [member.node for member in await run.store.members()] == [f"node-{number}" for number in range(5)]


# -- tables, rights, sizes, clocks


async def test_missing_rights_are_reported_at_the_start_and_unavailability_later(
    shared_dynamodb: DynamoServer, table: str
) -> None:
    async with _running(shared_dynamodb, table) as run:
        denied = refused(
            "AccessDeniedException", "User: arn:aws:iam::1:user/u is not authorized to perform: dynamodb:Query"
        )
        run.proxy.always("Query", denied)
        with pytest.raises(StoreUnavailable, match="not authorized to perform"):
            await run.store.members()
        run.proxy.always("UpdateTimeToLive", denied)
        new = DynamoStore(shared_dynamodb.url(f"{table}.new", run.proxy.port))
        with pytest.raises(ConfigError, match=r"not authorized .*UpdateTimeToLive"):
            await new.open(None)
        run.proxy.always("DescribeTable", denied)
        again = DynamoStore(shared_dynamodb.url(table, run.proxy.port))
        with pytest.raises(ConfigError, match=r"not authorized .* docs/how-to/dynamodb.md .*DescribeTable"):
            await again.open(None)


@pytest.mark.parametrize(
    ("operation", "fault", "kind", "reason"),
    [
        ("DescribeTable", page(404), ConfigError, "HTTP 404 .* is not DynamoDB"),
        ("DescribeTable", page(200), StoreUnavailable, "not DynamoDB's"),
        ("TransactGetItems", refused("UnknownOperationException"), ConfigError, "without transactions"),
    ],
    ids=["another-server", "a-proxys-page", "no-transactions"],
)
async def test_a_server_that_is_not_dynamodb_is_refused_at_the_start(
    run: _Run, shared_dynamodb: DynamoServer, operation: str, fault: Fault, kind: type[Exception], reason: str
) -> None:
    run.proxy.always(operation, fault)
    url = shared_dynamodb.url(run.store._open.table, run.proxy.port)
    with pytest.raises(kind, match=reason):
        await DynamoStore(url, DynamoOptions(patience_s=0.1)).open(None)


async def test_a_missing_server_is_unavailability(shared_dynamodb: DynamoServer) -> None:
    with pytest.raises(StoreUnavailable, match="check region, endpoint and network"):
        await DynamoStore(shared_dynamodb.url("timers", free_port())).open(None)


async def test_nodes_that_start_at_once_make_one_table(shared_dynamodb: DynamoServer, table: str) -> None:
    stores = [DynamoStore(shared_dynamodb.url(table)) for _ in range(3)]
    assert await asyncio.gather(*(store.open(None) for store in stores)) == [16] * 3
    await asyncio.gather(*(store.close() for store in stores))


async def test_a_table_whose_creation_got_no_answer_is_used(shared_dynamodb: DynamoServer, table: str) -> None:
    async with DynamoProxy(shared_dynamodb.port) as proxy:
        proxy.once("CreateTable", lost_answer)
        proxy.once("UpdateTimeToLive", lost_answer)
        store = DynamoStore(shared_dynamodb.url(table, proxy.port))
        assert await store.open(None) == 16
        assert (proxy.count("CreateTable"), proxy.count("UpdateTimeToLive")) == (2, 2)
        await store.close()


async def test_tables_of_others_and_of_newer_releases_are_refused(shared_dynamodb: DynamoServer, table: str) -> None:
    async with _running(shared_dynamodb, table) as run:
        client = run.store._open

        async def stored(name: str, number: int) -> None:
            more = {"ExpressionAttributeNames": {"#n": name}, "ExpressionAttributeValues": {":v": {"N": str(number)}}}
            await client.update(key(META, b"meta"), "SET #n = :v", kind=RequestKind.WRITE, **more)

        await stored("layout", 99)
        await (earlier := DynamoStore(shared_dynamodb.url(table))).open(None)
        await earlier.close()
        await stored("readable_from", 98)
        with pytest.raises(SchemaTooNew, match="99"):
            await DynamoStore(shared_dynamodb.url(table)).open(None)
        await stored("format", -1)
        with pytest.raises(StoreCorrupted, match="before its first release"):
            await DynamoStore(shared_dynamodb.url(table)).open(None)
        await client.call(
            "create_table",
            RequestKind.WRITE,
            TableName=f"{table}x",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        )
        with pytest.raises(StoreCorrupted, match="another application's: its key is id HASH"):
            await DynamoStore(shared_dynamodb.url(f"{table}x")).open(None)
        with pytest.raises(StoreUnavailable, match="tocsin migrate"):
            await DynamoStore(shared_dynamodb.url(f"{table}y"), create=False).open(None)


async def test_the_number_of_shards_can_be_chosen_until_one_is_claimed(
    run: _Run, shared_dynamodb: DynamoServer
) -> None:
    await run.store.close()
    assert await run.store.open(7) == 7
    other = DynamoStore(shared_dynamodb.url(run.store._open.table))
    assert await other.open(9) == 9
    with pytest.raises(StoreUnavailable, match="another number of shards"):
        await run.store.claim(0, expected_epoch=0, owner=ALICE)
    await claimed(other)
    await other.close()
    with pytest.raises(ConfigError, match="has 9 shards, which can't be changed to 7"):
        await other.open(7)


async def test_the_estimated_size_of_a_shard_is_reported_when_it_changes(run: _Run) -> None:
    batch = await claimed(run.store)

    def estimate(least: float, most: float) -> Any:
        async def fault(request: Request) -> ProxyAnswer:
            status, answer = await request.forward()
            table = request.content["TransactItems"][0]["Update"]["TableName"]
            size = {"ItemCollectionKey": {"p": {"S": "shard/0"}}, "SizeEstimateRangeGB": [least, most]}
            return status, answer | {"ItemCollectionMetrics": {table: [size]}}

        return fault

    run.proxy.once(TRANSACT, estimate(0, 1), estimate(0, 1), estimate(8, 9))
    for _ in range(3):
        await run.store.apply([batch])
    assert [event for event in run.events if isinstance(event, ShardSizeEstimated)] == [
        ShardSizeEstimated(0, 1 << 30),
        ShardSizeEstimated(0, 9 << 30),
    ]


@pytest.mark.parametrize(
    ("date_s", "offset_us"),
    [(1_000, 0), (997, -2_000_000), (1_004, 4_000_000 - 300_000)],
    ids=["same", "before", "after"],
)
def test_the_time_is_kept_within_the_second_that_the_answer_names(
    date_s: int, offset_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from email.utils import formatdate

    received_us = 1_000_300_000
    monkeypatch.setattr("time.time_ns", lambda: received_us * 1_000)
    response = {"ResponseMetadata": {"HTTPHeaders": {"date": formatdate(date_s, usegmt=True)}}}
    expected = received_us if offset_us == 0 else 998_000_000 - 1 if offset_us < 0 else 1_004_000_000
    assert time_of(response, received_us) == expected


async def test_batches_are_whole_after_sigkill_of_the_server(dynamodb: DynamoServer) -> None:
    # Its first answers take long.
    store = DynamoStore(dynamodb.new_url(), DynamoOptions(patience_s=0.5, request_timeout_s=15))
    await store.open(4)
    sizes: dict[int, int] = {}
    acknowledged: list[int] = []
    #: DynamoDB Local, unlike the service, answers a moment before it has written.
    latest: set[int] = set()

    async def claim() -> ShardBatch:
        while True:
            with contextlib.suppress(OutcomeUnknown, StoreUnavailable):
                states = await store.shards()
                epoch = await store.claim(0, expected_epoch=states[0].epoch if states else 0, owner=ALICE)
                if epoch is not None:
                    return ShardBatch(0, epoch, ALICE)

    async def write(batch: ShardBatch) -> None:
        """Batches of one instant each, until the server is gone."""
        while True:
            at = len(sizes) + 1
            rows = [row(1_000 * at + number, at) for number in range(1 + at % 30)]
            sizes[at] = len(rows)
            try:
                assert await store.apply([replace(batch, upserts=rows)]) == [Applied.DURABLE]
            except (OutcomeUnknown, StoreUnavailable):
                return
            acknowledged.append(at)

    async with asyncio.timeout(2 * PATIENCE_S):
        for _ in range(3):
            writer = asyncio.create_task(write(await claim()))
            least = len(acknowledged) + 5
            while len(acknowledged) < least:  # noqa: ASYNC110 -- it is the writer's progress
                await asyncio.sleep(0.01)
            await asyncio.to_thread(dynamodb.kill)
            await writer
            latest.add(acknowledged[-1])
            await asyncio.to_thread(dynamodb.start)
        await claim()
        found = Counter(each.execute_at for each in await loaded(store, page_rows=1_000))
    lasting = set(acknowledged) - latest
    assert {at: found[at] for at in lasting} == {at: sizes[at] for at in lasting}
    assert all(found[at] in (0, size) for at, size in sizes.items())
    await store.close()
