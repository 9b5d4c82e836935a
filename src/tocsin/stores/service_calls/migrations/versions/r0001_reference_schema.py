"""The five tables of the reference schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from tocsin.stores.service_calls.columns import of_service_call, optional, primary_key, required
from tocsin.stores.service_calls.types import Instant, KeyText, Number

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "service_calls",
        *required(KeyText, "tenant_id", "service_call_id"),
        *required(sa.Text, "name"),
        *required(KeyText, "status"),
        *required(Instant, "submitted_at", "due_at"),
        *optional(Instant, "started_at", "finished_at"),
        *required(sa.Text, "request_spec"),
        *optional(sa.Text, "outcome_meta"),
        primary_key("service_calls", "tenant_id", "service_call_id"),
        sa.CheckConstraint("status IN ('Scheduled', 'Running', 'Succeeded', 'Failed')", name="ck_service_calls_status"),
        sqlite_strict=True,
    )
    op.create_table(
        "service_call_tags",
        *required(KeyText, "tenant_id", "service_call_id", "tag"),
        primary_key("service_call_tags", "tenant_id", "service_call_id", "tag"),
        of_service_call("service_call_tags"),
        sqlite_strict=True,
    )
    op.create_index("idx_service_call_tags_tag", "service_call_tags", ["tenant_id", "tag", "service_call_id"])
    op.create_table(
        "timer_schedules",
        *required(KeyText, "tenant_id", "service_call_id", "correlation_id"),
        *required(Instant, "due_at", "registered_at"),
        *optional(Instant, "reached_at"),
        sa.Column("state", KeyText, nullable=False, server_default=sa.text("'Scheduled'")),
        primary_key("timer_schedules", "tenant_id", "service_call_id"),
        of_service_call("timer_schedules"),
        sa.CheckConstraint("state IN ('Scheduled', 'Reached')", name="ck_timer_schedules_state"),
        sqlite_strict=True,
    )
    op.create_index("idx_timer_schedules_due_at", "timer_schedules", ["tenant_id", "state", "due_at"])
    op.create_index("idx_timer_schedules_correlation_id", "timer_schedules", ["correlation_id"])
    op.create_table(
        "http_execution_log",
        *required(KeyText, "tenant_id", "service_call_id", "execution_id"),
        *required(Instant, "started_at"),
        *optional(Instant, "finished_at"),
        *required(sa.Text, "request_url"),
        *required(KeyText, "request_method"),
        *required(sa.Text, "request_headers"),
        *optional(sa.Text, "request_body"),
        *optional(KeyText, "response_status"),
        *optional(sa.Text, "response_headers", "response_body", "error_message"),
        primary_key("http_execution_log", "tenant_id", "service_call_id", "execution_id"),
        of_service_call("http_execution_log"),
        sa.CheckConstraint(
            "request_method IN ('GET', 'POST', 'PUT', 'DELETE', 'PATCH')", name="ck_http_execution_log_request_method"
        ),
        sqlite_strict=True,
    )
    op.create_table(
        "outbox",
        sa.Column("id", Number, sa.Identity(always=False), nullable=False),
        *required(KeyText, "tenant_id", "aggregate_id", "event_type"),
        *required(sa.Text, "event_payload"),
        *required(Instant, "created_at"),
        *optional(Instant, "published_at"),
        primary_key("outbox", "id"),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )
