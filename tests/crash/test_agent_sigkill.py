"""The service agent, killed at random moments: every accepted call has exactly one end, and a call is executed twice
only if a kill interrupted its execution, which the log then shows."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.crash.agent_load import SUCCEEDED_LEAST, AgentLoad
from tests.crash.test_agent_nodes import account
from tests.support.cluster import running
from tests.support.nats import NatsServer
from tests.support.server import ServerProcess
from tests.support.slow_receiver import SlowReceiver

KILLS = 3
LIFETIME_S = (0.4, 2.0)
#: Fewer calls would prove little.
ACCEPTED_MIN = 120
#: The watchdog's grace, short enough for a test.
SETTINGS = {"TOCSIN_AGENT_WATCHDOG_GRACE": "4s", "TOCSIN_AGENT_REQUEST_TIMEOUT": "5s", "TOCSIN_SHARDS": "1"}


async def run(folder: Path, *flags: str) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    server = ServerProcess(folder / "data", *flags, env=SETTINGS)
    async with SlowReceiver(lambda path: moments.choice([0.0, 0.0, 0.01, 0.2])) as receiver, running(server):
        load = AgentLoad([server], receiver.url, seed)
        load.start()
        for _ in range(KILLS):
            await asyncio.sleep(moments.uniform(*LIFETIME_S))
            await server.kill()
            await server.start()
        # On a slow machine the server is starting most of the time.
        await load.accepts(ACCEPTED_MIN - len(load.accepted))
        sums = await account(load, server, receiver, [server])
        assert sums["Succeeded"] > SUCCEEDED_LEAST * len(load.accepted)
        assert await server.stop() == 0


@pytest.mark.timeout(400)
async def test_kills_lose_no_call_on_sqlite_with_the_embedded_bus(tmp_path: Path) -> None:
    await run(tmp_path)


@pytest.mark.timeout(400)
async def test_kills_lose_no_call_on_postgresql_with_nats(
    tmp_path: Path, nats: NatsServer, postgresql_url: str
) -> None:
    await run(tmp_path, "--broker", nats.url, "--agent-database", postgresql_url)


@pytest.mark.timeout(400)
async def test_kills_lose_no_call_with_the_timer_engine(tmp_path: Path) -> None:
    await run(tmp_path, "--agent-timer", "engine")
