"""Query plans in SQLite: every statement whose cost matters uses an index, bounded on the intended columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.support.cases import each

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
from tocsin.stores.options import SqliteOptions
from tocsin.stores.sqlite import lists as sqlite_list
from tocsin.stores.sqlite import reads as sqlite_read
from tocsin.stores.sqlite import writes as sqlite_write
from tocsin.stores.sqlite.connection import connect, migrate
from tocsin.stores.sqlite.dialect import DIALECT

RANGE = r"shard_id=\? AND row_type=\? AND \(timer_execute_at,timer_uuid\)"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    path = tmp_path / "tocsin.db"
    connection = connect(path, SqliteOptions(busy_timeout_ms=0), cache_bytes=2**20, read_only=False)
    migrate(connection, path)
    yield connection
    connection.close()


def plan(connection: apsw.Connection, sql: str) -> list[str]:
    """The plan's steps that read stored tables or sort."""

    class AnyValue(dict[str, int]):
        def __missing__(self, key: str) -> int:
            return 1

    count = len(re.findall(r"\?", sql))
    bindings = tuple([1] * count) if count else AnyValue()
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]
    return [step for step in steps if re.search(r"\b(timers|history|runs|TEMP B-TREE)\b", step)]


def assert_plan(connection: apsw.Connection, sql: str, *expected: str) -> None:
    steps = plan(connection, sql)
    assert len(steps) == len(expected), steps
    for step, pattern in zip(steps, expected, strict=True):
        assert re.fullmatch(pattern, step), (step, pattern)


def test_fence_uses_the_primary_key(connection: apsw.Connection) -> None:
    key = r"shard_id=\? AND row_type=\? AND timer_execute_at=\? AND timer_uuid=\?"
    assert_plan(connection, sqlite_write.fence_sql(3), rf"SEARCH timers USING PRIMARY KEY \({key}\)")


def test_exact_deletes_use_the_uuid_index(connection: apsw.Connection) -> None:
    by_uuid = r"SEARCH timers USING (COVERING )?INDEX timers_by_uuid \(shard_id=\? AND timer_uuid=\?\)"
    assert_plan(connection, sqlite_write.delete_sql(64), by_uuid)


def test_range_deletes_use_the_primary_key(connection: apsw.Connection) -> None:
    assert_plan(connection, sqlite_write.DELETE_RANGE, rf"SEARCH timers USING PRIMARY KEY \({RANGE}<\(\?,\?\)\)")


def test_purge_uses_the_index_of_expiry(connection: apsw.Connection) -> None:
    key = r"shard_id=\? AND timer_execute_at=\? AND timer_uuid=\? AND timer_generation=\?"
    assert_plan(
        connection,
        purge_history(DIALECT, 5, 5).sql,
        rf"SEARCH history USING PRIMARY KEY \({key}\)",
        r"SEARCH history USING COVERING INDEX history_by_expiry \(timer_expires_at<\?\)",
    )


def test_ends_of_a_shard_are_read_along_a_key(connection: apsw.Connection) -> None:
    for columns in ("{0}_record", "octet_length({0}_record)"):
        for table, of, index in (("history", "timer", "INDEX history_by_uuid"), ("runs", "run", "PRIMARY KEY")):
            bounds = rf"\(shard_id=\? AND {of}_uuid>\?\)"
            assert_plan(connection, ends_page(table, of, columns.format(of)), f"SEARCH {table} USING {index} {bounds}")


def test_runs_of_a_timer_are_read_along_a_key(connection: apsw.Connection) -> None:
    key = r"\(shard_id=\? AND {0}_uuid=\? AND {0}_generation<\?\)"
    between = r"\(shard_id=\? AND {0}_uuid=\? AND {0}_generation>\? AND {0}_generation<\?\)"
    for sql in (history_of_timer(DIALECT), history_sizes(DIALECT)):
        assert_plan(connection, sql, "SEARCH history USING INDEX history_by_uuid " + between.format("timer"))
    for sql in (RUNS_OF_TIMER, RUN_SIZES):
        assert_plan(connection, sql, "SEARCH runs USING PRIMARY KEY " + between.format("run"))
    assert_plan(
        connection,
        purge_runs(DIALECT, 5, 5).sql,
        r"SEARCH runs USING PRIMARY KEY \(shard_id=\? AND run_uuid=\? AND run_generation=\?\)",
        r"SEARCH runs USING COVERING INDEX runs_by_expiry \(run_expires_at<\?\)",
    )
    assert_plan(connection, NEWEST_RUN, r"SEARCH runs USING PRIMARY KEY \(shard_id=\? AND run_uuid=\?\)")
    assert_plan(
        connection,
        trim_runs(DIALECT, 1, b"", b"", 5).sql,
        r"SEARCH runs USING PRIMARY KEY \(shard_id=\? AND run_uuid=\? AND run_generation=\?\)",
        "SEARCH runs USING PRIMARY KEY " + key.format("run"),
    )


