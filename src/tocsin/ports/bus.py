"""The bus port: messages between modules.

Every adapter guarantees:

- **At least once.** An accepted message is delivered to every subscription of its type until the handler has processed it.
- **In order per aggregate.** A subscription gets the next message of an aggregate only after the previous one is settled.
  Messages of different aggregates don't wait for one another, except for their turn.
- **Duplicates by envelope id are dropped**, up to a named limit of remembered ids. Beyond it, and after a restart, handlers
  can get duplicates, so they must be idempotent.
- **A failed message is delivered again** after growing pauses. Temporary failures (`Unavailable`, `StoreError`) are retried
  without limit; other failures up to `deliveries_max` times. Then the message is moved to the dead letters, is reported, and
  counts as processed.
- **Backpressure.** Waiting messages are limited by named limits; beyond them `post` reports BusOverloaded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from tocsin.model.envelope import Envelope
from tocsin.model.errors import Overloaded, TocsinError, Unavailable


class BusUnavailable(Unavailable):
    """The broker can't be reached. Whether it accepted the message may be unknown; send it again with the same id."""

    code = "BROKER_UNAVAILABLE"


class BusOverloaded(Overloaded):
    """A limit on waiting messages is reached. The message was not accepted."""


class RequestUnanswered(Unavailable):
    """No reply arrived in time. Whether the command took effect is unknown; it may be sent again."""

    code = "COMMAND_UNANSWERED"


class CommandFailed(Unavailable):
    """The responder failed. Whether the command took effect is unknown; it may be sent again."""

    code = "COMMAND_FAILED"


class InvalidMessage(TocsinError):
    """The message does not have the form that its type requires. Nothing was sent, or the received message was moved to the
    dead letters."""

    code = "INVALID_MESSAGE"


class DeliveryFailed(NamedTuple):
    """A handler failed; the message is delivered again."""

    subscriber: str
    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    attempt: int
    error: str


class DeadLettered(NamedTuple):
    """A message was moved to the dead letters after its deliveries were exhausted."""

    subscriber: str
    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    attempts: int
    error: str


class BrokerConnection(NamedTuple):
    """The connection to the broker was lost or restored."""

    connected: bool
    detail: str


#: What a bus reports to its observer, which must be fast and must not raise.
BusEvent = DeliveryFailed | DeadLettered | BrokerConnection
BusObserver = Callable[[BusEvent], None]


class Delivery(Protocol):
    """One message delivered to one subscription. It is settled once, by `ack` or `fail`; later calls have no effect."""

    @property
    def envelope(self) -> Envelope:
        """The message."""

    @property
    def attempt(self) -> int:
        """How many times this message has been delivered to the subscription, this time included, as far as the bus
        knows."""

    def keep(self) -> None:
        """Keeps the delivery open when the handler returns; `ack` or `fail` settles it at any later time."""

    def ack(self) -> None:
        """Settles the delivery as processed."""

    def fail(self, error: Exception) -> None:
        """Settles the delivery as failed: the message is delivered again, or moved to the dead letters."""


#: Processes a batch of messages of different aggregates, in order. While it runs, its subscription gets no further batch, so
#: messages that arrive meanwhile form the next one. When it returns, every delivery that was not kept is acknowledged. When
#: it raises, every delivery that was neither kept nor settled has failed; those are delivered again one by one, so that one
#: bad message does not affect others (in smaller batches, if the failure is temporary).
Handler = Callable[[Sequence[Delivery]], Awaitable[None]]

#: Replies to commands: one reply for each, in order. When it raises for several commands, they are passed again one by one;
#: what it raises for a single one is raised by `request` as CommandFailed.
Responder = Callable[[Sequence[Envelope]], Awaitable[Sequence[Envelope]]]

#: Checks the form of a message; raises InvalidMessage.
Check = Callable[[Envelope], None]


class Bus(Protocol):
    """Publish and subscribe, request and reply. All methods are called on one event loop's thread."""

    def subscribe(self, subscriber: str, types: Collection[str], handler: Handler, *, batch_max: int = 256) -> None:
        """Delivers messages of these types to the handler, from `start` on. `subscriber` is a stable name under which a
        durable bus remembers what was processed. Call it before `start`, once for each name."""

    def respond(self, subscriber: str, types: Collection[str], responder: Responder, *, batch_max: int = 256) -> None:
        """Has the responder reply to requests of these types. Call it before `start`."""

    async def start(self) -> None:
        """Connects and begins to deliver. Raises BusUnavailable if the broker can't be reached."""

    def post(self, envelope: Envelope, done: Callable[[Exception | None], None]) -> None:
        """Sends one message.

        `done` is called once, on the event loop, after this has returned: with None when the bus has accepted the message (a
        broker has stored it; without a broker, every subscription has processed it), else with BusUnavailable, BusOverloaded
        or InvalidMessage. It must not raise.
        """

    async def publish(self, envelopes: Sequence[Envelope]) -> None:
        """Posts all messages. Returns when all are accepted; raises the first failure once all outcomes are known."""

    async def request(self, envelope: Envelope, timeout_us: int) -> Envelope:
        """Sends a command and returns its reply. Raises BusUnavailable, BusOverloaded, RequestUnanswered, InvalidMessage, or
        CommandFailed if the responder failed."""

    @property
    def waiting(self) -> int:
        """Messages accepted and not yet settled, in this process."""

    @property
    def connected(self) -> bool:
        """Whether the broker is known to be reachable."""

    async def drain(self) -> None:
        """Stops deliveries; returns when every running handler has returned. Kept deliveries can still be settled, and `post`
        still works."""

    async def close(self) -> None:
        """Closes the bus. Messages that are not settled are delivered again after the next start, by the broker or by their
        senders. Idempotent."""
