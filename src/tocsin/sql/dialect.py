"""What differs between databases in the statements that `tocsin.sql.store` has once for all of them."""

from __future__ import annotations

from typing import NamedTuple

#: A value of a statement.
Value = int | str | bytes | None


class Step(NamedTuple):
    """A statement of a transaction, with a `?` for each value. After a `required` one that finds or changes no row, the
    transaction ends without the following ones."""

    sql: str
    values: tuple[Value, ...] = ()
    required: bool = False


class Dialect:
    """Parts of statements. What has a value here is the same in most databases."""

    #: The table `timers` in an UPDATE of a shard's row, and the condition for the row of shard `?`.
    timers: str = "timers"
    shard_row: str
    #: The table `history` in a SELECT of one timer's rows.
    history_of_timer: str = "history"
    #: Inserts the row of a shard that was never claimed, for shard `?` and owner `?`.
    first_claim: str
    #: The store's clock as a number of microseconds.
    now: str
    #: The database's version, its size in bytes, and how many rows `timers` has, by its statistics (NULL: unknown).
    facts: str
    #: Every shard's row: number, epoch, owner.
    shards: str
    #: `{columns}` of the rows stored under the name `?`, in the order of ids, behind the id `?`, at most `?`.
    schedules: str
    #: Likewise of all schedules, by name and id, behind the name `?` and the id `?`.
    all_schedules: str
    #: Raises the version of the kind `?` of records.
    next_records_version: str = (
        "INSERT INTO records (record_kind, record_key, record_value, record_version) VALUES (?, '', '', 1) "
        "ON CONFLICT (record_kind, record_key) DO UPDATE SET record_version = records.record_version + 1"
    )
    #: Follows an INSERT that has no effect on a row that exists.
    or_nothing: str = " ON CONFLICT DO NOTHING"
    #: Follows a SELECT whose rows stay unchanged until the transaction ends.
    locked: str = " FOR UPDATE"
    #: Follows a SELECT of rows to be deleted: nodes that do so at the same time take different ones, and none waits.
    skip_locked: str = ""

    def or_update(self, key: str, *columns: str) -> str:
        """Follows an INSERT that updates these columns of a row with the same key."""
        return f" ON CONFLICT ({key}) DO UPDATE SET {', '.join(f'{each} = excluded.{each}' for each in columns)}"

    def delete_along(self, table: str, index: str) -> str:
        """Begins a DELETE of rows that are found by this index: `PRIMARY`, or one that only some databases need."""
        return f"DELETE FROM {table}"

    def delete_first(self, table: str, key: str, condition: str, order: str) -> str:
        """Deletes the first `?` rows, in this order, for which the condition holds. `key` are the primary key's columns."""
        return (
            f"DELETE FROM {table} WHERE ({key}) IN "
            f"(SELECT {key} FROM {table} WHERE {condition} ORDER BY {order} LIMIT ?)"
        )
