"""Namespaces are read and deleted on a real server: with all that is in them, and with their keys."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.integration.server.test_access import Caller, make_key, reachable  # noqa: F401
from tests.integration.server.test_failures import NONE, listed
from tests.integration.server.test_jobs import NOWHERE, Call, counts, create
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess


async def ended(call: Call, job_id: str) -> dict[str, Any]:
    """The job when it has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while (job := (await call("jobs/get", jobId=job_id))[1]["job"])["state"] == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return dict(job)


async def until_released(call: Call, name: str) -> None:
    """Returns when no job deletes the namespace any more."""
    async with asyncio.timeout(PATIENCE_S):
        while "deleting" in (await call("namespaces/get", name=name))[1]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_namespace_is_got_as_it_is_listed(server: ServerProcess) -> None:
    api = Api(server)
    assert (await api("namespaces/create", name="orders", history="failures"))[0] == 200
    namespaces = (await api("namespaces/list"))[1]["namespaces"]
    assert [(await api("namespaces/get", name=each["name"]))[1] for each in namespaces] == namespaces
    assert (await api("namespaces/get", name="nowhere"))[1]["error"] == "NAMESPACE_NOT_FOUND"


async def test_namespace_goes_with_all_that_is_in_it_and_its_name_can_be_used_again(server: ServerProcess) -> None:
    api, inbox = Api(server), Inbox(answers=[(410, b"")])
    once = {"namespace": "gone", "id": "once", "idempotencyKey": "k", "delay": "0s"}
    async with Receiver(inbox) as receiver:
        hook = {"onFailure": {"url": NOWHERE}}
        assert (await api("namespaces/create", name="gone", numShards=1, **hook))[0] == 200
        assert (await api("timers/create", **once, callbackUrl=receiver.url))[0] == 200
        await api.settled("once", "failed", namespace="gone")
        await api.create("done", receiver.url, namespace="gone")
        await api.settled("done", "completed", namespace="gone")
    await create(api, "gone", *(f"t{number}" for number in range(4)))
    schedule = {"namespace": "gone", "id": "s", "callbackUrl": NOWHERE, "every": "24h"}
    assert (await api("schedules/create", **schedule))[0] == 200
    await listed(api, 1, namespace="gone")

    status, refused = await api("namespaces/delete", name="gone")
    assert (status, refused["error"]) == (409, "NAMESPACE_NOT_EMPTY")
    wanted = {"name": "gone", "cancelPending": True, "ratePerSecond": 1, "idempotencyKey": "away"}
    status, answer = await api("namespaces/delete", **wanted)
    job = answer["job"]
    assert (status, job["of"], job["action"], job["namespace"]) == (202, "namespace", "delete", "gone")
    # So that it does not end before all that follows, however long that takes.
    assert (await api("jobs/pause", jobId=job["id"]))[0] == 200
    assert job["cancelPending"] is True
    assert (await api("namespaces/get", name="gone"))[1]["deleting"] == job["id"]
    for path, body in (
        ("timers/create", {"namespace": "gone", "id": "new", "callbackUrl": NOWHERE, "delay": "1h"}),
        ("timers/update", {"namespace": "gone", "timerId": "t3", "delay": "2h"}),
        ("schedules/create", schedule),
        ("schedules/pause", {"namespace": "gone", "scheduleId": "s"}),
        ("namespaces/create", {"name": "gone"}),
        ("namespaces/update", {"name": "gone", "paused": True}),
        ("namespaces/rotateSecret", {"name": "gone"}),
        ("jobs/create", {"namespace": "gone", "of": "timers", "action": "cancel", "all": True}),
    ):
        status, refused = await api(path, **body)
        assert (status, refused["error"]) == (409, "NAMESPACE_DELETING"), (path, refused)
    new = {"namespace": "gone", "id": "new", "callbackUrl": NOWHERE, "delay": "1h"}
    results = (await api("timers/batch/create", timers=[new]))[1]["results"]
    assert results[0]["error"]["error"] == "NAMESPACE_DELETING"
    replayed = (await api("timers/replay", namespace="gone", ids=["once"]))[1]["results"]
    assert replayed[0]["error"]["error"] in ("NAMESPACE_DELETING", "TIMER_NOT_FOUND")
    assert (await api("timers/list", namespace="gone"))[0] == 200
    explained = (await api("timers/explain", namespace="gone", timerId="t3"))[1]
    assert job["id"] in explained["sentence"]
    for body in (wanted, {"name": "gone"}):
        assert (await api("namespaces/delete", **body))[1]["job"]["id"] == job["id"]

    assert (await api("jobs/setRate", jobId=job["id"], ratePerSecond=5_000))[0] == 200
    assert (await api("jobs/resume", jobId=job["id"]))[0] == 200
    job = await ended(api, job["id"])
    assert (job["state"], counts(job)[1:]) == ("completed", (counts(job)[0], 0, 0)), job
    assert counts(job)[0] >= 7
    assert (await api("namespaces/get", name="gone"))[0] == 404
    assert (await api("timers/get", namespace="gone", timerId="done"))[1]["error"] == "NAMESPACE_NOT_FOUND"
    assert (await api("timers/create", **new))[1]["error"] == "NAMESPACE_NOT_FOUND"
    # The answer to a repeated request, after the namespace is gone; without its key, there is none to delete.
    assert (await api("namespaces/delete", **wanted))[1]["job"]["id"] == job["id"]
    assert (await api("namespaces/delete", name="gone"))[0] == 404
    trail = (await api("audit/list", subject="gone"))[1]["entries"]
    assert [each["action"] for each in trail] == ["namespace_deleted", "namespace_created"]
    assert trail[0]["details"] == {"job": job["id"]}

    assert (await api("namespaces/create", name="gone", numShards=4))[0] == 200
    assert (await api("timers/list", namespace="gone"))[1]["timers"] == []
    assert (await api("schedules/list", namespace="gone"))[1]["schedules"] == []
    assert (await api("failures/list", namespace="gone"))[1] == NONE
    assert (await api("timers/history", namespace="gone", timerId="once"))[0] == 404
    status, again = await api("timers/create", **once, callbackUrl=NOWHERE)
    assert (status, again["status"], again["attempts"]) == (200, "pending", 0)
    assert [each["id"] for each in (await api("jobs/list", namespace="gone"))[1]["jobs"]] == [job["id"]]


