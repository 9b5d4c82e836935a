"""Adds retries of failed attempts: a status, the policy and its progress. Adds the trace of a call's submission, and an index
of calls by correlation id.

SQLite cannot change a CHECK: its table is created again and copied; references to it are by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import op

from tocsin.stores.service_calls.columns import optional
from tocsin.stores.service_calls.types import Instant, KeyText, Number

revision = "0004"
down_revision = "0003"

STATUSES = "status IN ('Scheduled', 'Running', 'Retrying', 'Succeeded', 'Failed')"
CHECK = "ck_service_calls_status"


def upgrade() -> None:
    kept = {"sqlite_strict": True}
    with _indexes_in_order(op.get_bind()), op.batch_alter_table("service_calls", table_kwargs=kept) as batch:
        for column in (
            *optional(sa.Text, "retry_policy"),
            sa.Column("attempts", Number, nullable=False, server_default=sa.text("0")),
            *optional(Instant, "first_attempt_at", "next_attempt_at"),
            *optional(KeyText, "traceparent"),
        ):
            batch.add_column(column)
        batch.drop_constraint(CHECK, type_="check")
        batch.create_check_constraint(CHECK, sa.text(STATUSES))
    # A call that has finished had one attempt, and no policy.
    op.execute("UPDATE service_calls SET attempts = 1 WHERE finished_at IS NOT NULL")
    columns = ["tenant_id", "correlation_id", "submitted_at", "service_call_id"]
    op.create_index("idx_service_calls_correlation_id", "service_calls", columns)


@contextmanager
def _indexes_in_order(connection: sa.Connection) -> Iterator[None]:
    """Alembic creates a table's indexes again in any order. But of two that serve alike, SQLite's planner takes the newer
    one while there are no statistics."""
    if connection.dialect.name != "sqlite":
        yield
        return
    indexes = connection.exec_driver_sql(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'service_calls' AND sql IS NOT NULL"
        " ORDER BY rowid"
    ).all()
    for name, _ in indexes:
        op.drop_index(name, "service_calls")
    yield
    for _, sql in indexes:
        op.execute(sql)
