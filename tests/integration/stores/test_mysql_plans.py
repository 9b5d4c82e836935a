"""Query plans in MySQL: every statement whose cost matters uses the intended index and does not sort, also with statistics of
an empty table; and no statement uses a feature that TiDB lacks or that its grammar refuses."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from tests.support import tidb_grammar
from tocsin.model.timer import Status
from tocsin.ports.store import GENERATION_BYTES, GENERATION_END, KEY_MAX, KEY_MIN, ListQuery, Member, ShardBatch
from tocsin.sql.dialect import Step, Value
from tocsin.sql.keys import LeftEdges
from tocsin.sql.rows import LIVE, ROW_COLUMNS, LoadQuery
from tocsin.sql.store import (
    NEWEST_RUN,
    RUN_SIZES,
    RUNS_OF_TIMER,
    ends_page,
    forget,
    history_of_timer,
    history_sizes,
    purge_history,
    purge_runs,
    release,
    trim_runs,
)
from tocsin.stores.mysql import lists as mysql_list
from tocsin.stores.mysql import reads as mysql_read
from tocsin.stores.mysql import schema as mysql_schema
from tocsin.stores.mysql import writes as mysql_write
from tocsin.stores.mysql.connection import connect
from tocsin.stores.mysql.dialect import DIALECT
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.store import MysqlStore
from tocsin.stores.mysql.text import filled, hexed
from tocsin.stores.options import MysqlOptions
from tocsin.testing.store_conformance_base import ALICE, claimed, finished, row, run, uuid_of

#: Sizes in bytes of the keys' parts: shard_id, row_type, instant, uuid with its length, uuid, generation.
SHARD, TYPE, AT, UUID, FINISHED_UUID, GENERATION = 4, 1, 8, 18, 16, 32
PLACE = SHARD + TYPE + AT + UUID

OPTIONS = MysqlOptions(undone_retries_max=0)
BATCH = ShardBatch(
    1,
    1,
    ALICE,
    upserts=[row(1, 10), row(5, 10, suspended="why")],
    deletes=[uuid_of(2)],
    delete_to=(5, uuid_of(9)),
    history=[finished(row(3))],
    runs=[run(row(4))],
)


@pytest_asyncio.fixture
async def store(mysql_url: str) -> AsyncIterator[MysqlStore]:
    store = MysqlStore(mysql_url)
    await store.open(4)
    yield store
    await store.close()


@pytest_asyncio.fixture(params=["empty", "grown", "analyzed"])
async def session(store: MysqlStore, request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    """A session like the store's own: with statistics of empty tables, with outdated ones, and with good ones."""
    session = await connect(store._server)
    await session.run(b"ANALYZE TABLE timers, history, runs")
    if request.param != "empty":
        for shard_id in range(1, 4):
            batch = await claimed(store, shard_id)
            batch.upserts = [row(i, i) for i in range(1, 1_500)]
            batch.history = [finished(each) for each in batch.upserts]
            batch.runs = [run(each) for each in batch.upserts]
            await store.apply([batch])
    if request.param == "analyzed":
        await session.run(b"ANALYZE TABLE timers, history, runs")
    yield session
    session.terminate()


class Recorder:
    """Forwards statements and records them."""

    def __init__(self, session: Connection) -> None:
        self.statements: list[bytes] = []
        self._session = session
        self.server = session.server

    async def run(self, *statements: bytes) -> Any:
        self.statements += statements
        return await self._session.run(*statements)

    async def rows(self, statement: bytes) -> Any:
        self.statements.append(statement)
        return await self._session.rows(statement)

    async def transaction(self, work: Callable[[], Awaitable[Any]], undone_retries_max: int) -> Any:
        return await self._session.transaction(work, undone_retries_max)

    async def snapshot(self, work: Callable[[], Awaitable[Any]]) -> Any:
        return await self._session.snapshot(work)


async def plan(session: Connection, statement: bytes) -> list[tuple[str, str, int]]:
    """(table, index, used bytes of the index) of each step; checks that nothing is sorted or stored temporarily."""
    steps = []
    for values in await session.rows(b"EXPLAIN " + statement):
        # MySQL has two more columns: partitions, and before the last one the share of rows that remain.
        _, _, table, *_, key, key_bytes, _, _, extra = values if len(values) == 10 else (*values[:10], values[11])
        extra = extra or ""
        assert "filesort" not in extra
        assert "temporary" not in extra
        if table is not None and not table.startswith("<"):
            steps.append((table, key, int(key_bytes or 0)))
    return steps


def written(step: Step) -> bytes:
    return filled(step.sql, step.values)


async def test_all_schedules_are_read_along_their_key(session: Connection) -> None:
    await session.run(
        b"INSERT INTO schedules VALUES " + b", ".join(b"('n%d/schedule', 'x', 1, x'%032x')" % (n, n) for n in range(50))
    )
    sql = DIALECT.all_schedules.format(columns=ROW_COLUMNS)
    first, second = await plan(session, filled(sql, (b"n1/schedule", b"x", b"n1/schedule", 10)))
    assert (first[:2], second[:2]) == (("schedules", "PRIMARY"), ("timers", "timers_by_uuid"))


