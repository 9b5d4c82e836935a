"""Reads of timers in PostgreSQL. Each function is one statement, hence one snapshot that begins after the call."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.ports.store import FireKey, Found, HistoryRow, Loaded, Member, ShardState, StoredRow
from tocsin.sql.keys import above, at_most
from tocsin.sql.rows import row_of, stored_row
from tocsin.stores.postgresql.driver import Connection

_COMMON = (
    "timer_execute_at, timer_uuid, timer_generation, timer_namespace, timer_id, timer_tags, {record} AS timer_record"
)
#: The same columns for live and finished rows, for a union.
TIMER_COLUMNS = _COMMON + (
    ", timer_parked_reason, NULL AS timer_status, NULL::bigint AS timer_finished_at, NULL::bigint AS timer_expires_at"
)
HISTORY_COLUMNS = _COMMON + ", NULL AS timer_parked_reason, timer_status, timer_finished_at, timer_expires_at"

#: Once a page's records have $7 bytes, further ones are returned as NULL: the page ends there. A record's length is known
#: without reading the record.
LOAD = (
    f"SELECT {_COMMON.format(record='CASE WHEN bytes_before < $7 THEN timer_record END')}, timer_parked_reason FROM ("
    "SELECT *, sum(octet_length(timer_record)) OVER (ORDER BY timer_execute_at, timer_uuid ROWS UNBOUNDED PRECEDING) "
    "- octet_length(timer_record) AS bytes_before FROM timers "
    "WHERE shard_id = $1 AND row_type = $2 AND (timer_execute_at, timer_uuid) >= ($3, $4) "
    "AND (timer_execute_at, timer_uuid) <= ($5, $6) ORDER BY timer_execute_at, timer_uuid LIMIT $8) AS page"
)

FETCH = (
    "SELECT live.* FROM unnest($2::uuid[]) AS wanted (uuid) CROSS JOIN LATERAL ("
    f"SELECT {TIMER_COLUMNS.format(record='timer_record')} FROM timers "
    "WHERE shard_id = $1 AND timer_uuid = wanted.uuid AND timer_id IS NOT NULL LIMIT 1) AS live UNION ALL "
    f"SELECT newest.* FROM unnest($2::uuid[]) AS wanted (uuid) CROSS JOIN LATERAL ("
    f"SELECT {HISTORY_COLUMNS.format(record='timer_record')} FROM history WHERE shard_id = $1 AND timer_uuid = wanted.uuid "
    "ORDER BY timer_generation DESC LIMIT 1) AS newest"
)

SHARDS = "SELECT shard_id, shard_version, shard_owner FROM timers WHERE row_type = 1 ORDER BY shard_id"
MEMBERS = "SELECT member_incarnation, member_node, member_address, member_counter FROM members"


async def load(
    connection: Connection,
    row_type: int,
    shard_id: int,
    after: FireKey,
    up_to: FireKey,
    limit: int,
    bytes_max: int,
) -> Loaded:
    """A page, shorter than `limit` if its records would exceed `bytes_max` by more than one record."""
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
    live: dict[bytes, StoredRow] = {}
    finished: dict[bytes, HistoryRow] = {}
    for values in await connection.fetch(FETCH, shard_id, uuids):
        row = row_of(values)
        if isinstance(row, HistoryRow):
            finished[row.uuid] = row
        else:
            live[row.uuid] = row
    return {uuid: Found(live.get(uuid), finished.get(uuid)) for uuid in uuids if uuid in live or uuid in finished}


async def shards(connection: Connection) -> list[ShardState]:
    """Every shard row, by number."""
    return [ShardState(*row) for row in await connection.fetch(SHARDS)]


async def members(connection: Connection) -> list[Member]:
    """All member rows."""
    return [Member(*row) for row in await connection.fetch(MEMBERS)]
