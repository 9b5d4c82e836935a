"""PostgreSQL's form of the statements in `tocsin.sql.store`."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import count

from tocsin.sql.dialect import Dialect


class PostgresDialect(Dialect):
    """The rows of shards have a separate index, on `shard_id` where `row_type` is 1."""

    shard_row = "row_type = 1 AND shard_id = ?"
    first_claim = (
        "INSERT INTO timers (shard_id, row_type, timer_execute_at, timer_uuid, shard_version, shard_owner) "
        "VALUES (?, 1, 0, '00000000-0000-0000-0000-000000000000', 1, ?) ON CONFLICT DO NOTHING"
    )
    facts = (
        "SELECT current_setting('server_version'), pg_database_size(current_database()), (SELECT n_live_tup FROM "
        "pg_stat_user_tables WHERE relid = 'timers'::regclass)"
    )
    #: The server's clock when it is read, not when the transaction began.
    clock = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    now = f"SELECT {clock}"
    shards = "SELECT shard_id, shard_version, shard_owner FROM timers WHERE row_type = 1 ORDER BY shard_id"
    schedules = (
        "SELECT {columns} FROM timers WHERE right(timer_namespace, 9) = '/schedule' "
        'AND timer_namespace COLLATE "C" = ? AND timer_id COLLATE "C" > ? ORDER BY timer_id COLLATE "C" LIMIT ?'
    )
    all_schedules = (
        "SELECT {columns} FROM timers WHERE right(timer_namespace, 9) = '/schedule' "
        'AND (timer_namespace COLLATE "C", timer_id COLLATE "C") > (?, ?) '
        'ORDER BY timer_namespace COLLATE "C", timer_id COLLATE "C" LIMIT ?'
    )
    skip_locked = " FOR UPDATE SKIP LOCKED"

    def delete_first(self, table: str, key: str, condition: str, order: str) -> str:
        """By the rows' places in the file, because joins by key are switched off."""
        return (
            f"DELETE FROM {table} WHERE ctid = ANY (ARRAY("
            f"SELECT ctid FROM {table} WHERE {condition} ORDER BY {order} LIMIT ?{self.skip_locked}))"
        )


DIALECT = PostgresDialect()


@lru_cache(maxsize=256)
def numbered(sql: str) -> str:
    """The statement with $1, $2, … instead of each `?`."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)
