"""Service calls, for what works on them from outside of the service agent: jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from tocsin.model.job import RowFilter

#: One tenant, several, or all of them (None).
Tenants = str | tuple[str, ...] | None


class CallFailurePlace(NamedTuple):
    """The place of a failure in the order of all: by instant (microseconds), call and tenant."""

    failed_at: int
    service_call_id: str
    tenant_id: str


class CallFailure(NamedTuple):
    """A failed service call that nobody has dealt with. `due_at` is the instant of its last attempt, `execution_id` that
    attempt's execution, and `failure` destination and error (`tocsin.model.failure`). Instants are microseconds."""

    tenant_id: str
    service_call_id: str
    failed_at: int
    failure: str
    name: str
    due_at: int
    execution_id: str
    tags: tuple[str, ...] = ()

    @property
    def place(self) -> CallFailurePlace:
        """Its place in the order of all."""
        return CallFailurePlace(self.failed_at, self.service_call_id, self.tenant_id)


class FailedCalls(Protocol):
    """Calls that failed and nobody has dealt with."""

    async def failures(
        self, tenants: Tenants, limit: int, cursor: str | None
    ) -> tuple[Sequence[CallFailure], str | None]:
        """A page of failures, newest first, and the cursor of the next one if one may follow. Raises StoreError and
        InvalidInput for a bad cursor."""

    def cursor_behind(self, failure: CallFailure) -> str:
        """The cursor of a page that begins behind this failure."""

    async def retry_failure(self, failure: CallFailure, correlation_id: str) -> None:
        """Makes another attempt of the call, under the same `webhook-id`, unless there has been one since it failed.
        Raises ServiceCallNotFound, ServiceCallNotFailed; BusOverloaded if nothing was accepted, otherwise Unavailable,
        after which it may be called again."""


class WaitingCall(NamedTuple):
    """A service call that waits for its due time or for a retry. `cursor` is that of a page that begins behind it."""

    tenant_id: str
    service_call_id: str
    cursor: str


class WaitingCalls(Protocol):
    """Calls that wait for their due time or for a retry."""

    async def page(
        self, tenants: Tenants, wanted: RowFilter, cursor: str | None
    ) -> tuple[Sequence[WaitingCall], str | None]:
        """Some of those that match, the last submitted ones first, and the cursor of the next page if one may follow. Raises
        StoreError."""

    async def delete(self, call: WaitingCall, only_if: RowFilter, correlation_id: str) -> None:
        """Deletes the call if it waits and matches when it is deleted. Raises ServiceCallNotFound, ServiceCallNotScheduled;
        BusOverloaded if nothing was accepted, otherwise Unavailable, after which it may be called again."""


class AgentCalls(Protocol):
    """The service agent, where it runs."""

    @property
    def failures(self) -> FailedCalls:
        """Those that failed."""

    @property
    def waiting(self) -> WaitingCalls:
        """Those that wait."""


class Resealed(NamedTuple):
    """What a pass over the agent's secrets has done: texts that were encrypted again, and those that still need a former key,
    by its id."""

    rewritten: int
    left: Mapping[str, int]


class SealedCalls(Protocol):
    """The encrypted secrets of the agent, where it runs."""

    async def reseal(self, former: Collection[str]) -> Resealed:
        """Encrypts again under the present key what these former keys have encrypted. Raises StoreError."""
