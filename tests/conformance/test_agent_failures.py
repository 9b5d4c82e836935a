"""Locks, failing servers, and commits with an unknown outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import asyncpg
import pytest

from tests.support.agent_database import NOW, append, call, change, entry, envelope, insert, load, running, start
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer
from tocsin.model.errors import ConfigError, OutcomeUnknown, StoreError, StoreLocked, StoreUnavailable
from tocsin.service_calls.ports import Change, OutboxRow, ServiceCall, Transaction
from tocsin.stores.service_calls.database import AgentDatabase, Claimant, agent_database
from tocsin.stores.service_calls.postgresql import PostgresqlDatabase
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.statements import Session

T = TypeVar("T")
IMPATIENT = SqlSettings(
    lock_wait_s=0.05, leader_retry_interval_s=0.02, leader_renew_interval_s=0.05, connect_timeout_s=2.0
)


async def until_available(work: Callable[[], Awaitable[T]]) -> T:
    """The result, once the database is available again."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await work()
            except StoreUnavailable:
                await asyncio.sleep(0.02)


# ------------------------------------------------------------------ every database


async def test_a_second_agent_is_locked_out_until_the_first_closes(
    tmp_path: Path, shared_postgresql: PostgresServer
) -> None:
    for url in (f"sqlite:///{tmp_path / 'agent.db'}", await shared_postgresql.create_database()):
        first, second = agent_database(url), agent_database(url, IMPATIENT)
        await first.open()
        with pytest.raises(StoreLocked, match="in use by another agent"):
            await second.open()
        await first.close()
        await first.close()
        third = agent_database(url, SqlSettings(lock_wait_s=PATIENCE_S))
        await third.open()
        await third.close()
        with pytest.raises(StoreUnavailable, match="not open"):
            await third.timers.next_due_at(0)
        with pytest.raises(StoreUnavailable, match="not open"):
            await third.outbox.mark_published([1], NOW)


async def test_open_waits_for_an_agent_that_is_closing(tmp_path: Path, shared_postgresql: PostgresServer) -> None:
    for url in (f"sqlite:///{tmp_path / 'agent.db'}", await shared_postgresql.create_database()):
        first, second = agent_database(url), agent_database(url, SqlSettings(lock_wait_s=PATIENCE_S))
        await first.open()
        opening = asyncio.create_task(second.open())
        await asyncio.sleep(0)
        await first.close()
        await opening
        await second.close()


async def test_concurrent_transactions_change_a_call_once(database: AgentDatabase) -> None:
    calls = [call() for _ in range(20)]
    await insert(database, *calls)
    reported: list[OutboxRow] = []
    database.outbox.on_appended(reported.extend)

    async def start_all(order: list[ServiceCall]) -> set[str]:
        changes = [running(c) for c in order]

        async def work(t: Transaction) -> set[str]:
            loaded = await t.load([c.key for c in order])
            decided = [
                Change(loaded[new.before.key], new.after) for new in changes if loaded[new.before.key] == new.before
            ]
            written = await t.change(decided)
            await t.append([envelope(new.after) for new in decided])
            return {key.service_call_id for key in written}

        return await database.calls.transact(work)

    won = await asyncio.gather(*(start_all(calls[::-1] if n % 2 else calls) for n in range(12)))
    assert sorted(id_ for ids in won for id_ in ids) == sorted(c.service_call_id for c in calls)
    assert sorted(row.envelope.aggregate_id for row in reported) == sorted(c.service_call_id for c in calls)


async def test_a_commit_is_reported_even_if_the_caller_was_cancelled(database: AgentDatabase) -> None:
    reported = asyncio.Event()
    database.outbox.on_appended(lambda rows: reported.set())
    waiting = asyncio.create_task(append(database, envelope(call())))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    # Cancelled before or after it began: if the row exists, it was reported.
    if await database.outbox.unpublished(0, 10):
        await reported.wait()


async def test_a_concurrently_deleted_call_drops_only_its_own_schedule(database: AgentDatabase) -> None:
    for _ in range(10):
        here, going = call(), call()
        await insert(database, here, going)
        await asyncio.gather(
            database.calls.transact(lambda t, key=going.key: t.delete_waiting([key])),  # type: ignore[misc]
            database.timers.schedule_timers([entry(going), entry(here)]),
        )
        assert await database.timers.mark_fired([(c.key, c.due_at) for c in (here, going)], NOW) == 1


