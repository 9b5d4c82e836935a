"""Two live nodes with the same name are reported in the log, by the API, the command and the page. A restart is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from tests.support.cluster import node, running, until, view
from tests.support.command import command
from tests.support.server import ServerProcess

#: Short enough for a test, and long enough for a busy machine.
TIMES = {"TOCSIN_MEMBER_TIMEOUT": "3s", "TOCSIN_NODE_LEASE": "2s", "TOCSIN_DUPLICATE_NAME_WARNING_INTERVAL": "1h"}


def named(folder: Path, place: str, name: str, store: str) -> ServerProcess:
    """A node with that name and its own folder."""
    server = node(folder, place, store)
    server.env |= {**TIMES, "TOCSIN_NODE_NAME": name, "TOCSIN_LOG_FORMAT": "json"}
    return server


def warnings(server: ServerProcess) -> list[dict[str, Any]]:
    """The log's warnings about shared node names."""
    lines = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "node name shared"]


async def incarnation(server: ServerProcess) -> str:
    """The node's incarnation, once it has read the members."""
    found: list[str] = []

    async def is_known() -> bool:
        found[:] = [each["incarnation"] for each in (await view(server))["nodes"] if each["self"]]
        return bool(found)

    await until(is_known)
    return found[0]


async def sharing(server: ServerProcess) -> list[str]:
    """The incarnations of the nodes that share their name, as this node reports them."""
    return sorted(each["incarnation"] for each in (await view(server))["nodes"] if each["sharesName"])


async def test_a_shared_node_name_is_reported_by_both_nodes(tmp_path: Path, postgresql_url: str) -> None:
    one, two = named(tmp_path, "one", "same", postgresql_url), named(tmp_path, "two", "same", postgresql_url)
    third = named(tmp_path, "third", "other", postgresql_url)
    async with running(one, two, third):
        incarnations = [await incarnation(one), await incarnation(two)]

        async def reported() -> bool:
            views = [await sharing(server) == sorted(incarnations) for server in (one, two, third)]
            return all(views) and all(warnings(server) for server in (one, two, third))

        await until(reported)
        for server in (one, two, third):
            assert [(line["level"], line["node"], line["incarnations"]) for line in warnings(server)] == [
                ("warning", "same", ", ".join(sorted(incarnations)))
            ]
        code, _, output = await command("cluster", "--server", third.url)
        assert code == 0
        assert "2 live nodes have the name same" in output
        async with httpx.AsyncClient() as client:
            page = (await client.get(f"{third.url}/nodes", headers={"accept": "text/html"})).text
        assert "2 live nodes have the name same" in page
        # Once one is gone nobody is accused any more.
        assert await two.stop() == 0

        async def settled() -> bool:
            return not any([await sharing(server) for server in (one, third)])

        await until(settled)


async def test_a_restarted_node_is_not_reported_as_sharing_its_name(tmp_path: Path, postgresql_url: str) -> None:
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
        # The former row existed beside the new one, so the missing warning is not for want of two nodes.
        assert seen == {former}
        assert warnings(one) == warnings(other) == []
