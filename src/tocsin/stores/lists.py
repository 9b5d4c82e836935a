"""Lists: many sorted ranges (live, suspended and finished rows of each shard) merged into one, with bounded work.

A call reads in steps. A step reads at most `span` rows of each range; the first, in the order of the list, of the positions
at which a range's rows end is the one up to which the result is complete. So no call reads more than its budget, however few
rows match.

Where a statement reads several ranges from one common position, the store goes on by a `Walk`. Where each range is a request
of its own, `merge` keeps what was read of a range behind that position.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from tocsin.model.timer import Status
from tocsin.ports.store import (
    GENERATION_END,
    HistoryRow,
    ListCursor,
    Listed,
    ListQuery,
    RunRow,
    StoredRow,
    within,
)
from tocsin.sql.keys import INSTANT_MAX, INSTANT_MIN, UUID_MAX
from tocsin.sql.rows import HISTORY, LIVE, SUSPENDED
from tocsin.stores import orders

A = TypeVar("A")
K = TypeVar("K")
T = TypeVar("T")

#: Rows of one range that one step of a walk may read.
_SPAN_ROWS_MAX = 8_192
#: Rows that a first request of a merge may pass at least, and any at most.
_REQUEST_ROWS_FIRST, _REQUEST_ROWS_MAX = 8, 2_000

#: Rows that are read at once where their sizes can't be known before: a page has few more bytes than it may.
READ_ROWS_MAX = 32

#: Rows of a list that are read at once, as many as one request of DynamoDB returns.
_CHOSEN_ROWS_MAX = 100


def place_of(row: StoredRow | HistoryRow) -> ListCursor:
    """The row's position in a list."""
    return (row.execute_at, row.uuid, row.generation)


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a list."""

    descending: bool

    def first(self, places: Iterable[ListCursor]) -> ListCursor | None:
        """The first of the positions; None if there are none."""
        return max(places, default=None) if self.descending else min(places, default=None)

    def within(self, place: ListCursor, end: ListCursor | None) -> bool:
        """Whether a position is not behind `end`; None: the end of the list."""
        return end is None or (place >= end if self.descending else place <= end)

    def sorted(self, items: Iterable[T], key: Callable[[T], ListCursor]) -> list[T]:
        """The items in the order of their positions."""
        return sorted(items, key=key, reverse=self.descending)


def newest_runs(rows: Iterable[HistoryRow | RunRow], limit: int, bytes_max: int) -> list[HistoryRow | RunRow]:
    """A page of runs, of the newest `limit` rows of each kind."""
    newest = sorted(rows, key=lambda row: row.generation, reverse=True)[:limit]
    return [*within(bytes_max, newest)]


def start_of(query: ListQuery) -> ListCursor:
    """The position behind which the page begins."""
    if query.descending:
        last = INSTANT_MAX if query.execute_before is None else query.execute_before - 1
        end: ListCursor = (last, UUID_MAX, GENERATION_END)
        return min(end, query.cursor or end)
    first: ListCursor = (INSTANT_MIN if query.execute_after is None else query.execute_after, b"", b"")
    return max(first, query.cursor or first)


def last_of(query: ListQuery) -> int:
    """The last instant of the query, in its order."""
    if query.descending:
        return INSTANT_MIN if query.execute_after is None else query.execute_after
    return INSTANT_MAX if query.execute_before is None else query.execute_before - 1


def is_empty(query: ListQuery) -> bool:
    """Whether no instant is left to read."""
    at, last = start_of(query)[0], last_of(query)
    return at < last if query.descending else at > last


class Walk:
    """The progress of one call: everything up to the position `place` is in `rows` or did not match.

    An adapter calls `advance` with the result of a step while `goes_on`. The first row of every range is read whatever
    `scan_rows_max` allows, so that each call advances. A page has `bytes_max` bytes of records, or one record more."""

    def __init__(self, query: ListQuery, bytes_max: int, *, first_span_rows: int | None = None) -> None:
        self.query = query
        self.order = Order(query.descending)
        self.place = start_of(query)
        #: The last instant of the query, in its order.
        self.last = last_of(query)
        self.shards = sorted(set(query.shards))
        #: The row types of live rows, and the statuses of finished ones, that the query asks for.
        self.kinds = [LIVE, SUSPENDED] if Status.PENDING in query.statuses else []
        self.finished = sorted(status.value for status in query.statuses if status is not Status.PENDING)
        kinds = self.kinds + [HISTORY] * bool(self.finished)
        #: (shard, kind) of each range.
        self.ranges = [(shard_id, kind) for shard_id in self.shards for kind in kinds]
        self.rows: list[StoredRow | HistoryRow] = []
        self.bytes_left = bytes_max
        count = max(1, len(self.ranges))
        #: How many rows of each range the next step reads at most.
        self.span = max(1, min(first_span_rows or 2 * query.limit // count, query.scan_rows_max // count))
        self._scanned = 0
        self._ended = not self.ranges or is_empty(query)
        self._full = False

    @property
    def goes_on(self) -> bool:
        """Whether another step is due."""
        return not (self._ended or self._full or self._scanned >= max(1, self.query.scan_rows_max))

    @property
    def rows_left(self) -> int:
        """How many more rows the page may have."""
        return self.query.limit - len(self.rows)

    def with_room(self, sizes: Sequence[int]) -> int:
        """How many of the next rows, whose records have these sizes in bytes, the page has room for."""
        taken, bytes_left = 0, self.bytes_left
        for size in sizes[: self.rows_left]:
            # The first row has room whatever its size.
            if bytes_left <= 0 and (self.rows or taken):
                break
            taken, bytes_left = taken + 1, bytes_left - size
        return taken

    def advance(
        self, matched: Sequence[StoredRow | HistoryRow], ends: Sequence[ListCursor], *, cut_short: bool = False
    ) -> None:
        """Takes the matching rows, in order, up to the first of `ends`: the positions of the `span`-th rows of those ranges
        that have as many. With `cut_short`, matching rows are missing behind those given. Takes no more than have room."""
        sizes = [len(row.record) for row in matched]
        taken = self.with_room(sizes)
        self.rows += matched[:taken]
        self.bytes_left -= sum(sizes[:taken])
        self._scanned += self.span * len(ends)
        if cut_short or taken < len(matched):
            self._full = True
            if taken:
                self.place = place_of(matched[taken - 1])
        elif (end := self.order.first(ends)) is not None:
            self.place = end
            self._full = self.rows_left == 0 or self.bytes_left <= 0
            left = self.query.scan_rows_max - self._scanned
            self.span = max(1, min(2 * self.span, _SPAN_ROWS_MAX, left // len(self.ranges)))
        else:
            self._ended = True

    def listed(self) -> Listed:
        """The page."""
        return Listed(self.rows, None if self._ended else self.place)


class Match(NamedTuple, Generic[K]):
    """A row that matches: its position, and the key under which it is read."""

    place: ListCursor
    key: K


class Page(NamedTuple, Generic[K]):
    """What a request has found of a range: the matching rows, in order; the position up to which they are all, None for the
    range's end; and how many rows it passed."""

    matches: list[Match[K]]
    reached: ListCursor | None
    passed: int


