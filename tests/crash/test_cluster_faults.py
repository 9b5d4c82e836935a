"""Three nodes on one PostgreSQL under load, and what may happen to them: nothing acknowledged is lost, nothing rings that
must not, and whoever is left goes on."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.crash.cluster_load import ClusterLoad, drained, reckon
from tests.crash.ledger import Ledger
from tests.support.cluster import DATABASES, new_database, node, now_us, owners, running, shared_by, until
from tests.support.http import Client, Receiver
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess

NAMES = ("one", "two", "three")
#: Results are durable within the commit interval; under load on a small machine a batch may take longer.
BEFORE_FAULT_US = 2_000_000


@asynccontextmanager
async def cluster(folder: Path, url: str) -> AsyncIterator[tuple[list[ServerProcess], Ledger, ClusterLoad]]:
    """Three nodes that share the shards, and clients at work."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance, ledger = random.Random(seed), Ledger()

    def answer(body: dict[str, object], _: dict[str, str]) -> tuple[int, bytes]:
        ledger.receive(body, now_us())
        return (500, b"") if chance.random() < 0.03 else (200, b"")

    servers = [node(folder, name, url, "--shards", "12") for name in NAMES]
    async with Receiver(answer) as receiver, running(*servers):
        await shared_by(servers, set(NAMES))
        load = ClusterLoad(servers, ledger, receiver.url, seed)
        load.start()
        await asyncio.sleep(3)
        yield servers, ledger, load


@pytest.mark.timeout(180)
@pytest.mark.parametrize("database", DATABASES)
async def test_a_killed_node_is_replaced_by_the_others(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    async with cluster(tmp_path, await new_database(request, database)) as (servers, ledger, load):
        ledger.kills.append(now_us())
        await servers[2].kill()
        load.gone.add(servers[2])
        await shared_by(servers[:2], {"one", "two"})
        print(f"taken over after {(now_us() - ledger.kills[0]) / 1e6:.1f} s")
        await asyncio.sleep(2)
        await load.stop()
        await drained(servers[0], ledger)
        reckon(ledger, load, BEFORE_FAULT_US)


@pytest.mark.timeout(180)
async def test_a_node_that_stood_still_can_do_no_harm(tmp_path: Path, postgresql_url: str) -> None:
    async with cluster(tmp_path, postgresql_url) as (servers, ledger, load):
        frozen = servers[1]
        assert frozen.process is not None
        ledger.kills.append(now_us())
        load.gone.add(frozen)
        frozen.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(20)
        assert (await owners(servers[0])).keys() == {"one", "three"}
        frozen.process.send_signal(signal.SIGCONT)
        ledger.kills.append(now_us())

        async def serves() -> bool:
            client = Client(frozen.address)
            status, _ = await client.get("/readyz")
            client.close()
            return status == 200

        await until(serves)
        load.gone.discard(frozen)
        await shared_by(servers, set(NAMES))
        await asyncio.sleep(1)
        await load.stop()
        await drained(servers[0], ledger)
        assert '"reason": "fenced"' in frozen.log()
        reckon(ledger, load, BEFORE_FAULT_US)


@pytest.mark.timeout(180)
async def test_the_database_restarts_in_the_middle(tmp_path: Path, postgresql: PostgresServer) -> None:
    async with cluster(tmp_path, await postgresql.create_database()) as (servers, ledger, load):
        ledger.kills.append(now_us())
        postgresql.stop()
        await asyncio.sleep(1)
        postgresql.start()
        ledger.kills.append(now_us())
        acknowledged = _acknowledged(ledger)

        async def goes_on() -> bool:
            return _acknowledged(ledger) > acknowledged + 200

        await until(goes_on, 60)
        ledger.kills.append(now_us())
        await load.stop()
        await drained(servers[0], ledger)
        reckon(ledger, load, BEFORE_FAULT_US + 2_000_000)


@pytest.mark.timeout(240)
async def test_a_rolling_restart_fails_no_request(tmp_path: Path, postgresql_url: str) -> None:
    async with cluster(tmp_path, postgresql_url) as (servers, ledger, load):
        for server in servers:
            assert await server.stop() == 0
            await server.start()
            await shared_by(servers, set(NAMES))
        await load.stop()
        await drained(servers[0], ledger)
        assert dict(load.failures) == {}
        reckon(ledger, load, BEFORE_FAULT_US)


def _acknowledged(ledger: Ledger) -> int:
    return sum(change.acked_at is not None for changes in ledger.changes.values() for change in changes)
