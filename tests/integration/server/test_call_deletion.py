"""Service calls that wait are deleted by jobs, also by one whose node dies; filters, and access by tenant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.test_access import Caller, make_key, reachable  # noqa: F401
from tests.integration.server.test_agent_flow import EACH, flags_of, new_id, now_us
from tests.integration.server.test_call_failures import Call, Flaky, details, until
from tests.integration.server.test_jobs import counts, job_ended
from tests.support.calls import Api
from tests.support.http import Client
from tests.support.server import ServerProcess
from tocsin.model.instants import US_PER_SECOND, format_instant

NOWHERE = "http://127.0.0.1:9/hook"
DELETE: dict[str, Any] = {"of": "calls", "action": "delete"}


def in_hours(hours: int) -> str:
    return format_instant(now_us() + hours * 3_600 * US_PER_SECOND)


async def submit(server: ServerProcess, tenant: str, url: str = NOWHERE, **fields: Any) -> str:
    """The id of a new call, due in an hour unless the fields have another instant."""
    spec = {
        "method": "POST",
        "url": url,
        "retryPolicy": {"maxAttempts": 5, "initialInterval": "4h", "maxInterval": "4h"},
    }
    body = {"name": "Charge order 17", "requestSpec": spec, "dueAt": in_hours(1), **fields}
    status, answer = await Client(server.address).post(f"/api/v1/tenants/{tenant}/service-calls", body)
    assert status == 202, answer
    return str(answer["serviceCallId"])


async def left(server: ServerProcess, tenant: str) -> set[str]:
    _, answer = await Client(server.address).get(f"/api/v1/tenants/{tenant}/service-calls?limit=1000")
    return {each["serviceCallId"] for each in answer["serviceCalls"]}


@pytest.mark.parametrize("kind", EACH[:2])
async def test_waiting_calls_that_match_are_deleted(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The node of a job dies in the middle; it goes on after the restart."""
    prefix = {"TOCSIN_BROKER_PREFIX": new_id().replace("-", "")}
    server = ServerProcess(tmp_path / "data", *await flags_of(kind, request), env=prefix)
    await server.start()
    api, tenant, other = Api(server), new_id(), new_id()
    foreign = await submit(server, other, tags=["eu"])
    for _ in range(24):
        await submit(server, tenant, tags=["eu"])
    async with Flaky() as receiver:
        receiver.statuses["/retried"] = 503
        due = {"dueAt": in_hours(-1)}
        again = await submit(server, tenant, f"{receiver.url}/retried", tags=["eu"], name="Mail", **due)
        gone = await submit(server, tenant, f"{receiver.url}/gone", tags=["eu"], **due)
        await details(server, tenant, [again], "Retrying")
        await details(server, tenant, [gone], "Failed")
    kept = await submit(server, tenant, "http://Shop.test/hooks", tags=["us", "star"], dueAt=in_hours(9))

    # Each filter finds its calls.
    for row_filter, matched in (
        ({"tags": ["eu"]}, 25),
        ({"status": "Retrying"}, 1),
        ({"status": "Scheduled"}, 25),
        ({"name": "mail"}, 1),
        ({"destination": "shop.TEST/hooks"}, 1),
        ({"idPrefix": kept}, 1),
        ({"executeAfter": in_hours(5)}, 1),
        ({"executeBefore": in_hours(2), "tags": ["eu"]}, 24),
        ({"createdBefore": in_hours(-1), "tags": ["eu"]}, 0),
        ({"createdAfter": in_hours(-1)}, 26),
        ({"tags": ["us", "star"]}, 1),
    ):
        dry_run = await job_ended(api, **DELETE, tenant=tenant, filter=row_filter, dryRun=True)
        assert counts(dry_run) == (matched, 0, 0, 0), row_filter
        assert {**row_filter, "destination": ""}.keys() <= {**dry_run["filter"], "destination": ""}.keys()
    everywhere = await job_ended(api, **DELETE, tenant="*", filter={"tags": ["eu"]}, dryRun=True)
    assert counts(everywhere) == (26, 0, 0, 0)
    too_many = await job_ended(api, **DELETE, tenant=tenant, filter={"tags": ["eu"]}, matchMax=24, dryRun=True)
    assert (too_many["state"], counts(too_many)) == ("failed", (24, 0, 0, 0))

    is_killed = kind == EACH[0]
    wanted = {**DELETE, "tenant": tenant, "filter": {"tags": ["eu"]}, "idempotencyKey": "once"}
    # So slow that a busy machine kills the server long before the end.
    status, answer = await api("jobs/create", **wanted, ratePerSecond=2 if is_killed else 5_000)
    assert status == 202, answer
    job_id = answer["job"]["id"]
    if is_killed:
        assert (await api("jobs/create", **DELETE, tenant=tenant, all=True))[1]["error"] == "JOB_RUNNING"
        await until(api, job_id, lambda job: job["changed"] >= 3)
        assert (await api("jobs/pause", jobId=job_id))[0] == 200
        assert (await api("jobs/resume", jobId=job_id))[0] == 200
        await server.kill()
        await server.start()
        api = Api(server)
        assert (await api("jobs/setRate", jobId=job_id, ratePerSecond=5_000))[0] == 200
    job = await until(api, job_id, lambda job: job["state"] != "running")
    assert (job["state"], job["errors"], job["skipped"], job["tenant"]) == ("completed", 0, 0, tenant), job
    assert is_killed or counts(job) == (25, 25, 0, 0)
    assert await left(server, tenant) == {gone, kept}
    assert await left(server, other) == {foreign}
    later = await submit(server, tenant, tags=["eu"])
    if not is_killed:
        repeated = await api("jobs/create", **wanted, ratePerSecond=5_000)
        assert repeated[1]["job"]["id"] == job_id
    assert await left(server, tenant) == {gone, kept, later}
    assert counts(await job_ended(api, **DELETE, tenant="*", all=True)) == (3, 3, 0, 0)
    assert await left(server, tenant) == {gone}
    trail = (await api("audit/list", subject=job_id))[1]["entries"]
    assert {"job_ended", "job_created"} <= {each["action"] for each in trail}
    assert await server.stop() == 0
    assert "Traceback" not in server.log(), server.log()[-4000:]