class Read(Protocol[K]):
    """Reads the first rows, in the order of the query, of a kind in a shard with first ≤ key ≤ last, keys of
    `tocsin.stores.orders`; passes at most `limit`."""

    async def __call__(self, shard_id: int, kind: bytes, first: bytes, last: bytes, limit: int, /) -> Page[K]: ...


class Client(Protocol):
    """A database whose requests are sent several at once."""

    async def in_parallel(self, ask: Callable[[A], Awaitable[T]], arguments: Iterable[A], /) -> list[T]:
        """The results of the requests, in the order of their arguments."""


class _Range(Generic[K]):
    """Rows of one kind in one shard, in order: matching ones that are not on the page yet, and how far they were read."""

    def __init__(self, shard_id: int, kind: bytes, start: ListCursor, order: Order) -> None:
        self.matches: list[Match[K]] = []
        self.reached = start
        self.ended = False
        self._shard_id = shard_id
        self._kind = kind
        self._order = order

    async def extend(self, read: Read[K], last_us: int, limit: int) -> int:
        """Reads up to `limit` rows more; returns how many were passed."""
        range_of = orders.range_before if self._order.descending else orders.range_behind
        first, last = range_of(self._kind, self.reached, last_us)
        if first > last:
            self.ended = True
            return 0
        page = await read(self._shard_id, self._kind, first, last, limit)
        reached = self.reached
        self.matches += [match for match in page.matches if not self._order.within(match.place, reached)]
        self.ended = page.reached is None
        self.reached = page.reached or self.reached
        return page.passed


