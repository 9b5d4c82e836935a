"""The real server, killed at random moments under load: no acknowledged write is lost, no canceled timer fires."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.crash.cluster_run import at_work
from tests.support.cluster import running
from tests.support.server import ServerProcess

KILLS = 10
LIFETIME_S = (0.3, 1.6)
#: A client's average pause between two requests, which leaves most of the machine to the server, so that it starts sooner.
PACE_S = 0.02
#: With fewer writes the test would prove little.
ACKNOWLEDGED_MIN = 1_000


@pytest.mark.timeout(400)
async def test_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    async with running(server), at_work([server], PACE_S) as run:
        for _ in range(KILLS):
            await asyncio.sleep(random.uniform(*LIFETIME_S))
            run.fault()
            await server.kill()
            await server.start()
        # On a slow machine the server is being started most of the time.
        await run.goes_on(ACKNOWLEDGED_MIN - run.acknowledged())
        await run.reckoned()
        assert {failure for failure in run.load.failures if failure.isdigit()} <= {"503"}
        assert await server.stop() == 0
