"""A node's run of the agent ends completely, whenever it is stopped, and whatever becomes of the database."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import asyncpg
import nats
from nats.errors import NoRespondersError

from tests.support.agent_database import call, insert
from tests.support.cluster import until
from tests.support.flow_gates import OpenGate
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.http import HttpCaller
from tocsin.model.validation import InputRules
from tocsin.ports.clock import Clock
from tocsin.ports.credentials import NoCallCredentials
from tocsin.ports.seals import NoSeals
from tocsin.server.agent import ServiceAgent
from tocsin.server.agent_modules import AgentModules
from tocsin.service_calls.engine_timers import DueCaller
from tocsin.service_calls.ports import TimerEntry
from tocsin.service_calls.timer import PollingTimers
from tocsin.settings import load_settings
from tocsin.stores.service_calls.database import Claimant, agent_database
from tocsin.stores.service_calls.postgresql_lock import LOCK_KEY
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.telemetry.clock import MovableClock, SystemClock
from tocsin.timers.service import TimerService

GATE = random.randrange(2**31)


@asynccontextmanager
async def an_agent(folder: Path, url: str, clock: Clock, **settled: str) -> AsyncIterator[ServiceAgent]:
    """A node's agent, which holds the database, before its start."""
    settings = load_settings({"store": "memory://", "agent_database": url, "data_dir": folder, **settled})
    egress = EgressPolicy(True, ())
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
    yield agent
    await caller.close()
    await http.close()


async def start(agent: ServiceAgent) -> AgentModules:
    """Starts its modules, which need no engine of timers."""
    service: Any = SimpleNamespace(seals=NoSeals(), unfit=False)
    await agent.start(cast("TimerService", service), OpenGate(), NoCallCredentials())
    assert agent.modules is not None
    return agent.modules


async def a_call_waits(agent: ServiceAgent) -> PollingTimers:
    """A call that falls due when the clock is set forward by more than an hour. Returns the timers that know it."""
    database, modules = agent._database, agent.modules
    assert database is not None
    assert modules is not None
    assert modules._polling is not None
    due_at = SystemClock().now_us() + 3_600_000_000
    waiting = call(due_at=due_at)
    await insert(database, waiting)
    await modules._polling.schedule([TimerEntry(*waiting.key, waiting.correlation_id, due_at, due_at)])
    return modules._polling


def falls_due(modules: AgentModules, clock: MovableClock) -> None:
    clock.offset_us = 2 * 3_600_000_000
    modules.clock_moved()


async def take_lock(url: str, other: asyncpg.Connection) -> None:
    """Gives the agent's lock to another session, which claims nothing."""
    # It waits for the lock, so that the agent can't be faster when its session ends.
    taking = asyncio.create_task(other.execute("SELECT pg_advisory_lock($1)", LOCK_KEY))
    ending = await asyncpg.connect(url)
    await until_found(ending, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    await ending.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'tocsin agent lock' AND datname = current_database()"
    )
    await taking
    await ending.close()


async def until_found(connection: asyncpg.Connection, query: str) -> None:
    async def found() -> bool:
        return bool(await connection.fetchval(query))

    await until(found)


async def test_a_stop_during_the_handover_releases_everything(tmp_path: Path, postgresql_url: str) -> None:
    """Otherwise other nodes would wait for the agent until the process ends, which may take as long as its callbacks."""
    async with an_agent(tmp_path, postgresql_url, SystemClock()) as agent:
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
        await gate.close()


async def test_a_stop_ends_although_another_node_takes_over_the_database_meanwhile(
    tmp_path: Path, postgresql_url: str
) -> None:
    """A message that the modules can't handle any more is not waited for."""
    clock = MovableClock(SystemClock())
    gate, other = await asyncpg.connect(postgresql_url), await asyncpg.connect(postgresql_url)
    async with an_agent(tmp_path, postgresql_url, clock) as agent:
        modules = await start(agent)
        polling = await a_call_waits(agent)
        async with gate.transaction():
            # What writes waits.
            await gate.execute("UPDATE agent_leader SET epoch = epoch + 1, node = 'other'")
            falls_due(modules, clock)
            await until_found(
                other,
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR SHARE'"
                " AND datname = current_database()",
            )
            stopping = asyncio.create_task(agent.stop())

            async def drains() -> bool:
                return polling._closing

            await until(drains)
        async with asyncio.timeout(PATIENCE_S):
            await stopping
    await gate.close()
    await other.close()


async def test_a_drain_ends_in_time_although_the_database_is_away(tmp_path: Path, postgresql_url: str) -> None:
    """Whether or not another node takes over: messages that can't be handled are delivered again without end."""
    clock = MovableClock(SystemClock())
    other = await asyncpg.connect(postgresql_url)
    async with an_agent(tmp_path, postgresql_url, clock) as agent:
        modules = await start(agent)
        polling = await a_call_waits(agent)
        await take_lock(postgresql_url, other)
        falls_due(modules, clock)

        async def publishes() -> bool:
            return bool(polling._publishing)

        await until(publishes)
        modules._drain_timeout_us = 100_000
        async with asyncio.timeout(PATIENCE_S):
            await modules.drain()
        await agent.stop()
    await other.close()


async def test_an_agent_answers_commands_on_nats_only_while_it_holds_the_lock(
    tmp_path: Path, postgresql_url: str, shared_nats: NatsServer
) -> None:
    """Another agent may hold it, and the first reply to a command counts."""
    prefix = f"t{GATE}"
    other = await asyncpg.connect(postgresql_url)
    client = await nats.connect(shared_nats.url)

    async def answered(nobody: bool = False) -> bool:
        try:
            await client.request(f"{prefix}-cmd.tenant.call.SubmitServiceCall", b"not an envelope", timeout=0.5)
        except NoRespondersError:
            return nobody
        except TimeoutError:
            # It was taken, but not answered.
            return False
        return not nobody

    async def refused() -> bool:
        return await answered(nobody=True)

    broker = {"broker": shared_nats.url, "broker_prefix": prefix}
    async with an_agent(tmp_path, postgresql_url, SystemClock(), **broker) as agent:
        await start(agent)
        await until(answered)
        await take_lock(postgresql_url, other)
        await until(refused)
        await other.execute("SELECT pg_advisory_unlock($1)", LOCK_KEY)
        await until(answered)
        await agent.stop()
    await client.close()
    await other.close()
