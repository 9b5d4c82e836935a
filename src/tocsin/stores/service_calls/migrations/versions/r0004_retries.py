"""Adds retries of failed attempts: a status, the policy and its progress. Adds an index of calls by correlation id.

SQLite cannot change a CHECK: its table is created again and copied; references to it are by name.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from tocsin.stores.service_calls.columns import optional
from tocsin.stores.service_calls.types import Instant, Number

revision = "0004"
down_revision = "0003"

STATUSES = "status IN ('Scheduled', 'Running', 'Retrying', 'Succeeded', 'Failed')"
CHECK = "ck_service_calls_status"


def upgrade() -> None:
    with op.batch_alter_table("service_calls", table_kwargs={"sqlite_strict": True}) as batch:
        for column in (
            *optional(sa.Text, "retry_policy"),
            sa.Column("attempts", Number, nullable=False, server_default=sa.text("0")),
            *optional(Instant, "first_attempt_at", "next_attempt_at"),
        ):
            batch.add_column(column)
        batch.drop_constraint(CHECK, type_="check")
        batch.create_check_constraint(CHECK, sa.text(STATUSES))
    # A call that has finished had one attempt, and no policy.
    op.execute("UPDATE service_calls SET attempts = 1 WHERE finished_at IS NOT NULL")
    columns = ["tenant_id", "correlation_id", "submitted_at", "service_call_id"]
    op.create_index("idx_service_calls_correlation_id", "service_calls", columns)
