"""`statistics/get` on real nodes: any of them answers for all, and a limited key gets its own namespaces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.integration.pages.conftest import add_keys
from tests.support.calls import Inbox
from tests.support.cluster import until
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tocsin.model.access import Role
from tocsin.model.instants import parse_instant
from tocsin.server.node import Server
from tocsin.settings import load_settings
from tocsin.statistics.limits import StatisticsLimits

#: Minutes of a second.
QUICK = StatisticsLimits(minute_us=1_000_000, part_us=500_000, minutes_in_memory=3_600)
KEYS: dict[str, tuple[Role, tuple[str, ...]]] = {"tk_all": (Role.ADMIN, ()), "tk_a": (Role.WRITE, ("a",))}


@asynccontextmanager
async def serving(folder: Path, name: str, **chosen: Any) -> AsyncIterator[httpx.AsyncClient]:
    settings = load_settings(
        {
            "port": 0,
            "data_dir": folder / name,
            "shards": 4,
            "agent_enabled": False,
            "node_name": name,
            "egress_allow": "127.0.0.0/8",
            **chosen,
        }
    )
    if chosen.pop("keys", True):
        await add_keys(settings, KEYS)
    server = Server(settings, statistics=QUICK)
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
            yield client
    finally:
        await server.stop()


async def post(client: httpx.AsyncClient, path: str, key: str = "tk_all", **body: Any) -> tuple[int, dict[str, Any]]:
    answer = await client.post(f"/api/v1/{path}", json=body, headers={"authorization": f"Bearer {key}"})
    return answer.status_code, answer.json()


async def counted(client: httpx.AsyncClient, key: str = "tk_all", **wanted: Any) -> dict[str, int]:
    status, answer = await post(client, "statistics/get", key, **wanted)
    assert status == 200, answer
    return {name: sum(slot[name] for slot in answer["slots"]) for name in ("created", "attempts", "failed")}


async def test_any_node_answers_for_all(tmp_path: Path, postgresql_url: str) -> None:
    inbox = Inbox()
    async with (
        serving(tmp_path, "one", store=postgresql_url) as one,
        serving(tmp_path, "two", store=postgresql_url, keys=False) as two,
        Receiver(inbox) as receiver,
    ):
        for number in range(12):
            sent = {"namespace": "default", "id": f"t{number}", "delay": "100ms", "callbackUrl": receiver.url}
            assert (await post(one, "timers/create", **sent))[0] == 200
        await inbox.count(12)

        async def both_know() -> bool:
            return all([await counted(node) == {"created": 12, "attempts": 12, "failed": 0} for node in (one, two)])

        await until(both_know)
        assert (await counted(two, resolution="tenMinutes"))["attempts"] == 12


async def test_a_limited_key_gets_its_own_namespaces(tmp_path: Path) -> None:
    inbox = Inbox(default=(404, b""))
    async with serving(tmp_path, "one") as node, Receiver(inbox) as receiver:
        for name in ("a", "b"):
            assert (await post(node, "namespaces/create", name=name))[0] == 200
            sent = {"namespace": name, "id": "t", "delay": "0s", "callbackUrl": f"{receiver.url}/{name}?token=x"}
            assert (await post(node, "timers/create", **sent))[0] == 200

        async def are_counted() -> bool:
            return (await counted(node))["failed"] == 2

        await until(are_counted)
        assert await counted(node, namespace="a") == {"created": 1, "attempts": 1, "failed": 1}
        assert await counted(node, "tk_a") == {"created": 1, "attempts": 1, "failed": 1}
        _, answer = await post(node, "statistics/get", "tk_a", namespace="*")
        (failing,) = answer["failing"]
        assert (failing["namespace"], failing["path"], failing["lastError"]) == ("a", "/hook/a", "HTTP_404")
        assert failing["exhausted"] == 1
        assert (await post(node, "statistics/get", "tk_a", namespace="b"))[0] == 403
        status, problem = await post(node, "statistics/get", namespace="nobody")
        assert (status, problem["error"]) == (404, "NAMESPACE_NOT_FOUND")


async def test_a_range_ends_where_nothing_is_kept(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as node:
        for resolution, kept_us in (("minute", QUICK.minutes_kept_us), ("tenMinutes", QUICK.kept_us)):
            _, answer = await post(node, "statistics/get", resolution=resolution, **{"from": "2020-01-01T00:00:00Z"})
            covered_us = parse_instant(answer["to"]) - parse_instant(answer["from"])
            assert kept_us <= covered_us <= kept_us + QUICK.ten_minutes_us
        for wanted in ({"from": "2999-01-01T00:00:00Z"}, {"to": "2020-01-01T00:00:00Z"}):
            assert (await post(node, "statistics/get", **wanted))[1]["slots"] == []
        status, problem = await post(node, "statistics/get", **{"from": "yesterday"})
        assert (status, problem["errors"][0]["path"]) == (400, "from")
