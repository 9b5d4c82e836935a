"""Two living nodes of one name: told in the log, by the API, the command and the page. A restart is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from tests.support.cluster import node, running, until, view
from tests.support.command import command
from tests.support.server import ServerProcess

#: Soon enough for a test, and long enough for a machine with much else to do.
TIMES = {"TOCSIN_MEMBER_TIMEOUT": "3s", "TOCSIN_NODE_LEASE": "2s", "TOCSIN_DUPLICATE_NAME_WARNING_INTERVAL": "1h"}


def named(folder: Path, place: str, name: str, store: str) -> ServerProcess:
    """A node of that name, with a folder of its own."""
    server = node(folder, place, store)
    server.env |= {**TIMES, "TOCSIN_NODE_NAME": name, "TOCSIN_LOG_FORMAT": "json"}
    return server


def warnings(server: ServerProcess) -> list[dict[str, Any]]:
    """What its log says of names that several nodes have."""
    lines = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "node name shared"]


async def incarnation(server: ServerProcess) -> str:
    """The node's own, as soon as it has read who there is."""
    found: list[str] = []

    async def is_known() -> bool:
        found[:] = [each["incarnation"] for each in (await view(server))["nodes"] if each["self"]]
        return bool(found)

    await until(is_known)
    return found[0]


async def sharing(server: ServerProcess) -> list[str]:
    """Incarnations of the nodes that, as this one sees it, share their name."""
    return sorted(each["incarnation"] for each in (await view(server))["nodes"] if each["sharesName"])


async def test_two_nodes_of_one_name_are_told_everywhere(tmp_path: Path, postgresql_url: str) -> None:
    one, two = named(tmp_path, "one", "same", postgresql_url), named(tmp_path, "two", "same", postgresql_url)
    third = named(tmp_path, "third", "other", postgresql_url)
    async with running(one, two, third):
        incarnations = [await incarnation(one), await incarnation(two)]

        async def told() -> bool:
            return all([await sharing(server) == sorted(incarnations) for server in (one, two, third)])

        await until(told)
        for server in (one, two, third):
            assert [(line["level"], line["node"], line["incarnations"]) for line in warnings(server)] == [
                ("warning", "same", ", ".join(sorted(incarnations)))
            ]
        code, _, said = await command("cluster", "--server", third.url)
        assert code == 0
        assert "2 living nodes are called same" in said
        async with httpx.AsyncClient() as client:
            page = (await client.get(f"{third.url}/cluster", headers={"accept": "text/html"})).text
        assert "2 living nodes are called same" in page
        # Once one is gone nobody is accused any more.
        assert await two.stop() == 0

        async def settled() -> bool:
            return not any([await sharing(server) for server in (one, third)])

        await until(settled)


async def test_a_node_that_starts_again_is_not_told(tmp_path: Path, postgresql_url: str) -> None:
    one, other = named(tmp_path, "one", "same", postgresql_url), named(tmp_path, "other", "other", postgresql_url)
    async with running(one, other):
        former = await incarnation(one)
        await one.kill()
        await one.start()
        seen = set()

        async def former_is_dead() -> bool:
            for server in (one, other):
                for each in (await view(server))["nodes"]:
                    assert not each["sharesName"]
                    if each["incarnation"] == former:
                        seen.add(former)
            nodes = [each for server in (one, other) for each in (await view(server))["nodes"]]
            return not any(each["alive"] for each in nodes if each["incarnation"] == former)

        await until(former_is_dead)
        # The former row was there beside the new one: it isn't for want of two that nothing was said.
        assert seen == {former}
        assert warnings(one) == warnings(other) == []
