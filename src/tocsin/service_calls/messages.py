"""Every message of the agent, and the registry that validates messages on their way in and out.

`docs/reference/messages.md` describes them. Fields are only ever added, with defaults: messages that an older version wrote,
in an outbox or a stream, must stay readable.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import ClassVar, NamedTuple

import msgspec

from tocsin.model.hooks import Hooks
from tocsin.model.ids import is_uuid7
from tocsin.model.instants import format_instant, parse_instant
from tocsin.model.job import RowFilter
from tocsin.model.retry import RetryPolicy
from tocsin.ports.bus import Envelope, InvalidMessage


class Instant(int):
    """Microseconds since 1970; in JSON, RFC 3339 text."""

    __slots__ = ()


class CallKey(NamedTuple):
    """Tenant and service call: the primary key of everything that is stored about a call."""

    tenant_id: str
    service_call_id: str


class CallStatus(StrEnum):
    """Scheduled → Running → Succeeded or Failed; the last two are final, unless a client retries a Failed call. With a retry
    policy also Running → Retrying → Running, after a failed attempt."""

    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    RETRYING = "Retrying"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class _Strict(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Unknown fields are refused."""


class _OfTenant(_Strict, frozen=True, kw_only=True):
    #: Set by `Registry.seal`, to the tenant of the envelope.
    tenant_id: str = ""


class Message(_OfTenant, frozen=True):
    """Base of all payloads. `service_call_id` names the aggregate that the message is about."""

    service_call_id: str


class Command(Message, frozen=True):
    """Base of the messages that ask a module to do something."""


class Reply(Message, frozen=True):
    """Base of the replies to commands."""


class Event(Message, frozen=True):
    """Base of the messages that report what happened."""


class RequestSpec(_Strict, frozen=True):
    """The HTTP request to send. `body` is JSON: a JSON string is sent as its text, any other value as JSON. `credential`
    names what it identifies itself with: a credential of the namespace `agent.credentials_namespace`."""

    method: str
    url: str
    headers: dict[str, str] = {}
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    credential: str | None = None


class RetrySpec(_Strict, frozen=True):
    """A retry policy with every member set. The members are those of `tocsin.model.retry.RetryPolicy`."""

    max_attempts: int
    initial_interval_us: int
    backoff_multiplier: float
    max_interval_us: int
    max_duration_us: int | None = None

    @classmethod
    def of(cls, policy: RetryPolicy) -> RetrySpec:
        """The wire form of a policy."""
        return msgspec.convert(policy, cls, from_attributes=True)

    @property
    def policy(self) -> RetryPolicy:
        """The policy that this wire form describes."""
        return msgspec.convert(self, RetryPolicy, from_attributes=True)


