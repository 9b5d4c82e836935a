"""Timers that are published to NATS subjects, by a real server to a real NATS server."""

from __future__ import annotations

import asyncio
import base64
import hmac
import itertools
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import nats as nats_py
import pytest
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from tests.integration.server.conftest import serving
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SOON = {"maxAttempts": 200, "initialInterval": "100ms", "backoffMultiplier": 1, "maxInterval": "100ms"}


class Streams:
    """The streams of a NATS server, as another program of its users sees them."""

    def __init__(self, jetstream: JetStreamContext) -> None:
        self._jetstream = jetstream

    async def add(self, subject: str) -> None:
        """Has a stream of that name, in capitals, store what is published to the subject and below it."""
        await self._jetstream.add_stream(name=subject.upper(), subjects=[subject, f"{subject}.>"])

    async def messages(self, subject: str, number: int) -> list[tuple[str, Mapping[str, str], bytes]]:
        """Subject, headers and data of the first messages of its stream, once there are so many."""
        subscription = await self._jetstream.subscribe(
            subject, stream=subject.split(".")[0].upper(), ordered_consumer=True
        )
        found = [await subscription.next_msg(timeout=PATIENCE_S) for _ in range(number)]
        await subscription.unsubscribe()
        return [(each.subject, each.headers or {}, each.data) for each in found]

    async def count(self, subject: str) -> int:
        """How many messages its stream has."""
        return (await self._jetstream.stream_info(subject.upper())).state.messages


async def _streams(url: str) -> AsyncIterator[Streams]:
    client = await nats_py.connect(url)
    yield Streams(client.jetstream())
    await client.close()


@pytest.fixture
def prefix() -> str:
    return f"t{uuid4().hex[:12]}"


@pytest.fixture
async def streams(shared_nats: NatsServer) -> AsyncIterator[Streams]:
    async for each in _streams(shared_nats.url):
        yield each


def _env(url: str, *targets: str) -> dict[str, str]:
    return {"TOCSIN_NATS_URL": url, "TOCSIN_NATS_TARGETS": ",".join(targets)}


async def test_a_timer_becomes_one_message_with_the_headers_of_a_callback(
    tmp_path: Path, shared_nats: NatsServer, streams: Streams, prefix: str
) -> None:
    await streams.add(prefix)
    async with serving(tmp_path, "--no-agent", env=_env(shared_nats.url, f"shop={prefix}")) as server:
        api = Api(server, namespace="shop")
        await api("namespaces/create", name="shop", secret=SECRET)
        created = await api.create("a", f"nats://{prefix}.created", payload={"order": 17}, headers={"X-Team": "blue"})
        assert created["callbackUrl"] == f"nats://{prefix}.created"
        await api.settled("a", "completed")
        ((subject, headers, data),) = await streams.messages(f"{prefix}.>", 1)
        body = json.loads(data)
        assert (subject, body["timerId"], body["payload"]) == (f"{prefix}.created", "a", {"order": 17})
        assert (headers["X-Team"], headers["content-type"]) == ("blue", "application/json")
        assert headers["webhook-id"] == headers["Nats-Msg-Id"]
        assert _is_signed(headers, data)
        await api.create("b", f"nats://{prefix}.created", body={"text": "plain", "contentType": "text/plain"})
        await api.settled("b", "completed")
        _, (_, headers, data) = await streams.messages(f"{prefix}.>", 2)
        assert (data, headers["content-type"], headers["tocsin-timer-id"]) == (b"plain", "text/plain", "b")
        assert _is_signed(headers, data)
        status, listed = await api("destinations/list")
        assert status == 200 and [each["destination"] for each in listed["destinations"]] == [f"nats://{prefix}"]
        status, paused = await api("destinations/pause", destination=f"nats://{prefix}.created")
        assert (status, paused["destination"], paused["paused"]) == (200, f"nats://{prefix}", True)


