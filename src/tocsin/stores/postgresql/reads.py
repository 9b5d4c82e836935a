"""Reads of timers in PostgreSQL. Each function is one statement, hence one snapshot that begins after the call."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.ports.store import Found, Loaded, StoredRow
from tocsin.sql.keys import above, at_most
from tocsin.sql.rows import ROW_COLUMNS, UNION_HISTORY_COLUMNS, LoadQuery, found_of, row_of, stored_row
from tocsin.stores.postgresql.driver import Connection

#: The columns of live rows in a union with UNION_HISTORY_COLUMNS.
TIMER_COLUMNS = (
    f"{ROW_COLUMNS}, NULL AS timer_status, NULL::bigint AS timer_finished_at, NULL::bigint AS timer_expires_at"
)

#: Once a page's records have $7 bytes, further ones are returned as NULL: the page ends there. A record's length is known
#: without reading the record.
LOAD = (
    f"SELECT {ROW_COLUMNS.replace('timer_record', 'CASE WHEN bytes_before < $7 THEN timer_record END')} FROM ("
    "SELECT *, sum(octet_length(timer_record)) OVER (ORDER BY timer_execute_at, timer_uuid ROWS UNBOUNDED PRECEDING) "
    "- octet_length(timer_record) AS bytes_before FROM timers "
    "WHERE shard_id = $1 AND row_type = $2 AND (timer_execute_at, timer_uuid) >= ($3, $4) "
    "AND (timer_execute_at, timer_uuid) <= ($5, $6) ORDER BY timer_execute_at, timer_uuid LIMIT $8) AS page"
)

FETCH = (
    "SELECT live.* FROM unnest($2::uuid[]) AS wanted (uuid) CROSS JOIN LATERAL ("
    f"SELECT {TIMER_COLUMNS} FROM timers "
    "WHERE shard_id = $1 AND timer_uuid = wanted.uuid AND timer_id IS NOT NULL LIMIT 1) AS live UNION ALL "
    f"SELECT newest.* FROM unnest($2::uuid[]) AS wanted (uuid) CROSS JOIN LATERAL ("
    f"SELECT {UNION_HISTORY_COLUMNS} FROM history WHERE shard_id = $1 AND timer_uuid = wanted.uuid "
    "ORDER BY timer_generation DESC LIMIT 1) AS newest"
)


async def load(connection: Connection, query: LoadQuery, bytes_max: int) -> Loaded:
    """A page, shorter than `limit` if its records would exceed `bytes_max` by more than one record."""
    row_type, shard_id, after, up_to, limit = query
    begin, end = above(after), at_most(up_to)
    if begin is None or end is None:
        return Loaded([], up_to)
    found = await connection.fetch(LOAD, shard_id, row_type, *begin, *end, bytes_max, limit)
    rows: list[StoredRow] = []
    for values in found:
        if values[6] is None:
            break
        rows.append(stored_row(values))
    complete = len(found) < limit and len(rows) == len(found)
    return Loaded(rows, up_to if complete else (rows[-1].key if rows else after))


async def fetch(connection: Connection, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
    """The live row and the newest history row of each uuid."""
    return found_of((row_of(values) for values in await connection.fetch(FETCH, shard_id, uuids)), uuids)
