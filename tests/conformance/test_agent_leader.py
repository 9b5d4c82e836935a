"""One agent at a time on a PostgreSQL database: epochs, heartbeats, and agents that return late."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.support.agent_database import call, insert, load, write
from tests.support.cluster import proxies_to
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer
from tocsin.model.errors import StoreLocked, StoreUnavailable
from tocsin.stores.service_calls.database import AgentDatabase, Claimant, agent_database
from tocsin.stores.service_calls.postgresql import PostgresqlDatabase
from tocsin.stores.service_calls.postgresql_lock import LOCK_KEY, Holder, Watch
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.statements import Session

#: A gate that a transaction waits at.
GATE = 4711
#: No agent counts as frozen except where a test requires it: both are in one process, and one that gets no turn looks frozen
#: to the other.
QUICK = SqlSettings(
    lock_wait_s=PATIENCE_S,
    leader_retry_interval_s=0.02,
    leader_renew_interval_s=0.05,
    leader_lease_s=PATIENCE_S,
    lock_timeout_ms=int(PATIENCE_S * 1_000),
    connect_timeout_s=PATIENCE_S,
)


def agent(url: str, node: str, settings: SqlSettings = QUICK) -> AgentDatabase:
    return agent_database(url, settings, Claimant(node, node))


async def claimed_by_another(url: str, node: str = "other") -> None:
    """Claims the database as another agent with the lock would."""
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE agent_leader SET epoch = epoch + 1, node = $1", node)
    await connection.close()


#: The server process that has the agent's lock.
_LOCK_SESSION = (
    "SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid"
    " WHERE a.application_name = 'tocsin agent lock' AND a.datname = current_database()"
    " AND l.locktype = 'advisory' AND l.granted"
)


@asynccontextmanager
async def claims_kept_back(url: str) -> AsyncIterator[None]:
    """Blocks every claim at the row that it changes; reads of that row are not blocked. Uses its own connection: within
    a transaction the server shows its activity as it was at first."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("SELECT FROM agent_leader FOR UPDATE")
            yield
    finally:
        await connection.close()