async def test_unknown_databases_are_refused() -> None:
    for url in ("mysql://localhost/x", "no url"):
        with pytest.raises(ConfigError, match="agent_database"):
            agent_database(url)


# ------------------------------------------------------------------ PostgreSQL


@pytest.mark.parametrize("end", [PostgresServer.kill, PostgresServer.stop])
async def test_a_restarted_server_is_used_again(
    postgresql: PostgresServer, end: Callable[[PostgresServer], None]
) -> None:
    database = agent_database(postgresql.url(), IMPATIENT)
    await database.open()
    one = call()
    await insert(database, one)
    end(postgresql)
    for failing in (
        lambda: load(database, one.key),
        lambda: database.timers.next_due_at(0),
        lambda: database.outbox.mark_published([1], NOW),
        lambda: database.executions.unfinished(1),
    ):
        with pytest.raises(StoreUnavailable):
            await failing()
    postgresql.start()
    assert await until_available(lambda: load(database, one.key)) == one
    assert await change(database, running(one)) == {one.key}
    # The lock is held again, too.
    with pytest.raises(StoreLocked):
        await agent_database(postgresql.url(), IMPATIENT).open()
    await database.close()


async def test_a_server_crash_leaves_only_whole_transactions(postgresql: PostgresServer) -> None:
    database = agent_database(postgresql.url(), IMPATIENT)
    await database.open()
    done: list[ServiceCall] = []
    unknown: list[ServiceCall] = []
    enough = asyncio.Event()

    async def go_on() -> None:
        while True:
            one = call(tags=("t",))

            async def work(t: Transaction, one: ServiceCall = one) -> None:
                await t.insert([one])
                await t.append([envelope(one)])

            try:
                await database.calls.transact(work)
            except OutcomeUnknown:
                unknown.append(one)
                return
            except StoreUnavailable:
                return
            done.append(one)
            if len(done) > 50:
                enough.set()

    going = [asyncio.create_task(go_on()) for _ in range(6)]
    await enough.wait()
    await asyncio.to_thread(postgresql.kill)
    await asyncio.gather(*going)
    postgresql.start()
    rows = await until_available(lambda: database.outbox.unpublished(0, 100_000))
    present = {row.envelope.aggregate_id for row in rows}
    assert {c.service_call_id for c in done} <= present
    assert present <= {c.service_call_id for c in done + unknown}
    # Reading is possible before writing, which requires the lock to be held again.
    loaded = await until_available(lambda: database.calls.transact(lambda t: t.load([c.key for c in done])))
    assert loaded.keys() == {c.key for c in done}
    await database.close()


async def test_a_terminated_session_is_replaced_without_an_error(postgresql_url: str) -> None:
    database = agent_database(postgresql_url)
    await database.open()
    one = call()
    await insert(database, one)
    await terminate_sessions(postgresql_url, "tocsin agent")
    assert await load(database, one.key) == one
    await terminate_sessions(postgresql_url, "tocsin agent")
    assert (await database.queries.find(one.key)) is not None
    await database.close()


async def test_nothing_is_written_while_the_lock_is_lost(postgresql_url: str) -> None:
    database = agent_database(postgresql_url, IMPATIENT)
    await database.open()
    other = await asyncpg.connect(postgresql_url)
    # The other agent waits for the lock when the first one's session ends.
    taken = asyncio.create_task(other.fetch("SELECT pg_advisory_lock($1)", 0x546F6373696E))
    await terminate_sessions(postgresql_url, "tocsin agent lock")
    await taken
    one = call()

    async def refused() -> None:
        while True:
            await insert(database, call())
            await asyncio.sleep(0.02)

    with pytest.raises(StoreUnavailable, match="lock was lost"):
        await refused()
    await other.close()
    await until_available(lambda: insert(database, one))
    assert await load(database, one.key) == one
    await database.close()


