"""A node that stops answers every connection it has accepted; nodes that stop together end what is in flight."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.support.calls import Api
from tests.support.cluster import node, running, shared_by, until
from tests.support.http import Client
from tests.support.patience import PATIENCE_S
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess

CLIENTS = 200


async def test_a_leaving_node_answers_accepted_connections(tmp_path: Path, postgresql_url: str) -> None:
    server = node(tmp_path, "one", postgresql_url)
    # Long enough for a connected client to send its request, also on a busy machine.
    server.env["TOCSIN_CLUSTER_LEAVE_DELAY"] = "8s"
    answers: Counter[str] = Counter()

    async def ask_again_and_again(begun: asyncio.Event) -> None:
        """Opens a connection for each request, until none is accepted."""
        while True:
            client = Client(server.address)
            try:
                status, _ = await client.get("/api/v1/cluster")
                answers[str(status)] += 1
                begun.set()
            except ConnectionRefusedError:
                return
            except (OSError, EOFError) as error:
                answers[repr(error)] += 1
            finally:
                client.close()

    async with running(server):
        begun = [asyncio.Event() for _ in range(CLIENTS)]
        async with asyncio.TaskGroup() as clients:
            for event in begun:
                clients.create_task(ask_again_and_again(event))
            await asyncio.gather(*(event.wait() for event in begun))
            assert await server.stop() == 0
    assert answers.keys() == {"200"}


async def _until_draining(server: ServerProcess) -> None:
    """Returns when whoever answers at the port reports that it shuts down."""

    async def draining() -> bool:
        client = Client(server.address)
        try:
            return "shutting down" in str((await client.get("/readyz"))[1])
        finally:
            client.close()

    await until(draining)


@pytest.mark.parametrize("workers", [1, 2])
async def test_nodes_that_all_stop_together_end_the_callback_in_flight_and_fire_meanwhile(
    tmp_path: Path, postgresql_url: str, workers: int
) -> None:
    """Two nodes, or two workers behind one port: each of them seems to have a successor at first."""
    names = {"one", "two"} if workers == 1 else {"one/0", "one/1"}
    servers = [
        node(tmp_path, name, postgresql_url, "--workers", str(workers), steady=True)
        for name in ("one", "two")[: 3 - workers]
    ]
    for server in servers:
        # Longer than this test may take.
        server.env["TOCSIN_DRAIN_TIMEOUT"] = "10m"
    ended = asyncio.Event()
    scripts = {"slow": [Reply(200, until=ended)]}
    async with ScriptedReceiver(scripts) as receiver, running(*servers):
        await shared_by(servers, names)
        api = Api(servers[0])
        await api.create("slow", receiver.url("slow"), callbackTimeoutSeconds=60)
        await receiver.count("slow", 1)
        stopping = [asyncio.create_task(server.stop()) for server in servers]
        await asyncio.gather(*map(_until_draining, servers))
        for number in range(8):
            # In shards of both nodes, probably.
            await api.create(f"due meanwhile {number}", receiver.url("quick"))
        await receiver.count("quick", 8)
        assert not all(stop.done() for stop in stopping)
        ended.set()
        async with asyncio.timeout(PATIENCE_S):
            assert set(await asyncio.gather(*stopping)) == {0}
        await servers[0].start()
        assert (await Api(servers[0]).get("slow"))["status"] == "completed"
        assert len(receiver.calls["slow"]) == 1
