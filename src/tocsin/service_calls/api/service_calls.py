"""The operations on a tenant's service calls. Commands are sent over the bus and are durable when they are answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from tocsin.model.errors import (
    FieldError,
    IdempotencyConflict,
    ServiceCallNotFailed,
    ServiceCallNotFound,
    ServiceCallNotScheduled,
    TocsinError,
    TooManyTags,
)
from tocsin.model.explanation import WaitsFor
from tocsin.model.failure import FAILURE_RETENTION_US
from tocsin.model.hooks import NO_HOOKS
from tocsin.model.ids import is_uuid7
from tocsin.model.instants import INSTANT_MAX, US_PER_SECOND
from tocsin.model.sealed import headers_sealed, hooks_sealed, url_sealed
from tocsin.model.secrets import SigningSecrets
from tocsin.model.validation import InputRules
from tocsin.ports.agent_calls import SealedCalls, Tenants
from tocsin.ports.bus import Bus, Envelope, InvalidMessage
from tocsin.ports.seals import opener, sealer, stored_like
from tocsin.service_calls.api.failures import CallFailures
from tocsin.service_calls.api.validation import (
    CORRELATION_ID_CHARS_MAX,
    NOTHING_NAMED,
    CallRules,
    CheckRequest,
    Named,
    PageRequest,
    Submission,
    encode_cursor,
)
from tocsin.service_calls.api.waiting import DeletableCalls
from tocsin.service_calls.background import AgentContext
from tocsin.service_calls.messages import (
    CallKey,
    CallStatus,
    CommandAccepted,
    CommandRefused,
    DeleteServiceCall,
    Message,
    RetryServiceCall,
    SubmitServiceCall,
    TagServiceCall,
    UntagServiceCall,
)
from tocsin.service_calls.ports import (
    CallFilter,
    CallQueries,
    CallRecord,
    ExecutionRecord,
    PagePosition,
    TenantSecrets,
    TraceEntry,
)

#: How far from the instant of an id a call is looked for in all tenants.
_LOOKED_AROUND_US = 60 * US_PER_SECOND

_REFUSALS: dict[str, Callable[[str], TocsinError]] = {
    ServiceCallNotFound.code: ServiceCallNotFound,
    ServiceCallNotScheduled.code: ServiceCallNotScheduled,
    ServiceCallNotFailed.code: ServiceCallNotFailed,
    IdempotencyConflict.code: IdempotencyConflict,
    TooManyTags.code: lambda reason: TooManyTags(FieldError("tag", reason)),
}


class Submitted(NamedTuple):
    """An accepted call; `created` False: it had been accepted before. `correlation_id` is that of the call."""

    service_call_id: str
    status: str
    correlation_id: str
    created: bool


class CallWithExecutions(NamedTuple):
    """A call and its executions, in order."""

    call: CallRecord
    executions: list[ExecutionRecord]


class CallPage(NamedTuple):
    """Calls, the newest first. `cursor` continues the list; None: there are no more. `reached` is set if a search, by name or
    over several tenants, stopped at its limit of calls: the page may then have few calls or none."""

    calls: list[CallRecord]
    cursor: str | None
    reached: PagePosition | None = None


class ServiceCalls:
    """The operations. All methods accept ids in upper or lower case and raise InvalidInput with every invalid field.

    Commands (`submit`, `tag`, `untag`, `delete`, `retry`) carry the correlation id of the request that caused them. They
    raise the errors of `Bus.request`: BusOverloaded if nothing was accepted, otherwise Unavailable, after which the same
    command may be sent again. Reads raise StoreError.
    """

    def __init__(
        self,
        bus: Bus,
        queries: CallQueries,
        secrets: TenantSecrets,
        context: AgentContext,
        new_id: Callable[[], str],
        rules: InputRules,
        check_request: CheckRequest,
        failure_retention_us: int = FAILURE_RETENTION_US,
        named: Named = NOTHING_NAMED,
    ) -> None:
        self._bus = bus
        self._queries = queries
        self._secrets = secrets
        self._context = context
        self._flows, self._credentials = named
        self._rules = CallRules(context.limits, rules, check_request, named)
        #: Those that failed.
        self.failures = CallFailures(queries, self._command, context.clock, failure_retention_us)
        #: Those that wait, for jobs.
        self.waiting = DeletableCalls(queries, self._command)
        #: The namespace whose credentials calls may name.
        self.credentials_namespace = self._credentials.namespace
        #: Their encrypted secrets, for the rotation of keys; None: there are none.
        self.sealed: SealedCalls | None = None
        #: The limits in force.
        self.limits = context.limits
        #: Returns a new id for a call or a tenant.
        self.new_id = new_id

    async def submit(self, tenant_id: str, sent: Submission, correlation_id: str) -> Submitted:
        """Accepts a call. Repeating a submission under the same id or idempotency key returns the existing call; a
        different submission under it raises IdempotencyConflict."""
        if named := sent.credentials:
            await self._credentials.refresh(named)
        tenant, command = self._rules.submission(tenant_id, sent, self._context.clock.now_us(), self.new_id)
        reply, accepted = await self._command(self._sealed(tenant, command), tenant, correlation_id)
        return Submitted(accepted.service_call_id, accepted.status, reply.correlation_id, accepted.created)

    def _sealed(self, tenant_id: str, command: SubmitServiceCall) -> SubmitServiceCall:
        """The command with its secrets sealed. Its fingerprint is that of the secrets in clear."""
        seal, spec = sealer(self._context.seals, tenant_id, "tenant"), command.request_spec
        hooks = command.hooks and NO_HOOKS.changed(hooks_sealed(msgspec.structs.asdict(command.hooks), seal))
        sealed = msgspec.structs.replace(
            spec, url=url_sealed(spec.url, seal), headers=headers_sealed(spec.headers, seal)
        )
        return msgspec.structs.replace(command, request_spec=sealed, hooks=hooks)

    def check(self, tenant_id: str, sent: Submission) -> None:
        """Raises the errors that `submit` would raise for this input, without side effects."""
        self._rules.submission(tenant_id, sent, self._context.clock.now_us(), self.new_id)

    async def tag(self, tenant_id: str, service_call_id: str, tag: str, correlation_id: str) -> None:
        """Adds a tag; an existing one stays. Raises ServiceCallNotFound or TooManyTags."""
        key = self._rules.tag(tenant_id, service_call_id, tag, new=True)
        await self._command(TagServiceCall(key.service_call_id, tag), key.tenant_id, correlation_id)

    async def untag(self, tenant_id: str, service_call_id: str, tag: str, correlation_id: str) -> None:
        """Removes a tag; a missing one is ignored. Raises ServiceCallNotFound."""
        key = self._rules.tag(tenant_id, service_call_id, tag, new=False)
        await self._command(UntagServiceCall(key.service_call_id, tag), key.tenant_id, correlation_id)

    async def delete(self, tenant_id: str, service_call_id: str, correlation_id: str) -> None:
        """Deletes a call that is Scheduled or Retrying. Raises ServiceCallNotFound or ServiceCallNotScheduled."""
        key = self._rules.key(tenant_id, service_call_id)
        await self._command(DeleteServiceCall(key.service_call_id), key.tenant_id, correlation_id)

    async def retry(self, tenant_id: str, service_call_id: str, correlation_id: str) -> None:
        """Makes another attempt of a Failed call, under the same `webhook-id`. Raises ServiceCallNotFound or
        ServiceCallNotFailed."""
        key = self._rules.key(tenant_id, service_call_id)
        await self._command(RetryServiceCall(key.service_call_id), key.tenant_id, correlation_id)

    async def rotate_secret(self, tenant_id: str, fresh: str, grace_us: int, *, force: bool = False) -> SigningSecrets:
        """Signs the tenant's calls with `fresh` from now on and, during the grace period, with the replaced secret as
        well. Raises RotationPending or StoreError."""

        tenant_id = tenant_id.lower()
        seals = self._context.seals
        seal, unseal = sealer(seals, tenant_id, "tenant"), opener(seals, tenant_id, "tenant")

        def change(known: SigningSecrets) -> SigningSecrets:
            return known.rotated(
                stored_like(known, fresh, seal, unseal), self._context.clock.now_us(), grace_us, force=force
            )

        return await self._secrets.change(tenant_id, change)

    async def get(self, tenant_id: str, service_call_id: str) -> CallWithExecutions:
        """One call. Raises ServiceCallNotFound."""
        key = self._rules.key(tenant_id, service_call_id)
        call = await self._find(key)
        return CallWithExecutions(call, await self._queries.executions(key))

    def waits_for(self, call: CallRecord) -> WaitsFor | None:
        """What the call waits for that is due and has not started, as far as this node knows: its credential, or its flow."""
        if call.status != CallStatus.RUNNING or call.started_at is not None:
            return None
        if self.obstacle(call) is not None:
            return WaitsFor.CREDENTIAL
        closed = call.flow_key is not None and self._flows is not None and self._flows.is_closed(call.flow_key)
        return WaitsFor.FLOW if closed else None

    def obstacle(self, call: CallRecord) -> str | None:
        """Why the credential of the call's request can't be sent now; None if it can, or the call has none."""
        name, url = call.request_spec.credential, call.request_spec.url
        return None if name is None else self._credentials.obstacle(name, self._credentials.destination(url))

    async def get_many(self, tenant_id: str, service_call_ids: Sequence[str]) -> dict[str, CallRecord]:
        """The calls that exist, by their ids in canonical form."""
        keys = [self._rules.key(tenant_id, service_call_id) for service_call_id in service_call_ids]
        return {record.service_call_id: record for record in await self._queries.find_many(list(dict.fromkeys(keys)))}

    async def trace(self, tenant_id: str, service_call_id: str) -> tuple[CallRecord, list[TraceEntry]]:
        """A call and everything that its request led to, as far as it is stored: in order of time, each entry after its
        cause. Raises ServiceCallNotFound."""
        key = self._rules.key(tenant_id, service_call_id)
        call = await self._find(key)
        return call, await self._queries.trace(key)

    async def list(self, tenants: Tenants, asked: PageRequest) -> CallPage:
        """One page. Pages are stable while calls are added and deleted: each starts right after the last call of the
        previous page."""
        wanted = self._rules.page(tenants, asked)
        # One more than requested shows whether there is another page.
        more = replace(wanted, limit=wanted.limit + 1)
        if wanted.name or not isinstance(wanted.tenants, str):
            calls, reached = await self._queries.search(more)
        else:
            calls, reached = await self._queries.page(more), None
        if len(calls) <= wanted.limit:
            return CallPage(calls, None if reached is None else encode_cursor(reached), reached)
        calls = calls[: wanted.limit]
        return CallPage(calls, encode_cursor(PagePosition(calls[-1].submitted_at, calls[-1].service_call_id)))

    async def counts(self, tenants: Tenants, most: int) -> Mapping[str, tuple[int, bool]]:
        """How many calls of one tenant, of several, or of all have each status, and whether there may be more."""
        return await self._queries.counts(tenants, most)

    async def attempted_urls(self, most: int) -> Sequence[str] | None:
        """The URLs, with secrets redacted, of all tenants' unfinished calls of which an attempt has failed; None: there are
        more than `most`, or too many unfinished calls to look for them."""
        return await self._queries.attempted_urls(most)

    async def look_up(
        self, text: str, tenants: tuple[str, ...] | None, known: Sequence[str], limit: int
    ) -> Sequence[CallRecord]:
        """Calls of these tenants, or of all (None), with this id, or else with this correlation id: at most `limit`. Of all
        tenants, an id is looked for in `known` ones, and among calls that were submitted when it was made."""
        call_id = text.lower()
        found: Sequence[CallRecord] = []
        if is_uuid7(call_id):
            keys = [CallKey(tenant, call_id) for tenant in (known if tenants is None else tenants)]
            found = await self._queries.find_many(keys)
            if not found and tenants is None:
                # Its first 48 bits: an id may be of any time, also beyond the last instant.
                made_at = min(int(call_id[:13].replace("-", ""), 16) * 1_000, INSTANT_MAX - _LOOKED_AROUND_US)
                first, last = max(made_at - _LOOKED_AROUND_US, 0), made_at + _LOOKED_AROUND_US
                around = CallFilter(None, submitted_from=first, submitted_to=last, limit=limit, service_call_id=call_id)
                found = (await self._queries.search(around)).calls
        if not found and 1 <= len(text) <= CORRELATION_ID_CHARS_MAX:
            found = await self._queries.of_request(text, tenants, limit)
        return found[:limit]

    async def _find(self, key: CallKey) -> CallRecord:
        call = await self._queries.find(key)
        if call is None:
            raise ServiceCallNotFound(f"the tenant has no service call {key.service_call_id}")
        return call

    async def _command(self, message: Message, tenant_id: str, correlation_id: str) -> tuple[Envelope, CommandAccepted]:
        command = self._context.registry.seal(
            message, tenant_id=tenant_id, correlation_id=correlation_id, causation_id=None
        )
        reply = await self._bus.request(command, self.limits.command_timeout_us)
        answer = self._context.registry.open(reply)
        if isinstance(answer, CommandAccepted):
            return reply, answer
        if isinstance(answer, CommandRefused) and answer.code in _REFUSALS:
            raise _REFUSALS[answer.code](answer.reason)
        raise InvalidMessage(f"{command.type} {command.id} got an unexpected reply: {answer!r}")
