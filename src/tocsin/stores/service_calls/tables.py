"""The tables after the newest migration.

The first five are those of the reference schema. Columns and indexes that the agent adds are marked "Added". Every key
starts with the tenant, and rows that refer to a call are deleted with it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import CheckConstraint, Column, Identity, Index, MetaData, Table, Text, text

from tocsin.model.retry import RetryPolicy
from tocsin.service_calls.messages import RequestSpec
from tocsin.stores.service_calls.columns import of_service_call, only_row, optional, primary_key, required
from tocsin.stores.service_calls.types import Digits, FreeText, Instant, Json, KeyText, Number

metadata = MetaData()
#: The columns that identify a service call.
KEY = ("tenant_id", "service_call_id")


def _table(name: str, *parts: Any, **options: Any) -> Table:
    return Table(name, metadata, *parts, sqlite_strict=True, **options)


def _count(name: str) -> Column[int]:
    return Column(name, Number, nullable=False, server_default=text("0"))


def _index(table: Table, name: str, *columns: str, where: str = "", unique: bool = False) -> Index:
    """An index, of the rows with a condition if there is one."""
    condition: dict[str, Any] = {f"{dialect}_where": text(where) for dialect in ("sqlite", "postgresql") if where}
    return Index(f"idx_{table.name}_{name}", *(table.c[column] for column in columns), unique=unique, **condition)


service_calls = _table(
    "service_calls",
    *required(KeyText, *KEY),
    *required(FreeText, "name"),
    *required(KeyText, "status"),
    *required(Instant, "submitted_at", "due_at"),
    *optional(Instant, "started_at", "finished_at"),
    *required(Json(RequestSpec), "request_spec"),
    *optional(Json(dict[str, Any]), "outcome_meta"),
    # Added: the request that submitted the call, and a digest to recognize its repetitions.
    *required(KeyText, "correlation_id", "fingerprint"),
    *optional(KeyText, "idempotency_key"),
    # Added: the execution that was ordered last, and how many were ordered.
    *optional(KeyText, "execution_id"),
    _count("executions"),
    # Added: when the watchdog checks the call, while it has not finished.
    *optional(Instant, "watch_at"),
    # Added: the retry policy, and the state of the retries.
    *optional(Json(RetryPolicy), "retry_policy"),
    _count("attempts"),
    *optional(Instant, "first_attempt_at", "next_attempt_at"),
    # Added: of the request that submitted the call, for the traces of its executions.
    *optional(KeyText, "traceparent"),
    primary_key("service_calls", *KEY),
    CheckConstraint(
        "status IN ('Scheduled', 'Running', 'Retrying', 'Succeeded', 'Failed')", name="ck_service_calls_status"
    ),
)
_index(
    service_calls, "idempotency_key", "tenant_id", "idempotency_key", where="idempotency_key IS NOT NULL", unique=True
)
#: Pages, the newest first: of all calls, with a status, and with one correlation id.
_index(service_calls, "submitted_at", "tenant_id", "submitted_at", "service_call_id")
_index(service_calls, "status", "tenant_id", "status", "submitted_at", "service_call_id")
_index(service_calls, "correlation_id", "tenant_id", "correlation_id", "submitted_at", "service_call_id")
#: For the watchdog, over all tenants: only calls that have not finished. For the purge, likewise.
_index(service_calls, "watch_at", "watch_at", where="watch_at IS NOT NULL")
_index(service_calls, "finished_at", "finished_at", where="finished_at IS NOT NULL")

service_call_tags = _table(
    "service_call_tags",
    *required(KeyText, *KEY, "tag"),
    # Added: a copy of the call's, so that a page by tag is one range of an index.
    *required(Instant, "submitted_at"),
    primary_key("service_call_tags", *KEY, "tag"),
    of_service_call("service_call_tags"),
)
_index(service_call_tags, "tag", "tenant_id", "tag", "submitted_at", "service_call_id")

timer_schedules = _table(
    "timer_schedules",
    *required(KeyText, *KEY, "correlation_id"),
    *required(Instant, "due_at", "registered_at"),
    *optional(Instant, "reached_at"),
    Column("state", KeyText, nullable=False, server_default=text("'Scheduled'")),
    primary_key("timer_schedules", *KEY),
    of_service_call("timer_schedules"),
    CheckConstraint("state IN ('Scheduled', 'Reached')", name="ck_timer_schedules_state"),
)
_index(timer_schedules, "due_at", "tenant_id", "state", "due_at")
_index(timer_schedules, "correlation_id", "correlation_id")
#: Added: waiting schedules over all tenants, for the next due time and the tenants with due schedules.
_index(timer_schedules, "waiting", "due_at", "tenant_id", where="state = 'Scheduled'")

http_execution_log = _table(
    "http_execution_log",
    *required(KeyText, *KEY, "execution_id"),
    *required(Instant, "started_at"),
    *optional(Instant, "finished_at"),
    *required(FreeText, "request_url"),
    *required(KeyText, "request_method"),
    *required(Json(dict[str, str]), "request_headers"),
    *optional(FreeText, "request_body"),
    *optional(Digits, "response_status"),
    *optional(Json(dict[str, str]), "response_headers"),
    *optional(FreeText, "response_body", "error_message"),
    # Added: for the event that reports an interrupted execution.
    *required(KeyText, "correlation_id"),
    primary_key("http_execution_log", *KEY, "execution_id"),
    of_service_call("http_execution_log"),
    CheckConstraint(
        "request_method IN ('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS')",
        name="ck_http_execution_log_request_method",
    ),
)
#: Added: executions that an earlier run of the process left unfinished.
_index(http_execution_log, "unfinished", "started_at", where="finished_at IS NULL")

outbox = _table(
    "outbox",
    Column("id", Number, Identity(always=False), nullable=False),
    *required(KeyText, "tenant_id", "aggregate_id", "event_type"),
    *required(Json(msgspec.Raw), "event_payload"),
    *required(Instant, "created_at"),
    *optional(Instant, "published_at"),
    # Added: the rest of the envelope.
    *required(KeyText, "envelope_id", "correlation_id"),
    *optional(KeyText, "causation_id"),
    *required(Number, "timestamp_ms"),
    # Added: the state of publishing. `parked_at`: when the message was suspended.
    _count("attempts"),
    *optional(FreeText, "last_error"),
    *optional(Instant, "parked_at"),
    primary_key("outbox", "id"),
    sqlite_autoincrement=True,
)
#: Added: unpublished messages; traces; the purge.
_index(outbox, "unpublished", "id", where="published_at IS NULL AND parked_at IS NULL")
_index(outbox, "correlation_id", "tenant_id", "correlation_id")
_index(outbox, "published_at", "published_at", where="published_at IS NOT NULL")

#: Added: one row with a UUID created with the database, which identifies what is stored elsewhere for this database.
agent_identity = _table("agent_identity", *only_row("agent_identity"), *required(KeyText, "agent_id"))

#: Added: one row with the node that runs the agent on a shared database. `term` is the epoch: it grows with every takeover
#: and fences every write. With SQLite, whose file one process locks, neither this table nor the heartbeat is used.
agent_leader = _table(
    "agent_leader",
    *only_row("agent_leader"),
    *required(Number, "term"),
    *required(FreeText, "node"),
    *required(KeyText, "incarnation"),
    *optional(Instant, "since"),
)
#: Added: grows while that node is alive. A table of its own, because every write locks the row above.
agent_heartbeat = _table("agent_heartbeat", *only_row("agent_heartbeat"), *required(Number, "beats"))

#: Added: the secrets that sign a tenant's service calls, encoded by `tocsin.model.secrets`.
tenant_secrets = _table(
    "tenant_secrets",
    *required(KeyText, "tenant_id"),
    *required(Text, "secrets"),
    primary_key("tenant_secrets", "tenant_id"),
)
