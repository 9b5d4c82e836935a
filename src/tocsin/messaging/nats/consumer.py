"""Pulls one consumer's messages and acknowledges them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from nats.aio.msg import Msg

from tocsin.messaging.limits import BusLimits
from tocsin.messaging.nats.connection import NatsConnection

_ACK = b"+ACK"
_PROGRESS = b"+WPI"
_HEARTBEAT = "100"
_TIMEOUTS = ("404", "408")
_CONFLICT = "409"
#: The consumer counts as stalled after this many heartbeats were missed.
_HEARTBEATS_MISSED_MAX = 3


class NatsConsumer:
    """One consumer on one connection.

    `arrived` is called with each message; the message's reply subject is the token for `acknowledge`. At most
    `nats_ack_pending_max` messages are unacknowledged. For those that have been so for half of the ack wait, progress is
    reported to the broker, repeatedly. The connection ends when the consumer was deleted or the broker is silent.
    """

    def __init__(
        self,
        connection: NatsConnection,
        limits: BusLimits,
        stream: str,
        name: str,
        arrived: Callable[[NatsConsumer, Msg], None],
    ) -> None:
        self._connection = connection
        self._name = name
        self._arrived = arrived
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"
        self._in_hand_max = limits.nats_ack_pending_max
        self._fetch_max = min(limits.nats_fetch_max, limits.nats_ack_pending_max)
        self._expires_us = limits.nats_fetch_expires_us
        # The broker refuses a heartbeat longer than half of the request's expiry.
        self._heartbeat_us = min(limits.nats_heartbeat_us, limits.nats_fetch_expires_us // 3)
        self._progress_s = limits.nats_ack_wait_us / 2e6
        self._pause_max_s = 2 * limits.nats_check_interval_us / 1e6
        self._inbox = ""
        #: Messages requested and not yet received.
        self._asked = 0
        #: When progress was last reported, by reply subject; the longest ago first.
        self._in_hand: dict[str, float] = {}
        self._last_received_s = 0.0
        self._now_s = 0.0
        self._stopped = False

    async def open(self, now_s: float) -> None:
        """Starts pulling."""
        self._last_received_s = self._now_s = now_s
        self._inbox = self._connection.new_inbox()
        await self._connection.listen(self._inbox, self._received)
        self._pull()

    def stop(self) -> None:
        """Requests no more messages."""
        self._stopped = True

    def acknowledge(self, token: str) -> None:
        """The message is settled."""
        if self._in_hand.pop(token, None) is not None:
            self._connection.send(token, _ACK)
            self._pull()

    def tick(self, now_s: float) -> None:
        """Called periodically: reports progress and checks that the broker is not silent. If a pause between two calls
        is too long, this process was frozen and received messages are still unread: that time does not count as silence
        of the broker."""
        self._last_received_s += max(now_s - self._now_s - self._pause_max_s, 0)
        self._now_s = now_s
        late = []
        for token, touched_s in self._in_hand.items():
            if touched_s + self._progress_s > now_s:
                break
            late.append(token)
        for token in late:
            del self._in_hand[token]
            self._in_hand[token] = now_s
            self._connection.send(token, _PROGRESS)
        if self._asked and now_s - self._last_received_s > _HEARTBEATS_MISSED_MAX * self._heartbeat_us / 1e6:
            self._connection.end(f"no heartbeat from the consumer {self._name}")
        else:
            self._pull()

    def _pull(self) -> None:
        """Keeps requests for messages outstanding, without one request per message."""
        while not self._stopped:
            room = self._in_hand_max - len(self._in_hand) - self._asked
            if room < self._fetch_max // 2 and (self._asked or room <= 0):
                return
            size = min(room, self._fetch_max)
            request = {"batch": size, "expires": self._expires_us * 1_000, "idle_heartbeat": self._heartbeat_us * 1_000}
            if not self._asked:
                self._last_received_s = self._now_s
            self._asked += size
            self._connection.send(self._next, msgspec.json.encode(request), self._inbox)

    def _received(self, message: Msg) -> None:
        self._last_received_s = self._now_s
        headers = message.headers
        if headers and not message.reply and (status := headers.get("Status")):
            self._status(status, headers)
            return
        self._asked = max(0, self._asked - 1)
        self._in_hand[message.reply] = self._now_s
        self._arrived(self, message)
        self._pull()

    def _status(self, status: str, headers: dict[str, str]) -> None:
        if status == _HEARTBEAT:
            return
        text = headers.get("Description", "")
        if status in _TIMEOUTS or (status == _CONFLICT and "Nats-Pending-Messages" in headers):
            self._asked = max(0, self._asked - int(headers.get("Nats-Pending-Messages", "0")))
        if status in _TIMEOUTS:
            self._pull()
        elif status != _CONFLICT or "Deleted" in text or "Shutdown" in text or "Leadership" in text:
            self._connection.end(f"the consumer {self._name}: {status} {text}")
