"""MySQL's and MariaDB's form of the statements in `tocsin.sql.store`. TiDB must accept it, too."""

from __future__ import annotations

from tocsin.sql.dialect import Dialect

#: The condition for shards' rows, apart from their numbers.
SHARD_ROWS = "row_type = 1 AND timer_execute_at = 0 AND timer_uuid = ''"


class MysqlDialect(Dialect):
    """The hints keep MySQL from using the index on uuids for the rows of shards, and the order of lists for one timer."""

    timers = "timers FORCE INDEX (PRIMARY)"
    history_of_timer = "history FORCE INDEX (history_by_uuid)"
    shard_row = f"shard_id = ? AND {SHARD_ROWS}"
    # That the row exists is an error of the server, which the store takes for no row changed: with IGNORE, the server would
    # also change other errors into warnings.
    or_nothing = ""
    first_claim = (
        "INSERT INTO timers (shard_id, row_type, timer_execute_at, timer_uuid, shard_version, shard_owner, shard_batches) "
        "VALUES (?, 1, 0, '', 1, ?, 0)"
    )
    schedules = (
        "SELECT {columns} FROM schedules STRAIGHT_JOIN timers FORCE INDEX (timers_by_uuid) "
        "ON shard_id = schedule_shard AND timer_uuid = schedule_uuid WHERE schedule_namespace = ? AND schedule_id > ? "
        "ORDER BY schedule_id LIMIT ?"
    )
    # Two ranges of the key: a comparison of rows would be none. The name is needed twice.
    all_schedules = (
        "SELECT {columns} FROM schedules STRAIGHT_JOIN timers FORCE INDEX (timers_by_uuid) "
        "ON shard_id = schedule_shard AND timer_uuid = schedule_uuid WHERE (schedule_namespace = ? AND schedule_id > ?) "
        "OR schedule_namespace > ? ORDER BY schedule_namespace, schedule_id LIMIT ?"
    )
    next_records_version = (
        "INSERT INTO records (record_kind, record_key, record_value, record_version) VALUES (?, '', '', 1) "
        "ON DUPLICATE KEY UPDATE record_version = record_version + 1"
    )
    facts = (
        "SELECT VERSION(), SUM(data_length + index_length), MAX(IF(table_name = 'timers', table_rows, NULL)) "
        "FROM information_schema.tables WHERE table_schema = DATABASE()"
    )
    now = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"

    def or_update(self, key: str, *columns: str) -> str:
        """The server finds the key by itself."""
        return f" ON DUPLICATE KEY UPDATE {', '.join(f'{each} = VALUES({each})' for each in columns)}"

    def delete_along(self, table: str, index: str) -> str:
        """With a hint for each server: see _UUID_DELETE in `writes.py`. Quoted, since MariaDB's DELETE HISTORY is another
        statement."""
        forced = f"/*M! FORCE INDEX ({index}) */ /*T! FORCE INDEX ({index}) */"
        return f"DELETE /*+ INDEX({table} {index}) */ /*M! `{table}` */ FROM {table} {forced}"

    def delete_first(self, table: str, key: str, condition: str, order: str) -> str:
        """Of nodes that delete at the same time, the later ones wait and find none."""
        return f"DELETE FROM {table} WHERE {condition} ORDER BY {order} LIMIT ?"


DIALECT = MysqlDialect()
