"""Pulling one consumer's messages, and telling the broker what became of them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from nats.aio.msg import Msg

from tocsin.buses.limits import BusLimits
from tocsin.buses.nats_connection import NatsConnection

_ACK = b"+ACK"
_PROGRESS = b"+WPI"
_HEARTBEAT = "100"
_TIMEOUTS = ("404", "408")
_CONFLICT = "409"
#: Silence for this many heartbeats means that the consumer isn't served any more.
_HEARTBEATS_MISSED_MAX = 3


class NatsConsumer:
    """One consumer on one connection.

    `arrived` is called for each message with its reply subject as a token, which `acknowledge` takes. Never more than
    `nats_ack_pending_max` are unacknowledged; those that are so for half of the ack wait get a sign of life, again and again.
    `stalled` is called when the consumer is gone or silent.
    """

    def __init__(
        self,
        connection: NatsConnection,
        limits: BusLimits,
        stream: str,
        name: str,
        arrived: Callable[[NatsConsumer, Msg], None],
        stalled: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._name = name
        self._arrived = arrived
        self._stalled = stalled
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"
        self._in_hand_max = limits.nats_ack_pending_max
        self._fetch_max = min(limits.nats_fetch_max, limits.nats_ack_pending_max)
        self._expires_us = limits.nats_fetch_expires_us
        # The broker refuses heartbeats that are longer than half of the request.
        self._heartbeat_us = min(limits.nats_heartbeat_us, limits.nats_fetch_expires_us // 3)
        self._progress_s = limits.nats_ack_wait_us / 2e6
        self._pause_max_s = 2 * limits.nats_check_interval_us / 1e6
        self._inbox = ""
        #: Asked for and not yet come.
        self._asked = 0
        #: By reply subject, when the broker last heard of it; the longest ago first.
        self._in_hand: dict[str, float] = {}
        self._heard_s = 0.0
        self._now_s = 0.0
        self._stopped = False

    async def open(self, now_s: float) -> None:
        """Begins to pull."""
        self._heard_s = self._now_s = now_s
        self._inbox = self._connection.new_inbox()
        await self._connection.listen(self._inbox, self._received)
        self._pull()

    def stop(self) -> None:
        """Asks for nothing more."""
        self._stopped = True

    def acknowledge(self, token: str) -> None:
        """The message is settled."""
        if self._in_hand.pop(token, None) is not None:
            self._connection.send(token, _ACK)
            self._pull()

    def tick(self, now_s: float) -> None:
        """Time has passed: signs of life, ours and the broker's. In a pause between two looks that is longer than it should
        be, this process stood still, and what came is still to be read: it is no silence of the broker's."""
        self._heard_s += max(now_s - self._now_s - self._pause_max_s, 0)
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
        if self._asked and now_s - self._heard_s > _HEARTBEATS_MISSED_MAX * self._heartbeat_us / 1e6:
            self._stalled(f"nothing was heard of the consumer {self._name}")
        else:
            self._pull()

    def _pull(self) -> None:
        """Keeps requests standing for what may come; not for every single message."""
        while not self._stopped:
            room = self._in_hand_max - len(self._in_hand) - self._asked
            if room < self._fetch_max // 2 and (self._asked or room <= 0):
                return
            size = min(room, self._fetch_max)
            request = {"batch": size, "expires": self._expires_us * 1_000, "idle_heartbeat": self._heartbeat_us * 1_000}
            if not self._asked:
                self._heard_s = self._now_s
            self._asked += size
            self._connection.send(self._next, msgspec.json.encode(request), self._inbox)

    def _received(self, message: Msg) -> None:
        self._heard_s = self._now_s
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
            self._stalled(f"the consumer {self._name}: {status} {text}")
