"""Monitors on a real server: pings by URL, their refusal, late and recovered jobs, history, rotation, lists, deletion."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from tests.integration.server.conftest import serving
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

_NAME = {"namespace": "default", "id": "backup"}


def _at(server: ServerProcess, url: str) -> str:
    """The ping URL as the test reaches the server, whose name in it is that of the request's Host header."""
    assert url.startswith("http://")
    return server.url + url[url.index("/ping/") :]


async def _put(api: Api, **fields: Any) -> dict[str, Any]:
    status, answer = await api("monitors/put", **_NAME, **fields)
    assert status == 200, answer
    return answer


async def test_pings_by_url_are_durable_and_nothing_shows_the_token(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server, httpx.AsyncClient() as client:
        api = Api(server)
        made = await _put(api, cron="0 3 * * *", timeZone="Europe/Berlin", grace="30m")
        url = _at(server, made["pingUrl"])
        assert (made["created"], made["monitor"]["state"]) == (True, "new")
        again = await _put(api, cron="0 3 * * *", timeZone="Europe/Berlin", grace="30m")
        assert again == {"monitor": made["monitor"], "created": False}

        begun = await client.get(url + "/start")
        assert (begun.status_code, begun.text, begun.headers["cache-control"]) == (200, "OK\n", "no-store")
        _, answer = await api("monitors/get", **_NAME)
        assert answer["monitor"]["running"]
        ended = await client.post(url + "/3", content=b"\xff last words, token=abc")
        assert ended.status_code == 200
        assert (await client.head(url)).status_code == 200
        _, answer = await api("monitors/get", **_NAME)
        assert (answer["monitor"]["state"], answer["monitor"]["running"]) == ("up", False)
        _, page = await api("monitors/history", **_NAME)
        (period,) = page["periods"]
        assert (period["state"], period["exitCode"]) == ("failed", 3)
        assert period["durationMs"] >= 0
        assert "last words" in period["body"]
        assert "abc" not in period["body"]

        token = url.rpartition("/")[2]
        _, page = await api("monitors/list", namespace="*")
        assert [each["id"] for each in page["monitors"]] == ["backup"]
        _, timers = await api("timers/list", namespace="*")
        _, schedules = await api("schedules/list", namespace="*")
        assert (timers["timers"], schedules["schedules"]) == ([], [])
        _, trail = await api("audit/list")
        assert token not in repr((page, trail, answer))
    assert token.encode() not in b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())


