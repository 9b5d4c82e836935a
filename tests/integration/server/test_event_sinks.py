"""Events of namespaces with a sink, by a real server to a real NATS server."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import nats as nats_py
import pytest
from nats.js import JetStreamContext

from tests.integration.server.conftest import serving
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.cli.app import run

#: One shard has all events in one order.
ONE_SHARD = {"TOCSIN_SHARDS": "1"}
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEVER = {"retryPolicy": {"maxAttempts": 1}}


def _env(url: str, *targets: str, **more: str) -> dict[str, str]:
    return {"TOCSIN_NATS_URL": url, "TOCSIN_NATS_TARGETS": ",".join(targets)} | ONE_SHARD | more


@pytest.fixture
def prefix() -> str:
    return f"t{uuid4().hex[:12]}"


class Stream:
    """A stream with everything below a subject, as a consumer sees it."""

    def __init__(self, jetstream: JetStreamContext, subject: str) -> None:
        self._jetstream, self._subject = jetstream, subject
        #: Headers and data of those that were read last.
        self.messages: list[tuple[Mapping[str, str], bytes]] = []

    async def add(self) -> None:
        """Creates it."""
        await self._jetstream.add_stream(name=self._subject.upper(), subjects=[f"{self._subject}.>"])

    async def events(self, number: int) -> list[dict[str, Any]]:
        """The first events, once there are so many. Each was published under its id and its type."""
        consumer = await self._jetstream.subscribe(
            f"{self._subject}.>", stream=self._subject.upper(), ordered_consumer=True
        )
        found = []
        self.messages = []
        for _ in range(number):
            message = await consumer.next_msg(timeout=PATIENCE_S)
            event = json.loads(message.data)
            assert (message.headers or {})["Nats-Msg-Id"] == event["id"]
            assert message.subject == f"{self._subject}.{event['type']}"
            found.append(event)
            self.messages.append((message.headers or {}, message.data))
        await consumer.unsubscribe()
        return found

    async def count(self) -> int:
        """How many messages it has."""
        return (await self._jetstream.stream_info(self._subject.upper())).state.messages


async def _stream(url: str, subject: str) -> AsyncIterator[Stream]:
    client = await nats_py.connect(url)
    yield Stream(client.jetstream(), subject)
    await client.close()


@pytest.fixture
async def stream(shared_nats: NatsServer, prefix: str) -> AsyncIterator[Stream]:
    async for each in _stream(shared_nats.url, prefix):
        yield each


def waiting(server: ServerProcess, namespace: str = "shop") -> list[dict[str, Any]]:
    """The events that are stored, in the order of their commits."""
    sql = "SELECT timer_record FROM timers WHERE timer_namespace = ? ORDER BY timer_execute_at, timer_uuid"
    with closing(sqlite3.connect(f"file:{server.data_dir / 'tocsin.db'}?mode=ro", uri=True)) as database:
        return [json.loads(record) for (record,) in database.execute(sql, (f"{namespace}/event",))]


async def until(condition: Any) -> None:
    """Waits until the condition holds of what is stored, or counted, which nobody reports."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 -- no signal
            await asyncio.sleep(0.05)


async def test_events_of_a_namespace_with_a_secret_are_signed(
    tmp_path: Path, shared_nats: NatsServer, stream: Stream, prefix: str
) -> None:
    await stream.add()
    async with (
        serving(tmp_path, "--no-agent", env=_env(shared_nats.url, f"shop={prefix}")) as server,
        Receiver(Inbox()) as to,
    ):
        api = Api(server, namespace="shop")
        assert (await api("namespaces/create", name="shop", eventSink=f"nats://{prefix}", secret=SECRET))[0] == 200
        await api.create("done", to.url)
        await stream.events(1)
        ((headers, data),) = stream.messages
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + data
        digest = hmac.digest(base64.b64decode(SECRET.removeprefix("whsec_")), signed, "sha256")
        assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


