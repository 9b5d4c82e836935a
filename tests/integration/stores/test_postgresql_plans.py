"""Query plans in PostgreSQL: every statement whose cost matters uses the intended index, also with statistics of an empty
table."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer
from tocsin.sql.keys import LeftEdges
from tocsin.sql.rows import ROW_COLUMNS
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
    trim_runs,
)
from tocsin.stores.postgresql import lists as postgresql_list
from tocsin.stores.postgresql import reads as postgresql_read
from tocsin.stores.postgresql import writes as postgresql_write
from tocsin.stores.postgresql.connection import connect
from tocsin.stores.postgresql.dialect import DIALECT, numbered
from tocsin.stores.postgresql.store import PostgresStore
from tocsin.testing.store_conformance_base import claimed, finished, row, run, uuid_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

_TABLES = ("timers", "history", "runs")
#: Nodes of a plan that read stored rows.
_SCANS = re.compile(r"(?:Index Only Scan|Index Scan|Seq Scan|Bitmap Heap Scan|Tid Scan)\b[^(\n]*")


#: With statistics of empty tables, with outdated ones, and with good ones.
_STATISTICS = ("empty", "grown", "analyzed")


@asynccontextmanager
async def _database(server: PostgresServer, statistics: str) -> AsyncIterator[tuple[PostgresStore, Any]]:
    """A store in a database of its own, and a session like the store's."""
    store = PostgresStore(await server.create_database())
    await store.open(4)
    session = await connect(store._server)
    for table in _TABLES:
        await session.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    await _analyze(session)
    if statistics != "empty":
        for shard_id in range(1, 4):
            batch = await claimed(store, shard_id)
            batch.upserts = [row(i, i) for i in range(1, 1_500)]
            batch.history = [finished(each) for each in batch.upserts]
            batch.runs = [run(each) for each in batch.upserts]
            await store.apply([batch])
    if statistics == "analyzed":
        await _analyze(session)
    try:
        yield store, session
    finally:
        await session.close(timeout=PATIENCE_S)
        await store.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=_STATISTICS)
