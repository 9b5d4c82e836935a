"""A broker that fails, loses confirmations and acknowledgements, repeats messages, and loses its data."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tocsin.messaging.delivery import Completions, DeadLetter, Done, RequestDispatcher, Subscription, publish_all
from tocsin.messaging.embedded import EmbeddedBus
from tocsin.messaging.limits import BusLimits
from tocsin.ports.bus import BusUnavailable, Envelope, Handler, InvalidMessage, RequestUnanswered, Responder
from tocsin.service_calls.messages import Registry

if TYPE_CHECKING:
    from .world import World

#: How long the broker waits for an acknowledgement before it delivers a message again.
_ACK_WAIT_S = 30.0
_REQUESTS_MAX = 1_000


class Consumer:
    """One subscriber as the broker knows it: the sequence numbers that it has acknowledged."""

    def __init__(self, types: Collection[str]) -> None:
        self.types = frozenset(types)
        self.acknowledged: set[int] = set()


class Broker:
    """One stream with at most one connected process, the latest."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        self.away = False
        self.confirmations_lost_rate = 0.0
        self.acknowledgements_lost_rate = 0.0
        self.deliveries_lost_rate = 0.0
        self.stream: list[Envelope] = []
        self.consumers: dict[str, Consumer] = {}
        self.attached: SimulatedBus | None = None
        self._ids: set[str] = set()

    def store(self, envelope: Envelope) -> None:
        """Stores a message, unless its id is known."""
        if envelope.id in self._ids:
            return
        self._ids.add(envelope.id)
        self.stream.append(envelope)
        self.send(len(self.stream) - 1)

    def send(self, sequence: int) -> None:
        """Delivers the message to each subscriber that has not acknowledged it, repeatedly."""
        if self.attached is None or self.away or sequence >= len(self.stream):
            return
        envelope, unacknowledged = self.stream[sequence], False
        for name, consumer in self.consumers.items():
            if envelope.type in consumer.types and sequence not in consumer.acknowledged:
                unacknowledged = True
                if self.rng.random() >= self.deliveries_lost_rate:
                    self.attached.arrive(name, envelope, sequence, self.rng.uniform(0.0005, 0.005))
        if unacknowledged:
            self.world.outside(_ACK_WAIT_S, self.send, sequence)

    def acknowledge(self, bus: SimulatedBus, subscriber: str, sequence: int) -> None:
        """The message is settled."""
        if bus is self.attached and not self.away and self.rng.random() >= self.acknowledgements_lost_rate:
            self.consumers[subscriber].acknowledged.add(sequence)

    def attach(self, bus: SimulatedBus) -> None:
        """Delivers every unacknowledged message again, in order."""
        self.attached = bus
        for name, types in bus.types.items():
            self.consumers.setdefault(name, Consumer(types))
        for sequence in range(len(self.stream)):
            self.send(sequence)

    def leave(self) -> None:
        """The broker becomes unreachable."""
        self.away = True

    def come_back(self) -> None:
        """Clients reconnect."""
        self.away = False
        if self.attached is not None:
            self.world.outside(self.rng.uniform(0.05, 5.0), self._attach_again, self.attached)

    def _attach_again(self, bus: SimulatedBus) -> None:
        if bus is self.attached and not self.away:
            self.attach(bus)

    def forget(self) -> None:
        """The broker's data is lost."""
        self.stream.clear()
        self._ids.clear()
        for consumer in self.consumers.values():
            consumer.acknowledged.clear()


class _Arrival(NamedTuple):
    subscriber: str
    sequence: int


