"""Nodes that stand by for the service agent: how they answer requests, and what they show and log."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from standardwebhooks.webhooks import Webhook

from tests.support.calls import Inbox
from tests.support.cluster import SOON, STEADY, running, through, until, view
from tests.support.http import Client, Receiver
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.server import ServerProcess
from tocsin.administration import put_api_key
from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.model.ids import Uuid7Source
from tocsin.server.stores import open_store
from tocsin.settings import load_settings

FAR = "2099-01-01T00:00:00Z"
CALL = {"name": "later", "requestSpec": {"method": "GET", "url": "http://127.0.0.1:9/"}, "dueAt": FAR}
_new_id = Uuid7Source(lambda: 1_800_000_000_000_000)


def node(folder: Path, name: str, store: str, *flags: str, **env: str) -> ServerProcess:
    env = {**SOON, "TOCSIN_NODE_NAME": name, "TOCSIN_AGENT_SQL_LOCK_WAIT": "50ms", **env}
    return ServerProcess(folder / name, "--store", store, *flags, env=env)


async def submit(server: ServerProcess, tenant: str, **fields: Any) -> tuple[int, Any]:
    client = Client(server.address)
    try:
        return await client.post(f"/api/v1/tenants/{tenant}/service-calls", {**CALL, **fields})
    finally:
        client.close()


async def get(server: ServerProcess, path: str) -> tuple[int, Any]:
    client = Client(server.address)
    try:
        return await client.get(path)
    finally:
        client.close()


async def text(server: ServerProcess, path: str) -> str:
    """A response that is not JSON."""
    reader, writer = await asyncio.open_connection(*server.address())
    writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\nconnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer


async def replayed(server: ServerProcess, tenant: str) -> None:
    """Asks this node for the tenant's failures, and for a job on them, which is worked on where the agent runs."""
    client = Client(server.address)
    try:
        assert await client.post("/api/v1/failures/dismiss", {"tenant": tenant, "all": True}) == (
            200,
            {"dismissed": 0, "more": False},
        )
        job = {"tenant": tenant, "of": "failures", "action": "replay", "all": True, "dryRun": True}
        status, answer = await client.post("/api/v1/jobs/create", job)
        assert status == 202, answer

        async def ended() -> bool:
            _, found = await client.post("/api/v1/jobs/get", {"jobId": answer["job"]["id"]})
            return bool(found["job"]["state"] == "completed")

        await until(ended)
    finally:
        client.close()


async def agents(server: ServerProcess) -> dict[str, bool | None]:
    return {shown["node"]: shown.get("agent") for shown in (await view(server))["nodes"]}


@pytest.mark.timeout(400)
@pytest.mark.slow
async def test_calls_are_signed_whichever_node_rotated_the_secret_or_makes_the_call(
    tmp_path: Path, postgresql_url: str
) -> None:
    nodes = [node(tmp_path, name, postgresql_url) for name in ("one", "two")]
    inbox, tenant = Inbox(), _new_id()
    async with Receiver(inbox) as receiver, running(*nodes):
        clients = [Client(server.address) for server in nodes]
        spec = {"method": "POST", "url": receiver.url}

        async def signatures(asked: ServerProcess, secrets: list[str]) -> int:
            """The call's number of signatures; each of the secrets verifies it."""
            # A number of its own: a call whose result a killed node did not record is repeated before later ones.
            number = len(inbox.calls)
            sent = {**spec, "body": {"n": number}}
            status, made = await submit(asked, tenant, requestSpec=sent, dueAt="2020-01-01T00:00:00Z")
            assert status == 202, made
            calls = await inbox.wait(lambda calls: any(call.body["n"] == number for call in calls))
            headers = next(call.headers for call in calls if call.body["n"] == number)
            if secrets:
                assert headers["webhook-id"] == made["serviceCallId"]
            for secret in secrets:
                Webhook(secret).verify(headers[":body"], headers)
            return headers.get("webhook-signature", "").count("v1,")

        async def rotate(client: Client, **fields: Any) -> tuple[int, Any]:
            return await client.post("/api/v1/tenants/rotateSecret", {"tenantId": tenant.upper(), **fields})

        one, two = nodes
        assert await signatures(one, []) == 0
        # By the node that does not run the agent.
        status, first = await rotate(clients[1])
        assert (status, first["tenantId"], "previousUntil" in first) == (200, tenant, False)
        assert await signatures(two, [first["secret"]]) == 1
        status, second = await rotate(clients[0])
        assert (status, "previousUntil" in second) == (200, True)
        assert await signatures(one, [second["secret"], first["secret"]]) == 2
        status, problem = await rotate(clients[1])
        assert (status, problem["error"]) == (409, "ROTATION_PENDING")
        status, trail = await clients[0].post("/api/v1/audit/list", {"action": "secret_rotated"})
        assert [(entry["subject"], entry["details"]["of"]) for entry in trail["entries"]] == 2 * [(tenant, "tenant")]
        assert first["secret"] not in str(trail)
        # The node that takes over knows everything that was acknowledged.
        await one.kill()
        assert await until_led_by(two, "two")
        assert await signatures(two, [second["secret"], first["secret"]]) == 2
        status, third = await rotate(clients[1], grace="0s", force=True)
        assert status == 200
        assert await signatures(two, [third["secret"]]) == 1
        for client in clients:
            client.close()


