"""A rule of flows holds for all nodes together, from the moment at which any of them has acknowledged it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.calls import Inbox
from tests.support.cluster import node, running, shared_by, until
from tests.support.http import Client, Receiver

RULE = {"namespace": "default", "match": "customer:"}
TIMERS = 12


async def test_a_rule_put_at_one_node_holds_for_all_and_each_shows_what_all_have(
    tmp_path: Path, postgresql_url: str
) -> None:
    servers, inbox = [node(tmp_path, name, postgresql_url) for name in ("one", "two")], Inbox()
    async with Receiver(inbox) as receiver, running(*servers):
        await shared_by(servers, {"one", "two"})
        one, two = [Client(server.address) for server in servers]
        receiver.responding.clear()
        status, put = await one.post("/api/v1/flows/put", {**RULE, "perKey": {"parallelism": 1}})
        assert status == 200, put
        timers: list[dict[str, Any]] = [
            {"namespace": "default", "id": f"t{n}", "delay": "0s", "callbackUrl": receiver.url, "flowKey": "customer:1"}
            for n in range(TIMERS)
        ]
        assert (await two.post("/api/v1/timers/batch/create", {"timers": timers}))[0] == 200

        async def all_wait_for_one() -> bool:
            seen = [(await client.post("/api/v1/flows/get", RULE))[1] for client in (one, two)]
            return all((each["inFlight"], each["waiting"], each["complete"]) == (1, TIMERS - 1, True) for each in seen)

        await until(all_wait_for_one)
        assert len(inbox.calls) == 1
        # Paused at one node: the next of the other's timers does not begin.
        assert (await two.post("/api/v1/flows/pause", RULE))[1]["paused"] is True
        receiver.responding.set()

        async def nothing_in_flight() -> bool:
            return bool((await one.post("/api/v1/flows/get", RULE))[1]["inFlight"] == 0)

        await until(nothing_in_flight)
        assert len(inbox.calls) == 1
        assert (await one.post("/api/v1/flows/resume", RULE))[0] == 200
        await inbox.count(TIMERS)
        for client in (one, two):
            client.close()
