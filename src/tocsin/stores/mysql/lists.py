"""Lists in MySQL: many sorted ranges (live, suspended and finished rows of each shard) merged into one, with bounded work.

A call uses one snapshot and three kinds of statements. The first finds where the next `span` rows of each range end; the
least of these positions ends the step. The second finds the positions of the matching rows up to there, and the third reads
those rows. So no call reads more than its budget, however few rows match, and no record that it does not return."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from tocsin.model.timer import Status
from tocsin.ports.store import HistoryRow, ListCursor, Listed, ListQuery, StoredRow
from tocsin.sql.keys import INSTANT_MAX, INSTANT_MIN, UUID_MAX, UUID_MIN
from tocsin.sql.rows import LIVE, SUSPENDED, row_of
from tocsin.sql.tags import tags_text
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.reads import HISTORY_COLUMNS, TIMER_COLUMNS
from tocsin.stores.mysql.text import cut, hexed, listed, place_range, text

#: Rows of one range that one statement may read.
_SPAN_ROWS_MAX = 8_192
#: Ranges in one statement.
_RANGES_MAX = 64

_HISTORY = 0
_PLACE = b"timer_execute_at, timer_uuid, timer_generation"
_KEY = {LIVE: b"timer_execute_at, timer_uuid", SUSPENDED: b"timer_execute_at, timer_uuid", _HISTORY: _PLACE}


class _Range(NamedTuple):
    """Rows of one kind in one shard, in order."""

    shard_id: int
    kind: int

    @property
    def source(self) -> bytes:
        """The FROM and WHERE of the rows; a condition on their positions follows."""
        if self.kind == _HISTORY:
            return b"FROM history FORCE INDEX (PRIMARY) WHERE shard_id = %d AND " % self.shard_id
        return b"FROM timers FORCE INDEX (PRIMARY) WHERE shard_id = %d AND row_type = %d AND " % (
            self.shard_id,
            self.kind,
        )


class _Match(NamedTuple):
    """A matching row: its position, its range, and the size of its record in bytes."""

    place: ListCursor
    range: _Range
    size: int


async def list_rows(connection: Connection, query: ListQuery, bytes_max: int) -> Listed:
    """A page of one namespace's timers, live and finished. The first row of every range is read whatever `scan_rows_max`
    says, so that each call advances."""
    walk = _Walk(query, bytes_max)
    if not walk.ranges:
        return Listed([], None)
    return await connection.snapshot(lambda: _walked(connection, query, walk))


async def _walked(connection: Connection, query: ListQuery, walk: _Walk) -> Listed:
    span = max(1, min(2 * query.limit, query.scan_rows_max) // len(walk.ranges))
    while True:
        await walk.read(connection, span)
        if walk.ended or walk.full or walk.scanned >= query.scan_rows_max:
            break
        span = max(1, min(2 * span, _SPAN_ROWS_MAX, (query.scan_rows_max - walk.scanned) // len(walk.ranges)))
    return Listed(walk.rows, None if walk.ended else walk.place)


class _Walk:
    """The progress of one call: everything up to the position `place` is in `rows` or did not match."""

    def __init__(self, query: ListQuery, bytes_max: int) -> None:
        start = (INSTANT_MIN if query.execute_after is None else query.execute_after, b"", b"")
        self.place: ListCursor = max(start, query.cursor or start)
        self.rows: list[StoredRow | HistoryRow] = []
        self.scanned = 0
        #: `ended`: nothing follows what was read. `full`: the page is full, and rows may have been left out.
        self.ended = False
        self.full = False
        self._limit = query.limit
        self._bytes_left = bytes_max
        self._last = INSTANT_MAX if query.execute_before is None else query.execute_before - 1
        kinds = [LIVE, SUSPENDED] if Status.PENDING in query.statuses else []
        finished = sorted(status.value for status in query.statuses if status is not Status.PENDING)
        if finished:
            kinds.append(_HISTORY)
        self.ranges = [_Range(shard_id, kind) for shard_id in sorted(set(query.shards)) for kind in kinds]
        self._matches = matches(query)
        self._finished = b" AND timer_status IN " + listed(text(status) for status in finished)

    async def read(self, connection: Connection, span: int) -> None:
        """Reads up to `span` rows of each range."""
        if self.place[0] > self._last:
            self.ended = True
            return
        end = await self._end(connection, span)
        found = await self._found(connection, end)
        chosen = self._chosen(found)
        self.rows += await _rows(connection, chosen)
        if chosen:
            self.place = chosen[-1].place
        if self.full:
            return
        if end is None:
            self.ended = True
        else:
            self.place = end
            self.full = len(self.rows) >= self._limit or self._bytes_left <= 0

    def _between(self, end: ListCursor | None) -> bytes:
        """A condition for the places behind `place`, up to `end` or the last instant."""
        at, uuid, generation = self.place
        first, last = (at, uuid or UUID_MIN), (self._last, UUID_MAX) if end is None else end[:2]
        behind = b"(timer_execute_at <> %d OR timer_uuid <> %b OR timer_generation > %b)"
        parts = [place_range(first, last), behind % (at, hexed(first[1]), hexed(generation))]
        if end is not None:
            upto = b"(timer_execute_at <> %d OR timer_uuid <> %b OR timer_generation <= %b)"
            parts.append(upto % (end[0], hexed(end[1]), hexed(end[2])))
        return b" AND ".join(parts)

    async def _end(self, connection: Connection, span: int) -> ListCursor | None:
        """The least position at which a range's next `span` rows end; None if no range has so many."""
        between = self._between(None)
        ends: list[ListCursor] = []
        for some in cut(self.ranges, _RANGES_MAX):
            statement = b" UNION ALL ".join(
                b"(SELECT %b %b%b ORDER BY %b LIMIT 1 OFFSET %d)"
                % (_PLACE, each.source, between, _KEY[each.kind], span - 1)
                for each in some
            )
            ends += [(at, uuid, generation) for at, uuid, generation in await connection.rows(statement)]
        self.scanned += span * len(ends)
        return min(ends, default=None)

    async def _found(self, connection: Connection, end: ListCursor | None) -> list[_Match]:
        """The first matching rows up to `end`, in order; at most one more than is needed."""
        between = self._between(end) + self._matches
        wanted = self._limit - len(self.rows) + 1
        found: list[_Match] = []
        for some in cut(self.ranges, _RANGES_MAX):
            statement = b" UNION ALL ".join(
                b"(SELECT %d, %b, LENGTH(timer_record) %b%b%b ORDER BY %b LIMIT %d)"
                % (
                    number, _PLACE, each.source, between, self._finished if each.kind == _HISTORY else b"",
                    _KEY[each.kind], wanted,
                )
                for number, each in enumerate(some)
            )  # fmt: skip
            for number, at, uuid, generation, size in await connection.rows(statement):
                found.append(_Match((at, uuid, generation), some[number], size))
        return sorted(found)[:wanted]

    def _chosen(self, found: Sequence[_Match]) -> Sequence[_Match]:
        """Those that fit into the page; sets `full` when some don't."""
        chosen: list[_Match] = []
        for match in found:
            if len(self.rows) + len(chosen) == self._limit or (self._bytes_left <= 0 and (self.rows or chosen)):
                self.full = True
                break
            chosen.append(match)
            self._bytes_left -= match.size
        return chosen


