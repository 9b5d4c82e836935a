"""Real nodes with wrong clocks: no timer fires early, and other nodes soon fire the timers of their shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.agent_load import SUCCEEDED_LEAST, AgentLoad
from tests.crash.cluster_run import NAMES, three_nodes
from tests.crash.test_agent_nodes import account, leads, nodes_of
from tests.support.clocks import SettableClock
from tests.support.cluster import is_ready, now_us, running, shared_by, until, view
from tests.support.server import ServerProcess
from tests.support.slow_receiver import SlowReceiver


@pytest.mark.timeout(400)
async def test_a_node_with_a_wrong_clock_releases_its_shards(tmp_path: Path, postgresql_url: str) -> None:
    clock = SettableClock(tmp_path)

    async def prepare(servers: list[ServerProcess]) -> None:
        servers[2].env |= clock.env

    async with three_nodes(tmp_path, [postgresql_url] * 3, prepare=prepare) as run:
        wrong_at = run.fault()
        # From one wrong time to the other it stays without shards.
        for seconds in (20, -20):
            clock.set_off(seconds)
            await shared_by(run.servers[:2], {"one", "two"})
            print(f"handed over after {(now_us() - wrong_at) / 1e6:.1f} s")
            run.fault()
            # It still accepts writes and forwards them.
            await run.goes_on()
            assert not await is_ready(run.servers[2])
            (third,) = [node for node in (await view(run.servers[0]))["nodes"] if node["node"] == "three"]
            assert (third["skewed"], third["shards"], third["alive"]) == (True, 0, True)
        clock.set_off(0)
        await shared_by(run.servers, set(NAMES))
        run.fault()
        await run.goes_on()
        await run.reckoned(untouched=run.servers[:2])
        assert '"event": "clock distrusted"' in run.servers[2].log()


@pytest.mark.timeout(400)
async def test_the_agent_moves_to_a_node_with_a_correct_clock(tmp_path: Path, postgresql_url: str) -> None:
    nodes = nodes_of(tmp_path, postgresql_url)
    clocks = []
    for node in nodes:
        node.data_dir.mkdir(parents=True)
        clocks.append(SettableClock(node.data_dir))
        node.env |= clocks[-1].env
    async with SlowReceiver(lambda path: 0.0) as receiver, running(*nodes):
        await shared_by(nodes, {"one", "two"})
        load = AgentLoad(nodes, receiver.url, seed=1)
        load.start()
        await load.accepts(80)
        leader = await leads(nodes, nodes[0])
        other = nodes[1 - nodes.index(leader)]
        # Forwards: what waits for its instant would be executed at once by whoever believed it.
        clocks[nodes.index(leader)].set_off(20)

        async def has_moved() -> bool:
            return await leads(nodes, other) is other

        await until(has_moved)
        await load.accepts(60)
        clocks[nodes.index(leader)].set_off(0)
        await until(lambda: is_ready(leader))
        await load.accepts(60)
        assert await leads(nodes, leader) is other
        sums = await account(load, other, receiver, nodes)
        assert sums["Succeeded"] > SUCCEEDED_LEAST * len(load.accepted)
