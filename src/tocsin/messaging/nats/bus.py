"""The bus over NATS JetStream. Requires nats-server 2.10 or newer with JetStream.

Messages are stored in one stream for a time, whether they were handled or not; each subscriber has a durable consumer.
A lost connection is replaced by a new one, without limit, and its consumers are replaced too: unsettled messages are
delivered again at once. Messages that are still being handled here are recognized by their ids.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as Listening

from tocsin.messaging.delivery import (
    Completions,
    DeadLetter,
    Done,
    RequestDispatcher,
    Subscription,
    describe,
    publish_all,
)
from tocsin.messaging.limits import BusLimits
from tocsin.messaging.nats.connection import JetStreamError, NatsConnection, parse_nats_address
from tocsin.messaging.nats.requests import read, request, take_command
from tocsin.messaging.nats.streams import (
    NatsConsumer,
    NatsPublisher,
    Subjects,
    Superseded,
    check_name,
    ensure_streams,
    replace_consumers,
)
from tocsin.model.retry import backoff_us
from tocsin.ports.bus import (
    BrokerConnection,
    BusObserver,
    BusOverloaded,
    BusUnavailable,
    Check,
    Envelope,
    Handler,
    InvalidMessage,
    MessageDeadLettered,
    Responder,
)
from tocsin.tasks import end_tasks

#: The server's limit of a message includes its headers; the headers sent here are shorter than this.
_HEADER_BYTES_MAX = 2_048
_ERROR_CHARS_MAX = 400
_encode = msgspec.json.Encoder().encode


class _Arrival(NamedTuple):
    """One arrival of a message: the consumer that received it and its reply subject."""

    consumer: NatsConsumer
    reply: str

    def acknowledge(self) -> None:
        self.consumer.acknowledge(self.reply)


class _DeadLetterMessage(NamedTuple):
    """A dead letter on its way to its stream."""

    subject: str
    payload: bytes
    headers: dict[str, str]
    arrivals: list[_Arrival]


@dataclass(slots=True)
class _Attached:
    """Everything that belongs to one connection. `serves`: messages and commands are taken over it."""

    connection: NatsConnection
    publisher: NatsPublisher
    since_s: float
    consumers: list[NatsConsumer] = field(default_factory=list)
    listening: list[Listening] = field(default_factory=list)
    serves: bool = False


class NatsBus:
    """`check` validates everything that is sent or received. `prefix` is the first part of subjects and of stream
    names.

    `owner` identifies the database whose messages the streams carry: streams of another owner, and servers before 2.10,
    are refused with ConfigError. Of several agents of one owner, each with its `epoch`, the one that starts last gets the
    messages; one that is still connected takes them back only from an older epoch. Each command is answered by one agent of
    each epoch. An agent takes neither messages nor commands, and reports no failure of a command, while `leads` returns
    False: then another one may be answering.
    """

    def __init__(
        self,
        url: str,
        limits: BusLimits,
        check: Check,
        observe: BusObserver,
        *,
        prefix: str = "svc",
        owner: str,
        epoch: int = 0,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._address = parse_nats_address(url)
        self._limits = limits
        self._check = check
        self._observe = observe
        self._subjects = Subjects(prefix)
        self._owner = owner
        self._epoch = epoch
        self._leads = leads
        #: Whether this run has replaced the consumers of former ones, and whether a newer one has replaced its own.
        self._began = False
        self._superseded = ""
        self._subscriptions: dict[str, Subscription[_Arrival]] = {}
        self._types: dict[str, Collection[str]] = {}
        self._dispatchers: list[tuple[RequestDispatcher, Collection[str]]] = []
        self._completions = Completions()
        #: Dead letters that their stream has not accepted yet.
        self._dead: deque[_DeadLetterMessage] = deque()
        self._attached: _Attached | None = None
        self._detached = asyncio.Event()
        self._detached_connections: list[NatsConnection] = []
        #: Attempts to connect since the last connection that lasted.
        self._attempts = 0
        self._last_failure = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._draining = False
        self._closed = False

    def subscribe(self, subscriber: str, types: Collection[str], handler: Handler, *, batch_max: int = 256) -> None:
        """Registers the subscription; its durable consumer is created when the bus connects. Raises ValueError for an
        invalid or repeated name."""
        check_name(subscriber)
        if subscriber in self._subscriptions:
            raise ValueError(f"{subscriber!r} has already subscribed")
        self._types[subscriber] = types
        self._subscriptions[subscriber] = Subscription(
            subscriber,
            handler,
            batch_max,
            self._limits,
            self._observe,
            settled=_Arrival.acknowledge,
            dead_lettered=self._dead_lettered,
        )

    def respond(self, subscriber: str, types: Collection[str], responder: Responder, *, batch_max: int = 256) -> None:
        """Registers the responder. Several nodes may respond; each command is answered by one of them."""
        check_name(subscriber)
        dispatcher = RequestDispatcher(
            subscriber, responder, batch_max, self._limits.pending_requests_max, self._observe
        )
        self._dispatchers.append((dispatcher, types))

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Makes one attempt to connect; raises BusUnavailable or ConfigError. After that, lost connections are
        replaced."""
        await self._attach()
        for part in self._parts:
            part.start()
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._supervise(), name="bus connection"),
            loop.create_task(self._tick(), name="bus tick"),
        ]

    async def drain(self) -> None:
        """Stops all consumers and responders. Returns when every running handler has returned. From now on other nodes
        get the commands, if any respond."""
        self._draining = True
        if self._attached is not None:
            await self._withdraw(self._attached)
        await asyncio.gather(*(part.drain() for part in self._parts))

    async def close(self) -> None:
        """Sends pending acknowledgements and closes the connection. Idempotent."""
        if self._closed:
            return
        self._closed = True
        await end_tasks(*self._tasks)
        await asyncio.gather(*(part.close() for part in self._parts))
        if self._attached is not None:
            await self._attached.connection.flush()
        self._detach("the bus was closed")
        await self._close_detached()

    @property
    def _parts(self) -> list[Subscription[_Arrival] | RequestDispatcher]:
        return [*self._subscriptions.values(), *(dispatcher for dispatcher, _ in self._dispatchers)]

    # ------------------------------------------------------------------ sending

    def post(self, envelope: Envelope, done: Done) -> None:
        """Publishes the message to its stream. `done` is called once the stream has stored it, or with an error."""
        attached = self._attached
        if attached is None:
            self._completions.add(done, BusUnavailable(f"NATS at {self._address} is not connected"))
            return
        try:
            self._check(envelope)
            subject = self._subjects.of(envelope)
            payload = _encode(envelope)
            if len(payload) > attached.connection.payload_bytes_max - _HEADER_BYTES_MAX:
                raise InvalidMessage(f"{envelope.type} {envelope.id} exceeds the server's limit of a message's size")
        except InvalidMessage as error:
            self._completions.add(done, error)
            return
        if attached.publisher.in_flight >= self._limits.queue_max:
            self._completions.add(
                done, BusOverloaded(f"{self._limits.queue_max} messages wait already (bus.queue_max)")
            )
            return
        attached.publisher.send(subject, payload, {"Nats-Msg-Id": envelope.id}, _now_s(), done)

    async def publish(self, envelopes: Sequence[Envelope]) -> None:
        """Posts the messages in order. Returns when the stream has stored all; raises the first error."""
        await publish_all(self.post, envelopes)

    async def request(self, envelope: Envelope, timeout_us: int) -> Envelope:
        """Sends a command to one responder and returns its reply. Raises BusUnavailable at once if there is no
        responder."""
        self._check(envelope)
        subject = self._subjects.of(envelope, "-cmd")
        if self._attached is None:
            raise BusUnavailable(f"NATS at {self._address} is not connected")
        connection = self._attached.connection
        if connection.asking >= self._limits.pending_requests_max:
            raise BusOverloaded(f"{self._limits.pending_requests_max} commands wait already")
        return await request(connection, subject, envelope, timeout_us, self._check)

    @property
    def waiting(self) -> int:
        """Messages in memory, and messages sent but not confirmed. Messages that only the broker has are not counted."""
        sent = 0 if self._attached is None else self._attached.publisher.in_flight
        return sent + sum(subscription.unsettled for subscription in self._subscriptions.values())

    @property
    def connected(self) -> bool:
        """Whether the connection to the broker is open, as far as the client knows."""
        return self._attached is not None and self._attached.connection.alive

    # ------------------------------------------------------------------ receiving

    def _arrived(self, subscriber: str, consumer: NatsConsumer, message: Msg) -> None:
        arrival = _Arrival(consumer, message.reply)
        try:
            envelope = read(message, self._check)
            if self._subjects.of(envelope) != message.subject:
                raise InvalidMessage(f"{envelope.type} {envelope.id} arrived on a subject of another message")
        except InvalidMessage as error:
            self._unreadable(subscriber, message, arrival, error)
        else:
            self._subscriptions[subscriber].offer(envelope, arrival)

    def _unreadable(self, subscriber: str, message: Msg, arrival: _Arrival, error: InvalidMessage) -> None:
        _, tenant, aggregate, name = message.subject.split(".")
        self._observe(MessageDeadLettered(subscriber, name, tenant, aggregate, "", 1, describe(error)))
        digest = blake2b(message.subject.encode() + message.data, digest_size=16).hexdigest()
        headers = _dead_headers(digest, subscriber, describe(error), 1)
        self._send_dead_letter(
            _DeadLetterMessage(self._subjects.dead(message.subject), message.data, headers, [arrival])
        )

    def _dead_lettered(self, letter: DeadLetter, arrivals: list[_Arrival]) -> None:
        envelope = letter.envelope
        headers = _dead_headers(envelope.id, letter.subscriber, letter.error, letter.attempts)
        self._send_dead_letter(
            _DeadLetterMessage(self._subjects.of(envelope, "-dead"), _encode(envelope), headers, arrivals)
        )

    def _send_dead_letter(self, dead: _DeadLetterMessage) -> None:
        """Sends a dead letter to its stream. Its message is acknowledged only when the stream has stored it."""
        attached = self._attached
        if attached is None:
            self._dead.append(dead)
            return
        payload = dead.payload[: attached.connection.payload_bytes_max - _HEADER_BYTES_MAX]
        attached.publisher.send(dead.subject, payload, dead.headers, _now_s(), partial(self._dead_letter_stored, dead))

    def _dead_letter_stored(self, dead: _DeadLetterMessage, error: Exception | None) -> None:
        if error is not None:
            self._dead.append(dead)
            return
        for arrival in dead.arrivals:
            arrival.acknowledge()

    # ------------------------------------------------------------------ the connection

    async def _attach(self) -> None:
        """One attempt to connect and to set everything up. Raises BusUnavailable or ConfigError."""

        def lost(reason: str) -> None:
            if self._attached is not None and self._attached.connection is connection:
                self._detach(reason)

        connection = NatsConnection(self._address, self._limits, f"tocsin {self._subjects.prefix}", lost)
        try:
            async with asyncio.timeout(self._limits.nats_connect_timeout_us / 1e6):
                await connection.open()
                await ensure_streams(connection, self._subjects, self._owner, self._limits)
                attached = await self._set_up(connection)
            if not connection.alive:
                raise BusUnavailable(f"the connection to NATS was lost at once: {connection.last_error}")
        except TimeoutError as error:
            await connection.close()
            raise BusUnavailable(f"NATS at {self._address}: no answer in time") from error
        except JetStreamError as error:
            await connection.close()
            raise BusUnavailable(f"NATS at {self._address} refused the setup: {error}") from error
        except BaseException:
            await connection.close()
            raise
        self._detached.clear()
        self._attached = attached

    async def _set_up(self, connection: NatsConnection) -> _Attached:
        publisher = NatsPublisher(connection, self._limits, self._completions)
        await publisher.open()
        attached = _Attached(connection, publisher, _now_s())
        if self._may_serve:
            await self._serve(attached)
        # After this the server knows all subscriptions: requests on other connections may follow at once.
        await connection.synchronize()
        attached.since_s = _now_s()
        return attached

    # ------------------------------------------------------------------ serving

    @property
    def _may_serve(self) -> bool:
        return self._leads() and not self._draining and not self._superseded

    async def _serve(self, attached: _Attached) -> None:
        """Takes messages and commands, unless an agent of a newer epoch does. Raises BusUnavailable or JetStreamError."""
        connection, stream = attached.connection, self._subjects.stream
        try:
            # A database that was restored begins with an older epoch than its consumers have.
            names = await replace_consumers(
                connection, self._subjects, self._types, self._limits, self._epoch, newer_too=not self._began
            )
        except Superseded as error:
            self._superseded = f"; {error}: nothing is taken from it"
            return
        self._began = True
        attached.consumers = [
            NatsConsumer(connection, self._limits, stream, name, partial(self._arrived, subscriber))
            for subscriber, name in names.items()
        ]
        for consumer in attached.consumers:
            await consumer.open(_now_s())
        for dispatcher, types in self._dispatchers:
            attached.listening += [await self._listen(connection, dispatcher, name) for name in types]
        # Last: if the agent must not serve any more by now, the next check withdraws it.
        attached.serves = True

    async def _withdraw(self, attached: _Attached) -> None:
        """Takes nothing more. What was taken can still be acknowledged."""
        attached.serves = False
        for consumer in attached.consumers:
            consumer.stop()
        listening, attached.listening = attached.listening, []
        for each in listening:
            await attached.connection.unlisten(each)

    async def _follow(self, attached: _Attached) -> None:
        """Serves while this agent leads. Without the connection if it can't do so."""
        try:
            async with asyncio.timeout(self._limits.nats_connect_timeout_us / 1e6):
                if attached.serves and not self._may_serve:
                    await self._withdraw(attached)
                elif self._may_serve and not attached.serves:
                    await self._serve(attached)
        except Exception as error:  # noqa: BLE001 - another connection may succeed
            attached.connection.end(describe(error))

    async def _listen(self, connection: NatsConnection, dispatcher: RequestDispatcher, name: str) -> Listening:
        subject = partial(self._subjects.of, kind="-cmd")

        def received(message: Msg) -> None:
            if self._leads():
                take_command(message, connection, dispatcher, self._check, subject, self._leads)

        # A frozen agent stays subscribed for minutes. In the same queue group it would swallow commands.
        queue = f"{dispatcher.subscriber}-{self._epoch}"
        return await connection.listen(self._subjects.of_type(name, "-cmd"), received, queue=queue)

    # ------------------------------------------------------------------ the connection's end

    def _detach(self, reason: str) -> None:
        """The connection is lost: everything in flight on it is decided now."""
        attached, self._attached = self._attached, None
        if attached is None:
            return
        self._detached_connections.append(attached.connection)
        attached.publisher.end(reason)
        for consumer in attached.consumers:
            consumer.stop()
        if not self._closed:
            self._report_connection(connected=False, detail=reason)
            self._detached.set()

    async def _supervise(self) -> None:
        # The NATS client's calls may lose a cancellation that comes together with their answer.
        while not self._closed:
            await self._detached.wait()
            await self._close_detached()
            # With jitter, so that not all nodes reconnect at once when the broker is back.
            self._attempts += 1
            limits = self._limits
            pause_us = backoff_us(self._attempts, limits.nats_reconnect_initial_us, limits.nats_reconnect_max_us)
            await asyncio.sleep(pause_us * random.uniform(0.5, 1.0) / 1e6)
            try:
                await self._attach()
            except Exception as error:  # noqa: BLE001 - the next attempt may succeed
                self._report_connection(connected=False, detail=str(error) or describe(error))
            else:
                self._report_connection(connected=True, detail=f"{self._address}{self._superseded}")

    def _report_connection(self, *, connected: bool, detail: str) -> None:
        """Reports changes to the observer, not every attempt."""
        if connected or detail != self._last_failure:
            self._observe(BrokerConnection(connected, detail))
        self._last_failure = "" if connected else detail

    async def _close_detached(self) -> None:
        while self._detached_connections:
            await self._detached_connections.pop().close()

    async def _tick(self) -> None:
        # As in `_supervise`.
        while not self._closed:
            await asyncio.sleep(self._limits.nats_check_interval_us / 1e6)
            attached = self._attached
            if attached is None:
                continue
            now_s = _now_s()
            attached.publisher.expire(now_s)
            for consumer in attached.consumers:
                consumer.tick(now_s)
            if now_s - attached.since_s > self._limits.nats_reconnect_max_us / 1e6:
                self._attempts = 0
            for _ in range(len(self._dead)):
                self._send_dead_letter(self._dead.popleft())
            await self._follow(attached)


def _dead_headers(message_id: str, subscriber: str, error: str, deliveries: int) -> dict[str, str]:
    return {
        "Nats-Msg-Id": f"{subscriber}:{message_id}",
        "Tocsin-Subscriber": subscriber,
        "Tocsin-Error": error[:_ERROR_CHARS_MAX],
        "Tocsin-Deliveries": str(deliveries),
    }


def _now_s() -> float:
    return asyncio.get_running_loop().time()
