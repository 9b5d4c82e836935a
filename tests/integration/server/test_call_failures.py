"""Failed service calls: grouped by cause, dismissed, and retried by jobs, also by one whose node dies; access by tenant."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.test_access import Caller, make_key, reachable  # noqa: F401
from tests.integration.server.test_agent_flow import EACH, flags_of, new_id
from tests.integration.server.test_failures import NONE
from tests.integration.server.test_jobs import counts, job_ended
from tests.support.calls import Api
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

Call = Callable[..., Awaitable[tuple[int, Any]]]


class Flaky(Receiver):
    """Answers each path with its status, 410 unless set otherwise."""

    _path = ""

    def __init__(self) -> None:
        super().__init__(lambda body, headers: (200, b""))
        self.statuses: dict[str, int] = {}

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        return self.statuses.get(path.partition("?")[0], 410), b"gone for good"


async def submit(server: ServerProcess, tenant: str, *urls: str, tags: tuple[str, ...] = ()) -> list[str]:
    """The ids of new calls, one for each URL."""
    client, ids = Client(server.address), []
    for url in urls:
        spec = {"method": "POST", "url": url, "body": {"order": 17}}
        path = f"/api/v1/tenants/{tenant}/service-calls"
        status, answer = await client.post(path, {"name": "a call", "requestSpec": spec, "tags": list(tags)})
        assert status == 202, answer
        ids.append(answer["serviceCallId"])
    return ids


async def failed(call: Call, count: int, **wanted: Any) -> Any:
    """The failures, once there are so many."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, answer = await call("failures/list", **wanted)
            assert status == 200, answer
            if answer["count"] == count:
                return answer
            await asyncio.sleep(0.02)