@pytest.mark.timeout(400)
async def test_any_node_answers_requests_and_shows_where_the_agent_runs(tmp_path: Path, postgresql_url: str) -> None:
    nodes = [node(tmp_path, name, postgresql_url, **STEADY) for name in ("one", "two")]
    timers_only = node(tmp_path, "three", postgresql_url, "--no-agent", **STEADY)
    async with running(*nodes, timers_only):
        one, two = nodes

        async def ready() -> bool:
            return [(await get(server, "/readyz"))[0] for server in (*nodes, timers_only)] == [200] * 3

        await until(ready)

        async def all_known() -> bool:
            return await agents(two) == {"one": True, "two": False, "three": False}

        await until(all_known)
        tenant = _new_id()
        for server in (one, two, timers_only):
            status, made = await submit(server, tenant)
            assert status == 202, made
            status, got = await get(server, f"/api/v1/tenants/{tenant}/service-calls/{made['serviceCallId']}")
            assert (status, got["status"]) == (200, "Scheduled")
            status, _ = await get(server, f"/api/v1/tenants/{tenant}/service-calls?limit=1")
            assert status == 200
            await replayed(server, tenant)
            assert "200 OK" in await text(server, f"/failures?tenant={tenant}")
            # A page of another node, too, has one id.
            assert (await text(server, "/calls")).lower().count("x-correlation-id:") == 1
        assert "tocsin_agent_running 1" in await text(one, "/metrics")
        assert "tocsin_agent_running 0" in await text(two, "/metrics")
        assert "agent standby" in two.log()
        await one.stop()
        assert await until_led_by(two, "two")
        assert "agent started" in two.log()
        for server in (two, timers_only):
            status, made = await submit(server, tenant)
            assert status == 202, made
        assert "tocsin_agent_starts_total 1" in await text(two, "/metrics")


async def test_a_relayed_request_carries_the_client_address_but_not_the_key(
    tmp_path: Path, postgresql_url: str
) -> None:
    """Traffic between nodes is not encrypted."""
    tenant, other = _new_id(), _new_id()
    secret, seen = "tk_1_a-secret-of-the-tenant", list[bool]()
    port = free_port()
    async with Proxy(("127.0.0.1", port)) as proxy:
        one, two = (node(tmp_path, name, postgresql_url, **STEADY) for name in ("one", "two"))
        through(one, proxy, port)
        for server in (one, two):
            # If keys are required, addresses of this machine are called only on demand.
            server.env["TOCSIN_EGRESS_ALLOW_PRIVATE"] = "true"
            server.env["TOCSIN_TRUSTED_PROXIES"] = "127.0.0.1"
        async with running(one, two):
            await until_led_by(two, "one")
            store = open_store(load_settings({"store": postgresql_url}))
            await store.open(16)
            limited = ApiKey("2", hash_key("limited"), Role.WRITE, operations=("calls/list",), sources=("10.0.0.0/8",))
            await put_api_key(store, limited)
            # The last one: whoever knows it knows all of them.
            await put_api_key(store, ApiKey("1", hash_key(secret), Role.WRITE, tenants=(tenant,)))
            await store.close()
            proxy.when(secret.encode(), lambda: seen.append(True))
            client = Client(two.address, {"authorization": f"Bearer {secret}"})
            path = f"/api/v1/tenants/{tenant}/service-calls"

            async def known() -> bool:
                return (await client.post(path, CALL))[0] == 202

            await until(known)
            assert (await client.post(path.replace(tenant, other), CALL))[0] == 403
            client.close()
            client = Client(two.address, {"authorization": "Bearer another"})
            assert (await client.post(path, CALL))[0] == 401
            client.close()
            # Limits of a key are checked by the node that serves the request, which knows the client's address.
            for address, statuses in (("10.1.2.3", (200, 403)), ("203.0.113.9", (403, 403))):
                client = Client(two.address, {"authorization": "Bearer limited", "x-forwarded-for": address})
                assert ((await client.get(path))[0], (await client.post(path, CALL))[0]) == statuses
                client.close()
            await shown_over_https(two, secret)
    assert seen == []