async def merge(
    client: Client,
    query: ListQuery,
    read: Read[K],
    rows_of: Callable[[Sequence[K]], Awaitable[Sequence[StoredRow | HistoryRow | None]]],
    request_rows_max: int,
) -> Listed:
    """A page of timers, live and finished, in the order of the query. Each call reads at least one row of
    each range, even beyond `scan_rows_max`, so that it advances; a request reads at most `request_rows_max`. Records are
    read until the page has `bytes_max` bytes of them.

    The page is not a snapshot: what `rows_of` no longer reads at its position has changed since it was found, and is left
    out, and a timer that moves meanwhile may be missing."""
    order, last_us = Order(query.descending), last_of(query)
    ranges: list[_Range[K]] = [] if is_empty(query) else _ranges(query)
    chosen: list[Match[K]] = []
    scanned = 0
    # Twice the range's share of a page, but at least as many as usually cost no more than one.
    share = max(_REQUEST_ROWS_FIRST, 2 * query.limit // max(len(ranges), 1))
    span = max(1, min(share, query.scan_rows_max // max(len(ranges), 1)))
    cursor: ListCursor | None = None
    while True:
        unread = [each for each in ranges if not each.ended]
        # The page is complete up to the position that all ranges have reached.
        frontier = order.first(each.reached for each in unread)
        if scanned or frontier is None:
            full = not _take(order, ranges, frontier, query.limit - len(chosen), chosen)
            cursor = chosen[-1].place if full else frontier
            if full or cursor is None or len(chosen) >= query.limit or scanned >= query.scan_rows_max:
                break
        wanted = _may_have_more(order, unread, ranges, query.limit - len(chosen))
        extend = partial(_Range.extend, read=read, last_us=last_us, limit=min(span, request_rows_max))
        scanned += max(sum(await client.in_parallel(extend, wanted)), 1)
        span = max(1, min(2 * span, _REQUEST_ROWS_MAX, (query.scan_rows_max - scanned) // len(ranges)))
    return await _read_chosen(chosen, rows_of, query.bytes_max, cursor)


async def _read_chosen(
    chosen: Sequence[Match[K]],
    rows_of: Callable[[Sequence[K]], Awaitable[Sequence[StoredRow | HistoryRow | None]]],
    bytes_max: int,
    cursor: ListCursor | None,
) -> Listed:
    """The page with the chosen rows, which ends at `cursor`, or where its records have enough bytes."""
    rows: list[StoredRow | HistoryRow] = []
    for first in range(0, len(chosen), _CHOSEN_ROWS_MAX):
        some = chosen[first : first + _CHOSEN_ROWS_MAX]
        found = await rows_of([match.key for match in some])
        for number, (match, row) in enumerate(zip(some, found, strict=True), start=first + 1):
            if row is None or place_of(row) != match.place:
                continue
            rows.append(row)
            bytes_max -= len(row.record)
            if bytes_max <= 0 and number < len(chosen):
                return Listed(rows, match.place)
    return Listed(rows, cursor)


def _ranges(query: ListQuery) -> list[_Range[K]]:
    kinds = [orders.LIVE, orders.SUSPENDED] if Status.PENDING in query.statuses else []
    if query.statuses - {Status.PENDING}:
        kinds.append(orders.FINISHED)
    return [
        _Range(shard_id, kind, start_of(query), Order(query.descending))
        for shard_id in sorted(set(query.shards))
        for kind in kinds
    ]


def _take(
    order: Order, ranges: list[_Range[K]], frontier: ListCursor | None, limit: int, chosen: list[Match[K]]
) -> bool:
    """Moves up to `limit` matches that are not behind the frontier into `chosen`. False if there were more."""
    ready = order.sorted(
        (match for each in ranges for match in each.matches if order.within(match.place, frontier)),
        key=lambda match: match.place,
    )
    chosen += ready[:limit]
    for each in ranges:
        each.matches = [match for match in each.matches if not order.within(match.place, frontier)]
    return len(ready) <= limit


def _may_have_more(order: Order, unread: list[_Range[K]], ranges: list[_Range[K]], missing: int) -> list[_Range[K]]:
    """The ranges of `unread` that may contain matches of this page."""
    known = order.sorted((match.place for each in ranges for match in each.matches), key=lambda place: place)
    if len(known) < missing:
        return unread
    return [each for each in unread if not order.within(known[missing - 1], each.reached)]
