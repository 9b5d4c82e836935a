"""Lists in MySQL. A call uses one snapshot, and a step three kinds of statements.

The first finds where the next `span` rows of each range end. The second finds the positions of the matching rows up to the
first of these, and the third reads those rows. So no call reads a record that it does not return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.ports.store import HistoryRow, ListCursor, Listed, ListQuery, StoredRow
from tocsin.sql.keys import UUID_MAX, UUID_MIN
from tocsin.sql.rows import HISTORY, cut, row_of, tags_text
from tocsin.stores.lists import Walk
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.reads import FINISHED_COLUMNS, TIMER_COLUMNS
from tocsin.stores.mysql.text import hexed, listed, place_range, text

#: Ranges in one statement.
_RANGES_MAX = 64

_PLACE = b"timer_execute_at, timer_uuid, timer_generation"


class _Match(NamedTuple):
    """A matching row: its position, its range, and the size of its record in bytes."""

    place: ListCursor
    range: tuple[int, int]
    size: int


async def list_rows(connection: Connection, query: ListQuery, bytes_max: int) -> Listed:
    """A page of timers, live and finished."""
    walk = Walk(query, bytes_max)
    if walk.goes_on:
        await connection.snapshot(lambda: _walked(connection, walk))
    return walk.listed()


async def _walked(connection: Connection, walk: Walk) -> None:
    matching = matches(walk.query)
    while walk.goes_on:
        ends = await _ends(connection, walk)
        found = await _found(connection, walk, _between(walk, walk.order.first(ends)) + matching)
        chosen = walk.with_room([match.size for match in found])
        rows = await _rows(connection, found[:chosen])
        walk.advance(rows, ends, cut_short=chosen < len(found))


def _source(shard_id: int, kind: int) -> bytes:
    """The FROM and WHERE of a range's rows; a condition on their positions follows."""
    if kind == HISTORY:
        return b"FROM history FORCE INDEX (PRIMARY) WHERE shard_id = %d AND " % shard_id
    return b"FROM timers FORCE INDEX (PRIMARY) WHERE shard_id = %d AND row_type = %d AND " % (shard_id, kind)


def _between(walk: Walk, end: ListCursor | None) -> bytes:
    """A condition for the places behind the walk's, up to `end` or the last instant."""
    descending = walk.order.descending
    at, uuid, generation = walk.place
    first = (at, uuid or UUID_MIN)
    last = (walk.last, UUID_MIN if descending else UUID_MAX) if end is None else end[:2]
    behind = b"(timer_execute_at <> %d OR timer_uuid <> %b OR timer_generation %b %b)"
    between = place_range(last, first) if descending else place_range(first, last)
    parts = [between, behind % (at, hexed(first[1]), b"<" if descending else b">", hexed(generation))]
    if end is not None:
        parts.append(behind % (end[0], hexed(end[1]), b">=" if descending else b"<=", hexed(end[2])))
    return b" AND ".join(parts)


def _order(walk: Walk, kind: int) -> bytes:
    """The ORDER BY of a range's rows."""
    columns = [b"timer_execute_at", b"timer_uuid", *[b"timer_generation"] * (kind == HISTORY)]
    return b", ".join(column + b" DESC" * walk.order.descending for column in columns)


async def _ends(connection: Connection, walk: Walk) -> list[ListCursor]:
    """The positions at which the next `span` rows end of each range that has that many."""
    between = _between(walk, None)
    ends: list[ListCursor] = []
    for some in cut(walk.ranges, _RANGES_MAX):
        statement = b" UNION ALL ".join(
            b"(SELECT %b %b%b ORDER BY %b LIMIT 1 OFFSET %d)"
            % (_PLACE, _source(*each), between, _order(walk, each[1]), walk.span - 1)
            for each in some
        )
        ends += [(at, uuid, generation) for at, uuid, generation in await connection.rows(statement)]
    return ends


async def _found(connection: Connection, walk: Walk, condition: bytes) -> list[_Match]:
    """The first rows that meet the condition, in order; at most one more than is needed."""
    finished = b" AND timer_status IN " + listed(text(status) for status in walk.finished)
    wanted = walk.rows_left + 1
    found: list[_Match] = []
    for some in cut(walk.ranges, _RANGES_MAX):
        statement = b" UNION ALL ".join(
            b"(SELECT %d, %b, LENGTH(timer_record) %b%b%b ORDER BY %b LIMIT %d)"
            % (
                number, _PLACE, _source(*each), condition, finished if each[1] == HISTORY else b"",
                _order(walk, each[1]), wanted,
            )
            for number, each in enumerate(some)
        )  # fmt: skip
        for number, at, uuid, generation, size in await connection.rows(statement):
            found.append(_Match((at, uuid, generation), some[number], size))
    return walk.order.sorted(found, key=lambda match: match.place)[:wanted]


def matches(query: ListQuery) -> bytes:
    """The condition on namespaces, id and tags. It compares bytes, because texts that differ only in trailing spaces are
    equal."""
    if query.namespaces is None:
        parts = [b" AND LOCATE('/', timer_namespace) = 0"]
    else:
        # No list is empty in SQL; the empty name is no namespace's.
        names = listed(hexed(name.encode()) for name in query.namespaces or ("",))
        parts = [b" AND CAST(timer_namespace AS BINARY) IN " + names]
    if prefix := query.id_prefix.encode():
        parts.append(b" AND LEFT(CAST(timer_id AS BINARY), %d) = %b" % (len(prefix), hexed(prefix)))
    parts += [b" AND LOCATE(%b, timer_tags) > 0" % text(tags_text((tag,))) for tag in query.tags]
    return b"".join(parts)


async def _rows(connection: Connection, chosen: Sequence[_Match]) -> list[StoredRow | HistoryRow]:
    """The rows at these positions, in order."""
    rows: list[StoredRow | HistoryRow] = []
    for some in cut(chosen, _RANGES_MAX):
        statement = b" UNION ALL ".join(map(_row, some))
        rows += [row_of(values) for values in await connection.rows(statement)]
    return rows


def _row(match: _Match) -> bytes:
    at, uuid, generation = match.place
    columns = FINISHED_COLUMNS if match.range[1] == HISTORY else TIMER_COLUMNS
    condition = b"timer_execute_at = %d AND timer_uuid = %b AND timer_generation = %b"
    return b"(SELECT %b %b" % (columns, _source(*match.range)) + condition % (at, hexed(uuid), hexed(generation)) + b")"
