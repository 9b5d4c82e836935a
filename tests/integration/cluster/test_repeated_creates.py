"""Repeated creates at any node fire once, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import node, running, shared_by, until
from tests.support.http import Client, Receiver
from tests.support.server import ServerProcess

TIMERS = 12


@pytest.mark.slow
async def test_a_repeated_create_fires_once_despite_a_killed_node(tmp_path: Path, postgresql_url: str) -> None:
    ids: dict[str, set[str]] = defaultdict(set)

    def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        ids[str(body["timerId"])].add(headers["webhook-id"])
        return 200, b""

    one, two, three = servers = [node(tmp_path, name, postgresql_url) for name in ("one", "two", "three")]
    async with Receiver(answer) as receiver, running(*servers):
        await shared_by(servers, {"one", "two", "three"})
        namespace = {"name": "forgetful", "history": "none"}
        asking = Client(two.address)
        assert (await asking.post("/api/v1/namespaces/create", namespace))[0] == 200

        async def send(server: ServerProcess, number: int) -> dict[str, Any]:
            """Until it is answered, as a client does; with a delay that starts over each time."""
            timer = {
                "namespace": ("default", "forgetful")[number % 2], "id": f"t{number}", "delay": "1s",
                "callbackUrl": receiver.url, "idempotencyKey": f"key-{number}", "retryPolicy": {"maxAttempts": 5},
            }  # fmt: skip
            while True:
                client = Client(server.address)
                try:
                    status, sent = await client.post("/api/v1/timers/create", timer)
                finally:
                    client.close()
                if status == 200:
                    return dict(sent)
                assert status == 503, sent

        async def send_all(server: ServerProcess) -> list[dict[str, Any]]:
            return list(await asyncio.gather(*(send(server, number) for number in range(TIMERS))))

        async def all_are_over() -> bool:
            return all(timer["status"] == "completed" for timer in await send_all(three))

        first = await send_all(one)
        second = await send_all(two)
        assert [timer["executeAt"] for timer in second] == [timer["executeAt"] for timer in first]
        await one.kill()
        # Some are due now, and their shards have no owner for a while.
        await asyncio.gather(send_all(two), send_all(three))
        await until(all_are_over)
        fired = {name: set(found) for name, found in ids.items()}
        assert {name: len(found) for name, found in fired.items()} == {f"t{number}": 1 for number in range(TIMERS)}
        await one.start()
        for server in servers:
            timers = await send_all(server)
            assert [timer["status"] for timer in timers] == ["completed"] * TIMERS
            assert [timer["executeAt"] for timer in timers] == [timer["executeAt"] for timer in first]
        for name in ("default", "forgetful"):
            status, page = await asking.post("/api/v1/timers/list", {"namespace": name, "status": "pending"})
            assert (status, page["timers"]) == (200, [])
        asking.close()
        # Nothing is pending, so that nothing more can arrive.
        assert ids == fired
