"""A service call as a pure state machine. Every transition is here; nothing here does I/O."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.agent.messages import ErrorMeta, Key, RequestSpec, ResponseMeta


class Status(StrEnum):
    """Scheduled → Running → Succeeded or Failed; the last two are final."""

    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Outcome(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """How a call ended: `response_meta` when the service answered, `error_meta` when the call failed."""

    response_meta: ResponseMeta | None = None
    error_meta: ErrorMeta | None = None


class ServiceCall(msgspec.Struct, frozen=True, gc=False):
    """The state of one call. Instants in microseconds.

    `execution_id` names the execution ordered last, `executions` counts them, `started_at` is when it began. `watch_at` is
    when the watchdog has to look after it, None once it has finished. `tags` are those it was submitted with; they are
    not loaded with it.
    """

    tenant_id: str
    service_call_id: str
    name: str
    status: Status
    submitted_at: int
    due_at: int
    request_spec: RequestSpec
    correlation_id: str
    fingerprint: str
    watch_at: int | None
    idempotency_key: str | None = None
    started_at: int | None = None
    finished_at: int | None = None
    outcome: Outcome | None = None
    execution_id: str | None = None
    executions: int = 0
    tags: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """Tenant and id."""
        return Key(self.tenant_id, self.service_call_id)
