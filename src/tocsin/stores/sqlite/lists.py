"""Lists in SQLite: many sorted ranges (live, suspended and finished rows of each shard) merged into one, with bounded work.

Each range is read in chunks: first the position where the chunk ends, by counting along the clustered key, then the chunk's
matching rows. So no call reads more than its budget, however few rows match.
"""

from __future__ import annotations

import heapq
from collections import deque
from functools import cache
from typing import Any

import apsw

from tocsin.model.timer import Status
from tocsin.ports.store import HistoryRow, ListCursor, Listed, ListQuery, StoredRow
from tocsin.sql.tags import tags_text
from tocsin.stores.sqlite.reads import read_page, size_sql
from tocsin.stores.sqlite.rows import (
    HISTORY,
    HISTORY_COLUMNS,
    LIVE,
    ROW_COLUMNS,
    SUSPENDED,
    history_aggregates,
    history_rows,
    row_aggregates,
    stored_rows,
)

_INSTANT_MIN, _INSTANT_MAX = -(2**63), 2**63 - 1
#: Rows that one chunk of a range may span.
_CHUNK_ROWS_MAX = 8_192
#: Rows that the first chunk of a range spans when a search continues: its matches have turned out to be rare.
_RESUMED_ROWS = 4_096

_TIMERS_FROM = (
    "FROM timers WHERE shard_id = :shard AND row_type = :type "
    "AND (timer_execute_at, timer_uuid) >= (:at, :uuid) "
    "AND (timer_execute_at, timer_uuid, timer_generation) > (:at, :uuid, :generation) "
)
_HISTORY_FROM = (
    "FROM history WHERE shard_id = :shard "
    "AND (timer_execute_at, timer_uuid, timer_generation) > (:at, :uuid, :generation) "
)
_ORDER = "ORDER BY timer_execute_at, timer_uuid, timer_generation "
_TIMERS_ORDER = "ORDER BY timer_execute_at, timer_uuid "


@cache
def end_sql(*, history: bool) -> str:
    """The position of the :span-th row after a position, if there are so many up to the instant :last."""
    rows, order = (_HISTORY_FROM, _ORDER) if history else (_TIMERS_FROM, _TIMERS_ORDER)
    return (
        f"SELECT timer_execute_at, timer_uuid, timer_generation {rows}AND timer_execute_at <= :last "
        f"{order}LIMIT 1 OFFSET :span - 1"
    )


@cache
def matches_sql(*, history: bool, ended: bool, prefix: bool, tags: int, statuses: int) -> str:
    """The matching rows between two positions; without `ended`, up to the instant :last."""
    rows, order = (_HISTORY_FROM, _ORDER) if history else (_TIMERS_FROM, _TIMERS_ORDER)
    if not ended:
        rows += "AND timer_execute_at <= :last "
    elif history:
        rows += "AND (timer_execute_at, timer_uuid, timer_generation) <= (:end_at, :end_uuid, :end_generation) "
    else:
        rows += "AND (timer_execute_at, timer_uuid) <= (:end_at, :end_uuid) "
    rows += "AND timer_namespace = :namespace "
    if prefix:
        rows += "AND substr(timer_id, 1, length(:prefix)) = :prefix "
    rows += "".join(f"AND instr(timer_tags, :tag{i}) > 0 " for i in range(tags))
    if history and statuses:
        rows += f"AND timer_status IN ({','.join(f':status{i}' for i in range(statuses))}) "
    rows += f"{order}LIMIT :limit"
    aggregates = history_aggregates if history else row_aggregates
    return f"SELECT {aggregates(size_sql(rows))} FROM (SELECT {HISTORY_COLUMNS if history else ROW_COLUMNS} {rows})"