async def until(call: Call, job_id: str, condition: Callable[[Any], bool]) -> Any:
    """The job, once the condition holds of it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            job = (await call("jobs/get", jobId=job_id))[1]["job"]
            if condition(job):
                return job
            await asyncio.sleep(0.02)


async def details(server: ServerProcess, tenant: str, ids: list[str], status: str) -> list[Any]:
    """The calls, once all of them have this status."""
    client, found = Client(server.address), []
    for each in ids:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                _, detail = await client.get(f"/api/v1/tenants/{tenant}/service-calls/{each}")
                if detail["status"] == status:
                    break
                await asyncio.sleep(0.02)
        found.append(detail)
    return found


@pytest.mark.parametrize("kind", EACH[:2])
async def test_failures_are_grouped_dismissed_and_replayed(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A job's node dies in the middle; it goes on after the restart, and retries no call twice."""
    prefix = {"TOCSIN_BROKER_PREFIX": new_id().replace("-", "")}
    server = ServerProcess(tmp_path / "data", *await flags_of(kind, request), env=prefix)
    await server.start()
    api, tenant, other = Api(server), new_id(), new_id()
    async with Flaky() as receiver:
        url, receiver.statuses["/other"] = receiver.url, 404
        ids = await submit(server, tenant, *[f"{url}/gone?token=s3cret"] * 24, tags=("eu",))
        (lone,) = await submit(server, tenant, f"{url}/other")
        (foreign,) = await submit(server, other, f"{url}/gone")

        found = await failed(api, 25, tenant=tenant)
        assert [(each["error"], each["count"], each["kind"]) for each in found["groups"]] == [
            ("HTTP 410", 24, "call"),
            ("HTTP 404", 1, "call"),
        ]
        gone = found["groups"][0]
        assert (gone["tenant"], gone["destination"], sum(gone["series"])) == (tenant, f"{url}/gone", 24)
        assert "namespace" not in gone
        sample = gone["sample"]
        assert (sample["method"], sample["attempt"]["status"], sample["attempt"]["answer"]) == (
            "POST",
            410,
            "gone for good",
        )
        assert "s3cret" not in sample["url"]
        newest = gone["newest"][0]
        assert (newest["tenant"], newest["name"], newest["id"] in ids) == (tenant, "a call", True)
        by_error = await failed(api, 25, tenant=tenant, groupBy=["error"])
        assert [each["count"] for each in by_error["groups"]] == [24, 1]
        everywhere = await failed(api, 26, tenant="*")
        assert {each["tenant"] for each in everywhere["groups"]} == {tenant, other}

        members, cursor = [], {}
        while True:
            status, page = await api("failures/members", tenant=tenant, error="HTTP 410", limit=10, **cursor)
            assert status == 200, page
            members += page["failures"]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert sorted(each["id"] for each in members) == sorted(ids)
        assert [each["failedAt"] for each in members] == sorted((each["failedAt"] for each in members), reverse=True)

        # A dismissed failure leaves the list and its call stays as it is.
        handle = members[0]["failureId"]
        assert await api("failures/dismiss", tenant=other, ids=[handle]) == (200, {"dismissed": 1, "more": False})
        assert (await failed(api, 25, tenant=tenant))["count"] == 25
        for _ in range(2):
            assert await api("failures/dismiss", tenant=tenant, ids=[handle]) == (
                200,
                {"dismissed": 1, "more": False},
            )
        dismissed = await api("failures/dismiss", tenant=tenant, destination=f"{url}/other")
        assert dismissed == (200, {"dismissed": 1, "more": False})
        await details(server, tenant, [lone, members[0]["id"]], "Failed")
        await failed(api, 23, tenant=tenant)

        wanted = {"tenant": tenant, "of": "failures", "action": "replay"}
        dry_run = await job_ended(api, **wanted, filter={"tags": ["eu"], "error": "HTTP 410"}, dryRun=True)
        assert (counts(dry_run), dry_run["tenant"], "namespace" in dry_run) == ((23, 0, 0, 0), tenant, False)
        receiver.statuses["/gone"] = 200
        is_killed = kind == EACH[0]
        # So slow that a busy machine kills the server long before the end.
        rate = 2 if is_killed else 5_000
        status, answer = await api("jobs/create", **wanted, all=True, ratePerSecond=rate)
        assert status == 202, answer
        job_id = answer["job"]["id"]
        if is_killed:
            assert (await api("jobs/create", **wanted, all=True))[1]["error"] == "JOB_RUNNING"
            await until(api, job_id, lambda job: job["changed"] >= 3)
            await server.kill()
            await server.start()
            api = Api(server)
            assert (await api("jobs/setRate", jobId=job_id, ratePerSecond=5_000))[0] == 200
        job = await until(api, job_id, lambda job: job["state"] != "running")
        assert (job["state"], job["errors"]) == ("completed", 0), job
        replayed = [each for each in ids if each != members[0]["id"]]
        calls = await details(server, tenant, replayed, "Succeeded")
        for call in calls:
            # An execution that the crash has interrupted is repeated, and no attempt.
            assert call["attempts"] == 2
            ends = Counter(each.get("response", {}).get("status") for each in call["executions"])
            assert (ends[410], ends[200]) == (1, 1)
        assert await api("failures/list", tenant=tenant) == (200, NONE)
        assert counts(await job_ended(api, **wanted, all=True)) == (0, 0, 0, 0)
        assert (await failed(api, 1, tenant=other))["groups"][0]["newest"][0]["id"] == foreign
        # A failed repetition is a failure again.
        receiver.statuses["/gone"] = 503
        assert counts(await job_ended(api, tenant=other, of="failures", action="replay", all=True)) == (1, 1, 0, 0)
        assert (await failed(api, 1, tenant=other))["groups"][0]["error"] == "HTTP 503"
        assert await api("failures/dismiss", tenant=other, all=True) == (200, {"dismissed": 1, "more": False})
    listed = (await api("jobs/list", tenant=tenant))[1]["jobs"]
    assert {each["tenant"] for each in listed} == {tenant}
    assert (await api("jobs/list", namespace="*"))[1]["jobs"] == []
    assert len((await api("jobs/list"))[1]["jobs"]) == 4
    trail = (await api("audit/list", subject=job_id))[1]["entries"]
    assert {"job_ended", "job_created"} <= {each["action"] for each in trail}
    assert await server.stop() == 0
    assert "Traceback" not in server.log(), server.log()[-4000:]


