"""What failed, and is replayed on a real server: timers, occurrences of schedules, service calls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from tests.integration.server.test_access import REFRESH, Caller, make_key
from tests.support.calls import Api
from tests.support.patience import PATIENCE_S
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess
from tocsin.model.ids import Uuid7Source

ONCE = {"retryPolicy": {"maxAttempts": 1}}
LATER = "2090-01-01T00:00:00Z"


async def replay(api: Api, *ids: str, **fields: Any) -> Any:
    status, answer = await api("timers/replay", namespace="default", ids=list(ids), **fields)
    assert status == 200, answer
    return answer["results"]


async def finished(api: Api, timer_id: str, url: str = "https://a.example/x?token=abc", **fields: Any) -> None:
    await api.create(timer_id, url, **({"executeAt": LATER} | fields))
    assert (await api("timers/delete", namespace="default", timerId=timer_id))[0] == 204


async def test_failed_timer_fires_again_under_its_webhook_id_and_is_no_failure_any_more(server: ServerProcess) -> None:
    api = Api(server)
    async with ScriptedReceiver({"hook": [Reply(500), Reply(503), Reply(200)]}) as receiver:
        await api.create("t", receiver.url("hook"), payload={"n": 1}, **ONCE)
        await api.settled("t", "failed")
        await replay(api, "t")
        await receiver.count("hook", 2)
        await api.settled("t", "failed")
        (result,) = await replay(api, "t", setUrl=receiver.url("hook"))
        assert result["timer"]["attempts"] == 0
        calls = await receiver.count("hook", 3)
        assert len({call.headers["webhook-id"] for call in calls}) == 1
        assert {(call.body["payload"]["n"], call.body["attempt"]) for call in calls} == {(1, 1)}
        await api.settled("t", "completed")
        _, history = await api("timers/history", namespace="default", timerId="t")
        assert [(run["status"], run.get("replay"), run["attempts"]) for run in history["runs"]] == [
            ("completed", True, 1),
            ("failed", True, 1),
            ("failed", None, 1),
        ]
        assert (await api("failures/list", namespace="default"))[1]["count"] == 0


async def test_each_timer_is_replayed_or_has_its_error(server: ServerProcess) -> None:
    api = Api(server)
    await finished(api, "r1", headers={"authorization": "Bearer x", "a": "b"})
    await api.create("r2", "https://a.example/", executeAt=LATER)
    results = await replay(api, "r1", "r2", "none", executeAt=LATER, setHeaders={"authorization": "Bearer y"})
    assert [result.get("error", {}).get("error") for result in results] == [None, "TIMER_PENDING", "TIMER_NOT_FOUND"]
    assert [result["error"]["status"] for result in results[1:]] == [409, 404]
    timer = results[0]["timer"]
    assert (timer["status"], timer["executeAt"], timer["headers"]) == (
        "pending",
        LATER,
        {"authorization": "[redacted]"},
    )
    assert "executedAt" not in timer
    assert (await api("timers/delete", namespace="default", timerId="r1"))[0] == 204
    # `[redacted]` stands for what is stored of each timer, and the URL of another one does not get its secrets.
    await finished(api, "r3", "https://c.example/")
    url = "https://a.example/x?token=[redacted]"
    mine, other = await replay(api, "r1", "r3", executeAt=LATER, setUrl=url)
    assert mine["timer"]["callbackUrl"] == url
    assert [error["path"] for error in other["error"]["errors"]] == ["setUrl"]
    refused, unknown = await replay(api, "r3", "none", setHeaders={"c": "[redacted]"})
    assert [error["path"] for error in refused["error"]["errors"]] == ["setHeaders.c"]
    assert unknown["error"]["error"] == "TIMER_NOT_FOUND"
    for fields, path in (
        ({"ids": []}, "ids"),
        ({"ids": ["a"] * 2}, "ids"),
        ({"ids": [f"{n}" for n in range(1_001)]}, "ids"),
        ({"ids": ["a", ""]}, "ids[1]"),
        ({"setUrl": "ftp://a.example/"}, "setUrl"),
        ({"setHeaders": {"host": "x"}}, "setHeaders.host"),
        ({"executeAt": LATER, "delay": "1h"}, "delay"),
        ({"executeAt": "soon"}, "executeAt"),
    ):
        status, answer = await api("timers/replay", **{"namespace": "default", "ids": ["x"], **fields})
        assert (status, [error["path"] for error in answer["errors"]]) == (400, [path])


async def test_failed_occurrence_fires_again_under_its_webhook_id(server: ServerProcess) -> None:
    api, name = Api(server), {"namespace": "default", "scheduleId": "s"}
    async with ScriptedReceiver({"hook": [Reply(500), Reply(200)]}) as receiver:
        rule = {"cron": "0 0 1 1 *", "callbackUrl": receiver.url("hook"), **ONCE}
        assert (await api("schedules/create", namespace="default", id="s", **rule))[0] == 200
        assert (await api("schedules/trigger", **name))[0] == 200

        async def occurrences(count: int) -> Any:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    _, page = await api("schedules/history", **name)
                    ended = [each for each in page["occurrences"] if each["status"] != "pending"]
                    if len(ended) >= count:
                        return ended
                    await asyncio.sleep(0.02)

        (failed,) = await occurrences(1)
        assert (failed["status"], failed["source"]) == ("failed", "trigger")
        status, schedule = await api("schedules/replay", **name, instants=[failed["instant"]])
        assert status == 200, schedule
        replayed, former = await occurrences(2)
        assert (replayed["status"], replayed["source"], replayed["instant"]) == (
            "completed",
            "replay",
            failed["instant"],
        )
        assert (replayed["run"], former) == (failed["run"], failed)
        calls = await receiver.count("hook", 2)
        assert len({call.headers["webhook-id"] for call in calls}) == 1
        assert (await api("failures/list", namespace="default"))[1]["count"] == 0
        # It has succeeded since.
        for instants, path in (
            ([failed["instant"]], "instants[0]"),
            ([], "instants"),
            (["soon"], "instants[0]"),
            ([failed["instant"]] * 101, "instants"),
        ):
            status, answer = await api("schedules/replay", **name, instants=instants)
            assert (status, [error["path"] for error in answer["errors"]]) == (400, [path])
        unknown = {"namespace": "default", "scheduleId": "none", "instants": [LATER]}
        assert (await api("schedules/replay", **unknown))[0] == 404


async def test_failed_call_is_retried_in_the_same_log(server_with_agent: ServerProcess) -> None:
    new_id = Uuid7Source(lambda: 1_800_000_000_000_000)
    tenant, call_id = new_id(), new_id()
    base = f"{server_with_agent.url}/api/v1/tenants/{tenant}/service-calls"
    async with (
        ScriptedReceiver({"hook": [Reply(500), Reply(200)]}) as receiver,
        httpx.AsyncClient(timeout=PATIENCE_S) as client,
    ):

        async def settled(status: str) -> Any:
            async with asyncio.timeout(PATIENCE_S):
                while (call := (await client.get(f"{base}/{call_id}")).json())["status"] != status:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            return call

        spec = {"method": "POST", "url": receiver.url("hook"), "body": {"n": 1}}
        sent = await client.post(base, json={"name": "charge", "serviceCallId": call_id, "requestSpec": spec})
        assert sent.status_code == 202
        assert len((await settled("Failed"))["executions"]) == 1
        assert (await client.post(f"{base}/{call_id}/retry")).status_code == 204
        call = await settled("Succeeded")
        assert (call["attempts"], [each["response"]["status"] for each in call["executions"]]) == (2, [500, 200])
        assert [arrival.body for arrival in receiver.calls["hook"]] == [{"n": 1}] * 2
        again = await client.post(f"{base}/{call_id}/retry")
        assert (again.status_code, again.json()["error"]) == (409, "SERVICE_CALL_NOT_FAILED")
        assert "Succeeded" in again.json()["message"]
        assert (await client.post(f"{base}/{new_id()}/retry")).status_code == 404


async def test_key_replays_only_what_it_may_write(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--no-agent", env=REFRESH)
    await server.start()
    readers = [
        await make_key(server, "--role", "read"),
        await make_key(server, "--role", "write", "--namespace", "other"),
    ]
    for key in readers:
        call = Caller(server, key)
        await call.until(403, "timers/replay", namespace="default", ids=["x"])
        assert (await call("schedules/replay", namespace="default", scheduleId="x", instants=[LATER]))[0] == 403
    await server.stop()
