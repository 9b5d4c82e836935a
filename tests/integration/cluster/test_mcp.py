"""Tools at `/mcp` of several nodes: none of them keeps what another would need."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests.support.calls import Api
from tests.support.cluster import node, running, shared_by
from tests.support.mcp import over_http

TIMERS = 10


async def test_a_node_confirms_the_dry_run_of_another(tmp_path: Path, postgresql_url: str) -> None:
    one, two = servers = [node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two")]
    for server in servers:
        server.env["TOCSIN_MCP_ENABLED"] = "true"
    ids = [f"t{number}" for number in range(TIMERS)]
    async with running(*servers):
        await shared_by(servers, {"one", "two"})
        async with over_http(one.url) as first, over_http(two.url) as second:
            for each in ids:
                await first("create_timer", callbackUrl="http://127.0.0.1:9/", delay="1h", id=each)
            plan = await first("cancel_timers", ids=ids)
            done = await second("confirm", **plan["confirm"])
            assert done["result"] == f"{TIMERS} timers of {TIMERS} canceled."
        for each in ids:
            assert (await Api(one).get(each))["status"] == "canceled"
        async with httpx.AsyncClient(base_url=one.url) as client:
            wanted = {"action": "timers_canceled"}
            (entry,) = (await client.post("/api/v1/audit/list", json=wanted)).json()["entries"]
        assert (entry["node"], entry["source"], entry["details"]) == ("two", "mcp", {"timers": ids})