async def test_a_connection_lost_during_the_commit_is_an_unknown_outcome(postgresql_url: str) -> None:
    database = agent_database(postgresql_url)
    await database.open()
    setup = await commits_that_wait(postgresql_url)
    one = call()
    reported: list[OutboxRow] = []
    unknown: list[OutboxRow] = []
    database.outbox.on_appended(reported.extend)
    database.outbox.on_unknown(unknown.extend)
    sent = envelope(one)

    async def work(t: Transaction) -> None:
        await t.insert([one])
        await t.append([sent])

    inserting = asyncio.create_task(database.calls.transact(work))
    await until_a_commit_waits(setup)
    await terminate_sessions(postgresql_url, "tocsin agent")
    with pytest.raises(OutcomeUnknown):
        await inserting
    assert reported == []
    assert [row.envelope for row in unknown] == [sent]
    await setup.execute("SELECT pg_advisory_unlock_all()")
    await setup.close()
    assert await load(database, one.key) is None
    await database.close()


async def test_a_commit_without_an_answer_in_time_is_an_unknown_outcome_and_not_repeated(postgresql_url: str) -> None:
    """The server's own time-out does not cover a commit."""
    database = PostgresqlDatabase(postgresql_url, SqlSettings(lock_timeout_ms=600_000), Claimant())
    await database.open()
    setup = await commits_that_wait(postgresql_url)
    tries = 0
    unknown: list[OutboxRow] = []
    database.outbox.on_unknown(unknown.extend)
    one = call()
    sent = envelope(one)

    async def work(t: Transaction) -> None:
        nonlocal tries
        tries += 1
        await t.insert([one])
        await t.append([sent])

    pool, patient = database._pool, database._server
    assert pool is not None
    options = replace(patient.options, statement_timeout_s=1.0, answer_grace_s=0.0)
    pool._server = replace(patient, options=options)
    with pytest.raises(OutcomeUnknown, match="no answer in time"):
        await database.calls.transact(work)
    assert tries == 1
    assert [row.envelope for row in unknown] == [sent]
    assert not pool.committing
    pool._server = patient
    await setup.execute("SELECT pg_advisory_unlock_all()")
    await setup.close()
    await insert(database, two := call())
    assert await load(database, two.key) == two
    await database.close()


async def test_a_conflict_is_retried(postgresql_url: str) -> None:
    database = agent_database(postgresql_url)
    await database.open()
    tries = 0

    async def work(session: Session) -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            await session.rows("DO $$ BEGIN RAISE EXCEPTION SQLSTATE '40P01'; END $$", ())
        return tries

    assert await database.write(work) == 3
    await database.close()


async def test_a_statement_that_takes_too_long_may_be_repeated(postgresql_url: str) -> None:
    """It proves nothing about its values, so a batch is not taken apart for it."""
    database = agent_database(postgresql_url)
    await database.open()

    async def work(session: Session) -> None:
        await session.rows("SET LOCAL statement_timeout = 10", ())
        await session.rows("SELECT pg_sleep(3600)", ())

    with pytest.raises(StoreUnavailable, match="statement timeout"):
        await database.write(work)
    await database.close()


async def test_a_wrong_value_is_not_a_database_error(database: AgentDatabase) -> None:
    """It would be retried forever."""
    one = call()
    await insert(database, one)
    with pytest.raises(Exception, match=r"ck_http_execution_log_request_method") as caught:
        await database.executions.begin([(start(one, request_method="ODD"), envelope(one))])
    assert not isinstance(caught.value, StoreError)
    assert await database.outbox.unpublished(0, 10) == []


async def commits_that_wait(url: str) -> asyncpg.Connection:
    """The session whose lock a commit of a new call waits for, in a constraint that is checked at COMMIT."""
    session = await asyncpg.connect(url)
    await session.execute("""
        CREATE FUNCTION wait_in_commit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_lock(4711); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON service_calls DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait_in_commit();
    """)
    await session.execute("SELECT pg_advisory_lock(4711)")
    return session


async def until_a_commit_waits(session: asyncpg.Connection) -> None:
    """There is no signal for a waiting backend."""
    async with asyncio.timeout(PATIENCE_S):
        while not await session.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def terminate_sessions(url: str, name: str) -> None:
    """As an operator would."""
    connection = await asyncpg.connect(url)
    ended = await connection.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"
        " AND datname = current_database()",
        name,
    )
    assert ended
    await connection.close()