async def end_lock_session(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(f"SELECT pg_terminate_backend(holder.pid) FROM ({_LOCK_SESSION}) AS holder")
    await connection.close()


async def test_each_open_begins_an_epoch(postgresql_url: str) -> None:
    epochs = []
    for _ in range(3):
        database = agent(postgresql_url, "one")
        await database.open()
        assert database.lock_held
        epochs.append(database.epoch)
        await database.close()
    assert epochs == [1, 2, 3]


async def test_a_write_of_a_former_epoch_is_refused(postgresql_url: str) -> None:
    """Although its lock's session is alive: the fence decides, not the lock."""
    database = agent(postgresql_url, "one", SqlSettings(leader_renew_interval_s=3600))
    await database.open()
    await insert(database, before := call())
    await claimed_by_another(postgresql_url)
    with pytest.raises(StoreUnavailable, match="another node has taken over"):
        await insert(database, call())
    assert "another node" in await database.lost()
    assert not database.lock_held
    # It may still read.
    assert await database.queries.find(before.key) is not None
    await database.close()


async def test_a_superseded_leader_notices_without_writing(postgresql_url: str) -> None:
    database = agent(postgresql_url, "one")
    await database.open()
    await claimed_by_another(postgresql_url)
    assert "another node" in await database.lost()
    await database.close()


async def test_a_takeover_waits_for_the_transaction_in_progress(postgresql_url: str) -> None:
    gate = await asyncpg.connect(postgresql_url)
    # The first one has a role of its own, so that the server can keep it from reconnecting before the other has begun.
    role = f"one_{gate.get_server_pid()}"
    await gate.execute(f"CREATE ROLE {role} SUPERUSER LOGIN")
    first = agent(postgresql_url.replace("postgres@", f"{role}@"), "one")
    second = agent(postgresql_url, "two")
    await first.open()
    await gate.execute("SELECT pg_advisory_lock($1)", GATE)
    writing = asyncio.create_task(write(first, _wait_at_gate))
    await _until(gate, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    await gate.execute(f"ALTER ROLE {role} NOLOGIN")
    await end_lock_session(postgresql_url)
    opening = asyncio.create_task(second.open(math.inf))
    await _until(
        gate,
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE agent_leader%'"
        " AND datname = current_database()",
    )
    assert not opening.done()
    await gate.execute("SELECT pg_advisory_unlock($1)", GATE)
    # Transactions of the old epoch are complete before the new one begins.
    await writing
    await opening
    assert await gate.fetchval("SELECT beats FROM agent_heartbeat") >= 1_000_000
    assert not first.lock_held
    await gate.execute(f"ALTER ROLE {role} LOGIN")
    assert "has taken over the agent" in await first.lost()
    one = call()
    with pytest.raises(StoreUnavailable):
        await insert(first, one)
    await insert(second, one)
    assert await load(second, one.key) == one
    await gate.close()
    await first.close()
    await second.close()


async def _wait_at_gate(session: Session) -> None:
    await session.rows(f"SELECT pg_advisory_xact_lock({GATE})", ())
    await session.count("UPDATE agent_heartbeat SET beats = beats + 1000000", ())


async def test_heartbeats_before_the_claim_commits_do_not_end_leadership(postgresql_url: str) -> None:
    before = agent(postgresql_url, "before")
    await before.open()
    await before.close()
    gate = await asyncpg.connect(postgresql_url)
    # A constraint that is checked at COMMIT by a function that waits at the gate.
    await gate.execute(f"""
        CREATE FUNCTION wait_in_commit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock({GATE}); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER waits AFTER UPDATE ON agent_leader DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait_in_commit();
    """)
    await gate.execute("SELECT pg_advisory_lock($1)", GATE)
    one = agent(postgresql_url, "one")
    opening = asyncio.create_task(one.open())
    await _until(
        gate,
        "SELECT count(*) FROM pg_stat_activity AS beat JOIN pg_stat_activity AS claim USING (datname)"
        " WHERE datname = current_database() AND beat.query LIKE 'UPDATE agent_heartbeat%' AND beat.state = 'idle'"
        " AND claim.query LIKE 'COMMIT%' AND claim.wait_event_type = 'Lock' AND beat.query_start > claim.query_start",
    )
    await gate.execute("SELECT pg_advisory_unlock($1)", GATE)
    await opening
    assert one.lock_held
    await insert(one, call())
    await one.close()
    await gate.close()


async def test_a_heartbeat_from_before_the_claim_does_not_affect_the_new_epoch(postgresql_url: str) -> None:
    """Sent without an epoch, it is answered when one has begun."""
    before = agent(postgresql_url, "before")
    await before.open()
    await before.close()
    gate = await asyncpg.connect(postgresql_url)
    # Waits for every statement, including one without effect; by then it has read the epoch.
    await gate.execute(f"""
        CREATE FUNCTION wait_in_beat() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock({GATE}); RETURN NULL; END $$;
        CREATE TRIGGER waits AFTER UPDATE ON agent_heartbeat FOR EACH STATEMENT EXECUTE FUNCTION wait_in_beat();
    """)
    await gate.execute("SELECT pg_advisory_lock($1)", GATE)
    beats = await gate.fetchval("SELECT beats FROM agent_heartbeat")
    one = agent(postgresql_url, "one")
    async with claims_kept_back(postgresql_url):
        opening = asyncio.create_task(one.open())
        await _until(
            gate, f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = {GATE}"
        )
    await opening
    lost = asyncio.create_task(one.lost())
    await gate.execute("SELECT pg_advisory_unlock($1)", GATE)
    beaten = asyncio.create_task(_until(gate, f"SELECT beats > {beats} FROM agent_heartbeat"))
    await asyncio.wait({lost, beaten}, return_when=asyncio.FIRST_COMPLETED)
    assert not lost.done()
    await beaten
    assert one.lock_held
    lost.cancel()
    await one.close()
    await gate.close()


async def test_a_session_lost_before_the_claim_is_replaced(postgresql_url: str) -> None:
    before = agent(postgresql_url, "before")
    await before.open()
    await before.close()
    gate = await asyncpg.connect(postgresql_url)
    one = agent(postgresql_url, "one")
    claiming = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE agent_leader%'"
        " AND datname = current_database()"
    )
    async with claims_kept_back(postgresql_url):
        opening = asyncio.create_task(one.open())
        await _until(gate, claiming)
        lock_held = await gate.fetchval(_LOCK_SESSION)
        await end_lock_session(postgresql_url)
        await _until(gate, f"SELECT coalesce(({_LOCK_SESSION}), {lock_held}) != {lock_held}")
    await opening
    # The server has given the lock to its new session; the answer may still be on its way.
    async with asyncio.timeout(PATIENCE_S):
        while not one.lock_held:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await insert(one, call())
    assert (one.lock_held, one.epoch) == (True, 2)
    await one.close()
    await gate.close()


async def test_a_frozen_leader_loses_the_lock(postgresql_url: str) -> None:
    first = agent(postgresql_url, "one")
    await first.open()
    await first.close()
    # A session that holds the lock, without a heartbeat.
    frozen = await asyncpg.connect(postgresql_url)
    await frozen.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
    second = agent(postgresql_url, "two", dataclasses.replace(QUICK, leader_lease_s=0.5))
    await second.open(math.inf)
    assert frozen.is_closed()
    assert second.epoch == 2
    await second.close()


def test_a_gap_between_observations_does_not_count_as_silence() -> None:
    """All processes of a suspended machine wake at once, and the holder was frozen as well."""
    looks_s = iter((0.0, 1.0, 2.0, 3_600.0, 3_601.0, 3_602.0))
    watch, holder = Watch(1.0, lambda: next(looks_s)), Holder(pid=1, node="one", epoch=1, beats=7)
    assert [watch.silent_s(holder) for _ in range(5)] == [0.0, 1.0, 2.0, 4.0, 5.0]
    assert watch.silent_s(holder._replace(beats=8)) == 0.0


async def test_a_live_leader_keeps_the_lock(postgresql_url: str) -> None:
    patient = dataclasses.replace(QUICK, leader_lease_s=2.0)
    first, second = agent(postgresql_url, "one", patient), agent(postgresql_url, "two", patient)
    await first.open()
    reported: list[str] = []
    with pytest.raises(StoreLocked, match="node one"):
        await second.open(1.3 * patient.leader_lease_s, reported.append)
    assert reported == ["one"]
    assert first.lock_held
    await insert(first, call())
    await first.close()


async def test_waiting_agents_take_over_one_after_another(postgresql_url: str) -> None:
    agents = [agent(postgresql_url, name) for name in ("one", "two", "three")]
    await agents[0].open()
    waiting = {asyncio.create_task(each.open(math.inf)): each for each in agents[1:]}
    await agents[0].close()
    done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    (second,) = done
    assert waiting[second].epoch == 2
    await waiting[second].close()
    (third,) = rest
    await third
    assert waiting[third].epoch == 3
    await waiting[third].close()


async def test_a_lost_session_is_replaced_in_the_same_epoch(postgresql_url: str) -> None:
    database = agent(postgresql_url, "one")
    await database.open()
    await end_lock_session(postgresql_url)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await insert(database, call())
            except StoreUnavailable:
                # Refused while the lock is not held; there is no signal for its reacquisition.
                await asyncio.sleep(0.01)
                continue
            if database.lock_held:
                break
    assert database.epoch == 1
    await database.close()


async def test_waiting_for_the_lock_ends_when_the_database_falls_silent(postgresql_url: str) -> None:
    first = agent(postgresql_url, "one")
    await first.open()
    async with proxies_to([postgresql_url]) as ((proxy, through_proxy),):
        reported = asyncio.Event()
        second = agent(through_proxy, "two", dataclasses.replace(QUICK, connect_timeout_s=1.0))
        waiting = asyncio.create_task(second.open(math.inf, lambda node: reported.set()))
        await reported.wait()
        proxy.silence()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(StoreUnavailable):
                await waiting
    await first.close()


async def test_waiting_for_the_lock_can_be_cancelled(postgresql_url: str) -> None:
    first, second = agent(postgresql_url, "one"), agent(postgresql_url, "two")
    await first.open()
    reported = asyncio.Event()
    waiting = asyncio.create_task(second.open(math.inf, lambda node: reported.set()))
    await reported.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await first.close()
    third = agent(postgresql_url, "three")
    await third.open()
    assert third.epoch == 2
    await third.close()


async def test_releasing_the_lock_can_be_cancelled(postgresql_url: str) -> None:
    """Otherwise an agent that is asked to stop would begin its next turn."""
    first = agent(postgresql_url, "one")
    await first.open()
    lock = first._lock
    assert lock is not None
    releasing = asyncio.create_task(lock.release())
    # It has begun, and waits for the transaction that blocks the claim.
    await asyncio.sleep(0)
    releasing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await releasing
    await first.close()
    second = agent(postgresql_url, "two")
    await second.open()
    await second.close()


async def test_an_unexpected_error_does_not_end_the_retries(postgresql_url: str) -> None:
    """What a server answers while an operator works on it: privileges, names, internal errors."""
    database = agent(postgresql_url, "one")
    await database.open()
    gate = await asyncpg.connect(postgresql_url)
    await gate.execute("ALTER TABLE agent_leader RENAME COLUMN node TO renamed")
    await end_lock_session(postgresql_url)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await insert(database, call())
            except StoreUnavailable as error:
                if "column" in str(error):
                    break
            await asyncio.sleep(0.01)
    await gate.execute("ALTER TABLE agent_leader RENAME COLUMN renamed TO node")
    async with asyncio.timeout(PATIENCE_S):
        # There is no signal for its reacquisition.
        while not database.lock_held:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert database.epoch == 1
    await database.close()
    await gate.close()


async def test_the_lock_is_taken_on_the_host_that_accepts_writes(
    postgresql: PostgresServer, shared_postgresql: PostgresServer
) -> None:
    url = await shared_postgresql.create_database()
    name = url.rsplit("/", 1)[1]
    connection = await asyncpg.connect(postgresql.url())
    await connection.execute(f'CREATE DATABASE "{name}"')
    # As a standby would be, to which an advisory lock is no write.
    await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await connection.close()
    hosts = f"127.0.0.1:{postgresql.port},127.0.0.1:{shared_postgresql.port}"
    database = agent(f"postgresql://postgres@{hosts}/{name}", "one")
    await database.open()
    for each, expected in ((url, 1), (postgresql.url(name), 0)):
        connection = await asyncpg.connect(each)
        assert len(await connection.fetch(_LOCK_SESSION)) == expected
        await connection.close()
    await database.close()


async def test_a_session_that_can_not_write_is_not_replaced_at_once(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = PostgresqlDatabase(
        postgresql_url, dataclasses.replace(QUICK, leader_retry_interval_s=3_600), Claimant("one", "one")
    )
    await database.open()
    assert database._lock is not None
    hosts = database._lock._hosts
    connect, again, opened = hosts.connect, asyncio.Event(), 0

    async def counted(timeout_s: float, **arguments: Any) -> Any:
        nonlocal opened
        opened += 1
        if opened > 1:
            again.set()
        return await connect(timeout_s, **arguments)

    monkeypatch.setattr(hosts, "connect", counted)
    gate = await asyncpg.connect(postgresql_url)
    await gate.execute("""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
        CREATE TRIGGER refuses BEFORE UPDATE ON agent_heartbeat FOR EACH ROW EXECUTE FUNCTION refuse();
    """)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await again.wait()
    assert opened == 1
    with pytest.raises(StoreUnavailable, match=r"lock was lost.*refused"):
        await insert(database, call())
    await gate.close()
    await database.close()


async def _until(connection: asyncpg.Connection, query: str) -> None:
    """There is no signal for a waiting backend."""
    async with asyncio.timeout(PATIENCE_S):
        while not await connection.fetchval(query):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
