"""Shards move while callbacks are slow: no timer waits for the callbacks, and none of them is repeated."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.support.cluster import ended, node, now_us, running, shared_by, until
from tests.support.http import Client
from tests.support.server import ServerProcess
from tests.support.slow_receiver import SlowReceiver
from tocsin.model.instants import format_instant
from tocsin.timers.engine.attempt import HAND_OVER_MARGIN_US

SLOW, QUICK = 40, 300
SLOW_S, TIMEOUT_S = 14.0, 16
#: A timer that waited for the slow callbacks would be later than this; a handover takes a small part of it.
LATE_US_MAX = 7_000_000


def body(name: str, url: str, at_us: int) -> dict[str, object]:
    return {
        "id": name, "namespace": "default", "executeAt": format_instant(at_us), "callbackUrl": url,
        "callbackTimeoutSeconds": TIMEOUT_S, "retryPolicy": {"maxAttempts": 5},
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "joins"])
async def test_shards_move_while_callbacks_are_slow(leaves: bool, tmp_path: Path, postgresql_url: str) -> None:
    one, two = (node(tmp_path, name, postgresql_url) for name in ("one", "two"))
    for server in (one, two):
        server.env["TOCSIN_CLUSTER_LEAVE_DELAY"] = "100ms"
    async with SlowReceiver(lambda path: SLOW_S if path.startswith("/slow") else 0, answer=b'{"ok":true}') as receiver:

        async def create(server: ServerProcess, name: str, at_us: int) -> None:
            client = Client(server.address)
            try:
                status, answer = await client.post("/api/v1/timers/create", body(name, f"{receiver.url}/{name}", at_us))
            finally:
                client.close()
            assert status == 200, answer

        def arrivals(kind: str) -> Counter[str]:
            return Counter(path for path, _ in receiver.arrivals if path.startswith(f"/{kind}"))

        async with ended(two), running(*((one, two) if leaves else (one,))):
            if leaves:
                await shared_by([one, two], {"one", "two"})
            began = now_us()
            due = {f"quick{i}": began + 3_000_000 + i * 40_000 for i in range(QUICK)}
            async with asyncio.TaskGroup() as group:
                for i in range(SLOW):
                    group.create_task(create(one, f"slow{i}", began))
                for name, at_us in due.items():
                    group.create_task(create(one, name, at_us))

            async def slow_ones_run() -> bool:
                return len(arrivals("slow")) == SLOW

            await until(slow_ones_run)
            if leaves:
                assert await one.stop() == 0
            else:
                await two.start()
                await shared_by([one, two], {"one", "two"})

            async def all_fired() -> bool:
                return len(arrivals("quick")) == QUICK

            await until(all_fired)
            # Longer than the time after which a callback that was handed over would be repeated.
            await asyncio.sleep(max((began - now_us()) / 1e6 + TIMEOUT_S + HAND_OVER_MARGIN_US / 1e6 + 3, 0))
            late = {path: at - due[path[1:]] for path, at in receiver.arrivals if path.startswith("/quick")}
            assert max(late.values()) < LATE_US_MAX, sorted(late.values())[-20:]
            assert set(arrivals("slow").values()) == {1}
            assert set(arrivals("quick").values()) == {1}
            client = Client((two if leaves else one).address)
            for i in range(SLOW):
                status, timer = await client.post("/api/v1/timers/get", {"timerId": f"slow{i}", "namespace": "default"})
                assert (status, timer["status"]) == (200, "completed")
            client.close()
