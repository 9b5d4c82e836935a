"""Batches of callbacks on a real server: how they are chosen, what arrives, what becomes of each timer, and a kill."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
from standardwebhooks import Webhook

from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
TOGETHER = {"max": 50, "linger": "300ms"}


class Batches:
    """Answers each timer by what `results` has for its id, else with 200."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, Any], dict[str, str]]] = []
        self.results: dict[str, dict[str, Any]] = {}
        self._arrived = asyncio.Condition()

    def __call__(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        self.requests.append((body, headers))
        results = [
            {"webhookId": item["webhookId"], **self.results.get(item["timerId"], {"status": 200})}
            for item in body["items"]
        ]
        return 200, json.dumps({"items": results}).encode()

    @property
    def items(self) -> list[dict[str, Any]]:
        """All items that arrived."""
        return [item for body, _ in self.requests for item in body["items"]]


class KeepingReceiver(Receiver):
    """Keeps the bodies as they arrived."""

    def __init__(self, answers: Batches) -> None:
        super().__init__(answers)
        self.bodies: list[bytes] = []

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        self.bodies.append(raw)
        return await super()._respond(path, headers, raw)


async def finished(api: Api, namespace: str, *identifiers: str) -> list[dict[str, Any]]:
    """The timers, once all have ended."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_S):
        while not found or any(timer["status"] == "pending" for timer in found):
            await asyncio.sleep(0.05)
            found = [await api.get(each, namespace=namespace) for each in identifiers]
    return found


async def counted(server: ServerProcess, line: str) -> None:
    """Returns when the metrics have this line."""
    text = ""
    async with httpx.AsyncClient() as client, asyncio.timeout(PATIENCE_S):
        while line not in text:
            await asyncio.sleep(0.05)
            text = (await client.get(f"{server.url}/metrics")).text


async def create_together(api: Api, namespace: str, url: str, *identifiers: str, **fields: Any) -> None:
    """Creates timers that are due at once."""
    timers = [{"namespace": namespace, "id": each, "delay": "0s", "callbackUrl": url, **fields} for each in identifiers]
    status, made = await api("timers/batch/create", timers=timers)
    assert status == 200, made
    assert all("timer" in result for result in made["results"])


async def test_timers_arrive_together_signed_and_are_answered_one_by_one(server: ServerProcess) -> None:
    api, answers = Api(server), Batches()
    # It goes when it is full, however long its timers take to become durable.
    await api("namespaces/create", name="n", secret=SECRET, callbackBatch={"max": 3, "linger": "5s"})
    answers.results = {"later": {"status": 200, "nextExecuteAt": "2099-01-01T00:00:00Z", "payload": 2}}
    answers.results |= {"never": {"status": 422, "ok": False, "reason": "no such order"}}
    async with KeepingReceiver(answers) as receiver:
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
        traced = Api(server, {"traceparent": trace})
        await create_together(traced, "n", receiver.url, "größe/17", "later", "never", payload={"n": 1})
        done, never = await finished(api, "n", "größe/17", "never")
        later = await api.get("later", namespace="n")
    ((body, headers),) = answers.requests
    assert headers["webhook-id"].startswith("batch_")
    assert "traceparent" not in headers
    (raw,) = receiver.bodies
    Webhook(SECRET).verify(raw, headers)
    assert {item["timerId"] for item in body["items"]} == {"größe/17", "later", "never"}
    assert all(item["webhookId"].startswith("msg_") for item in body["items"])
    assert all(
        (item["attempt"], item["payload"], item["traceparent"]) == (1, {"n": 1}, trace) for item in body["items"]
    )
    assert done["status"] == "completed"
    assert done["attemptLog"][0]["batch"] == headers["webhook-id"]
    assert (never["status"], never["attempts"]) == ("failed", 1)
    assert "no such order" in never["attemptLog"][0]["answer"]
    assert (later["status"], later["executeAt"], later["payload"]) == ("pending", "2099-01-01T00:00:00Z", 2)
    _, groups = await api("failures/list", namespace="n")
    assert [group["count"] for group in groups["groups"]] == [1]
    await counted(server, "tocsin_batch_items_count 1")


async def test_a_namespace_and_a_flow_begin_and_end_to_send_together(server: ServerProcess) -> None:
    api = Api(server)
    assert (await api("namespaces/create", name="n", callbackBatch={"max": 100}))[1]["callbackBatch"] == {
        "max": 100,
        "linger": "100ms",
    }
    _, changed = await api("namespaces/update", name="n", callbackBatch={"max": 2, "linger": "0s"})
    assert changed["callbackBatch"] == {"max": 2, "linger": "0s"}
    assert (await api("namespaces/update", name="n", paused=True))[1]["callbackBatch"] == {"max": 2, "linger": "0s"}
    assert "callbackBatch" not in (await api("namespaces/update", name="n", callbackBatch=None))[1]
    _, rule = await api("flows/put", namespace="n", match="digest:", callbackBatch={"max": 500, "linger": "5s"})
    assert rule["callbackBatch"] == {"max": 500, "linger": "5s"}
    assert (await api("flows/pause", namespace="n", match="digest:"))[1]["paused"] is True
    wrong = [
        ({"max": 1}, "callbackBatch.max"),
        ({"max": 501}, "callbackBatch.max"),
        ({"max": 2, "linger": "6s"}, "callbackBatch.linger"),
        ({"max": 2, "linger": "soon"}, "callbackBatch.linger"),
    ]
    for batch, path in wrong:
        for operation, name in (("namespaces/update", {"name": "n"}), ("flows/put", {"namespace": "n", "match": "m"})):
            status, problem = await api(operation, **name, callbackBatch=batch)
            assert (status, [each["path"] for each in problem["errors"]]) == (400, [path]), (operation, batch)
    status, _ = await api("namespaces/update", name="n", callbackBatch={"linger": "1s"})
    assert status == 400
    _, trail = await api("audit/list", subject="n", action="namespace_changed")
    assert {"2 within 0s", "removed"} <= {entry["details"].get("callbackBatch") for entry in trail["entries"]}


async def test_what_has_no_envelope_and_what_notifies_is_sent_by_itself(server: ServerProcess) -> None:
    api, calls = Api(server), Inbox()
    async with Receiver(calls) as receiver:
        await api("namespaces/create", name="n", callbackBatch=TOGETHER, retryPolicy={"maxAttempts": 1})
        await create_together(api, "n", receiver.url, "raw", body={"json": {"text": "x"}})
        await create_together(api, "n", receiver.url, "silent", onFailure={"url": receiver.url})
        raw, silent = await finished(api, "n", "raw", "silent")
        await calls.count(3)
    assert raw["status"] == "completed"
    assert (silent["status"], silent["lastError"]) == (
        "failed",
        "NO_RESULT: the response to the batch has no result for this timer",
    )
    kinds = sorted(
        "batch" if "items" in call.body else "hook" if call.body.get("type") == "timer.failed" else "raw"
        for call in calls.calls
    )
    assert kinds == ["batch", "hook", "raw"]


async def test_a_kill_between_answer_and_commit_repeats_the_timers_and_nothing_else(tmp_path: Path) -> None:
    # Results wait for a minute, in which the server is killed.
    server = ServerProcess(tmp_path / "data", "--no-agent", env={"TOCSIN_COMMIT_INTERVAL": "60s"})
    answers, names = Batches(), [f"t{number}" for number in range(120)]
    await server.start()
    try:
        api = Api(server)
        await api("namespaces/create", name="n", callbackBatch=TOGETHER)
        async with Receiver(answers) as receiver:
            await create_together(api, "n", receiver.url, *names)
            await counted(server, 'tocsin_attempts_total{namespace="n",outcome="done"} 120.0')
            first = answers.items
            assert len(first) == 120
            await server.kill()
            server.env = {}
            await server.start()
            timers = await finished(Api(server), "n", *names)
    finally:
        await server.kill()
    assert {timer["status"] for timer in timers} == {"completed"}
    assert Counter(item["webhookId"] for item in answers.items) == Counter({each["webhookId"]: 2 for each in first})
    requests = [headers["webhook-id"] for _, headers in answers.requests]
    assert len(requests) == len(set(requests))
    # A busy machine may take longer than a batch waits for the next of them.
    assert 1 < max(len(body["items"]) for body, _ in answers.requests) <= 50
