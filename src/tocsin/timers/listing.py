"""Timers as clients see them, and the pages in which they are listed."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import msgspec

from tocsin.model.condition import Outcome
from tocsin.model.errors import FieldError, InvalidInput, RecordUndecodable
from tocsin.model.explanation import Explanation
from tocsin.model.opaque import from_opaque, to_opaque
from tocsin.model.timer import Status, Timer, decode_record, unreadable_timer
from tocsin.ports.store import (
    PAGE_BYTES_MAX,
    SCAN_ROWS_MAX,
    SCHEDULES_SUFFIX,
    TIMERS_END_US,
    HistoryRow,
    ListCursor,
    Listed,
    ListQuery,
    StoredRow,
    within,
)
from tocsin.timers.engine.rows import TURN_REASON

#: Bounded reads of the store in one list call, before it returns a short page and a cursor.
LIST_READS_MAX = 20
#: Bytes of records on a page of a list, or one record more. With large payloads a page is shorter than its limit: reading and
#: encoding more would take memory, and encoding is one step, which delays everything else by some milliseconds a megabyte.
LIST_BYTES_MAX = PAGE_BYTES_MAX
#: Pages that a process reads at once; further requests wait. While it is read, each takes some multiples of LIST_BYTES_MAX.
PAGES_READ_MAX = 4
#: The namespaces of a list: one, which must exist; several, of which unknown ones are passed over; None: all of them.
Scope = str | tuple[str, ...] | None
#: Rows of one read in the order of ids.
_READ_BY_ID_ROWS_MAX = 100
#: Rows, and bytes of their records, decoded before other requests get their turn.
_ROWS_PER_TURN, _BYTES_PER_TURN = 100, 1024 * 1024


class TimerView(msgspec.Struct, frozen=True, gc=False):
    """A timer as a client sees it. `next_attempt_at` is the key's instant while the timer is pending, else None. `suspended`
    is why a pending timer is suspended, such as `namespace:…` or `destination:…`; it is known only where the store was read.
    `outcome` is that of a create. `forwarded`: the write that this answers was forwarded to another node. `explanation` is
    what a due timer does now, where that was asked."""

    timer: Timer
    uuid: bytes
    shard_id: int
    next_attempt_at: int | None
    suspended: str | None = None
    outcome: Outcome = Outcome.CREATED
    forwarded: bool = False
    explanation: Explanation | None = None

    def is_due(self, now_us: int) -> bool:
        """Whether the timer is pending and its instant, or that of its next attempt, has come."""
        return self.next_attempt_at is not None and self.next_attempt_at <= now_us


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What to list: timers of all namespaces of the scope, earliest first, or latest first if `descending`. `execute_after`
    is inclusive, `execute_before` exclusive, in microseconds. `destination` is a part of the URL without its scheme,
    `error` one of the last error; neither is in an index, and case does not matter. `cursor` is that of the page before.
    Empty `statuses` mean all. `reads_max` bounds the reads of the store that return fewer rows than asked for, because few
    of the scanned rows match; after them the page is short. `bytes_max` bounds the records of the page, but for one record
    more."""

    scope: Scope
    statuses: frozenset[Status] = frozenset()
    tags: tuple[str, ...] = ()
    id_prefix: str = ""
    execute_after: int | None = None
    execute_before: int | None = None
    destination: str = ""
    error: str = ""
    limit: int = 100
    cursor: str | None = None
    reads_max: int = LIST_READS_MAX
    bytes_max: int = LIST_BYTES_MAX
    scan_rows_max: int = SCAN_ROWS_MAX
    descending: bool = False


