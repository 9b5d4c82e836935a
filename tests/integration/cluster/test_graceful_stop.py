"""A node that stops answers every connection it has accepted."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from tests.support.cluster import node, running
from tests.support.http import Client

CLIENTS = 200


async def test_a_leaving_node_answers_accepted_connections(tmp_path: Path, postgresql_url: str) -> None:
    server = node(tmp_path, "one", postgresql_url)
    # Long enough for a connected client to send its request, also on a busy machine.
    server.env["TOCSIN_CLUSTER_LEAVE_DELAY"] = "3s"
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
