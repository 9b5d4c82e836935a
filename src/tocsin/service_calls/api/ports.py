"""The read ports of the agent's API module. Writes are commands on the bus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tocsin.model.retry import RetryPolicy
from tocsin.model.secrets import SigningSecrets
from tocsin.service_calls.messages import CallKey, RequestSpec


class CallRecord(NamedTuple):
    """A service call as it is shown. Instants in microseconds. `outcome` is the stored JSON, None until there is one.
    `next_attempt_at` is set while the call is Retrying."""

    tenant_id: str
    service_call_id: str
    name: str
    status: str
    submitted_at: int
    due_at: int
    started_at: int | None
    finished_at: int | None
    request_spec: RequestSpec
    outcome: dict[str, Any] | None
    correlation_id: str
    tags: tuple[str, ...]
    retry_policy: RetryPolicy | None = None
    attempts: int = 0
    next_attempt_at: int | None = None


class ExecutionRecord(NamedTuple):
    """A row of the execution log."""

    execution_id: str
    started_at: int
    finished_at: int | None
    request_url: str
    request_method: str
    request_headers: dict[str, str]
    request_body: str | None
    response_status: int | None
    response_headers: dict[str, str] | None
    response_body: str | None
    error_message: str | None


class TraceEntry(NamedTuple):
    """One step that a request led to. `kind` is `message` (a row of the outbox) or the name of a table."""

    at: int
    kind: str
    name: str
    id: str
    causation_id: str | None
    detail: dict[str, Any]


class SearchResult(NamedTuple):
    """The result of a search. `reached` is the last call that was read if the search stopped at its limit of calls;
    None if it read all calls or found enough."""

    calls: list[CallRecord]
    reached: PagePosition | None


class PagePosition(NamedTuple):
    """Where a page ended: the position of its last call."""

    submitted_at: int
    service_call_id: str


@dataclass(frozen=True, slots=True)
class CallFilter:
    """Selects calls. `submitted_from` is inclusive, `submitted_to` exclusive; `before` continues after a previous page.
    Empty sets match any call; a call must have all of several tags. `correlation_id` is matched exactly, `name` as a
    substring, with letters A to Z in either case; empty matches any."""

    tenant_id: str
    statuses: frozenset[str] = field(default_factory=frozenset)
    tags: tuple[str, ...] = ()
    submitted_from: int | None = None
    submitted_to: int | None = None
    before: PagePosition | None = None
    limit: int = 50
    correlation_id: str = ""
    name: str = ""


class CallQueries(Protocol):
    """Reads of one tenant's calls, each with an index. All methods raise StoreError."""

    async def find(self, key: CallKey) -> CallRecord | None:
        """One call, or None."""

    async def find_many(self, keys: Sequence[CallKey]) -> list[CallRecord]:
        """The calls that exist, in any order."""

    async def page(self, wanted: CallFilter) -> list[CallRecord]:
        """At most `limit` calls by submission, the newest first. Ignores the filter's name."""

    async def search(self, wanted: CallFilter) -> SearchResult:
        """At most `limit` calls whose names match, among a bounded number of calls: no index covers names."""

    async def executions(self, key: CallKey) -> list[ExecutionRecord]:
        """The call's executions, in order."""

    async def trace(self, key: CallKey) -> list[TraceEntry]:
        """Everything with this call's correlation id, of its tenant only: rows and messages in order of time, each
        after its cause."""


class TenantSecrets(Protocol):
    """The secrets that sign service calls."""

    async def change(self, tenant_id: str, change: Callable[[SigningSecrets], SigningSecrets]) -> SigningSecrets:
        """Stores the result of `change` for the tenant's secrets. Returns it once it is durable and every execution
        that begins uses it. An error of `change` is raised, and nothing is stored. Raises StoreError."""
