"""Destinations of all nodes, asked and paused at any of them; and breakers that the success of another node closes."""

from __future__ import annotations

from pathlib import Path

from tests.support.calls import Inbox
from tests.support.cluster import node, running, shared_by, until
from tests.support.http import Client, Receiver

TIMERS = 40


async def test_a_destination_paused_at_one_node_waits_at_all_and_each_lists_what_all_have(
    tmp_path: Path, postgresql_url: str
) -> None:
    servers, inbox = [node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two")], Inbox()
    async with Receiver(inbox) as receiver, running(*servers):
        await shared_by(servers, {"one", "two"})
        one, two = [Client(server.address) for server in servers]
        name = {"destination": receiver.url.removesuffix("/hook")}
        status, paused = await one.post("/api/v1/destinations/pause", name)
        assert (status, paused["paused"], paused["complete"]) == (200, True, True)
        timers = [
            {"namespace": "default", "id": f"t{n}", "delay": "0s", "callbackUrl": receiver.url} for n in range(TIMERS)
        ]
        assert (await two.post("/api/v1/timers/batch/create", {"timers": timers}))[0] == 200

        async def all_wait() -> bool:
            for client in (one, two):
                found = (await client.post("/api/v1/destinations/list", {}))[1]["destinations"]
                if [(each["waiting"], len(each["nodes"]), each["complete"]) for each in found] != [(TIMERS, 2, True)]:
                    return False
            return True

        await until(all_wait)
        assert not inbox.calls
        assert (await two.post("/api/v1/destinations/resume", name))[0] == 200
        await inbox.count(TIMERS)
        for client in (one, two):
            client.close()
