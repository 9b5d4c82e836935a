"""Quotas of a namespace on a real server: what exceeds one is refused with 429, and pending timers are counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.server.test_jobs import NOWHERE
from tests.support.calls import Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tocsin.server.node import Server
from tocsin.settings import load_settings
from tocsin.timers.engine.quotas import PendingCounting

NEVER_US = 3_600_000_000


@dataclass
class Node:
    """A server that counts only at `count`."""

    server: Server
    client: httpx.AsyncClient

    async def __call__(self, path: str, **body: Any) -> httpx.Response:
        return await self.client.post(f"/api/v1/{path}", json=body)

    async def create(self, identifier: str, **body: Any) -> httpx.Response:
        return await self("timers/create", **timer(identifier, **body))

    async def created(self, *identifiers: str) -> list[bool]:
        """Which of the timers one batch has created; the others are refused by a quota."""
        answer = await self("timers/batch/create", timers=[timer(each) for each in identifiers])
        errors = [result["error"] for result in answer.json()["results"] if "error" in result]
        assert all((each["error"], each["status"]) == ("QUOTA_EXCEEDED", 429) for each in errors)
        return ["timer" in result for result in answer.json()["results"]]

    async def count(self) -> None:
        engine = self.server.engine
        assert engine is not None
        await PendingCounting(engine.context, engine.supervisor.shards, engine.total_shards).check()

    async def pending(self) -> int | None:
        engine = self.server.engine
        assert engine is not None
        use = await engine.service.quota_use("shop")
        return None if use is None else use.pending


def timer(identifier: str, **body: Any) -> dict[str, Any]:
    return {"namespace": "shop", "id": identifier, "callbackUrl": NOWHERE, "delay": "1h", **body}


def refused(answer: httpx.Response, retry_after: str | None = None) -> str:
    """The message of a refusal by a quota."""
    problem = answer.json()
    assert (answer.status_code, problem["error"]) == (429, "QUOTA_EXCEEDED"), problem
    assert retry_after is None or answer.headers["retry-after"] == retry_after
    return str(problem["message"])


async def until_refused(create: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    """The first refusal: a slow machine may admit each create."""
    async with asyncio.timeout(PATIENCE_S):
        while (answer := await create()).status_code == 200:
            pass
    return answer


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    settings = load_settings({"store": "memory://", "port": 0, "data_dir": tmp_path, "shards": 4, "agent": False})
    engine = replace(settings.engine, quota_check_interval_us=NEVER_US, quota_count_interval_us=0, quota_page_rows=2)
    server = Server(replace(settings, engine=engine))
    await server.start()
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
        yield Node(server, client)
    await server.stop()


async def test_quotas_are_shown_changed_one_by_one_and_removed(node: Node) -> None:
    made = await node("namespaces/create", name="shop", quotas={"pending": 100, "payloadBytes": 10})
    assert (made.status_code, made.json()["quotas"]) == (200, {"pending": 100, "payloadBytes": 10})
    changed = await node("namespaces/update", name="shop", quotas={"createsPerSecond": 5, "payloadBytes": None})
    assert changed.json()["quotas"] == {"pending": 100, "createsPerSecond": 5}
    assert (await node("namespaces/get", name="shop")).json() == changed.json()
    assert changed.json() in (await node("namespaces/list")).json()["namespaces"]
    wrong = await node("namespaces/update", name="shop", quotas={"pending": 0})
    assert (wrong.status_code, wrong.json()["errors"][0]["path"]) == (400, "quotas.pending")
    gone = await node("namespaces/update", name="shop", quotas=None)
    assert "quotas" not in gone.json()
    entries = (await node("audit/list", subject="shop")).json()["entries"]
    assert [entry["details"]["quotas"] for entry in entries] == [
        "removed",
        "createsPerSecond: 5, payloadBytes: removed",
        "pending: 100, payloadBytes: 10",
    ]


async def test_payloads_above_the_quota_are_refused_wherever_they_are_sent(node: Node) -> None:
    await node("namespaces/create", name="shop", quotas={"payloadBytes": 20})
    large, named = "x" * 20, {"namespace": "shop", "scheduleId": "s"}
    schedule = {"namespace": "shop", "id": "s", "callbackUrl": NOWHERE, "every": "24h"}
    assert (await node.create("small", payload="x" * 18)).status_code == 200
    assert (await node("schedules/create", **schedule)).status_code == 200
    message = refused(await node.create("t", payload=large), "3600")
    assert "22 bytes" in message and "payloadBytes" in message and "allows 20" in message
    refused(await node.create("t", body={"text": large + "x"}))
    refused(await node("timers/update", namespace="shop", timerId="small", payload=large))
    refused(await node("schedules/create", **schedule, payload=large))
    refused(await node("schedules/update", **named, payload=large))
    answer = await node("timers/batch/create", timers=[timer("a", payload=large), timer("b")])
    assert [result.get("error", {}).get("error") for result in answer.json()["results"]] == ["QUOTA_EXCEEDED", None]
    assert (await node("timers/update", namespace="shop", timerId="small", delay="2h")).status_code == 200
    assert (await node("timers/get", namespace="shop", timerId="t")).status_code == 404
    assert (await node.create("t", namespace="default", payload=large)).status_code == 200


async def test_creates_beyond_the_quota_of_a_second_are_refused_one_by_one(node: Node) -> None:
    await node("namespaces/create", name="shop", quotas={"createsPerSecond": 2})
    created = await node.created(*(f"t{number}" for number in range(200)))
    assert created[:2] == [True, True] and sum(created) < 200
    schedule = {"namespace": "shop", "id": "s", "callbackUrl": NOWHERE, "every": "24h"}
    message = refused(await until_refused(lambda: node.create("again")), "1")
    assert "quota createsPerSecond of 2" in message
    refused(await until_refused(lambda: node("schedules/create", **schedule)), "1")
    assert (await node.create("elsewhere", namespace="default")).status_code == 200
    metrics = (await node.client.get("/metrics")).text
    assert 'tocsin_quota_refusals_total{namespace="shop",quota="createsPerSecond"}' in metrics


async def test_pending_timers_are_counted_and_limited_once_the_first_count_is_complete(node: Node) -> None:
    await node("namespaces/create", name="shop", numShards=2, quotas={"pending": 6})
    # Before the first count nothing is refused.
    assert all(await node.created(*(f"t{number}" for number in range(7))))
    assert await node.pending() is None
    await node.count()
    assert await node.pending() == 7
    assert "quota pending allows: 6" in refused(await node.create("more"), "10")
    # What has ended makes room, and a batch gets as much as there is.
    for number in (0, 1, 2):
        assert (await node("timers/delete", namespace="shop", timerId=f"t{number}")).status_code == 204
    assert sum(await node.created("a", "b", "c", "d", "e")) == 2
    assert await node.pending() == 6
    # A create that would write nothing is answered, and what is not created is free.
    kept = await node.create("t3", onConflict="keep")
    assert (kept.status_code, kept.headers["tocsin-existing"]) == (200, "true")
    assert (await node("timers/update", namespace="shop", timerId="t3", delay="2h")).status_code == 200
    # One that fires has ended, too.
    async with Receiver(inbox := Inbox()) as receiver:
        update = {"namespace": "shop", "timerId": "t3", "delay": "0s", "callbackUrl": receiver.url}
        assert (await node("timers/update", **update)).status_code == 200
        await inbox.count(1)
        async with asyncio.timeout(PATIENCE_S):
            while await node.pending() != 5:  # noqa: ASYNC110 -- no signal for it
                await asyncio.sleep(0.01)
    # A create that replaces a timer counts until the next count.
    assert (await node.create("t4")).status_code == 200
    refused(await node.create("more"))
    await node.count()
    assert await node.pending() == 5
    assert (await node.create("more")).status_code == 200
    refused(await node.create("most"))
    # Schedules are not counted, and without the quota nothing is.
    assert (
        await node("schedules/create", namespace="shop", id="s", callbackUrl=NOWHERE, every="24h")
    ).status_code == 200
    await node("namespaces/update", name="shop", quotas={"pending": None})
    assert (await node.create("most")).status_code == 200


async def test_debounced_creates_that_join_one_another_count_as_one_timer(node: Node) -> None:
    await node("namespaces/create", name="shop", numShards=2, quotas={"pending": 10})
    await node.count()
    for _ in range(50):
        joined = await node.create("often", onConflict="debounce", delay="1h", maxDelay="2h")
        assert joined.status_code == 200
    assert await node.pending() == 1
    assert all(await node.created(*(f"t{number}" for number in range(9))))
    refused(await node.create("more"))
