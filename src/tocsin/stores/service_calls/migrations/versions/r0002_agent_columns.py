"""Adds the agent's columns to the reference schema. Existing rows are kept.

SQLite can neither add NOT NULL columns nor change keys, so its tables are created again and filled from the old ones.
PostgreSQL alters them in place.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from tocsin.model.instants import format_instant, parse_instant
from tocsin.model.uuid7 import uuid7_text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEY = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
INSTANT = sa.Text().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

TABLES = ("service_calls", "service_call_tags", "timer_schedules", "http_execution_log", "outbox")

#: The agent supports more methods than the reference schema.
METHODS = "request_method IN ('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS')"
METHODS_CHECK = "ck_http_execution_log_request_method"

#: The value of each new column; `c` is the row's service call. An existing call has no fingerprint, its id replaces the
#: missing correlation id, and the watchdog checks unfinished calls at once.
CALL_COLUMNS = {
    "correlation_id": "coalesce((SELECT t.correlation_id FROM {old}timer_schedules t WHERE t.tenant_id = c.tenant_id"
    " AND t.service_call_id = c.service_call_id), c.service_call_id)",
    "fingerprint": "''",
    "execution_id": "(SELECT max(e.execution_id) FROM {old}http_execution_log e WHERE e.tenant_id = c.tenant_id"
    " AND e.service_call_id = c.service_call_id)",
    "executions": "(SELECT count(*) FROM {old}http_execution_log e WHERE e.tenant_id = c.tenant_id"
    " AND e.service_call_id = c.service_call_id)",
    "watch_at": "CASE WHEN c.status IN ('Scheduled', 'Running') THEN c.due_at END",
}


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _recreate(op.get_bind())
    else:
        _alter(op.get_bind())
    op.create_table(
        "agent_identity",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("agent_id", KEY, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_agent_identity"),
        sa.CheckConstraint("id = 1", name="ck_agent_identity_only_one"),
        sqlite_strict=True,
    )
    identity = sa.table("agent_identity", sa.column("id"), sa.column("agent_id"))
    op.execute(identity.insert().values(id=1, agent_id=_new_id()))
    _indexes()


def _new_id() -> str:
    return uuid7_text(time.time_ns() // 1_000_000, secrets.randbits(74))


def _indexes() -> None:
    def partial(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
        condition = sa.text(where)
        op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)

    calls = "service_calls"
    partial(
        "idx_service_calls_idempotency_key",
        calls,
        ["tenant_id", "idempotency_key"],
        "idempotency_key IS NOT NULL",
        unique=True,
    )
    op.create_index("idx_service_calls_submitted_at", calls, ["tenant_id", "submitted_at", "service_call_id"])
    op.create_index("idx_service_calls_status", calls, ["tenant_id", "status", "submitted_at", "service_call_id"])
    partial("idx_service_calls_watch_at", calls, ["watch_at"], "watch_at IS NOT NULL")
    partial("idx_service_calls_finished_at", calls, ["finished_at"], "finished_at IS NOT NULL")
    op.create_index(
        "idx_service_call_tags_tag", "service_call_tags", ["tenant_id", "tag", "submitted_at", "service_call_id"]
    )
    partial("idx_timer_schedules_waiting", "timer_schedules", ["due_at", "tenant_id"], "state = 'Scheduled'")
    partial("idx_http_execution_log_unfinished", "http_execution_log", ["started_at"], "finished_at IS NULL")
    partial("idx_outbox_unpublished", "outbox", ["id"], "published_at IS NULL AND parked_at IS NULL")
    op.create_index("idx_outbox_correlation_id", "outbox", ["tenant_id", "correlation_id"])
    partial("idx_outbox_published_at", "outbox", ["published_at"], "published_at IS NOT NULL")


# ------------------------------------------------------------------ PostgreSQL


def _alter(connection: sa.Connection) -> None:
    op.drop_index("idx_service_call_tags_tag", "service_call_tags")
    op.drop_constraint(METHODS_CHECK, "http_execution_log", type_="check")
    op.create_check_constraint(METHODS_CHECK, "http_execution_log", METHODS)
    added: dict[str, list[sa.Column[Any]]] = {
        "service_calls": [
            sa.Column("correlation_id", KEY),
            sa.Column("fingerprint", KEY),
            sa.Column("idempotency_key", KEY),
            sa.Column("execution_id", KEY),
            sa.Column("executions", NUMBER, nullable=False, server_default=sa.text("0")),
            sa.Column("watch_at", INSTANT),
        ],
        "service_call_tags": [sa.Column("submitted_at", INSTANT)],
        "http_execution_log": [sa.Column("correlation_id", KEY)],
        "outbox": [
            sa.Column("envelope_id", KEY),
            sa.Column("correlation_id", KEY),
            sa.Column("causation_id", KEY),
            sa.Column("timestamp_ms", NUMBER),
            sa.Column("attempts", NUMBER, nullable=False, server_default=sa.text("0")),
            sa.Column("last_error", sa.Text),
            sa.Column("parked_at", INSTANT),
        ],
    }
    for table, columns in added.items():
        for column in columns:
            op.add_column(table, column)
    changes = ", ".join(f"{name} = {value.format(old='')}" for name, value in CALL_COLUMNS.items())
    op.execute(f"UPDATE service_calls c SET {changes}")
    same_call = "c.tenant_id = r.tenant_id AND c.service_call_id = r.service_call_id"
    op.execute(f"UPDATE service_call_tags r SET submitted_at = c.submitted_at FROM service_calls c WHERE {same_call}")
    op.execute(
        f"UPDATE http_execution_log r SET correlation_id = c.correlation_id FROM service_calls c WHERE {same_call}"
    )
    op.execute(
        "UPDATE outbox r SET timestamp_ms = floor(extract(epoch FROM created_at) * 1000), correlation_id = coalesce("
        "(SELECT c.correlation_id FROM service_calls c WHERE c.tenant_id = r.tenant_id"
        " AND c.service_call_id = r.aggregate_id), aggregate_id)"
    )
    messages = sa.table("outbox", sa.column("id"), sa.column("envelope_id"))
    changed = messages.update().where(messages.c.id == sa.bindparam("row")).values(envelope_id=sa.bindparam("made"))
    rows = [{"row": row, "made": _new_id()} for (row,) in connection.execute(sa.select(messages.c.id))]
    if rows:
        connection.execute(changed, rows)
    for table, names in {
        "service_calls": ["correlation_id", "fingerprint"],
        "service_call_tags": ["submitted_at"],
        "http_execution_log": ["correlation_id"],
        "outbox": ["envelope_id", "correlation_id", "timestamp_ms"],
    }.items():
        for name in names:
            op.alter_column(table, name, nullable=False)


# ------------------------------------------------------------------ SQLite


def _recreate(connection: sa.Connection) -> None:
    driver: Any = connection.connection.dbapi_connection
    _functions(driver)
    for index in ("service_call_tags_tag", "timer_schedules_due_at", "timer_schedules_correlation_id"):
        op.drop_index(f"idx_{index}")
    for table in TABLES:
        op.rename_table(table, f"old_{table}")
    _create()
    last = connection.exec_driver_sql("SELECT seq FROM sqlite_sequence WHERE name = 'old_outbox'").scalar() or 0
    call = "c.tenant_id, c.service_call_id"
    added = ", ".join(value.format(old="old_") for name, value in CALL_COLUMNS.items() if name != "watch_at")
    op.execute(
        "INSERT INTO service_calls (tenant_id, service_call_id, name, status, submitted_at, due_at, started_at,"
        " finished_at, request_spec, outcome_meta, correlation_id, fingerprint, execution_id, executions, watch_at)"
        f" SELECT {call}, c.name, c.status, fixed_instant(c.submitted_at), fixed_instant(c.due_at),"
        " fixed_instant(c.started_at), fixed_instant(c.finished_at), c.request_spec, c.outcome_meta,"
        f" {added}, fixed_instant({CALL_COLUMNS['watch_at']}) FROM old_service_calls c"
    )
    of_call = "JOIN service_calls c ON c.tenant_id = r.tenant_id AND c.service_call_id = r.service_call_id"
    op.execute(
        "INSERT INTO service_call_tags (tenant_id, service_call_id, tag, submitted_at)"
        f" SELECT {call}, r.tag, c.submitted_at FROM old_service_call_tags r {of_call}"
    )
    op.execute(
        "INSERT INTO timer_schedules (tenant_id, service_call_id, correlation_id, due_at, registered_at, reached_at, state)"
        f" SELECT {call}, r.correlation_id, fixed_instant(r.due_at), fixed_instant(r.registered_at),"
        f" fixed_instant(r.reached_at), r.state FROM old_timer_schedules r {of_call}"
    )
    rest = (
        "request_url, request_method, request_headers, request_body, response_status, response_headers, response_body,"
    )
    op.execute(
        f"INSERT INTO http_execution_log (tenant_id, service_call_id, execution_id, started_at, finished_at, {rest}"
        " error_message, correlation_id)"
        f" SELECT {call}, r.execution_id, fixed_instant(r.started_at), fixed_instant(r.finished_at), {rest}"
        f" error_message, c.correlation_id FROM old_http_execution_log r {of_call}"
    )
    op.execute(
        "INSERT INTO outbox (id, tenant_id, aggregate_id, event_type, event_payload, created_at, published_at,"
        " envelope_id, correlation_id, timestamp_ms)"
        " SELECT r.id, r.tenant_id, r.aggregate_id, r.event_type, r.event_payload, fixed_instant(r.created_at),"
        " fixed_instant(r.published_at), new_id(), coalesce(c.correlation_id, r.aggregate_id),"
        " instant_ms(r.created_at) FROM old_outbox r LEFT JOIN service_calls c ON c.tenant_id = r.tenant_id"
        " AND c.service_call_id = r.aggregate_id ORDER BY r.id"
    )
    for table in reversed(TABLES):
        op.drop_table(f"old_{table}")
    # Numbers are never reused, even if the newest rows were deleted.
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'outbox'")
    op.execute(f"INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', {int(last)})")


def _functions(driver: sqlite3.Connection) -> None:
    def fixed_instant(text: str | None) -> str | None:
        if text is None:
            return None
        instant_us = parse_instant(text)
        return f"{format_instant(instant_us)[:19]}.{instant_us % 1_000_000:06d}Z"

    driver.create_function("fixed_instant", 1, fixed_instant)
    driver.create_function("instant_ms", 1, lambda text: parse_instant(text) // 1_000)
    driver.create_function("new_id", 0, _new_id)


def _create() -> None:
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
        sa.PrimaryKeyConstraint("tenant_id", "service_call_id", name="pk_service_calls"),
        sa.CheckConstraint("status IN ('Scheduled', 'Running', 'Succeeded', 'Failed')", name="ck_service_calls_status"),
        sqlite_strict=True,
    )
    op.create_table(
        "service_call_tags",
        sa.Column("tenant_id", KEY, nullable=False),
        sa.Column("service_call_id", KEY, nullable=False),
        sa.Column("tag", KEY, nullable=False),
        sa.Column("submitted_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "service_call_id", "tag", name="pk_service_call_tags"),
        _of_service_call("service_call_tags"),
        sqlite_strict=True,
    )
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
        sa.Column("correlation_id", KEY, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "service_call_id", "execution_id", name="pk_http_execution_log"),
        _of_service_call("http_execution_log"),
        sa.CheckConstraint(METHODS, name=METHODS_CHECK),
        sqlite_strict=True,
    )
    op.create_table(
        "outbox",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("tenant_id", KEY, nullable=False),
        sa.Column("aggregate_id", KEY, nullable=False),
        sa.Column("event_type", KEY, nullable=False),
        sa.Column("event_payload", sa.Text, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("published_at", INSTANT),
        sa.Column("envelope_id", KEY, nullable=False),
        sa.Column("correlation_id", KEY, nullable=False),
        sa.Column("causation_id", KEY),
        sa.Column("timestamp_ms", NUMBER, nullable=False),
        sa.Column("attempts", NUMBER, nullable=False, server_default=sa.text("0")),
        sa.Column("last_error", sa.Text),
        sa.Column("parked_at", INSTANT),
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
