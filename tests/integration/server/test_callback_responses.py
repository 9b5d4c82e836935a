"""The documented effect of each response to a callback, on a real server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate
from typing import Any

import pytest
import pytest_asyncio

from tests.support.calls import Api
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant, parse_instant

POLICY = {"maxAttempts": 3, "initialInterval": "20ms", "backoffMultiplier": 1}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OK = Reply(200)


def reply(value: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode())


def later(seconds: float, **members: Any) -> Callable[[], Reply]:
    """A response that reschedules by this much after the request."""
    return lambda: reply({"nextExecuteAt": format_instant(time.time_ns() // 1_000 + int(seconds * 1e6)), **members})


#: What receivers answer who know nothing of this protocol, or hardly.
UNLIKE_OURS = {
    "html": b"<!doctype html><html><body>OK</body></html>", "text": b"hello", "object": b"{}", "array": b"[]",
    "status": b'{"status":"success"}', "ok-as-text": b'{"ok":"false"}', "cut": b'{"ok": false',
    "too-long": b'{"ok": false, "log": "' + b"x" * 200_000 + b'"}', "latin-1": b'{"ok": false, "why": "\xe9"}',
}  # fmt: skip

#: Name, answers (the last one without end), and what becomes of it: status, attempts, how lastError begins.
ROWS: list[tuple[str, list[Reply], str, int, str | None]] = [
    ("empty", [OK], "completed", 1, None),
    ("blank", [Reply(200, b" \n")], "completed", 1, None),
    ("ok", [reply({"ok": True})], "completed", 1, None),
    ("ok-and-more", [reply({"ok": True, "extra": [1]})], "completed", 1, None),
    ("created", [Reply(201)], "completed", 1, None),
    ("no-content", [Reply(204)], "completed", 1, None),
    ("not-ok", [reply({"ok": False})], "failed", 3, "CALLBACK_NOT_OK"),
    ("not-ok-then-ok", [reply({"ok": False}), OK], "completed", 2, None),
    *((name, [Reply(200, body)], "completed", 1, None) for name, body in UNLIKE_OURS.items()),
    ("naive", [reply({"nextExecuteAt": "2099-01-01T00:00:00"})], "failed", 3, "INVALID_CALLBACK_RESPONSE"),
    ("too-far", [reply({"nextExecuteAt": "9999-01-01T00:00:00Z"})], "failed", 3, "INVALID_CALLBACK_RESPONSE"),
    ("not-an-instant", [reply({"ok": True, "nextExecuteAt": "soon"}), OK], "completed", 2, None),
    *((f"retried-{status}", [Reply(status), OK], "completed", 2, None) for status in (301, 307, 408, 425, 429, 500, 503)),
    ("redirect", [Reply(302, headers=("location: /elsewhere",))], "failed", 3, "HTTP_302"),
    *((f"final-{status}", [Reply(status), OK], "failed", 1, f"HTTP_{status}") for status in (400, 401, 404, 410, 422)),
    ("final-whatever-the-body", [reply({"ok": True, "nextExecuteAt": "2099-01-01T00:00:00Z"}, 400)], "failed", 1, "HTTP_4"),
    ("closed", [Reply(0), Reply(0), OK], "completed", 2, None),
]  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    """One for all tests here: none looks at timers but its own."""
    running = ServerProcess(tmp_path_factory.mktemp("responses") / "data")
    await running.start()
    yield running
    await running.stop()


async def test_every_response_has_its_documented_effect(server: ServerProcess) -> None:
    api = Api(server)
    async with ScriptedReceiver({name: answers for name, answers, *_ in ROWS}) as receiver:
        for name, *_ in ROWS:
            await api.create(name, receiver.url(name), retryPolicy=POLICY)
        for name, _, status, attempts, error in ROWS:
            timer = await api.settled(name, status)
            assert timer["attempts"] == attempts, name
            if error is not None:
                assert timer["lastError"].startswith(error), name
            assert len({call.headers["webhook-id"] for call in receiver.calls[name]}) == 1, name
        assert receiver.calls.keys() == {name for name, *_ in ROWS}, "a redirect was followed"
        # One connection serves many calls.
        assert receiver.connections < sum(len(calls) for calls in receiver.calls.values())


async def test_strict_answers_accept_only_an_empty_body_or_ok(server: ServerProcess) -> None:
    api = Api(server)
    status, namespace = await api("namespaces/create", name="strict", answers="strict")
    assert (status, namespace["answers"]) == (200, "strict")
    scripts = {name: [Reply(200, body)] for name, body in UNLIKE_OURS.items()} | {
        "empty": [OK],
        "ok": [reply({"ok": True})],
    }
    async with ScriptedReceiver(scripts) as receiver:
        for name in scripts:
            await api.create(name, receiver.url(name), namespace="strict", retryPolicy={**POLICY, "maxAttempts": 2})
        for name in ("empty", "ok"):
            assert (await api.settled(name, "completed", namespace="strict"))["attempts"] == 1
        for name in UNLIKE_OURS:
            timer = await api.settled(name, "failed", namespace="strict")
            assert timer["attempts"] == 2, name
            assert timer["lastError"].startswith("CALLBACK_NOT_OK" if name == "latin-1" else "INVALID_CALLBACK"), name
        status, namespace = await api("namespaces/update", name="strict", answers="standard")
        assert (status, namespace["answers"]) == (200, "standard")
        await api.create("html", receiver.url("html"), namespace="strict")
        assert (await api.settled("html", "completed", namespace="strict"))["attempts"] == 1


async def test_history_has_every_run_with_what_the_receiver_answered(server: ServerProcess) -> None:
    api = Api(server)
    name = {"namespace": "default", "timerId": "story"}
    busy = Reply(503, b'{"why": "full\x07", "token": "s3cr3t-value"}')
    script = [busy, later(0.01), busy, Reply(404, b"\x00\x01"), OK]
    async with ScriptedReceiver({"story": script}) as receiver:
        await api.create("story", receiver.url("story"), retryPolicy=POLICY)
        await api.settled("story", "failed")
        await api.create("story", receiver.url("story"))
        await api.settled("story", "completed")
    status, first = await api("timers/history", **name, limit=2)
    assert status == 200
    status, second = await api("timers/history", **name, limit=2, cursor=first["nextCursor"])
    assert (status, "nextCursor" in second) == (200, False)
    runs = [*first["runs"], *second["runs"]]
    assert [(run["status"], run["attempts"]) for run in runs] == [
        ("completed", 1),
        ("failed", 2),
        ("rescheduled", 2),
    ]
    assert len({run["run"] for run in runs}) == 3
    kept = '{"why": "full\\u0007", "token": "[redacted]"}'
    attempts = [[(each["status"], each.get("error"), each.get("answer")) for each in run["attemptLog"]] for run in runs]
    assert attempts[:2] == [[(200, None, None)], [(503, "HTTP_503", kept), (404, "HTTP_404", "[2 bytes]")]]
    assert attempts[2][0] == (503, "HTTP_503", kept)
    assert attempts[2][1][2].startswith('{"nextExecuteAt":')
    webhook_ids = [call.headers["webhook-id"].rpartition("_")[2] for call in receiver.calls["story"]]
    assert webhook_ids == [runs[place]["run"] for place in (2, 2, 1, 1, 0)]
    assert (await api("timers/history", **name, cursor="x"))[0] == 400
    status, problem = await api("timers/history", namespace="default", timerId="nobody")
    assert (status, problem["error"]) == (404, "TIMER_NOT_FOUND")


async def test_a_timer_without_a_policy_uses_its_namespaces_current_policy_then_the_default(
    server: ServerProcess,
) -> None:
    api = Api(server)
    default = {"maxAttempts": 10, "initialInterval": "5s", "backoffMultiplier": 3.0, "maxInterval": "4h"}
    status, namespace = await api("namespaces/create", name="own")
    assert (status, namespace["retryPolicy"]) == (200, default)
    async with ScriptedReceiver({"t": [Reply(500), Reply(500), OK], "default": [Reply(500)]}) as receiver:
        await api.create("default", receiver.url("default"), namespace="own")
        await receiver.count("default", 1)
        # It waits for its second attempt, which the default policy puts five seconds after the first, less a tenth at most.
        timer = await api.attempted("default", 1, namespace="own")
        waits_us = parse_instant(timer["nextAttemptAt"]) - parse_instant(timer["updatedAt"])
        assert (timer["status"], "retryPolicy" in timer) == ("pending", False)
        assert 4_500_000 <= waits_us <= 5_000_000
        policy = {"initialInterval": "20ms", "maxAttempts": 3}
        status, namespace = await api("namespaces/update", name="own", retryPolicy=policy)
        assert (status, namespace["retryPolicy"]) == (200, {**default, **policy})
        await api.create("t", receiver.url("t"), namespace="own")
        assert (await api.settled("t", "completed", namespace="own"))["attempts"] == 3
        status, namespace = await api("namespaces/update", name="own", retryPolicy=None)
        assert (status, namespace["retryPolicy"]) == (200, default)


@pytest.mark.slow
async def test_a_500_followed_by_200_completes_without_a_policy(server: ServerProcess) -> None:
    api = Api(server)
    async with ScriptedReceiver({"t": [Reply(500), OK]}) as receiver:
        await api.create("t", receiver.url("t"))
        assert (await api.settled("t", "completed"))["attempts"] == 2


async def test_retry_after_delays_and_is_given_in_seconds_or_as_a_date(server: ServerProcess) -> None:
    api = Api(server)

    def date() -> Reply:
        return Reply(429, headers=(f"retry-after: {formatdate(time.time() + 2, usegmt=True)}",))

    scripts = {
        "seconds": [Reply(503, headers=("retry-after: 1",)), OK],
        "date": [date, OK],
        "past": [Reply(503, headers=("retry-after: Wed, 21 Oct 2015 07:28:00 GMT",)), OK],
        "nonsense": [Reply(503, headers=("retry-after: soon",)), OK],
    }
    async with ScriptedReceiver(scripts) as receiver:
        for name in scripts:
            await api.create(name, receiver.url(name), retryPolicy=POLICY)
        for name in scripts:
            assert (await api.settled(name, "completed"))["attempts"] == 2
        # Never before the second that was named; when after it is a matter of load.
        first, second = receiver.calls["seconds"]
        assert second.arrived_at - first.arrived_at >= 1_000_000
        first, second = receiver.calls["date"]
        assert second.arrived_at >= (first.arrived_at // 1_000_000 + 1) * 1_000_000


async def test_a_receiver_reschedules_whether_it_is_ok_or_not(server: ServerProcess) -> None:
    api = Api(server)
    large = "x" * 90_000
    scripts: dict[str, list[Any]] = {
        "ok": [later(0.5, ok=True), OK],
        "not-ok": [later(0.5, ok=False), OK],
        "payload": [later(0.5, payload={"round": 2}), OK],
        "null": [later(0.5, payload=None), OK],
        "large": [later(0.5, payload=large), OK],
        "past": [reply({"nextExecuteAt": "2020-01-01T00:00:00Z"}), OK],
        "after-a-failure": [Reply(500), later(0.5), Reply(500), OK],
    }
    async with ScriptedReceiver(scripts) as receiver:
        for name in scripts:
            await api.create(name, receiver.url(name), payload={"round": 1}, retryPolicy=POLICY)
        for name in scripts:
            await api.settled(name, "completed")
        for name, calls in receiver.calls.items():
            first, last = calls[0], calls[-1]
            assert first.headers["webhook-id"] != last.headers["webhook-id"], name
            assert last.arrived_at >= parse_instant(last.body["executeAt"]), name
        payloads = {name: calls[-1].body["payload"] for name, calls in receiver.calls.items()}
        assert payloads == {name: {"round": 1} for name in scripts} | {
            "payload": {"round": 2}, "null": None, "large": large
        }  # fmt: skip
        # The count of attempts starts over after a reschedule.
        assert [call.body["attempt"] for call in receiver.calls["after-a-failure"]] == [1, 2, 1, 2]


async def test_callbacks_use_the_timers_method_headers_and_traceparent(server: ServerProcess) -> None:
    methods = ("POST", "PUT", "PATCH", "DELETE", "GET", "HEAD")
    api = Api(server, headers={"traceparent": TRACE})
    async with ScriptedReceiver({}) as receiver:
        for method in methods:
            headers = {"Authorization": "Bearer own", "content-type": "application/vnd.own+json"}
            content = {} if method in ("GET", "HEAD") else {"payload": [1]}
            await api.create(method, receiver.url(method), method=method, headers=headers, **content)
            await api.settled(method, "completed")
        for method in methods:
            (call,) = receiver.calls[method]
            assert call.method == method
            assert call.headers["authorization"] == "Bearer own"
            assert call.headers["traceparent"] == TRACE
            if method in ("GET", "HEAD"):
                assert call.body == {}
            else:
                assert call.headers["content-type"] == "application/vnd.own+json"
                assert call.body["payload"] == [1]


async def test_a_slow_receiver_fails_after_the_timers_timeout(server: ServerProcess) -> None:
    api = Api(server)
    async with ScriptedReceiver({"slow": [Reply(-1)]}) as receiver:
        policy = {**POLICY, "maxAttempts": 2}
        await api.create("slow", receiver.url("slow"), callbackTimeoutSeconds=1, retryPolicy=policy)
        timer = await api.settled("slow", "failed")
        assert timer["attempts"] == 2
        assert timer["lastError"].startswith("TIMEOUT")
        assert all(attempt["durationMs"] >= 1_000 and "status" not in attempt for attempt in timer["attemptLog"])


async def test_a_change_supersedes_the_result_of_the_attempt_in_flight(server: ServerProcess) -> None:
    api, answer = Api(server), asyncio.Event()
    held = [Reply(500, until=answer), OK]
    scripts = dict.fromkeys(("deleted", "moved", "replaced"), held)
    scripts["rescheduling"] = [Reply(200, b'{"nextExecuteAt": "2020-01-01T00:00:00Z"}', until=answer), OK]
    async with ScriptedReceiver(scripts) as receiver:
        for name in scripts:
            await api.create(name, receiver.url(name), retryPolicy=POLICY, payload="old")
        for name in scripts:
            await receiver.count(name, 1)
        for name in ("deleted", "rescheduling"):
            assert (await api("timers/delete", namespace="default", timerId=name))[0] == 204
            assert (await api.get(name))["status"] == "canceled"
        status, moved = await api(
            "timers/update", namespace="default", timerId="moved", executeAt="2099-01-01T00:00:00Z", payload="new"
        )
        assert (status, moved["payload"], moved["attempts"]) == (200, "new", 0)
        await api.create("replaced", receiver.url("replaced"), retryPolicy=POLICY, payload="new")
        answer.set()
        first, second = await receiver.count("replaced", 2)
        assert (first.body["payload"], second.body["payload"], second.body["attempt"]) == ("old", "new", 1)
        assert first.headers["webhook-id"] != second.headers["webhook-id"]
        assert (await api.settled("replaced", "completed"))["attempts"] == 1
        # A timer that begins after the answers were in, so that what they could have caused would have been seen.
        await api.create("after", receiver.url("after"), delay="300ms")
        await receiver.count("after", 1)
        for name in ("deleted", "rescheduling"):
            assert (await api.get(name))["status"] == "canceled"
            assert len(receiver.calls[name]) == 1
        assert (await api.get("moved"))["executeAt"] == "2099-01-01T00:00:00Z"
        assert len(receiver.calls["moved"]) == 1