@dataclass(frozen=True, slots=True)
class IdListRequest:
    """What to list in the order of ids: those behind `after` with the prefix, and of them those that match. `after` is the
    cursor of the page before: an id, or in a list of several namespaces, which has no prefix, `namespace/id`. The first page
    with a prefix begins behind the prefix, because the list ends at the first id without it. `reads_max` has the same meaning
    as in `ListRequest`."""

    after: str = ""
    limit: int = 100
    id_prefix: str = ""
    matches: Callable[[Timer], bool] | None = None
    reads_max: int = LIST_READS_MAX
    of_several: bool = False

    def position(self, namespace: str, timer_id: str) -> str:
        """The cursor behind this row or timer."""
        return f"{namespace.removesuffix(SCHEDULES_SUFFIX)}/{timer_id}" if self.of_several else timer_id


def query_of(request: ListRequest, namespaces: tuple[str, ...] | None, shards: Sequence[int]) -> ListQuery:
    """The query of the store that finds what is to be listed, but for destination and error. `namespaces` (None: all) and
    `shards` are those of its scope. Raises InvalidInput for a bad cursor."""
    return ListQuery(
        namespaces=namespaces,
        shards=shards,
        statuses=request.statuses or frozenset(Status),
        tags=request.tags,
        id_prefix=request.id_prefix,
        execute_after=request.execute_after,
        # Behind that are events for sinks, thousands perhaps.
        execute_before=TIMERS_END_US if request.execute_before is None else request.execute_before,
        cursor=read_cursor(request.cursor),
        limit=request.limit,
        bytes_max=request.bytes_max,
        scan_rows_max=request.scan_rows_max,
        descending=request.descending,
    )


async def list_page(
    request: ListRequest,
    namespaces: tuple[str, ...] | None,
    shards: Sequence[int],
    read: Callable[[ListQuery], Awaitable[Listed]],
    shard_id_of: Callable[[StoredRow | HistoryRow], int | None],
) -> tuple[list[TimerView], str | None]:
    """The requested page, and the cursor of the next one if one may follow. `namespaces` (None: all) and `shards` are those
    of its scope. `read` queries the store, and its errors are raised. `shard_id_of` returns a row's shard; None leaves the
    row out. Raises InvalidInput for a bad cursor."""
    query = query_of(request, namespaces, shards)
    matches = _text_filter(request)
    views: list[TimerView] = []
    reads = 0
    while True:
        page = await read(query)
        found = await views_of_stored(_placed(page.rows, shard_id_of))
        views += found if matches is None else [view for view in found if matches(view.timer)]
        reads += 1
        room = query.bytes_max - _bytes_of(page.rows)
        if page.cursor is None or len(views) >= request.limit or room <= 0 or reads >= request.reads_max:
            return views, write_cursor(page.cursor)
        query = replace(query, cursor=page.cursor, limit=request.limit - len(views), bytes_max=room)


def _text_filter(request: ListRequest) -> Callable[[Timer], bool] | None:
    """Whether a timer's destination and error contain the texts of the request; None if it has none."""
    destination, error = request.destination.lower(), request.error.lower()
    if not destination and not error:
        return None
    return lambda timer: (
        destination in timer.url.partition("://")[2].lower() and error in (timer.last_error or "").lower()
    )


async def page_by_id(
    request: IdListRequest,
    read: Callable[[str, int], Awaitable[Sequence[StoredRow]]],
    shard_id_of: Callable[[StoredRow | HistoryRow], int | None],
) -> tuple[list[TimerView], str | None]:
    """The requested page, and the cursor behind which the next one begins if one may follow. `read` returns the first N
    rows behind a cursor; `shard_id_of` a row's shard, None to leave the row out."""
    views: list[TimerView] = []
    after, size, short_reads = request.after, 0, 0
    while True:
        # One more than the page has shows whether another follows. Few of the rows that a filter reads may match.
        asked = _READ_BY_ID_ROWS_MAX
        if request.matches is None:
            asked = min(request.limit + 1 - len(views), asked)
        rows = await read(after, asked)
        kept = within(LIST_BYTES_MAX - size, rows)
        among = [*takewhile(lambda row: row.timer_id.startswith(request.id_prefix), kept)]
        found = await views_of_stored(_placed(among, shard_id_of))
        matching = found if request.matches is None else [view for view in found if request.matches(view.timer)]
        views += matching
        if len(views) > request.limit:
            last = views[request.limit - 1].timer
            return views[: request.limit], request.position(last.namespace, last.id)
        if len(among) < len(kept) or len(kept) == len(rows) < asked:
            return views, None
        after = request.position(kept[-1].namespace, kept[-1].timer_id)
        size += _bytes_of(kept)
        short_reads += len(matching) < asked
        if size >= LIST_BYTES_MAX or short_reads >= request.reads_max:
            return views, after


