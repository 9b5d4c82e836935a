"""Failures on a real server: grouped by cause, in pages, dismissed, and only those that a key may see."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.integration.server.test_access import REFRESH, Caller, make_key
from tests.support.calls import Api
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

NONE = {"groups": [], "furtherGroups": 0, "count": 0, "atLeast": False}


def refuse(payload: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
    """The status that the callback's payload asks for."""
    return (payload.get("payload") or {}).get("status", 410), b'{"error": "gone", "password": "hunter2"}'


async def listed(ask: Any, count: int, **wanted: Any) -> Any:
    """The failures, once there are so many."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, answer = await ask("failures/list", **{"namespace": "default", **wanted})
            assert status == 200, answer
            if answer["count"] >= count:
                return answer
            await asyncio.sleep(0.02)


async def test_failures_are_grouped_sampled_and_dismissed(server: ServerProcess) -> None:
    api = Api(server)
    async with Receiver(refuse) as receiver:
        url = f"{receiver.url}?token=s3cret"
        for name in ("a", "b", "c"):
            await api.create(name, url)
        await api.create("other", url, payload={"status": 404})
        await api.create("fine", url, payload={"status": 200})
        rule = {"callbackUrl": url, "cron": "0 0 1 1 *", "retryPolicy": {"maxAttempts": 1}}
        created = await api("schedules/create", namespace="default", id="s", **rule)
        assert created[0] == 200, created
        assert (await api("schedules/trigger", namespace="default", scheduleId="s"))[0] == 200
        answer = await listed(api, 5)
        await api.settled("fine", "completed")
        place = receiver.url.removesuffix("/")
        found = {(each["error"], each["kind"]): each for each in answer["groups"]}
        assert {key: each["count"] for key, each in found.items()} == {
            ("HTTP 410", "timer"): 3,
            ("HTTP 404", "timer"): 1,
            ("HTTP 410", "occurrence"): 1,
        }
        gone = found["HTTP 410", "timer"]
        assert gone["destination"].removesuffix("/") == place
        assert sum(gone["series"]) == 3
        assert len(gone["series"]) == 24
        assert sorted(each["id"] for each in gone["newest"]) == ["a", "b", "c"]
        for each in found.values():
            assert each["sample"]["method"] == "POST"
            assert "s3cret" not in each["sample"]["url"]
            assert (each["sample"]["attempt"]["answer"], each["namespace"]) == (
                '{"error": "gone", "password": "[redacted]"}',
                "default",
            )
        together = await listed(api, 5, groupBy=["error"])
        assert [(each["error"], each["count"]) for each in together["groups"]] == [("HTTP 410", 4), ("HTTP 404", 1)]
        assert (await listed(api, 5, limit=1))["furtherGroups"] == 2

        group = {"namespace": "default", "error": "HTTP 410", "kind": "timer"}
        members, cursor = [], {}
        while True:
            _, page = await api("failures/members", **group, limit=2, **cursor)
            members += page["failures"]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert sorted(each["id"] for each in members) == ["a", "b", "c"]
        assert [each["failedAt"] for each in members] == sorted((each["failedAt"] for each in members), reverse=True)

        ids = [members[0]["failureId"]]
        assert await api("failures/dismiss", namespace="default", ids=ids) == (200, {"dismissed": 1, "more": False})
        assert await api("failures/dismiss", **group) == (200, {"dismissed": 2, "more": False})
        assert (await listed(api, 2))["count"] == 2
        assert await api("failures/dismiss", namespace="default", all=True) == (200, {"dismissed": 2, "more": False})
        assert await api("failures/list", namespace="*") == (200, NONE)
        assert (await api.get("a"))["status"] == "failed"


async def test_bad_requests_name_the_field(server: ServerProcess) -> None:
    api = Api(server)
    for path, body, field in (
        ("list", {"namespace": "default", "groupBy": []}, "groupBy"),
        ("list", {"namespace": "default", "since": "yesterday"}, "since"),
        ("members", {"namespace": "default", "cursor": "x"}, "cursor"),
        ("dismiss", {"namespace": "default"}, "ids"),
        ("dismiss", {"namespace": "default", "ids": ["x"]}, "ids[0]"),
        ("dismiss", {"namespace": "default", "ids": ["x"], "all": True}, "ids"),
    ):
        status, answer = await api(f"failures/{path}", **body)
        assert (status, answer["errors"][0]["path"]) == (400, field), answer
    assert (await api("failures/list", namespace="absent"))[0] == 404


async def test_a_limited_key_sees_and_dismisses_only_the_failures_of_its_namespaces(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--no-agent", env=REFRESH | {"TOCSIN_EGRESS_ALLOW_PRIVATE": "true"})
    await server.start()
    admin, reader = (
        await make_key(server, "--role", "admin"),
        await make_key(server, "--role", "write", "--namespace", "one"),
    )
    everything, own = Caller(server, admin), Caller(server, reader)
    await own.until(200, "failures/list", namespace="*")
    async with Receiver(refuse) as receiver:
        for name in ("one", "two"):
            status, _ = await everything("namespaces/create", name=name)
            assert status == 200
            body = {"namespace": name, "timerId": name, "callbackUrl": receiver.url, "delay": "0s"}
            assert (await everything("timers/create", **body))[0] == 200
        both = await listed(everything, 2, namespace="*")
        seen = await listed(own, 1, namespace="*")
        assert (len(both["groups"]), [each["namespace"] for each in seen["groups"]]) == (2, ["one"])
        assert seen["count"] == 1
        assert (await own("failures/list", namespace="two"))[0] == 403
        assert (await own("failures/members", namespace="two"))[0] == 403
        theirs = (await everything("failures/members", namespace="two"))[1]["failures"][0]["failureId"]
        assert (await own("failures/dismiss", namespace="two", ids=[theirs]))[0] == 403
        # The handle names a failure within a namespace.
        assert (await own("failures/dismiss", namespace="one", ids=[theirs]))[0] == 200
        assert (await listed(everything, 2, namespace="*"))["count"] == 2
        assert (await own("failures/dismiss", namespace="*", all=True))[0] == 400
        assert await own("failures/dismiss", namespace="one", all=True) == (200, {"dismissed": 1, "more": False})
        assert [each["namespace"] for each in (await listed(everything, 1, namespace="*"))["groups"]] == ["two"]
        trail = (await everything("audit/list", action="failures_dismissed"))[1]["entries"]
        assert [(each["subject"], each["details"]["count"]) for each in trail] == [("one", 1), ("one", 1)]
    await server.stop()