class ResponseMeta(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """What is kept of a response: header names in lower case, repeated headers joined by commas, secrets redacted, and
    the beginning of the body. `truncated`: the body was longer."""

    status: int
    headers: dict[str, str]
    body_snippet: str
    latency_ms: float
    truncated: bool = False


class ErrorMeta(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Why an attempt failed. `kind` is a stable word: HTTP_STATUS, TIMEOUT, CONNECTION_FAILED, EGRESS_REFUSED,
    INTERRUPTED, …"""

    kind: str
    message: str
    latency_ms: float = 0.0


#: The message of the error HTTP_STATUS for a 401 that is retried, since another token is fetched. The execution log has it as
#: part of a text.
STALE_TOKEN = "HTTP 401, and its token may have been revoked"


class JobFilter(_Strict, frozen=True):
    """Which calls a job deletes. The members are those of `tocsin.model.job.RowFilter` that apply to calls, instants in
    microseconds."""

    created_before: int
    created_after: int | None = None
    execute_after: int | None = None
    execute_before: int | None = None
    tags: tuple[str, ...] = ()
    id_prefix: str = ""
    name: str = ""
    destination: str = ""
    status: str = ""

    @classmethod
    def of(cls, wanted: RowFilter) -> JobFilter:
        """The wire form of a filter."""
        return msgspec.convert(wanted, cls, from_attributes=True)

    @property
    def filter(self) -> RowFilter:
        """The filter that this wire form describes."""
        return msgspec.convert(self, RowFilter, from_attributes=True)


# ------------------------------------------------------------------ commands


class SubmitServiceCall(Command, frozen=True):
    """Accept a service call. `fingerprint` is a digest of everything the client sent; it distinguishes a repetition
    from a different call with the same id or idempotency key. `due_at` None: run now. `retry_policy` None: one
    attempt. `traceparent` is that of the request (W3C Trace Context); a repetition may have another one. `hooks` are those of
    failure and of success. `flow_key` names the flow whose limits apply to the call's attempts."""

    name: str
    request_spec: RequestSpec
    fingerprint: str
    due_at: Instant | None = None
    tags: tuple[str, ...] = ()
    idempotency_key: str | None = None
    retry_policy: RetrySpec | None = None
    traceparent: str | None = None
    hooks: Hooks | None = None
    flow_key: str | None = None


class TagServiceCall(Command, frozen=True):
    """Add a tag. Adding a tag that exists changes nothing."""

    tag: str


class UntagServiceCall(Command, frozen=True):
    """Remove a tag. Removing a tag that does not exist changes nothing."""

    tag: str


class DeleteServiceCall(Command, frozen=True):
    """Delete a call that is Scheduled or Retrying. With `only_if`: only if it matches."""

    only_if: JobFilter | None = None


class RetryServiceCall(Command, frozen=True):
    """Make another attempt of a call that is Failed. With an `execution_id`: only if no execution has followed that one."""

    execution_id: str | None = None


class DismissFailure(Command, frozen=True):
    """Remove a Failed call from the failures; it stays Failed. Changes nothing if an execution has followed this one."""

    execution_id: str


class ScheduleTimer(Command, frozen=True):
    """Publish DueTimeReached at this instant. A later instant replaces the earlier one, whether it was reached or not;
    the same instant or an earlier one is a repetition and changes nothing."""

    due_at: Instant


class StartExecution(Command, frozen=True):
    """Send the request. An order with an `execution_id` that was executed before does nothing. An order that arrives
    too late (`ordered_at`) is not executed and is reported as failed, unless it has a `flow_key` or its request a
    `credential`: then it begins when its flow lets it and the credential can be sent. `traceparent` is that of the call's
    submission."""

    execution_id: str
    request_spec: RequestSpec
    traceparent: str | None = None
    flow_key: str | None = None


class CheckExecution(Command, frozen=True):
    """Publish the result of this execution again, if it has ended. `begun`: its ExecutionStarted has been received.
    `refused`: why the bus can never take its order; an execution that has not begun has failed then."""

    execution_id: str
    begun: bool = False
    refused: str | None = None


# ------------------------------------------------------------------ replies to commands


class CommandAccepted(Reply, frozen=True):
    """The command took effect and is durable. `created` False: it was a repetition, and the call is the one created
    before."""

    status: str
    created: bool = True


class CommandRefused(Reply, frozen=True):
    """The command was refused. `code` is an error code of the HTTP API."""

    code: str
    reason: str


# ------------------------------------------------------------------ events


class ServiceCallSubmitted(Event, frozen=True):
    """A call was accepted."""

    name: str
    method: str
    url: str
    due_at: Instant
    tags: tuple[str, ...] = ()


class ServiceCallScheduled(Event, frozen=True):
    """The call waits for its due time."""

    due_at: Instant


class ServiceCallRunning(Event, frozen=True):
    """An execution of the call was ordered."""

    execution_id: str


class ServiceCallRetrying(Event, frozen=True):
    """An attempt failed and the retry policy allows another one. `attempts` is the number of attempts so far."""

    attempts: int
    next_attempt_at: Instant
    error_meta: ErrorMeta
    response_meta: ResponseMeta | None = None


class ServiceCallSucceeded(Event, frozen=True):
    """Final: the service answered 2xx."""

    response_meta: ResponseMeta


class ServiceCallFailed(Event, frozen=True):
    """Final: the call failed. `response_meta` is present if the service answered."""

    error_meta: ErrorMeta
    response_meta: ResponseMeta | None = None


class ServiceCallDeleted(Event, frozen=True):
    """The call was deleted while Scheduled or Retrying. All that is stored for it may be deleted."""


class DueTimeReached(Event, frozen=True):
    """The instant of a ScheduleTimer was reached."""

    due_at: Instant
    reached_at: Instant


class ExecutionSuspended(Event, frozen=True):
    """The order waits for its flow, its credential or a slot of its destination, in the execution module's table, and will be
    executed when it has them. Published of orders that wait for longer."""

    execution_id: str
    suspended_at: Instant


class ExecutionStarted(Event, frozen=True):
    """The execution log has the execution; its request is about to be sent."""

    execution_id: str
    started_at: Instant


class ExecutionSucceeded(Event, frozen=True):
    """The service answered 2xx."""

    execution_id: str
    finished_at: Instant
    response_meta: ResponseMeta


class ExecutionFailed(Event, frozen=True):
    """The service did not answer 2xx, or did not answer."""

    execution_id: str
    finished_at: Instant
    error_meta: ErrorMeta
    response_meta: ResponseMeta | None = None


class ExecutionInterrupted(Event, frozen=True):
    """The process ended while the request was in flight. Whether the service received it is unknown."""

    execution_id: str
    started_at: Instant
    noticed_at: Instant


COMMANDS = tuple(Command.__subclasses__())
REPLIES = tuple(Reply.__subclasses__())
EVENTS = tuple(Event.__subclasses__())

#: Where an envelope keeps its decoded message.
_OPENED = "opened"


def _to_text(value: object) -> str:
    if isinstance(value, Instant):
        return format_instant(value)
    raise NotImplementedError(f"a message has no {type(value).__name__}")


def _from_text(kind: type, text: object) -> Instant:
    if kind is Instant and isinstance(text, str):
        return Instant(parse_instant(text))
    raise ValueError("is not an RFC 3339 instant")


_encode = msgspec.json.Encoder(enc_hook=_to_text).encode


class Registry:
    """The known message types. `seal` and `open` are the only ways into and out of an envelope.

    An envelope keeps its decoded message, because the same one is often opened twice: when the bus checks it and when a
    handler receives it.
    """

    types: ClassVar[dict[str, type[Message]]] = {kind.__name__: kind for kind in (*COMMANDS, *REPLIES, *EVENTS)}

    def __init__(self, new_id: Callable[[], str], now_us: Callable[[], int]) -> None:
        self._new_id = new_id
        self._now_us = now_us
        self._decoders = {name: msgspec.json.Decoder(kind, dec_hook=_from_text) for name, kind in self.types.items()}

    def seal(
        self, message: Message, *, tenant_id: str, correlation_id: str, causation_id: str | None, id: str | None = None
    ) -> Envelope:
        """The message in a new envelope, under a new id unless `id` is given. Raises InvalidMessage if its type is not
        registered."""
        name = type(message).__name__
        if name not in self.types:
            raise InvalidMessage(f"{name} is not a registered message type")
        envelope = Envelope(
            id=self._new_id() if id is None else id,
            type=name,
            tenant_id=tenant_id,
            aggregate_id=message.service_call_id,
            timestamp_ms=self._now_us() // 1_000,
            correlation_id=correlation_id,
            causation_id=causation_id,
            payload=msgspec.Raw(_encode(msgspec.structs.replace(message, tenant_id=tenant_id))),
        )
        _check_ids(envelope)
        return envelope

    def caused_by(self, cause: Envelope, message: Message) -> Envelope:
        """The message in a new envelope, as a consequence of the message in another."""
        return self.seal(message, tenant_id=cause.tenant_id, correlation_id=cause.correlation_id, causation_id=cause.id)

    def open(self, envelope: Envelope) -> Message:
        """The message in the envelope. Raises InvalidMessage if the payload does not match its type."""
        known: Message | None = envelope.__dict__.get(_OPENED)
        if known is None:
            known = envelope.__dict__[_OPENED] = self._decode(envelope)
        return known

    def _decode(self, envelope: Envelope) -> Message:
        decoder = self._decoders.get(envelope.type)
        if decoder is None:
            raise InvalidMessage(f"{envelope.type!r} is not a registered message type")
        _check_ids(envelope)
        try:
            message: Message = decoder.decode(envelope.payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidMessage(f"{envelope.type} {envelope.id}: {error}") from error
        if message.service_call_id != envelope.aggregate_id:
            raise InvalidMessage(
                f"{envelope.type} {envelope.id}: serviceCallId of the payload differs from aggregateId of the envelope"
            )
        if message.tenant_id != envelope.tenant_id:
            raise InvalidMessage(
                f"{envelope.type} {envelope.id}: tenantId of the payload differs from that of the envelope"
            )
        return message

    def check(self, envelope: Envelope) -> None:
        """Raises InvalidMessage unless `open` would succeed."""
        self.open(envelope)


def ordered_at(execution_id: str) -> int:
    """When the execution was ordered, in microseconds: the first 48 bits of a UUID v7 are its creation time in
    milliseconds."""
    return int(execution_id[:8] + execution_id[9:13], 16) * 1_000


def _check_ids(envelope: Envelope) -> None:
    if _IDS.match(f"{envelope.id} {envelope.tenant_id} {envelope.aggregate_id}") is not None:
        return
    for field, value in (("id", envelope.id), ("tenantId", envelope.tenant_id), ("aggregateId", envelope.aggregate_id)):
        if not is_uuid7(value):
            raise InvalidMessage(f"{envelope.type}: {field} {value!r} is not a UUID v7")


_UUID7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
#: All three ids in one match: they are nearly always valid.
_IDS = re.compile(rf"{_UUID7} {_UUID7} {_UUID7}\Z")
