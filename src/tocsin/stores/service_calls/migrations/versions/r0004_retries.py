"""Adds retries of failed attempts: a status, the policy and its progress. Adds an index of calls by correlation id.

SQLite cannot change a CHECK, so its table is created again; references to it are by name.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KEY = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
INSTANT = sa.Text().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

STATUSES = "status IN ('Scheduled', 'Running', 'Retrying', 'Succeeded', 'Failed')"
CHECK = "ck_service_calls_status"

#: Columns that are copied unchanged.
KEPT = (
    "tenant_id, service_call_id, name, status, submitted_at, due_at, started_at, finished_at, request_spec, outcome_meta,"
    " correlation_id, fingerprint, idempotency_key, execution_id, executions, watch_at"
)
#: A call that has finished had one attempt, and no policy.
ATTEMPTS = "CASE WHEN finished_at IS NULL THEN 0 ELSE 1 END"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _recreate()
    else:
        _alter()
    op.create_index(
        "idx_service_calls_correlation_id",
        "service_calls",
        ["tenant_id", "correlation_id", "submitted_at", "service_call_id"],
    )


def _added() -> list[sa.Column[object]]:
    return [
        sa.Column("retry_policy", sa.Text),
        sa.Column("attempts", NUMBER, nullable=False, server_default=sa.text("0")),
        sa.Column("first_attempt_at", INSTANT),
        sa.Column("next_attempt_at", INSTANT),
    ]


def _alter() -> None:
    for column in _added():
        op.add_column("service_calls", column)
    op.drop_constraint(CHECK, "service_calls", type_="check")
    op.create_check_constraint(CHECK, "service_calls", STATUSES)
    op.execute(f"UPDATE service_calls SET attempts = {ATTEMPTS} WHERE finished_at IS NOT NULL")


def _recreate() -> None:
    for index in _INDEXES:
        op.drop_index(f"idx_service_calls_{index}", "service_calls")
    op.rename_table("service_calls", "old_service_calls")
    op.create_table(
        "service_calls",
        sa.Column("tenant_id", KEY, nullable=False),
        sa.Column("service_call_id", KEY, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", KEY, nullable=False),
        sa.Column("submitted_at", INSTANT, nullable=False),
        sa.Column("due_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT),
        sa.Column("finished_at", INSTANT),
        sa.Column("request_spec", sa.Text, nullable=False),
        sa.Column("outcome_meta", sa.Text),
        sa.Column("correlation_id", KEY, nullable=False),
        sa.Column("fingerprint", KEY, nullable=False),
        sa.Column("idempotency_key", KEY),
        sa.Column("execution_id", KEY),
        sa.Column("executions", NUMBER, nullable=False, server_default=sa.text("0")),
        sa.Column("watch_at", INSTANT),
        *_added(),
        sa.PrimaryKeyConstraint("tenant_id", "service_call_id", name="pk_service_calls"),
        sa.CheckConstraint(STATUSES, name=CHECK),
        sqlite_strict=True,
    )
    op.execute(f"INSERT INTO service_calls ({KEPT}, attempts) SELECT {KEPT}, {ATTEMPTS} FROM old_service_calls")
    op.drop_table("old_service_calls")
    for name, (columns, where) in _INDEXES.items():
        condition = None if where is None else sa.text(where)
        op.create_index(
            f"idx_service_calls_{name}",
            "service_calls",
            columns,
            unique=name == "idempotency_key",
            sqlite_where=condition,
        )


#: Dropped with the table.
_INDEXES: dict[str, tuple[list[str], str | None]] = {
    "idempotency_key": (["tenant_id", "idempotency_key"], "idempotency_key IS NOT NULL"),
    "submitted_at": (["tenant_id", "submitted_at", "service_call_id"], None),
    "status": (["tenant_id", "status", "submitted_at", "service_call_id"], None),
    "watch_at": (["watch_at"], "watch_at IS NOT NULL"),
    "finished_at": (["finished_at"], "finished_at IS NOT NULL"),
}


def downgrade() -> None:
    raise NotImplementedError("the schema goes forward only; restore a backup to go back")
