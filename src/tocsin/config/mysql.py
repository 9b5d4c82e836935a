"""The settings of the store in MySQL or MariaDB: the file's table `mysql`."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from pydantic_settings import BaseSettings

from tocsin.config.values import Bytes, Count, Duration, YesNo
from tocsin.model.instants import US_PER_SECOND


class MysqlFields(BaseSettings):
    """A part of `Settings`."""

    mysql_loaders: Count = Field(
        3, description="MySQL: connections for loads, claims and heartbeats. Raised: more shards are loaded at once."
    )
    mysql_readers: Count = Field(
        2, description="MySQL: connections for lists, namespaces and API keys. Raised: more lists at once."
    )
    mysql_connect_timeout: Duration = Field(
        5 * US_PER_SECOND, description="MySQL: how long making a connection may take."
    )
    mysql_statement_timeout: Duration = Field(
        20 * US_PER_SECOND,
        description="MySQL: how long the server may take for a statement before it ends it; MySQL itself, unlike MariaDB, "
        "ends only what reads. Keep it below `store_timeout`.",
    )
    mysql_answer_grace: Duration = Field(
        5 * US_PER_SECOND,
        description="MySQL: how much longer than `mysql.statement_timeout` the server's answer is waited for before the "
        "connection is given up.",
    )
    mysql_lock_timeout: Duration = Field(
        10 * US_PER_SECOND,
        description="MySQL: how long a statement waits for rows that another transaction has locked, in whole seconds.",
    )
    mysql_acquire_timeout: Duration = Field(
        10 * US_PER_SECOND,
        description="MySQL: how long a query waits for a free connection before it fails as if the database were away.",
    )
    mysql_idle_transaction_timeout: Duration = Field(
        3 * US_PER_SECOND,
        description="After how long the server gives up a transaction whose node says nothing any more, in whole seconds; "
        ""
        "below `member_timeout`, or who takes over waits for its locks. MySQL itself ends idle sessions after it, too.",
    )
    mysql_read_bytes_max: Bytes = Field(
        16 << 20,
        description="MySQL: bytes of records in one page of a load or a list. Raised: fewer round trips, more memory.",
    )
    mysql_statement_bytes_max: Bytes = Field(
        4 << 20,
        description="MySQL: bytes that are sent in one packet; never more than the server's `max_allowed_packet`.",
    )
    mysql_delete_rows_max: Count = Field(
        10_000,
        description="MySQL: rows of a range that one statement deletes. Raised: fewer statements, each with more locks.",
    )
    mysql_undone_retries_max: Count = Field(
        5,
        description="MySQL: how often a transaction is repeated that the server rolled back in favour of another (a "
        "deadlock).",
    )
    mysql_durable: YesNo = Field(
        True,
        description="Refuse a server whose `innodb_flush_log_at_trx_commit` isn't 1, or that has a binary log and not "
        "`sync_binlog = 1`: acknowledged timers can be lost.",
    )


def mysql_options(settings: MysqlFields) -> dict[str, Any]:
    """Keyword arguments of MysqlStore, but for those that aren't of this table."""
    return {
        "loaders": settings.mysql_loaders,
        "readers": settings.mysql_readers,
        "connect_timeout_s": settings.mysql_connect_timeout / US_PER_SECOND,
        "statement_timeout_s": settings.mysql_statement_timeout / US_PER_SECOND,
        "answer_grace_s": settings.mysql_answer_grace / US_PER_SECOND,
        "lock_timeout_s": settings.mysql_lock_timeout / US_PER_SECOND,
        "acquire_timeout_s": settings.mysql_acquire_timeout / US_PER_SECOND,
        "idle_transaction_timeout_s": settings.mysql_idle_transaction_timeout / US_PER_SECOND,
        "read_bytes_max": settings.mysql_read_bytes_max,
        "statement_bytes_max": settings.mysql_statement_bytes_max,
        "delete_rows_max": settings.mysql_delete_rows_max,
        "undone_retries_max": settings.mysql_undone_retries_max,
        "durable": settings.mysql_durable,
    }