def matches(query: ListQuery) -> bytes:
    """The condition on namespace, id and tags. It compares bytes, because texts that differ only in trailing spaces are
    equal."""
    parts = [b" AND CAST(timer_namespace AS BINARY) = %b" % hexed(query.namespace.encode())]
    if prefix := query.id_prefix.encode():
        parts.append(b" AND LEFT(CAST(timer_id AS BINARY), %d) = %b" % (len(prefix), hexed(prefix)))
    parts += [b" AND LOCATE(%b, timer_tags) > 0" % text(tags_text((tag,))) for tag in query.tags]
    return b"".join(parts)


async def _rows(connection: Connection, chosen: Sequence[_Match]) -> list[StoredRow | HistoryRow]:
    """The rows at these positions, in order."""
    rows: list[StoredRow | HistoryRow] = []
    for some in cut(chosen, _RANGES_MAX):
        statement = b" UNION ALL ".join(chain(_row(match) for match in some))
        rows += [row_of(values) for values in await connection.rows(statement)]
    return rows


def _row(match: _Match) -> bytes:
    at, uuid, generation = match.place
    columns = HISTORY_COLUMNS if match.range.kind == _HISTORY else TIMER_COLUMNS
    condition = b"timer_execute_at = %d AND timer_uuid = %b AND timer_generation = %b"
    return b"(SELECT %b %b" % (columns, match.range.source) + condition % (at, hexed(uuid), hexed(generation)) + b")"
