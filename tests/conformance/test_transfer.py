"""A transfer moves everything from and to every store, to other numbers of shards, and whenever it is interrupted."""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

import tocsin
from tests.conformance.test_dynamodb import _PATIENT
from tests.support.shared import name_of
from tocsin import administration
from tocsin.administration import API_KEYS, AUDIT, FLOWS, NAMESPACES, encoded, put_namespace
from tocsin.model.ids import flow_uuid, namespace_hash, schedule_uuid, shard_of, timer_uuid
from tocsin.model.instants import US_PER_DAY
from tocsin.model.job import Job, JobAction, JobKind, JobState, RowFilter
from tocsin.model.namespace import Namespace
from tocsin.model.timer import Status
from tocsin.ports.store import (
    EVENTS_SUFFIX,
    FLOWS_SUFFIX,
    KEY_MIN,
    NOTIFICATIONS_SUFFIX,
    TIMERS_END_US,
    Applied,
    FailureRow,
    HistoryRow,
    Member,
    RunRow,
    ShardBatch,
    Store,
    StoredRow,
    event_instant,
    generation,
    schedules_of,
)
from tocsin.server import transfer
from tocsin.server.transfer import Side, Transfer, refuse_unmovable
from tocsin.server.transfer_mark import TransferRefused, read_mark, refuse_transferred
from tocsin.server.transfer_records import RECORD_KINDS
from tocsin.server.transfer_rows import Row, shard_rows
from tocsin.statistics import records
from tocsin.stores.memory import MemoryStore
from tocsin.stores.options import CassandraOptions, MongoOptions, PostgresOptions
from tocsin.timers import jobs, monitor_records
from tocsin.timers.engine import tenures
from tocsin.timers.engine.notifications import uuid_beside
from tocsin.timers.jobs import JOBS

SOURCE_SHARDS = 4
#: A namespace in all shards of the source, and one in two of them.
WIDE, NARROW = Namespace("default", SOURCE_SHARDS, 1, 1), Namespace("narrow", 2, 1, 1)
NODE = b"node-incarnation"


