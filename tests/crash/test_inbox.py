"""The inbox while programs and servers are killed: exactly the timers of committed transactions fire."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.inbox_run import InboxRun
from tests.support.calls import Api
from tests.support.calls import Inbox as Calls
from tests.support.cluster import ended, node, owners, until, view
from tests.support.http import Receiver
from tests.support.inbox import KINDS, new_program
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", KINDS)
async def test_exactly_the_committed_orders_fire(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    program, _ = await new_program(request, kind)
    server = ServerProcess(tmp_path / "data", "--no-agent", env=program.settings("default"))
    async with ended(server):
        result = await InboxRun(program, server, orders=800, processes=4, rate=100, seed=kind).run(kills=3)
        assert (result.wrongly, result.missing, result.renamed) == (set(), set(), set())
        assert result.committed > 300
        assert result.server_kills == 3 and result.shop_kills >= 2
        assert not program.execute("SELECT id FROM tocsin_outbox")


async def test_another_node_drains_when_the_owner_of_the_first_shard_is_gone(
    tmp_path: Path, request: pytest.FixtureRequest, shared_postgresql: PostgresServer
) -> None:
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    store, calls = await shared_postgresql.create_database(), Calls()
    nodes = {name: node(tmp_path, name, store, "--shards", "4") for name in ("one", "two")}
    for each in nodes.values():
        each.env |= program.settings("default")
    async with Receiver(calls) as receiver, ended(*nodes.values()):
        for each in nodes.values():
            await each.start()

        async def both_own() -> bool:
            return (await owners(nodes["one"])).keys() == set(nodes)

        await until(both_own)
        program.write("default", receiver.url, "first")
        await calls.count(1)
        await nodes.pop(await _owner_of_the_first_shard(nodes["one"])).kill()
        (left,) = nodes.values()
        program.write("default", receiver.url, "second")
        # The first one may be called again, if the kill came before its result was durable.
        await calls.wait(lambda made: any(call.body["timerId"] == "second" for call in made))
        assert (await Api(left).settled("second", "completed"))["attempts"] == 1


async def _owner_of_the_first_shard(asked: ServerProcess) -> str:
    """Its name, once it has one: a node that a busy machine has halted for longer than its lease claims its shards again."""
    found: list[str] = []

    async def is_known() -> bool:
        found[:] = [each["owner"] for each in (await view(asked))["shards"] if each["shardId"] == 0 and each["owner"]]
        return bool(found)

    await until(is_known)
    return found[0]
