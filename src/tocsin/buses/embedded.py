"""The bus inside one process: queues in memory.

Durable only through its senders: `post` reports success when every subscription has dealt with the message, so that a
sender who keeps it until then (the outbox) sends it again after a crash.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Sequence

from tocsin.buses.answering import Answering
from tocsin.buses.delivery import DeadLetter, Subscription
from tocsin.buses.limits import BusLimits
from tocsin.buses.posting import Completions, Done, publish_all
from tocsin.model.envelope import Envelope
from tocsin.ports.bus import (
    BusObserver,
    BusOverloaded,
    BusUnavailable,
    Check,
    Handler,
    InvalidMessage,
    RequestUnanswered,
    Responder,
)


class _Posting:
    """A message taken, and how many subscriptions have yet to deal with it."""

    __slots__ = ("done", "left")

    def __init__(self, done: Done, left: int) -> None:
        self.done: Done | None = done
        self.left = left


class EmbeddedBus:
    """`check` is applied to whatever is sent. A dead letter counts as dealt with, is reported, and the latest stay in
    `dead_letters`."""

    def __init__(self, limits: BusLimits, check: Check, observe: BusObserver) -> None:
        self._limits = limits
        self._check = check
        self._observe = observe
        self._subscribers: set[str] = set()
        self._parts: list[Subscription[_Posting] | Answering] = []
        self._by_type: dict[str, list[Subscription[_Posting]]] = {}
        self._answering: dict[str, Answering] = {}
        self._completions = Completions()
        self._postings: set[_Posting] = set()
        self._requests: set[asyncio.Future[Envelope]] = set()
        self._closed = False
        #: The latest, the oldest first.
        self.dead_letters: deque[DeadLetter] = deque(maxlen=limits.dead_letters_max)

    def subscribe(self, subscriber: str, types: Collection[str], handler: Handler, *, batch_max: int = 256) -> None:
        """See the port."""
        if subscriber in self._subscribers:
            raise ValueError(f"{subscriber!r} has subscribed already")
        subscription: Subscription[_Posting] = Subscription(
            subscriber,
            handler,
            batch_max,
            self._limits,
            self._observe,
            settled=self._settled,
            given_up=self._given_up,
        )
        self._subscribers.add(subscriber)
        self._parts.append(subscription)
        for name in types:
            self._by_type.setdefault(name, []).append(subscription)

    def respond(self, subscriber: str, types: Collection[str], responder: Responder, *, batch_max: int = 256) -> None:
        """See the port."""
        answering = Answering(subscriber, responder, batch_max, self._limits.pending_requests_max, self._observe)
        self._parts.append(answering)
        for name in types:
            if name in self._answering:
                raise ValueError(f"{name} has a responder already: {self._answering[name].subscriber!r}")
            self._answering[name] = answering

    async def start(self) -> None:
        """Begins to deliver, what was posted before included."""
        for part in self._parts:
            part.start()

    def post(self, envelope: Envelope, done: Done) -> None:
        """See the port."""
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
            self._completions.add(done, BusOverloaded(f"{self._limits.queue_max} messages wait already"))
        else:
            posting = _Posting(done, len(subscriptions))
            self._postings.add(posting)
            for subscription in subscriptions:
                subscription.offer(envelope, posting)

    async def publish(self, envelopes: Sequence[Envelope]) -> None:
        """See the port."""
        await publish_all(self.post, envelopes)

    async def request(self, envelope: Envelope, timeout_us: int) -> Envelope:
        """See the port."""
        self._check(envelope)
        answering = self._answering.get(envelope.type)
        if answering is None or self._closed:
            raise BusUnavailable(f"nobody answers {envelope.type}")
        if len(self._requests) >= self._limits.pending_requests_max:
            raise BusOverloaded(f"{self._limits.pending_requests_max} commands wait already")
        future: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()

        def reply(answer: Envelope | Exception) -> None:
            if future.done():
                return
            if isinstance(answer, Envelope):
                future.set_result(answer)
            else:
                future.set_exception(answer)

        self._requests.add(future)
        try:
            answering.offer(envelope, reply)
            async with asyncio.timeout(timeout_us / 1e6):
                return await future
        except TimeoutError:
            raise RequestUnanswered(f"no reply to {envelope.type} came in {timeout_us / 1e6:g} s") from None
        finally:
            self._requests.discard(future)

    @property
    def waiting(self) -> int:
        """See the port."""
        return len(self._postings)

    @property
    def connected(self) -> bool:
        """Until it is closed: there is nothing to connect to."""
        return not self._closed

    async def drain(self) -> None:
        """See the port."""
        await asyncio.gather(*(part.drain() for part in self._parts))

    async def close(self) -> None:
        """See the port. Senders whose messages aren't settled are told BusUnavailable."""
        if self._closed:
            return
        self._closed = True
        await asyncio.gather(*(part.close() for part in self._parts))
        postings, self._postings = self._postings, set()
        for posting in postings:
            done, posting.done = posting.done, None
            if done is not None:
                self._completions.add(done, BusUnavailable("the bus was closed before the message was dealt with"))

    def _settled(self, posting: _Posting) -> None:
        posting.left -= 1
        if posting.left == 0 and posting.done is not None:
            self._postings.discard(posting)
            self._completions.add(posting.done, None)

    def _given_up(self, letter: DeadLetter, postings: list[_Posting]) -> None:
        self.dead_letters.append(letter)
        for posting in postings:
            self._settled(posting)