async def test_loads_use_the_primary_key(session: Connection) -> None:
    for each_max in (None, 16_000):
        for first, last in (((3, uuid_of(2)), (900, uuid_of(4))), ((5, uuid_of(1)), (5, uuid_of(2)))):
            statement = mysql_read.page(LIVE, 1, first, last, 100, each_max)
            assert await plan(session, statement) == [("timers", "PRIMARY", PLACE)]


async def test_fetches_use_the_uuid_index_and_read_the_newest_history_row(session: Connection) -> None:
    statement = mysql_read.by_uuid(1, [uuid_of(1), uuid_of(2)])
    *others, newest = await plan(session, statement)
    assert others == [
        ("timers", "timers_by_uuid", SHARD + UUID),
        ("history", "history_by_uuid", SHARD + FINISHED_UUID + GENERATION),
    ]
    # MySQL prefers to scan an empty index instead of two ranges.
    empty = await session.rows(b"SELECT 1 FROM history LIMIT 1") == ()
    whole = SHARD + FINISHED_UUID + GENERATION if empty and "MariaDB" not in session.server.version else None
    assert newest in [("history", "history_by_uuid", size) for size in (SHARD + FINISHED_UUID, whole)]


async def test_ends_of_a_shard_are_read_along_a_key(session: Connection) -> None:
    values = (1, uuid_of(1), uuid_of(1), bytes(GENERATION_BYTES), 10)
    for table, of, index in ((DIALECT.history_of_timer, "timer", "history_by_uuid"), ("runs", "run", "PRIMARY")):
        for columns in (f"{of}_record", f"octet_length({of}_record)"):
            found = await plan(session, filled(ends_page(table, of, columns), values))
            assert found == [(table.partition(" ")[0], index, SHARD + FINISHED_UUID)]


async def test_runs_of_a_timer_are_read_along_a_key(session: Connection) -> None:
    values = (1, uuid_of(1), bytes(GENERATION_BYTES), GENERATION_END, 10)
    size = SHARD + FINISHED_UUID + GENERATION
    for sql in (history_of_timer(DIALECT), history_sizes(DIALECT)):
        assert await plan(session, filled(sql, values)) == [("history", "history_by_uuid", size)]
    for sql in (RUNS_OF_TIMER, RUN_SIZES):
        assert await plan(session, filled(sql, values)) == [("runs", "PRIMARY", size)]
    assert await plan(session, written(purge_runs(DIALECT, 500, 100))) == [("runs", "runs_by_expiry", AT)]
    assert await plan(session, filled(NEWEST_RUN, (1, uuid_of(1), 5))) == [("runs", "PRIMARY", SHARD + FINISHED_UUID)]
    assert await plan(session, written(trim_runs(DIALECT, 1, uuid_of(1), b"g" * 32, 5))) == [("runs", "PRIMARY", size)]


async def test_what_is_left_of_timers_is_found_along_a_key(session: Connection) -> None:
    found = [await plan(session, written(step)) for step in forget(DIALECT, 1, [uuid_of(1)])]
    size = SHARD + FINISHED_UUID + GENERATION
    assert found == [
        [("failures", "PRIMARY", size)],
        [("runs", "PRIMARY", size)],
        [("history", "history_by_uuid", size)],
    ]


async def test_shard_rows_are_read_by_primary_key(session: Connection) -> None:
    assert await plan(session, mysql_read.shard_rows(range(4)).encode()) == [("timers", "PRIMARY", PLACE)]
    for count in (1, 2, 64):
        fence = mysql_write.fence([replace(BATCH, shard_id=shard_id) for shard_id in range(count)])
        assert await plan(session, fence) == [("timers", "PRIMARY", PLACE)]
    assert await plan(session, written(release(DIALECT, 1, 1, ALICE))) == [("timers", "PRIMARY", PLACE)]


async def test_deletes_use_their_indexes(session: Connection) -> None:
    (ranged,) = mysql_write.range_deletes([BATCH], {1: (2, uuid_of(1))}, 100)
    assert await plan(session, ranged) == [("timers", "PRIMARY", PLACE)]
    few, many = (mysql_write.uuid_delete(1, [hexed(uuid_of(i)) for i in range(count)]) for count in (4, 1_000))
    assert await plan(session, few) == [("timers", "timers_by_uuid", SHARD + UUID)]
    # In a table of fewer rows than the list has uuids, it may read the shard, but no other.
    ((_, index, size),) = await plan(session, many)
    assert (index, size >= SHARD) == ("timers_by_uuid", True)
    assert await plan(session, written(purge_history(DIALECT, 500, 100))) == [("history", "history_by_expiry", AT)]


