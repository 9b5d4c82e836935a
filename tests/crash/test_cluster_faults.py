"""Three nodes on one database under load, with faults: no acknowledged write is lost, no canceled timer fires, and the
remaining nodes continue.

What the engine does is the same on every database, so each fault runs on PostgreSQL, or the one that `make test-cluster`
names. `tests/conformance` and `tests/integration/stores` prove the stores' rules, among them what becomes of a transaction
that a frozen node left open, and `tests/integration/cluster/test_two_owners.py` that no former owner writes. On each other
database one journey runs: a node of MySQL is cut off (`test_cluster_partitions.py`); nodes of DynamoDB and MongoDB are
killed, frozen and restarted (`test_cluster_schedules.py`), and so are those of Cassandra (`test_ledger_check.py`)."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.crash.cluster_run import BEFORE_FAULT_US, NAMES, at_work, found_lost, three_nodes
from tests.support.cluster import (
    DATABASE,
    SOON,
    STEADY,
    evenly,
    is_ready,
    new_database,
    now_us,
    own_database,
    owners,
    running,
    shared_by,
    until,
    view,
)
from tests.support.server import ServerProcess
from tocsin.model.setting_values import STORED_SECRET

_WORKERS = 3
#: Longer than the other nodes, and a database that keeps a transaction open for it, wait for a silent node.
_STAYS_FROZEN_S = 9


@pytest.mark.timeout(400)
@pytest.mark.parametrize("database", [DATABASE])
async def test_a_killed_nodes_shards_are_taken_over(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    async with three_nodes(tmp_path, [await new_database(request, database)] * 3) as run:
        killed_at = run.fault()
        await run.servers[2].kill()
        run.load.gone.add(run.servers[2])
        await shared_by(run.servers[:2], {"one", "two"})
        print(f"taken over after {(now_us() - killed_at) / 1e6:.1f} s")
        await run.goes_on()
        await run.reckoned(untouched=run.servers[:2])


@pytest.mark.timeout(400)
@pytest.mark.parametrize("database", [DATABASE])
async def test_a_resumed_frozen_node_does_no_harm(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    async with three_nodes(tmp_path, [await new_database(request, database)] * 3) as run:
        frozen = run.servers[1]
        assert frozen.process is not None
        owned = (await owners(run.servers[0]))["two"]
        stopped_at = run.fault()
        run.load.gone.add(frozen)
        frozen.process.send_signal(signal.SIGSTOP)
        await shared_by([run.servers[0], run.servers[2]], {"one", "three"})
        print(f"taken over after {(now_us() - stopped_at) / 1e6:.1f} s")
        await asyncio.sleep(max(_STAYS_FROZEN_S - (now_us() - stopped_at) / 1e6, 0))
        await shared_by([run.servers[0], run.servers[2]], {"one", "three"})
        frozen.process.send_signal(signal.SIGCONT)
        run.fault()

        async def serves() -> bool:
            return await is_ready(frozen)

        await until(serves)
        run.load.gone.discard(frozen)
        await shared_by(run.servers, set(NAMES))
        await run.goes_on()
        await run.reckoned(untouched=[run.servers[0], run.servers[2]])
        assert found_lost(frozen) >= owned


@pytest.mark.timeout(400)
@pytest.mark.parametrize("database", [DATABASE])
async def test_a_database_restart_under_load_loses_nothing(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    server, url = await own_database(request, database)
    async with three_nodes(tmp_path, [url] * 3) as run:
        stopped_at = now_us()
        await asyncio.to_thread(server.stop)
        await asyncio.sleep(1)
        await asyncio.to_thread(server.start)
        await run.goes_on()
        # However long the database takes to stop and to start, and the nodes to claim their shards.
        run.ledger.kills += range(stopped_at, now_us(), 1_000_000)
        await run.reckoned(BEFORE_FAULT_US + 2_000_000, untouched=run.servers)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("database", [DATABASE])
async def test_a_rolling_restart_with_another_secret_fails_no_request(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    async def prepare(servers: list[ServerProcess]) -> None:
        for server in servers:
            server.env |= STEADY

    async with three_nodes(tmp_path, [await new_database(request, database)] * 3, prepare=prepare) as run:
        # Each restart replaces the secret of the nodes as well, twice.
        for secret, former in (("a" * 32, STORED_SECRET), ("b" * 32, "a" * 32)):
            for server in run.servers:
                server.env |= {"TOCSIN_CLUSTER_SECRET": secret, "TOCSIN_CLUSTER_SECRET_FORMER": former}
                assert await server.stop() == 0
                await server.start()
                await shared_by(run.servers, set(NAMES))
        await run.reckoned()
        assert dict(run.load.failures) == {}


@pytest.mark.timeout(400)
async def test_workers_replaced_under_load_fail_no_request(tmp_path: Path, postgresql_url: str) -> None:
    server = ServerProcess(
        tmp_path / "data",
        "--store",
        postgresql_url,
        "--workers",
        str(_WORKERS),
        "--shards",
        "12",
        "--no-agent",
        # A client on a busy machine takes a while until it sends the next request on a connection that is about to be closed.
        env={**SOON, **STEADY, "TOCSIN_CLUSTER_LEAVE_DELAY": "2s"},
    )
    async with running(server):

        async def is_shared() -> bool:
            seen = await owners(server)
            return len(seen) == _WORKERS and evenly(seen)

        async def is_over() -> bool:
            return "rolling restart done" in server.log()

        await until(is_shared)
        before = await incarnations(server)
        async with at_work([server]) as run:
            assert server.process is not None
            server.process.send_signal(signal.SIGHUP)
            await until(is_over, 150)
            await until(is_shared)
            await run.reckoned()
            assert dict(run.load.failures) == {}
        after = await incarnations(server)
        assert len(after) == _WORKERS
        assert not after & before


async def incarnations(server: ServerProcess) -> set[str]:
    """The incarnations of the living nodes."""
    return {node["incarnation"] for node in (await view(server))["nodes"] if node["alive"]}
