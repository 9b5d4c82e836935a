"""Lists in PostgreSQL. A step is one statement, which returns the rows that match and, for each range that continues, the
last row it passed. A page that needs several steps is read from several snapshots."""

from __future__ import annotations

from itertools import takewhile

from tocsin.ports.store import Listed, ListQuery
from tocsin.sql.keys import UUID_MIN
from tocsin.sql.rows import UNION_HISTORY_COLUMNS, row_of, tags_text
from tocsin.stores.lists import Walk
from tocsin.stores.postgresql.driver import Connection
from tocsin.stores.postgresql.reads import TIMER_COLUMNS

_MATCHES = (
    "CASE WHEN $9::text[] IS NULL THEN strpos(timer_namespace, '/') = 0 ELSE timer_namespace = ANY ($9) END "
    "AND starts_with(timer_id, $10) AND NOT EXISTS "
    "(SELECT FROM unnest($11::text[]) AS wanted (tag) WHERE strpos(coalesce(timer_tags, ''), wanted.tag) = 0)"
)
_PLACE = "timer_execute_at, timer_uuid, timer_generation"


def list_sql(*, descending: bool) -> str:
    """Parameters: shards of live rows, their row types, shards of history, the position after which to begin (three values),
    the last instant, the span, namespaces (NULL: all), prefix, tags, statuses, bytes of records at most."""
    than, down = ("<", " DESC") if descending else (">", "")
    key = f"timer_execute_at{down}, timer_uuid{down}"
    order = f"{key}, timer_generation{down}"
    behind = (
        f"(timer_execute_at, timer_uuid) {than}= ($4, $5) AND ({_PLACE}) {than} ($4, $5, $6) "
        f"AND timer_execute_at {'>=' if descending else '<='} $7 "
    )
    return (
        "WITH passed AS ("
        "SELECT timer.* FROM unnest($1::integer[]) AS s (shard), unnest($2::smallint[]) AS k (kind) CROSS JOIN LATERAL ("
        f"SELECT row_number() OVER (ORDER BY {key}) AS number, {_MATCHES} AS matched, "
        f"{TIMER_COLUMNS} FROM timers WHERE shard_id = s.shard AND row_type = k.kind AND {behind}"
        f"ORDER BY {key} LIMIT $8) AS timer UNION ALL "
        "SELECT finished.* FROM unnest($3::integer[]) AS s (shard) CROSS JOIN LATERAL ("
        f"SELECT row_number() OVER (ORDER BY {order}) AS number, "
        f"{_MATCHES} AND timer_status = ANY ($12::text[]) AS matched, "
        f"{UNION_HISTORY_COLUMNS} FROM history WHERE shard_id = s.shard AND {behind}"
        f"ORDER BY {order} LIMIT $8) AS finished"
        "), counted AS ("
        "SELECT *, coalesce(sum(octet_length(timer_record)) FILTER (WHERE matched) OVER ("
        f"ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before "
        "FROM passed WHERE matched OR number = $8"
        ") SELECT matched, number = $8 AS ended, timer_execute_at, timer_uuid, timer_generation, timer_namespace, timer_id, "
        "timer_tags, CASE WHEN matched AND bytes_before < $13 THEN timer_record END, timer_suspended_reason, timer_status, "
        f"timer_finished_at, timer_expires_at FROM counted ORDER BY {order}"
    )


LIST, LIST_DESCENDING = (list_sql(descending=each) for each in (False, True))


async def list_rows(connection: Connection, query: ListQuery, bytes_max: int) -> Listed:
    """A page of timers, live and finished."""
    walk, sql = Walk(query, bytes_max), LIST_DESCENDING if query.descending else LIST
    tags = [tags_text((tag,)) for tag in query.tags]
    kinds, finished = walk.kinds, walk.finished
    ranges = (walk.shards if kinds else [], kinds, walk.shards if finished else [])
    while walk.goes_on:
        at, uuid, generation = walk.place
        found = await connection.fetch(
            sql, *ranges, at, uuid or UUID_MIN, generation, walk.last, walk.span,
            None if query.namespaces is None else list(query.namespaces), query.id_prefix, tags, finished,
            max(walk.bytes_left, 1),
        )  # fmt: skip
        ends = [tuple(values[2:5]) for values in found if values[1]]
        end = walk.order.first(ends)
        matched = [values[2:] for values in found if values[0] and walk.order.within(tuple(values[2:5]), end)]
        # A record is missing where the page has enough bytes.
        rows = [row_of(values) for values in takewhile(lambda values: values[6] is not None, matched)]
        walk.advance(rows, ends, cut_short=len(rows) < len(matched))
    return walk.listed()
