"""Adds the agent's columns to the reference schema. Existing rows are kept.

New columns are filled before they become NOT NULL. SQLite can change neither that nor a CHECK: Alembic's batch operations
create the table again there and copy it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from alembic import op

from tocsin.model.ids import uuid7_text
from tocsin.model.instants import parse_instant
from tocsin.stores.service_calls.columns import only_row, optional, required
from tocsin.stores.service_calls.types import Instant, KeyText, Number, to_text

revision = "0002"
down_revision = "0001"

#: The agent supports more methods than the reference schema.
METHODS = "request_method IN ('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS')"
METHODS_CHECK = "ck_http_execution_log_request_method"

#: The value of each new column; `c` is the row's service call. An existing call has no fingerprint, its id replaces the
#: missing correlation id, and the watchdog checks unfinished calls at once.
CALL_COLUMNS = {
    "correlation_id": "coalesce((SELECT t.correlation_id FROM timer_schedules t WHERE t.tenant_id = c.tenant_id"
    " AND t.service_call_id = c.service_call_id), c.service_call_id)",
    "fingerprint": "''",
    "execution_id": "(SELECT max(e.execution_id) FROM http_execution_log e WHERE e.tenant_id = c.tenant_id"
    " AND e.service_call_id = c.service_call_id)",
    "executions": "(SELECT count(*) FROM http_execution_log e WHERE e.tenant_id = c.tenant_id"
    " AND e.service_call_id = c.service_call_id)",
    "watch_at": "CASE WHEN c.status IN ('Scheduled', 'Running') THEN c.due_at END",
}
#: Instants that SQLite has in any form of RFC 3339.
INSTANTS = {
    "service_calls": ("submitted_at", "due_at", "started_at", "finished_at"),
    "timer_schedules": ("due_at", "registered_at", "reached_at"),
    "http_execution_log": ("started_at", "finished_at"),
    "outbox": ("created_at", "published_at"),
}
FILLED = {
    "service_calls": ("correlation_id", "fingerprint"),
    "service_call_tags": ("submitted_at",),
    "http_execution_log": ("correlation_id",),
    "outbox": ("envelope_id", "correlation_id", "timestamp_ms"),
}
SAME_CALL = "c.tenant_id = r.tenant_id AND c.service_call_id = r.service_call_id"


def upgrade() -> None:
    connection = op.get_bind()
    op.drop_index("idx_service_call_tags_tag", "service_call_tags")
    _add()
    with _numbers_kept(connection):
        if connection.dialect.name == "sqlite":
            _clean(connection)
        _fill(connection)
        _require()
    op.create_table("agent_identity", *only_row("agent_identity"), *required(KeyText, "agent_id"), sqlite_strict=True)
    identity = sa.table("agent_identity", sa.column("id"), sa.column("agent_id"))
    op.execute(identity.insert().values(id=1, agent_id=_new_id()))
    _indexes()


def _new_id() -> str:
    return uuid7_text(time.time_ns() // 1_000_000, secrets.randbits(74))


def _add() -> None:
    none = sa.text("0")
    added: dict[str, list[sa.Column[Any]]] = {
        "service_calls": [
            *optional(KeyText, "correlation_id", "fingerprint", "idempotency_key", "execution_id"),
            sa.Column("executions", Number, nullable=False, server_default=none),
            *optional(Instant, "watch_at"),
        ],
        "service_call_tags": optional(Instant, "submitted_at"),
        "http_execution_log": optional(KeyText, "correlation_id"),
        "outbox": [
            *optional(KeyText, "envelope_id", "correlation_id", "causation_id"),
            *optional(Number, "timestamp_ms"),
            sa.Column("attempts", Number, nullable=False, server_default=none),
            *optional(sa.Text, "last_error"),
            *optional(Instant, "parked_at"),
        ],
    }
    for table, columns in added.items():
        for column in columns:
            op.add_column(table, column)


@contextmanager
def _numbers_kept(connection: sa.Connection) -> Iterator[None]:
    """Numbers of messages are never reused, even if the newest rows were deleted: SQLite forgets them with the table."""
    if connection.dialect.name != "sqlite":
        yield
        return
    last = connection.exec_driver_sql("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").scalar() or 0
    yield
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'outbox'")
    op.execute(f"INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', {int(last)})")


def _clean(connection: sa.Connection) -> None:
    """Gives instants the fixed form, and removes rows without a service call: SQLite checks references only if asked to."""
    driver: Any = connection.connection.dbapi_connection
    driver.create_function("fixed_instant", 1, lambda text: None if text is None else to_text(parse_instant(text)))
    for table, names in INSTANTS.items():
        op.execute(f"UPDATE {table} SET " + ", ".join(f"{name} = fixed_instant({name})" for name in names))
    for table in ("service_call_tags", "timer_schedules", "http_execution_log"):
        op.execute(f"DELETE FROM {table} AS r WHERE NOT EXISTS (SELECT 1 FROM service_calls c WHERE {SAME_CALL})")


def _fill(connection: sa.Connection) -> None:
    changes = ", ".join(f"{name} = {value}" for name, value in CALL_COLUMNS.items())
    op.execute(f"UPDATE service_calls AS c SET {changes}")
    for table, name in (("service_call_tags", "submitted_at"), ("http_execution_log", "correlation_id")):
        op.execute(f"UPDATE {table} AS r SET {name} = c.{name} FROM service_calls c WHERE {SAME_CALL}")
    op.execute(
        "UPDATE outbox AS r SET correlation_id = coalesce((SELECT c.correlation_id FROM service_calls c"
        " WHERE c.tenant_id = r.tenant_id AND c.service_call_id = r.aggregate_id), aggregate_id)"
    )
    messages = sa.table(
        "outbox",
        sa.column("id"),
        sa.column("envelope_id"),
        sa.column("created_at", Instant),
        sa.column("timestamp_ms", Number),
    )
    found = connection.execute(sa.select(messages.c.id, messages.c.created_at)).all()
    rows = [{"row": row, "made": _new_id(), "ms": created_at // 1_000} for row, created_at in found]
    if rows:
        changed = messages.update().where(messages.c.id == sa.bindparam("row"))
        connection.execute(changed.values(envelope_id=sa.bindparam("made"), timestamp_ms=sa.bindparam("ms")), rows)


def _require() -> None:
    for table, names in FILLED.items():
        kept = {"sqlite_strict": True, "sqlite_autoincrement": table == "outbox"}
        with op.batch_alter_table(table, table_kwargs=kept) as batch:
            for name in names:
                batch.alter_column(name, nullable=False)
            if table == "http_execution_log":
                batch.drop_constraint(METHODS_CHECK, type_="check")
                batch.create_check_constraint(METHODS_CHECK, sa.text(METHODS))


def _indexes() -> None:
    def index(table: str, name: str, columns: list[str], where: str = "", *, unique: bool = False) -> None:
        condition: dict[str, Any] = {
            f"{dialect}_where": sa.text(where) for dialect in ("sqlite", "postgresql") if where
        }
        op.create_index(f"idx_{table}_{name}", table, columns, unique=unique, **condition)

    calls, submitted = "service_calls", ["submitted_at", "service_call_id"]
    key = ["tenant_id", "idempotency_key"]
    index(calls, "idempotency_key", key, "idempotency_key IS NOT NULL", unique=True)
    index(calls, "submitted_at", ["tenant_id", *submitted])
    index(calls, "status", ["tenant_id", "status", *submitted])
    index(calls, "watch_at", ["watch_at"], "watch_at IS NOT NULL")
    index(calls, "finished_at", ["finished_at"], "finished_at IS NOT NULL")
    index("service_call_tags", "tag", ["tenant_id", "tag", *submitted])
    index("timer_schedules", "waiting", ["due_at", "tenant_id"], "state = 'Scheduled'")
    index("http_execution_log", "unfinished", ["started_at"], "finished_at IS NULL")
    index("outbox", "unpublished", ["id"], "published_at IS NULL AND parked_at IS NULL")
    index("outbox", "correlation_id", ["tenant_id", "correlation_id"])
    index("outbox", "published_at", ["published_at"], "published_at IS NOT NULL")
