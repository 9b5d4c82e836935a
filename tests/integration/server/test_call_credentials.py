"""Service calls that name a credential: who may, what their requests have, and how they wait for a token."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.integration.server.conftest import serving
from tests.integration.server.test_access import Caller, reachable  # noqa: F401
from tests.integration.server.test_agent_flow import finished, flags_of, new_id, submit, until
from tests.integration.server.test_credential_tokens import TokenEndpoint, oauth2
from tests.integration.server.test_credentials import BASIC, BEARER, PAIR
from tests.support.calls import Api, Inbox
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess


def spec(url: str, **more: Any) -> dict[str, Any]:
    return {"method": "POST", "url": url, "body": {"order": 17}, **more}


async def call(server: ServerProcess, tenant: str, url: str, credential: str, **more: Any) -> str:
    return await submit(Client(server.address), tenant, url, requestSpec=spec(url, credential=credential), **more)


async def waits_for_credential(server: ServerProcess, tenant: str, call_id: str) -> dict[str, Any]:
    """The call, once it waits for its credential. The API has no notifications, so this polls."""
    client = Client(server.address)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = await until(client, tenant, call_id, "Running")
            if found.get("waitsFor") == "credential":
                return found
            await asyncio.sleep(0.02)


async def test_requests_of_calls_and_their_notifications_have_credentials(tmp_path: Path) -> None:
    inbox, tenant = Inbox(), new_id()
    async with serving(tmp_path) as server, Receiver(inbox) as target:
        api, client = Api(server), Client(server.address)
        for put in (BEARER, BASIC):
            await api("credentials/put", **put)
        request = spec(target.url, credential="api", headers={"Authorization": "Bearer own", "x": "1"})
        hook = {"url": target.url, "credential": "user"}
        found = await finished(
            client, tenant, await submit(client, tenant, target.url, requestSpec=request, onSuccess=hook)
        )
        assert (found["requestSpec"]["credential"], found["onSuccess"]["credential"]) == ("api", "user")
        first, second = await inbox.count(2)
        assert (first.headers["authorization"], first.headers["x"]) == ("Bearer a-token-of-the-api", "1")
        assert second.headers["authorization"] == f"Basic {PAIR}"
        assert "a-token" not in str(found)
        # Another credential is another request.
        place, sent = f"/api/v1/tenants/{tenant}/service-calls", {"name": "n", "idempotencyKey": "k", "delay": "1h"}
        answers = [
            await client.post(place, {**sent, "requestSpec": spec(target.url, credential=name)})
            for name in ("api", "api", "user")
        ]
        assert [status for status, _ in answers] == [202, 202, 409]


async def test_what_a_service_repeats_of_its_credential_is_not_kept(tmp_path: Path) -> None:
    tenant = new_id()
    answer = lambda body, headers: (200, headers["authorization"].encode())  # noqa: E731
    async with serving(tmp_path) as server, Receiver(answer) as target:
        await Api(server)("credentials/put", **BEARER)
        found = await finished(Client(server.address), tenant, await call(server, tenant, target.url, "api"))
        assert found["outcome"]["responseMeta"]["bodySnippet"] == "Bearer [redacted]"


async def test_unknown_names_and_foreign_hosts_are_refused_with_field_and_mend(tmp_path: Path) -> None:
    tenant = new_id()
    async with serving(tmp_path) as server:
        api, client = Api(server), Client(server.address)
        await api("credentials/put", **BEARER | {"hosts": ["shop.example"]})
        place, here = f"tenants/{tenant}/service-calls", "http://127.0.0.1:9/"
        hook = {"url": here, "credential": "api"}
        sent = {"name": "n", "requestSpec": spec(here, credential="nobody"), "onFailure": hook}
        status, refused = await client.post(f"/api/v1/{place}", sent)
        reasons = {error["path"]: error["reason"] for error in refused["errors"]}
        assert status == 400 and reasons.keys() == {"requestSpec.credential", "onFailure.credential"}
        assert "create it first with credentials/put" in reasons["requestSpec.credential"]
        assert "goes only to https://shop.example:443" in reasons["onFailure.credential"]


async def test_keys_need_the_namespace_of_the_credentials(reachable: tuple[ServerProcess, str]) -> None:  # noqa: F811
    server, key = reachable
    admin, tenant = Caller(server, key), new_id()
    place = f"tenants/{tenant}/service-calls"
    await admin("credentials/put", **BEARER | {"hosts": ["shop.example"]})

    async def made(**limits: Any) -> Caller:
        return Caller(server, (await admin("keys/create", role="write", **limits))[1]["key"])

    plain = {"name": "n", "requestSpec": spec("https://shop.example/"), "delay": "1h"}
    named = {**plain, "requestSpec": spec("https://shop.example/", credential="api")}
    hooked = {**plain, "onFailure": {"url": "https://shop.example/", "credential": "api"}}
    of_tenant, of_both = await made(tenants=[tenant]), await made(tenants=[tenant], namespaces=["default"])
    for each in (of_tenant, of_both):
        await each.until(202, place, **plain)
    for sent in (named, hooked):
        status, refused = await of_tenant(place, **sent)
        assert status == 403 and "may not write in the namespace 'default'" in refused["detail"], refused
        assert (await of_both(place, **sent))[0] == 202
        assert (await admin(place, **sent))[0] == 202


@pytest_asyncio.fixture
async def agent(tmp_path: Path, request: pytest.FixtureRequest) -> ServerProcess:
    flags = await flags_of(request.param, request)
    return ServerProcess(tmp_path / "data", *flags, env={"TOCSIN_BROKER_PREFIX": new_id().replace("-", "")})


@pytest.mark.parametrize("agent", ["embedded, SQLite, polling", "NATS, PostgreSQL, polling"], indirect=True)
async def test_calls_wait_for_a_token_without_an_attempt_and_hinder_no_others(agent: ServerProcess) -> None:
    inbox, tenant = Inbox(), new_id()
    async with TokenEndpoint() as endpoint, Receiver(inbox) as target:
        await agent.start()
        api, client = Api(agent), Client(agent.address)
        await api("credentials/put", **oauth2(endpoint.url))
        await api("flows/put", namespace="default", match="vendor", perKey={"parallelism": 1})
        waiting = [await call(agent, tenant, target.url, "partner") for _ in range(3)]
        # More than the agent has in memory of one place.
        submitted = (call(agent, tenant, target.url, "partner", flowKey="vendor") for _ in range(33))
        waiting += await asyncio.gather(*submitted)
        for call_id in waiting:
            found = await waits_for_credential(agent, tenant, call_id)
            assert (found["attempts"], found["executions"]) == (0, [])
        # They don't stand at the gate of their flow, where they would hold up its timers.
        assert (await api("flows/get", namespace="default", match="vendor"))[1]["waiting"] == 0
        # Neither calls without it, nor those of the same flow.
        for more in ({}, {"flowKey": "vendor"}):
            other = await finished(client, tenant, await submit(client, tenant, target.url, **more))
            assert other["status"] == "Succeeded"
        # They are in the database: another process finds them.
        await agent.kill()
        await agent.start()
        for call_id in waiting:
            await waits_for_credential(agent, tenant, call_id)
        endpoint.token = "the-token"
        for call_id in waiting:
            found = await finished(Client(agent.address), tenant, call_id)
            assert (found["status"], found["attempts"], len(found["executions"])) == ("Succeeded", 1, 1)
        sent = [each.headers.get("authorization") for each in inbox.calls]
        assert sent == [None, None, *["Bearer the-token"] * 36]
        assert await agent.stop() == 0


async def test_a_call_waits_for_a_credential_that_was_removed(tmp_path: Path) -> None:
    inbox, tenant = Inbox(), new_id()
    async with serving(tmp_path) as server, Receiver(inbox) as target:
        api, client = Api(server), Client(server.address)
        await api("credentials/put", **BEARER)
        await api("flows/put", namespace="default", match="vendor", perKey={"parallelism": 1})
        await api("flows/pause", namespace="default", match="vendor")
        # While its flow is paused, it does not begin before the credential is removed.
        call_id = await call(server, tenant, target.url, "api", flowKey="vendor")
        await api("credentials/delete", namespace="default", name="api")
        await api("flows/resume", namespace="default", match="vendor")
        await waits_for_credential(server, tenant, call_id)
        await api("credentials/put", **BEARER)
        assert (await finished(client, tenant, call_id))["status"] == "Succeeded"
