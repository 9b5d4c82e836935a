"""The bus inside one process: queues in memory.

Durability is the sender's task: `post` reports success once every subscription has handled the message. A sender that
keeps the message until then (the outbox) sends it again after a crash.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Sequence

from tocsin.messaging.delivery import Completions, DeadLetter, Done, RequestDispatcher, Subscription, publish_all
from tocsin.messaging.limits import BusLimits
from tocsin.ports.bus import (
    BusObserver,
    BusOverloaded,
    BusUnavailable,
    Check,
    Envelope,
    Handler,
    InvalidMessage,
    RequestUnanswered,
    Responder,
)


class _Posting:
    """A posted message, and how many subscriptions have not handled it yet."""

    __slots__ = ("done", "left")

    def __init__(self, done: Done, left: int) -> None:
        self.done: Done | None = done
        self.left = left


class EmbeddedBus:
    """`check` validates everything that is sent. A dead letter counts as handled and is reported; the latest ones are
    in `dead_letters`."""

    def __init__(self, limits: BusLimits, check: Check, observe: BusObserver) -> None:
        self._limits = limits
        self._check = check
        self._observe = observe
        self._subscribers: set[str] = set()
        self._parts: list[Subscription[_Posting] | RequestDispatcher] = []
        self._by_type: dict[str, list[Subscription[_Posting]]] = {}
        self._dispatchers: dict[str, RequestDispatcher] = {}
        self._completions = Completions()
        self._postings: set[_Posting] = set()
        self._requests = 0
        self._closed = False
        #: The latest dead letters, the oldest first.
        self.dead_letters: deque[DeadLetter] = deque(maxlen=limits.dead_letters_max)

    def subscribe(self, subscriber: str, types: Collection[str], handler: Handler, *, batch_max: int = 256) -> None:
        """Registers the subscription. Raises ValueError if the name has one."""
        if subscriber in self._subscribers:
            raise ValueError(f"{subscriber!r} has already subscribed")
        subscription: Subscription[_Posting] = Subscription(
            subscriber,
            handler,
            batch_max,
            self._limits,
            self._observe,
            settled=self._settled,
            dead_lettered=self._dead_lettered,
        )
        self._subscribers.add(subscriber)
        self._parts.append(subscription)
        for name in types:
            self._by_type.setdefault(name, []).append(subscription)

    def respond(self, subscriber: str, types: Collection[str], responder: Responder, *, batch_max: int = 256) -> None:
        """Registers the responder. Raises ValueError if one of the types has a responder."""
        dispatcher = RequestDispatcher(
            subscriber, responder, batch_max, self._limits.pending_requests_max, self._observe
        )
        self._parts.append(dispatcher)
        for name in types:
            if name in self._dispatchers:
                raise ValueError(f"{name} already has the responder {self._dispatchers[name].subscriber!r}")
            self._dispatchers[name] = dispatcher

    async def start(self) -> None:
        """Starts delivering, including messages that were posted before."""
        for part in self._parts:
            part.start()

    def post(self, envelope: Envelope, done: Done) -> None:
        """Queues the message for each subscription of its type. `done` is called once all of them have handled it, or
        with an error."""
        if self._closed:
            self._completions.add(done, BusUnavailable("the bus is closed"))
            return
        try:
            self._check(envelope)
        except InvalidMessage as error:
            self._completions.add(done, error)
            return
        subscriptions = self._by_type.get(envelope.type)
        if not subscriptions:
            self._completions.add(done, None)
        elif len(self._postings) >= self._limits.queue_max:
            self._completions.add(
                done, BusOverloaded(f"{self._limits.queue_max} messages wait already (bus.queue_max)")
            )
        else:
            posting = _Posting(done, len(subscriptions))
            self._postings.add(posting)
            for subscription in subscriptions:
                subscription.offer(envelope, posting)

    async def publish(self, envelopes: Sequence[Envelope]) -> None:
        """Posts the messages in order. Returns when all are handled; raises the first error."""
        await publish_all(self.post, envelopes)

    async def request(self, envelope: Envelope, timeout_us: int) -> Envelope:
        """Passes the command to its responder and returns the reply. Raises BusUnavailable at once if there is no
        responder."""
        self._check(envelope)
        dispatcher = self._dispatchers.get(envelope.type)
        if dispatcher is None or self._closed:
            raise BusUnavailable(f"no responder for {envelope.type}")
        if self._requests >= self._limits.pending_requests_max:
            raise BusOverloaded(f"{self._limits.pending_requests_max} commands wait already")
        self._requests += 1
        try:
            async with asyncio.timeout(timeout_us / 1e6):
                return await dispatcher.offer(envelope)
        except TimeoutError:
            raise RequestUnanswered(f"no reply to {envelope.type} within {timeout_us / 1e6:g} s") from None
        finally:
            self._requests -= 1

    @property
    def waiting(self) -> int:
        """Messages that some subscription has not handled yet."""
        return len(self._postings)

    @property
    def connected(self) -> bool:
        """True until the bus is closed: there is no broker to connect to."""
        return not self._closed

    async def drain(self) -> None:
        """Stops delivering. Returns when every running handler and responder has returned."""
        await asyncio.gather(*(part.drain() for part in self._parts))

    async def close(self) -> None:
        """Stops delivering and cancels running handlers. Posts whose messages are not settled fail with BusUnavailable.
        Idempotent."""
        if self._closed:
            return
        self._closed = True
        await asyncio.gather(*(part.close() for part in self._parts))
        postings, self._postings = self._postings, set()
        for posting in postings:
            done, posting.done = posting.done, None
            if done is not None:
                self._completions.add(done, BusUnavailable("the bus was closed before the message was handled"))

    def _settled(self, posting: _Posting) -> None:
        posting.left -= 1
        if posting.left == 0 and posting.done is not None:
            self._postings.discard(posting)
            self._completions.add(posting.done, None)

    def _dead_lettered(self, letter: DeadLetter, postings: list[_Posting]) -> None:
        self.dead_letters.append(letter)
        for posting in postings:
            self._settled(posting)
