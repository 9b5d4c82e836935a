"""The tables after the newest migration.

The first five are those of the reference schema. Columns and indexes that the agent adds are marked "Added". Every key
starts with the tenant, and rows that refer to a call are deleted with it.
"""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    text,
)

from tocsin.stores.service_calls.types import FreeText, Instant, Json, KeyText, Number

metadata = MetaData()


def _of_service_call(table: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", "service_call_id"],
        ["service_calls.tenant_id", "service_calls.service_call_id"],
        name=f"fk_{table}_service_call",
        ondelete="CASCADE",
    )


service_calls = Table(
    "service_calls",
    metadata,
    Column("tenant_id", KeyText, nullable=False),
    Column("service_call_id", KeyText, nullable=False),
    Column("name", FreeText, nullable=False),
    Column("status", KeyText, nullable=False),
    Column("submitted_at", Instant, nullable=False),
    Column("due_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    Column("request_spec", Json, nullable=False),
    Column("outcome_meta", Json),
    # Added: the request that submitted the call, and a digest to recognize its repetitions.
    Column("correlation_id", KeyText, nullable=False),
    Column("fingerprint", KeyText, nullable=False),
    Column("idempotency_key", KeyText),
    # Added: the execution that was ordered last, and how many were ordered.
    Column("execution_id", KeyText),
    Column("executions", Number, nullable=False, server_default=text("0")),
    # Added: when the watchdog checks the call, while it has not finished.
    Column("watch_at", Instant),
    # Added: the retry policy, and the state of the retries.
    Column("retry_policy", Json),
    Column("attempts", Number, nullable=False, server_default=text("0")),
    Column("first_attempt_at", Instant),
    Column("next_attempt_at", Instant),
    PrimaryKeyConstraint("tenant_id", "service_call_id", name="pk_service_calls"),
    CheckConstraint(
        "status IN ('Scheduled', 'Running', 'Retrying', 'Succeeded', 'Failed')", name="ck_service_calls_status"
    ),
    sqlite_strict=True,
)
calls = service_calls.c
Index(
    "idx_service_calls_idempotency_key",
    calls.tenant_id,
    calls.idempotency_key,
    unique=True,
    sqlite_where=text("idempotency_key IS NOT NULL"),
    postgresql_where=text("idempotency_key IS NOT NULL"),
)
#: Pages, the newest first, without and with a status.
Index("idx_service_calls_submitted_at", calls.tenant_id, calls.submitted_at, calls.service_call_id)
Index("idx_service_calls_status", calls.tenant_id, calls.status, calls.submitted_at, calls.service_call_id)
#: Pages of the calls with one correlation id.
Index(
    "idx_service_calls_correlation_id",
    calls.tenant_id,
    calls.correlation_id,
    calls.submitted_at,
    calls.service_call_id,
)
#: For the watchdog, over all tenants: only calls that have not finished.
Index(
    "idx_service_calls_watch_at",
    calls.watch_at,
    sqlite_where=text("watch_at IS NOT NULL"),
    postgresql_where=text("watch_at IS NOT NULL"),
)
#: For the purge, over all tenants.
Index(
    "idx_service_calls_finished_at",
    calls.finished_at,
    sqlite_where=text("finished_at IS NOT NULL"),
    postgresql_where=text("finished_at IS NOT NULL"),
)

service_call_tags = Table(
    "service_call_tags",
    metadata,
    Column("tenant_id", KeyText, nullable=False),
    Column("service_call_id", KeyText, nullable=False),
    Column("tag", KeyText, nullable=False),
    # Added: a copy of the call's, so that a page by tag is one range of an index.
    Column("submitted_at", Instant, nullable=False),
    PrimaryKeyConstraint("tenant_id", "service_call_id", "tag", name="pk_service_call_tags"),
    _of_service_call("service_call_tags"),
    sqlite_strict=True,
)
tags = service_call_tags.c
Index("idx_service_call_tags_tag", tags.tenant_id, tags.tag, tags.submitted_at, tags.service_call_id)

timer_schedules = Table(
    "timer_schedules",
    metadata,
    Column("tenant_id", KeyText, nullable=False),
    Column("service_call_id", KeyText, nullable=False),
    Column("correlation_id", KeyText, nullable=False),
    Column("due_at", Instant, nullable=False),
    Column("registered_at", Instant, nullable=False),
    Column("reached_at", Instant),
    Column("state", KeyText, nullable=False, server_default=text("'Scheduled'")),
    PrimaryKeyConstraint("tenant_id", "service_call_id", name="pk_timer_schedules"),
    _of_service_call("timer_schedules"),
    CheckConstraint("state IN ('Scheduled', 'Reached')", name="ck_timer_schedules_state"),
    sqlite_strict=True,
)
schedules = timer_schedules.c
Index("idx_timer_schedules_due_at", schedules.tenant_id, schedules.state, schedules.due_at)
Index("idx_timer_schedules_correlation_id", schedules.correlation_id)
#: Added: waiting schedules over all tenants, for the next due time and the tenants with due schedules.
Index(
    "idx_timer_schedules_waiting",
    schedules.due_at,
    schedules.tenant_id,
    sqlite_where=text("state = 'Scheduled'"),
    postgresql_where=text("state = 'Scheduled'"),
)

http_execution_log = Table(
    "http_execution_log",
    metadata,
    Column("tenant_id", KeyText, nullable=False),
    Column("service_call_id", KeyText, nullable=False),
    Column("execution_id", KeyText, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("finished_at", Instant),
    Column("request_url", FreeText, nullable=False),
    Column("request_method", KeyText, nullable=False),
    Column("request_headers", Json, nullable=False),
    Column("request_body", FreeText),
    Column("response_status", KeyText),
    Column("response_headers", Json),
    Column("response_body", FreeText),
    Column("error_message", FreeText),
    # Added: for the event that reports an interrupted execution.
    Column("correlation_id", KeyText, nullable=False),
    PrimaryKeyConstraint("tenant_id", "service_call_id", "execution_id", name="pk_http_execution_log"),
    _of_service_call("http_execution_log"),
    CheckConstraint(
        "request_method IN ('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS')",
        name="ck_http_execution_log_request_method",
    ),
    sqlite_strict=True,
)
executions = http_execution_log.c
#: Added: executions that an earlier run of the process left unfinished.
Index(
    "idx_http_execution_log_unfinished",
    executions.started_at,
    sqlite_where=text("finished_at IS NULL"),
    postgresql_where=text("finished_at IS NULL"),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Number, Identity(always=False), nullable=False),
    Column("tenant_id", KeyText, nullable=False),
    Column("aggregate_id", KeyText, nullable=False),
    Column("event_type", KeyText, nullable=False),
    Column("event_payload", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("published_at", Instant),
    # Added: the rest of the envelope.
    Column("envelope_id", KeyText, nullable=False),
    Column("correlation_id", KeyText, nullable=False),
    Column("causation_id", KeyText),
    Column("timestamp_ms", Number, nullable=False),
    # Added: the state of publishing. `parked_at`: when the message was suspended.
    Column("attempts", Number, nullable=False, server_default=text("0")),
    Column("last_error", FreeText),
    Column("parked_at", Instant),
    PrimaryKeyConstraint("id", name="pk_outbox"),
    sqlite_strict=True,
    sqlite_autoincrement=True,
)
messages = outbox.c
#: Added: unpublished messages; traces; the purge.
Index(
    "idx_outbox_unpublished",
    messages.id,
    sqlite_where=text("published_at IS NULL AND parked_at IS NULL"),
    postgresql_where=text("published_at IS NULL AND parked_at IS NULL"),
)
Index("idx_outbox_correlation_id", messages.tenant_id, messages.correlation_id)
Index(
    "idx_outbox_published_at",
    messages.published_at,
    sqlite_where=text("published_at IS NOT NULL"),
    postgresql_where=text("published_at IS NOT NULL"),
)

#: Added: one row with a UUID created with the database, which identifies what is stored elsewhere for this database.
agent_identity = Table(
    "agent_identity",
    metadata,
    Column("id", Integer, nullable=False, autoincrement=False),
    Column("agent_id", KeyText, nullable=False),
    PrimaryKeyConstraint("id", name="pk_agent_identity"),
    CheckConstraint("id = 1", name="ck_agent_identity_only_one"),
    sqlite_strict=True,
)

#: Added: one row with the node that runs the agent on a shared database. `term` is the epoch: it grows with every takeover
#: and fences every write. With SQLite, whose file one process locks, neither this table nor the heartbeat is used.
agent_leader = Table(
    "agent_leader",
    metadata,
    Column("id", Integer, nullable=False, autoincrement=False),
    Column("term", Number, nullable=False),
    Column("node", FreeText, nullable=False),
    Column("incarnation", KeyText, nullable=False),
    Column("since", Instant),
    PrimaryKeyConstraint("id", name="pk_agent_leader"),
    CheckConstraint("id = 1", name="ck_agent_leader_only_one"),
    sqlite_strict=True,
)
#: Added: grows while that node is alive. A table of its own, because every write locks the row above.
agent_heartbeat = Table(
    "agent_heartbeat",
    metadata,
    Column("id", Integer, nullable=False, autoincrement=False),
    Column("beats", Number, nullable=False),
    PrimaryKeyConstraint("id", name="pk_agent_heartbeat"),
    CheckConstraint("id = 1", name="ck_agent_heartbeat_only_one"),
    sqlite_strict=True,
)

#: Added: the secrets that sign a tenant's service calls, encoded by `tocsin.model.secrets`.
tenant_secrets = Table(
    "tenant_secrets",
    metadata,
    Column("tenant_id", KeyText, nullable=False),
    Column("secrets", Json, nullable=False),
    PrimaryKeyConstraint("tenant_id", name="pk_tenant_secrets"),
    sqlite_strict=True,
)