async def test_each_end_is_published_and_nothing_is_left(
    tmp_path: Path, shared_nats: NatsServer, stream: Stream, prefix: str
) -> None:
    await stream.add()
    inbox = Inbox()
    async with (
        serving(tmp_path, "--no-agent", env=_env(shared_nats.url, f"shop={prefix}")) as server,
        Receiver(inbox) as to,
    ):
        api = Api(server, namespace="shop")
        status, created = await api("namespaces/create", name="shop", eventSink=f"nats://{prefix}", history="none")
        assert (status, created["eventSink"]) == (200, f"nats://{prefix}")
        await api("namespaces/create", name="other")
        await api.create("done", to.url, tags=["a"])
        await inbox.count(1)
        inbox.answers.append((500, b""))
        await api.create("bad", to.url, payload={"secret": "never published"}, **NEVER)
        await inbox.count(2)
        await api.create("gone", to.url, delay="1h")
        assert (await api("timers/delete", namespace="shop", timerId="gone"))[0] == 204
        await api.create("elsewhere", to.url, namespace="other")
        schedule = {"namespace": "shop", "id": "nightly", "cron": "0 3 * * *", "callbackUrl": to.url}
        assert (await api("schedules/create", **schedule))[0] == 200
        assert (await api("schedules/trigger", namespace="shop", scheduleId="nightly"))[0] == 200
        events = await stream.events(4)
        assert (await api("schedules/delete", namespace="shop", scheduleId="nightly"))[0] == 204
        events = await stream.events(5)
        found = {event["type"]: event for event in events}
        assert found.keys() == {
            "timer.completed", "timer.failed", "timer.canceled", "occurrence.completed", "schedule.canceled",
        }  # fmt: skip
        done, bad = found["timer.completed"], found["timer.failed"]
        assert (done["timerId"], done["namespace"], done["attempts"], done["tags"]) == ("done", "shop", 1, ["a"])
        assert done["webhookId"] == inbox.calls[0].headers["webhook-id"]
        assert (bad["lastError"], bad["destination"]) == ("HTTP_500", to.url)
        assert found["occurrence.completed"]["scheduleId"] == "nightly"
        assert "never published" not in json.dumps(events)
        status, monitor = await api("monitors/put", namespace="shop", id="backup", every="1h")
        assert status == 200, monitor
        path = monitor["pingUrl"][monitor["pingUrl"].index("/ping/") :]
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{server.url}{path}/fail")).status_code == 200
        assert (await api("monitors/delete", namespace="shop", id="backup"))[0] in (200, 204)
        notified = (await stream.events(7))[5:]
        assert [(event["type"], event["monitorId"]) for event in notified] == [
            ("monitor.failed", "backup"), ("monitor.canceled", "backup"),
        ]  # fmt: skip
        await until(lambda: not waiting(server))
        assert await stream.count() == 7


async def test_events_wait_for_a_sink_that_is_away_in_their_order_and_timers_do_not(
    tmp_path: Path, nats: NatsServer
) -> None:
    inbox = Inbox()
    async with serving(tmp_path, "--no-agent", env=_env(nats.url, "shop=orders")) as server, Receiver(inbox) as to:
        api = Api(server, namespace="shop")
        async for stream in _stream(nats.url, "orders"):
            await stream.add()
        await api("namespaces/create", name="shop", eventSink="nats://orders")
        await api.create("before", to.url)
        async for stream in _stream(nats.url, "orders"):
            await stream.events(1)
        await until(lambda: not waiting(server))
        nats.kill()
        for number in range(60):
            await api.create(f"away-{number}", to.url)
        # Timers that fire prove that nothing waits for the sink.
        await inbox.count(61)
        await until(lambda: len(waiting(server)) == 60)
        stored = [event["id"] for event in waiting(server)]
        nats.start()
        async for stream in _stream(nats.url, "orders"):
            events = await stream.events(61)
            assert [event["id"] for event in events[1:]] == stored
            await until(lambda: not waiting(server))
            assert await stream.count() == 61