async def refused(api: Call, tenant: str) -> None:
    """Bad requests name the field."""
    of_tenant = {**DELETE, "tenant": tenant}
    timers = {"namespace": "default", "of": "timers", "action": "cancel"}
    for body, field in (
        ({**DELETE, "namespace": "default", "all": True}, "namespace"),
        (of_tenant, "filter"),
        ({**of_tenant, "action": "replay", "all": True}, "action"),
        ({**of_tenant, "all": True, "url": NOWHERE}, "url"),
        ({**of_tenant, "filter": {"error": "HTTP 500"}}, "filter.error"),
        ({**of_tenant, "filter": {"kind": "call"}}, "filter.kind"),
        ({**of_tenant, "filter": {"createdBefore": in_hours(1)}}, "filter.createdBefore"),
        ({**timers, "filter": {"name": "x"}}, "filter.name"),
        ({**timers, "filter": {"status": "Scheduled"}}, "filter.status"),
    ):
        status, answer = await api("jobs/create", **body)
        assert status == 400, (body, answer)
        assert field in [each["path"] for each in answer["errors"]], (body, answer)
    assert (await api("jobs/create", **of_tenant, filter={"status": "Running"}))[0] == 400


async def test_a_key_of_one_tenant_deletes_its_calls_only(
    reachable: tuple[ServerProcess, str],  # noqa: F811
) -> None:
    server, admin_key = reachable
    admin, mine, theirs = Caller(server, admin_key), new_id(), new_id()
    await refused(admin, mine)
    own = Caller(server, await make_key(server, "--role", "write", "--tenant", mine))
    reader = Caller(server, await make_key(server, "--role", "read", "--tenant", mine))
    await own.until(200, "failures/list", tenant="*")
    await reader.until(200, "failures/list", tenant="*")
    ids = {tenant: (await job_ended(admin, **DELETE, tenant=tenant, all=True))["id"] for tenant in (mine, theirs, "*")}
    for caller in (own, reader):
        assert [each["id"] for each in (await caller("jobs/list"))[1]["jobs"]] == [ids[mine]]
        assert (await caller("jobs/get", jobId=ids[theirs]))[0] == 404
    for tenant in (theirs, "*"):
        assert (await own("jobs/create", **DELETE, tenant=tenant, all=True))[0] == 403
    assert (await reader("jobs/create", **DELETE, tenant=mine, all=True))[0] == 403
    assert counts(await job_ended(own, **DELETE, tenant=mine, all=True)) == (0, 0, 0, 0)
