"""Jobs on a real server: what each action does, what is refused, and what keys that are limited to namespaces may see."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.integration.server.test_access import Caller, make_key, reachable  # noqa: F401
from tests.integration.server.test_failures import listed
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant

NOWHERE = "http://127.0.0.1:9/old"
Call = Callable[..., Awaitable[tuple[int, Any]]]


async def job_ended(call: Call, **wanted: Any) -> dict[str, Any]:
    """The job when it has ended."""
    status, answer = await call("jobs/create", **wanted)
    assert status == 202, answer
    async with asyncio.timeout(PATIENCE_S):
        while answer["job"]["state"] == "running":
            await asyncio.sleep(0.05)
            answer = (await call("jobs/get", jobId=answer["job"]["id"]))[1]
    return dict(answer["job"])


def counts(job: dict[str, Any]) -> tuple[int, int, int, int]:
    return job["matched"], job["changed"], job["skipped"], job["errors"]


async def create(api: Api, namespace: str, *ids: str, **fields: Any) -> None:
    timers = [{"namespace": namespace, "id": each, "callbackUrl": NOWHERE, "delay": "1h", **fields} for each in ids]
    status, answer = await api("timers/batch/create", timers=timers)
    assert status == 200, answer
    assert not [each for each in answer["results"] if "error" in each]


async def test_timers_are_shifted_redirected_and_canceled(server: ServerProcess) -> None:
    api = Api(server)
    assert (await api("namespaces/create", name="moved"))[0] == 200
    ids = [f"t{number}" for number in range(40)]
    await create(api, "moved", *ids, tags=["even"])
    await create(api, "moved", "other", callbackUrl="http://127.0.0.1:9/elsewhere")
    before = {each: (await api("timers/get", namespace="moved", timerId=each))[1] for each in (*ids, "other")}
    wanted = {"namespace": "moved", "of": "timers", "ratePerSecond": 5_000}
    dry_run = await job_ended(api, **wanted, action="shift", shiftBy="90s", filter={"tags": ["even"]}, dryRun=True)
    assert (dry_run["state"], counts(dry_run)) == ("completed", (40, 0, 0, 0))
    shifted = await job_ended(api, **wanted, action="shift", shiftBy="90s", filter={"tags": ["even"]}, matchMax=40)
    assert (shifted["state"], counts(shifted)) == ("completed", (40, 40, 0, 0))
    for each, timer in before.items():
        after = (await api("timers/get", namespace="moved", timerId=each))[1]
        assert (after["executeAt"] != timer["executeAt"]) == (each != "other")
    url = "http://127.0.0.1:9/new"
    redirected = await job_ended(api, **wanted, action="setUrl", url=url, filter={"destination": "127.0.0.1:9/OLD"})
    assert counts(redirected) == (40, 40, 0, 0)
    again = await job_ended(api, **wanted, action="setUrl", url=url, filter={"idPrefix": "t1"})
    assert counts(again) == (11, 0, 11, 0)
    too_many = await job_ended(api, **wanted, action="cancel", filter={"idPrefix": "t"}, matchMax=3)
    assert (too_many["state"], counts(too_many)) == ("failed", (3, 3, 0, 0))
    assert "matchMax" in too_many["reason"]
    canceled = await job_ended(api, **wanted, action="cancel", all=True)
    assert counts(canceled) == (38, 38, 0, 0)
    left = (await api("timers/list", namespace="moved", status="pending"))[1]["timers"]
    assert left == []
    listed = (await api("jobs/list", namespace="moved"))[1]["jobs"]
    assert [each["id"] for each in listed][:2] == [canceled["id"], too_many["id"]]
    trail = (await api("audit/list", subject=canceled["id"]))[1]["entries"]
    assert [each["action"] for each in trail] == ["job_ended", "job_created"]
    assert trail[0]["details"]["changed"] == 38


async def test_schedules_are_paused_resumed_redirected_and_deleted(server: ServerProcess) -> None:
    api = Api(server)
    assert (await api("namespaces/create", name="scheduled"))[0] == 200
    for number in range(12):
        schedule = {"namespace": "scheduled", "id": f"s{number}", "callbackUrl": NOWHERE, "every": "24h"}
        assert (await api("schedules/create", **schedule))[0] == 200
    await create(api, "scheduled", "s1")
    wanted = {"namespace": "scheduled", "of": "schedules", "ratePerSecond": 5_000}
    assert counts(await job_ended(api, **wanted, action="pause", filter={"idPrefix": "s1"})) == (3, 3, 0, 0)
    assert counts(await job_ended(api, **wanted, action="pause", all=True)) == (12, 9, 3, 0)
    assert counts(await job_ended(api, **wanted, action="resume", all=True)) == (12, 12, 0, 0)
    url = "http://127.0.0.1:9/new"
    assert counts(await job_ended(api, **wanted, action="setUrl", url=url, all=True)) == (12, 12, 0, 0)
    assert (await api("schedules/get", namespace="scheduled", scheduleId="s3"))[1]["callbackUrl"] == url
    assert counts(await job_ended(api, **wanted, action="delete", all=True)) == (12, 12, 0, 0)
    assert (await api("schedules/list", namespace="scheduled"))[1]["schedules"] == []
    assert (await api("timers/get", namespace="scheduled", timerId="s1"))[1]["status"] == "pending"


async def test_what_a_job_can_not_do_is_refused_by_field(server: ServerProcess) -> None:
    api = Api(server)
    wanted = {"namespace": "default", "of": "timers", "action": "cancel"}
    ahead = format_instant(time.time_ns() // 1_000 + 3_600_000_000)
    for fields, path in (
        ({}, "filter"),
        ({"all": False}, "filter"),
        ({"all": True, "action": "pause"}, "action"),
        ({"all": True, "action": "shift"}, "shiftBy"),
        ({"all": True, "action": "shift", "shiftBy": "0s"}, "shiftBy"),
        ({"all": True, "action": "shift", "shiftBy": "soon"}, "shiftBy"),
        ({"all": True, "shiftBy": "1h"}, "shiftBy"),
        ({"all": True, "url": NOWHERE}, "url"),
        ({"all": True, "action": "setUrl"}, "url"),
        ({"all": True, "action": "setUrl", "url": "http://[redacted]@127.0.0.1:9/"}, "url"),
        ({"all": True, "ratePerSecond": 0}, "ratePerSecond"),
        ({"filter": {"executeAfter": "tomorrow"}}, "filter.executeAfter"),
        ({"filter": {"createdBefore": ahead}}, "filter.createdBefore"),
        ({"of": "schedules", "action": "pause", "filter": {"error": "HTTP"}}, "filter.error"),
    ):
        status, answer = await api("jobs/create", **{**wanted, **fields})
        assert status == 400, fields
        assert path in [each["path"] for each in answer["errors"]], (fields, answer)
    assert (await api("jobs/create", **{**wanted, "namespace": "nowhere", "all": True}))[0] == 404
    assert (await api("jobs/get", jobId="none"))[1]["error"] == "JOB_NOT_FOUND"


async def test_a_shift_to_where_no_timer_may_be_is_an_error_of_its_row(server: ServerProcess) -> None:
    api = Api(server)
    assert (await api("namespaces/create", name="early"))[0] == 200
    await create(api, "early", "t")
    job = await job_ended(api, namespace="early", of="timers", action="shift", shiftBy="-30000d", all=True)
    assert counts(job) == (1, 0, 0, 1)
    assert job["sampleErrors"][0]["id"] == "t"


async def test_a_key_of_one_namespace_sees_and_changes_jobs_of_that_namespace(
    reachable: tuple[ServerProcess, str],  # noqa: F811
) -> None:
    server, admin_key = reachable
    admin = Caller(server, admin_key)
    for name in ("mine", "theirs"):
        assert (await admin("namespaces/create", name=name))[0] == 200
    mine = Caller(server, await make_key(server, "--role", "admin", "--namespace", "mine"))
    reader = Caller(server, await make_key(server, "--role", "read", "--namespace", "mine"))
    await mine.until(200, "jobs/list")
    await reader.until(200, "jobs/list")
    wanted = {"of": "timers", "action": "cancel", "all": True}
    ids = {}
    for name in ("mine", "theirs", "*"):
        job = await job_ended(admin, namespace=name, **wanted)
        assert job["state"] == "completed"
        ids[name] = job["id"]
    for caller in (mine, reader):
        assert [each["id"] for each in (await caller("jobs/list"))[1]["jobs"]] == [ids["mine"]]
        assert (await caller("jobs/list", namespace="theirs"))[0] == 403
        assert (await caller("jobs/get", jobId=ids["mine"]))[0] == 200
        for other in ("theirs", "*"):
            for what in ("get", "pause", "resume", "cancel"):
                assert (await caller(f"jobs/{what}", jobId=ids[other]))[0] in (403, 404)
            assert (await caller("jobs/create", namespace=other, **wanted))[0] == 403
    assert (await reader("jobs/create", namespace="mine", **wanted))[0] == 403
    assert (await reader("jobs/pause", jobId=ids["mine"]))[0] == 403
    assert (await mine("jobs/pause", jobId=ids["mine"]))[1]["error"] == "JOB_ENDED"
    assert (await mine("jobs/create", namespace="mine", **wanted))[0] == 202


async def test_failures_are_replayed_under_their_webhook_ids_and_leave_the_list(server: ServerProcess) -> None:
    """Those of one group, as a whole; timers, an occurrence, and the notification of a hook."""
    api, broken, away = Api(server), Inbox(default=(410, b"")), Inbox(default=(404, b""))
    assert (await api("namespaces/create", name="broken"))[0] == 200
    async with Receiver(broken) as target, Receiver(away) as hook:
        timers = [{"namespace": "broken", "id": f"t{i}", "callbackUrl": target.url, "delay": "0s"} for i in range(30)]
        timers[0]["onFailure"] = {"url": hook.url}
        assert (await api("timers/batch/create", timers=timers))[0] == 200
        schedule = {"namespace": "broken", "id": "s", "callbackUrl": target.url, "cron": "0 0 1 1 *"}
        assert (await api("schedules/create", **schedule))[0] == 200
        assert (await api("schedules/trigger", namespace="broken", scheduleId="s"))[0] == 200
        await broken.count(31)
        failed = (await away.count(1))[0].headers["webhook-id"]
        found = await listed(api, 32, namespace="broken")
        kinds = {each["kind"]: each for each in found["groups"]}
        assert {kind: each["count"] for kind, each in kinds.items()} == {
            "timer": 30,
            "occurrence": 1,
            "notification": 1,
        }
        first, away.default, broken.default = (
            {call.headers["webhook-id"] for call in broken.calls},
            (200, b""),
            (200, b""),
        )
        group = {"destination": kinds["timer"]["destination"], "error": "HTTP 410"}
        wanted = {"namespace": "broken", "of": "failures", "action": "replay", "ratePerSecond": 5_000}
        counted = await job_ended(api, **wanted, filter={**group, "kind": "timer"}, dryRun=True)
        assert counts(counted) == (30, 0, 0, 0)
        assert counts(await job_ended(api, **wanted, filter=group)) == (31, 31, 0, 0)
        again = (await broken.count(62))[31:]
        assert {call.headers["webhook-id"] for call in again} == first
        left = await listed(api, 1, namespace="broken")
        assert [each["kind"] for each in left["groups"]] == ["notification"]
        assert counts(await job_ended(api, **wanted, all=True)) == (1, 1, 0, 0)
        assert [call.headers["webhook-id"] for call in await away.count(2)] == [failed, failed]
        for bad, path in (({"tags": ["a"]}, "filter.tags"), ({"kind": "none"}, "filter.kind")):
            status, problem = await api("jobs/create", **wanted, filter=bad)
            assert (status, problem["errors"][0]["path"]) == (400, path)
