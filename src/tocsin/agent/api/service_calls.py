"""What tenants can do with their service calls. Commands go over the bus and are answered when they are durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tocsin.agent.api.ports import CallQueries, CallRecord, ExecutionRecord, PagePosition, TenantSecrets, TraceEntry
from tocsin.agent.api.validation import CallRules, Checks, PageRequest, Submission, encode_cursor
from tocsin.agent.limits import AgentLimits
from tocsin.agent.messages import (
    CallKey,
    CommandAccepted,
    CommandRefused,
    DeleteServiceCall,
    Message,
    Registry,
    TagServiceCall,
    UntagServiceCall,
)
from tocsin.model.envelope import Envelope
from tocsin.model.errors import (
    FieldError,
    IdempotencyConflict,
    ServiceCallNotFound,
    ServiceCallNotScheduled,
    TocsinError,
    TooManyTags,
)
from tocsin.model.secrets import SigningSecrets
from tocsin.ports.bus import Bus, InvalidMessage
from tocsin.ports.clock import Clock

_REFUSALS: dict[str, Callable[[str], TocsinError]] = {
    ServiceCallNotFound.code: ServiceCallNotFound,
    ServiceCallNotScheduled.code: ServiceCallNotScheduled,
    IdempotencyConflict.code: IdempotencyConflict,
    TooManyTags.code: lambda reason: TooManyTags(FieldError("tag", reason)),
}


class Submitted(NamedTuple):
    """A call that was accepted, now or before (`created` False). `correlation_id` is the one that the call goes by."""

    service_call_id: str
    status: str
    correlation_id: str
    created: bool


class CallDetail(NamedTuple):
    """A call and its executions, in their order."""

    call: CallRecord
    executions: list[ExecutionRecord]


class CallPage(NamedTuple):
    """Calls, the newest first; `cursor` continues, None when there are no more. `reached` is how far a search for a name has
    come that would have taken too long for one page: there may be few calls on it, or none."""

    calls: list[CallRecord]
    cursor: str | None
    reached: PagePosition | None = None


class CallTrace(NamedTuple):
    """A call and all that it led to, in the order of time, nothing before what caused it."""

    call: CallRecord
    entries: list[TraceEntry]


class ServiceCalls:
    """Every method takes ids as they were sent, in either case, and raises InvalidInput with all bad fields.

    Commands (`submit`, `tag`, `untag`, `delete`) carry the correlation id of the request that caused them. They raise what
    `Bus.request` raises: BusOverloaded when nothing was accepted, otherwise Unavailable, after which the same command may
    be sent again. Reads raise StoreError.
    """

    def __init__(
        self,
        bus: Bus,
        queries: CallQueries,
        registry: Registry,
        clock: Clock,
        limits: AgentLimits,
        new_id: Callable[[], str],
        checks: Checks,
        secrets: TenantSecrets,
    ) -> None:
        self._bus = bus
        self._queries = queries
        self._registry = registry
        self._clock = clock
        self._new_id = new_id
        self._rules = CallRules(limits, checks)
        self._secrets = secrets
        #: The limits in force.
        self.limits = limits

    async def submit(self, tenant_id: str, sent: Submission, correlation_id: str) -> Submitted:
        """Accepts a call. The same id or idempotency key again, with the same wish, gives the call from before; with
        another one it raises IdempotencyConflict."""
        tenant, command = self._rules.submission(tenant_id, sent, self._clock.now_us(), self._new_id)
        reply, accepted = await self._command(command, tenant, correlation_id)
        return Submitted(accepted.service_call_id, accepted.status, reply.correlation_id, accepted.created)

    def check(self, tenant_id: str, sent: Submission) -> None:
        """Raises what `submit` would raise about what was sent, and does nothing."""
        self._rules.submission(tenant_id, sent, self._clock.now_us(), self._new_id)

    def new_id(self) -> str:
        """An id for a call, or for a tenant."""
        return self._new_id()

    async def tag(self, tenant_id: str, service_call_id: str, tag: str, correlation_id: str) -> None:
        """Adds a tag; one that is there stays. ServiceCallNotFound, TooManyTags."""
        key = self._rules.tag(tenant_id, service_call_id, tag, new=True)
        await self._command(TagServiceCall(key.service_call_id, tag), key.tenant_id, correlation_id)

    async def untag(self, tenant_id: str, service_call_id: str, tag: str, correlation_id: str) -> None:
        """Removes a tag; one that isn't there is fine. ServiceCallNotFound."""
        key = self._rules.tag(tenant_id, service_call_id, tag, new=False)
        await self._command(UntagServiceCall(key.service_call_id, tag), key.tenant_id, correlation_id)

    async def delete(self, tenant_id: str, service_call_id: str, correlation_id: str) -> None:
        """Forgets a call that is still Scheduled. ServiceCallNotFound, ServiceCallNotScheduled."""
        key = self._rules.key(tenant_id, service_call_id)
        await self._command(DeleteServiceCall(key.service_call_id), key.tenant_id, correlation_id)

    async def rotate_secret(self, tenant_id: str, fresh: str, grace_us: int, *, force: bool = False) -> SigningSecrets:
        """Signs the tenant's calls with `fresh` from now on, and for the grace with the secret it replaces, too.
        RotationPending; StoreError."""

        def change(known: SigningSecrets) -> SigningSecrets:
            return known.rotated(fresh, self._clock.now_us(), grace_us, force=force)

        return await self._secrets.change(tenant_id.lower(), change)

    async def get(self, tenant_id: str, service_call_id: str) -> CallDetail:
        """One call. ServiceCallNotFound."""
        key = self._rules.key(tenant_id, service_call_id)
        call = await self._find(key)
        return CallDetail(call, await self._queries.executions(key))

    async def get_many(self, tenant_id: str, service_call_ids: Sequence[str]) -> dict[str, CallRecord]:
        """Those of the calls that there are, by their ids in canonical form."""
        keys = [self._rules.key(tenant_id, service_call_id) for service_call_id in service_call_ids]
        return {record.service_call_id: record for record in await self._queries.find_many(list(dict.fromkeys(keys)))}

    async def trace(self, tenant_id: str, service_call_id: str) -> CallTrace:
        """What the request behind a call led to, as far as it is kept. ServiceCallNotFound."""
        key = self._rules.key(tenant_id, service_call_id)
        call = await self._find(key)
        return CallTrace(call, await self._queries.trace(key))

    async def list(self, tenant_id: str, asked: PageRequest) -> CallPage:
        """A page. Pages stay stable while calls come and go: each begins right after the last call of the one before."""
        wanted = self._rules.page(tenant_id, asked)
        # One more than asked for tells whether there is another page.
        more = replace(wanted, limit=wanted.limit + 1)
        calls, reached = await self._queries.search(more) if wanted.name else (await self._queries.page(more), None)
        if len(calls) <= wanted.limit:
            return CallPage(calls, None if reached is None else encode_cursor(reached), reached)
        calls = calls[: wanted.limit]
        return CallPage(calls, encode_cursor(PagePosition(calls[-1].submitted_at, calls[-1].service_call_id)))

    async def _find(self, key: CallKey) -> CallRecord:
        call = await self._queries.find(key)
        if call is None:
            raise ServiceCallNotFound(f"the tenant has no service call {key.service_call_id}")
        return call

    async def _command(self, message: Message, tenant_id: str, correlation_id: str) -> tuple[Envelope, CommandAccepted]:
        command = self._registry.seal(message, tenant_id=tenant_id, correlation_id=correlation_id, causation_id=None)
        reply = await self._bus.request(command, self.limits.command_timeout_us)
        answer = self._registry.open(reply)
        if isinstance(answer, CommandAccepted):
            return reply, answer
        if isinstance(answer, CommandRefused) and answer.code in _REFUSALS:
            raise _REFUSALS[answer.code](answer.reason)
        raise InvalidMessage(f"{command.type} {command.id} was answered with {answer!r}")