@contextlib.contextmanager
def unseen(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    yield lambda rows: None


def side(store: Store, shards: int, place: str) -> Side:
    return Side(store, shards, place, member_timeout_s=0.0)


def placed(row: StoredRow | HistoryRow | FailureRow, shards: int, *, wide: int) -> int:
    """The shard in which the engine looks for the row."""
    name = row.namespace.partition("/")[0]
    if row.namespace.endswith(FLOWS_SUFFIX):
        return shard_of(0, row.uuid, shards, shards)
    return shard_of(namespace_hash(name), row.uuid, wide if name == "default" else min(2, shards), shards)


async def filled(store: Store, *, timers: int, random_: random.Random, runs: int = 150) -> None:
    """Fills a store as an engine would: live and suspended timers, schedules with runs, notifications, history, failures."""
    assert await store.open(SOURCE_SHARDS) == SOURCE_SHARDS
    assert await put_namespace(store, WIDE, create=True)
    assert await put_namespace(store, NARROW, create=True)
    assert await store.put_record(NAMESPACES, "narrow", encoded(NARROW), 1)
    assert await store.put_record(FLOWS, "default/host", "{}", None)
    assert await store.put_record(API_KEYS, "key", '{"hash":"…"}', None)
    for number in range(3):
        assert await store.put_record(AUDIT, f"{number}", "entry", None)
    batches = {}
    for shard_id in range(SOURCE_SHARDS):
        for epoch in range(3 + shard_id):
            assert await store.claim(shard_id, expected_epoch=epoch, owner=NODE) == epoch + 1
        batches[shard_id] = ShardBatch(shard_id, 3 + shard_id, NODE)
    keeps_until = time.time_ns() // 1_000 + US_PER_DAY
    for number in range(timers):
        name = random_.choice(["default", "narrow"])
        schedule = number % 10 == 0
        timer_id = f"timer-{number}"
        uuid = (schedule_uuid if schedule else timer_uuid)(name, timer_id)
        stored_name = schedules_of(name) if schedule else name
        if number % 10 == 1:
            stored_name = name + NOTIFICATIONS_SUFFIX
        row = StoredRow(
            random_.randrange(-5, 2**45),
            uuid,
            generation(3, NODE, number),
            stored_name,
            timer_id,
            ("a", "b") if number % 3 else (),
            b'{"v":1,"secret":"whsec_%d"}' % number,
            "namespace paused" if number % 7 == 0 else None,
        )
        if number % 10 == 2:
            # As many as there are shards have the same instant.
            at, beside = event_instant(3, number // 10), uuid_beside(uuid, row.generation)
            row = row._replace(execute_at=at, uuid=beside, namespace=name + EVENTS_SUFFIX, suspended="sink")
        batch = batches[placed(row, SOURCE_SHARDS, wide=SOURCE_SHARDS)]
        if number % 4 != 3 or schedule or row.suspended == "sink":
            batch.upserts.append(row)
        # More runs than the smallest transactions have room for, unless it is such a store that is filled.
        for ended in range((runs if number == 0 else 3) if schedule else number % 4 // 3):
            of = generation(2, NODE, 1_000 * number + ended)
            if schedule:
                batch.runs.append(RunRow(uuid, of, b'{"run":%d}' % ended, keeps_until + ended))
            else:
                status = random_.choice([Status.COMPLETED, Status.FAILED])
                batch.history.append(HistoryRow(*row._replace(generation=of)[:7], status, 5, keeps_until))
            if ended % 2 == 0:
                cause = "http://a/\x1fHTTP 500"
                batch.failures.append(
                    FailureRow(uuid, of, stored_name, timer_id, cause, number // 3, row.execute_at, keeps_until)
                )
    for number in range(12):
        name, of = random_.choice(["default", "narrow"]), generation(3, NODE, timers + number)
        tokens = StoredRow(
            TIMERS_END_US, flow_uuid(name, "k:", f"k:{number}"), of, name + FLOWS_SUFFIX, "k:", (), b"\x94"
        )
        ended = HistoryRow(*tokens[:7], Status.COMPLETED, 5, keeps_until)
        batches[placed(ended, SOURCE_SHARDS, wide=SOURCE_SHARDS)].history.append(ended)
    for batch in batches.values():
        assert await store.apply([batch]) == [Applied.DURABLE]


async def contents(store: Store, shards: int) -> tuple[Counter[Row], dict[tuple[str, str], str], list[tuple[int, Row]]]:
    """All rows, all records but the numbers of shards, and where each row is."""
    rows = [
        (shard_id, row) for shard_id in range(shards) async for page in shard_rows(store, shard_id, 0) for row in page
    ]
    records = {
        (kind, record.key): f"{record.version}" if kind == NAMESPACES else record.value
        for kind in (NAMESPACES, FLOWS, API_KEYS, AUDIT)
        for record in await store.records(kind, limit=100)
    }
    return Counter(row for _, row in rows), records, rows


class Killed(Exception):
    """The process of the transfer ends here."""


class Mortal:
    """A store whose process ends at its nth call: before it has an effect, or after it."""

    def __init__(self, inner: Store, calls: list[int], at: int, *, after: bool) -> None:
        self._inner, self._calls, self._at, self._after = inner, calls, at, after

    @property
    def capabilities(self) -> Any:
        return self._inner.capabilities

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self._calls[0] += 1
            if self._calls[0] > self._at or (self._calls[0] == self._at and not self._after):
                raise Killed
            result = await getattr(self._inner, name)(*args, **kwargs)
            if self._calls[0] == self._at:
                raise Killed
            return result

        return call


@pytest.fixture(params=["memory", "sqlite", "postgresql", "mysql", "mongodb", "cassandra", "dynamodb"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store of each kind, not yet open."""
    kind, name = request.param, name_of(tmp_path)
    server = None if kind in ("memory", "sqlite") else request.getfixturevalue(f"shared_{kind}")
    made: Store
    if kind == "memory":
        made = MemoryStore()
    elif kind == "sqlite":
        from tocsin.stores.sqlite.store import SqliteStore

        made = SqliteStore(tmp_path / "tocsin.db")
    elif kind == "postgresql":
        from tocsin.stores.postgresql.store import PostgresStore

        made = PostgresStore(server.url(), postgres=PostgresOptions(schema=name))
    elif kind == "mysql":
        from tocsin.stores.mysql.store import MysqlStore

        made = MysqlStore(server.url(name))
    elif kind == "mongodb":
        from tocsin.stores.mongodb.store import MongoStore

        made = MongoStore(server.url(name), MongoOptions(operation_timeout_s=100.0))
    elif kind == "cassandra":
        from tests.support.cassandra import SHARED_KEYSPACE
        from tocsin.stores.cassandra.store import CassandraStore

        made = CassandraStore(server.url(SHARED_KEYSPACE), CassandraOptions(scope=f"{name}/"))
    else:
        from tocsin.stores.dynamodb.store import DynamoStore

        made = DynamoStore(server.url(name), _PATIENT)
    yield made
    await made.close()


@pytest.mark.parametrize("shards", [3, 7])
async def test_everything_moves_to_and_from_each_store(store: Store, shards: int) -> None:
    source, back = MemoryStore(), MemoryStore()
    await filled(source, timers=300, random_=random.Random(shards))
    rows, records, _ = await contents(source, SOURCE_SHARDS)
    await store.open(shards)
    moved = await Transfer(side(source, SOURCE_SHARDS, "a"), side(store, shards, "b"), unseen).run()
    assert moved.rows == rows.total()
    found, found_records, where = await contents(store, shards)
    assert (found, found_records) == (rows, records)
    for shard_id, row in where:
        assert isinstance(row, RunRow) or shard_id == placed(row, shards, wide=shards)
    schedules = {(row.uuid, shard_id) for shard_id, row in where if isinstance(row, StoredRow)}
    assert {(row.uuid, shard_id) for shard_id, row in where if isinstance(row, RunRow)} <= schedules
    states = await store.shards()
    assert len(states) == shards
    assert min(state.epoch for state in states) > max(state.epoch for state in await source.shards())
    assert {state.owner for state in states} == {None}
    await refuse_transferred(store)
    with pytest.raises(TransferRefused, match="transferred to b"):
        await refuse_transferred(source)
    # And on to a third one, from which all of it can be read.
    assert await back.open(SOURCE_SHARDS) == SOURCE_SHARDS
    await Transfer(side(store, shards, "b"), side(back, SOURCE_SHARDS, "c"), unseen).run()
    assert (await contents(back, SOURCE_SHARDS))[:2] == (rows, records)
    with pytest.raises(TransferRefused, match="transferred to c"):
        await refuse_transferred(store)


@pytest.mark.parametrize("after", [False, True])
async def test_a_transfer_that_was_interrupted_anywhere_goes_on(after: bool) -> None:
    at = 0
    while True:
        at += 1
        source, target = MemoryStore(), MemoryStore()
        await filled(source, timers=60, random_=random.Random(at))
        rows, records, _ = await contents(source, SOURCE_SHARDS)
        await target.open(3)
        calls, kills = [0], 0
        # The second run ends some calls later than the first, and so on, until one is complete.
        while True:
            mortal = [cast("Store", Mortal(each, calls, at + 29 * kills, after=after)) for each in (source, target)]
            try:
                await Transfer(side(mortal[0], SOURCE_SHARDS, "a"), side(mortal[1], 3, "b"), unseen).run()
                break
            except Killed:
                kills += 1
                calls[0] = 0
        if not kills:
            break
        assert (await contents(target, 3))[:2] == (rows, records)
        assert await read_mark(target) is None
        with pytest.raises(TransferRefused):
            await refuse_transferred(source)
    assert at > 50


def test_every_kind_of_record_is_moved() -> None:
    """Whatever is written by `put_record` is of a known kind."""
    written = {
        found
        for path in Path(tocsin.__file__).parent.rglob("*.py")
        if "stores" not in path.parts and "sql" not in path.parts and "testing" not in path.parts
        for found in re.findall(r"(?:put_record\(|= ScopedKind\()\s*([A-Za-z_\"]+),", path.read_text())
    }
    # A probe of `tocsin doctor`, which writes nothing, and the mark of the transfer itself.
    written -= {'"doctor"', "TRANSFER"}
    # Parameters: of the port itself, and of the transfer, which writes every kind.
    written -= {"self", "kind"}
    constants = {**vars(administration), **vars(jobs), **vars(records), **vars(monitor_records), **vars(tenures)}
    assert {constants[name] for name in written} == set(RECORD_KINDS)


def slowly_compared(monkeypatch: pytest.MonkeyPatch, module: ModuleType, target: MemoryStore, shards: int) -> None:
    """Has each look of a transfer at its target take half an hour, in which the database removes what has expired. All that
    has ended expires in 20 minutes."""
    minute_us, measured = 60_000_000, transfer.measured
    now_us = [time.time_ns() // 1_000 + US_PER_DAY - 20 * minute_us]

    async def slow(store: Store, of: int, *arguments: Any) -> Any:
        if of == shards:
            now_us[0] += 30 * minute_us
            while await target.purge_history(now_us[0], 1_000):
                pass
        return await measured(store, of, *arguments)

    clock = SimpleNamespace(time_ns=lambda: 1_000 * now_us[0], monotonic=time.monotonic)
    monkeypatch.setattr(transfer, "time", clock)
    monkeypatch.setattr(module, "measured", slow)


async def test_what_expires_while_both_stores_are_compared_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = MemoryStore(), MemoryStore()
    await filled(source, timers=60, random_=random.Random(7))
    await target.open(3)
    slowly_compared(monkeypatch, transfer, target, 3)
    await Transfer(side(source, SOURCE_SHARDS, "a"), side(target, 3, "b"), unseen).run()
    with pytest.raises(TransferRefused, match="transferred to b"):
        await refuse_transferred(source)


async def test_a_source_that_was_used_in_between_is_not_switched_over() -> None:
    source, target = MemoryStore(), MemoryStore()
    await filled(source, timers=20, random_=random.Random(1))
    await target.open(2)
    sides = side(source, SOURCE_SHARDS, "a"), side(target, 2, "b")
    mortal = cast("Store", Mortal(target, [0], 40, after=False))
    with pytest.raises(Killed):
        await Transfer(sides[0], side(mortal, 2, "b"), unseen).run()
    with pytest.raises(TransferRefused, match="not complete"):
        await refuse_transferred(target)
    await refuse_transferred(source)
    state = (await source.shards())[2]
    assert await source.claim(2, expected_epoch=state.epoch, owner=NODE) == state.epoch + 1
    with pytest.raises(TransferRefused, match="has used a since"):
        await Transfer(*sides, unseen).run()
    await refuse_transferred(source)


async def test_what_can_not_be_moved_is_refused_before_anything_is_written() -> None:
    source, target = MemoryStore(), MemoryStore()
    await filled(source, timers=5, random_=random.Random(1))
    await target.open(2)
    transfer = Transfer(side(source, SOURCE_SHARDS, "a"), side(target, 2, "b"), unseen)
    job = Job("job-1", "default", JobKind.TIMERS, JobAction.CANCEL, RowFilter(created_before=1), 1, 1, JobState.RUNNING)
    assert await source.put_record(JOBS, job.id, encoded(job), None)
    with pytest.raises(TransferRefused, match=r"job-1 .* stop the server again"):
        await transfer.run()
    with pytest.raises(TransferRefused, match=r"job-1 has not ended; wait for it .* run the same command again"):
        await refuse_unmovable(source, online=True)
    await source.delete_records(JOBS, [job.id])
    assert await source.put_record(NAMESPACES, "damaged", "{", None)
    with pytest.raises(TransferRefused, match="namespace damaged"):
        await transfer.run()
    await source.delete_records(NAMESPACES, ["damaged"])
    assert await target.shards() == []
    assert await target.claim(0, expected_epoch=0, owner=NODE) == 1
    with pytest.raises(TransferRefused, match="used already"):
        await transfer.run()
    assert await read_mark(target) is await read_mark(source) is None
    assert (await target.load(0, KEY_MIN, (2**62, b""), 10)).rows == []


async def test_a_server_that_joins_while_the_source_is_marked_is_seen() -> None:
    source, target = MemoryStore(), MemoryStore()
    await filled(source, timers=20, random_=random.Random(1))
    await target.open(2)

    class Joined(Mortal):
        """Its mark is written between the heartbeat of a server that starts and that server's look at it."""

        def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
            async def put_record(*args: Any) -> bool:
                await source.heartbeat(Member(NODE, "node-a", "http://a", 1))
                return await source.put_record(*args)

            return put_record if name == "put_record" else getattr(self._inner, name)

    joined = cast("Store", Joined(source, [0], 0, after=False))
    with pytest.raises(TransferRefused, match="node-a"):
        await Transfer(side(joined, SOURCE_SHARDS, "a"), side(target, 2, "b"), unseen).run()
    await refuse_transferred(source)
    with pytest.raises(TransferRefused, match="not complete"):
        await refuse_transferred(target)


async def test_a_timer_that_the_target_can_not_hold_is_named_before_anything_is_written() -> None:
    source, target = MemoryStore(), MemoryStore()
    await filled(source, timers=20, random_=random.Random(1))
    await target.open(2)
    target.capabilities = replace(target.capabilities, row_bytes_max=20)
    with pytest.raises(TransferRefused, match="the target can hold 20"):
        await Transfer(side(source, SOURCE_SHARDS, "a"), side(target, 2, "b"), unseen).run()
    assert await read_mark(target) is None
    assert await target.shards() == []


async def test_a_server_that_lives_is_named() -> None:
    source, target = MemoryStore(), MemoryStore()
    await filled(source, timers=5, random_=random.Random(1))
    await target.open(2)

    class Beating(Mortal):
        def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
            async def members() -> list[Member]:
                self._calls[0] += 1
                return [Member(NODE, "node-a", "http://a", self._calls[0])]

            return members if name == "members" else getattr(self._inner, name)

    for beating in (0, 1):
        stores = [source, target]
        stores[beating] = cast("MemoryStore", Beating(stores[beating], [0], 0, after=False))
        sides = [
            Side(store, shards, place, 5.0)
            for store, shards, place in zip(stores, (SOURCE_SHARDS, 2), "ab", strict=True)
        ]
        with pytest.raises(TransferRefused, match="node-a"):
            await Transfer(sides[0], sides[1], unseen).run()
    assert await read_mark(target) is None
