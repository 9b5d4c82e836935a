"""The five tables of the reference schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
INSTANT = sa.Text().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
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
        sa.PrimaryKeyConstraint("tenant_id", "service_call_id", name="pk_service_calls"),
        sa.CheckConstraint("status IN ('Scheduled', 'Running', 'Succeeded', 'Failed')", name="ck_service_calls_status"),
        sqlite_strict=True,
    )
    op.create_table(
        "service_call_tags",
        sa.Column("tenant_id", KEY, nullable=False),
        sa.Column("service_call_id", KEY, nullable=False),
        sa.Column("tag", KEY, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "service_call_id", "tag", name="pk_service_call_tags"),
        _of_service_call("service_call_tags"),
        sqlite_strict=True,
    )
    op.create_index("idx_service_call_tags_tag", "service_call_tags", ["tenant_id", "tag", "service_call_id"])
    op.create_table(
        "timer_schedules",
        sa.Column("tenant_id", KEY, nullable=False),
        sa.Column("service_call_id", KEY, nullable=False),
        sa.Column("correlation_id", KEY, nullable=False),
        sa.Column("due_at", INSTANT, nullable=False),
        sa.Column("registered_at", INSTANT, nullable=False),
        sa.Column("reached_at", INSTANT),
        sa.Column("state", KEY, nullable=False, server_default=sa.text("'Scheduled'")),
        sa.PrimaryKeyConstraint("tenant_id", "service_call_id", name="pk_timer_schedules"),
        _of_service_call("timer_schedules"),
        sa.CheckConstraint("state IN ('Scheduled', 'Reached')", name="ck_timer_schedules_state"),
        sqlite_strict=True,
    )
    op.create_index("idx_timer_schedules_due_at", "timer_schedules", ["tenant_id", "state", "due_at"])
    op.create_index("idx_timer_schedules_correlation_id", "timer_schedules", ["correlation_id"])
    op.create_table(
        "http_execution_log",
        sa.Column("tenant_id", KEY, nullable=False),
        sa.Column("service_call_id", KEY, nullable=False),
        sa.Column("execution_id", KEY, nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT),
        sa.Column("request_url", sa.Text, nullable=False),
        sa.Column("request_method", KEY, nullable=False),
        sa.Column("request_headers", sa.Text, nullable=False),
        sa.Column("request_body", sa.Text),
        sa.Column("response_status", KEY),
        sa.Column("response_headers", sa.Text),
        sa.Column("response_body", sa.Text),
        sa.Column("error_message", sa.Text),
        sa.PrimaryKeyConstraint("tenant_id", "service_call_id", "execution_id", name="pk_http_execution_log"),
        _of_service_call("http_execution_log"),
        sa.CheckConstraint(
            "request_method IN ('GET', 'POST', 'PUT', 'DELETE', 'PATCH')", name="ck_http_execution_log_request_method"
        ),
        sqlite_strict=True,
    )
    op.create_table(
        "outbox",
        sa.Column("id", NUMBER, sa.Identity(always=False), nullable=False),
        sa.Column("tenant_id", KEY, nullable=False),
        sa.Column("aggregate_id", KEY, nullable=False),
        sa.Column("event_type", KEY, nullable=False),
        sa.Column("event_payload", sa.Text, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("published_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )


def _of_service_call(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", "service_call_id"],
        ["service_calls.tenant_id", "service_calls.service_call_id"],
        name=f"fk_{table}_service_call",
        ondelete="CASCADE",
    )


def downgrade() -> None:
    raise NotImplementedError("the schema goes forward only; restore a backup to go back")
