"""The settings of the store in PostgreSQL: the file's table `postgresql`."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from pydantic_settings import BaseSettings

from tocsin.config.values import Bytes, Count, Duration
from tocsin.model.instants import US_PER_SECOND


class PostgresqlFields(BaseSettings):
    """A part of `Settings`."""

    postgresql_schema: str = Field(
        "tocsin", description="PostgreSQL: the schema that the timers' tables are in; made when it is missing."
    )
    postgresql_loaders: Count = Field(
        3,
        description="PostgreSQL: connections for loads, claims and heartbeats. Raised: more shards are loaded at once.",
    )
    postgresql_readers: Count = Field(
        2, description="PostgreSQL: connections for lists, namespaces and API keys. Raised: more lists at once."
    )
    postgresql_connect_timeout: Duration = Field(
        5 * US_PER_SECOND, description="PostgreSQL: how long making a connection may take."
    )
    postgresql_statement_timeout: Duration = Field(
        20 * US_PER_SECOND,
        description="PostgreSQL: how long the server may take for a statement, a commit included, before it ends it. Keep "
        "it below `store_timeout`.",
    )
    postgresql_answer_grace: Duration = Field(
        5 * US_PER_SECOND,
        description="PostgreSQL: how much longer than `postgresql.statement_timeout` the server's answer is waited for "
        "before the connection is given up.",
    )
    postgresql_lock_timeout: Duration = Field(
        10 * US_PER_SECOND,
        description="PostgreSQL: how long a statement waits for rows that another transaction has locked.",
    )
    postgresql_acquire_timeout: Duration = Field(
        10 * US_PER_SECOND,
        description="PostgreSQL: how long a query waits for a free connection before it fails as if the database were "
        "away.",
    )
    postgresql_read_bytes_max: Bytes = Field(
        16 << 20,
        description="PostgreSQL: bytes of records in one page of a load or a list. Raised: fewer round trips, more "
        "memory.",
    )


def postgresql_options(settings: PostgresqlFields) -> dict[str, Any]:
    """Keyword arguments of PostgresStore, but for those that aren't of this table."""
    return {
        "schema": settings.postgresql_schema,
        "loaders": settings.postgresql_loaders,
        "readers": settings.postgresql_readers,
        "connect_timeout_s": settings.postgresql_connect_timeout / US_PER_SECOND,
        "statement_timeout_s": settings.postgresql_statement_timeout / US_PER_SECOND,
        "answer_grace_s": settings.postgresql_answer_grace / US_PER_SECOND,
        "lock_timeout_s": settings.postgresql_lock_timeout / US_PER_SECOND,
        "acquire_timeout_s": settings.postgresql_acquire_timeout / US_PER_SECOND,
        "read_bytes_max": settings.postgresql_read_bytes_max,
    }