@pytest.mark.parametrize("descending", [False, True])
async def test_lists_read_each_range_in_order_from_its_position(session: Connection, descending: bool) -> None:
    recorder: Any = Recorder(session)
    cursor = (5, uuid_of(1), b"g" * 32)
    query = ListQuery(("default",), (1, 2), frozenset(Status), cursor=cursor, limit=5, descending=descending)
    await mysql_list.list_rows(recorder, query, 1_000)
    for statement in recorder.statements:
        for table, key, size in await plan(session, statement):
            assert key == "PRIMARY"
            assert size >= (PLACE if table == "timers" else SHARD + AT + FINISHED_UUID)


#: Features of MySQL or MariaDB that TiDB lacks, ignores, or implements differently, but for CHECK: no statement relies on it.
_FOREIGN = re.compile(
    r"SKIP\s+LOCKED|FOR\s+SHARE|LOCK\s+IN\s+SHARE\s+MODE|NOWAIT|RETURNING|LATERAL|JSON_TABLE|FOREIGN\s+KEY|REFERENCES|"
    r"CALL\s|PROCEDURE|FUNCTION|TRIGGER|HANDLER\s|LOCK\s+TABLES|XA\s|SAVEPOINT|SERIALIZABLE|FULLTEXT|SPATIAL|"
    r"GENERATED|\bUUID\b\s*\(|INET6|SEQUENCE|FOR\s+PORTION|SYSTEM\s+VERSIONING|@\w+\s*:=",
    re.IGNORECASE,
)


async def _everything_else(recorder: Any, total_shards: int) -> None:
    """Runs the statements that all SQL stores have, on a store of that number of shards."""

    class Recorded(MysqlStore):
        async def _load(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
            return await work(recorder)

        _read = _load

        async def _lease_rows(self, sql: str, *values: Value) -> Sequence[Sequence[Any]]:
            return await self._engine_rows(sql, *values)

        async def _change(self, *steps: Step) -> int:
            return await self._transact(recorder, steps)

        _lease_change = _change

        async def _write(self, shard_ids: Iterable[int], work: Callable[[Any], Awaitable[Any]]) -> Any:
            return await work(recorder)

    store = Recorded("mysql://h/d")
    store._total_shards = total_shards
    await store.claim(2, expected_epoch=0, owner=ALICE)
    await store.claim(2, expected_epoch=1, owner=ALICE, presumed_dead=(ALICE, 1))
    await store.release(2, epoch=1, owner=ALICE)
    await store.heartbeat(Member(ALICE, "a", "http://a", 1))
    await store.members()
    await store.forget_member(ALICE, 1)
    await store.purge_history(5, 5)
    await store.runs(1, uuid_of(1), None, 5)
    await store.trim_runs(1, uuid_of(1), 2, 5)
    await store.forget(1, [uuid_of(1), uuid_of(2)])
    await store.put_record("kind", "a", "value", None)
    await store.put_record("kind", "a", "value", 1)
    await store.record("kind", "a")
    await store.records("kind", "a", "b", limit=5, descending=True)
    await store.delete_records("kind", ["a", "b"])
    await store.records_versions("kind", "other")


async def test_statements_use_no_feature_that_tidb_lacks(store: MysqlStore) -> None:
    session = await connect(store._server)
    recorder: Any = Recorder(session)
    batch = await claimed(store, 1)
    everything = replace(BATCH, epoch=batch.epoch, delete_to=(50, uuid_of(9)), upserts=[row(7, 60)])
    await mysql_write.apply(recorder, [everything, replace(BATCH, shard_id=2)], LeftEdges(), OPTIONS)
    await _everything_else(recorder, store._total_shards)
    await mysql_read.load(recorder, LoadQuery(LIVE, 1, KEY_MIN, KEY_MAX, 5), 1)
    await mysql_read.fetch(recorder, 1, [uuid_of(1)])
    await recorder.rows(mysql_read.shard_rows(range(4)).encode())
    await mysql_list.list_rows(
        recorder, ListQuery(("default",), (1,), frozenset(Status), tags=("a",), id_prefix="t"), 100
    )
    schema = [each for _, sql in mysql_schema.migrations() for each in mysql_schema.statements(sql)]
    settings = store._server.session_statements("8.0.11-TiDB-v7.5.0", bounded=True)
    assert len(recorder.statements) > 20
    session.terminate()
    for statement in [*recorder.statements, *schema, *settings]:
        assert not _FOREIGN.search(statement.decode(errors="replace")), statement
    tidb_grammar.require()
    assert tidb_grammar.complaints([*recorder.statements, *schema, *settings]) == {}


def test_tidb_reads_its_own_hints() -> None:
    tidb_grammar.require()
    (ranged,) = mysql_write.range_deletes([BATCH], {1: (2, uuid_of(1))}, 100)
    for statement in (ranged, mysql_write.uuid_delete(1, [hexed(uuid_of(1))])):
        broken = statement.replace(b"/*T! FORCE INDEX (", b"/*T! FORCE INDEX ((")
        assert tidb_grammar.complaints([statement]) == {}
        assert len(tidb_grammar.complaints([broken])) == 1
