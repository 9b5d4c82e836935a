"""What the agent's API module reads. Writing goes by commands on the bus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tocsin.agent.messages import CallKey, RequestSpec
from tocsin.model.retry import RetryPolicy
from tocsin.model.secrets import SigningSecrets


class CallRecord(NamedTuple):
    """A service call as it is shown. Instants in microseconds; `outcome` as JSON stored it, None while there is none.
    `next_attempt_at` is there while it is Retrying."""

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
    """One thing that one request led to. `kind` is `message` (a row of the outbox) or the name of a table."""

    at: int
    kind: str
    name: str
    id: str
    causation_id: str | None
    detail: dict[str, Any]


class SearchResult(NamedTuple):
    """What a search came to. `reached`: it ended there, at the last call that was looked at, because it had looked at as many
    as one search does; None when it ended with the last call, or with as many as were wanted."""

    calls: list[CallRecord]
    reached: PagePosition | None


class PagePosition(NamedTuple):
    """Where a page ended: the last call's."""

    submitted_at: int
    service_call_id: str


@dataclass(frozen=True, slots=True)
class CallFilter:
    """Which calls. `submitted_from` is inclusive, `submitted_to` exclusive; `before` continues after a former page. Empty
    sets mean any; several tags must all be there. `correlation_id` is the whole of it, `name` a part of it, letters A to Z in
    either case; empty means any."""

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
    """Reads of one tenant's calls, each on an index. All raise StoreError."""

    async def find(self, key: CallKey) -> CallRecord | None:
        """One call."""

    async def find_many(self, keys: Sequence[CallKey]) -> list[CallRecord]:
        """Those of the calls that there are, in any order."""

    async def page(self, wanted: CallFilter) -> list[CallRecord]:
        """At most `limit` calls, by submission, the newest first, whatever their names."""

    async def search(self, wanted: CallFilter) -> SearchResult:
        """The same of those whose names match, among a bounded number of calls: no index knows names."""

    async def executions(self, key: CallKey) -> list[ExecutionRecord]:
        """The call's executions, in their order."""

    async def trace(self, key: CallKey) -> list[TraceEntry]:
        """Everything that is known by the correlation id of this call, of its tenant alone: rows of the tables and messages,
        in the order of time, nothing before what caused it."""


class TenantSecrets(Protocol):
    """With what service calls are signed."""

    async def change(self, tenant_id: str, change: Callable[[SigningSecrets], SigningSecrets]) -> SigningSecrets:
        """Stores what `change` makes of the tenant's secrets, and returns it once it is durable and every call that begins
        is signed so. What `change` raises is raised, and nothing stored. Raises StoreError."""