async def test_beyond_the_backlog_the_oldest_are_lost_and_a_gap_states_how_many(
    tmp_path: Path, nats: NatsServer
) -> None:
    inbox = Inbox()
    env = _env(nats.url, "shop=orders", TOCSIN_SINK_BACKLOG_MAX="20")
    async with serving(tmp_path, "--no-agent", env=env) as server, Receiver(inbox) as to:
        api = Api(server, namespace="shop")
        async for stream in _stream(nats.url, "orders"):
            await stream.add()
        nats.kill()
        await api("namespaces/create", name="shop", eventSink="nats://orders")
        for number in range(50):
            await api.create(f"away-{number:02}", to.url)
        for number in range(50):
            await api.settled(f"away-{number:02}", "completed")
        stored: list[dict[str, Any]] = []

        def full() -> bool:
            """Read once: what is looked at is what is compared."""
            stored[:] = waiting(server)
            return len(stored) == 20 and stored[0].get("lost") == 31

        await until(full)
        nats.start()
        async for stream in _stream(nats.url, "orders"):
            gap, *events = await stream.events(20)
            # The gap takes the place of the last event that it stands for.
            assert (gap["type"], gap["lost"], gap["namespace"]) == ("gap", 31, "shop")
            assert gap["firstAt"] <= gap["lastAt"]
            assert [event["id"] for event in events] == [event["id"] for event in stored[1:]]
            assert len({event["timerId"] for event in events}) == 19


async def test_a_server_that_is_killed_after_it_has_published_repeats_events_under_their_ids(
    tmp_path: Path, shared_nats: NatsServer, stream: Stream, prefix: str
) -> None:
    await stream.add()
    env = _env(shared_nats.url, f"shop={prefix}")
    # Without a further write of a client, rows of published events are not deleted before the kill.
    server = ServerProcess(tmp_path / "data", "--no-agent", env=env | {"TOCSIN_COMMIT_INTERVAL": "1h"})
    await server.start()
    try:
        api = Api(server, namespace="shop")
        await api("namespaces/create", name="shop", eventSink=f"nats://{prefix}")
        names = [f"t{number}" for number in range(20)]
        for name in names:
            await api.create(name, "http://127.0.0.1:9/", delay="1h")
        for name in names:
            assert (await api("timers/delete", namespace="shop", timerId=name))[0] == 204
        events = await stream.events(20)
    finally:
        await server.kill()
    left = [event["id"] for event in waiting(server)]
    assert left
    assert left == [event["id"] for event in events[-len(left) :]]
    async with serving(tmp_path, "--no-agent", env=env) as server:
        await until(lambda: not waiting(server))
        async with httpx.AsyncClient() as client:
            metrics = (await client.get(f"{server.url}/metrics")).text
        # They were published again, and dropped as repetitions by the stream.
        published = re.findall(r"^tocsin_sink_published_total\{.*\} (\d+)", metrics, re.MULTILINE)
        assert sum(map(int, published)) == len(left)
        assert await stream.count() == 20
        assert {event["timerId"] for event in events} == set(names)


async def test_a_namespace_without_a_stream_keeps_no_other_from_publishing(
    tmp_path: Path, shared_nats: NatsServer, stream: Stream, prefix: str
) -> None:
    await stream.add()
    inbox = Inbox()
    env = _env(shared_nats.url, f"shop={prefix}", f"lost={prefix}none")
    async with serving(tmp_path, "--no-agent", env=env) as server, Receiver(inbox) as to:
        api = Api(server, namespace="shop")
        await api("namespaces/create", name="lost", eventSink=f"nats://{prefix}none")
        await api("namespaces/create", name="shop", eventSink=f"nats://{prefix}")
        await api.create("first", to.url, namespace="lost")
        await until(lambda: len(waiting(server, "lost")) == 1)
        await api.create("second", to.url)
        assert [event["timerId"] for event in await stream.events(1)] == ["second"]
        assert len(waiting(server, "lost")) == 1
        # Without a sink, nobody waits for it.
        assert (await api("namespaces/update", name="lost", eventSink=None))[0] == 200
        await until(lambda: not waiting(server, "lost"))


