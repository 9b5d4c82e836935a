"""The ports of the execution module: its database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from tocsin.model.secrets import SigningSecrets
from tocsin.ports.bus import Envelope
from tocsin.service_calls.messages import CallKey


class ExecutionStart(NamedTuple):
    """The start of a row of `http_execution_log`: headers redacted, the body cut to a snippet, with the correlation id
    of its call."""

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
    """The end of a row of `http_execution_log`. All response fields are None without a response, `error_message` is
    None without an error."""

    tenant_id: str
    service_call_id: str
    execution_id: str
    finished_at: int
    response_status: int | None
    response_headers: dict[str, str] | None
    response_body: str | None
    error_message: str | None


class LoggedExecution(NamedTuple):
    """A row of the log. `end` is None if the execution has not finished."""

    start: ExecutionStart
    end: ExecutionEnd | None


class ExecutionLog(Protocol):
    """The table `http_execution_log`, with the outbox in the same transaction. All methods raise StoreError."""

    async def begin(self, starts: Sequence[tuple[ExecutionStart, Envelope]]) -> set[str]:
        """Adds rows, and the event of each to the outbox. Returns the execution ids that were added. An execution that
        is logged already, or whose call no longer exists, is left out with its event, without affecting the others."""

    async def finish(self, ends: Sequence[tuple[ExecutionEnd, Envelope]]) -> set[str]:
        """Completes rows that are unfinished, and adds the event of each to the outbox. Returns the ids of those that
        were completed."""

    async def unfinished(self, limit: int) -> list[ExecutionStart]:
        """Rows without an end, of all tenants, in no particular order."""

    async def find(self, keys: Collection[tuple[str, str, str]]) -> dict[str, LoggedExecution]:
        """The existing rows by tenant, call and execution, as a dict by execution id."""

    async def report(self, events: Sequence[Envelope]) -> None:
        """Adds events about rows to the outbox. The rows do not change."""


class TenantSecrets(Protocol):
    """The secrets that sign service calls."""

    async def find(self, tenant_ids: Collection[str]) -> dict[str, SigningSecrets]:
        """The current secrets of those tenants that have any. Raises StoreError."""
