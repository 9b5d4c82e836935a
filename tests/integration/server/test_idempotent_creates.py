"""Repeated creates on a real server: immediately, after the timer fired, after a crash, with redacted secrets."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.redaction import REDACTED

SECRET = {"authorization": "Bearer sk-live-1"}


class Sender:
    """Creates timers in one namespace without history."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server

    async def post(self, path: str, body: object, key: str | None = None) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self._server.url, timeout=PATIENCE_S) as client:
            return await client.post(
                f"/api/v1/{path}", json=body, headers={} if key is None else {"idempotency-key": key}
            )

    async def create(self, key: str | None, timer_id: str, url: str, **fields: Any) -> httpx.Response:
        timer = {"namespace": "forgetful", "id": timer_id, "delay": "0s", "callbackUrl": url, **fields}
        return await self.post("timers/create", timer, key)

    async def ended(self, timer_id: str) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                answer = await self.post("timers/get", {"namespace": "forgetful", "timerId": timer_id})
                if answer.status_code == 200 and answer.json()["status"] != "pending":
                    return dict(answer.json())
                await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_creates_with_one_idempotency_key_fire_once(server: ServerProcess) -> None:
    calls: Counter[str] = Counter()
    seen: list[dict[str, str]] = []

    def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        calls[str(body["timerId"])] += 1
        seen.append(headers)
        return 200, b""

    sender = Sender(server)
    assert (await sender.post("namespaces/create", {"name": "forgetful", "history": "none"})).status_code == 200
    async with Receiver(answer) as receiver:
        url = f"{receiver.url}?token=sk-live-2&x=1"
        at_once = await asyncio.gather(*(sender.create("k", "a", url, headers=SECRET, payload=[0]) for _ in range(40)))
        assert {each.status_code for each in at_once} == {200}
        assert Counter(each.headers.get("idempotency-replayed") for each in at_once) == {None: 1, "true": 39}
        # What is kept for the key shows how it ended, and nothing that the namespace would not keep.
        ended = await sender.ended("a")
        assert (ended["status"], ended["payload"], ended["headers"]) == ("completed", None, {})
        assert ended["callbackUrl"] == f"{receiver.url}?token={REDACTED}&x=1"
        await server.kill()
        await server.start()
        again = await sender.create("k", "a", url, headers=SECRET, payload=[0], delay="1h")
        assert (again.json(), again.headers["idempotency-replayed"]) == (ended, "true")
        other = await sender.create("k", "a", url, headers=SECRET, payload=[1])
        assert (other.status_code, other.json()["error"]) == (409, "IDEMPOTENCY_CONFLICT")

        # Secrets that a create names as redacted are those of the timer before it, once.
        assert (await sender.create(None, "b", url, headers=SECRET, delay="1h")).status_code == 200
        shown = {"headers": {"authorization": REDACTED}, "url": f"{receiver.url}?token={REDACTED}&x=1"}
        for replayed in (None, "true"):
            made = await sender.create("k", "b", **shown)
            assert (made.status_code, made.headers.get("idempotency-replayed")) == (200, replayed), made.text
        await sender.ended("b")
        assert seen[-1]["authorization"] == SECRET["authorization"]
        made = await sender.create("k", "b", **shown)
        assert (made.headers.get("idempotency-replayed"), made.json()["status"]) == ("true", "completed")
        # They aren't stored any more.
        assert (await sender.create("l", "b", **shown)).json()["errors"][0]["path"] == "callbackUrl"
        # A create without a key makes a new timer; one that finished without history does not conflict.
        assert (await sender.create(None, "c", url)).status_code == 200
        async with asyncio.timeout(PATIENCE_S):
            while (await sender.create(None, "c", url, onConflict="reject")).status_code == 409:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    assert (calls["a"], calls["b"]) == (1, 1)
