"""What the execution module asks of its database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from tocsin.agent.messages import CallKey
from tocsin.model.envelope import Envelope
from tocsin.model.secrets import SigningSecrets


class ExecutionStart(NamedTuple):
    """A row of `http_execution_log` as it begins: headers redacted, body a snippet, with the correlation id of its call."""

    tenant_id: str
    service_call_id: str
    execution_id: str
    correlation_id: str
    started_at: int
    request_url: str
    request_method: str
    request_headers: dict[str, str]
    request_body: str | None

    @property
    def key(self) -> CallKey:
        """Tenant and service call."""
        return CallKey(self.tenant_id, self.service_call_id)


class ExecutionEnd(NamedTuple):
    """How it ended. Everything but `finished_at` may be None: no answer, or no error."""

    tenant_id: str
    service_call_id: str
    execution_id: str
    finished_at: int
    response_status: int | None
    response_headers: dict[str, str] | None
    response_body: str | None
    error_message: str | None


class LoggedExecution(NamedTuple):
    """A row of the log; `end` None: it has not finished."""

    start: ExecutionStart
    end: ExecutionEnd | None


class ExecutionLog(Protocol):
    """The table `http_execution_log`, with the outbox in the same transaction. All raise StoreError."""

    async def begin(self, starts: Sequence[tuple[ExecutionStart, Envelope]]) -> set[str]:
        """Adds rows, and each one's event to the outbox; returns the execution ids that were added. Those that are in the
        log already, or whose call no longer exists, are left out with their events, and take no other along."""

    async def finish(self, ends: Sequence[tuple[ExecutionEnd, Envelope]]) -> set[str]:
        """Completes rows that have not finished, and adds each one's event to the outbox; returns which were completed."""

    async def unfinished(self, limit: int) -> list[ExecutionStart]:
        """Rows that began and have not finished, of all tenants, in no special order."""

    async def find(self, keys: Collection[tuple[str, str, str]]) -> dict[str, LoggedExecution]:
        """The rows that there are by tenant, call and execution, under their execution ids."""

    async def report(self, events: Sequence[Envelope]) -> None:
        """Adds events about rows to the outbox; the rows stay as they are."""


class TenantSecrets(Protocol):
    """With what service calls are signed."""

    async def find(self, tenant_ids: Collection[str]) -> dict[str, SigningSecrets]:
        """The secrets of those of the tenants that have any, as they are now. Raises StoreError."""
