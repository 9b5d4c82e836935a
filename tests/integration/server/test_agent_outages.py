"""Outages of the agent's broker or database: every accepted call is made, and none is made twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.http import Client
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tests.support.slow_receiver import SlowReceiver
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import format_instant

CALLS = 150


def now_us() -> int:
    return time.time_ns() // 1_000


async def submit_through(client: Client, tenant: str, url: str, number: int) -> int:
    """Submits one call, now or a little later, until it is accepted; returns how often it was refused."""
    body = {
        "name": f"call {number}",
        "idempotencyKey": f"key-{number}",
        "requestSpec": {"method": "POST", "url": f"{url}/{number}", "body": number},
        "dueAt": format_instant(now_us() + (number % 4) * 300_000),
    }
    refused = 0
    while True:
        status, answer = await client.post(f"/api/v1/tenants/{tenant}/service-calls", body, timeout_s=PATIENCE_S)
        if status == 202:
            return refused
        assert status in (429, 503), answer
        refused += 1
        await asyncio.sleep(0.05)


async def all_succeeded(client: Client, tenant: str) -> bool:
    status, page = await client.get(f"/api/v1/tenants/{tenant}/service-calls?limit=1000", timeout_s=PATIENCE_S)
    if status == 503:
        return False
    assert status == 200, page
    statuses = Counter(call["status"] for call in page["serviceCalls"])
    assert not statuses["Failed"], [call for call in page["serviceCalls"] if call["status"] == "Failed"]
    return statuses["Succeeded"] == CALLS


async def run(server: ServerProcess, outages: list[Callable[[], None]]) -> None:
    """Outages among the submissions: odd entries stop a service, even ones start it again."""
    tenant = Uuid7Source(now_us)()
    async with SlowReceiver(lambda path: 0.02) as receiver:
        await server.start()
        client = Client(server.address)
        submitting = asyncio.create_task(_submit_all(client, tenant, receiver.url))
        for change in outages:
            await asyncio.sleep(0.7)
            await asyncio.to_thread(change)
        await submitting
        async with asyncio.timeout(PATIENCE_S):
            # Only the server knows when all have come to their end.
            while not await all_succeeded(client, tenant):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        client.close()
        assert await server.stop() == 0
        arrived = Counter(path for path, _ in receiver.arrivals)
        assert arrived == {f"/{number}": 1 for number in range(CALLS)}


async def _submit_all(client: Client, tenant: str, url: str) -> None:
    refused = 0
    for number in range(CALLS):
        refused += await submit_through(client, tenant, url, number)
        await asyncio.sleep(0.02)
    print(f"{refused} submissions were refused and repeated")


@pytest.mark.parametrize("kind", ["killed", "away at the start, then stopped in order", "silent"])
async def test_a_broker_that_goes_away_and_comes_back(tmp_path: Path, nats: NatsServer, kind: str) -> None:
    server = ServerProcess(tmp_path / "data", "--broker", nats.url, "--shards", "1")
    changes: dict[str, list[Callable[[], None]]] = {
        "killed": [nats.kill, nats.start, nats.kill, nats.start],
        "away at the start, then stopped in order": [nats.start, nats.stop, nats.start],
        "silent": [nats.pause, nats.resume],
    }
    if kind.startswith("away"):
        nats.stop()
    await run(server, changes[kind])


async def test_a_database_that_is_killed_and_comes_back(tmp_path: Path, postgresql: PostgresServer) -> None:
    database = await postgresql.create_database()
    server = ServerProcess(tmp_path / "data", "--agent-database", database, "--shards", "1")
    await run(server, [postgresql.kill, postgresql.start, postgresql.kill, postgresql.start])
