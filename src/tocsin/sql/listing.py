"""Lists: many sorted ranges (live, suspended and finished rows of each shard) merged into one, with bounded work.

A call reads in steps. A step reads at most `span` rows of each range from one common position; the least of the positions at
which a range's rows end is the one up to which the result is complete, and there the next step continues. So no call reads
more than its budget, however few rows match.
"""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.model.timer import Status
from tocsin.ports.store import GENERATION_BYTES, HistoryRow, ListCursor, Listed, ListQuery, StoredRow
from tocsin.sql.keys import INSTANT_MAX, INSTANT_MIN, UUID_MAX
from tocsin.sql.rows import HISTORY, LIVE, SUSPENDED

#: Rows of one range that one step may read.
_SPAN_ROWS_MAX = 8_192

#: A position behind every row's.
PLACE_MAX: ListCursor = (INSTANT_MAX, UUID_MAX, b"\xff" * (GENERATION_BYTES + 1))


def place_of(row: StoredRow | HistoryRow) -> ListCursor:
    """The row's position in a list."""
    return (row.execute_at, row.uuid, row.generation)


class Walk:
    """The progress of one call: everything up to the position `place` is in `rows` or did not match.

    An adapter calls `advance` with the result of a step while `goes_on`. The first row of every range is read whatever
    `scan_rows_max` allows, so that each call advances. A page has `bytes_max` bytes of records, or one record more."""

    def __init__(self, query: ListQuery, bytes_max: int, *, first_span_rows: int | None = None) -> None:
        start = (INSTANT_MIN if query.execute_after is None else query.execute_after, b"", b"")
        self.query = query
        self.place: ListCursor = max(start, query.cursor or start)
        #: The last instant of the query.
        self.last = INSTANT_MAX if query.execute_before is None else query.execute_before - 1
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
        self._ended = not self.ranges or self.place[0] > self.last
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
        """Takes the matching rows, in order, up to the least of `ends`: the positions of the `span`-th rows of those ranges
        that have that many. With `cut_short`, matching rows are missing behind those given. Takes no more than have room."""
        sizes = [len(row.record) for row in matched]
        taken = self.with_room(sizes)
        self.rows += matched[:taken]
        self.bytes_left -= sum(sizes[:taken])
        self._scanned += self.span * len(ends)
        if cut_short or taken < len(matched):
            self._full = True
            if taken:
                self.place = place_of(matched[taken - 1])
        elif ends:
            self.place = min(ends)
            self._full = self.rows_left == 0 or self.bytes_left <= 0
            left = self.query.scan_rows_max - self._scanned
            self.span = max(1, min(2 * self.span, _SPAN_ROWS_MAX, left // len(self.ranges)))
        else:
            self._ended = True

    def listed(self) -> Listed:
        """The page."""
        return Listed(self.rows, None if self._ended else self.place)
