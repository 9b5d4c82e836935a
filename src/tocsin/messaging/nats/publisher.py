"""Publishes to streams: many messages in flight at once, each confirmed by the broker or failed after a timeout."""

from __future__ import annotations

from collections import deque
from itertools import count

import msgspec
from nats.aio.msg import Msg

from tocsin.messaging.limits import BusLimits
from tocsin.messaging.nats.connection import NatsConnection
from tocsin.messaging.posting import Completions, Done
from tocsin.ports.bus import BusUnavailable


class _PubAckError(msgspec.Struct):
    description: str = ""
    err_code: int = 0


class _PubAck(msgspec.Struct):
    stream: str = ""
    error: _PubAckError | None = None


_decode = msgspec.json.Decoder(_PubAck).decode


class NatsPublisher:
    """Publishes through one connection. `done` is called through the completions: with None once the stream has stored
    the message, otherwise with BusUnavailable; whether it was stored is then unknown."""

    def __init__(self, connection: NatsConnection, limits: BusLimits, completions: Completions) -> None:
        self._connection = connection
        self._timeout_s = limits.nats_publish_timeout_us / 1e6
        self._completions = completions
        self._inbox = ""
        self._tokens = count()
        self._in_flight: dict[str, Done] = {}
        self._deadlines: deque[tuple[float, str]] = deque()

    async def open(self) -> None:
        """Subscribes to confirmations."""
        self._inbox = self._connection.new_inbox()
        await self._connection.listen(f"{self._inbox}.*", self._confirmed)

    @property
    def in_flight(self) -> int:
        """Messages sent and neither confirmed nor failed."""
        return len(self._in_flight)

    def send(self, subject: str, payload: bytes, headers: dict[str, str], now_s: float, done: Done) -> None:
        """Sends one message. `now_s` is the event loop's time."""
        token = str(next(self._tokens))
        self._in_flight[token] = done
        self._deadlines.append((now_s + self._timeout_s, token))
        self._connection.send(subject, payload, f"{self._inbox}.{token}", headers)

    def expire(self, now_s: float) -> None:
        """Fails messages that the broker has not confirmed in time."""
        deadlines = self._deadlines
        while deadlines and (deadlines[0][0] <= now_s or deadlines[0][1] not in self._in_flight):
            done = self._in_flight.pop(deadlines.popleft()[1], None)
            if done is not None:
                last = self._connection.last_error
                text = f"NATS did not confirm the message within {self._timeout_s:g} s (bus.nats_publish_timeout)"
                self._completions.add(done, BusUnavailable(f"{text}; its last error: {last}" if last else text))

    def end(self, reason: str) -> None:
        """The connection has ended: fails all messages in flight."""
        in_flight, self._in_flight = self._in_flight, {}
        self._deadlines.clear()
        for done in in_flight.values():
            self._completions.add(done, BusUnavailable(f"the connection to NATS ended: {reason}"))

    def _confirmed(self, message: Msg) -> None:
        done = self._in_flight.pop(message.subject.rpartition(".")[2], None)
        if done is not None:
            self._completions.add(done, _failure(message))


def _failure(message: Msg) -> BusUnavailable | None:
    if not message.data:
        return BusUnavailable("no stream accepts the message, or JetStream is not ready")
    try:
        confirmation = _decode(message.data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return BusUnavailable(f"unreadable confirmation from NATS: {error}")
    if confirmation.error is not None:
        return BusUnavailable(f"JetStream: {confirmation.error.description} ({confirmation.error.err_code})")
    return None
