"""What the bus stores on a NATS server, and how it reacts to changes by other programs."""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import nats as nats_py
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.conformance.bus.base import LIMITS, TENANT, Handling, Keeping, Notes, check, message, until_waiting
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tocsin.messaging.nats.bus import NatsBus
from tocsin.model.errors import ConfigError
from tocsin.model.ids import Uuid7Source
from tocsin.ports.bus import BrokerConnection, BrokerRefused, BusUnavailable, Delivery, Envelope, InvalidMessage

_prefixes = Uuid7Source(lambda: 1_700_000_000_000_000)


@pytest.fixture
def prefix() -> str:
    """A subject prefix for this test only on the shared server."""
    return "t" + _prefixes().replace("-", "")[-24:]


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest_asyncio.fixture
async def raw(shared_nats: NatsServer) -> AsyncIterator[Client]:
    """Another client of the server."""
    client = await nats_py.connect(shared_nats.url)
    yield client
    await client.close()


def make_bus(server: NatsServer, notes: Notes, prefix: str, owner: str = "database", **limits: int) -> NatsBus:
    return NatsBus(server.url, replace(LIMITS, **limits), check, notes.observe, prefix=prefix, owner=owner)


async def api(client: Client, subject: str, request: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = await client.request(f"$JS.API.{subject}", msgspec.json.encode(request or {}), timeout=PATIENCE_S)
    decoded: dict[str, Any] = msgspec.json.decode(answer.data)
    return decoded


async def stored(client: Client, stream: str, sequence: int) -> tuple[str, bytes, str]:
    """Subject, payload and headers of stored messages."""
    kept = (await api(client, f"STREAM.MSG.GET.{stream}", {"seq": sequence}))["message"]
    return kept["subject"], b64decode(kept["data"]), b64decode(kept["hdrs"]).decode()


async def test_a_message_has_its_subject_and_id(
    shared_nats: NatsServer, raw: Client, notes: Notes, prefix: str
) -> None:
    bus = make_bus(shared_nats, notes, prefix)
    await bus.start()
    sent = message("a", 1)
    await bus.publish([sent])
    subject, data, headers = await stored(raw, f"TOCSIN_{prefix.upper()}", 1)
    assert subject == f"{prefix}.{TENANT}.a.Happened"
    assert headers == f"NATS/1.0\r\nNats-Msg-Id: {sent.id}\r\n\r\n"
    assert msgspec.json.decode(data, type=Envelope) == sent
    await bus.close()


async def test_a_stream_of_another_database_is_refused(shared_nats: NatsServer, notes: Notes, prefix: str) -> None:
    bus = make_bus(shared_nats, notes, prefix, owner="one")
    await bus.start()
    other = make_bus(shared_nats, notes, prefix, owner="other")
    with pytest.raises(ConfigError, match="prefix"):
        await other.start()
    await other.close()
    await bus.close()


async def test_changed_limits_are_applied_to_an_existing_stream(
    shared_nats: NatsServer, raw: Client, notes: Notes, prefix: str
) -> None:
    for days in (7, 3):
        bus = make_bus(shared_nats, notes, prefix, nats_stream_age_max_us=days * 86_400_000_000)
        await bus.start()
        await bus.close()
        config = (await api(raw, f"STREAM.INFO.TOCSIN_{prefix.upper()}"))["config"]
        assert config["max_age"] == days * 86_400 * 10**9


@pytest.mark.parametrize("prefix", ["", "a.b", "A", "x" * 33, "a b", "*", ">"])
def test_invalid_prefixes_are_refused(notes: Notes, prefix: str) -> None:
    with pytest.raises(ConfigError, match="prefix"):
        NatsBus("nats://127.0.0.1:1", LIMITS, check, notes.observe, prefix=prefix, owner="one")


async def test_dead_letters_have_their_own_stream(
    shared_nats: NatsServer, raw: Client, notes: Notes, prefix: str
) -> None:
    def never(deliveries: Sequence[Delivery]) -> None:
        raise ValueError("Größe\nunknown")

    bus = make_bus(shared_nats, notes, prefix)
    bus.subscribe("one", ["Happened"], Handling(notes, never))
    await bus.start()
    sent = message("a", 1)
    await bus.publish([sent])
    await notes.until(lambda: len(notes.dead) == 1)
    await until_waiting(bus, 0)
    await bus.close()
    subject, data, headers = await stored(raw, f"TOCSIN_{prefix.upper()}_DEAD", 1)
    assert subject == f"{prefix}-dead.{TENANT}.a.Happened"
    assert msgspec.json.decode(data, type=Envelope) == sent
    lines = headers.split("\r\n")
    assert "Tocsin-Subscriber: one" in lines
    assert "Tocsin-Error: ValueError: Größe unknown" in lines
    assert f"Tocsin-Deliveries: {LIMITS.deliveries_max}" in lines


async def test_an_unreadable_message_is_a_dead_letter_at_once(
    shared_nats: NatsServer, raw: Client, notes: Notes, prefix: str
) -> None:
    handling = Handling(notes)
    bus = make_bus(shared_nats, notes, prefix)
    bus.subscribe("one", ["Happened"], handling)
    await bus.start()
    good = message("a", 1)
    foreign = msgspec.structs.replace(message("b", 1), tenant_id="somebody-else")
    for data in (
        b"no json",
        b"\xff\xfe",
        b"[" * 100_000,
        msgspec.json.encode(message("a", bad=True)),
        msgspec.json.encode(foreign),
    ):
        await raw.publish(f"{prefix}.{TENANT}.a.Happened", data)
    await raw.flush()
    await bus.publish([good])
    await handling.until_handled([good])
    await notes.until(lambda: len(notes.dead) == 5)
    assert handling.handled == [good]
    assert {(event.subscriber, event.type, event.tenant_id, event.service_call_id) for event in notes.dead} == {
        ("one", "Happened", TENANT, "a")
    }
    assert all("InvalidMessage" in event.error for event in notes.dead)
    await until_waiting(bus, 0)
    await bus.close()
    assert (await api(raw, f"STREAM.INFO.TOCSIN_{prefix.upper()}_DEAD"))["state"]["messages"] == 5
    assert (await stored(raw, f"TOCSIN_{prefix.upper()}_DEAD", 1))[1] == b"no json"
    # They were acknowledged.
    again, later = make_bus(shared_nats, notes, prefix), Handling(notes)
    again.subscribe("one", ["Happened"], later)
    await again.start()
    last = message("a", 2)
    await again.publish([last])
    await later.until_handled([last])
    await again.close()
    assert (later.handled, len(notes.dead)) == ([last], 5)


async def test_an_unreadable_command_is_refused(
    shared_nats: NatsServer, raw: Client, notes: Notes, prefix: str
) -> None:
    async def respond(commands: Sequence[Envelope]) -> Sequence[Envelope]:
        raise AssertionError("nothing readable came")

    bus = make_bus(shared_nats, notes, prefix)
    bus.respond("answering", ["Do"], respond)
    await bus.start()
    reply = await raw.request(f"{prefix}-cmd.{TENANT}.a.Do", b"no json", timeout=PATIENCE_S)
    assert reply.headers is not None
    assert reply.headers["Tocsin-Error"] == InvalidMessage.code
    await bus.close()


async def test_progress_is_reported_for_long_running_messages(
    shared_nats: NatsServer, raw: Client, notes: Notes, prefix: str
) -> None:
    signs: list[str] = []

    async def seen(sign: Msg) -> None:
        if sign.data == b"+WPI":
            signs.append(sign.subject)
            notes.change()

    await raw.subscribe("$JS.ACK.>", cb=seen)
    await raw.flush()
    bus = make_bus(shared_nats, notes, prefix, nats_ack_wait_us=400_000)
    handling = Keeping(notes)
    bus.subscribe("one", ["Happened"], handling)
    await bus.start()
    sent = message("a")
    await bus.publish([sent])
    stream = f"TOCSIN_{prefix.upper()}"
    await notes.until(lambda: sum(f".{stream}." in subject for subject in signs) >= 5)
    consumer = (await api(raw, f"CONSUMER.INFO.{stream}.one-1"))["delivered"]["consumer_seq"]
    handling.kept[0].ack()
    await until_waiting(bus, 0)
    await bus.close()
    assert (consumer, len(handling.handled)) == (1, 1)


async def test_a_deleted_stream_or_consumer_is_created_again(
    shared_nats: NatsServer, raw: Client, notes: Notes, prefix: str
) -> None:
    bus = make_bus(shared_nats, notes, prefix)
    handling = Handling(notes)
    bus.subscribe("one", ["Happened"], handling)
    await bus.start()
    stream = f"TOCSIN_{prefix.upper()}"

    def returns() -> int:
        return sum(isinstance(event, BrokerConnection) and event.connected for event in notes.events)

    await api(raw, f"CONSUMER.DELETE.{stream}.one-1")
    await notes.until(lambda: returns() == 1)
    first = message("a", 1)
    await bus.publish([first])
    await handling.until_handled([first])
    await api(raw, f"STREAM.DELETE.{stream}")
    await notes.until(lambda: returns() == 2)
    second = message("a", 2)
    await bus.publish([second])
    await handling.until_handled([second])
    await bus.close()
    assert handling.handled == [first, second]


async def test_after_a_crash_the_furthest_consumer_counts(
    shared_nats: NatsServer, raw: Client, notes: Notes, prefix: str
) -> None:
    first, handling = make_bus(shared_nats, notes, prefix), Handling(notes)
    first.subscribe("one", ["Happened"], handling)
    await first.start()
    sent = [message("a", i) for i in range(5)]
    await first.publish(sent)
    await handling.until_handled(sent)
    await until_waiting(first, 0)
    await first.close()
    # The consumer that should have been deleted: it has acknowledged nothing.
    stream = f"TOCSIN_{prefix.upper()}"
    config = {"name": "one-7", "durable_name": "one-7", "ack_policy": "explicit", "deliver_policy": "all"}
    await api(raw, f"CONSUMER.CREATE.{stream}.one-7", {"stream_name": stream, "config": config, "action": "create"})
    again, later = make_bus(shared_nats, notes, prefix), Handling(notes)
    again.subscribe("one", ["Happened"], later)
    await again.start()
    last = message("a", 5)
    await again.publish([last])
    await later.until_handled([last])
    assert later.handled == [last]
    names = [each["name"] for each in (await api(raw, f"CONSUMER.LIST.{stream}"))["consumers"]]
    assert names == ["one-8"]
    await again.close()


async def test_messages_beyond_the_in_hand_limit_arrive_in_portions(
    shared_nats: NatsServer, notes: Notes, prefix: str
) -> None:
    bus = make_bus(shared_nats, notes, prefix, nats_ack_pending_max=20, nats_fetch_max=7)
    handling = Keeping(notes)
    bus.subscribe("one", ["Happened"], handling)
    await bus.start()
    sent = [message(f"a{i}") for i in range(100)]
    await bus.publish(sent)
    await notes.until(lambda: len(handling.kept) == 20)
    assert bus.waiting == 20
    for settled in range(100):
        await notes.until(lambda settled=settled: len(handling.kept) > settled)  # type: ignore[misc]
        handling.kept[settled].ack()
    await until_waiting(bus, 0)
    assert [each.id for each in handling.handled] == [each.id for each in sent]
    await bus.close()


async def test_expired_pull_requests_are_repeated(
    shared_nats: NatsServer, raw: Client, notes: Notes, prefix: str
) -> None:
    asked = 0

    async def seen(request: Msg) -> None:
        nonlocal asked
        asked += 1
        notes.change()

    await raw.subscribe(f"$JS.API.CONSUMER.MSG.NEXT.TOCSIN_{prefix.upper()}.>", cb=seen)
    await raw.flush()
    bus = make_bus(shared_nats, notes, prefix, nats_fetch_expires_us=1_000_000, nats_heartbeat_us=300_000)
    handling = Handling(notes)
    bus.subscribe("one", ["Happened"], handling)
    await bus.start()
    first = asked
    await notes.until(lambda: asked >= first + 8)
    sent = [message(f"a{i}") for i in range(100)]
    await bus.publish(sent)
    await handling.until_handled(sent)
    assert not any(isinstance(event, BrokerConnection) for event in notes.events)
    await bus.close()


async def test_a_message_beyond_the_servers_size_limit_is_invalid(
    shared_nats: NatsServer, notes: Notes, prefix: str
) -> None:
    bus = make_bus(shared_nats, notes, prefix)
    await bus.start()
    long = msgspec.structs.replace(message("a"), payload=msgspec.Raw(b'"' + b"x" * 1_048_576 + b'"'))
    with pytest.raises(InvalidMessage, match="size"):
        await bus.publish([long])
    odd = msgspec.structs.replace(message("a"), aggregate_id="a.b")
    with pytest.raises(InvalidMessage, match="subject"):
        await bus.publish([odd])
    await bus.publish([message("a")])
    await bus.close()


async def refusal_of(version: str, notes: Notes, kind: type[Exception]) -> str:
    """Why the bus does not start with a server of this version, which has no JetStream."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"version":"%s","max_payload":1048576,"headers":true}\r\n' % version.encode())
        while line := await reader.readline():
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")
            elif line.startswith(b"PUB "):
                _, _, reply, _ = line.split()
                writer.write(b"HMSG %s 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n" % reply)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    bus = NatsBus(f"nats://127.0.0.1:{port}", LIMITS, check, notes.observe, owner="one")
    with pytest.raises(kind) as refused:
        await bus.start()
    await bus.close()
    server.close()
    return str(refused.value)


async def test_unsuitable_servers_are_refused(notes: Notes) -> None:
    assert re.search(r"2\.9.*2\.10", await refusal_of("2.9.25", notes, ConfigError))
    assert "JetStream" in await refusal_of("2.11.0", notes, BusUnavailable)


async def test_a_password_is_used_and_never_shown(notes: Notes, caplog: pytest.LogCaptureFixture) -> None:
    server = NatsServer('authorization { user: "agent", password: "pa:ss/word" }')
    try:
        server.start()
        address = f"127.0.0.1:{server.port}"
        wrong = NatsBus(f"nats://agent:hunter2@{address}", LIMITS, check, notes.observe, owner="one")
        with pytest.raises(BrokerRefused) as refusal:
            await wrong.start()
        await wrong.close()
        bus = NatsBus(f"nats://agent:pa%3Ass%2Fword@{address}", LIMITS, check, notes.observe, owner="one")
        await bus.start()
        server.kill()
        await notes.until(lambda: bool(notes.events))
        with pytest.raises(BusUnavailable) as failure:
            await bus.publish([message("a")])
        server.start()
        await notes.until(
            lambda: any(isinstance(event, BrokerConnection) and event.connected for event in notes.events)
        )
        await bus.close()
    finally:
        server.remove()
    shown = f"{refusal.value} {failure.value} {notes.events} {caplog.text} {vars(bus)}"
    assert address in shown
    assert not any(secret in shown for secret in ("hunter2", "pa:ss", "pa%3Ass"))
