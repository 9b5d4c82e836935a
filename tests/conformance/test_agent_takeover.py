"""A node's run of the agent ends completely, whenever it is stopped."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import asyncpg

from tests.support.patience import PATIENCE_S
from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.http import HttpCaller
from tocsin.model.validation import InputRules
from tocsin.server.agent import ServiceAgent
from tocsin.service_calls.engine_timers import DueCaller
from tocsin.settings import load_settings
from tocsin.stores.service_calls.database import Claimant, agent_database
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.telemetry.clock import SystemClock

GATE = random.randrange(2**31)


async def test_a_stop_during_the_handover_releases_everything(tmp_path: Path, postgresql_url: str) -> None:
    """Otherwise other nodes would wait for the agent until the process ends, which may take as long as its callbacks."""
    settings = load_settings({"store": "memory://", "agent_database": postgresql_url, "data_dir": tmp_path})
    clock, egress = SystemClock(), EgressPolicy(True, ())
    http = HttpCaller(settings.callbacks, egress, clock)
    caller = DueCaller(clock, 1)
    agent = ServiceAgent(
        settings,
        http,
        caller,
        clock,
        InputRules(settings.input, egress.check_url),
        lambda event: None,
        Claimant("one", "one"),
        timers_shared=False,
    )
    await agent.open()
    gate = await asyncpg.connect(postgresql_url)
    await gate.execute("SELECT pg_advisory_lock($1)", GATE)
    database = agent._database
    assert database is not None
    # It waits for what is in progress.
    writing = asyncio.create_task(
        database.write(lambda session: session.rows(f"SELECT pg_advisory_xact_lock({GATE})", ()))
    )
    handover = asyncio.create_task(agent._abandon())
    await asyncio.sleep(0)
    handover.cancel()
    await asyncio.wait([handover])
    await gate.execute("SELECT pg_advisory_unlock($1)", GATE)
    await agent.stop()
    await asyncio.wait([writing])
    other = agent_database(postgresql_url, SqlSettings(lock_wait_s=0, leader_lease_s=PATIENCE_S))
    await other.open()
    await other.close()
    await caller.close()
    await http.close()
    await gate.close()