async def test_unknown_pings_are_refused_alike_and_within_a_budget(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server, httpx.AsyncClient() as client:
        api = Api(server)
        url = _at(server, (await _put(api, every="1h"))["pingUrl"])
        unknown = url[:-3] + ("AAA" if not url.endswith("AAA") else "BBB")
        refusals = [await client.get(each) for each in (unknown, url + "/256", url + "/stop", f"{server.url}/ping/x")]
        assert {each.status_code for each in refusals} == {404}
        assert (await client.get(url)).status_code == 200
        bodies = [each.json() for each in refusals]
        assert {(body["error"], body["message"], body["instance"]) for body in bodies} == {
            ("MONITOR_NOT_FOUND", "no such monitor", "/ping/")
        }
        # Each few seconds, one more is let through.
        assert 429 in [(await client.get(unknown)).status_code for _ in range(20)]
        # One that was good before is never refused because of others from its address.
        assert (await client.get(url)).status_code == 200
        assert (await api("monitors/rotate", **_NAME))[0] == 200
        assert 429 in [(await client.get(url)).status_code for _ in range(20)]


async def test_what_is_no_ping_is_refused_before_its_body_is_read(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server:
        for path in ("/ping/x", f"/ping/{'A' * 22}/stop"):
            reader, writer = await asyncio.open_connection(*server.address())
            writer.write(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n".encode())
            async with asyncio.timeout(PATIENCE_S):
                status = await reader.readline()
            writer.close()
            assert status.split()[1] == b"404"


async def test_late_job_is_notified_by_the_namespaces_hook_and_recovers(tmp_path: Path) -> None:
    inbox = Inbox()
    async with serving(tmp_path, "--no-agent") as server, Receiver(inbox) as hook, httpx.AsyncClient() as client:
        api = Api(server)
        _, namespace = await api(
            "namespaces/update", name="default", onLate={"url": hook.url}, onRecovery={"url": hook.url}
        )
        assert namespace["onLate"] == {"url": hook.url}
        url = _at(server, (await _put(api, every="1s", grace="1s", tags=["eu"]))["pingUrl"])
        await client.get(url)
        (call,) = await inbox.count(1)
        assert call.body["type"] == "monitor.late"
        assert (call.body["monitor"]["id"], call.body["monitor"]["state"]) == ("backup", "late")
        _, page = await api("monitors/list", namespace="default", state="late", tag="eu", idPrefix="ba")
        assert [each["id"] for each in page["monitors"]] == ["backup"]
        _, page = await api("monitors/history", **_NAME)
        assert page["periods"][0]["state"] in ("late", "missed")
        _, answer = await api("monitors/ping", **_NAME, event="fail", exitCode=1)
        assert answer["monitor"]["state"] == "failed"
        await api("monitors/ping", **_NAME)
        # Between the two pings, a busy machine may make the job late again.
        calls = await inbox.wait(lambda calls: any(each.body["type"] == "monitor.recovered" for each in calls))
        assert {each.body["type"] for each in calls} == {"monitor.late", "monitor.failed", "monitor.recovered"}
        _, answer = await api("monitors/pause", **_NAME)
        assert answer["monitor"]["state"] == "paused"
        _, answer = await api("monitors/resume", **_NAME)
        assert answer["monitor"]["state"] == "up"


async def test_restart_excuses_what_may_have_been_lost_meanwhile(tmp_path: Path) -> None:
    inbox = Inbox()
    async with Receiver(inbox) as hook:
        async with serving(tmp_path, "--no-agent") as server, httpx.AsyncClient() as client:
            # Longer than this server takes to stop.
            made = await _put(Api(server), every="5s", grace="1s", onLate={"url": hook.url})
            await client.get(_at(server, made["pingUrl"]))
            before = (await Api(server)("monitors/get", **_NAME))[1]["monitor"]
        async with serving(tmp_path, "--no-agent") as server:
            (call,) = await inbox.count(1)
            # Not at its deadline, but an interval and the grace after the server was there again, at the earliest.
            assert call.body["monitor"]["deadline"] > before["deadline"]


async def test_deleted_monitor_leaves_nothing_and_versions_are_checked(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server, httpx.AsyncClient() as client:
        api = Api(server)
        url = _at(server, (await _put(api, every="1h"))["pingUrl"])
        await client.get(url)
        status, problem = await api("monitors/put", **_NAME, every="2h", expectedVersion=7)
        assert (status, problem["error"]) == (409, "VERSION_CONFLICT")
        status, problem = await api("monitors/delete", **_NAME, expectedVersion=7)
        assert (status, problem["error"]) == (409, "VERSION_CONFLICT")
        status, problem = await api(
            "monitors/put", namespace="default", id="a/b", every="1h", cron="* * * * *", grace="0s"
        )
        assert status == 400
        assert {each["path"] for each in problem["errors"]} == {"id", "every", "grace"} or problem["errors"]
        assert (await api("monitors/delete", **_NAME, expectedVersion=1))[0] == 204
        assert (await api("monitors/get", **_NAME))[0] == 404
        assert (await client.get(url)).status_code == 404
        made = await _put(api, every="1h")
        assert made["created"]
        _, page = await api("monitors/history", **_NAME)
        assert page["periods"] == []


async def test_monitor_of_a_schedule_needs_no_ping(tmp_path: Path) -> None:
    inbox, job = Inbox(), Inbox(default=(500, b""))
    async with serving(tmp_path, "--no-agent") as server, Receiver(inbox) as hook, Receiver(job) as called:
        api = Api(server)
        status, refused = await api("monitors/put", **_NAME, schedule="report")
        assert (status, refused["errors"][0]["path"]) == (400, "schedule")
        schedule = {"namespace": "default", "id": "report", "every": "1s", "callbackUrl": called.url}
        status, answer = await api("schedules/create", **schedule, retryPolicy={"maxAttempts": 1})
        assert status == 200, answer
        made = await _put(api, schedule="report", grace="10s", onLate={"url": hook.url}, onRecovery={"url": hook.url})
        assert made["created"]
        assert "pingUrl" not in made
        assert made["monitor"]["schedule"] == "report"
        (call,) = await inbox.count(1)
        assert (call.body["type"], call.body["period"]["state"]) == ("monitor.failed", "failed")
        assert call.body["monitor"]["schedule"] == "report"
        job.default = (200, b"")
        assert (await inbox.count(2))[1].body["type"] == "monitor.recovered"
        _, page = await api("monitors/history", **_NAME)
        assert {"onTime", "failed"} <= {each["state"] for each in page["periods"]}
        await api("schedules/delete", namespace="default", scheduleId="report")
        status, _ = await api("monitors/ping", **_NAME, event="fail")
        assert status == 200
        _, answer = await api("monitors/get", **_NAME)
        assert answer["monitor"]["state"] == "up"


async def test_pings_are_answered_alike_whether_they_are_written_or_not(tmp_path: Path) -> None:
    """The first one is written, those that follow are taken in memory, whatever else its connection sends."""
    async with serving(tmp_path, "--no-agent") as server:
        api = Api(server)
        url = _at(server, (await _put(api, every="1h"))["pingUrl"])
        path = url[url.index("/ping/") :].encode()
        reader, writer = await asyncio.open_connection(*server.address())

        async def sent(request: bytes) -> tuple[bytes, set[bytes], bytes]:
            writer.write(request)
            async with asyncio.timeout(PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                body = b"" if request.startswith(b"HEAD") else await reader.readexactly(length)
            status, *headers = head.split(b"\r\n")
            return status, {each.split(b":")[0].lower() for each in headers if each}, body

        host = b" HTTP/1.1\r\nhost: localhost\r\n"
        ping = b"GET " + path + host + b"\r\n"
        first = await sent(ping)
        assert first[0] == b"HTTP/1.1 200 OK"
        assert first[2] == b"OK\n"
        for _ in range(3):
            status, names, body = await sent(ping)
            assert (status, body) == (first[0], first[2])
            assert {b"content-type", b"cache-control", b"x-correlation-id"} <= names
        for other in (
            b"HEAD " + path + host + b"\r\n",
            b"GET " + path + b"/start" + host + b"\r\n",
            b"GET " + path + host + b"transfer-encoding: chunked\r\n\r\n3\r\nbad\r\n0\r\n\r\n",
            b"POST " + path + host + b"content-length: 3\r\n\r\nbad",
            ping,
        ):
            assert (await sent(other))[0] == b"HTTP/1.1 200 OK", other
        writer.write(ping * 3)
        for _ in range(3):
            assert (await sent(b""))[2] == b"OK\n"
        unknown = (b"B" if path.endswith(b"A") else b"A").join((path[:-1], b""))
        assert (await sent(b"GET " + unknown + host + b"\r\n"))[0].startswith(b"HTTP/1.1 404")
        await api("monitors/rotate", **_NAME)
        assert (await sent(ping))[0].startswith(b"HTTP/1.1 404")
        writer.close()
        _, answer = await api("monitors/get", **_NAME)
        assert answer["monitor"]["state"] == "up"


async def test_dry_run_shows_what_a_put_would_do_and_whether_a_secret_differs(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server:
        api = Api(server)
        hook = {"url": "http://127.0.0.1:1/", "headers": {"authorization": "Bearer one"}}
        tried = await _put(api, every="1h", onLate=hook, dryRun=True)
        assert (tried["created"], tried["monitor"]["version"], "pingUrl" in tried) == (True, 1, False)
        assert (await api("monitors/get", **_NAME))[0] == 404
        await _put(api, every="1h", onLate=hook)
        versions = []
        for secret in ("Bearer one", "[redacted]", "Bearer two"):
            sent = hook | {"headers": {"authorization": secret}}
            versions.append((await _put(api, every="1h", onLate=sent, dryRun=True))["monitor"]["version"])
        assert versions == [1, 1, 2]
        status, refused = await api("monitors/put", **_NAME, every="1h", expectedVersion=0, dryRun=True)
        assert (status, refused["error"]) == (409, "VERSION_CONFLICT")
        _, answer = await api("monitors/get", **_NAME)
        assert answer["monitor"]["version"] == 1
        _, trail = await api("audit/list")
        assert repr(trail).count("monitor_changed") == 1
