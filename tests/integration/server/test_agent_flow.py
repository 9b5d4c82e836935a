"""The life of a service call over HTTP, on each bus, each database and each timer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.calls import Inbox
from tests.support.http import Client, Receiver
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tests.support.slow_receiver import SlowReceiver
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import format_instant, parse_instant

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = [
    "embedded, SQLite, polling",
    "NATS, SQLite, polling",
    "embedded, PostgreSQL, polling",
    "NATS, PostgreSQL, polling",
    "embedded, SQLite, engine",
]
#: Each bus, each database and each timer, without all combinations.
EACH = ["embedded, SQLite, polling", "NATS, PostgreSQL, polling", "embedded, SQLite, engine"]


def now_us() -> int:
    return time.time_ns() // 1_000


new_id = Uuid7Source(now_us)


async def flags_of(kind: str, request: pytest.FixtureRequest) -> list[str]:
    chosen = ["--shards", "1"]
    if "NATS" in kind:
        chosen += ["--broker", request.getfixturevalue("shared_nats").url]
    if "PostgreSQL" in kind:
        database: PostgresServer = request.getfixturevalue("shared_postgresql")
        chosen += ["--agent-database", await database.create_database()]
    if "engine" in kind:
        chosen += ["--agent-timer", "engine"]
    return chosen


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[ServerProcess]:
    """One server a kind; each test has a tenant of its own."""
    flags = await flags_of(request.param, request)
    # A stream belongs to one database.
    server = ServerProcess(
        tmp_path_factory.mktemp("flow") / "data", *flags, env={"TOCSIN_BROKER_PREFIX": new_id().replace("-", "")}
    )
    await server.start()
    yield server
    assert await server.stop() == 0
    assert "Traceback" not in server.log(), server.log()[-4000:]


@pytest_asyncio.fixture(loop_scope="module")
async def receiver() -> AsyncIterator[SlowReceiver]:
    statuses = {"/teapot": [418], "/down": [503], "/flaky": [503, 200]}

    def status(path: str) -> int:
        left = statuses.get(path, [200])
        return left.pop(0) if len(left) > 1 else left[0]

    async with SlowReceiver(lambda path: 0.0, status) as receiver:
        yield receiver


async def submit(client: Client, tenant: str, url: str, **more: Any) -> str:
    body = {"name": "a call", "requestSpec": {"method": "POST", "url": url, "body": {"n": 1}}, **more}
    status, answer = await client.post(f"/api/v1/tenants/{tenant}/service-calls", body)
    assert status == 202, answer
    return str(answer["serviceCallId"])


async def finished(client: Client, tenant: str, call_id: str) -> dict[str, Any]:
    return await until(client, tenant, call_id, "Succeeded", "Failed")


async def until(client: Client, tenant: str, call_id: str, *statuses: str) -> dict[str, Any]:
    while True:
        status, detail = await client.get(f"/api/v1/tenants/{tenant}/service-calls/{call_id}")
        assert status == 200, detail
        if detail["status"] in statuses:
            return dict(detail)
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("server", KINDS, indirect=True)
async def test_calls_now_later_and_in_vain(server: ServerProcess, receiver: SlowReceiver) -> None:
    client, tenant = Client(server.address), new_id()
    due_at = now_us() + 1_500_000
    now = await submit(client, tenant, f"{receiver.url}/now", tags=["first"])
    later = await submit(client, tenant, f"{receiver.url}/later", dueAt=format_instant(due_at))
    dead = await submit(client, tenant, f"http://127.0.0.1:{free_port()}/")
    teapot = await submit(client, tenant, f"{receiver.url}/teapot")

    done = await finished(client, tenant, now)
    assert done["status"] == "Succeeded"
    assert done["tags"] == ["first"]
    assert done["outcome"]["responseMeta"]["status"] == 200
    assert done["outcome"]["responseMeta"]["bodySnippet"] == '{"n": 1}'
    assert [execution["response"]["status"] for execution in done["executions"]] == [200]
    assert parse_instant(done["submittedAt"]) <= parse_instant(done["startedAt"]) <= parse_instant(done["finishedAt"])

    failed = await finished(client, tenant, dead)
    assert failed["status"] == "Failed"
    assert failed["outcome"]["errorMeta"]["kind"] == "CONNECTION_FAILED"
    assert [execution["errorMessage"] for execution in failed["executions"]] == [
        f"CONNECTION_FAILED: {failed['outcome']['errorMeta']['message']}"
    ]

    refused = await finished(client, tenant, teapot)
    assert refused["status"] == "Failed"
    assert refused["outcome"]["errorMeta"]["kind"] == "HTTP_STATUS"
    assert refused["outcome"]["responseMeta"]["status"] == 418

    in_time = await finished(client, tenant, later)
    assert in_time["status"] == "Succeeded"
    [arrival] = [at for path, at in receiver.arrivals if path == "/later"]
    assert arrival >= due_at
    print(f"arrived {(arrival - due_at) / 1e3:.1f} ms after it was due")
    client.close()


async def test_a_call_whose_order_is_too_large_for_the_broker_fails(tmp_path: Path, receiver: SlowReceiver) -> None:
    """The broker takes the command that submits it, but with its headers not the order to execute it."""
    broker = NatsServer("max_payload: 65536")
    broker.start()
    server = ServerProcess(tmp_path / "data", "--shards", "1", "--broker", broker.url)
    try:
        await server.start()
        client, tenant = Client(server.address), new_id()
        spec = {"method": "POST", "url": f"{receiver.url}/large", "body": "x" * 64_000}
        call_id = await submit(client, tenant, spec["url"], requestSpec=spec)
        async with asyncio.timeout(PATIENCE_S):
            failed = await finished(client, tenant, call_id)
        assert failed["status"] == "Failed"
        assert failed["outcome"]["errorMeta"]["kind"] == "INVALID_REQUEST"
        assert "exceeds the server's limit" in failed["outcome"]["errorMeta"]["message"]
        client.close()
        assert await server.stop() == 0
    finally:
        await server.stop()
        broker.stop()
    assert "/large" not in [path for path, _ in receiver.arrivals]


@pytest.mark.parametrize("server", EACH, indirect=True)
async def test_failed_attempts_are_retried_by_the_policy(server: ServerProcess, receiver: SlowReceiver) -> None:
    client, tenant = Client(server.address), new_id()

    async def retried(path: str, policy: dict[str, Any]) -> str:
        spec = {"method": "POST", "url": f"{receiver.url}{path}", "retryPolicy": policy}
        return await submit(client, tenant, "", requestSpec=spec, delay="50ms")

    soon = {"maxAttempts": 3, "initialInterval": "300ms"}
    flaky, down, teapot = await retried("/flaky", soon), await retried("/down", {}), await retried("/teapot", soon)

    # With what is the default where members were left out, the second attempt is five seconds away.
    waiting = await until(client, tenant, down, "Retrying")
    assert (waiting["attempts"], len(waiting["executions"])) == (1, 1)
    assert waiting["outcome"]["responseMeta"]["status"] == 503
    pause_us = parse_instant(waiting["nextAttemptAt"]) - parse_instant(waiting["executions"][0]["finishedAt"])
    assert 4_500_000 <= pause_us <= 5_000_000
    status, page = await client.get(f"/api/v1/tenants/{tenant}/service-calls?status=Retrying")
    assert status == 200
    assert down in [call["serviceCallId"] for call in page["serviceCalls"]]
    assert await client.delete(f"/api/v1/tenants/{tenant}/service-calls/{down}") == 204

    done = await finished(client, tenant, flaky)
    assert (done["status"], done["attempts"], "nextAttemptAt" in done) == ("Succeeded", 2, False)
    assert [(e["number"], e["response"]["status"]) for e in done["executions"]] == [(1, 503), (2, 200)]
    first, second = done["executions"]
    assert parse_instant(second["startedAt"]) - parse_instant(first["finishedAt"]) >= 270_000
    # What no repetition mends is not repeated.
    assert (await finished(client, tenant, teapot))["attempts"] == 1

    status, trace = await client.get(f"/api/v1/tenants/{tenant}/service-calls/{flaky}/trace")
    assert status == 200
    names = [entry["name"] for entry in trace["entries"] if entry["kind"] == "message"]
    assert names.count("ServiceCallRetrying") == 1
    assert names.count("ServiceCallRunning") == 2
    assert (await client.get(f"/api/v1/tenants/{tenant}/service-calls/{down}"))[0] == 404
    assert [path for path, _ in receiver.arrivals].count("/down") == 1
    client.close()


@pytest.mark.parametrize("server", EACH, indirect=True)
async def test_one_correlation_id_leads_through_everything(server: ServerProcess, receiver: SlowReceiver) -> None:
    client, tenant = Client(server.address, {"x-correlation-id": "order-17"}), new_id()
    call_id = await submit(client, tenant, f"{receiver.url}/x", dueAt=format_instant(now_us() + 300_000))
    await finished(client, tenant, call_id)
    wanted = [
        "ServiceCallSubmitted",
        "ServiceCallScheduled",
        "ScheduleTimer",
        "ServiceCallRunning",
        "StartExecution",
        "ExecutionStarted",
        "ExecutionSucceeded",
        "ServiceCallSucceeded",
    ]
    status, trace = await client.get(f"/api/v1/tenants/{tenant}/service-calls/{call_id}/trace")
    assert status == 200
    assert trace["correlationId"] == "order-17"
    messages = [entry for entry in trace["entries"] if entry["kind"] == "message"]
    assert [entry["name"] for entry in messages] == wanted
    by_name = {entry["name"]: entry for entry in messages}
    # One command caused the first three; time caused the due time's message, and that the order to execute.
    assert len({by_name[name]["causationId"] for name in wanted[:3]}) == 1
    assert by_name["ServiceCallRunning"]["causationId"] == by_name["StartExecution"]["causationId"]
    assert by_name["ExecutionStarted"]["causationId"] == by_name["StartExecution"]["id"]
    assert by_name["ExecutionSucceeded"]["causationId"] == by_name["StartExecution"]["id"]
    assert by_name["ServiceCallSucceeded"]["causationId"] == by_name["ExecutionSucceeded"]["id"]
    tables = {entry["kind"] for entry in trace["entries"]} - {"message"}
    assert {"service_calls", "http_execution_log"} <= tables
    client.close()


@pytest.mark.parametrize("server", EACH, indirect=True)
async def test_what_was_scheduled_survives_an_orderly_restart(server: ServerProcess, receiver: SlowReceiver) -> None:
    client, tenant = Client(server.address), new_id()
    due_at = now_us() + 1_500_000
    kept = await submit(client, tenant, f"{receiver.url}/kept", dueAt=format_instant(due_at))
    deleted = await submit(client, tenant, f"{receiver.url}/deleted", dueAt=format_instant(due_at + 3_600_000_000))
    client.close()
    assert await server.stop() == 0
    await server.start()
    client = Client(server.address)
    assert await client.delete(f"/api/v1/tenants/{tenant}/service-calls/{deleted}") == 204
    assert (await finished(client, tenant, kept))["status"] == "Succeeded"
    assert await client.delete(f"/api/v1/tenants/{tenant}/service-calls/{kept}") == 409
    status, _ = await client.get(f"/api/v1/tenants/{tenant}/service-calls/{deleted}")
    assert status == 404
    assert [path for path, _ in receiver.arrivals] == ["/kept"]
    client.close()


@pytest.mark.parametrize("server", EACH, indirect=True)
async def test_hooks_are_notified_of_the_end_and_again_after_a_retry(server: ServerProcess) -> None:
    client, tenant, inbox = Client(server.address), new_id(), Inbox()
    async with Receiver(Inbox(answers=[(418, b"no tea")])) as target, Receiver(inbox) as hook:
        to = {"url": f"{hook.url}?token=abcdefgh", "headers": {"x-team": "payments"}}
        call = await submit(client, tenant, target.url, onFailure=to, onSuccess=to)
        shown = await finished(client, tenant, call)
        assert shown["onFailure"] == shown["onSuccess"] == {**to, "url": f"{hook.url}?token=[redacted]"}
        (failed,) = await inbox.count(1)
        assert (failed.headers["x-team"], failed.body["type"]) == ("payments", "serviceCall.failed")
        assert failed.body["text"] == "Service call 'a call' failed after 1 attempt: HTTP 418"
        about = failed.body["serviceCall"]
        assert (about["serviceCallId"], about["status"], about["outcome"]["errorMeta"]) == (
            call,
            "Failed",
            shown["outcome"]["errorMeta"],
        )

        status, _ = await client.post(f"/api/v1/tenants/{tenant}/service-calls/{call}/retry", {})
        assert status in (200, 202, 204)
        _, succeeded = await inbox.count(2)
        assert (succeeded.body["type"], succeeded.body["serviceCall"]["attempts"]) == ("serviceCall.succeeded", 2)

        # Each notification is a call of the same request, and has no hooks of its own.
        _, page = await client.get(f"/api/v1/tenants/{tenant}/service-calls?tag=notification")
        notes = [await finished(client, tenant, each["serviceCallId"]) for each in page["serviceCalls"]]
        assert [(each["status"], "onFailure" in each) for each in notes] == [("Succeeded", False)] * 2
        assert {each["correlationId"] for each in notes} == {shown["correlationId"]}
        assert len(inbox.calls) == 2
    client.close()


@pytest.mark.parametrize("server", KINDS[:1], indirect=True)
async def test_wrong_hook_is_refused_with_its_field(server: ServerProcess) -> None:
    client = Client(server.address)
    body = {
        "name": "a",
        "requestSpec": {"method": "GET", "url": "http://127.0.0.1:9/"},
        "onFailure": {"url": "ftp://x/"},
    }
    status, problem = await client.post(f"/api/v1/tenants/{new_id()}/service-calls", body)
    assert (status, [each["path"] for each in problem["errors"]]) == (400, ["onFailure.url"])
    client.close()
