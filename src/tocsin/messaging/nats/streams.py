"""The streams and consumers that the agent manages on a NATS server: many messages in flight at once, each confirmed by the
broker or failed after a timeout; one consumer's messages pulled and acknowledged."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection
from itertools import count
from typing import Any, NamedTuple

import msgspec
from nats.aio.msg import Msg

from tocsin.messaging.delivery import Completions, Done
from tocsin.messaging.limits import BusLimits
from tocsin.messaging.nats.connection import JetStreamError, NatsConnection
from tocsin.model.errors import ConfigError
from tocsin.ports.bus import BusUnavailable, Envelope, InvalidMessage

_OWNER = "tocsin-owner"
_EPOCH = "tocsin-epoch"
_STREAM_NOT_FOUND = 10059
_NAME_IN_USE = 10058
_CONSUMER_NOT_FOUND = 10014
_PREFIX = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}\Z")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
#: A token of a subject without characters that have a meaning there.
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\Z")
_NS_PER_US = 1_000


class Subjects:
    """The names of subjects and streams. Events, and commands without a reply, have the subject
    `<prefix>.<tenant>.<aggregate>.<Type>`; dead letters have the same under `<prefix>-dead`, commands with a reply
    under `<prefix>-cmd` (not in a stream)."""

    def __init__(self, prefix: str) -> None:
        if not _PREFIX.match(prefix):
            raise ConfigError(
                f"broker_prefix {prefix!r} is not valid in a subject; use up to 32 characters of a-z, 0-9, - and _"
            )
        self.prefix = prefix
        self.stream = f"TOCSIN_{prefix.upper()}"
        self.dead_stream = f"{self.stream}_DEAD"

    def of(self, envelope: Envelope, kind: str = "") -> str:
        """The subject of a message. `kind` is empty, `-dead` or `-cmd`. Raises InvalidMessage if tenant, aggregate or
        type are not valid in a subject."""
        tokens = (envelope.tenant_id, envelope.aggregate_id, envelope.type)
        if not all(map(_TOKEN.match, tokens)):
            raise InvalidMessage(
                f"{envelope.type} {envelope.id}: tenant, aggregate or type is not valid in a NATS subject"
            )
        return f"{self.prefix}{kind}.{tokens[0]}.{tokens[1]}.{tokens[2]}"

    def of_type(self, name: str, kind: str = "") -> str:
        """The subject filter for all messages of a type."""
        return f"{self.prefix}{kind}.*.*.{name}"

    def dead(self, subject: str) -> str:
        """The dead-letter subject for an unreadable message that arrived on this subject."""
        return f"{self.prefix}-dead.{subject.split('.', 1)[1]}"


def check_name(subscriber: str) -> None:
    """Raises ValueError if the name is not valid in a consumer's name."""
    if not _NAME.match(subscriber):
        raise ValueError(
            f"{subscriber!r} is not valid as a subscriber's name; use up to 64 characters of A-Z, a-z, 0-9, - and _"
        )


async def ensure_streams(connection: NatsConnection, subjects: Subjects, owner: str, limits: BusLimits) -> None:
    """Creates both streams or updates their settings. Raises ConfigError if they belong to another owner."""
    await _ensure_stream(connection, subjects.stream, f"{subjects.prefix}.*.*.*", owner, limits)
    await _ensure_stream(connection, subjects.dead_stream, f"{subjects.prefix}-dead.*.*.*", owner, limits)


async def _ensure_stream(connection: NatsConnection, name: str, subject: str, owner: str, limits: BusLimits) -> None:
    wanted: dict[str, Any] = {
        "name": name,
        "subjects": [subject],
        "retention": "limits",
        "storage": "file",
        "discard": "old",
        "max_age": limits.nats_stream_age_max_us * _NS_PER_US,
        "duplicate_window": min(limits.nats_duplicate_window_us, limits.nats_stream_age_max_us) * _NS_PER_US,
        "num_replicas": limits.nats_replicas,
        "metadata": {_OWNER: owner},
    }
    try:
        present = (await connection.call(f"STREAM.INFO.{name}", {}))["config"]
    except JetStreamError as error:
        if error.code != _STREAM_NOT_FOUND:
            raise
        try:
            await connection.call(f"STREAM.CREATE.{name}", wanted)
        except JetStreamError as refusal:
            if refusal.code == _NAME_IN_USE:
                # Another node created it at the same time.
                return await _ensure_stream(connection, name, subject, owner, limits)
            raise ConfigError(f"NATS refused to create the stream {name}: {refusal}") from refusal
        return None
    if (present.get("metadata") or {}).get(_OWNER) != owner:
        raise ConfigError(f"the NATS stream {name} belongs to another agent database; choose another broker_prefix")
    if any(present.get(key) != value for key, value in wanted.items() if key != "metadata"):
        try:
            await connection.call(f"STREAM.UPDATE.{name}", {**present, **wanted})
        except JetStreamError as refusal:
            raise ConfigError(f"NATS refused the settings of the stream {name}: {refusal}") from refusal
    return None


