"""A rule of flows holds for all nodes together, from the moment at which any of them has acknowledged it, and for the service
calls of the one that runs the agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.integration.cluster.test_agent_standby import node, text
from tests.integration.server.test_agent_flow import finished, new_id, submit
from tests.integration.server.test_call_flows import Watched
from tests.support.calls import Inbox
from tests.support.cluster import STEADY, running, shared_by, until
from tests.support.http import Client, Receiver
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")

RULE = {"namespace": "default", "match": "customer:"}
TIMERS = 12
#: Their homes are on both nodes.
RULES = [{"namespace": "default", "match": f"key{number}"} for number in range(4)]
OF_EACH = 5


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(
    tmp_path_factory: pytest.TempPathFactory, shared_postgresql: PostgresServer
) -> AsyncIterator[list[ServerProcess]]:
    """Two nodes, one of which runs the agent. The last test stops it."""
    folder, store = tmp_path_factory.mktemp("flows"), await shared_postgresql.create_database()
    servers = [node(folder, name, store, **STEADY) for name in ("one", "two")]
    async with running(*servers):
        await shared_by(servers, {"one", "two"})
        yield servers


async def test_a_rule_put_at_one_node_holds_for_all_and_each_shows_what_all_have(servers: list[ServerProcess]) -> None:
    inbox = Inbox()
    async with Receiver(inbox) as receiver:
        one, two = [Client(server.address) for server in servers]
        receiver.responding.clear()
        status, put = await one.post("/api/v1/flows/put", {**RULE, "perKey": {"parallelism": 1}})
        assert status == 200, put
        timers: list[dict[str, Any]] = [
            {"namespace": "default", "id": f"t{n}", "delay": "0s", "callbackUrl": receiver.url, "flowKey": "customer:1"}
            for n in range(TIMERS)
        ]
        assert (await two.post("/api/v1/timers/batch/create", {"timers": timers}))[0] == 200

        async def all_wait_for_one() -> bool:
            seen = [(await client.post("/api/v1/flows/get", RULE))[1] for client in (one, two)]
            return all((each["inFlight"], each["waiting"], each["complete"]) == (1, TIMERS - 1, True) for each in seen)

        await until(all_wait_for_one)
        assert len(inbox.calls) == 1
        # Paused at one node: the next of the other's timers does not begin.
        assert (await two.post("/api/v1/flows/pause", RULE))[1]["paused"] is True
        receiver.responding.set()

        async def nothing_in_flight() -> bool:
            return bool((await one.post("/api/v1/flows/get", RULE))[1]["inFlight"] == 0)

        await until(nothing_in_flight)
        assert len(inbox.calls) == 1
        assert (await one.post("/api/v1/flows/resume", RULE))[0] == 200
        await inbox.count(TIMERS)
        for client in (one, two):
            client.close()


async def test_calls_share_limits_with_the_timers_of_all_nodes_and_wait_for_whichever_runs_the_agent(
    servers: list[ServerProcess],
) -> None:
    async with Watched() as receiver:
        clients = [Client(server.address) for server in servers]
        (one, two), tenant = clients, new_id()
        timers: list[dict[str, Any]] = []
        for rule in RULES:
            assert (await one.post("/api/v1/flows/put", {**rule, "perKey": {"parallelism": 1}}))[0] == 200
            key = rule["match"]
            of_key = {"delay": "0s", "callbackUrl": f"{receiver.url}/{key}", "flowKey": key}
            timers += [{"namespace": "default", "id": new_id(), **of_key} for _ in range(OF_EACH)]
        assert (await two.post("/api/v1/timers/batch/create", {"timers": timers}))[0] == 200
        keys = [rule["match"] for rule in RULES for _ in range(OF_EACH)]
        calls = [await submit(two, tenant, f"{receiver.url}/{key}", flowKey=key) for key in keys]
        for call in calls:
            assert (await finished(one, tenant, call))["status"] == "Succeeded"
        await receiver.until(lambda: len(receiver.arrivals) == 2 * OF_EACH * len(RULES))
        assert receiver.most_by_path == {f"/{rule['match']}": 1 for rule in RULES}

        for rule in RULES:
            assert (await one.post("/api/v1/flows/pause", rule))[0] == 200
        waiting = [await submit(one, tenant, f"{receiver.url}/later", flowKey=rule["match"]) for rule in RULES]

        async def all_wait() -> bool:
            seen = [(await two.post("/api/v1/flows/get", rule))[1]["waiting"] for rule in RULES]
            return seen == [1] * len(RULES)

        await until(all_wait)
        leads: list[bool] = []

        async def one_leads() -> bool:
            leads[:] = ["tocsin_agent_running 1.0" in await text(server, "/metrics") for server in servers]
            return leads.count(True) == 1

        await until(one_leads)
        await servers[leads.index(True)].stop()
        left = clients[leads.index(False)]
        for rule in RULES:
            assert (await left.post("/api/v1/flows/resume", rule))[0] == 200
        for call in waiting:
            assert (await finished(left, tenant, call))["attempts"] == 1
        assert len(receiver.of("/later")) == len(RULES)
        for client in clients:
            client.close()
