"""The bus port: how modules send messages to each other.

Every adapter guarantees:

- **At least once.** An accepted message is delivered to every subscription of its type until the handler has handled it.
- **In order per aggregate.** A subscription gets the next message of an aggregate only after the previous one is settled.
  Messages of different aggregates do not wait for each other.
- **Duplicates by envelope id are dropped** within a named limit of remembered ids. Beyond it, and across a restart,
  handlers receive duplicates and must be idempotent.
- **A failed message is delivered again** with growing pauses. Transient failures (`Unavailable`, `StoreError`) are retried
  without limit. Any other failure is retried up to `deliveries_max` times; then the message becomes a dead letter, is
  reported, and counts as handled.
- **Backpressure.** Waiting messages are bounded by named limits; beyond them `post` reports BusOverloaded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from logging import ERROR, INFO, WARNING
from typing import ClassVar, Protocol

import msgspec

from tocsin.model.errors import Overloaded, TocsinError, Unavailable
from tocsin.ports.event import AnyEvent, Counter, LineLimit


class Envelope(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, dict=True):
    """One message and its origin.

    `id` is a UUID v7; a message that is sent again keeps it, so that duplicates are recognised. `type` names the payload's
    schema, `aggregate_id` what the message is about: messages of one aggregate stay in order. `correlation_id` is the same
    for everything that one request caused; `causation_id` is the id of the message that directly caused this one, None if a
    due time caused it. `timestamp_ms` is the wall clock when the message was created. `payload` is JSON; who decodes it may
    keep the result in the `__dict__`."""

    id: str
    type: str
    tenant_id: str
    aggregate_id: str
    timestamp_ms: int
    correlation_id: str
    causation_id: str | None
    payload: msgspec.Raw

    @property
    def about(self) -> tuple[str, str, str, str]:
        """Type, tenant, aggregate and correlation id, by which events name the message."""
        return self.type, self.tenant_id, self.aggregate_id, self.correlation_id


class BusUnavailable(Unavailable):
    """The broker is unreachable. Whether it accepted the message may be unknown; send it again with the same id."""

    code = "BROKER_UNAVAILABLE"


class BusOverloaded(Overloaded):
    """A limit on waiting messages is reached; the message was not accepted."""


class BrokerRefused(BusUnavailable):
    """The broker answers, and refuses this client or what it needs: credentials, rights, a missing capability. Only an
    operator can change that."""


class RequestUnanswered(Unavailable):
    """No reply arrived in time. Whether the command took effect is unknown; it may be sent again."""

    code = "COMMAND_UNANSWERED"


class CommandFailed(Unavailable):
    """The responder failed. Whether the command took effect is unknown; it may be sent again."""

    code = "COMMAND_FAILED"


class InvalidMessage(TocsinError):
    """The message does not match its type. Nothing was sent, or the received message becomes a dead letter."""

    code = "INVALID_MESSAGE"


class AgentEvent(AnyEvent, frozen=True, rename="camel"):
    """Base of the events of the service agent. In the log their fields have the names of the API, so that one search finds a
    call in logs and responses."""

    line_limit: ClassVar[LineLimit | None] = LineLimit(20, shared=True)


class BusEvent(AgentEvent, frozen=True):
    """Base of the events of a bus."""


class DeliveryFailed(BusEvent, frozen=True):
    """A handler failed. The message is delivered again."""

    subscriber: str
    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    attempt: int
    error: str
    level = WARNING
    counter = Counter("tocsin_agent_delivery_failures", "Deliveries whose handler failed.", ("subscriber", "type"))


class MessageDeadLettered(BusEvent, frozen=True):
    """A message was not handled within the allowed deliveries and became a dead letter."""

    subscriber: str
    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    attempts: int
    error: str
    level = ERROR
    counter = Counter("tocsin_agent_dead_letters", "Messages whose deliveries were exhausted.", ("subscriber", "type"))


class BrokerConnection(BusEvent, frozen=True):
    """The connection to the broker was lost or restored."""

    connected: bool
    detail: str
    level = WARNING
    counter = Counter("tocsin_agent_broker_disconnects", "Lost connections to the broker.", by="losses")

    @property
    def losses(self) -> int:
        return int(not self.connected)

    def severity(self) -> int:
        return INFO if self.connected else WARNING


#: It must return quickly and must not raise.
BusObserver = Callable[[BusEvent], None]


class Delivery(Protocol):
    """One delivery of a message to a subscription. It is settled once, by `ack` or `fail`; later calls do nothing."""

    @property
    def envelope(self) -> Envelope:
        """The message."""

    @property
    def attempt(self) -> int:
        """How many times this message has been delivered to the subscription, including this time, as far as the bus
        knows."""

    def keep(self) -> None:
        """The return of the handler will not settle this delivery; `ack` or `fail` will, at any later time."""

    def ack(self) -> None:
        """The message was handled."""

    def fail(self, error: Exception) -> None:
        """The message must be delivered again, or becomes a dead letter."""


#: Handles a batch of messages of different aggregates, in order. While it runs, its subscription gets no further batch;
#: messages that arrive until then form the next one. When it returns, every delivery that was not kept is acknowledged. When
#: it raises, every delivery that was neither kept nor settled has failed; they are delivered again one by one, so that one
#: bad message does not fail others (or in smaller batches after a transient error).
Handler = Callable[[Sequence[Delivery]], Awaitable[None]]

#: Answers a batch of commands with one reply each, in order. If it raises for several, each is passed to it again alone; if
#: it raises for one alone, `request` raises CommandFailed.
Responder = Callable[[Sequence[Envelope]], Awaitable[Sequence[Envelope]]]

#: Validates a message; raises InvalidMessage.
Check = Callable[[Envelope], None]


class Bus(Protocol):
    """Publish and subscribe, request and reply. All methods must be called on one event loop's thread."""

    def subscribe(self, subscriber: str, types: Collection[str], handler: Handler, *, batch_max: int = 256) -> None:
        """Delivers messages of these types to the handler, once `start` was called. `subscriber` is a stable name under
        which a durable bus remembers which messages were handled. Call it before `start`, once per name."""

    def respond(self, subscriber: str, types: Collection[str], responder: Responder, *, batch_max: int = 256) -> None:
        """Answers requests of these types. Call it before `start`."""

    async def start(self) -> None:
        """Connects and starts delivering. Raises BusUnavailable if the broker is unreachable."""

    def post(self, envelope: Envelope, done: Callable[[Exception | None], None]) -> None:
        """Sends one message. `done` is called once on the event loop, after this method has returned: with None when
        the bus has taken responsibility (a broker has stored the message; without a broker, every subscription has
        handled it), otherwise with BusUnavailable, BusOverloaded or InvalidMessage. It must not raise."""

    async def publish(self, envelopes: Sequence[Envelope]) -> None:
        """Calls `post` for each message. Returns when all are accepted; raises the first error once each has been
        accepted or failed."""

    async def request(self, envelope: Envelope, timeout_us: int) -> Envelope:
        """The reply to a command. Raises BusUnavailable, BusOverloaded, RequestUnanswered, InvalidMessage, or
        CommandFailed if the responder failed."""

    @property
    def waiting(self) -> int:
        """Messages accepted and not yet settled in this process."""

    @property
    def connected(self) -> bool:
        """Whether the broker is reachable now, as far as the bus knows."""

    async def drain(self) -> None:
        """Delivers nothing more. Returns when every running handler has returned. Kept deliveries can still be settled,
        and `post` still works."""

    async def close(self) -> None:
        """Closes the bus. Unsettled messages are delivered again after the next start, by the broker or by their
        sender. Idempotent."""