async def refused(api: Call, tenant: str) -> None:
    """Bad requests name the field."""
    replay = {"of": "failures", "action": "replay", "all": True}
    for path, body, field in (
        ("failures/list", {}, "namespace"),
        ("failures/list", {"namespace": "default", "tenant": tenant}, "tenant"),
        ("failures/list", {"tenant": "acme"}, "tenant"),
        ("failures/list", {"tenant": tenant, "groupBy": ["namespace"]}, "groupBy"),
        ("failures/list", {"namespace": "default", "groupBy": ["tenant"]}, "groupBy"),
        ("failures/members", {"tenant": tenant, "cursor": "x"}, "cursor"),
        ("failures/members", {"tenant": tenant, "kind": "timer"}, "kind"),
        ("failures/members", {"namespace": "default", "kind": "call"}, "kind"),
        ("failures/dismiss", {"tenant": tenant}, "ids"),
        ("failures/dismiss", {"tenant": "*", "all": True}, "tenant"),
        ("failures/dismiss", {"tenant": tenant, "ids": ["x"]}, "ids[0]"),
        ("jobs/create", replay, "namespace"),
        ("jobs/create", {**replay, "tenant": tenant, "namespace": "default"}, "tenant"),
        ("jobs/create", {**replay, "tenant": tenant, "url": "http://127.0.0.1:9/"}, "url"),
        ("jobs/create", {**replay, "tenant": tenant, "filter": {"kind": "timer"}}, "filter.kind"),
        ("jobs/create", {"tenant": tenant, "of": "timers", "action": "cancel", "all": True}, "of"),
        ("jobs/create", {"tenant": tenant, "of": "failures", "action": "setUrl", "all": True}, "action"),
        ("jobs/list", {"tenant": tenant, "namespace": "default"}, "tenant"),
    ):
        status, answer = await api(path, **body)
        assert status == 400, (path, body, answer)
        assert field in [each["path"] for each in answer["errors"]], (path, body, answer)


async def test_server_without_the_agent_has_no_failures_of_tenants(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--no-agent", "--shards", "1")
    await server.start()
    api, tenant = Api(server), new_id()
    for path in ("failures/list", "failures/members", "failures/dismiss"):
        status, answer = await api(path, tenant=tenant)
        assert (status, "disabled" in answer["detail"]) == (404, True), answer
    assert (await api("jobs/create", tenant=tenant, of="failures", action="replay", all=True))[0] == 404
    assert (await api("failures/list", namespace="default"))[0] == 200
    await server.stop()


async def test_a_key_of_one_tenant_sees_dismisses_and_replays_its_failures(
    reachable: tuple[ServerProcess, str],  # noqa: F811
) -> None:
    """And bad requests name the field."""
    server, admin_key = reachable
    admin, mine, theirs = Caller(server, admin_key), new_id(), new_id()
    await refused(admin, mine)
    own = Caller(server, await make_key(server, "--role", "write", "--tenant", mine))
    reader = Caller(server, await make_key(server, "--role", "read", "--tenant", mine))
    await own.until(200, "failures/list", tenant="*")
    await reader.until(200, "failures/list", tenant="*")
    for what, body in (("list", {}), ("members", {}), ("dismiss", {"all": True})):
        assert (await own(f"failures/{what}", tenant=theirs, **body))[0] == 403, what
        assert (await own(f"failures/{what}", tenant=mine, **body))[0] == 200, what
    assert (await reader("failures/dismiss", tenant=mine, all=True))[0] == 403
    assert (await own("failures/list", namespace="*"))[1]["count"] == 0
    replay = {"of": "failures", "action": "replay", "all": True}
    ids = {}
    for tenant in (mine, theirs, "*"):
        ids[tenant] = (await job_ended(admin, tenant=tenant, **replay))["id"]
    for caller in (own, reader):
        assert [each["id"] for each in (await caller("jobs/list"))[1]["jobs"]] == [ids[mine]]
        assert (await caller("jobs/list", tenant=theirs))[0] == 403
        assert (await caller("jobs/get", jobId=ids[theirs]))[0] == 404
    for tenant in (theirs, "*"):
        assert (await own("jobs/create", tenant=tenant, **replay))[0] == 403
    assert (await reader("jobs/create", tenant=mine, **replay))[0] == 403
    assert counts(await job_ended(own, tenant=mine, **replay)) == (0, 0, 0, 0)
