"""Lists in SQLite. A call uses one snapshot, and a step two statements for each range: the first finds where its next `span`
rows end, by counting along the clustered key, the second reads the matching rows up to the first of these positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import apsw

from tocsin.model.timer import Status
from tocsin.ports.store import HistoryRow, Listed, ListQuery, StoredRow
from tocsin.sql.rows import HISTORY, HISTORY_COLUMNS, ROW_COLUMNS, tags_text
from tocsin.stores.lists import Walk, place_of
from tocsin.stores.sqlite.reads import read_page, size_sql
from tocsin.stores.sqlite.rows import history_aggregates, history_rows, row_aggregates, stored_rows

#: Rows of each range that the first step reads when a search continues: its matches have turned out to be rare.
_RESUMED_ROWS = 4_096


def _rows_sql(*, history: bool, descending: bool) -> tuple[str, str]:
    """The FROM and WHERE of a range's rows behind a position, and their ORDER BY."""
    than, down = ("<", " DESC") if descending else (">", "")
    behind = f"AND (timer_execute_at, timer_uuid, timer_generation) {than} (:at, :uuid, :generation) "
    order = f"ORDER BY timer_execute_at{down}, timer_uuid{down}"
    if history:
        return f"FROM history WHERE shard_id = :shard {behind}", f"{order}, timer_generation{down} "
    key = f"AND (timer_execute_at, timer_uuid) {than}= (:at, :uuid) "
    return f"FROM timers WHERE shard_id = :shard AND row_type = :type {key}{behind}", f"{order} "


@cache
def end_sql(*, history: bool, descending: bool) -> str:
    """The position of the :span-th row behind a position, if there are that many up to the instant :last."""
    rows, order = _rows_sql(history=history, descending=descending)
    return (
        f"SELECT timer_execute_at, timer_uuid, timer_generation {rows}"
        f"AND timer_execute_at {'>=' if descending else '<='} :last {order}LIMIT 1 OFFSET :span - 1"
    )


@cache
def matches_sql(
    *, history: bool, descending: bool, ended: bool, namespaces: int | None, prefix: bool, tags: int, statuses: int
) -> str:
    """The matching rows between two positions; without `ended`, up to the instant :last."""
    rows, order = _rows_sql(history=history, descending=descending)
    upto = ">=" if descending else "<="
    if not ended:
        rows += f"AND timer_execute_at {upto} :last "
    elif history:
        rows += f"AND (timer_execute_at, timer_uuid, timer_generation) {upto} (:end_at, :end_uuid, :end_generation) "
    else:
        rows += f"AND (timer_execute_at, timer_uuid) {upto} (:end_at, :end_uuid) "
    if namespaces is None:
        rows += "AND instr(timer_namespace, '/') = 0 "
    else:
        rows += f"AND timer_namespace IN ({','.join(f':namespace{i}' for i in range(namespaces))}) "
    if prefix:
        rows += "AND substr(timer_id, 1, length(:prefix)) = :prefix "
    rows += "".join(f"AND instr(timer_tags, :tag{i}) > 0 " for i in range(tags))
    if history and statuses:
        rows += f"AND timer_status IN ({','.join(f':status{i}' for i in range(statuses))}) "
    rows += f"{order}LIMIT :limit"
    aggregates = history_aggregates if history else row_aggregates
    return f"SELECT {aggregates(size_sql(rows))} FROM (SELECT {HISTORY_COLUMNS if history else ROW_COLUMNS} {rows})"


def list_rows(connection: apsw.Connection, query: ListQuery, bytes_max: int) -> Listed:
    """A page of timers, live and finished, from one snapshot."""
    resumed = query.cursor is not None and (query.tags or query.id_prefix)
    walk = Walk(query, bytes_max, first_span_rows=_RESUMED_ROWS if resumed else None)
    filters = {
        "last": walk.last, "prefix": query.id_prefix,
        **{f"namespace{i}": namespace for i, namespace in enumerate(query.namespaces or ())},
        **{f"tag{i}": tags_text((tag,)) for i, tag in enumerate(query.tags)},
        **{f"status{i}": status for i, status in enumerate(walk.finished)},
    }  # fmt: skip
    connection.execute("BEGIN")
    try:
        while walk.goes_on:
            _step(connection, walk, filters)
    finally:
        connection.execute("ROLLBACK")
    return walk.listed()


def _step(connection: apsw.Connection, walk: Walk, filters: Mapping[str, Any]) -> None:
    at, uuid, generation = walk.place
    place = {**filters, "at": at, "uuid": uuid, "generation": generation, "span": walk.span}
    ranges = [(kind == HISTORY, {**place, "shard": shard_id, "type": kind}) for shard_id, kind in walk.ranges]
    # The driver's types have no rows of known columns.
    bounds: list[Any] = [
        connection.execute(end_sql(history=history, descending=walk.order.descending), values).fetchone()
        for history, values in ranges
    ]
    ends = [bound for bound in bounds if bound is not None]
    end = walk.order.first(ends)
    upto = {} if end is None else {"end_at": end[0], "end_uuid": end[1], "end_generation": end[2]}
    limit = min(walk.rows_left, walk.span) + 1
    bytes_each = max(1, walk.bytes_left // len(ranges))
    pages: list[Sequence[StoredRow | HistoryRow]] = []
    for (history, values), bound in zip(ranges, bounds, strict=True):
        # A short range is read whole.
        sql = _matches_sql(walk, history=history, ended=bound is not None)
        rows: list[StoredRow] | list[HistoryRow]
        if history:
            rows, used = read_page(connection, sql, values | upto, limit, bytes_each, history_rows)
        else:
            rows, used = read_page(connection, sql, values | upto, limit, bytes_each, stored_rows)
        if walk.order.descending:
            rows.reverse()
        pages.append(rows)
        if len(rows) >= used:
            # More may match behind it.
            ends.append(place_of(rows[-1]))
    end = walk.order.first(ends)
    # The next steps save the statements of ranges that end in this one.
    walk.ranges = [
        each
        for each, bound, rows in zip(walk.ranges, bounds, pages, strict=True)
        if bound is not None or (rows and end is not None and walk.order.within(end, place_of(rows[-1])))
    ]
    found = (row for rows in pages for row in rows if walk.order.within(place_of(row), end))
    walk.advance(walk.order.sorted(found, key=place_of), ends)


def _matches_sql(walk: Walk, *, history: bool, ended: bool) -> str:
    query, finished = walk.query, len(walk.finished)
    every = len(Status) - 1
    statuses = finished if finished < every else 0
    return matches_sql(
        history=history,
        descending=query.descending,
        ended=ended,
        namespaces=None if query.namespaces is None else len(query.namespaces),
        prefix=bool(query.id_prefix),
        tags=len(query.tags),
        statuses=statuses,
    )
