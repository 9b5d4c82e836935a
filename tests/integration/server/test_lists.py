"""Lists, pages and history on a real server: filters, pages while timers fire, and retention."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant, parse_instant

NOWHERE = "http://127.0.0.1:9/"


async def pages(api: Api, **filters: Any) -> list[dict[str, Any]]:
    """All matching timers, page by page."""
    timers: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        status, page = await api("timers/list", **{"namespace": "default", "limit": 7, **filters, **cursor})
        assert status == 200, page
        assert len(page["timers"]) <= 7
        timers += page["timers"]
        if "nextCursor" not in page:
            return timers
        cursor = {"cursor": page["nextCursor"]}


async def test_filters_select_timers_and_pages_keep_the_order(server: ServerProcess) -> None:
    api = Api(server)
    base = time.time_ns() // 1_000 + 3_600_000_000
    # Equal instants, too: pages must neither repeat nor miss what stands at their edges.
    instants = {f"t-{i:02}": format_instant(base + i // 5 * 1_000_000) for i in range(40)}
    timers = [
        {"namespace": "default", "id": name, "callbackUrl": NOWHERE, "executeAt": instant,
         "tags": ["all", "odd" if int(name[2:]) % 2 else "even"]}
        for name, instant in instants.items()
    ]  # fmt: skip
    assert (await api("timers/batch/create", timers=timers))[0] == 200
    for name in ("t-00", "t-13"):
        assert (await api("timers/delete", namespace="default", timerId=name))[0] == 204

    async def names(**filters: Any) -> set[str]:
        found = await pages(api, **filters)
        due = [parse_instant(timer["executeAt"]) for timer in found]
        assert due == sorted(due)
        assert len({timer["id"] for timer in found}) == len(found)
        return {timer["id"] for timer in found}

    assert await names() == set(instants)
    assert await names(status="canceled") == {"t-00", "t-13"}
    assert await names(status=["canceled", "pending"]) == set(instants)
    assert await names(status="failed") == set()
    assert await names(tags=["all", "odd"], status="pending") == {f"t-{i:02}" for i in range(1, 40, 2)} - {"t-13"}
    assert await names(tags=["odd", "even"]) == set()
    assert await names(idPrefix="t-1") == {f"t-{i}" for i in range(10, 20)}
    # The beginning is included, the end is not.
    between = {"executeAfter": instants["t-10"], "executeBefore": instants["t-20"]}
    assert await names(**between) == {f"t-{i}" for i in range(10, 20)}
    assert await names(**between, tags=["even"], idPrefix="t-1") == {f"t-{i}" for i in range(10, 20, 2)}


async def test_pages_are_complete_while_timers_fire(server: ServerProcess) -> None:
    api, inbox = Api(server), Inbox()
    async with Receiver(inbox) as receiver:
        far = [{"namespace": "default", "id": f"far-{i:03}", "callbackUrl": NOWHERE, "delay": "1h"} for i in range(60)]
        near = [
            {"namespace": "default", "id": f"near-{i:03}", "callbackUrl": receiver.url, "delay": f"{i * 10}ms"}
            for i in range(200)
        ]
        assert (await api("timers/batch/create", timers=far + near))[0] == 200
        expected = {timer["id"] for timer in far}
        has_fired = False
        while not has_fired:
            has_fired = len(inbox.calls) >= len(near)
            found = [timer["id"] for timer in await pages(api, status="pending")]
            assert len(found) == len(set(found))
            assert {name for name in found if name.startswith("far")} == expected
        for timer in near:
            await api.settled(timer["id"], "completed")
        assert {timer["id"] for timer in await pages(api, status="completed")} == {timer["id"] for timer in near}


async def test_a_cursor_that_no_page_had_is_refused(server: ServerProcess) -> None:
    api = Api(server)
    for cursor in ("x", "AAAA", "=" * 40, "ü", "A" * 1_025):
        status, problem = await api("timers/list", namespace="default", cursor=cursor)
        assert (status, problem["error"], problem["errors"][0]["path"]) == (400, "INVALID_INPUT", "cursor"), cursor


async def test_retention_removes_only_finished_timers(tmp_path: Path) -> None:
    server, inbox = ServerProcess(tmp_path / "data", env={"TOCSIN_PURGE_INTERVAL": "50ms"}), Inbox()
    await server.start()
    api = Api(server)
    async with Receiver(inbox) as receiver:
        assert (await api("namespaces/create", name="short", retention="300ms"))[0] == 200
        await api.create("kept", receiver.url)
        for name in ("fires", "canceled", "pending"):
            await api.create(name, receiver.url, namespace="short", delay="0s" if name == "fires" else "1h")
        await api("timers/delete", namespace="short", timerId="canceled")
        await inbox.count(2)
        await api.settled("kept", "completed")
        async with asyncio.timeout(PATIENCE_S):
            for name in ("fires", "canceled"):
                while (await api("timers/get", namespace="short", timerId=name))[0] != 404:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        assert [timer["id"] for timer in await pages(api, namespace="short")] == ["pending"]
        assert (await api.get("kept"))["status"] == "completed"
        # Its id is free, and it is unknown to what changes timers.
        status, problem = await api("timers/delete", namespace="short", timerId="fires")
        assert (status, problem["error"]) == (404, "TIMER_NOT_FOUND")
    assert await server.stop() == 0


async def test_without_history_a_finished_timer_is_gone(server: ServerProcess) -> None:
    api, inbox = Api(server), Inbox()
    async with Receiver(inbox) as receiver:
        assert (await api("namespaces/create", name="none", history="none"))[0] == 200
        await api.create("gone", receiver.url, namespace="none")
        await api.create("deleted", receiver.url, namespace="none", delay="1h")
        assert (await api("timers/delete", namespace="none", timerId="deleted"))[0] == 204
        await inbox.count(1)
        async with asyncio.timeout(PATIENCE_S):
            while await pages(api, namespace="none"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        for name in ("gone", "deleted"):
            assert (await api("timers/get", namespace="none", timerId=name))[0] == 404


async def test_namespaces_with_different_shard_counts_keep_their_timers_through_a_crash(tmp_path: Path) -> None:
    server, inbox = ServerProcess(tmp_path / "data", "--shards", "8"), Inbox()
    await server.start()
    async with Receiver(inbox) as receiver:
        api = Api(server)
        for name, spread in (("one", 1), ("five", 5)):
            assert (await api("namespaces/create", name=name, numShards=spread))[0] == 200
            timers = [
                {"namespace": name, "id": f"{i}", "callbackUrl": receiver.url, "delay": "1500ms", "payload": name}
                for i in range(40)
            ]
            assert (await api("timers/batch/create", timers=timers))[0] == 200
        shards = {name: {t["shardId"] for t in await pages(api, namespace=name)} for name in ("one", "five")}
        assert {name: len(found) for name, found in shards.items()} == {"one": 1, "five": 5}
        await server.kill()
        moved = tmp_path / "moved"
        server.data_dir.rename(moved)
        again = ServerProcess(moved)
        await again.start()
        calls = await inbox.wait(lambda calls: len({(c.body["namespace"], c.body["timerId"]) for c in calls}) == 80)
        assert all(call.lag_us >= 0 and call.body["payload"] == call.body["namespace"] for call in calls)
        assert await again.stop() == 0
    other = ServerProcess(moved, "--shards", "4")
    try:
        await other.start()
    except AssertionError:
        assert "data has 8 shards, which can't be changed to 4" in other.log()
    else:
        await other.kill()
        raise AssertionError("it started")
