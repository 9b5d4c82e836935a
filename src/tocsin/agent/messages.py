"""Every message of the agent, and the registry that holds senders and receivers to their forms.

`docs/reference/messages.md` is its prose. Instants are microseconds since 1970 (`…AtUs`). Fields are only ever added, with
defaults: a message written by an older version, in an outbox or a stream, has to stay readable.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import msgspec

from tocsin.model.envelope import Envelope
from tocsin.model.retry import RetryPolicy
from tocsin.model.uuid7 import is_uuid7
from tocsin.ports.bus import InvalidMessage


class CallKey(NamedTuple):
    """Tenant and service call: what everything is kept by."""

    tenant_id: str
    service_call_id: str


class Message(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Base of all payloads. `service_call_id` is the aggregate that the message is about."""

    service_call_id: str


class RequestSpec(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """The HTTP request to make. `body` is JSON: a string is sent as its text, anything else as JSON."""

    method: str
    url: str
    headers: dict[str, str] = {}
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class RetrySpec(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A retry policy, all members resolved: see `tocsin.model.retry.RetryPolicy`."""

    max_attempts: int
    initial_interval_us: int
    backoff_multiplier: float
    max_interval_us: int
    max_duration_us: int | None = None

    @classmethod
    def of(cls, policy: RetryPolicy) -> RetrySpec:
        """As it is sent."""
        return cls(
            policy.max_attempts,
            policy.initial_interval_us,
            policy.backoff_multiplier,
            policy.max_interval_us,
            policy.max_duration_us,
        )

    @property
    def policy(self) -> RetryPolicy:
        """As it is followed."""
        return RetryPolicy(
            self.max_attempts,
            self.max_duration_us,
            self.initial_interval_us,
            self.backoff_multiplier,
            self.max_interval_us,
        )


class ResponseMeta(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """An answer as it is kept: header names in lower case, repeated ones joined by commas, secrets redacted; the body a
    snippet (`truncated`: there was more)."""

    status: int
    headers: dict[str, str]
    body_snippet: str
    latency_ms: float
    truncated: bool = False


class ErrorMeta(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Why a call failed. `kind` is a stable word: HTTP_STATUS, TIMEOUT, CONNECTION_FAILED, EGRESS_REFUSED, INTERRUPTED, …"""

    kind: str
    message: str
    latency_ms: float = 0.0


# ------------------------------------------------------------------ commands


class SubmitServiceCall(Message, frozen=True):
    """Accept a call. `fingerprint` is a digest of all that the client sent, to tell a repetition from another call under
    the same id or key. `due_at_us` None: now. `retry_policy` None: one attempt."""

    name: str
    request_spec: RequestSpec
    fingerprint: str
    due_at_us: int | None = None
    tags: tuple[str, ...] = ()
    idempotency_key: str | None = None
    retry_policy: RetrySpec | None = None


class TagServiceCall(Message, frozen=True):
    """Add a tag; one that is there stays."""

    tag: str


class UntagServiceCall(Message, frozen=True):
    """Remove a tag; one that isn't there is fine."""

    tag: str


class DeleteServiceCall(Message, frozen=True):
    """Forget a call that waits for its time: Scheduled, or Retrying."""


class ScheduleTimer(Message, frozen=True):
    """Report when this instant is reached. One for a later instant replaces the one before, reached or not; one for the same
    instant or an earlier one is a repetition and changes nothing."""

    due_at_us: int


class StartExecution(Message, frozen=True):
    """Make the request. A second one with the same `execution_id` does nothing, and so does one that comes too late
    (`ordered_at`), but for a report that it failed."""

    execution_id: str
    request_spec: RequestSpec


class CheckExecution(Message, frozen=True):
    """Report again how this execution ended, if it has. `begun`: its ExecutionStarted has arrived."""

    execution_id: str
    begun: bool = False


# ------------------------------------------------------------------ replies to commands


class CommandAccepted(Message, frozen=True):
    """It is done and durable. `created` False: a repetition, and the call is the one from before."""

    status: str
    created: bool = True


class CommandRefused(Message, frozen=True):
    """It can't be done: `code` as in the API's errors."""

    code: str
    reason: str


# ------------------------------------------------------------------ events


class ServiceCallSubmitted(Message, frozen=True):
    """A call was accepted."""

    name: str
    method: str
    url: str
    due_at_us: int
    tags: tuple[str, ...] = ()


class ServiceCallScheduled(Message, frozen=True):
    """It waits for its time."""

    due_at_us: int


class ServiceCallRunning(Message, frozen=True):
    """Its execution was ordered."""

    execution_id: str


class ServiceCallRetrying(Message, frozen=True):
    """An attempt failed, and its retry policy allows another. `attempts` have been made."""

    attempts: int
    next_attempt_at_us: int
    error_meta: ErrorMeta
    response_meta: ResponseMeta | None = None


class ServiceCallSucceeded(Message, frozen=True):
    """Terminal: the service answered 2xx."""

    response_meta: ResponseMeta


class ServiceCallFailed(Message, frozen=True):
    """Terminal. `response_meta` is there when the service did answer."""

    error_meta: ErrorMeta
    response_meta: ResponseMeta | None = None


class ServiceCallDeleted(Message, frozen=True):
    """It was deleted while Scheduled or Retrying; whatever was kept for it may go."""


class DueTimeReached(Message, frozen=True):
    """The instant that ScheduleTimer named has come."""

    due_at_us: int
    reached_at_us: int


class ExecutionStarted(Message, frozen=True):
    """The request is about to be sent, and the log says so."""

    execution_id: str
    started_at_us: int


class ExecutionSucceeded(Message, frozen=True):
    """The service answered 2xx."""

    execution_id: str
    finished_at_us: int
    response_meta: ResponseMeta


class ExecutionFailed(Message, frozen=True):
    """It didn't."""

    execution_id: str
    finished_at_us: int
    error_meta: ErrorMeta
    response_meta: ResponseMeta | None = None


class ExecutionInterrupted(Message, frozen=True):
    """The process ended while the request was under way: whether the service got it can't be known."""

    execution_id: str
    started_at_us: int
    noticed_at_us: int


COMMANDS: tuple[type[Message], ...] = (
    SubmitServiceCall,
    TagServiceCall,
    UntagServiceCall,
    DeleteServiceCall,
    ScheduleTimer,
    StartExecution,
    CheckExecution,
)
REPLIES: tuple[type[Message], ...] = (CommandAccepted, CommandRefused)
EVENTS: tuple[type[Message], ...] = (
    ServiceCallSubmitted,
    ServiceCallScheduled,
    ServiceCallRunning,
    ServiceCallRetrying,
    ServiceCallSucceeded,
    ServiceCallFailed,
    ServiceCallDeleted,
    DueTimeReached,
    ExecutionStarted,
    ExecutionSucceeded,
    ExecutionFailed,
    ExecutionInterrupted,
)

#: Half as many as there may be decoded messages in memory for those who look again.
_REMEMBERED_MAX = 2_048

_encode = msgspec.json.Encoder().encode


class Registry:
    """The known types. `seal` and `open` are the only ways into and out of an envelope.

    A message is decoded once however many look at the same envelope in this process, as with a bus that checks what it
    is given and hands the very same object to a handler: the last ones decoded are remembered.
    """

    types: ClassVar[dict[str, type[Message]]] = {kind.__name__: kind for kind in (*COMMANDS, *REPLIES, *EVENTS)}

    def __init__(self, new_id: Callable[[], str], now_us: Callable[[], int]) -> None:
        self._new_id = new_id
        self._now_us = now_us
        self._decoders = {name: msgspec.json.Decoder(kind) for name, kind in self.types.items()}
        self._opened: dict[str, tuple[Envelope, Message]] = {}
        self._opened_before: dict[str, tuple[Envelope, Message]] = {}

    def seal(
        self,
        message: Message,
        *,
        tenant_id: str,
        correlation_id: str,
        causation_id: str | None,
        id: str | None = None,
    ) -> Envelope:
        """The message in a new envelope, its `id` a new one unless given; InvalidMessage when its type isn't known."""
        name = type(message).__name__
        if name not in self.types:
            raise InvalidMessage(f"{name} is no registered message type")
        envelope = Envelope(
            id=self._new_id() if id is None else id,
            type=name,
            tenant_id=tenant_id,
            aggregate_id=message.service_call_id,
            timestamp_ms=self._now_us() // 1_000,
            correlation_id=correlation_id,
            causation_id=causation_id,
            payload=msgspec.Raw(_encode(message)),
        )
        _check_ids(envelope)
        return envelope

    def open(self, envelope: Envelope) -> Message:
        """The message inside; InvalidMessage when it isn't what its type prescribes."""
        known = self._opened.get(envelope.id) or self._opened_before.get(envelope.id)
        if known is not None and known[0] is envelope:
            return known[1]
        message = self._decode(envelope)
        if len(self._opened) >= _REMEMBERED_MAX:
            self._opened_before, self._opened = self._opened, {}
        self._opened[envelope.id] = envelope, message
        return message

    def _decode(self, envelope: Envelope) -> Message:
        decoder = self._decoders.get(envelope.type)
        if decoder is None:
            raise InvalidMessage(f"{envelope.type!r} is no registered message type")
        _check_ids(envelope)
        try:
            message: Message = decoder.decode(envelope.payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidMessage(f"{envelope.type} {envelope.id}: {error}") from error
        if message.service_call_id != envelope.aggregate_id:
            raise InvalidMessage(f"{envelope.type} {envelope.id}: its payload is about another aggregate")
        return message

    def check(self, envelope: Envelope) -> None:
        """Raises InvalidMessage unless `open` would succeed."""
        self.open(envelope)


def ordered_at(execution_id: str) -> int:
    """When the execution was ordered, microseconds: a UUID v7 begins with the milliseconds of its making."""
    return int(execution_id[:8] + execution_id[9:13], 16) * 1_000


def _check_ids(envelope: Envelope) -> None:
    if _IDS.match(f"{envelope.id} {envelope.tenant_id} {envelope.aggregate_id}") is not None:
        return
    for field, value in (
        ("id", envelope.id),
        ("tenantId", envelope.tenant_id),
        ("aggregateId", envelope.aggregate_id),
    ):
        if not is_uuid7(value):
            raise InvalidMessage(f"{envelope.type}: {field} {value!r} is not a UUID v7")


_UUID7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
#: All three at once, which is how they nearly always are.
_IDS = re.compile(rf"{_UUID7} {_UUID7} {_UUID7}\Z")
