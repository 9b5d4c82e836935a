"""Reads of timers in MySQL. The result of a call is from one statement, hence one snapshot that begins after the call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, takewhile

from tocsin.ports.store import Found, Loaded
from tocsin.sql.keys import above, at_most
from tocsin.sql.rows import ROW_COLUMNS, UNION_HISTORY_COLUMNS, LoadQuery, cut, found_of, row_of, stored_row
from tocsin.stores.mysql.dialect import DIALECT, SHARD_ROWS
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.text import hexed, listed, place_range

#: The same columns for live and finished rows, for a union.
TIMER_COLUMNS = f"{ROW_COLUMNS}, NULL AS timer_status, NULL AS timer_finished_at, NULL AS timer_expires_at".encode()
FINISHED_COLUMNS = UNION_HISTORY_COLUMNS.encode()


def page(
    row_type: int, shard_id: int, first: tuple[int, bytes], last: tuple[int, bytes], limit: int, each_max: int | None
) -> bytes:
    """A SELECT of the first rows between two places, and how long each record is. Records of more than `each_max` size
    come as NULL."""
    record = b"timer_record" if each_max is None else b"IF(LENGTH(timer_record) <= %d, timer_record, NULL)" % each_max
    return (
        b"SELECT timer_execute_at, timer_uuid, timer_generation, timer_namespace, timer_id, timer_tags, %b, "
        b"timer_suspended_reason, LENGTH(timer_record) FROM timers FORCE INDEX (PRIMARY) "
        b"WHERE shard_id = %d AND row_type = %d AND %b ORDER BY timer_execute_at, timer_uuid LIMIT %d"
    ) % (record, shard_id, row_type, place_range(first, last), limit)


async def load(connection: Connection, query: LoadQuery, bytes_max: int) -> Loaded:
    """A page, shorter than `limit` if its records would exceed `bytes_max` by more than one record."""
    row_type, shard_id, after, up_to, limit = query
    first, last = above(after), at_most(up_to)
    if first is None or last is None or first > last:
        return Loaded([], up_to)
    # A page whose records are all this short can't be too large.
    each_max = bytes_max // limit
    found = await connection.rows(page(row_type, shard_id, first, last, limit, each_max))
    if any(values[6] is None for values in found):
        # Some are longer. The page is read again, so that the result is from one snapshot; the lengths determine its rows.
        lengths = accumulate(values[8] for values in found[:-1])
        limit = 1 + sum(1 for _ in takewhile(lambda size: size < bytes_max, lengths))
        found = await connection.rows(page(row_type, shard_id, first, last, limit, None))
    rows = [stored_row(values[:8]) for values in found]
    return Loaded(rows, up_to if len(rows) < limit else rows[-1].key)


def by_uuid(shard_id: int, uuids: Sequence[bytes]) -> bytes:
    """A SELECT of the live row and the newest history row of each uuid."""
    wanted = listed([hexed(uuid) for uuid in uuids])
    return (
        b"(SELECT " + TIMER_COLUMNS + b" FROM timers FORCE INDEX (timers_by_uuid) "
        b"WHERE shard_id = %d AND timer_uuid IN %b) UNION ALL "
        b"(SELECT " + FINISHED_COLUMNS + b" FROM (SELECT timer_uuid AS newest_uuid, MAX(timer_generation) AS newest "
        b"FROM history FORCE INDEX (history_by_uuid) WHERE shard_id = %d AND timer_uuid IN %b GROUP BY timer_uuid) AS ends "
        b"STRAIGHT_JOIN history FORCE INDEX (history_by_uuid) "
        b"ON shard_id = %d AND timer_uuid = newest_uuid AND timer_generation = newest)"
    ) % (shard_id, wanted, shard_id, wanted, shard_id)


async def fetch(connection: Connection, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
    """The live row and the newest history row of each uuid."""
    wanted = cut(list(dict.fromkeys(uuids)))
    found = [values for some in wanted for values in await connection.rows(by_uuid(shard_id, some))]
    return found_of(map(row_of, found), uuids)


def shard_rows(shard_ids: Sequence[int]) -> str:
    """A SELECT of shard rows. It lists their numbers, because no index has the shard rows together."""
    return (
        f"SELECT shard_id, shard_version, shard_owner FROM {DIALECT.timers} "
        f"WHERE shard_id IN ({', '.join(map(str, shard_ids))}) AND {SHARD_ROWS} ORDER BY shard_id"
    )