class Superseded(Exception):
    """An agent of a newer epoch has consumers on the stream."""


class _Present(NamedTuple):
    """A consumer on the server. `floor` is the stream sequence up to which it has acknowledged everything; `epoch` is 0 for
    a consumer without one."""

    name: str
    floor: int
    epoch: int


async def replace_consumers(
    connection: NatsConnection,
    subjects: Subjects,
    wanted: dict[str, Collection[str]],
    limits: BusLimits,
    epoch: int,
    *,
    newer_too: bool,
) -> dict[str, str]:
    """Gives each subscriber a new consumer that starts after the last message of its former consumer's gapless settled
    range. Returns the names. Unsettled messages are delivered again at once and in order, instead of after the ack
    wait.

    Only the agent of one epoch uses these consumers. Raises Superseded, and changes nothing, if one of a newer epoch has
    some, unless `newer_too`. The new one is created before the old one is deleted: a crash in between leaves both, and
    the next start continues after the furthest of them.
    """
    present = await _consumers(connection, subjects.stream)
    former_of = {
        subscriber: {int(m[1]): each for each in present if (m := _number_of(subscriber).match(each.name))}
        for subscriber in wanted
    }
    newest = max((each.epoch for former in former_of.values() for each in former.values()), default=0)
    if newest > epoch and not newer_too:
        raise Superseded(f"the stream {subjects.stream} has consumers of epoch {newest}")
    names: dict[str, str] = {}
    for subscriber, types in wanted.items():
        former = former_of[subscriber]
        floor = max((each.floor for each in former.values()), default=0)
        name = names[subscriber] = f"{subscriber}-{max(former, default=0) + 1}"
        config: dict[str, Any] = {
            "name": name,
            "durable_name": name,
            "deliver_policy": "by_start_sequence" if floor else "all",
            "ack_policy": "explicit",
            "ack_wait": limits.nats_ack_wait_us * _NS_PER_US,
            "max_deliver": -1,
            "max_ack_pending": limits.nats_ack_pending_max,
            "replay_policy": "instant",
            "filter_subjects": sorted(subjects.of_type(each) for each in types),
            "metadata": {_EPOCH: str(epoch)},
        }
        if floor:
            config["opt_start_seq"] = floor + 1
        request = {"stream_name": subjects.stream, "config": config, "action": "create"}
        await connection.call(f"CONSUMER.CREATE.{subjects.stream}.{name}", request)
        for old in former.values():
            await _delete_consumer(connection, subjects.stream, old.name)
    return names


def _number_of(subscriber: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(subscriber)}-(\d+)\Z")


async def _consumers(connection: NatsConnection, stream: str) -> list[_Present]:
    found: list[_Present] = []
    while True:
        page = await connection.call(f"CONSUMER.LIST.{stream}", {"offset": len(found)})
        consumers = page.get("consumers") or []
        found += map(_present, consumers)
        if not consumers or len(found) >= page["total"]:
            return found


def _present(described: dict[str, Any]) -> _Present:
    # Other programs have consumers on the stream too.
    epoch = str((described["config"].get("metadata") or {}).get(_EPOCH, ""))
    floor = int(described["ack_floor"]["stream_seq"])
    return _Present(described["name"], floor, int(epoch) if epoch.isdecimal() else 0)


async def _delete_consumer(connection: NatsConnection, stream: str, name: str) -> None:
    try:
        await connection.call(f"CONSUMER.DELETE.{stream}.{name}", {})
    except JetStreamError as error:
        if error.code != _CONSUMER_NOT_FOUND:
            raise


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
        """Requests no more messages. The consumer may be deleted from now on."""
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
        if (
            self._asked
            and not self._stopped
            and now_s - self._last_received_s > _HEARTBEATS_MISSED_MAX * self._heartbeat_us / 1e6
        ):
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
        if status == _HEARTBEAT or self._stopped:
            return
        text = headers.get("Description", "")
        if status in _TIMEOUTS or (status == _CONFLICT and "Nats-Pending-Messages" in headers):
            self._asked = max(0, self._asked - int(headers.get("Nats-Pending-Messages", "0")))
        if status in _TIMEOUTS:
            self._pull()
        elif status != _CONFLICT or "Deleted" in text or "Shutdown" in text or "Leadership" in text:
            self._connection.end(f"the consumer {self._name}: {status} {text}")
