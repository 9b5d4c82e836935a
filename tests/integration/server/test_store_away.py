"""A node that starts while its database, or its agent's, is away: it answers health checks, and serves once it is back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.support.calls import Api
from tests.support.cluster import is_ready, until
from tests.support.http import Client
from tests.support.ports import free_port
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tocsin.model.ids import Uuid7Source

FAR = "2040-01-01T00:00:00Z"


async def test_a_node_waits_for_its_database(tmp_path: Path, postgresql: PostgresServer) -> None:
    port, url = free_port(), await postgresql.create_database()
    await asyncio.to_thread(postgresql.stop)
    server = ServerProcess(tmp_path / "data", "--store", url, "--no-agent", "--port", str(port))
    starting = asyncio.create_task(server.start())
    server.port = port

    async def is_alive() -> bool:
        client = Client(server.address)
        try:
            return (await client.get("/healthz"))[0] == 200
        except (OSError, EOFError):
            return False
        finally:
            client.close()

    await until(is_alive)
    client = Client(server.address)
    status, problem = await client.get("/readyz")
    assert (status, "waits for its store" in str(problem)) == (503, True)
    client.close()
    assert not starting.done()
    await asyncio.to_thread(postgresql.start)
    await starting
    made = await Api(server).create("a", "http://127.0.0.1:9/", executeAt=FAR)
    assert made["status"] == "pending"
    assert await server.stop() == 0


async def test_a_node_serves_its_timers_while_the_agents_database_is_away(
    tmp_path: Path, postgresql: PostgresServer
) -> None:
    url = await postgresql.create_database()
    await asyncio.to_thread(postgresql.stop)
    server = ServerProcess(tmp_path / "data", "--agent-database", url)
    await server.start()
    assert await is_ready(server)
    tenant = Uuid7Source(lambda: time.time_ns() // 1_000)()
    call = {"name": "later", "requestSpec": {"method": "GET", "url": "http://127.0.0.1:9/"}, "dueAt": FAR}

    async def submitted() -> int:
        client = Client(server.address)
        try:
            return (await client.post(f"/api/v1/tenants/{tenant}/service-calls", call))[0]
        finally:
            client.close()

    assert await submitted() == 503
    await asyncio.to_thread(postgresql.start)

    async def is_accepted() -> bool:
        return await submitted() == 202

    await until(is_accepted)
    assert await server.stop() == 0