async def session(shared_postgresql: PostgresServer, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """A session in a database that tests only read."""
    async with _database(shared_postgresql, request.param) as (_, session):
        yield session


async def _analyze(session: Any) -> None:
    for table in _TABLES:
        await session.execute(f"VACUUM ANALYZE {table}")


async def plan(session: Any, sql: str) -> str:
    """The generic plan, which is used for all parameters."""
    count = max(int(number) for number in re.findall(r"\$(\d+)", sql))
    await session.execute(f"PREPARE planned AS {sql}")
    lines = await session.fetch(f"EXPLAIN EXECUTE planned ({', '.join(['NULL'] * count)})")
    await session.execute("DEALLOCATE planned")
    return "\n".join(line[0] for line in lines)


def scans(text: str) -> list[str]:
    return [scan.strip() for scan in _SCANS.findall(text)]


async def test_loads_use_the_primary_key_without_sorting(session: Any) -> None:
    found = await plan(session, postgresql_read.LOAD)
    assert scans(found) == ["Index Scan using timers_pkey on timers"]
    assert "Sort" not in found
    condition = re.search(r"Index Cond: (.*)", found)
    assert condition is not None
    for part in (
        "shard_id = ",
        "row_type = ",
        "timer_execute_at, timer_uuid) >= ",
        "timer_execute_at, timer_uuid) <= ",
    ):
        assert part in condition[1].replace("ROW(", "(")


async def test_fetches_use_the_uuid_index_and_read_the_newest_history_row(session: Any) -> None:
    found = await plan(session, postgresql_read.FETCH)
    assert scans(found) == [
        "Index Scan using timers_by_uuid on timers",
        "Index Scan Backward using history_pkey on history",
    ]
    assert "Sort" not in found


@pytest.mark.parametrize(
    ("table", "sql"),
    [
        ("history", history_of_timer(DIALECT)),
        ("history", history_sizes(DIALECT)),
        ("runs", RUNS_OF_TIMER),
        ("runs", RUN_SIZES),
    ],
)
async def test_runs_of_a_timer_are_read_along_a_primary_key_without_sorting(session: Any, table: str, sql: str) -> None:
    found = await plan(session, numbered(sql))
    assert scans(found) == [f"Index Scan Backward using {table}_pkey on {table}"]
    assert "Sort" not in found


@pytest.mark.parametrize("columns", ["{}_record", "octet_length({}_record)"])
@pytest.mark.parametrize(("table", "of"), [("history", "timer"), ("runs", "run")])
async def test_ends_of_a_shard_are_read_along_a_primary_key_without_sorting(
    session: Any, table: str, of: str, columns: str
) -> None:
    found = await plan(session, numbered(ends_page(table, of, columns.format(of))))
    assert scans(found) == [f"Index Scan using {table}_pkey on {table}"]
    assert "Sort" not in found


async def test_purge_of_runs_uses_the_expiry_index(session: Any) -> None:
    assert scans(await plan(session, numbered(purge_runs(DIALECT, 5, 5).sql))) == [
        "Index Scan using runs_by_expiry on runs runs_1",
        "Tid Scan on runs",
    ]


async def test_trim_of_runs_reads_those_of_one_timer(session: Any) -> None:
    assert scans(await plan(session, numbered(NEWEST_RUN))) == ["Index Only Scan Backward using runs_pkey on runs"]
    assert scans(await plan(session, numbered(trim_runs(DIALECT, 1, b"", b"", 5).sql))) == [
        "Index Scan using runs_pkey on runs runs_1",
        "Tid Scan on runs",
    ]


@pytest.mark.parametrize("number, table", list(enumerate(["failures", "runs", "history"])))
async def test_what_is_left_of_timers_is_found_along_a_key(session: Any, number: int, table: str) -> None:
    found = scans(await plan(session, numbered(forget(DIALECT, 1, [b""])[number].sql)))
    # In a table that has no rows, all indexes are alike.
    empty = not await session.fetch(f"SELECT 1 FROM {table} LIMIT 1")
    indexes = [f"{table}_pkey", *([f"{table}_by_instant"] if empty else [])]
    assert found in [[f"Index Scan using {index} on {table}"] for index in indexes]


async def test_shard_rows_have_an_index_of_their_own(session: Any) -> None:
    lines = await session.fetch(f"EXPLAIN {DIALECT.shards}")
    assert scans("\n".join(line[0] for line in lines)) == ["Index Scan using timers_shards on timers"]


@pytest.mark.parametrize(
    ("sql", "backward", "than"),
    [(postgresql_list.LIST, "", ">="), (postgresql_list.LIST_DESCENDING, " Backward", "<=")],
)
async def test_lists_read_each_range_in_order_from_its_position(
    session: Any, sql: str, backward: str, than: str
) -> None:
    found = await plan(session, sql)
    assert scans(found) == [
        f"Index Scan{backward} using timers_pkey on timers",
        f"Index Scan{backward} using history_by_instant on history",
    ]
    # The result is sorted by position once more, but only the matching rows.
    for scan in found.split("->"):
        if scan.strip().startswith("Index Scan"):
            assert f"timer_execute_at, timer_uuid) {than} " in scan.replace("ROW(", "(")


@pytest.mark.parametrize("sql", [DIALECT.schedules, DIALECT.all_schedules])
async def test_schedules_are_read_along_their_index_without_sorting(session: Any, sql: str) -> None:
    found = await plan(session, numbered(sql.format(columns=ROW_COLUMNS)))
    assert scans(found) == ["Index Scan using timers_schedules on timers"]
    assert "Sort" not in found


async def test_purge_uses_the_expiry_index(session: Any) -> None:
    assert scans(await plan(session, numbered(purge_history(DIALECT, 5, 5).sql))) == [
        "Index Scan using history_by_expiry on history history_1",
        "Tid Scan on history",
    ]


@pytest.mark.parametrize("statistics", _STATISTICS)
async def test_all_statements_of_a_batch_use_their_indexes(shared_postgresql: PostgresServer, statistics: str) -> None:
    async with _database(shared_postgresql, statistics) as (store, session):
        batch = await claimed(store)
        logged: list[str] = []
        session.add_log_listener(lambda _, message: logged.append(message.message))
        await session.execute(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on; "
            "SET client_min_messages = log"
        )
        parts = replace(
            batch,
            upserts=[row(1, 10)],
            deletes=[uuid_of(2)],
            delete_to=(5, uuid_of(9)),
            history=[finished(row(3))],
        )
        await postgresql_write.apply(session, [parts], LeftEdges())
    plans = {
        name: next(text for text in logged if re.search(pattern, text))
        for name, pattern in {
            "fence": "UPDATE timers AS t SET shard_version",
            "range": "USING unnest.range_shards",
            "exact": "USING unnest.delete_shards",
            "upsert": "INSERT INTO timers",
            "history": "INSERT INTO history",
        }.items()
    }
    assert scans(plans["fence"]) == ["Index Scan using timers_shards on timers t"]
    assert scans(plans["range"]) == ["Index Scan using timers_pkey on timers t"]
    assert plans["range"].count("timer_execute_at, t.timer_uuid)") + plans["range"].count("ROW(t.timer_execute_at") >= 2
    assert scans(plans["exact"]) == ["Index Scan using timers_by_uuid on timers t"]
    assert "Conflict Arbiter Indexes: timers_by_uuid" in plans["upsert"]
    assert "Conflict Arbiter Indexes: history_pkey" in plans["history"]
    assert "Filter: (r" not in plans["range"].split("Index Scan")[1]