def test_what_is_left_of_timers_is_found_along_a_key(connection: apsw.Connection) -> None:
    _, runs, history = forget(DIALECT, 1, [b""])
    key = r"\(shard_id=\? AND {0}_uuid=\? AND {0}_generation>\?\)"
    assert_plan(connection, runs.sql, "SEARCH runs USING PRIMARY KEY " + key.format("run"))
    assert_plan(connection, history.sql, "SEARCH history USING INDEX history_by_uuid " + key.format("timer"))


def test_loads_use_the_primary_key_and_do_not_sort(connection: apsw.Connection) -> None:
    step = rf"SEARCH timers USING PRIMARY KEY \({RANGE}>\(\?,\?\) AND \(timer_execute_at,timer_uuid\)<\(\?,\?\)\)"
    assert_plan(connection, sqlite_read.LOAD, step, step)


def test_fetches_use_the_uuid_index(connection: apsw.Connection) -> None:
    assert_plan(
        connection,
        sqlite_read.fetch_sql(8),
        r"SEARCH timers USING INDEX timers_by_uuid \(shard_id=\? AND timer_uuid=\?\)",
        r"SEARCH history USING COVERING INDEX history_by_uuid \(shard_id=\? AND timer_uuid=\?\)",
        r"SEARCH history USING INDEX history_by_uuid \(shard_id=\? AND timer_uuid=\? AND timer_generation=\?\)",
    )


@each("namespaces", [1, None])
@each("ended", [False, True])
@each("descending", [False, True])
def test_lists_use_the_primary_key_and_do_not_sort(
    connection: apsw.Connection, descending: bool, ended: bool, namespaces: int | None
) -> None:
    shape = {
        "descending": descending,
        "ended": ended,
        "namespaces": namespaces,
        "prefix": True,
        "tags": 2,
        "statuses": 0,
    }
    instant = ("timer_execute_at", r"\?")
    key = (r"\(timer_execute_at,timer_uuid\)", r"\(\?,\?\)")
    place = (r"\(timer_execute_at,timer_uuid,timer_generation\)", r"\(\?,\?,\?\)")

    def between(start: tuple[str, str], end: tuple[str, str]) -> str:
        low, high = (end, start) if descending else (start, end)
        return f"{low[0]}>{low[1]} AND {high[0]}<{high[1]}"

    def live(end: tuple[str, str]) -> str:
        return rf"SEARCH timers USING PRIMARY KEY \(shard_id=\? AND row_type=\? AND {between(key, end)}\)"

    def past(end: tuple[str, str]) -> str:
        return rf"SEARCH history USING PRIMARY KEY \(shard_id=\? AND {between(place, end)}\)"

    upto = live(key if ended else instant)
    assert_plan(connection, sqlite_list.matches_sql(history=False, **shape), upto, upto)
    assert_plan(connection, sqlite_list.end_sql(history=False, descending=descending), live(instant))
    upto = past(place if ended else instant)
    assert_plan(connection, sqlite_list.matches_sql(history=True, **shape | {"statuses": 2}), upto, upto)
    assert_plan(connection, sqlite_list.end_sql(history=True, descending=descending), past(instant))


def test_statements_fit_into_the_statement_cache(connection: apsw.Connection) -> None:
    size = sqlite_write.CHUNK_ROWS_MAX
    for sql in (
        sqlite_write._insert_sql("timers", sqlite_write._UPSERT_COLUMNS, sqlite_write._UPSERT_WIDTH, size),
        sqlite_write._insert_sql("history", sqlite_write._HISTORY_COLUMNS, sqlite_write._HISTORY_WIDTH, size),
        sqlite_write.delete_sql(size),
        sqlite_read.fetch_sql(size),
    ):
        assert len(sql.encode()) < 16_384