class SimulatedBus:
    """Implements the port Bus with this broker and the real delivery and request dispatcher of all buses."""

    def __init__(self, broker: Broker, registry: Registry) -> None:
        self.types: dict[str, Collection[str]] = {}
        self._broker = broker
        self._world = broker.world
        self._registry = registry
        self._context = contextvars.copy_context()
        self._completions = Completions()
        self._subscriptions: dict[str, Subscription[_Arrival]] = {}
        self._dispatchers: dict[str, RequestDispatcher] = {}
        self._arrives_s: dict[str, float] = {}
        self._closed = False

    def subscribe(self, subscriber: str, types: Collection[str], handler: Handler, *, batch_max: int = 256) -> None:
        self.types[subscriber] = types
        self._subscriptions[subscriber] = Subscription(
            subscriber, handler, batch_max, self._world.bus_limits, self._world.observe,
            settled=lambda arrival: self._broker.acknowledge(self, *arrival), dead_lettered=self._dead_lettered,
        )  # fmt: skip

    def respond(self, subscriber: str, types: Collection[str], responder: Responder, *, batch_max: int = 256) -> None:
        dispatcher = RequestDispatcher(subscriber, responder, batch_max, _REQUESTS_MAX, self._world.observe)
        self._dispatchers.update(dict.fromkeys(types, dispatcher))

    @property
    def _parts(self) -> list[Subscription[_Arrival] | RequestDispatcher]:
        return [*self._subscriptions.values(), *dict.fromkeys(self._dispatchers.values())]

    async def start(self) -> None:
        await asyncio.sleep(0.01)
        if self._broker.away:
            raise BusUnavailable("the broker is away")
        for part in self._parts:
            part.start()
        self._broker.attach(self)

    def post(self, envelope: Envelope, done: Done) -> None:
        try:
            self._registry.check(envelope)
        except InvalidMessage as error:
            self._completions.add(done, error)
            return
        self._world.posted(envelope)
        if self._broker.away or self._closed:
            self._completions.add(done, BusUnavailable("the broker is away"))
        else:
            self._world.outside(self._broker.rng.uniform(0.0005, 0.005), self._reach, envelope, done)

    def _reach(self, envelope: Envelope, done: Done) -> None:
        broker = self._broker
        error: Exception | None = None
        if broker.away:
            error = BusUnavailable("the broker went away")
        else:
            broker.store(envelope)
            if broker.rng.random() < broker.confirmations_lost_rate:
                error = BusUnavailable("the confirmation was lost")
        self._context.run(self._world.loop.call_later, broker.rng.uniform(0.0005, 0.005), done, error)

    async def publish(self, envelopes: Sequence[Envelope]) -> None:
        await publish_all(self.post, envelopes)

    async def request(self, envelope: Envelope, timeout_us: int) -> Envelope:
        self._registry.check(envelope)
        await asyncio.sleep(self._broker.rng.uniform(0.0005, 0.005))
        if self._broker.away or self._closed:
            raise BusUnavailable("the broker is away")
        try:
            async with asyncio.timeout(timeout_us / 1e6):
                reply = await self._dispatchers[envelope.type].offer(envelope)
        except TimeoutError:
            raise RequestUnanswered("no reply came") from None
        if self._broker.away:
            raise BusUnavailable("the reply was lost")
        return reply

    def arrive(self, subscriber: str, envelope: Envelope, sequence: int, delay_s: float) -> None:
        """The broker delivers a message; each subscriber's messages arrive in order."""
        at_s = max(self._world.loop.time() + delay_s, self._arrives_s.get(subscriber, 0.0))
        self._arrives_s[subscriber] = at_s
        self._context.run(self._world.loop.call_at, at_s, partial(self._arrived, subscriber, envelope, sequence))

    def _arrived(self, subscriber: str, envelope: Envelope, sequence: int) -> None:
        if not self._closed:
            self._subscriptions[subscriber].offer(envelope, _Arrival(subscriber, sequence))

    def _dead_lettered(self, letter: DeadLetter, arrivals: list[_Arrival]) -> None:
        self._world.broken("DEAD LETTER", f"{letter.envelope.type} of {letter.subscriber}: {letter.error}")

    @property
    def waiting(self) -> int:
        return sum(subscription.unsettled for subscription in self._subscriptions.values())

    @property
    def connected(self) -> bool:
        return not self._broker.away

    async def drain(self) -> None:
        await asyncio.gather(*(part.drain() for part in self._parts))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.gather(*(part.close() for part in self._parts))


class WatchedEmbeddedBus(EmbeddedBus):
    """The embedded bus; the world observes what is posted."""

    def __init__(self, world: World, registry: Registry) -> None:
        super().__init__(world.bus_limits, registry.check, world.observe)
        self._world = world

    def post(self, envelope: Envelope, done: Callable[[Exception | None], None]) -> None:
        self._world.posted(envelope)
        super().post(envelope, done)


BUS_LIMITS = BusLimits(deduplication_ids_max=200)
