"""One agent at a time on a PostgreSQL database: terms, heartbeats, and whoever comes back late."""

from __future__ import annotations

import asyncio
import math

import asyncpg
import pytest
from sqlalchemy import Connection

from tests.support.agent_database import call, insert, load, write
from tocsin.agent.adapters.sql.database import AgentDatabase
from tocsin.agent.adapters.sql.postgresql_lock import LOCK_KEY, Claimant
from tocsin.agent.adapters.sql.settings import SqlSettings
from tocsin.model.errors import StoreLocked, StoreUnavailable

#: A gate that a transaction waits at.
GATE = 4711
QUICK = SqlSettings(lock_wait_s=0.05, lock_retry_s=0.02, lock_check_s=0.05, lock_lease_s=0.5, connect_timeout_s=2.0)


def agent(url: str, node: str, settings: SqlSettings = QUICK) -> AgentDatabase:
    return AgentDatabase(url, settings, Claimant(node, node))


async def claimed_by_another(url: str, node: str = "other") -> None:
    """As another agent would, that had got the lock."""
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE agent_leader SET term = term + 1, node = $1", node)
    await connection.close()


async def end_lock_session(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(
        "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid"
        " WHERE a.application_name = 'tocsin agent lock' AND a.datname = current_database()"
        " AND l.locktype = 'advisory' AND l.granted"
    )
    await connection.close()


async def test_each_opening_begins_a_term(postgresql_url: str) -> None:
    terms = []
    for _ in range(3):
        database = agent(postgresql_url, "one")
        await database.open()
        assert database.held
        terms.append(database.term)
        await database.close()
    assert terms == [1, 2, 3]


async def test_a_write_of_a_former_term_is_refused(postgresql_url: str) -> None:
    """Although its lock's session lives: the fence decides, not the lock."""
    database = agent(postgresql_url, "one", SqlSettings(lock_check_s=3600))
    await database.open()
    await insert(database, before := call())
    await claimed_by_another(postgresql_url)
    with pytest.raises(StoreUnavailable, match="another node runs the agent"):
        await insert(database, call())
    assert "another node" in await database.lost()
    assert not database.held
    # It may still look.
    assert await database.queries.find(before.key) is not None
    await database.close()


async def test_whoever_was_overtaken_notices_without_writing(postgresql_url: str) -> None:
    database = agent(postgresql_url, "one")
    await database.open()
    await claimed_by_another(postgresql_url)
    assert "another node" in await database.lost()
    await database.close()


async def test_a_change_of_hands_waits_for_the_transaction_under_way(postgresql_url: str) -> None:
    first = agent(postgresql_url, "one", SqlSettings(lock_retry_s=3600, lock_check_s=3600))
    second = agent(postgresql_url, "two")
    await first.open()
    gate, between = await asyncpg.connect(postgresql_url), await asyncpg.connect(postgresql_url)
    await gate.execute("SELECT pg_advisory_lock($1)", GATE)
    writing = asyncio.create_task(write(first, _wait_at_gate))
    await _until(gate, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    # Somebody who stands in line has the lock before the first one can take it again.
    taken = asyncio.create_task(between.execute("SELECT pg_advisory_lock($1)", LOCK_KEY))
    await _until(gate, "SELECT count(*) > 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    await end_lock_session(postgresql_url)
    await taken
    # It may take the lock back as long as nobody has begun a new term, so it has to be late to the one given up below.
    await _refused_the_lock(first)
    opening = asyncio.create_task(second.open(math.inf))
    await between.close()
    await _until(
        gate,
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE agent_leader%'"
        " AND datname = current_database()",
    )
    assert not opening.done()
    await gate.execute("SELECT pg_advisory_unlock($1)", GATE)
    # What had begun in the old term is done before the new one begins.
    await writing
    await opening
    assert await gate.fetchval("SELECT beats FROM agent_heartbeat") >= 1_000_000
    assert "runs the agent" in await first.lost()
    one = call()
    with pytest.raises(StoreUnavailable):
        await insert(first, one)
    await insert(second, one)
    assert await load(second, one.key) == one
    await gate.close()
    await first.close()
    await second.close()


def _wait_at_gate(connection: Connection) -> None:
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({GATE})")
    connection.exec_driver_sql("UPDATE agent_heartbeat SET beats = beats + 1000000")


async def test_one_that_stands_still_loses_it(postgresql_url: str) -> None:
    first = agent(postgresql_url, "one")
    await first.open()
    await first.close()
    # A session with the lock, and nobody who moves.
    frozen = await asyncpg.connect(postgresql_url)
    await frozen.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
    second = agent(postgresql_url, "two")
    await second.open(math.inf)
    assert frozen.is_closed()
    assert second.term == 2
    await second.close()


async def test_one_that_moves_keeps_it(postgresql_url: str) -> None:
    first, second = agent(postgresql_url, "one"), agent(postgresql_url, "two")
    await first.open()
    told: list[str] = []
    with pytest.raises(StoreLocked, match="node one"):
        await second.open(3 * QUICK.lock_lease_s, told.append)
    assert told == ["one"]
    assert first.held
    await insert(first, call())
    await first.close()


async def test_those_who_wait_follow_one_another(postgresql_url: str) -> None:
    agents = [agent(postgresql_url, name) for name in ("one", "two", "three")]
    await agents[0].open()
    waiting = {asyncio.create_task(each.open(math.inf)): each for each in agents[1:]}
    await agents[0].close()
    done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    (second,) = done
    assert waiting[second].term == 2
    await waiting[second].close()
    (third,) = rest
    await third
    assert waiting[third].term == 3
    await waiting[third].close()


async def test_a_lost_session_is_made_anew_in_the_same_term(postgresql_url: str) -> None:
    database = agent(postgresql_url, "one")
    await database.open()
    await end_lock_session(postgresql_url)
    while True:
        try:
            await insert(database, call())
        except StoreUnavailable:
            # Refused while the lock isn't held; there is nothing to wait on for its being taken again.
            await asyncio.sleep(0.01)
            continue
        if database.held:
            break
    assert database.term == 1
    await database.close()


async def test_waiting_can_be_given_up(postgresql_url: str) -> None:
    first, second = agent(postgresql_url, "one"), agent(postgresql_url, "two")
    await first.open()
    told = asyncio.Event()
    waiting = asyncio.create_task(second.open(math.inf, lambda node: told.set()))
    await told.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await first.close()
    third = agent(postgresql_url, "three")
    await third.open()
    assert third.term == 2
    await third.close()


async def _refused_the_lock(database: AgentDatabase) -> None:
    """Until it has noticed that its session ended, and found the lock taken."""
    found = ""
    while "another has it" not in found:
        await asyncio.sleep(0.01)
        if not database.held:
            with pytest.raises(StoreUnavailable) as refused:
                await insert(database, call())
            found = str(refused.value)


async def _until(connection: asyncpg.Connection, query: str) -> None:
    """There is nothing to wait on for a backend that waits."""
    while not await connection.fetchval(query):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
