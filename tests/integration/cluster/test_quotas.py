"""Quotas of a namespace whose shards several nodes own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.cluster import node, running, shared_by, until
from tests.support.http import Client

TIMERS = 24


def timer(identifier: str) -> dict[str, Any]:
    return {"namespace": "shop", "id": identifier, "delay": "1h", "callbackUrl": "http://127.0.0.1:9/"}


async def test_a_quota_of_pending_timers_is_that_of_all_nodes_together(tmp_path: Path, postgresql_url: str) -> None:
    servers = [node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two")]
    async with running(*servers):
        await shared_by(servers, {"one", "two"})
        clients = [Client(server.address) for server in servers]
        # Each node has about half of the timers in its shards.
        created = [f"t{number}" for number in range(TIMERS)]
        shop = {"name": "shop", "numShards": 16, "quotas": {"pending": TIMERS}}
        assert (await clients[0].post("/api/v1/namespaces/create", shop))[0] == 200
        batch = {"timers": [timer(each) for each in created]}
        _, answer = await clients[0].post("/api/v1/timers/batch/create", batch)
        assert all("timer" in result for result in answer["results"])

        async def refused_everywhere() -> bool:
            """Whether both nodes refuse timers of either one's shards. What is accepted is canceled."""
            accepted = []
            for client in clients:
                probes = {"timers": [timer(f"probe-{number}") for number in range(8)]}
                _, answer = await client.post("/api/v1/timers/batch/create", probes)
                for result in answer["results"]:
                    if "timer" in result:
                        accepted.append(result["timer"]["id"])
                    else:
                        assert (result["error"]["error"], result["error"]["status"]) == ("QUOTA_EXCEEDED", 429)
            for each in set(accepted):
                await clients[0].post("/api/v1/timers/delete", {"namespace": "shop", "timerId": each})
            return not accepted

        await until(refused_everywhere)
        for client in clients:
            client.close()
