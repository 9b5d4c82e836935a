"""Shards move while callbacks are slow: no timer waits for the callbacks, and none of them is repeated."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.calls import Api
from tests.support.cluster import ended, node, now_us, running, shared_by
from tests.support.scripted import Reply, ScriptedReceiver
from tocsin.model.instants import format_instant

SLOW, QUICK = 40, 300
#: Longer than the test takes: what waited for a slow callback would never fire.
TIMEOUT_S = 60


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "joins"])
async def test_shards_move_while_callbacks_are_slow(leaves: bool, tmp_path: Path, postgresql_url: str) -> None:
    one, two = (node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two"))
    for server in (one, two):
        server.env["TOCSIN_CLUSTER_LEAVE_DELAY"] = "100ms"
    answered = asyncio.Event()
    async with (
        ScriptedReceiver({"slow": [Reply(200, b'{"ok":true}', until=answered)]}) as receiver,
        ended(two),
        running(*((one, two) if leaves else (one,))),
    ):
        if leaves:
            await shared_by([one, two], {"one", "two"})
        api = Api(one)
        began = now_us()
        slow = {f"slow{i}": began for i in range(SLOW)}
        quick = {f"quick{i}": began + 3_000_000 + i * 25_000 for i in range(QUICK)}
        timers = [
            {
                "namespace": "default", "id": name, "executeAt": format_instant(at_us),
                "callbackUrl": receiver.url(name.rstrip("0123456789")), "callbackTimeoutSeconds": TIMEOUT_S,
                "retryPolicy": {"maxAttempts": 5},
            }
            for name, at_us in (slow | quick).items()
        ]  # fmt: skip
        status, answer = await api("timers/batch/create", timers=timers)
        assert status == 200, answer
        assert all("timer" in result for result in answer["results"])
        await receiver.count("slow", SLOW)
        if leaves:
            moving = asyncio.create_task(one.stop())
        else:
            await two.start()
            await shared_by([one, two], {"one", "two"})
        await receiver.count("quick", QUICK)
        answered.set()
        if leaves:
            assert await moving == 0
        left = Api(two if leaves else one)
        # A callback that was handed over without its result would be repeated while its timer is pending, and not later.
        for name in (*slow, *quick):
            assert (await left.settled(name, "completed"))["attempts"] == 1
        for kind, names in (("slow", slow), ("quick", quick)):
            assert sorted(call.body["timerId"] for call in receiver.calls[kind]) == sorted(names)
