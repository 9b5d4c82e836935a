"""Partitions: a node can't reach the database, the other nodes, or both, while no connection is closed. Guarantees hold,
other nodes fire the timers of its shards where necessary, and it rejoins by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.crash.cluster_run import BEFORE_FAULT_US, NAMES, Run, found_lost, three_nodes
from tests.support.cluster import (
    balanced,
    is_ready,
    new_database,
    now_us,
    owners,
    proxies_to,
    shared_by,
    through,
    until,
)
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.server import ServerProcess

#: How long a node may fire after its last contact with the database (`node_lease`).
_LEASE_US = 3_000_000
_STAYS_CUT_OFF_S = 4


class _Network(NamedTuple):
    """The third node's route to the database, and the routes between the nodes."""

    to_database: Proxy
    to_nodes: list[Proxy]

    def cut_off_third_from_peers(self, server: ServerProcess) -> None:
        """Blocks all traffic between the third node and the others, in both directions."""
        assert server.process is not None
        for proxy in self.to_nodes[:2]:
            proxy.silence(server.process.pid)
        self.to_nodes[2].silence()

    def heal(self) -> None:
        """Ends all partitions."""
        for proxy in (self.to_database, *self.to_nodes):
            proxy.speak()


@asynccontextmanager
async def _connected(folder: Path, url: str) -> AsyncIterator[tuple[Run, _Network]]:
    async with AsyncExitStack() as stack:
        ((to_database, through_proxy),) = await stack.enter_async_context(proxies_to([url]))
        to_nodes: list[Proxy] = []

        async def prepare(servers: list[ServerProcess]) -> None:
            for server in servers:
                port = free_port()
                to_nodes.append(await stack.enter_async_context(Proxy(("127.0.0.1", port))))
                through(server, to_nodes[-1], port)

        urls = [url, url, through_proxy]
        run = await stack.enter_async_context(three_nodes(folder, urls, prepare=prepare))
        await stack.enter_async_context(balanced(run.servers, run.load.gone))
        yield run, _Network(to_database, to_nodes)


async def _comes_back(run: Run) -> None:
    async def all_serve() -> bool:
        return all([await is_ready(server) for server in run.servers])

    await until(all_serve, 60)
    await shared_by(run.servers, set(NAMES))
    await run.goes_on()


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("database", "peers"), [("postgresql", True), ("mysql", False)])
async def test_a_node_cut_off_from_the_database_is_replaced_and_returns(
    tmp_path: Path, database: str, peers: bool, request: pytest.FixtureRequest
) -> None:
    async with _connected(tmp_path, await new_database(request, database)) as (run, network):
        owned = (await owners(run.servers[0]))["three"]
        cut_at = run.fault()
        network.to_database.silence()
        if peers:
            network.cut_off_third_from_peers(run.servers[2])
        await shared_by(run.servers[:2], {"one", "two"})
        print(f"taken over after {(now_us() - cut_at) / 1e6:.1f} s")
        run.ledger.kills += [cut_at + _LEASE_US // 3 * part for part in (1, 2, 3)]
        await run.goes_on()
        await asyncio.sleep(_STAYS_CUT_OFF_S)
        await shared_by(run.servers[:2], {"one", "two"})
        healed_at = run.fault()
        network.heal()
        await _comes_back(run)
        print(f"back after {(now_us() - healed_at) / 1e6:.1f} s")
        await run.reckoned(untouched=run.servers[:2])
        assert found_lost(run.servers[2]) >= owned


@pytest.mark.timeout(400)
async def test_partitioned_nodes_keep_their_shards(tmp_path: Path, postgresql_url: str) -> None:
    async with _connected(tmp_path, postgresql_url) as (run, network):
        await shared_by(run.servers, set(NAMES))
        before = await owners(run.servers[0])
        run.fault()
        network.cut_off_third_from_peers(run.servers[2])
        # It is slow: a write for a shard on the other side waits for its whole time budget.
        await run.goes_on(20)
        await asyncio.sleep(_STAYS_CUT_OFF_S)

        async def is_as_before() -> bool:
            # A node that the machine has halted for longer than its lease claims its shards again.
            return await owners(run.servers[0]) == before == await owners(run.servers[2])

        await until(is_as_before)
        run.fault()
        network.heal()
        await _comes_back(run)
        await run.reckoned(untouched=run.servers)


@pytest.mark.timeout(400)
async def test_repeated_connection_resets_lose_nothing(tmp_path: Path, postgresql_url: str) -> None:
    async with (
        proxies_to([postgresql_url] * 3) as reached,
        three_nodes(tmp_path, [through_proxy for _, through_proxy in reached]) as run,
    ):
        cut = 0
        for round_ in range(12):
            run.fault()
            cut += reached[round_ % 3][0].reset()
            await run.goes_on(50)
        assert cut > 12
        await run.goes_on()
        await run.reckoned(BEFORE_FAULT_US + 1_000_000)
