"""The streams and consumers that the agent manages on a NATS server."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from tocsin.messaging.limits import BusLimits
from tocsin.messaging.nats.connection import JetStreamError, NatsConnection
from tocsin.model.errors import ConfigError
from tocsin.ports.bus import Envelope, InvalidMessage

_OWNER = "tocsin-owner"
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


async def replace_consumers(
    connection: NatsConnection, subjects: Subjects, wanted: dict[str, Collection[str]], limits: BusLimits
) -> dict[str, str]:
    """Gives each subscriber a new consumer that starts after the last message of its former consumer's gapless settled
    range. Returns the names. Unsettled messages are delivered again at once and in order, instead of after the ack
    wait.

    Only this agent uses these consumers. The new one is created before the old one is deleted: a crash in between
    leaves both, and the next start continues after the furthest of them.
    """
    present = await _consumers(connection, subjects.stream)
    names: dict[str, str] = {}
    for subscriber, types in wanted.items():
        former = {int(m[1]): (name, floor) for name, floor in present if (m := _number_of(subscriber).match(name))}
        floor = max((floor for _, floor in former.values()), default=0)
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
        }
        if floor:
            config["opt_start_seq"] = floor + 1
        request = {"stream_name": subjects.stream, "config": config, "action": "create"}
        await connection.call(f"CONSUMER.CREATE.{subjects.stream}.{name}", request)
        for old, _ in former.values():
            await _delete_consumer(connection, subjects.stream, old)
    return names


def _number_of(subscriber: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(subscriber)}-(\d+)\Z")


async def _consumers(connection: NatsConnection, stream: str) -> list[tuple[str, int]]:
    """The name of each consumer, and the stream sequence up to which it has acknowledged everything."""
    found: list[tuple[str, int]] = []
    while True:
        page = await connection.call(f"CONSUMER.LIST.{stream}", {"offset": len(found)})
        consumers = page.get("consumers") or []
        found += [(each["name"], int(each["ack_floor"]["stream_seq"])) for each in consumers]
        if not consumers or len(found) >= page["total"]:
            return found


async def _delete_consumer(connection: NatsConnection, stream: str, name: str) -> None:
    try:
        await connection.call(f"CONSUMER.DELETE.{stream}.{name}", {})
    except JetStreamError as error:
        if error.code != _CONSUMER_NOT_FOUND:
            raise
