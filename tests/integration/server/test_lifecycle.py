"""The life of a timer over HTTP, with a real server and a real receiver."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import signal
import time
from pathlib import Path

import httpx
import pytest
from standardwebhooks import Webhook

from tests.support.calls import Api, Inbox
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant, parse_instant

POLICY = {"maxAttempts": 3, "initialInterval": "50ms"}


def in_ms(amount: int) -> str:
    return format_instant(time.time_ns() // 1_000 + amount * 1_000)


async def test_a_timer_fires_on_time_with_its_payload_and_completes(server: ServerProcess) -> None:
    api, inbox = Api(server), Inbox()
    async with Receiver(inbox) as receiver:
        due = in_ms(300)
        made = await api.create("a", receiver.url, executeAt=due, payload={"n": [1, "ü"]}, headers={"x-own": "1"})
        assert (made["status"], made["executeAt"], made["attempts"]) == ("pending", due, 0)
        (call,) = await inbox.count(1)
        assert call.lag_us >= 0
        assert call.body["payload"] == {"n": [1, "ü"]}
        assert (call.body["namespace"], call.body["timerId"], call.body["attempt"]) == ("default", "a", 1)
        assert parse_instant(call.body["firedAt"]) >= parse_instant(due)
        assert call.headers["x-own"] == "1"
        done = await api.settled("a", "completed")
        assert done["attempts"] == 1
        assert "nextAttemptAt" not in done
        status, listed = await api("timers/list", namespace="default", status="completed")
        assert (status, [timer["id"] for timer in listed["timers"]]) == (200, ["a"])


async def test_a_pending_timer_is_updated_and_deleted(server: ServerProcess) -> None:
    api, inbox = Api(server), Inbox()
    async with Receiver(inbox) as receiver:
        for name in ("moved", "gone"):
            await api.create(name, receiver.url, delay="1h", payload={"v": 1})
        status, moved = await api(
            "timers/update", namespace="default", timerId="moved", executeAt=in_ms(200), payload={"v": 2}
        )
        assert (status, moved["payload"]) == (200, {"v": 2})
        assert (await api("timers/delete", namespace="default", timerId="gone"))[0] == 204
        assert (await api.get("gone"))["status"] == "canceled"
        (call,) = await inbox.count(1)
        assert (call.body["timerId"], call.body["payload"]) == ("moved", {"v": 2})
        await api.settled("moved", "completed")
        for path in ("timers/update", "timers/delete"):
            extra = {"payload": 1} if path.endswith("update") else {}
            status, problem = await api(path, namespace="default", timerId="moved", **extra)
            assert (status, problem["error"]) == (409, "TIMER_NOT_PENDING")
            status, problem = await api(path, namespace="default", timerId="never", **extra)
            assert (status, problem["error"]) == (404, "TIMER_NOT_FOUND")


async def test_creating_a_pending_timer_again_replaces_it(server: ServerProcess) -> None:
    api, inbox = Api(server), Inbox()
    async with Receiver(inbox) as receiver:
        await api.create("same", receiver.url, delay="1h", payload=1)
        await api.create("same", receiver.url, delay="100ms", payload=2)
        await inbox.count(1)
        await api.settled("same", "completed")
        await api.create("same", receiver.url, payload=3)
        calls = await inbox.count(2)
        assert [call.body["payload"] for call in calls] == [2, 3]


async def test_an_acknowledged_rotation_survives_a_crash(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    inbox = Inbox()
    first = "whsec_" + base64.b64encode(bytes(range(32))).decode()
    async with Receiver(inbox) as receiver:
        await server.start()
        api = Api(server)
        assert (await api("namespaces/rotateSecret", name="default", secret=first))[1] == {
            "name": "default",
            "secret": first,
        }
        status, rotated = await api("namespaces/rotateSecret", name="default")
        assert status == 200
        await server.kill()
        await server.start()
        api = Api(server)
        await api.create("s", receiver.url)
        (call,) = await inbox.count(1)
        for secret in (first, rotated["secret"]):
            assert Webhook(secret).verify(call.headers[":body"], call.headers) == call.body
        _, listed = await api("namespaces/list")
        assert listed["namespaces"][0]["previousSecretUntil"] == rotated["previousUntil"]
        assert rotated["secret"] not in json.dumps(listed)
        # The present secret changes nothing, another one ends the rotation.
        _, same = await api("namespaces/update", name="default", secret=rotated["secret"])
        assert (same["previousSecretUntil"], same["version"]) == (
            rotated["previousUntil"],
            listed["namespaces"][0]["version"],
        )
        assert (await api("namespaces/update", name="default", secret=first))[0] == 200
        await api.create("t", receiver.url)
        call = (await inbox.count(2))[1]
        assert Webhook(first).verify(call.headers[":body"], call.headers) == call.body
        assert " " not in call.headers["webhook-signature"]
        _, trail = await api("audit/list", action="secret_rotated")
        assert [(entry["subject"], entry["details"]) for entry in trail["entries"]] == 2 * [
            ("default", {"of": "namespace", "grace": "1d", "force": False})
        ]
        await server.stop()


async def test_a_killed_process_is_removed_from_the_list_of_nodes(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    await server.start()
    await server.kill()
    await server.start()
    async with asyncio.timeout(PATIENCE_S):
        while len((await Client(server.address).get("/api/v1/cluster"))[1]["nodes"]) != 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert await server.stop() == 0


async def until_draining(server: ServerProcess) -> None:
    """Returns when the node reports that it shuts down."""
    client = Client(server.address)
    async with asyncio.timeout(PATIENCE_S):
        while "shutting down" not in str((await client.get("/readyz"))[1]):  # noqa: ASYNC110 -- as a load balancer does
            await asyncio.sleep(0.01)
    client.close()


async def test_a_draining_node_serves_and_fires_until_the_callback_in_flight_has_ended(server: ServerProcess) -> None:
    api, ended = Api(server), asyncio.Event()
    async with ScriptedReceiver({"slow": [Reply(200, until=ended)]}) as receiver:
        await api.create("slow", receiver.url("slow"), callbackTimeoutSeconds=60)
        await receiver.count("slow", 1)
        stopping = asyncio.create_task(server.stop())
        await until_draining(server)
        # It would be late by the time that the slow one takes.
        await api.create("due meanwhile", receiver.url("quick"))
        await receiver.count("quick", 1)
        await api.create("later", receiver.url("later"), executeAt=in_ms(3_600_000))
        assert not stopping.done()
        ended.set()
        assert await stopping == 0
    again = ServerProcess(server.data_dir)
    await again.start()
    api = Api(again)
    assert [(await api.get(name))["status"] for name in ("slow", "due meanwhile", "later")] == [
        "completed",
        "completed",
        "pending",
    ]
    await again.stop()
    await server.start()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_second_signal_does_not_wait_for_the_callback_in_flight(
    server: ServerProcess, number: signal.Signals, code: int
) -> None:
    api = Api(server)
    async with ScriptedReceiver({"slow": [Reply(-1)]}) as receiver:
        await api.create("slow", receiver.url("slow"), callbackTimeoutSeconds=60)
        await receiver.count("slow", 1)
        process = server.process
        assert process is not None
        process.send_signal(number)
        await until_draining(server)
        ending = asyncio.create_task(process.wait())
        async with asyncio.timeout(PATIENCE_S):
            while not ending.done():
                # What follows within a second is taken for the same request.
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
                await asyncio.wait({ending}, timeout=0.3)
        assert ending.result() == code
        await server.start()
        assert (await Api(server).get("slow"))["status"] == "pending"
        await receiver.count("slow", 2)
        await server.kill()
    await server.start()


async def test_lag_is_measured_from_acceptance_if_the_instant_is_earlier(tmp_path: Path) -> None:
    server, answer = ServerProcess(tmp_path / "data"), asyncio.Event()
    await server.start()
    past = {"executeAt": "2020-01-01T00:00:00Z"}
    try:
        api = Api(server)
        await api("namespaces/create", name="paused")
        await api("namespaces/update", name="paused", paused=True)
        async with ScriptedReceiver({"t": [Reply(500), Reply(200, until=answer), Reply(200)]}) as receiver:
            await api.create("stored", receiver.url("stored"), namespace="paused", **past)
            policy = {"initialInterval": "20ms"}
            await api.create("t", receiver.url("t"), **past, retryPolicy=policy)
            await receiver.count("t", 2)
            await server.kill()
            answer.set()
            # After a restart, acceptance is the time that the store recorded.
            await server.start()
            await api("namespaces/update", name="paused", paused=False)
            await api.settled("t", "completed")
            await api.settled("stored", "completed", namespace="paused")
            async with httpx.AsyncClient(base_url=server.url) as client:
                metrics = (await client.get("/metrics")).text
            sums = re.findall(r"^tocsin_lag_seconds_sum (.*)$", metrics, re.MULTILINE)
            counts = re.findall(r"^tocsin_lag_seconds_count (.*)$", metrics, re.MULTILINE)
            assert float(counts[0]) >= 2
            assert 0 <= float(sums[0]) < 3_600
    finally:
        await server.stop()


def ignores_reloads(server: ServerProcess) -> bool:
    """Whether SIGHUP is ignored in the server's process."""
    if server.process is None:
        return False
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"SigIgn:\s*([0-9a-f]+)", status)
    assert found is not None
    return bool(int(found[1], 16) & 1 << signal.SIGHUP - 1)


async def test_a_reload_during_the_start_does_not_end_the_process(tmp_path: Path) -> None:
    server, is_seen = ServerProcess(tmp_path / "data"), False
    # A busy machine may halt the test for as long as a start takes: then there is another one.
    while not is_seen:
        starting = asyncio.create_task(server.start())
        while not (is_seen := ignores_reloads(server)) and not starting.done():  # noqa: ASYNC110 -- no signal
            await asyncio.sleep(0.001)
        try:
            assert server.process is not None
            if is_seen:
                server.process.send_signal(signal.SIGHUP)
            await starting
        finally:
            assert await server.stop() == 0
        server.process = None
