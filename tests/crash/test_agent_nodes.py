"""The service agent of several nodes on one PostgreSQL database. When the node that runs it fails, another one takes
over, every accepted call has exactly one end, and a node that returns late changes nothing."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from pathlib import Path

import asyncpg
import pytest

from tests.crash.agent_load import SUCCEEDED_LEAST, AgentLoad, check, details_at_the_end, ends_reported
from tests.support.cluster import SOON, STEADY, running, shared_by, until, view
from tests.support.nats import NatsServer
from tests.support.server import ServerProcess
from tests.support.slow_receiver import SlowReceiver

SETTINGS = {
    **SOON,
    "TOCSIN_AGENT_WATCHDOG_GRACE": "4s",
    "TOCSIN_AGENT_REQUEST_TIMEOUT": "5s",
    "TOCSIN_AGENT_SQL_LOCK_WAIT": "100ms",
}
NAMES = ("one", "two")


def nodes_of(folder: Path, store: str, *flags: str) -> list[ServerProcess]:
    return [
        ServerProcess(folder / name, "--store", store, *flags, env={**SETTINGS, "TOCSIN_NODE_NAME": name})
        for name in NAMES
    ]


async def leaders(asked: ServerProcess) -> list[str]:
    """The names of the nodes that report that they run the agent."""
    return [node["node"] for node in (await view(asked))["nodes"] if node.get("agent")]


async def leads(nodes: list[ServerProcess], asked: ServerProcess) -> ServerProcess:
    """The one node that runs the agent, once there is one."""
    found: list[str] = []

    async def is_one() -> bool:
        found[:] = await leaders(asked)
        return len(found) == 1

    await until(is_one)
    return nodes[NAMES.index(found[0])]


async def account(
    load: AgentLoad, node: ServerProcess, receiver: SlowReceiver, nodes: list[ServerProcess]
) -> Counter[str]:
    """Stops the clients, waits for the ends and checks them."""
    await load.stop()
    tenants = {call_id: call.tenant for call_id, call in load.accepted.items()}
    details = await details_at_the_end(tenants, node)
    sums = check(load, details, receiver, "\n".join(each.log()[-2000:] for each in nodes))
    for call_id in random.Random(load.seed).sample(sorted(details), min(100, len(details))):
        assert await ends_reported(node, tenants[call_id], call_id) == 1
    print(f"{len(details)} calls: {dict(sums)}; {len(load.refused)} refusals: {Counter(r[1] for r in load.refused)}")
    return sums


def flags_of(kind: str, request: pytest.FixtureRequest) -> tuple[str, ...]:
    if kind == "nats":
        server: NatsServer = request.getfixturevalue("nats")
        return ("--broker", server.url)
    return ("--agent-timer", "engine") if kind == "engine" else ()


def scene(folder: Path, store: str, *flags: str) -> tuple[list[ServerProcess], int]:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    return nodes_of(folder, store, *flags), seed


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("kind", "kills"), [("nats", 2), ("engine", 1)])
async def test_killing_the_agents_node_loses_no_call(
    kind: str, kills: int, tmp_path: Path, postgresql_url: str, request: pytest.FixtureRequest
) -> None:
    nodes, seed = scene(tmp_path, postgresql_url, *flags_of(kind, request))
    moments = random.Random(seed)
    async with SlowReceiver(lambda path: moments.choice([0.0, 0.0, 0.01, 0.2])) as receiver, running(*nodes):
        await shared_by(nodes, set(NAMES))
        load = AgentLoad(nodes, receiver.url, seed)
        load.start()
        # With two kills each node once, so that the first one runs the agent a second time.
        for _ in range(kills):
            await load.accepts(80)
            leader = await leads(nodes, nodes[0])
            other = nodes[1 - nodes.index(leader)]
            killed_s = time.monotonic()
            await leader.kill()
            load.gone.add(leader)
            await load.accepts(60)
            assert await leads(nodes, other) is other
            print(f"nothing was accepted for {load.longest_pause_s(killed_s):.2f} s")
            await leader.start()
            load.gone.discard(leader)
            assert await leads(nodes, leader) is other
        sums = await account(load, nodes[0], receiver, nodes)
        assert sums["Succeeded"] > SUCCEEDED_LEAST * len(load.accepted)


@pytest.mark.timeout(400)
async def test_freezing_the_agents_node_loses_no_call(
    tmp_path: Path, postgresql_url: str, request: pytest.FixtureRequest
) -> None:
    # With the embedded bus, which keeps the messages of the former epoch in the frozen process.
    nodes, seed = scene(tmp_path, postgresql_url, *flags_of("embedded", request))
    moments = random.Random(seed)
    async with SlowReceiver(lambda path: moments.choice([0.0, 0.0, 0.01, 0.2])) as receiver, running(*nodes):
        await shared_by(nodes, set(NAMES))
        load = AgentLoad(nodes, receiver.url, seed)
        load.start()
        await load.accepts(80)
        leader = await leads(nodes, nodes[0])
        other = nodes[1 - nodes.index(leader)]
        assert leader.process is not None
        stopped_s = time.monotonic()
        load.gone.add(leader)
        leader.process.send_signal(signal.SIGSTOP)
        await load.accepts(60)
        assert await leads(nodes, other) is other
        print(f"nothing was accepted for {load.longest_pause_s(stopped_s):.2f} s")
        await asyncio.sleep(max(0.0, stopped_s + 15 - time.monotonic()))
        epochs = await epoch(postgresql_url)
        load.gone.discard(leader)
        leader.process.send_signal(signal.SIGCONT)
        await load.accepts(60)
        await until(lambda: _log_has(leader, "agent leadership lost"))
        assert await leads(nodes, leader) is other
        await account(load, leader, receiver, nodes)
        assert await epoch(postgresql_url) == epochs
        # It really stands by: when the other node stops, it takes over.
        await other.stop()
        assert await leads(nodes, leader) is leader


@pytest.mark.timeout(400)
async def test_stopping_the_agents_node_loses_no_call(tmp_path: Path, postgresql_url: str) -> None:
    nodes, seed = scene(tmp_path, postgresql_url)
    for each in nodes:
        each.env |= STEADY
    async with SlowReceiver(lambda path: 0.01) as receiver, running(*nodes):
        await shared_by(nodes, set(NAMES))
        load = AgentLoad(nodes, receiver.url, seed)
        load.start()
        await load.accepts(80)
        leader = await leads(nodes, nodes[0])
        stopped_s = time.monotonic()
        assert await leader.stop() == 0
        other = nodes[1 - nodes.index(leader)]
        await load.accepts(50)
        assert await leads(nodes, other) is other
        print(f"nothing was accepted for {load.longest_pause_s(stopped_s):.2f} s")
        await leader.start()
        await shared_by(nodes, set(NAMES))
        sums = await account(load, nodes[0], receiver, nodes)
        assert sums == Counter(Succeeded=len(load.accepted), interrupted=0, repeated=0)
        # A connection may break with the stopping node, but no request gets a 503.
        assert [refusal for refusal in load.refused if refusal[1]] == []


async def _log_has(node: ServerProcess, text: str) -> bool:
    return text in node.log()


async def epoch(url: str) -> int:
    """How often the agent's database has changed hands."""
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT epoch FROM agent_leader"))
    finally:
        await connection.close()
