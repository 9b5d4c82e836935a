"""Flows on a real server: their rules, the keys that timers and schedules name, and what becomes of their calls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.integration.server.conftest import serving
from tests.integration.server.test_access import Caller, make_key, reachable  # noqa: F401
from tests.integration.server.test_namespace_deletion import ended
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

URL = "http://127.0.0.1:1/"
RATE = {"count": 100, "per": "1m"}
RULE = {"namespace": "default", "match": "customer:"}
IDLE = {"inFlight": 0, "waiting": 0, "complete": True}


class CountingReceiver(Receiver):
    """A receiver that notes how many requests were at it at once, at most."""

    def __init__(self, inbox: Inbox) -> None:
        super().__init__(inbox)
        self._now = self.most_at_once = 0

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        self._now += 1
        self.most_at_once = max(self._now, self.most_at_once)
        try:
            return await super()._respond(path, headers, raw)
        finally:
            self._now -= 1


async def rules(api: Api, namespace: str = "default", **page: Any) -> list[str]:
    """The matches of the rules."""
    status, found = await api("flows/list", namespace=namespace, **page)
    assert status == 200, found
    return [each["match"] for each in found["flows"]]


async def test_flow_keys_are_kept_changed_and_removed(server: ServerProcess) -> None:
    api = Api(server)
    assert (await api.create("t", URL, delay="1h", flowKey="customer:17"))["flowKey"] == "customer:17"
    others = [{"namespace": "default", "id": each, "delay": "1h", "callbackUrl": URL} for each in ("u", "v")]
    _, made = await api("timers/batch/create", timers=[{**others[0], "flowKey": "a"}, others[1]])
    assert [each["timer"].get("flowKey") for each in made["results"]] == ["a", None]
    beats = {"namespace": "default", "id": "s", "callbackUrl": URL, "every": "1h", "flowKey": "beats"}
    assert (await api("schedules/create", **beats))[1]["flowKey"] == "beats"
    name, named = {"namespace": "default", "timerId": "t"}, {"namespace": "default", "scheduleId": "s"}
    _, page = await api("timers/list", namespace="default")
    assert {each["id"]: each.get("flowKey") for each in page["timers"]} == {"t": "customer:17", "u": "a", "v": None}
    assert (await api("timers/update", **name, tags=["a"]))[1]["flowKey"] == "customer:17"
    assert (await api("timers/update", **name, flowKey="x" * 64))[1]["flowKey"] == "x" * 64
    for bad in ("", "x" * 65, "two words", "customer:", "é", "a\n"):
        status, problem = await api("timers/update", **name, flowKey=bad)
        assert (status, problem["errors"][0]["path"]) == (400, "flowKey"), bad
    assert "flowKey" not in (await api("timers/update", **name, flowKey=None))[1]
    assert (await api("schedules/update", **named, flowKey="y"))[1]["flowKey"] == "y"
    assert "flowKey" not in (await api("schedules/update", **named, flowKey=None))[1]


async def test_rules_are_put_read_paused_and_deleted_and_survive_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server:
        api = Api(server)
        limits = {
            "perKey": {"rate": RATE, "burst": 10, "parallelism": 2},
            "total": {"rate": {"count": 1, "per": "90m"}},
        }
        status, put = await api("flows/put", **RULE, **limits, closeOnRetryAfter=True)
        shown = {"perKey": limits["perKey"], "total": {"rate": {"count": 1, "per": "1h30m"}, "burst": 1}}
        expected = {**RULE, **shown, "closeOnRetryAfter": True, "paused": False, "version": 1, **IDLE}
        assert (status, put) == (200, {**expected, "createdAt": put["createdAt"], "updatedAt": put["createdAt"]})
        # Nothing differs, so nothing is written.
        assert (await api("flows/put", **RULE, **limits, closeOnRetryAfter=True))[1] == put
        _, paused = await api("flows/pause", **RULE, until="2999-01-01T00:00:00Z")
        assert (paused["paused"], paused["pausedUntil"], paused["version"]) == (True, "2999-01-01T00:00:00Z", 2)
        _, changed = await api("flows/put", **RULE, perKey={"parallelism": 1})
        assert changed["perKey"] == {"parallelism": 1}
        assert changed.keys() & {"total", "pausedUntil"} == {"pausedUntil"}
        assert (changed["closeOnRetryAfter"], changed["paused"], changed["version"]) == (False, True, 3)
        await server.stop()
        await server.start()
        assert (await api("flows/get", **RULE))[1] == changed
        _, paused = await api("flows/pause", **RULE)
        assert (paused["paused"], "pausedUntil" in paused) == (True, False)
        assert (await api("flows/resume", **RULE))[1]["paused"] is False
        for match in ("a", "customer:17", "z"):
            assert (await api("flows/put", namespace="default", match=match, total={"parallelism": 1}))[0] == 200
        assert await rules(api) == ["a", "customer:", "customer:17", "z"]
        _, page = await api("flows/list", namespace="default", limit=3)
        assert [each["match"] for each in page["flows"]] == ["a", "customer:", "customer:17"]
        _, last = await api("flows/list", namespace="default", limit=3, cursor=page["nextCursor"])
        assert ([each["match"] for each in last["flows"]], "nextCursor" in last) == (["z"], False)
        assert (await api("flows/delete", **RULE))[0] == 204
        assert await rules(api) == ["a", "customer:17", "z"]
        for path in ("get", "delete", "pause", "resume"):
            status, problem = await api(f"flows/{path}", **RULE)
            assert (status, problem["error"]) == (404, "FLOW_NOT_FOUND"), path
        assert (await api("flows/put", **RULE, total={"parallelism": 1}))[1]["version"] == 1
        trail = (await api("audit/list", subject="default", action=["flow_changed", "flow_deleted"]))[1]["entries"]
        assert [each["details"] for each in trail[1:]][:1] == [{"match": "customer:"}]
        assert trail[-1]["details"] == {
            "match": "customer:",
            "perKey": "rate 100/1m, burst 10, parallelism 2",
            "total": "rate 1/90m",
            "closeOnRetryAfter": True,
        }


async def test_what_no_rule_can_be_is_refused_by_field(server: ServerProcess) -> None:
    api = Api(server)
    for fields, path in (
        ({}, ""),
        ({"closeOnRetryAfter": False}, ""),
        ({"perKey": {}}, "perKey"),
        ({"perKey": {"burst": 2}}, "perKey.burst"),
        ({"total": {"parallelism": 1, "burst": 2}}, "total.burst"),
        ({"perKey": {"parallelism": 0}}, "perKey.parallelism"),
        ({"perKey": {"parallelism": 1_000_001}}, "perKey.parallelism"),
        ({"total": {"rate": {"count": 0, "per": "1m"}}}, "total.rate.count"),
        ({"total": {"rate": {"count": 1, "per": "999ms"}}}, "total.rate.per"),
        ({"total": {"rate": {"count": 1, "per": "1d1s"}}}, "total.rate.per"),
        ({"total": {"rate": {"count": 1, "per": "soon"}}}, "total.rate.per"),
        ({"total": {"rate": RATE, "burst": 0}}, "total.burst"),
        ({"perKey": {"parallelism": 1, "ordered": True}}, "perKey.ordered"),
        ({"match": "two words", "total": {"parallelism": 1}}, "match"),
        ({"match": "", "total": {"parallelism": 1}}, "match"),
    ):
        status, problem = await api("flows/put", **{**RULE, **fields})
        assert status == 400, fields
        assert [each["path"] for each in problem["errors"]] == [path], problem
    assert (await api("flows/put", **RULE, total={"parallelism": 1}))[0] == 200
    status, problem = await api("flows/pause", **RULE, until="2020-01-01T00:00:00Z")
    assert (status, problem["errors"][0]["path"]) == (400, "until")
    status, problem = await api("flows/list", namespace="default", cursor="?")
    assert (status, problem["errors"][0]["path"]) == (400, "cursor")
    for path in ("put", "get", "list", "delete", "pause", "resume"):
        body = {"namespace": "nowhere"} if path == "list" else {**RULE, "namespace": "nowhere"}
        body |= {"total": {"parallelism": 1}} if path == "put" else {}
        status, problem = await api(f"flows/{path}", **body)
        assert (status, problem["error"]) == (404, "NAMESPACE_NOT_FOUND"), path
    status, problem = await api("namespaces/update", name="default", limits={"burst": 3})
    assert (status, problem["errors"][0]["path"]) == (400, "limits.burst")


async def test_limits_of_a_namespace_are_replaced_and_removed(server: ServerProcess) -> None:
    api = Api(server)
    _, made = await api("namespaces/create", name="shop", limits={"parallelism": 5})
    assert made["limits"] == {"parallelism": 5}
    _, changed = await api("namespaces/update", name="shop", limits={"rate": RATE, "burst": 7})
    assert changed["limits"] == {"rate": RATE, "burst": 7}
    assert (await api("namespaces/update", name="shop", retention="1d"))[1]["limits"] == changed["limits"]
    assert "limits" not in (await api("namespaces/update", name="shop", limits=None))[1]
    assert "limits" not in (await api("namespaces/get", name="shop"))[1]
    trail = (await api("audit/list", subject="shop"))[1]["entries"]
    assert [each["details"].get("limits") for each in trail] == [
        "removed",
        None,
        "rate 100/1m, burst 7",
        "parallelism 5",
    ]


async def test_roles_of_operations_on_flows(reachable: tuple[ServerProcess, str]) -> None:  # noqa: F811
    server, admin = reachable
    root = Caller(server, admin)
    assert (await root("flows/put", **RULE, total={"parallelism": 1}))[0] == 200
    keys = [
        await make_key(server, "--role", role, *limits)
        for role, limits in (("read", ()), ("write", ()), ("admin", ("--namespace", "default")))
    ]
    for key in keys:
        call = Caller(server, key)
        await call.until(200, "flows/get", **RULE)
        assert (await call("flows/list", namespace="default"))[0] == 200
        for path, body in (("put", {"total": {"parallelism": 2}}), ("pause", {}), ("resume", {}), ("delete", {})):
            assert (await call(f"flows/{path}", **RULE, **body))[0] == 403, path
        if key == keys[-1]:
            assert (await call("flows/list", namespace="other"))[0] == 403
    assert (await root("flows/get", **RULE))[1]["version"] == 1


async def test_attempts_of_a_flow_are_made_one_at_a_time_and_wait_while_it_is_paused(server: ServerProcess) -> None:
    api, inbox = Api(server), Inbox()
    await api("flows/put", **RULE, perKey={"parallelism": 1})
    async with CountingReceiver(inbox) as receiver:
        receiver.responding.clear()
        for number in range(3):
            await api.create(f"t{number}", receiver.url, flowKey="customer:1")
        await inbox.count(1)
        async with asyncio.timeout(PATIENCE_S):
            while (seen := (await api("flows/get", **RULE))[1])["waiting"] < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (seen["inFlight"], seen["waiting"], seen["complete"]) == (1, 2, True)
        explained = (await api("timers/explain", namespace="default", timerId="t2"))[1]
        assert explained["waitsFor"] == "flow", explained
        receiver.responding.set()
        for number in range(3):
            await api.settled(f"t{number}", "completed")
        assert receiver.most_at_once == 1
        await api("flows/pause", **RULE)
        await api.create("held", receiver.url, flowKey="customer:2")
        await api.create("free", receiver.url, flowKey="other")
        await api.settled("free", "completed")
        assert (await api.get("held"))["attempts"] == 0
        await api("flows/resume", **RULE)
        await api.settled("held", "completed")


async def test_rules_go_with_their_namespace(server: ServerProcess) -> None:
    api = Api(server)
    rule = {"match": "k", "total": {"parallelism": 1}}
    for name in ("gone", "gone2"):
        assert (await api("namespaces/create", name=name, limits={"parallelism": 1}))[0] == 200
        assert (await api("flows/put", namespace=name, **rule))[0] == 200
    await api.create("t", URL, namespace="gone", delay="1h")
    wanted = {"name": "gone", "cancelPending": True, "ratePerSecond": 1}
    job = (await api("namespaces/delete", **wanted))[1]["job"]
    for path, body in (
        ("put", rule),
        ("pause", {"match": "k"}),
        ("resume", {"match": "k"}),
        ("delete", {"match": "k"}),
    ):
        status, refused = await api(f"flows/{path}", namespace="gone", **body)
        if status != 404:  # The job may have ended.
            assert (status, refused["error"]) == (409, "NAMESPACE_DELETING"), path
    assert (await ended(api, job["id"]))["state"] == "completed"
    assert (await api("flows/list", namespace="gone"))[1]["error"] == "NAMESPACE_NOT_FOUND"
    status, again = await api("namespaces/create", name="gone")
    assert (status, "limits" in again) == (200, False)
    assert await rules(api, "gone") == []
    assert await rules(api, "gone2") == ["k"]
