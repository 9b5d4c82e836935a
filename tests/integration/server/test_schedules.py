"""Schedules on a real server: they fire, are changed, paused, triggered, backfilled, and end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.calls import Api
from tests.support.patience import PATIENCE_S
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess
from tocsin.model.instants import US_PER_SECOND, format_instant, parse_instant

NAME = {"namespace": "default", "scheduleId": "beat"}


async def create(api: Api, url: str, **definition: Any) -> Any:
    status, schedule = await api("schedules/create", namespace="default", id="beat", callbackUrl=url, **definition)
    assert status == 200, schedule
    return schedule


async def change(api: Api, operation: str, **fields: Any) -> Any:
    status, schedule = await api(f"schedules/{operation}", **NAME, **fields)
    assert status == 200, schedule
    return schedule


async def refused(api: Api, operation: str, **fields: Any) -> str:
    status, problem = await api(f"schedules/{operation}", **NAME, **fields)
    assert status == 409, problem
    return str(problem["error"])


async def settled(api: Api, holds: Callable[[Any], bool]) -> Any:
    """The schedule, once the condition holds. The API has no notifications, so this polls."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds(schedule := await change(api, "get")):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return schedule


async def test_schedule_fires_at_its_instants_until_it_is_deleted(server: ServerProcess) -> None:
    api = Api(server)
    async with ScriptedReceiver({}) as receiver:
        created = await create(api, receiver.url("beat"), every="1s", payload={"n": 1})
        first, second = (await receiver.count("beat", 2))[:2]
        assert [first.body["executeAt"], second.body["executeAt"]] == created["nextInstants"][:2]
        assert first.body["payload"] == {"n": 1}
        assert first.arrived_at >= parse_instant(first.body["executeAt"])
        uuid = created["scheduleUuid"].replace("-", "")
        assert first.headers["webhook-id"] == f"msg_{uuid}_s-{parse_instant(first.body['executeAt'])}"
        schedule = await settled(api, lambda schedule: schedule["counts"].get("completed", 0) >= 2)
        assert schedule["lastOccurrence"]["outcome"] == "completed"
        # Occurrences change the schedule's state and not the schedule.
        assert schedule["updatedAt"] == created["updatedAt"]
        assert (await api("schedules/delete", **NAME))[0] == 204
        assert (await change(api, "get"))["status"] == "ended"
        assert await refused(api, "pause") == "SCHEDULE_ENDED"
        assert await refused(api, "trigger") == "SCHEDULE_ENDED"


async def test_created_again_it_keeps_its_state_and_identical_it_is_not_written(server: ServerProcess) -> None:
    api = Api(server)
    async with ScriptedReceiver({}) as receiver:
        definition: dict[str, Any] = {"every": "1h", "jitter": "1m", "headers": {"authorization": "Bearer x"}}
        created = await create(api, receiver.url("beat"), **definition)
        await change(api, "trigger")
        await settled(api, lambda schedule: schedule["counts"] == {"completed": 1})
        same = {"namespace": "default", "id": "beat", "callbackUrl": receiver.url("beat"), **definition}
        async with httpx.AsyncClient(base_url=server.url) as client:
            again = await client.post("/api/v1/schedules/create", json=same)
        assert (again.status_code, again.headers.get("tocsin-existing")) == (200, "true")
        assert again.json()["nextInstants"] == created["nextInstants"]
        changed = await create(api, receiver.url("beat"), cron="*/5 * * * *")
        assert (changed["counts"], changed["sentence"]) == ({"completed": 1}, "Every 5 minutes, UTC")
        assert "every" not in changed
        updated = await change(api, "update", every="2h", maxOccurrences=5, endAt="2099-01-01T00:00:00Z")
        assert (updated["maxOccurrences"], updated["sentence"]) == (5, "Every 2 hours of elapsed time")
        cleared = await change(api, "update", maxOccurrences=None, endAt=None)
        assert not {"cron", "maxOccurrences", "endAt"} & cleared.keys()
        status, problem = await api("schedules/update", **NAME, timeZone="Mars/Olympus", cron="0 0 * * *")
        assert (status, problem["errors"][0]["path"]) == (400, "timeZone")


async def test_backfill_fires_past_instants_once_more(server: ServerProcess) -> None:
    api = Api(server)
    async with ScriptedReceiver({}) as receiver:
        await create(api, receiver.url("beat"), every="1h", anchor="2026-01-01T00:00:00Z")
        await change(api, "backfill", after="2026-01-01T01:00:00Z", before="2026-01-01T04:00:00Z")
        calls = await receiver.count("beat", 3)
        assert [call.body["executeAt"] for call in calls] == [f"2026-01-01T0{hour}:00:00Z" for hour in (1, 2, 3)]
        status, problem = await api(
            "schedules/backfill", **NAME, after="2026-01-02T00:00:00Z", before="2026-01-01T00:00:00Z"
        )
        assert (status, problem["errors"][0]["path"]) == (400, "before")


async def test_schedule_pauses_after_failures_and_ends_after_its_last_instant(server: ServerProcess) -> None:
    api = Api(server)
    async with ScriptedReceiver({"fails": [Reply(404)]}) as receiver:
        await create(api, receiver.url("fails"), every="1s", pauseAfterFailures=1)
        paused = await settled(api, lambda schedule: schedule["status"] == "paused")
        assert paused["counts"] == {"failed": 1}
        assert "pausedReason" in paused
        end = format_instant(time.time_ns() // 1_000 + 60 * US_PER_SECOND)
        await create(api, receiver.url("beat"), every="1s", maxOccurrences=2, endAt=end)
        await change(api, "resume")
        assert (await settled(api, lambda schedule: schedule["status"] == "ended"))["nextInstants"] == []