async def test_only_subjects_of_the_namespace_are_sinks(tmp_path: Path, shared_nats: NatsServer, prefix: str) -> None:
    async with serving(tmp_path, "--no-agent", env=_env(shared_nats.url, f"shop={prefix}")) as server:
        api = Api(server)
        for name in ("shop", "other"):
            await api("namespaces/create", name=name)
        long = f"nats://{prefix}.{'a' * 230}"
        bad = (
            "http://a.example/",
            f"nats://{prefix}x",
            "nats://svc.a",
            f"nats://{prefix}.>",
            "nats://$JS.API",
            "",
            long,
        )
        for name, sink in (
            *(("shop", each) for each in bad),
            ("other", f"nats://{prefix}"),
            ("default", f"nats://{prefix}"),
        ):
            status, answer = await api("namespaces/update", name=name, eventSink=sink)
            assert (status, [each["path"] for each in answer["errors"]]) == (400, ["eventSink"]), (name, sink)
        assert (await api("namespaces/update", name="shop", eventSink=f"nats://{prefix}.events"))[0] == 200


async def test_a_deleted_namespace_stays_until_its_sink_has_its_last_events(
    tmp_path: Path, shared_nats: NatsServer, stream: Stream, prefix: str
) -> None:
    env = _env(shared_nats.url, f"shop={prefix}")
    async with serving(tmp_path, "--no-agent", env=env) as server:
        api = Api(server, namespace="shop")
        # No stream takes them yet.
        await api("namespaces/create", name="shop", eventSink=f"nats://{prefix}")
        for number in range(3):
            await api.create(f"t{number}", "http://127.0.0.1:9/", delay="1h")
        status, answer = await api("namespaces/delete", name="shop", cancelPending=True)
        assert status in (200, 202), answer
        await until(lambda: len(waiting(server)) == 3)
        assert (await api("namespaces/get", name="shop"))[0] == 200
        await stream.add()
        assert {event["timerId"] for event in await stream.events(3)} == {"t0", "t1", "t2"}
        async with asyncio.timeout(PATIENCE_S):
            while (await api("namespaces/get", name="shop"))[0] != 404:  # noqa: ASYNC110 -- no signal
                await asyncio.sleep(0.05)
        assert waiting(server) == []
        # One of the same name has none of them.
        await api("namespaces/create", name="shop", eventSink=f"nats://{prefix}")
        await api.create("new", "http://127.0.0.1:9/", delay="1h")
        assert (await api("timers/delete", namespace="shop", timerId="new"))[0] == 204
        assert [event["timerId"] for event in (await stream.events(4))[3:]] == ["new"]


async def test_commands_and_files_give_a_namespace_its_sink(
    tmp_path: Path, shared_nats: NatsServer, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    env = _env(shared_nats.url, f"shop={prefix}")
    async with serving(tmp_path, "--no-agent", env=env) as server:
        api = Api(server)

        async def tocsin(*words: str) -> int:
            return await asyncio.to_thread(run, [*words, "--server", server.url])

        async def sink() -> str | None:
            found: str | None = (await api("namespaces/get", name="shop"))[1].get("eventSink")
            return found

        assert await tocsin("namespaces", "create", "shop", "--event-sink", f"nats://{prefix}.a") == 0
        assert await sink() == f"nats://{prefix}.a"
        assert await tocsin("namespaces", "update", "shop", "--no-event-sink") == 0
        assert await sink() is None
        both = ("--no-event-sink", "--event-sink", f"nats://{prefix}")
        assert await tocsin("namespaces", "update", "shop", *both) != 0
        file = tmp_path / "tocsin.yaml"
        file.write_text(f"managedBy: test\nnamespaces:\n  - name: shop\n    eventSink: nats://{prefix}.b\n")
        assert await tocsin("apply", "-f", str(file)) == 0, capsys.readouterr()
        assert await sink() == f"nats://{prefix}.b"
        assert await tocsin("apply", "-f", str(file), "--detailed-exitcode") == 0
        file.write_text("managedBy: test\nnamespaces:\n  - name: shop\n")
        assert await tocsin("apply", "-f", str(file)) == 0
        assert await sink() is None
