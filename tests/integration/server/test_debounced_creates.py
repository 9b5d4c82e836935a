"""Debounced creates on a real server: one callback for many creates, single and in batches, also after a crash."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess


@pytest.mark.slow
async def test_debounced_creates_fire_once_with_the_latest_or_all_payloads(server: ServerProcess) -> None:
    calls: dict[str, list[Any]] = {}
    arrived = asyncio.Condition()

    def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        calls.setdefault(str(body["timerId"]), []).append(body["payload"])
        asyncio.get_running_loop().create_task(notify())
        return 200, b""

    async def notify() -> None:
        async with arrived:
            arrived.notify_all()

    async with Receiver(answer) as receiver:
        common = {"namespace": "default", "callbackUrl": receiver.url, "onConflict": "debounce", "maxDelay": "1h"}
        client = Client(server.address)

        async def create(timer_id: str, number: int, **fields: Any) -> dict[str, Any]:
            timer = common | {"id": timer_id, "delay": "10m", "payload": {"n": number}, "idempotencyKey": str(number)}
            status, made = await client.post("/api/v1/timers/create", timer | fields)
            assert status == 200, made
            return dict(made)

        first = await create("latest", 0)
        for number in range(1, 5):
            made = await create("latest", number)
        assert made["payload"] == {"n": 4}
        assert made["debounced"] == first["debounced"] | {"creates": 5}
        assert made["createdAt"] == first["createdAt"]
        assert made["executeAt"] > first["executeAt"]
        batch = [
            common | {"id": "all", "delay": "10m", "payload": number, "collect": 7, "idempotencyKey": f"k{number}"}
            for number in range(8)
        ]
        status, answered = await client.post("/api/v1/timers/batch/create", {"timers": batch})
        assert status == 200
        assert [each.get("timer", {}).get("debounced", {}).get("collected") for each in answered["results"]] == [
            1, 2, 3, 4, 5, 6, 7, None,
        ]  # fmt: skip
        assert answered["results"][7]["error"]["error"] == "COLLECTION_FULL"
        status, found = await client.post("/api/v1/timers/explain", {"namespace": "default", "timerId": "all"})
        assert "It is debounced: 7 creates since" in found["sentence"]
        client.close()
        await server.kill()
        await server.start()
        client = Client(server.address)
        # The window goes on: the last create makes it due.
        assert (await create("latest", 5, delay="0s"))["debounced"]["creates"] == 6
        repeated = await create("latest", 5, delay="0s")
        assert repeated["payload"] == {"n": 5}
        status, full = await client.post("/api/v1/timers/create", batch[7] | {"delay": "0s"})
        assert (status, full["error"]) == (409, "COLLECTION_FULL")
        status, _ = await client.post("/api/v1/timers/create", batch[7] | {"delay": "0s", "collect": 8})
        assert status == 200
        async with asyncio.timeout(PATIENCE_S), arrived:
            await arrived.wait_for(lambda: len(calls) == 2)
        client.close()
    assert calls == {"latest": [{"n": 5}], "all": [list(range(8))]}
