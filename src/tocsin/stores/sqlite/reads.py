"""Reads of timers in SQLite. Each function is one statement, hence one snapshot, unless its docstring differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import apsw

from tocsin.model.timer import damaged_record
from tocsin.ports.store import Found, HistoryRow, Loaded, StoredRow
from tocsin.sql.dialect import Value
from tocsin.sql.rows import HISTORY_COLUMNS, ROW_COLUMNS, LoadQuery, cut, found_of
from tocsin.stores.sqlite.rows import (
    ROW_WIDTH,
    hex_sql,
    history_aggregates,
    history_rows,
    row_aggregates,
    rows_within,
    stored_rows,
    values_of_hex,
)
from tocsin.stores.sqlite.writes import CHUNK_ROWS_MAX, size_for

R = TypeVar("R", StoredRow, HistoryRow)

_RANGE = (
    "FROM timers WHERE shard_id = :shard AND row_type = :type AND (timer_execute_at, timer_uuid) > (:at, :uuid) "
    "AND (timer_execute_at, timer_uuid) <= (:to_at, :to_uuid) ORDER BY timer_execute_at, timer_uuid LIMIT :limit"
)


def size_sql(rows: str) -> str:
    """A scalar query for the total size in bytes of the records of `rows` (FROM … LIMIT), without reading the records."""
    return f"SELECT ifnull(sum(size), 0) FROM (SELECT octet_length(timer_record) AS size {rows})"


LOAD = f"SELECT {row_aggregates(size_sql(_RANGE))} FROM (SELECT {ROW_COLUMNS} {_RANGE})"


def load(connection: apsw.Connection, query: LoadQuery, bytes_max: int) -> Loaded:
    """A page, shorter than `limit` if its records would exceed `bytes_max` (one row always fits)."""
    row_type, shard_id, after, up_to, limit = query
    at, uuid = after
    to_at, to_uuid = up_to
    parameters = {
        "shard": shard_id, "type": row_type, "at": at, "uuid": uuid, "to_at": to_at, "to_uuid": to_uuid,
    }  # fmt: skip
    rows, limit = read_page(connection, LOAD, parameters, limit, bytes_max, stored_rows)
    return Loaded(rows, up_to if len(rows) < limit else (rows[-1].key if rows else after))


def read_page(
    connection: apsw.Connection,
    sql: str,
    parameters: Mapping[str, Any],
    limit: int,
    bytes_max: int,
    decode: Callable[[tuple[Any, ...]], list[R]],
) -> tuple[list[R], int]:
    """The rows of an aggregating statement with :limit and :bytes_max, and the limit that was finally used.

    A page with too many bytes is read again, shorter, in another snapshot.
    """
    values = _aggregates(connection, sql, {**parameters, "limit": limit, "bytes_max": bytes_max})
    shorter = rows_within(values, bytes_max)
    if shorter is not None:
        limit = shorter
        values = _aggregates(connection, sql, {**parameters, "limit": limit, "bytes_max": 2**62})
    return decode(values), limit


def _aggregates(
    connection: apsw.Connection, sql: str, parameters: Mapping[str, Any] | Sequence[Any]
) -> tuple[Any, ...]:
    """The result row of an aggregating statement. If it has a text that is not UTF-8, it is read again, in another snapshot,
    so that the damaged row is one of the others."""
    try:
        return connection.execute(sql, parameters).fetchall()[0]
    except UnicodeDecodeError:
        return values_of_hex(connection.execute(hex_sql(sql), parameters).fetchall()[0])


def rows_of(connection: apsw.Connection, sql: str, values: Sequence[Value]) -> Sequence[Sequence[Any]]:
    """The rows of any other query. If one has a text that is not UTF-8, they are read again, in another snapshot, as
    `_row_of_bytes` describes."""
    try:
        return connection.execute(sql, values).fetchall()
    except UnicodeDecodeError:
        cursor = connection.execute(sql, values)
        names = [name for name, *_ in cursor.get_description()]
        cursor.close()
        places = [f"c{index}" for index in range(len(names))]
        each = ", ".join(
            f"typeof({c}) = 'text', CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) ELSE {c} END" for c in places
        )
        rows = connection.execute(f"WITH page({', '.join(places)}) AS ({sql}) SELECT {each} FROM page", values)
        return [_row_of_bytes(names, row) for row in rows.fetchall()]


def _row_of_bytes(names: Sequence[str], values: Sequence[Any]) -> Sequence[Any]:
    """A row from pairs: whether the value is a text, and the value, bytes for a text. One that is not UTF-8 gets replacement
    characters, and the record beside it becomes a damaged one."""
    row, error = list(values[1::2]), None
    for index, (name, is_text) in enumerate(zip(names, values[::2], strict=True)):
        if is_text and name != "timer_record":
            stored = row[index]
            try:
                row[index] = stored.decode()
            except UnicodeDecodeError as found:
                row[index] = stored.decode(errors="replace")
                error = ValueError(f"{name} is not text: {found}")
                if name == "record_value":
                    # No JSON: a secret with another character must not be taken for the secret.
                    row[index] = f"\N{REPLACEMENT CHARACTER}{row[index]}"
    if error is not None and "timer_record" in names:
        at = names.index("timer_record")
        row[at] = damaged_record(error, row[at])
    return row


@cache
def fetch_sql(uuids: int) -> str:
    """Live rows and newest history rows of one shard's uuids; the parameters are shard, uuids, shard, uuids."""
    places = ",".join("?" * uuids)
    # Without INDEXED BY, the planner may scan a whole shard for a few uuids.
    live = (
        f"SELECT {row_aggregates()} FROM (SELECT {ROW_COLUMNS} FROM timers INDEXED BY timers_by_uuid "
        f"WHERE shard_id = ? AND timer_uuid IN ({places}))"
    )
    newest = (
        "SELECT shard_id AS shard, timer_uuid AS uuid, max(timer_generation) AS generation FROM history "
        f"INDEXED BY history_by_uuid WHERE shard_id = ? AND timer_uuid IN ({places}) GROUP BY shard_id, timer_uuid"
    )
    finished = (
        f"SELECT {history_aggregates()} FROM (SELECT {HISTORY_COLUMNS} FROM ({newest}) CROSS JOIN history "
        "INDEXED BY history_by_uuid ON shard_id = shard AND timer_uuid = uuid AND timer_generation = generation)"
    )
    return f"SELECT * FROM ({live}), ({finished})"


def fetch(connection: apsw.Connection, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
    """The live row and the newest history row of each uuid, with one snapshot for every few hundred uuids."""
    rows: list[StoredRow | HistoryRow] = []
    for some in cut(uuids, CHUNK_ROWS_MAX):
        chunk = list(some)
        size = size_for(len(chunk))
        chunk += chunk[-1:] * (size - len(chunk))
        values = _aggregates(connection, fetch_sql(size), [shard_id, *chunk, shard_id, *chunk])
        rows += stored_rows(values[:ROW_WIDTH])
        rows += history_rows(values[ROW_WIDTH:])
    return found_of(rows, uuids)
