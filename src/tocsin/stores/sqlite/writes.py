"""Writes in SQLite, within a transaction that the caller opened.

apsw releases the interpreter lock at every step of a statement and has to acquire it again from a busy event loop, which can
take as long as the interpreter's switch interval. So everything here uses few, large statements: a statement has hundreds of
rows, and the number of rows is rounded up to one of a few sizes, so that prepared statements are reused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import apsw

from tocsin.ports.store import Applied, HistoryRow, ShardBatch
from tocsin.sql.dialect import Step
from tocsin.sql.rows import (
    FAILURE_COLUMNS,
    HISTORY_COLUMNS,
    LIVE,
    ROW_COLUMNS,
    RUN_COLUMNS,
    SUSPENDED,
    tags_text,
)
from tocsin.sql.store import remove_failures
from tocsin.stores.sqlite.dialect import DIALECT

#: Rows of one statement. Larger ones are not faster, and apsw caches no statement above 16 KiB of text.
CHUNK_ROWS_MAX = 512

_SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, CHUNK_ROWS_MAX)

_UPSERT_COLUMNS = f"shard_id, row_type, {ROW_COLUMNS}"
_HISTORY_COLUMNS = f"shard_id, {HISTORY_COLUMNS}"
_RUN_COLUMNS = f"shard_id, {RUN_COLUMNS}"
_FAILURE_COLUMNS = f"shard_id, {FAILURE_COLUMNS}"
_UPSERT_WIDTH = _UPSERT_COLUMNS.count(",") + 1
_HISTORY_WIDTH = _HISTORY_COLUMNS.count(",") + 1
_RUN_WIDTH = _RUN_COLUMNS.count(",") + 1
_FAILURE_WIDTH = _FAILURE_COLUMNS.count(",") + 1

DELETE_RANGE = "DELETE FROM timers WHERE shard_id = ? AND row_type = 2 AND (timer_execute_at, timer_uuid) <= (?, ?)"


def size_for(rows: int) -> int:
    """The statement size, in rows, that fits this many (at most CHUNK_ROWS_MAX)."""
    return next(size for size in _SIZES if size >= rows)


def _values(width: int, rows: int) -> str:
    one = "(" + ",".join("?" * width) + ")"
    return ",".join([one] * rows)


@cache
def _insert_sql(table: str, columns: str, width: int, rows: int) -> str:
    # Unused parameters are bound to NULL, and the WHERE filters their rows out.
    return (
        f"INSERT OR REPLACE INTO {table} ({columns}) SELECT * FROM (VALUES {_values(width, rows)}) WHERE column1 >= 0"
    )


@cache
def delete_sql(rows: int) -> str:
    """Exact deletes: (shard, uuid) pairs, which may repeat."""
    return f"DELETE FROM timers INDEXED BY timers_by_uuid WHERE (shard_id, timer_uuid) IN (VALUES {_values(2, rows)})"


@cache
def fence_sql(shards: int) -> str:
    """Updates the shard rows whose epoch and owner are as given: (shard_id) values, then triples."""
    keys = ",".join(["(?,1,0,x'')"] * shards)
    return (
        "UPDATE timers SET shard_version = shard_version "
        f"WHERE (shard_id, row_type, timer_execute_at, timer_uuid) IN (VALUES {keys}) "
        f"AND (shard_id, shard_version, shard_owner) IN (VALUES {_values(3, shards)})"
    )


def apply(connection: apsw.Connection, batches: Sequence[ShardBatch]) -> list[Applied]:
    """Writes the parts whose fence holds: the fences first, then all rows in key order."""
    held = _fence(connection, batches)
    parts = sorted((batch for batch in batches if batch.shard_id in held), key=lambda batch: batch.shard_id)
    for batch in parts:
        if batch.delete_to is not None:
            connection.execute(DELETE_RANGE, (batch.shard_id, *batch.delete_to))
    _delete(connection, parts)
    _insert(connection, "timers", _UPSERT_COLUMNS, _UPSERT_WIDTH, _upsert_values(parts))
    _insert(connection, "history", _HISTORY_COLUMNS, _HISTORY_WIDTH, _history_values(parts))
    _insert(connection, "runs", _RUN_COLUMNS, _RUN_WIDTH, _run_values(parts))
    failures = [value for part in parts for row in part.failures for value in (part.shard_id, *row)]
    _insert(connection, "failures", _FAILURE_COLUMNS, _FAILURE_WIDTH, failures)
    for part in parts:
        for step in remove_failures(DIALECT, part.shard_id, part.resolved):
            connection.execute(step.sql, step.values)
    return [Applied.DURABLE if batch.shard_id in held else Applied.OWNERSHIP_LOST for batch in batches]


def _fence(connection: apsw.Connection, batches: Sequence[ShardBatch]) -> set[int]:
    held: set[int] = set()
    for begin in range(0, len(batches), CHUNK_ROWS_MAX):
        chunk = batches[begin : begin + CHUNK_ROWS_MAX]
        keys = [batch.shard_id for batch in chunk]
        triples = [value for batch in chunk for value in (batch.shard_id, batch.epoch, batch.owner)]
        connection.execute(fence_sql(len(chunk)), (*keys, *triples))
        if connection.changes() == len(chunk):
            held.update(keys)
        else:
            held.update(_held_one_by_one(connection, chunk))
    return held


def _held_one_by_one(connection: apsw.Connection, batches: Sequence[ShardBatch]) -> list[int]:
    sql = (
        "SELECT 1 FROM timers WHERE shard_id = ? AND row_type = 1 AND timer_execute_at = 0 AND timer_uuid = x'' "
        "AND shard_version = ? AND shard_owner = ?"
    )
    return [b.shard_id for b in batches if connection.execute(sql, (b.shard_id, b.epoch, b.owner)).get is not None]


def _delete(connection: apsw.Connection, parts: Sequence[ShardBatch]) -> None:
    values = [value for part in parts for uuid in sorted(part.deletes) for value in (part.shard_id, uuid)]
    for begin in range(0, len(values), 2 * CHUNK_ROWS_MAX):
        chunk = values[begin : begin + 2 * CHUNK_ROWS_MAX]
        size = size_for(len(chunk) // 2)
        connection.execute(delete_sql(size), chunk + chunk[-2:] * (size - len(chunk) // 2))


def _insert(connection: apsw.Connection, table: str, columns: str, width: int, values: Sequence[object]) -> None:
    for begin in range(0, len(values), width * CHUNK_ROWS_MAX):
        chunk = values[begin : begin + width * CHUNK_ROWS_MAX]
        rows = len(chunk) // width
        size = size_for(rows)
        chunk = [*chunk, *[None] * (width * (size - rows))]
        connection.execute(_insert_sql(table, columns, width, size), chunk)


def _upsert_values(parts: Sequence[ShardBatch]) -> list[object]:
    values: list[object] = []
    extend = values.extend
    for part in parts:
        shard_id = part.shard_id
        # By instant and uuid. The few suspended rows, which the table keeps apart, may come anywhere.
        for row in sorted(part.upserts):
            at, uuid, generation, namespace, timer_id, tags, record, suspended = row
            row_type = LIVE if suspended is None else SUSPENDED
            text = tags_text(tags) if tags else None
            extend((shard_id, row_type, at, uuid, generation, namespace, timer_id, text, _stored(record), suspended))
    return values


def _history_values(parts: Sequence[ShardBatch]) -> list[object]:
    values: list[object] = []
    extend = values.extend
    for part in parts:
        shard_id = part.shard_id
        for row in sorted(part.history, key=_history_order):
            at, uuid, generation, namespace, timer_id, tags, record, status, finished_at, expires_at = row
            text = tags_text(tags) if tags else None
            extend((shard_id, at, uuid, generation, namespace, timer_id, text, _stored(record)))
            extend((status.value, finished_at, expires_at))
    return values


def _run_values(parts: Sequence[ShardBatch]) -> list[object]:
    values: list[object] = []
    for part in parts:
        for uuid, generation, record, expires_at in part.runs:
            values += (part.shard_id, uuid, generation, _stored(record), expires_at)
    return values


def _history_order(row: HistoryRow) -> tuple[int, bytes, bytes]:
    return row[:3]


def _stored(record: bytes) -> str | bytes:
    try:
        return record.decode()
    except UnicodeDecodeError:
        return record


def run(connection: apsw.Connection, steps: Sequence[Step]) -> int:
    """Runs the statements. Returns how many rows the last one found or changed; 0 also if a required one before found
    none."""
    matched = 0
    for step in steps:
        before = connection.total_changes()
        matched = len(connection.execute(step.sql, step.values).fetchall()) or connection.total_changes() - before
        if step.required and not matched:
            break
    return matched