async def test_nothing_else_can_be_published_to(tmp_path: Path, shared_nats: NatsServer, prefix: str) -> None:
    async with serving(tmp_path, "--no-agent", env=_env(shared_nats.url, f"shop={prefix}")) as server:
        api = Api(server)
        for name in ("shop", "other"):
            assert (await api("namespaces/create", name=name))[0] == 200
        forbidden = (
            ("other", f"{prefix}.created"), ("default", prefix), ("shop", f"{prefix}x"), ("shop", "svc.anything"),
            ("shop", f"{prefix}.>"), ("shop", f"{prefix}.*"), ("shop", f"{prefix}..a"), ("shop", "$JS.API.STREAM.DELETE.A"),
            ("shop", ""), ("shop", f"{prefix}.a?b=c"), ("shop", f"user:password@{prefix}"),
        )  # fmt: skip
        for namespace, subject in forbidden:
            create = {"namespace": namespace, "id": "x", "delay": "1h", "callbackUrl": f"nats://{subject}"}
            await _refused(api, "timers/create", "callbackUrl", **create)
            assert (await api("timers/create", **create | {"callbackUrl": "http://127.0.0.1:9/"}))[0] == 200
            await _refused(
                api, "timers/update", "callbackUrl", namespace=namespace, timerId="x", callbackUrl=f"nats://{subject}"
            )
            hook = {"url": f"NATS://{subject}"}
            await _refused(
                api,
                "timers/create",
                "onFailure.url",
                **create | {"callbackUrl": "http://a.example/", "onFailure": hook},
            )
            await _refused(api, "namespaces/update", "onFailure.url", name=namespace, onFailure=hook)
            replay = {"namespace": namespace, "ids": ["x"], "setUrl": f"nats://{subject}"}
            await _refused(api, "timers/replay", "setUrl", **replay)
            job = {"namespace": namespace, "of": "timers", "action": "setUrl", "filter": {}, "url": f"nats://{subject}"}
            await _refused(api, "jobs/create", "url", **job)
            await _refused(api, "timers/create", "method", **create | {"method": "GET"})
            schedule = {"namespace": namespace, "id": "s", "every": "1h", "callbackUrl": f"nats://{subject}"}
            await _refused(api, "schedules/create", "callbackUrl", **schedule)


async def test_service_calls_are_not_published(tmp_path: Path, shared_nats: NatsServer, prefix: str) -> None:
    async with serving(tmp_path, env=_env(shared_nats.url, f"default={prefix}")) as server:
        api = Api(server)
        call = {"name": "n", "requestSpec": {"method": "POST", "url": f"nats://{prefix}"}}
        await _refused(api, f"tenants/{uuid4()}/service-calls", "requestSpec.url", **call)


async def test_what_no_stream_stores_is_tried_again_until_one_does(
    tmp_path: Path, shared_nats: NatsServer, streams: Streams, prefix: str
) -> None:
    async with serving(tmp_path, "--no-agent", env=_env(shared_nats.url, f"default={prefix}")) as server:
        api = Api(server)
        await api.create("a", f"nats://{prefix}", retryPolicy=SOON)
        tried = await api.attempted("a", 2)
        assert "NO_STREAM" in tried["lastError"]
        await streams.add(prefix)
        await api.settled("a", "completed")
        assert await streams.count(prefix) == 1


async def test_a_reply_of_a_subscriber_acknowledges_nothing(
    tmp_path: Path, shared_nats: NatsServer, streams: Streams, prefix: str
) -> None:
    client = await nats_py.connect(shared_nats.url)
    replies = itertools.cycle([b"{}", b'{"ok": true}', b'{"x":' * 5_000])

    async def reply(message: Msg) -> None:
        await message.respond(next(replies))

    subscription = await client.subscribe(prefix, cb=reply)
    async with serving(tmp_path, "--no-agent", env=_env(shared_nats.url, f"default={prefix}")) as server:
        api = Api(server)
        await api.create("a", f"nats://{prefix}", retryPolicy=SOON)
        tried = await api.attempted("a", 4)
        assert (tried["status"], "BAD_RESPONSE" in tried["lastError"]) == ("pending", True), tried
        await subscription.unsubscribe()
        await streams.add(prefix)
        await api.settled("a", "completed")
        assert await streams.count(prefix) == 1
    await client.close()


async def test_timers_wait_while_the_nats_server_is_away_and_none_is_stored_twice(
    tmp_path: Path, nats: NatsServer
) -> None:
    # A breaker would wait for ten seconds before it tries again.
    env = _env(nats.url, "default=orders") | {"TOCSIN_BREAKER_ENABLED": "false"}
    async with serving(tmp_path, "--no-agent", env=env) as server:
        api = Api(server)
        async for streams in _streams(nats.url):
            await streams.add("orders")
        await api.create("before", "nats://orders", retryPolicy=SOON)
        await api.settled("before", "completed")
        nats.kill()
        for number in range(20):
            await api.create(f"away-{number}", "nats://orders", retryPolicy=SOON)
        assert "CONNECTION_" in (await api.attempted("away-0", 1))["lastError"]
        nats.start()
        for number in range(20):
            await api.settled(f"away-{number}", "completed")
        async for streams in _streams(nats.url):
            assert await streams.count("orders") == 21


