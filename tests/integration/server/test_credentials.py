"""Credentials on a real server: how they are put and deleted, and what the requests of timers, schedules and hooks have."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

from tests.integration.server.conftest import serving
from tests.integration.server.test_namespace_deletion import ended as ended_job
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S

BEARER = {"namespace": "default", "name": "api", "type": "bearer", "token": "a-token-of-the-api"}
BASIC = {"namespace": "default", "name": "user", "type": "basic", "username": "tocsin", "password": "pass word"}
PAIR = base64.b64encode(b"tocsin:pass word").decode()


async def waits_for(api: Api, timer_id: str) -> dict[str, Any]:
    """The explanation of a timer, once it waits for its credential."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            _, found = await api("timers/explain", namespace="default", timerId=timer_id)
            if found.get("waitsFor") == "credential":
                return dict(found)
            await asyncio.sleep(0.05)


async def ended(api: Api, timer_id: str, namespace: str = "default") -> dict[str, Any]:
    """The timer, once it has finished."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            _, timer = await api("timers/get", namespace=namespace, timerId=timer_id)
            if timer["status"] != "pending":
                return dict(timer)
            await asyncio.sleep(0.05)


async def test_requests_of_timers_schedules_and_hooks_have_their_credentials(tmp_path: Path) -> None:
    inbox, alerts = Inbox(answers=[(200, b""), (200, b""), (200, b"")], default=(500, b"")), Inbox()
    async with (
        serving(tmp_path, "--no-agent") as server,
        Receiver(inbox) as target,
        Receiver(alerts) as hook,
    ):
        api = Api(server)
        for put in (BEARER, BASIC):
            status, answer = await api("credentials/put", **put)
            assert status == 200, answer
            assert not {"token", "password"} & answer.keys() and answer["hosts"] == []
        made = await api.create("t", target.url, credential="api", headers={"Authorization": "Bearer own", "x": "1"})
        assert made["credential"] == "api"
        (first,) = await inbox.count(1)
        assert (first.headers["authorization"], first.headers["x"]) == ("Bearer a-token-of-the-api", "1")
        await api.create("u", target.url, credential="user")
        assert (await inbox.count(2))[1].headers["authorization"] == f"Basic {PAIR}"
        await api("schedules/create", namespace="default", id="s", every="1h", callbackUrl=target.url, credential="api")
        await api("schedules/trigger", namespace="default", scheduleId="s")
        assert (await inbox.count(3))[2].headers["authorization"] == "Bearer a-token-of-the-api"
        on_failure = {"url": hook.url, "credential": "user"}
        await api.create("v", target.url, retryPolicy={"maxAttempts": 1}, onFailure=on_failure)
        assert (await alerts.count(1))[0].headers["authorization"] == f"Basic {PAIR}"


async def test_put_again_takes_effect_without_touching_timers(tmp_path: Path) -> None:
    inbox = Inbox()
    async with serving(tmp_path, "--no-agent") as server, Receiver(inbox) as target:
        api = Api(server)
        await api("credentials/put", **BEARER)
        made = await api.create("t", target.url, credential="api", delay="1h")
        _, same = await api("credentials/put", **BEARER)
        assert same["version"] == 1
        kept = {name: value for name, value in BEARER.items() if name != "token"}
        _, kept_secret = await api("credentials/put", **kept, description="The API")
        assert kept_secret["version"] == 2
        await api("credentials/put", **BEARER | {"token": "the-next-token"})
        _, timer = await api("timers/get", namespace="default", timerId="t")
        assert timer == made
        await api("timers/update", namespace="default", timerId="t", delay="0s")
        (call,) = await inbox.count(1)
        assert call.headers["authorization"] == "Bearer the-next-token"


async def test_timer_waits_without_an_attempt_for_a_credential_that_was_deleted(tmp_path: Path) -> None:
    inbox = Inbox()
    async with serving(tmp_path, "--no-agent") as server, Receiver(inbox) as target:
        api = Api(server)
        await api("credentials/put", **BEARER)
        await api.create("t", target.url, credential="api", delay="1h")
        assert (await api("credentials/delete", namespace="default", name="api"))[0] == 204
        await api("timers/update", namespace="default", timerId="t", delay="0s")
        why = await waits_for(api, "t")
        assert "credential api: it does not exist" in why["sentence"]
        await api.create("healthy", target.url)
        (call,) = await inbox.count(1)
        assert call.body["timerId"] == "healthy"
        await api("credentials/put", **BEARER)
        call = (await inbox.count(2))[1]
        assert (call.headers["authorization"], call.body["attempt"]) == ("Bearer a-token-of-the-api", 1)


async def test_credential_goes_to_its_hosts_only(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server:
        api = Api(server)
        await api("credentials/put", **BEARER, hosts=["api.example.com", "http://api.internal:8080"])
        await api("credentials/put", **BASIC)
        timer = {"namespace": "default", "id": "t", "delay": "1h"}
        good = "https://api.example.com/x"
        for url, credential in (
            ("http://api.example.com/x", "api"),
            ("https://api.example.com:8443/x", "api"),
            ("https://evil.example.com/x", "api"),
            ("https://api.example.com/x", "user"),
            ("https://api.example.com/x", "unknown"),
        ):
            status, problem = await api("timers/create", **timer, callbackUrl=url, credential=credential)
            assert (status, problem["errors"][0]["path"]) == (400, "credential"), url
        status, problem = await api(
            "timers/create", **timer, callbackUrl=good, onFailure={"url": "https://x.example/", "credential": "api"}
        )
        assert (status, problem["errors"][0]["path"]) == (400, "onFailure.credential")
        assert (await api("timers/create", **timer, callbackUrl=good, credential="api"))[0] == 200
        update = {"namespace": "default", "timerId": "t"}
        status, problem = await api("timers/update", **update, callbackUrl="https://evil.example.com/")
        assert (status, problem["errors"][0]["path"]) == (400, "callbackUrl")
        assert (await api("timers/update", **update, credential="user"))[0] == 400
        assert (await api("timers/update", **update, callbackUrl="http://api.internal:8080/y"))[0] == 200
        _, free = await api("timers/update", **update, callbackUrl="https://evil.example.com/", credential=None)
        assert "credential" not in free
        status, problem = await api("namespaces/update", name="default", onFailure={"url": good, "credential": "user"})
        assert (status, problem["errors"][0]["path"]) == (400, "onFailure.credential")


async def test_stored_secret_is_not_sent_elsewhere_by_a_change_of_hosts(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server:
        api = Api(server)
        await api("credentials/put", **BEARER, hosts=["api.example.com", "b.example.com"])
        kept = {name: value for name, value in BEARER.items() if name != "token"}
        for hosts in ([], ["evil.example.com"], ["api.example.com", "evil.example.com"]):
            status, problem = await api("credentials/put", **kept, hosts=hosts)
            assert (status, problem["errors"][0]["path"]) == (400, "token"), hosts
        status, fewer = await api("credentials/put", **kept, hosts=["https://api.example.com"])
        assert (status, fewer["hosts"]) == (200, ["api.example.com"])


async def test_receiver_that_repeats_the_token_does_not_get_it_stored(tmp_path: Path) -> None:
    inbox = Inbox(default=(400, b"no such token: a-token-of-the-api, nor tocsin:pass word"))
    async with serving(tmp_path, "--no-agent") as server, Receiver(inbox) as target:
        api = Api(server)
        await api("credentials/put", **BEARER)
        await api.create("t", target.url, credential="api", retryPolicy={"maxAttempts": 1})
        await inbox.count(1)
        timer = await ended(api, "t")
        assert "a-token-of-the-api" not in str(timer) and "no such token" in str(timer)


async def test_batches_replays_jobs_and_deletions_respect_credentials(tmp_path: Path) -> None:
    inbox = Inbox(default=(500, b""))
    async with serving(tmp_path, "--no-agent") as server, Receiver(inbox) as target:
        api, space = Api(server, namespace="orders"), {"namespace": "orders"}
        batch = {"max": 10, "linger": "100ms"}
        await api("namespaces/create", name="orders", callbackBatch=batch, retryPolicy={"maxAttempts": 1})
        for name in ("one", "two"):
            await api("credentials/put", **BEARER | space | {"name": name, "token": f"token-{name}"})
        due = [
            {**space, "id": f"{name}-{number}", "delay": "0s", "callbackUrl": target.url, "credential": name}
            for number in range(3)
            for name in ("one", "two")
        ]
        await api("timers/batch/create", timers=due)
        calls = await inbox.wait(lambda calls: sum(len(call.body["items"]) for call in calls) == len(due))
        for call in calls:
            name = call.headers["authorization"].removeprefix("Bearer token-")
            assert {item["timerId"].partition("-")[0] for item in call.body["items"]} == {name}
        await ended(api, "one-0", "orders")
        elsewhere = "https://evil.example.com/"
        _, replayed = await api("timers/replay", **space, ids=["one-0"], setUrl=elsewhere)
        (result,) = replayed["results"]
        assert result["error"]["errors"][0]["path"] == "setUrl", result
        await api.create("waits", target.url, delay="1h", credential="one")
        job = {**space, "action": "setUrl", "of": "timers", "all": True, "url": elsewhere}
        _, made = await api("jobs/create", **job, idempotencyKey="k")
        assert (await ended_job(api, made["job"]["id"]))["errors"] == 1
        _, waits = await api("timers/get", **space, timerId="waits")
        assert (waits["callbackUrl"], waits["credential"]) == (target.url, "one")
        _, made = await api("namespaces/delete", name="orders", cancelPending=True)
        await ended_job(api, made["job"]["id"])
        await api("namespaces/create", name="orders")
        assert (await api("credentials/list", **space))[1]["credentials"] == []