class _Source:
    """One sorted range, read in chunks. Everything up to `position` is in `rows`, was taken from it, or did not match."""

    def __init__(self, connection: apsw.Connection, query: ListQuery, shard_id: int, kind: int) -> None:
        self.rows: deque[StoredRow | HistoryRow] = deque()
        self.exhausted = False
        start = (_INSTANT_MIN if query.execute_after is None else query.execute_after, b"", b"")
        self.position: ListCursor = max(start, query.cursor or start)
        self._connection = connection
        self._history = kind == HISTORY
        self._limit = query.limit
        finished = sorted(query.statuses - {Status.PENDING})
        self._shape = {
            "history": self._history,
            "prefix": bool(query.id_prefix),
            "tags": len(query.tags),
            "statuses": len(finished) if len(finished) < len(Status) - 1 else 0,
        }
        self._parameters: dict[str, Any] = {
            "shard": shard_id,
            "type": kind,
            "namespace": query.namespace,
            "prefix": query.id_prefix,
            "last": _INSTANT_MAX if query.execute_before is None else query.execute_before - 1,
            **{f"tag{i}": tags_text((tag,)) for i, tag in enumerate(query.tags)},
            **{f"status{i}": status.value for i, status in enumerate(finished)},
        }

    @property
    def pending(self) -> bool:
        """Whether the range may have further rows."""
        return bool(self.rows) or not self.exhausted

    def place(self) -> tuple[ListCursor, bool]:
        """The position at which this range continues, and whether it has to be read first. At equal positions, rows that are
        ready sort first."""
        if self.rows:
            row = self.rows[0]
            return (row.execute_at, row.uuid, row.generation), False
        return self.position, True

    def read(self, span: int, bytes_max: int) -> int:
        """Reads the next `span` rows at most; returns how many it passed."""
        at, uuid, generation = self.position
        parameters = {**self._parameters, "at": at, "uuid": uuid, "generation": generation}
        end = self._connection.execute(end_sql(history=self._history), {**parameters, "span": span}).fetchone()
        if end is not None:
            parameters |= {"end_at": end[0], "end_uuid": end[1], "end_generation": end[2]}
        sql = matches_sql(ended=end is not None, **self._shape)
        limit = min(self._limit, span) + 1
        rows: list[StoredRow] | list[HistoryRow]
        if self._history:
            rows, limit = read_page(self._connection, sql, parameters, limit, bytes_max, history_rows)
        else:
            rows, limit = read_page(self._connection, sql, parameters, limit, bytes_max, stored_rows)
        self.rows.extend(rows)
        if len(rows) >= limit:
            last = rows[-1]
            self.position = (last.execute_at, last.uuid, last.generation)
        elif end is not None:
            self.position = end
        else:
            self.exhausted = True
        return span if end is not None else len(rows)


def list_rows(connection: apsw.Connection, query: ListQuery, bytes_max: int) -> Listed:
    """A page of one namespace's timers, live and finished. The first chunk of every range is read whatever `scan_rows_max`
    says, so that each call advances.

    The caller's read transaction covers the whole call, so that a row that moves meanwhile is neither returned twice nor
    missed.
    """
    sources = _sources(connection, query)
    if not sources:
        return Listed([], None)
    resumed = query.cursor is not None and (query.tags or query.id_prefix)
    rows_first = _RESUMED_ROWS * len(sources) if resumed else 2 * query.limit
    span = max(1, min(rows_first, query.scan_rows_max) // len(sources))
    bytes_each = max(1, bytes_max // len(sources))
    scanned = sum(source.read(span, bytes_each) for source in sources)
    spans = [span] * len(sources)
    rows: list[StoredRow | HistoryRow] = []
    size = 0
    heap = [(*source.place(), i) for i, source in enumerate(sources) if source.pending]
    heapq.heapify(heap)
    while heap:
        place, must_read, i = heap[0]
        source = sources[i]
        if must_read:
            if scanned >= query.scan_rows_max:
                return Listed(rows, place)
            spans[i] = min(2 * spans[i], _CHUNK_ROWS_MAX, query.scan_rows_max - scanned)
            scanned += source.read(spans[i], bytes_each)
        elif rows and (len(rows) >= query.limit or size + len(source.rows[0].record) > bytes_max):
            last = rows[-1]
            return Listed(rows, (last.execute_at, last.uuid, last.generation))
        else:
            rows.append(source.rows.popleft())
            size += len(rows[-1].record)
        if source.pending:
            heapq.heapreplace(heap, (*source.place(), i))
        else:
            heapq.heappop(heap)
    return Listed(rows, None)


def _sources(connection: apsw.Connection, query: ListQuery) -> list[_Source]:
    kinds = [LIVE, SUSPENDED] if Status.PENDING in query.statuses else []
    if query.statuses - {Status.PENDING}:
        kinds.append(HISTORY)
    return [_Source(connection, query, shard_id, kind) for shard_id in sorted(set(query.shards)) for kind in kinds]
