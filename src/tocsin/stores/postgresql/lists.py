"""Lists in PostgreSQL: many sorted ranges (live, suspended and finished rows of each shard) merged into one, with bounded
work.

Each statement reads at most `span` rows of each range from one common position. It returns the rows that match and, for each
range that continues, the last row it passed. The least of these is the position up to which the result is complete; the next
statement continues there. So no call reads more than its budget, however few rows match.
"""

from __future__ import annotations

from tocsin.model.timer import Status
from tocsin.ports.store import HistoryRow, ListCursor, Listed, ListQuery, StoredRow
from tocsin.sql.keys import INSTANT_MAX, INSTANT_MIN, UUID_MIN
from tocsin.sql.rows import LIVE, SUSPENDED, row_of
from tocsin.sql.tags import tags_text
from tocsin.stores.postgresql.driver import Connection
from tocsin.stores.postgresql.reads import HISTORY_COLUMNS, TIMER_COLUMNS

#: Rows of one range that one statement may read.
_SPAN_ROWS_MAX = 8_192

_MATCHES = (
    "timer_namespace = $9 AND starts_with(timer_id, $10) AND NOT EXISTS "
    "(SELECT FROM unnest($11::text[]) AS wanted (tag) WHERE strpos(coalesce(timer_tags, ''), wanted.tag) = 0)"
)
_PLACE = "timer_execute_at, timer_uuid, timer_generation"

#: Parameters: shards of live rows, their row types, shards of history, the position after which to begin (three values), the
#: last instant, the span, namespace, prefix, tags, statuses, bytes of records at most.
LIST = (
    "WITH passed AS ("
    "SELECT timer.* FROM unnest($1::integer[]) AS s (shard), unnest($2::smallint[]) AS k (kind) CROSS JOIN LATERAL ("
    f"SELECT row_number() OVER (ORDER BY timer_execute_at, timer_uuid) AS number, {_MATCHES} AS matched, "
    f"{TIMER_COLUMNS.format(record='timer_record')} FROM timers WHERE shard_id = s.shard AND row_type = k.kind "
    f"AND (timer_execute_at, timer_uuid) >= ($4, $5) AND ({_PLACE}) > ($4, $5, $6) AND timer_execute_at <= $7 "
    "ORDER BY timer_execute_at, timer_uuid LIMIT $8) AS timer UNION ALL "
    "SELECT finished.* FROM unnest($3::integer[]) AS s (shard) CROSS JOIN LATERAL ("
    f"SELECT row_number() OVER (ORDER BY {_PLACE}) AS number, {_MATCHES} AND timer_status = ANY ($12::text[]) AS matched, "
    f"{HISTORY_COLUMNS.format(record='timer_record')} FROM history WHERE shard_id = s.shard "
    f"AND (timer_execute_at, timer_uuid) >= ($4, $5) AND ({_PLACE}) > ($4, $5, $6) AND timer_execute_at <= $7 "
    f"ORDER BY {_PLACE} LIMIT $8) AS finished"
    "), counted AS ("
    "SELECT *, coalesce(sum(octet_length(timer_record)) FILTER (WHERE matched) OVER ("
    f"ORDER BY {_PLACE} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before "
    "FROM passed WHERE matched OR number = $8"
    ") SELECT matched, number = $8 AS ended, timer_execute_at, timer_uuid, timer_generation, timer_namespace, timer_id, "
    "timer_tags, CASE WHEN matched AND bytes_before < $13 THEN timer_record END, timer_parked_reason, timer_status, "
    f"timer_finished_at, timer_expires_at FROM counted ORDER BY {_PLACE}"
)


async def list_rows(connection: Connection, query: ListQuery, bytes_max: int) -> Listed:
    """A page of one namespace's timers, live and finished. The first row of every range is read whatever `scan_rows_max`
    says, so that each call advances."""
    walk = _Walk(query, bytes_max)
    if not walk.ranges:
        return Listed([], None)
    span = max(1, min(2 * query.limit, query.scan_rows_max) // walk.ranges)
    while True:
        await walk.read(connection, span)
        if walk.ended or walk.full or walk.scanned >= query.scan_rows_max:
            return Listed(walk.rows, None if walk.ended else walk.place)
        span = max(1, min(2 * span, _SPAN_ROWS_MAX, (query.scan_rows_max - walk.scanned) // walk.ranges))


class _Walk:
    """The progress of one call: everything up to the position `place` is in `rows` or did not match."""

    def __init__(self, query: ListQuery, bytes_max: int) -> None:
        start = (INSTANT_MIN if query.execute_after is None else query.execute_after, b"", b"")
        self.place: ListCursor = max(start, query.cursor or start)
        self.rows: list[StoredRow | HistoryRow] = []
        self.scanned = 0
        self.ended = False
        self.full = False
        self._limit = query.limit
        self._bytes_left = bytes_max
        shards = sorted(set(query.shards))
        kinds = [LIVE, SUSPENDED] if Status.PENDING in query.statuses else []
        finished = sorted(status.value for status in query.statuses if status is not Status.PENDING)
        self.ranges = len(shards) * (len(kinds) + bool(finished))
        self._ranges = (shards if kinds else [], kinds, shards if finished else [])
        self._last = INSTANT_MAX if query.execute_before is None else query.execute_before - 1
        tags = [tags_text((tag,)) for tag in query.tags]
        self._filters = (query.namespace, query.id_prefix, tags, finished)

    async def read(self, connection: Connection, span: int) -> None:
        """Reads up to `span` rows of each range."""
        at, uuid, generation = self.place
        begin = (at, uuid or UUID_MIN, generation)
        found = await connection.fetch(
            LIST, *self._ranges, *begin, self._last, span, *self._filters, max(self._bytes_left, 1)
        )
        ends = [tuple(values[2:5]) for values in found if values[1]]
        self.scanned += span * len(ends)
        end = min(ends, default=None)
        for matched, _, *values in found:
            place = (values[0], values[1], values[2])
            if end is not None and place > end:
                break
            if not matched:
                continue
            record = values[6]
            if len(self.rows) == self._limit or record is None:
                self.full = True
                return
            row = row_of(values)
            self.rows.append(row)
            self._bytes_left -= len(record)
            self.place = place
        if end is None:
            self.ended = True
        else:
            self.place = end
            self.full = len(self.rows) == self._limit or self._bytes_left <= 0
