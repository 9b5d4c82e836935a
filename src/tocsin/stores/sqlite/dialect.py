"""SQLite's form of the statements in `tocsin.sql.store`."""

from __future__ import annotations

from tocsin.sql.dialect import Dialect


class SqliteDialect(Dialect):
    """A transaction that writes has the file for itself, so no row needs a lock."""

    shard_row = "shard_id = ? AND row_type = 1 AND timer_execute_at = 0 AND timer_uuid = x''"
    first_claim = (
        "INSERT INTO timers (shard_id, row_type, timer_execute_at, timer_uuid, shard_version, shard_owner) "
        "VALUES (?, 1, 0, x'', 1, ?) ON CONFLICT DO NOTHING"
    )
    # Skips from one shard to the next instead of scanning the timers in between.
    shards = (
        "WITH RECURSIVE every(shard_id) AS (SELECT min(shard_id) FROM timers UNION ALL "
        "SELECT (SELECT min(t.shard_id) FROM timers AS t WHERE t.shard_id > every.shard_id) FROM every "
        "WHERE every.shard_id IS NOT NULL) "
        "SELECT t.shard_id, t.shard_version, t.shard_owner FROM every CROSS JOIN timers AS t ON "
        "t.shard_id = every.shard_id AND t.row_type = 1 AND t.timer_execute_at = 0 AND t.timer_uuid = x''"
    )
    # The file's size is known; to count its rows takes long.
    facts = "SELECT sqlite_version(), page_count * page_size, NULL FROM pragma_page_count(), pragma_page_size()"
    schedules = (
        "SELECT {columns} FROM timers WHERE substr(timer_namespace, -9) = '/schedule' AND timer_namespace = ? "
        "AND timer_id > ? ORDER BY timer_id LIMIT ?"
    )
    all_schedules = (
        "SELECT {columns} FROM timers WHERE substr(timer_namespace, -9) = '/schedule' "
        "AND (timer_namespace, timer_id) > (?, ?) ORDER BY timer_namespace, timer_id LIMIT ?"
    )
    locked = ""

    def delete_along(self, table: str, index: str) -> str:
        """Without statistics, SQLite prefers a primary key of which it uses the first column alone."""
        return f"DELETE FROM {table}" + ("" if index == "PRIMARY" else f" INDEXED BY {index}")


DIALECT = SqliteDialect()