async def shown_over_https(server: ServerProcess, secret: str) -> None:
    """Somebody who signs in over https at a proxy gets a page that another node makes: that one reads the same cookie."""
    headers = {"x-forwarded-for": "10.1.2.3", "x-forwarded-proto": "https", "accept": "text/html"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", verify=False) as client:

        def cookie(answer: httpx.Response) -> str:
            # The client keeps no secure cookie of a plain connection.
            return answer.headers["set-cookie"].partition(";")[0]

        page = await client.get("/login", headers=headers)
        token = re.search(r'name="csrf" (?:content|value)="(\w+)', page.text)
        assert token is not None
        headers["cookie"] = cookie(page)
        signed = await client.post("/login", data={"csrf": token[1], "key": secret, "to": "/"}, headers=headers)
        headers["cookie"] = cookie(signed)
        assert headers["cookie"].startswith("__Host-tocsin-")
        assert (await client.get("/calls", headers=headers)).status_code == 200


async def until_led_by(server: ServerProcess, name: str) -> bool:
    async def led() -> bool:
        return (await agents(server)).get(name) is True

    await until(led)
    return True


@pytest.mark.timeout(400)
async def test_requests_wait_for_a_node_that_takes_over(tmp_path: Path, postgresql_url: str) -> None:
    """After a kill, without notice: requests right after it wait and are answered."""
    # However long a busy machine takes to start another agent.
    waits = {"TOCSIN_CLUSTER_AGENT_WAIT": "1m"}
    one, two = (node(tmp_path, name, postgresql_url, **waits) for name in ("one", "two"))
    async with running(one, two):
        await until_led_by(two, "one")
        await one.kill()
        answers = await asyncio.gather(*(submit(two, _new_id()) for _ in range(20)))
        assert [status for status, _ in answers] == [202] * 20


@pytest.mark.timeout(400)
async def test_without_links_a_standby_node_names_the_node_to_ask(tmp_path: Path, postgresql_url: str) -> None:
    one, two = (
        ServerProcess(
            tmp_path / name,
            *("--agent-database", postgresql_url),
            env={"TOCSIN_NODE_NAME": name, "TOCSIN_AGENT_SQL_LOCK_WAIT": "50ms"},
        )
        for name in ("one", "two")
    )
    async with running(one, two):
        status, problem = await submit(two, _new_id())
        assert status == 503
        assert "runs on node one" in problem["message"]
        assert "retry-after" in (await text(two, f"/api/v1/tenants/{_new_id()}/service-calls")).lower()
        await one.kill()

        async def accepted() -> bool:
            return (await submit(two, _new_id()))[0] == 202

        await until(accepted)


@pytest.mark.timeout(400)
async def test_no_node_stands_by_for_timers_it_does_not_share(tmp_path: Path, postgresql_url: str) -> None:
    """Each node has its own engine in SQLite; they would share only the agent's database."""
    flags = ("--agent-database", postgresql_url, "--agent-timer", "engine")
    one, two = (
        ServerProcess(tmp_path / name, *flags, env={"TOCSIN_AGENT_SQL_LOCK_WAIT": "50ms"}) for name in ("one", "two")
    )
    async with running(one):
        with pytest.raises(AssertionError):
            await two.start()
        assert "in use by another agent" in two.log()


async def test_a_node_whose_release_is_too_old_for_the_agents_database_serves_its_timers(
    tmp_path: Path, postgresql_url: str
) -> None:
    one = node(tmp_path, "one", postgresql_url)
    async with running(one):
        pass
    database = await asyncpg.connect(postgresql_url)
    await database.execute(
        "UPDATE agent_meta SET meta_value = 9999 WHERE meta_name IN ('schema_version', 'readable_from')"
    )
    await database.close()
    async with running(one):
        client = Client(one.address)
        timer = {"namespace": "default", "id": "t", "executeAt": FAR, "callbackUrl": "http://127.0.0.1:9/"}
        assert (await client.post("/api/v1/timers/create", timer))[0] == 200
        client.close()
        assert "has schema version 9999" in one.log()