async def test_a_frozen_nats_server_times_attempts_out_and_repeats_are_dropped_by_their_id(
    tmp_path: Path, nats: NatsServer
) -> None:
    async with serving(tmp_path, "--no-agent", env=_env(nats.url, "default=orders")) as server:
        api = Api(server)
        async for streams in _streams(nats.url):
            await streams.add("orders")
        await api.create("before", "nats://orders")
        await api.settled("before", "completed")
        nats.pause()
        await api.create("a", "nats://orders", retryPolicy=SOON, callbackTimeoutSeconds=1)
        assert "TIMEOUT" in (await api.attempted("a", 1))["lastError"]
        nats.resume()
        await api.settled("a", "completed")
        async for streams in _streams(nats.url):
            assert await streams.count("orders") == 2


async def test_callbacks_are_sent_while_messages_to_two_subjects_are_not_acknowledged(
    tmp_path: Path, shared_nats: NatsServer, prefix: str
) -> None:
    client = await nats_py.connect(shared_nats.url)
    received: asyncio.Queue[Msg] = asyncio.Queue()
    await client.subscribe(f"{prefix}.>", cb=received.put)
    await client.subscribe(f"{prefix}-too.>", cb=received.put)
    await client.flush()
    env = _env(shared_nats.url, f"default={prefix}", f"default={prefix}-too")
    # Twenty slots for messages, sixteen of them for one namespace.
    env |= {"TOCSIN_CALLBACKS_IN_FLIGHT_MAX": "5", "TOCSIN_DESTINATION_IN_FLIGHT_MAX": "4"}
    server = ServerProcess(tmp_path / "data", "--no-agent", env=env)
    await server.start()
    try:
        api, inbox = Api(server), Inbox()
        for number in range(12):
            for subject in (prefix, f"{prefix}-too"):
                await api.create(f"{subject}-{number}", f"nats://{subject}.a", callbackTimeoutSeconds=60)
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(16):
                await received.get()
        async with Receiver(inbox) as receiver:
            for number in range(20):
                await api.create(f"w{number}", receiver.url)
            await inbox.count(20)
        # No message has made room for them, though one that has timed out may have for another message.
        async with httpx.AsyncClient() as browser:
            metrics = (await browser.get(f"{server.url}/metrics")).text
        assert re.search(r"^tocsin_messages_in_flight 16(\.0)?$", metrics, re.MULTILINE), metrics
    finally:
        await server.kill()
        await client.close()


@pytest.mark.parametrize("targets", [True, False], ids=["another subject", "no server"])
async def test_a_timer_whose_subject_is_no_longer_permitted_is_suspended(
    tmp_path: Path, shared_nats: NatsServer, streams: Streams, prefix: str, targets: bool
) -> None:
    await streams.add(prefix)
    server = ServerProcess(tmp_path / "data", "--no-agent", env=_env(shared_nats.url, f"default={prefix}"))
    await server.start()
    try:
        await Api(server).create("a", f"nats://{prefix}.late", delay="1h")
        await server.stop()
        server.env = _env(shared_nats.url, "default=elsewhere") if targets else {}
        await server.start()
        api = Api(server)
        assert (await api("timers/update", namespace="default", timerId="a", delay="0s"))[0] == 200
        async with asyncio.timeout(PATIENCE_S):
            while (await api("timers/explain", namespace="default", timerId="a"))[1]["state"] != "suspended":  # noqa: ASYNC110 -- no signal
                await asyncio.sleep(0.05)
        assert await streams.count(prefix) == 0
    finally:
        await server.kill()


async def _refused(api: Api, operation: str, path: str, **body: Any) -> None:
    status, answer = await api(operation, **body)
    assert status == 400 and path in [each["path"] for each in answer["errors"]], (operation, body, answer)


def _is_signed(headers: Mapping[str, str], data: bytes) -> bool:
    """By the Standard Webhooks specification: over id, timestamp and body."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + data
    digest = hmac.digest(base64.b64decode(SECRET.removeprefix("whsec_")), signed, "sha256")
    return headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