async def test_canceled_deletion_releases_the_namespace(server: ServerProcess) -> None:
    api = Api(server)
    assert (await api("namespaces/create", name="kept"))[0] == 200
    # At one a second, longer than a busy machine takes to cancel the job.
    await create(api, "kept", *(f"t{number}" for number in range(60)))
    job = (await api("namespaces/delete", name="kept", cancelPending=True, ratePerSecond=1))[1]["job"]
    assert (await api("jobs/cancel", jobId=job["id"]))[1]["job"]["state"] == "canceled"
    await until_released(api, "kept")
    await create(api, "kept", "new")
    left = (await api("timers/list", namespace="kept", status="pending", limit=100))[1]["timers"]
    assert "new" in [each["id"] for each in left]
    # What was deleted has left nothing, what was not is as it was.
    assert (await api("namespaces/delete", name="kept"))[1]["error"] == "NAMESPACE_NOT_EMPTY"


async def test_monitors_go_with_their_namespace_and_do_not_keep_it(server: ServerProcess) -> None:
    api = Api(server)
    assert (await api("namespaces/create", name="watched"))[0] == 200
    monitor = {"namespace": "watched", "id": "nightly", "every": "24h"}
    assert (await api("monitors/put", **monitor))[0] == 200
    status, answer = await api("namespaces/delete", name="watched")
    assert status == 202
    job = await ended(api, answer["job"]["id"])
    assert (job["state"], job.get("reason")) == ("completed", None)
    assert (await api("namespaces/get", name="watched"))[0] == 404


async def test_what_can_not_be_deleted_is_refused_by_field(server: ServerProcess) -> None:
    api = Api(server)
    for fields, path in (
        ({"name": "default"}, "name"),
        ({"name": "tocsin.agent"}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": "a", "ratePerSecond": 0}, "ratePerSecond"),
        ({"name": "a", "idempotencyKey": "two words"}, "idempotencyKey"),
    ):
        status, answer = await api("namespaces/delete", **fields)
        assert (status, [each["path"] for each in answer["errors"]]) == (400, [path]), fields
    wanted = {"namespace": "default", "of": "namespace", "action": "delete", "all": True}
    status, answer = await api("jobs/create", **wanted)
    assert (status, [each["path"] for each in answer["errors"]]) == (400, ["of"])


async def test_keys_lose_a_deleted_namespace_and_never_get_more(
    reachable: tuple[ServerProcess, str],  # noqa: F811
) -> None:
    server, admin_key = reachable
    admin = Caller(server, admin_key)
    for name in ("mine", "ours"):
        assert (await admin("namespaces/create", name=name))[0] == 200
    alone = Caller(server, await make_key(server, "--role", "admin", "--namespace", "mine"))
    both = Caller(server, await make_key(server, "--role", "write", "--namespace", "mine", "--namespace", "ours"))
    for caller in (alone, both):
        await caller.until(200, "namespaces/list")
        assert (await caller("namespaces/delete", name="mine"))[0] == 403
        assert (await caller("namespaces/get", name="mine"))[0] == 200
    await create_in(admin, "mine")
    job = (await admin("namespaces/delete", name="mine", cancelPending=True, ratePerSecond=1))[1]["job"]
    # The keys are changed at its end.
    assert (await admin("jobs/pause", jobId=job["id"]))[0] == 200
    for caller in (alone, both):
        assert (await caller("jobs/get", jobId=job["id"]))[0] == 200
        assert (await caller("jobs/cancel", jobId=job["id"]))[0] == 403
    assert (await admin("jobs/resume", jobId=job["id"]))[0] == 200
    assert (await admin("jobs/setRate", jobId=job["id"], ratePerSecond=5_000))[0] == 200
    assert (await ended(admin, job["id"]))["state"] == "completed"
    keys = {tuple(each["namespaces"]) for each in (await admin("keys/list"))[1]["keys"]}
    assert keys == {(), ("ours",)}
    await alone.until(401, "namespaces/list")
    assert [each["name"] for each in (await both("namespaces/list"))[1]["namespaces"]] == ["ours"]
    assert (await both("timers/list", namespace="mine"))[0] == 403
    trail = (await admin("audit/list", action=["key_changed", "key_deleted"]))[1]["entries"]
    assert {(each["action"], each["details"]["job"]) for each in trail} == {
        ("key_changed", job["id"]),
        ("key_deleted", job["id"]),
    }


async def create_in(call: Call, namespace: str) -> None:
    """A few timers that are pending for long."""
    timers = [
        {"namespace": namespace, "id": f"t{i}", "callbackUrl": "http://example.com/", "delay": "1h"} for i in range(3)
    ]
    assert (await call("timers/batch/create", timers=timers))[0] == 200
