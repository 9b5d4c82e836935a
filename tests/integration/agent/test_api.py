"""Service calls over HTTP with the bus, orchestration and a database behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.plain import check_request
from tocsin.messaging.embedded import EmbeddedBus
from tocsin.messaging.limits import BusLimits
from tocsin.model.access import ApiKey
from tocsin.model.ids import Uuid7Source, is_uuid7
from tocsin.model.validation import InputLimits, InputRules
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.service_calls.background import AgentContext
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import Registry
from tocsin.service_calls.orchestration.handlers import Orchestration
from tocsin.stores.service_calls.database import agent_database
from tocsin.telemetry.clock import SystemClock
from tocsin.web.api.app import Api, ApiMetrics
from tocsin.web.http.hosts import Hosts
from tocsin.web.http.parts import WebParts

SPEC = {"method": "POST", "url": "https://a.example/x"}
LATER = "2099-01-31T12:00:00.5Z"


class NoKeys:
    required = False

    def lookup(self, hash: str) -> ApiKey | None:
        return None


@dataclass
class Tenant:
    """A client of one tenant."""

    client: httpx.AsyncClient
    tenant_id: str

    @property
    def path(self) -> str:
        return f"/api/v1/tenants/{self.tenant_id}/service-calls"

    async def post(self, **fields: Any) -> httpx.Response:
        sent = {"name": "n", "requestSpec": SPEC, "dueAt": LATER, **fields}
        return await self.client.post(
            self.path, json={name: value for name, value in sent.items() if value is not None}
        )

    async def submit(self, **fields: Any) -> dict[str, Any]:
        answer = await self.post(**fields)
        assert answer.status_code == 202, answer.text
        return cast("dict[str, Any]", answer.json())

    async def get(self, rest: str = "") -> Any:
        answer = await self.client.get(self.path + rest)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def status(self, method: str, rest: str) -> int:
        return (await self.client.request(method, self.path + rest)).status_code

    async def names(self, query: str = "") -> list[str]:
        return [call["name"] for call in (await self.get(query))["serviceCalls"]]


@dataclass
class World:
    """Everything except timer and execution: calls get as far as the order to execute them."""

    client: httpx.AsyncClient
    new_id: Uuid7Source

    def tenant(self) -> Tenant:
        return Tenant(self.client, self.new_id())


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock, limits = SystemClock(), AgentLimits()
    new_id = Uuid7Source(clock.now_us)
    registry = Registry(new_id, clock.now_us)
    database = agent_database(f"sqlite:///{tmp_path / 'agent.db'}")
    await database.open()
    bus = EmbeddedBus(BusLimits(), registry.check, lambda event: None)
    context = AgentContext(registry, clock, limits, lambda event: None)
    Orchestration(database.calls, context).attach(bus)
    await bus.start()
    rules = InputRules(InputLimits(), EgressPolicy(allow_private=True).check_url)
    calls = ServiceCalls(bus, database.queries, database.secrets, context, new_id, rules, check_request)
    parts = WebParts(
        service=cast(
            "Any",
            SimpleNamespace(
                failures=None, flow_rules=None, calendars=None, credentials=None, destinations=None, store=None
            ),
        ),
        rules=rules,
        clock=clock,
        keys=NoKeys(),
        hosts=Hosts("agent"),
        statistics=cast("Any", None),
        jobs=cast("Any", None),
    )  # type: ignore[arg-type]
    app = Api(parts, api_keys=cast("Any", None), metrics=ApiMetrics(cast("Any", None), open=True), agent=lambda: calls)
    transport: Any = httpx.ASGITransport(cast("Any", app))
    async with httpx.AsyncClient(transport=transport, base_url="http://agent") as client:
        yield World(client, new_id)
    await bus.drain()
    await bus.close()
    await database.close()


async def test_a_future_call_is_scheduled(world: World) -> None:
    tenant = world.tenant()
    spec = {**SPEC, "headers": {"X-A": "b", "authorization": "Bearer hunter2"}, "body": {"ä": [1, None, "\u0000"]}}
    answer = await tenant.post(requestSpec=spec, tags=["b", "a"])
    submitted = answer.json()
    assert submitted["status"] == "Scheduled"
    shown = (await world.client.get(answer.headers["location"])).json()
    assert shown["requestSpec"] == {**spec, "headers": {"X-A": "b", "authorization": "[redacted]"}}
    assert (shown["dueAt"], shown["tags"]) == ("2099-01-31T12:00:00.500000Z", ["a", "b"])
    assert (shown["status"], shown["executions"]) == ("Scheduled", [])
    assert shown["correlationId"] == submitted["correlationId"] == answer.headers["x-correlation-id"]


@pytest.mark.parametrize("due_at", [None, "2020-01-31T12:00:00Z"])
async def test_a_call_without_due_time_is_running_at_once(world: World, due_at: str | None) -> None:
    tenant = world.tenant()
    submitted = await tenant.submit(dueAt=due_at)
    assert submitted["status"] == "Running"
    shown = await tenant.get(f"/{submitted['serviceCallId']}")
    assert shown["status"] == "Running"
    refused = await world.client.delete(f"{tenant.path}/{submitted['serviceCallId']}")
    assert (refused.status_code, refused.json()["error"]) == (409, "SERVICE_CALL_NOT_SCHEDULED")


async def test_concurrent_submissions_under_one_key_create_one_call(world: World) -> None:
    tenant = world.tenant()
    answers = await asyncio.gather(*(tenant.submit(idempotencyKey="k") for _ in range(50)))
    assert len({answer["serviceCallId"] for answer in answers}) == 1
    assert len({answer["correlationId"] for answer in answers}) == 1
    assert await tenant.names() == ["n"]
    assert (await tenant.post(idempotencyKey="k", name="other")).json()["error"] == "IDEMPOTENCY_CONFLICT"
    assert await tenant.submit(idempotencyKey="k") == answers[0]


async def test_concurrent_submissions_create_one_call_each(world: World) -> None:
    tenant = world.tenant()
    answers = await asyncio.gather(*(tenant.submit(name=str(number)) for number in range(200)))
    assert len({answer["serviceCallId"] for answer in answers}) == 200
    assert sorted(map(int, await tenant.names("?limit=1000"))) == list(range(200))


async def test_pages_are_complete_under_filters(world: World) -> None:
    tenant, unknown = world.tenant(), world.tenant()
    for number in range(25):
        tags = [tag for tag, every in (("even", 2), ("third", 3)) if number % every == 0]
        await tenant.submit(name=str(number), tags=tags, dueAt=None if number % 5 == 0 else LATER)
        await unknown.submit(name="theirs", tags=tags)
    for query, wanted in (
        ("", range(25)),
        ("&tag=even", range(0, 25, 2)),
        ("&tag=even&tag=third", range(0, 25, 6)),
        ("&status=Running", range(0, 25, 5)),
        ("&status=Running,Scheduled&tag=third", range(0, 25, 3)),
        ("&status=Running&status=Succeeded&tag=third", range(0, 25, 15)),
        ("&status=Succeeded", []),
        ("&from=2000-01-01T00:00:00Z&to=2098-01-01T00:00:00Z", range(25)),
        ("&from=2098-01-01T00:00:00Z", []),
        # A plus sign is one, encoded or not.
        ("&from=2000-01-01T00:00:00+02:00&to=2098-01-01T00:00:00%2B02:00", range(25)),
        ("&to=2000-01-01T00:00:00Z&tag=even", []),
    ):
        seen: list[str] = []
        cursor = ""
        while True:
            page = await tenant.get(f"?limit=4{query}{cursor}")
            seen += [call["name"] for call in page["serviceCalls"]]
            if "nextCursor" not in page:
                break
            cursor = f"&cursor={page['nextCursor']}"
        assert seen == [str(number) for number in reversed(wanted)], query


async def test_calls_are_found_by_name_and_correlation_id(world: World) -> None:
    tenant = world.tenant()
    submitted = [await tenant.submit(name=name) for name in ("Charge order 17", "Mail order 17", "Charge order 18")]
    assert await tenant.names("?name=ORDER%2017") == ["Mail order 17", "Charge order 17"]
    assert await tenant.names("?name=charge&limit=1") == ["Charge order 18"]
    assert await tenant.names(f"?correlationId={submitted[1]['correlationId']}") == ["Mail order 17"]
    assert is_uuid7(submitted[1]["correlationId"])
    refused = await world.client.get(f"{tenant.path}?name=")
    assert [error["path"] for error in refused.json()["errors"]] == ["name"]


async def test_the_submission_range_includes_from_and_excludes_to(world: World) -> None:
    tenant = world.tenant()
    for name in ("first", "second"):
        await tenant.submit(name=name)
    second, first = (await tenant.get())["serviceCalls"]
    assert first["submittedAt"] < second["submittedAt"]
    assert await tenant.names(f"?from={second['submittedAt']}") == ["second"]
    assert await tenant.names(f"?to={second['submittedAt']}") == ["first"]


async def test_tags_can_be_changed_later(world: World) -> None:
    tenant = world.tenant()
    call_id = (await tenant.submit(tags=[str(number) for number in range(15)]))["serviceCallId"]
    assert await tenant.status("PUT", f"/{call_id}/tags/a%2Fb") == 204
    assert await tenant.status("PUT", f"/{call_id}/tags/a%2Fb") == 204
    answer = await world.client.put(f"{tenant.path}/{call_id}/tags/more")
    assert (answer.status_code, answer.json()["error"]) == (400, "TOO_MANY_TAGS")
    assert [error["path"] for error in answer.json()["errors"]] == ["tag"]
    assert await tenant.names("?tag=a/b") == ["n"]
    assert await tenant.status("DELETE", f"/{call_id}/tags/a%2Fb") == 204
    assert await tenant.status("DELETE", f"/{call_id}/tags/a%2Fb") == 204
    assert await tenant.names("?tag=a/b") == []


async def test_a_scheduled_call_is_deleted(world: World) -> None:
    tenant = world.tenant()
    call_id = (await tenant.submit(idempotencyKey="k", tags=["a"]))["serviceCallId"]
    assert await tenant.status("DELETE", f"/{call_id}") == 204
    assert await tenant.status("GET", f"/{call_id}") == 404
    assert await tenant.status("DELETE", f"/{call_id}") == 404
    assert await tenant.names() == await tenant.names("?tag=a") == []
    assert (await tenant.submit(idempotencyKey="k"))["serviceCallId"] != call_id


async def test_tenants_do_not_see_each_others_calls(world: World) -> None:
    tenant, unknown = world.tenant(), world.tenant()
    call_id = (await tenant.submit(tags=["a"]))["serviceCallId"]
    assert await unknown.names() == await unknown.names("?tag=a") == []
    for method, rest in (("GET", ""), ("GET", "/trace"), ("DELETE", ""), ("PUT", "/tags/x"), ("DELETE", "/tags/a")):
        assert await unknown.status(method, f"/{call_id}{rest}") == 404
    # Ids belong to their tenants: the same id in another tenant is another call.
    await unknown.submit(serviceCallId=call_id, name="theirs")
    assert (await tenant.names(), await unknown.names()) == (["n"], ["theirs"])
    assert (await tenant.get(f"/{call_id}"))["tags"] == ["a"]


async def test_a_trace_shows_what_a_request_led_to(world: World) -> None:
    tenant = world.tenant()
    spec = {**SPEC, "headers": {"authorization": "Bearer hunter2"}, "url": "https://a.example/x?token=hunter2"}
    # Runs now: the order to execute contains the request.
    submitted = await tenant.submit(requestSpec=spec, dueAt=None)
    trace = await tenant.get(f"/{submitted['serviceCallId']}/trace")
    assert (trace["serviceCallId"], trace["correlationId"]) == (submitted["serviceCallId"], submitted["correlationId"])
    messages = {entry["name"]: entry for entry in trace["entries"] if entry["kind"] == "message"}
    assert {"ServiceCallSubmitted", "ServiceCallRunning", "StartExecution"} <= messages.keys()
    # All were caused by one command, which was never in the outbox.
    assert len({entry["causationId"] for entry in messages.values()}) == 1
    assert [entry["at"] for entry in trace["entries"]] == sorted(entry["at"] for entry in trace["entries"])
    assert "service_calls" in {entry["kind"] for entry in trace["entries"]}
    assert "hunter2" not in str(trace)
