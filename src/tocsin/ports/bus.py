"""The bus port: how modules send one another messages.

What is promised, by every adapter:

- **At least once.** What was taken is handed to every subscription of its type until the handler has dealt with it.
- **In order per aggregate.** A subscription gets the next message of an aggregate only after the one before is settled;
  messages of different aggregates wait for nothing of one another but their turn.
- **Duplicates by envelope id are dropped** as far as the bus remembers (a named limit); beyond it, and across a restart,
  handlers meet duplicates and have to be idempotent.
- **A failing message is tried again** with growing pauses. Failures that pass by themselves (`Unavailable`, `StoreError`)
  are tried without end; any other failure at most `deliveries_max` times, then the message goes to the dead letters, is
  reported, and counts as dealt with.
- **Backpressure.** What waits is bounded by named limits; beyond them `post` reports BusOverloaded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from tocsin.model.envelope import Envelope
from tocsin.model.errors import Overloaded, TocsinError, Unavailable


class BusUnavailable(Unavailable):
    """The broker can't be reached; whether it took the message may be unknown. Send it again, with the same id."""

    code = "BROKER_UNAVAILABLE"


class BusOverloaded(Overloaded):
    """A limit on waiting messages is reached; the message was not taken."""


class RequestUnanswered(Unavailable):
    """No reply came in time. Whether the command took effect isn't known; it may be sent again."""

    code = "COMMAND_UNANSWERED"


class CommandFailed(Unavailable):
    """The responder failed. Whether the command took effect isn't known; it may be sent again."""

    code = "COMMAND_FAILED"


class InvalidMessage(TocsinError):
    """The message does not have the form that its type prescribes. Nothing was sent, or the one received is a dead
    letter."""

    code = "INVALID_MESSAGE"


class DeliveryFailed(NamedTuple):
    """A handler failed; the message comes again."""

    subscriber: str
    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    attempt: int
    error: str


class DeadLettered(NamedTuple):
    """A message was given up."""

    subscriber: str
    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    attempts: int
    error: str


class BrokerConnection(NamedTuple):
    """The connection to the broker was lost or is back."""

    connected: bool
    detail: str


#: What a bus tells its observer, which must be quick and must not raise.
BusEvent = DeliveryFailed | DeadLettered | BrokerConnection
BusObserver = Callable[[BusEvent], None]


class Delivery(Protocol):
    """One message handed to one subscription. Settled once, by `ack` or `fail`; later calls do nothing."""

    @property
    def envelope(self) -> Envelope:
        """The message."""

    @property
    def attempt(self) -> int:
        """How many times this message has been handed to the subscription, this time included, as far as the bus
        knows."""

    def keep(self) -> None:
        """The handler's return won't settle this one; `ack` or `fail` will, however much later."""

    def ack(self) -> None:
        """It is dealt with."""

    def fail(self, error: Exception) -> None:
        """It has to be delivered again, or ends with the dead letters."""


#: Deals with some messages at once, of different aggregates, in their order. While it runs, its subscription gets no
#: further batch, so that what arrives meanwhile gathers into the next. When it returns, every delivery that was not kept
#: is acknowledged. When it raises, every one that was neither kept nor settled failed; they come again one by one, so
#: that one bad message takes no other along (in smaller batches, when what was raised passes by itself).
Handler = Callable[[Sequence[Delivery]], Awaitable[None]]

#: Answers commands: one reply for each, in their order. When it raises for several, they are given again one by one; what
#: it raises for one alone is raised by `request` as CommandFailed.
Responder = Callable[[Sequence[Envelope]], Awaitable[Sequence[Envelope]]]

#: Checks the form of a message; raises InvalidMessage.
Check = Callable[[Envelope], None]


class Bus(Protocol):
    """Publish and subscribe, request and reply. All methods are called on one event loop's thread."""

    def subscribe(self, subscriber: str, types: Collection[str], handler: Handler, *, batch_max: int = 256) -> None:
        """Hands messages of these types to the handler, from `start` on. `subscriber` is a stable name: a durable bus
        remembers under it what was dealt with. Call it before `start`, once a name."""

    def respond(self, subscriber: str, types: Collection[str], responder: Responder, *, batch_max: int = 256) -> None:
        """Answers requests of these types. Call it before `start`."""

    async def start(self) -> None:
        """Connects and begins to deliver; raises BusUnavailable when the broker can't be reached."""

    def post(self, envelope: Envelope, done: Callable[[Exception | None], None]) -> None:
        """Sends one message. `done` is called once, later than this returns, on the event loop: with None when the bus
        has taken responsibility (a broker has stored it; without one, every subscription has dealt with it), else with
        BusUnavailable, BusOverloaded or InvalidMessage. It must not raise."""

    async def publish(self, envelopes: Sequence[Envelope]) -> None:
        """`post` for all; returns when all are taken, raises the first failure when all have been decided."""

    async def request(self, envelope: Envelope, timeout_us: int) -> Envelope:
        """The reply to a command; BusUnavailable, BusOverloaded, RequestUnanswered, InvalidMessage, or CommandFailed
        when the responder failed."""

    @property
    def waiting(self) -> int:
        """Messages taken and not yet settled, in this process."""

    @property
    def connected(self) -> bool:
        """Whether the broker can be reached now, as far as known."""

    async def drain(self) -> None:
        """Delivers nothing more; returns when every handler under way has returned. Kept deliveries can still be
        settled, and `post` still works."""

    async def close(self) -> None:
        """Ends it. What isn't settled comes again after the next start, from the broker or from its sender. Idempotent."""
