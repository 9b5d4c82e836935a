"""Service calls that name a flow key: limited together with timers, on each bus and database; what waits survives restarts
and hinders nothing else."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from tests.integration.server.conftest import serving
from tests.integration.server.test_agent_flow import finished, flags_of, new_id, submit
from tests.support.calls import Api
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = ["embedded, SQLite, polling", "NATS, PostgreSQL, polling"]


class Watched(Receiver):
    """A receiver that notes when each path was requested, and how many requests were at it at once. While `held` has a path,
    its requests are not answered."""

    _path = ""
    more_headers: ClassVar[Mapping[int, bytes]] = {503: b"retry-after: 1\r\n"}

    def __init__(self) -> None:
        super().__init__(lambda body, headers: (200, b""))
        self.arrivals: list[tuple[str, float]] = []
        self.now: Counter[str] = Counter()
        self.most_at_once = 0
        self.most_by_path: dict[str, int] = {}
        self.held: set[str] = set()
        self.statuses: dict[str, list[int]] = {}
        self._changed = asyncio.Condition()

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        self.arrivals.append((path, time.monotonic()))
        self.now[path] += 1
        self.most_at_once = max(self.now.total(), self.most_at_once)
        self.most_by_path[path] = max(self.now[path], self.most_by_path.get(path, 0))
        await self._notify()
        async with self._changed:
            await self._changed.wait_for(lambda: path not in self.held)
        self.now[path] -= 1
        statuses = self.statuses.get(path, [200])
        return (statuses.pop(0) if len(statuses) > 1 else statuses[0]), b""

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def of(self, path: str) -> list[float]:
        """When the path was requested."""
        return [at for each, at in self.arrivals if each == path]

    async def count(self, path: str, number: int) -> None:
        """Returns when the path was requested so many times."""
        await self.until(lambda: len(self.of(path)) >= number)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Returns when it holds, which is checked after each request."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(holds)

    async def release(self) -> None:
        """Answers what was held."""
        self.held.clear()
        await self._notify()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[ServerProcess]:
    flags = await flags_of(request.param, request)
    prefix = {"TOCSIN_BROKER_PREFIX": new_id().replace("-", "")}
    server = ServerProcess(tmp_path_factory.mktemp("call_flows") / "data", *flags, env=prefix)
    await server.start()
    yield server
    assert await server.stop() == 0
    assert "Traceback" not in server.log(), server.log()[-4000:]


@pytest_asyncio.fixture(loop_scope="module")
async def receiver() -> AsyncIterator[Watched]:
    async with Watched() as receiver:
        yield receiver


async def waiting(api: Api, match: str, number: int) -> dict[str, Any]:
    """The rule, once so many wait for it. The API has no notifications, so this polls."""
    async with asyncio.timeout(PATIENCE_S):
        while (seen := (await api("flows/get", namespace="default", match=match))[1])["waiting"] != number:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return dict(seen)


@pytest.mark.parametrize("server", KINDS, indirect=True)
async def test_timers_and_calls_share_what_a_rule_lets_begin(server: ServerProcess, receiver: Watched) -> None:
    api, client, tenant = Api(server), Client(server.address), new_id()
    await api("flows/put", namespace="default", match="shared", perKey={"parallelism": 1})
    receiver.held = {"/shared"}
    first = await submit(client, tenant, f"{receiver.url}/shared", flowKey="shared")
    await receiver.count("/shared", 1)
    calls = [await submit(client, tenant, f"{receiver.url}/shared", flowKey="shared") for _ in range(3)]
    timers = [new_id() for _ in range(3)]
    for timer in timers:
        await api.create(timer, f"{receiver.url}/shared", flowKey="shared")
    seen = await waiting(api, "shared", 6)
    assert (seen["inFlight"], seen["complete"]) == (1, True)
    path = f"/api/v1/tenants/{tenant}/service-calls"
    _, waits = await client.get(f"{path}/{calls[0]}")
    assert (waits["status"], waits["flowKey"], waits["waitsFor"]) == ("Running", "shared", "flow")
    listed = (await client.get(path))[1]["serviceCalls"]
    assert {each["serviceCallId"]: each.get("waitsFor") for each in listed} == {
        first: None,
        **dict.fromkeys(calls, "flow"),
    }
    await receiver.release()
    for call in (first, *calls):
        done = await finished(client, tenant, call)
        assert (done["status"], "waitsFor" in done, done["attempts"]) == ("Succeeded", False, 1)
    for timer in timers:
        await api.settled(timer, "completed")
    assert (len(receiver.of("/shared")), receiver.most_at_once) == (7, 1)
    assert (await api("flows/get", namespace="default", match="shared"))[1]["inFlight"] == 0
    client.close()


@pytest.mark.parametrize("server", KINDS, indirect=True)
async def test_a_rate_spreads_calls_evenly(server: ServerProcess, receiver: Watched) -> None:
    api, client, tenant = Api(server), Client(server.address), new_id()
    await api("flows/put", namespace="default", match="rate:", perKey={"rate": {"count": 10, "per": "1s"}})
    # The first begins no earlier, and its arrival is no measure: what arrives was sent a moment before, which differs.
    submitted = time.monotonic()
    for _ in range(5):
        await submit(client, tenant, f"{receiver.url}/rate", flowKey=f"rate:{tenant}")
    await receiver.count("/rate", 5)
    times = receiver.of("/rate")
    assert times[-1] - submitted >= 0.39, times
    client.close()


@pytest.mark.parametrize("server", KINDS, indirect=True)
async def test_a_paused_flow_delays_its_key_alone(server: ServerProcess, receiver: Watched) -> None:
    api, client, tenant = Api(server), Client(server.address), new_id()
    await api("flows/put", namespace="default", match="paused", perKey={"parallelism": 5})
    await api("flows/pause", namespace="default", match="paused")
    held = [await submit(client, tenant, f"{receiver.url}/held", flowKey="paused") for _ in range(40)]
    assert (await waiting(api, "paused", 40))["inFlight"] == 0
    others = [
        await submit(client, tenant, f"{receiver.url}/free", **({} if key is None else {"flowKey": key}))
        for key in (None, "other", "another")
    ]
    for call in others:
        assert (await finished(client, tenant, call))["status"] == "Succeeded"
    assert receiver.of("/held") == []
    await api("flows/resume", namespace="default", match="paused")
    await receiver.count("/held", 40)
    for call in held:
        assert (await finished(client, tenant, call))["status"] == "Succeeded"
    assert len(receiver.of("/held")) == 40
    assert receiver.most_at_once <= 5
    client.close()


@pytest.mark.parametrize("server", KINDS[:1], indirect=True)
async def test_a_receiver_closes_a_key_for_a_while(server: ServerProcess, receiver: Watched) -> None:
    api, client, tenant = Api(server), Client(server.address), new_id()
    limits = {"perKey": {"parallelism": 1}, "closeOnRetryAfter": True}
    await api("flows/put", namespace="default", match="closing", **limits)
    receiver.statuses["/closing"] = [503, 200]
    policy = {"retryPolicy": {"maxAttempts": 3, "initialInterval": "10ms"}}
    spec = {"method": "GET", "url": f"{receiver.url}/closing", **policy}
    calls = []
    for _ in range(2):
        body = {"name": "closed", "requestSpec": spec, "flowKey": "closing"}
        calls.append((await client.post(f"/api/v1/tenants/{tenant}/service-calls", body))[1]["serviceCallId"])
    for call in calls:
        assert (await finished(client, tenant, call))["status"] == "Succeeded"
    times = receiver.of("/closing")
    assert len(times) == 3
    assert times[1] - times[0] >= 0.95, times
    client.close()


@pytest.mark.parametrize("server", KINDS[:1], indirect=True)
async def test_flow_keys_of_calls_are_those_of_timers(server: ServerProcess) -> None:
    client, tenant = Client(server.address), new_id()
    path = f"/api/v1/tenants/{tenant}/service-calls"
    spec = {"method": "GET", "url": "http://127.0.0.1:1/"}
    for bad in ("", "x" * 65, "two words", "customer:", "é", "a\n"):
        status, problem = await client.post(path, {"name": "a call", "requestSpec": spec, "flowKey": bad})
        assert (status, [each["path"] for each in problem["errors"]]) == (400, ["flowKey"]), bad
    body = {"name": "a call", "requestSpec": spec, "delay": "1h", "idempotencyKey": "once", "flowKey": "x" * 64}
    status, made = await client.post(path, body)
    assert status == 202
    assert (await client.get(f"{path}/{made['serviceCallId']}"))[1]["flowKey"] == "x" * 64
    assert [each["flowKey"] for each in (await client.get(path))[1]["serviceCalls"]] == ["x" * 64]
    assert (await client.post(path, body))[1] == made
    assert (await client.post(path, body | {"flowKey": "y"}))[1]["error"] == "IDEMPOTENCY_CONFLICT"
    client.close()


async def test_what_waits_survives_a_kill_and_a_change_of_the_rules(tmp_path: Path, receiver: Watched) -> None:
    async with serving(tmp_path, env={"TOCSIN_AGENT_FLOW_NAMESPACE": "vendors"}) as server:
        api, client, tenant = Api(server), Client(server.address), new_id()
        assert (await api("namespaces/create", name="vendors", limits={"parallelism": 2}))[0] == 200
        await api("flows/put", namespace="vendors", match="vendor:", total={"parallelism": 5})
        await api("flows/pause", namespace="vendors", match="vendor:")
        calls = [
            await submit(client, tenant, f"{receiver.url}/v", flowKey=f"vendor:{number % 7}") for number in range(20)
        ]
        async with asyncio.timeout(PATIENCE_S):
            while (await api("flows/get", namespace="vendors", match="vendor:"))[1]["waiting"] < 20:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        client.close()
        await server.kill()
        await server.start()
        api, client = Api(server), Client(server.address)
        receiver.held = {"/v"}
        # Without their rule, the limits of the namespace are left.
        assert (await api("flows/delete", namespace="vendors", match="vendor:"))[0] == 204
        await receiver.count("/v", 2)
        await receiver.release()
        for call in calls:
            assert (await finished(client, tenant, call))["status"] == "Succeeded"
        assert (len(receiver.of("/v")), receiver.most_at_once) == (20, 2)
        client.close()