def _placed(
    rows: Iterable[StoredRow | HistoryRow], shard_id_of: Callable[[StoredRow | HistoryRow], int | None]
) -> Iterator[tuple[StoredRow | HistoryRow, int]]:
    for row in rows:
        if (shard_id := shard_id_of(row)) is not None:
            yield row, shard_id


def _bytes_of(rows: Sequence[StoredRow | HistoryRow]) -> int:
    return sum(len(row.record) for row in rows)


def view_of(
    timer: Timer, uuid: bytes, shard_id: int, at: int, outcome: Outcome, *, forwarded: bool = False
) -> TimerView:
    """The view of a timer that was just written, or of the existing one that was found instead. `at` is its row's instant."""
    next_attempt_at = at if timer.status is Status.PENDING else None
    return TimerView(timer, uuid, shard_id, next_attempt_at, None, outcome, forwarded)


async def views_of_stored(rows: Iterable[tuple[StoredRow | HistoryRow, int]]) -> list[TimerView]:
    """The views of stored rows, each given with its shard. It lets other requests run in between."""
    views, decoded = [], 0
    for row, shard_id in rows:
        views.append(view_of_stored(row, shard_id))
        decoded += len(row.record)
        if decoded > _BYTES_PER_TURN or len(views) % _ROWS_PER_TURN == 0:
            decoded = 0
            await asyncio.sleep(0)
    return views


def view_of_stored(row: StoredRow | HistoryRow, shard_id: int) -> TimerView:
    """The view of a stored row. One that can't be decoded has its namespace, id and instant, and the reason as its last
    error."""
    try:
        timer = decode_record(row.record)
    except RecordUndecodable as error:
        reason = f"its stored record can't be read: {error}"
        timer = unreadable_timer(row.namespace, row.timer_id, row.execute_at, reason)
        timer.tags = row.tags
        if isinstance(row, HistoryRow):
            timer.status = row.status
    if isinstance(row, StoredRow):
        # For clients, one that has its key's turn waits for its next attempt like any other.
        suspended = None if (row.suspended or "").startswith(TURN_REASON) else row.suspended
        return TimerView(timer, row.uuid, shard_id, row.execute_at, suspended)
    return TimerView(timer, row.uuid, shard_id, None)


_CURSOR = struct.Struct(">q16s32s")


def cursor_instant(cursor: str) -> int:
    """How far a list has read that continues at this cursor: everything due before that instant (microseconds), or latest
    first everything after it, was listed or did not match. Raises InvalidInput for a text that no list returned."""
    place = read_cursor(cursor)
    assert place is not None
    return place[0]


def write_cursor(cursor: ListCursor | None) -> str | None:
    """The opaque text of a position in a list."""
    if cursor is None:
        return None
    return to_opaque(_CURSOR.pack(*cursor))


def read_cursor(text: str | None) -> ListCursor | None:
    """The position that `write_cursor` encoded. Raises InvalidInput for any other text."""
    if text is None:
        return None
    try:
        instant, uuid, row_generation = _CURSOR.unpack(from_opaque(text))
    except (struct.error, ValueError):
        raise InvalidInput(
            FieldError("cursor", "is not a cursor that a list call returned; leave it out to start at the beginning")
        ) from None
    return (instant, uuid, row_generation)
