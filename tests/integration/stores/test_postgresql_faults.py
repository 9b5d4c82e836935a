"""PostgresStore with servers that are killed, stopped or silent, cut connections, locks, time-outs and foreign schemas."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from tests.integration.stores.kills import check_batches_across_kills
from tests.support.patience import PATIENCE_S
from tests.support.pools import writing_pool
from tests.support.postgresql import PostgresServer
from tocsin.model.errors import (
    ConfigError,
    DefiniteFailure,
    OutcomeUnknown,
    SchemaTooNew,
    StoreCorrupted,
    StoreUnavailable,
)
from tocsin.ports.store import Applied, Member
from tocsin.sql.pool import Activity, ServerOptions
from tocsin.stores.options import PostgresOptions
from tocsin.stores.postgresql import schema as postgresql_schema
from tocsin.stores.postgresql.store import PostgresStore
from tocsin.testing.store_conformance_base import ALICE, BOB, claimed, loaded, put, row, suspended


@pytest_asyncio.fixture
async def store(postgresql_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgresql_url)
    await store.open(4)
    yield store
    await store.close()


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, ServerOptions(**options))
    await store.open(4)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def session(url: str) -> AsyncIterator[Any]:
    """A connection that is not the store's."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        connection.terminate()


@asynccontextmanager
async def locked_shards(url: str) -> AsyncIterator[Any]:
    """Another connection locks all shard rows, until ROLLBACK or the end of the body."""
    async with session(url) as other:
        await other.execute("BEGIN; SELECT FROM tocsin.timers WHERE row_type = 1 FOR UPDATE")
        yield other
        # The server may notice late that a session has ended, and keeps its locks until then.
        if not other.is_closed():
            await other.execute("ROLLBACK")


async def writer_pid(store: PostgresStore) -> int:
    pid: int = await writing_pool(store).run(
        Activity.READING, lambda connection: connection.fetchval("SELECT pg_backend_pid()")
    )
    return pid


async def until_waiting(other: Any, count: int = 1) -> None:
    """Returns when so many sessions wait for a lock, by the server's list."""
    sql = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
    async with asyncio.timeout(PATIENCE_S):
        while await other.fetchval(sql) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_release_takes_effect_behind_a_batch_that_is_being_applied(postgresql: PostgresServer) -> None:
    async with opened(postgresql.url(), loaders=1) as store, session(postgresql.url()) as other:
        batches = [await claimed(store, 0), await claimed(store, 1)]
        await other.execute("BEGIN; SELECT FROM tocsin.timers WHERE row_type = 1 AND shard_id = 0 FOR UPDATE")
        # Its fence waits for shard 0, and has not reached shard 1.
        applied = asyncio.create_task(store.apply([replace(each, upserts=[row(1)]) for each in batches]))
        await until_waiting(other)
        released = asyncio.create_task(store.release(1, epoch=batches[1].epoch, owner=batches[1].owner))
        # A release over the only connection that reads would be over before this.
        await asyncio.create_task(store.shards())
        await other.execute("ROLLBACK")
        assert await applied == [Applied.DURABLE, Applied.DURABLE]
        assert await released


# -- the server ends


async def test_acknowledged_batches_survive_server_kills_and_failed_ones_have_no_effect(
    postgresql: PostgresServer,
) -> None:
    async with opened(postgresql.url(), writers=4) as store:
        await check_batches_across_kills(store, postgresql)


async def test_stopped_server_is_unavailable_until_it_restarts(postgresql: PostgresServer) -> None:
    async with opened(postgresql.url()) as store:
        batch = await claimed(store)
        await put(store, kept := row(1, 1))
        gone = connections_gone(store)
        postgresql.stop()
        await asyncio.gather(*(event.wait() for event in gone))
        for call in (
            store.apply([replace(batch, upserts=[row(2)])]),
            store.claim(1, expected_epoch=0, owner=ALICE),
            store.heartbeat(Member(ALICE, "a", "http://a", 1)),
            store.record("kind", "key"),
        ):
            # Nothing was sent, so the outcome is known.
            with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
                await call
        postgresql.start()
        assert await loaded(store) == [kept]
        assert await store.apply([replace(batch, upserts=[row(2, 2)])]) == [Applied.DURABLE]


def connections_gone(store: PostgresStore) -> list[asyncio.Event]:
    """An event that is set when one of the store's idle connections is found broken."""
    assert store._loaders is not None
    assert store._readers is not None
    events = []
    assert store._leases is not None
    for pool in (writing_pool(store), store._loaders, store._readers, store._leases):
        for connection in pool._idle:
            events.append(ended := asyncio.Event())
            connection.add_termination_listener(lambda _, ended=ended: ended.set())  # type: ignore[attr-defined]
    return events


async def test_missing_server_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match=r"postgresql://127\.0\.0\.1:1/none") as refused:
        await PostgresStore("postgresql://user:secret@127.0.0.1:1/none").open(4)
    assert "secret" not in str(refused.value)


async def test_wrong_password_is_unavailable_and_not_shown(postgresql: PostgresServer) -> None:
    url = await postgresql.create_database()
    postgresql.stop()
    postgresql.require_passwords()
    postgresql.start()
    with pytest.raises(StoreUnavailable, match="password authentication failed") as refused:
        await PostgresStore(url.replace("postgres@", "postgres:s3cr3t@")).open(4)
    # A start does not wait for another password.
    assert refused.type is StoreUnavailable
    assert "s3cr3t" not in str(refused.value)


async def test_a_missing_database_and_a_bad_url_are_named(shared_postgresql: PostgresServer) -> None:
    with pytest.raises(StoreUnavailable, match="missing"):
        await PostgresStore(shared_postgresql.url("missing")).open(4)
    with pytest.raises(ConfigError, match="schema"):
        PostgresStore(shared_postgresql.url(), postgres=PostgresOptions(schema='x"; DROP'))


async def test_a_standby_or_read_only_database_is_refused(postgresql_url: str, store: PostgresStore) -> None:
    batch = await claimed(store)
    name = postgresql_url.rsplit("/", 1)[1]
    async with session(postgresql_url) as other:
        await other.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        with pytest.raises(StoreUnavailable):
            await PostgresStore(postgresql_url).open(4)
        await other.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    assert await store.apply([batch]) == [Applied.DURABLE]


async def test_a_silent_host_does_not_keep_the_next_from_being_asked(postgresql_url: str) -> None:
    """It has a share of the time, and is asked last from then on."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = postgresql_url.replace("127.0.0.1", f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1")
        store = PostgresStore(url, ServerOptions(connect_timeout_s=4.0))
        await store.open(4)
        asked = len(_accepted(silent))
        batch = await claimed(store)
        await put(store, kept := row(1))
        assert await loaded(store) == [kept]
        assert await store.apply([batch]) == [Applied.DURABLE]
        await store.close()
        assert (asked, _accepted(silent)) == (1, [])


def _accepted(listening: socket.socket) -> list[socket.socket]:
    """The connections that were made to it since the last call."""
    listening.setblocking(False)
    accepted = []
    with contextlib.suppress(BlockingIOError):
        while True:
            accepted.append(listening.accept()[0])
    for each in accepted:
        each.close()
    return accepted


# -- connections end


async def test_connection_cut_between_batches_is_replaced(postgresql_url: str, store: PostgresStore) -> None:
    batch = await claimed(store)
    await put(store, row(1, 1))
    ended = asyncio.Event()
    writing_pool(store)._idle[0].add_termination_listener(lambda _: ended.set())  # type: ignore[attr-defined]
    async with session(postgresql_url) as other:
        await other.execute(f"SELECT pg_terminate_backend({await writer_pid(store)})")
        await ended.wait()
    assert await store.apply([replace(batch, upserts=[row(2, 2)])]) == [Applied.DURABLE]


async def test_connection_cut_during_a_batch_leaves_the_outcome_unknown(
    postgresql_url: str, store: PostgresStore
) -> None:
    batch = await claimed(store)
    pid = await writer_pid(store)
    async with locked_shards(postgresql_url) as other:
        writing = asyncio.create_task(store.apply([replace(batch, upserts=[row(1, 1)])]))
        await until_waiting(other)
        await other.execute(f"SELECT pg_terminate_backend({pid})")
        with pytest.raises(OutcomeUnknown, match="outcome of the transaction is unknown"):
            await writing
    assert await store.claim(0, expected_epoch=1, owner=ALICE) == 2
    assert await loaded(store) == []
    assert await store.apply([batch]) == [Applied.OWNERSHIP_LOST]
    assert await store.apply([replace(batch, epoch=2, upserts=[row(2, 2)])]) == [Applied.DURABLE]


async def test_a_read_whose_connection_is_cut_is_unavailable(postgresql_url: str, store: PostgresStore) -> None:
    async with session(postgresql_url) as other:
        await other.execute("BEGIN; LOCK TABLE tocsin.timers IN ACCESS EXCLUSIVE MODE")
        reading = asyncio.create_task(store.shards())
        await until_waiting(other)
        await other.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted")
        with pytest.raises(StoreUnavailable):
            await reading
    assert await store.shards() == []


async def test_silent_server_leaves_the_outcome_unknown_and_the_late_batch_atomic(
    postgresql_url: str,
) -> None:
    """The session is stopped during a batch, the store's wait times out, the shard is claimed again, and the session
    continues."""
    async with opened(postgresql_url) as store, opened(postgresql_url) as beside:
        batch = await claimed(store)
        pid = await writer_pid(store)
        # The client's time-out, not the server's, which would end the statement itself.
        impatient = ServerOptions(statement_timeout_s=0.2, answer_grace_s=0.0)
        writing_pool(store)._server = replace(store._server, options=impatient)
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(OutcomeUnknown):
                await store.apply([replace(batch, upserts=[row(i, i) for i in range(1, 51)])])
        finally:
            os.kill(pid, signal.SIGCONT)
        # Waits for the late batch if it has locked the shard row; otherwise the batch finds another epoch.
        assert await beside.claim(0, expected_epoch=1, owner=ALICE) == 2
        rows = await loaded(beside)
        assert len(rows) in (0, 50)
        async with session(postgresql_url) as other:
            sql = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"
            # The session ends by itself, which only the server's list shows.
            async with asyncio.timeout(PATIENCE_S):
                while await other.fetchval(sql, pid):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
        assert await loaded(beside) == rows


# -- time-outs, locks, limits


async def test_statement_timeout_is_a_definite_failure(postgresql_url: str) -> None:
    # The patient one does what a busy machine takes longer for.
    async with opened(postgresql_url) as patient, opened(postgresql_url, statement_timeout_s=1.0) as store:
        batch = await claimed(patient)
        async with locked_shards(postgresql_url):
            with pytest.raises(DefiniteFailure, match="timeout") as failed:
                await store.apply([replace(batch, upserts=[row(1)])])
            assert not isinstance(failed.value, StoreUnavailable)
        assert await loaded(patient) == []
        assert await patient.apply([replace(batch, upserts=[row(2)])]) == [Applied.DURABLE]


async def test_lock_timeout_is_unavailable(postgresql_url: str) -> None:
    async with opened(postgresql_url, lock_timeout_s=0.1) as store:
        batch = await claimed(store)
        async with locked_shards(postgresql_url):
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                await store.apply([replace(batch, upserts=[row(1)])])
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                await store.claim(0, expected_epoch=1, owner=BOB)
        assert await loaded(store) == []
        assert await store.apply([batch]) == [Applied.DURABLE]


async def test_a_claim_waits_for_the_batch_under_way(postgresql_url: str, store: PostgresStore) -> None:
    batch = await claimed(store)
    await put(store, old := row(1, 1))
    async with session(postgresql_url) as other, opened(postgresql_url) as beside:
        # The batch has locked the shard row, and waits at this timer.
        await other.execute("BEGIN; SELECT FROM tocsin.timers WHERE row_type = 2 FOR UPDATE")
        writing = asyncio.create_task(store.apply([replace(batch, upserts=[new := row(1, 2)])]))
        await until_waiting(other)
        claiming = asyncio.create_task(beside.claim(0, expected_epoch=1, owner=BOB))
        await until_waiting(other, 2)
        assert await loaded(beside) == [old]
        await other.execute("ROLLBACK")
        assert await writing == [Applied.DURABLE]
        assert await claiming == 2
        assert await loaded(beside) == [new]
        assert await store.apply([replace(batch, upserts=[row(3)])]) == [Applied.OWNERSHIP_LOST]


async def test_the_number_of_shards_stays_while_the_first_claim_is_under_way(
    postgresql_url: str, store: PostgresStore
) -> None:
    other_number = PostgresStore(postgresql_url)
    async with session(postgresql_url) as other:
        # The claim has locked the number of shards, and waits at the table.
        await other.execute("BEGIN; LOCK TABLE tocsin.timers IN SHARE MODE")
        claiming = asyncio.create_task(store.claim(0, expected_epoch=0, owner=ALICE))
        await until_waiting(other)
        opening = asyncio.create_task(other_number.open(8))
        await until_waiting(other, 2)
        await other.execute("ROLLBACK")
        assert await claiming == 1
        with pytest.raises(ConfigError, match="has 4 shards"):
            await opening


async def test_deadlocks_are_definite_failures(postgresql_url: str, store: PostgresStore) -> None:
    batch = await claimed(store)
    await put(store, row(1, 1))
    async with session(postgresql_url) as other:
        # This one is never chosen as the deadlock's victim.
        await other.execute("SET deadlock_timeout = '60s'")
        await other.execute("BEGIN; SELECT FROM tocsin.timers WHERE row_type = 2 FOR UPDATE")
        writing = asyncio.create_task(store.apply([replace(batch, upserts=[row(1, 2)])]))
        await until_waiting(other)
        crossing = asyncio.create_task(other.execute("SELECT FROM tocsin.timers WHERE row_type = 1 FOR UPDATE"))
        with pytest.raises(DefiniteFailure, match="deadlock"):
            await writing
        await crossing
    assert await store.apply([replace(batch, upserts=[row(1, 2)])]) == [Applied.DURABLE]


async def test_busy_pool_is_unavailable(postgresql_url: str) -> None:
    async with opened(postgresql_url, loaders=1, acquire_timeout_s=0.1) as store, session(postgresql_url) as other:
        await other.execute("BEGIN; LOCK TABLE tocsin.timers IN ACCESS EXCLUSIVE MODE")
        first = asyncio.create_task(store.shards())
        await until_waiting(other)
        with pytest.raises(StoreUnavailable, match="all 1 connections"):
            await store.shards()
        await other.execute("ROLLBACK")
        assert await first == []
        assert await store.shards() == []


async def test_cancelled_read_returns_its_connection(postgresql_url: str) -> None:
    async with opened(postgresql_url, loaders=1) as store, session(postgresql_url) as other:
        await other.execute("BEGIN; LOCK TABLE tocsin.timers IN ACCESS EXCLUSIVE MODE")
        reading = asyncio.create_task(store.shards())
        await until_waiting(other)
        reading.cancel()
        waiting = asyncio.create_task(store.members())
        await asyncio.wait([reading])
        assert reading.cancelled()
        await other.execute("ROLLBACK")
        assert await waiting == []


async def test_values_that_do_not_fit_a_column_are_definite_failures(store: PostgresStore) -> None:
    batch = await claimed(store)
    for bad in (
        row(1, timer_id="\ud800"),
        row(1, timer_id="a\x00b"),
        row(1, uuid=b"short"),
        row(1, tags=("a\x1fb",)),
        row(1)._replace(generation=b"x"),
        row(1)._replace(execute_at=2**63),
    ):
        with pytest.raises(DefiniteFailure) as refused:
            await store.apply([replace(batch, upserts=[row(2), bad])])
        assert not isinstance(refused.value, StoreUnavailable)
    assert await loaded(store) == []


async def test_unstorable_reason_does_not_prevent_a_suspension(store: PostgresStore) -> None:
    await claimed(store)
    await put(store, row(1, 1, suspended="bad_record: \x00 at 7"))
    assert [each.suspended for each in await suspended(store)] == ["bad_record:  at 7"]


# -- schemas


async def test_nodes_that_start_concurrently_create_one_schema(postgresql_url: str) -> None:
    stores = [PostgresStore(postgresql_url) for _ in range(5)]
    assert set(await asyncio.gather(*(store.open(6) for store in stores))) == {6}
    await claimed(stores[0])
    assert [state.epoch for state in await stores[4].shards()] == [1]
    for store in stores:
        await store.close()


async def test_schema_of_another_application_is_refused_unchanged(postgresql_url: str) -> None:
    async with session(postgresql_url) as other:
        await other.execute("CREATE SCHEMA tocsin; CREATE TABLE tocsin.timers (theirs integer)")
        with pytest.raises(StoreCorrupted, match="another application"):
            await PostgresStore(postgresql_url).open(None)
        tables = "SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = 'tocsin'"
        assert await other.fetchval(tables) == "timers"


async def test_missing_schema_is_not_created_without_create(postgresql_url: str) -> None:
    with pytest.raises(StoreUnavailable, match="tocsin migrate"):
        await PostgresStore(postgresql_url, create=False).open(None)
    async with session(postgresql_url) as other:
        assert await other.fetchval("SELECT to_regnamespace('tocsin') IS NULL")


async def test_a_newer_schema_is_used_if_it_is_readable_and_else_refused(
    postgresql_url: str, store: PostgresStore
) -> None:
    async with session(postgresql_url) as other:
        await other.execute("UPDATE tocsin.meta SET meta_value = 999 WHERE meta_name = 'schema_version'")
        async with opened(postgresql_url) as earlier:
            await claimed(earlier)
        assert await other.fetchval("SELECT meta_value FROM tocsin.meta WHERE meta_name = 'schema_version'") == 999
        await other.execute("UPDATE tocsin.meta SET meta_value = 998 WHERE meta_name = 'readable_from'")
        with pytest.raises(SchemaTooNew, match="999"):
            await PostgresStore(postgresql_url).open(None)
        await other.execute("DELETE FROM tocsin.meta WHERE meta_name = 'format'")
    with pytest.raises(StoreCorrupted, match="before its first release"):
        await PostgresStore(postgresql_url).open(None)


async def test_older_schema_is_migrated_or_left_unchanged(
    postgresql_url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await claimed(store)
    await put(store, kept := row(1))
    known = postgresql_schema.migrations()
    number = known[-1][0] + 1
    broken = [*known, (number, "CREATE TABLE half (a integer); CREATE TABLE timers (again integer)")]
    monkeypatch.setattr(postgresql_schema, "migrations", lambda: broken)
    with pytest.raises(DefiniteFailure, match="timers"):
        await PostgresStore(postgresql_url).open(None)
    newer = [*known, (number, "CREATE TABLE half (a integer); ALTER TABLE members ADD COLUMN member_note text")]
    monkeypatch.setattr(postgresql_schema, "migrations", lambda: newer)
    async with opened(postgresql_url) as again:
        assert await loaded(again) == [kept]
    async with session(postgresql_url) as other:
        sql = "SELECT meta_value FROM tocsin.meta WHERE meta_name = 'schema_version'"
        assert await other.fetchval(sql) == number


async def test_a_dropped_schema_is_corruption(postgresql_url: str, store: PostgresStore) -> None:
    batch = await claimed(store)
    async with session(postgresql_url) as other:
        await other.execute("DROP SCHEMA tocsin CASCADE")
    with pytest.raises(StoreCorrupted, match="backup"):
        await store.apply([batch])


@pytest.mark.parametrize(
    ("default", "expected"),
    [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
async def test_synchronous_commit_is_at_least_on(postgresql_url: str, default: str, expected: str) -> None:
    """Whatever the database's default."""
    name = postgresql_url.rsplit("/", 1)[1]
    async with session(postgresql_url) as other:
        await other.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = {default}')
    async with opened(postgresql_url) as store:
        sql = "SELECT current_setting('synchronous_commit')"
        pool = writing_pool(store)
        assert await pool.run(Activity.READING, lambda connection: connection.fetchval(sql)) == expected


async def test_settings_are_in_force_though_a_pooler_ignores_those_of_the_start(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_driver = asyncpg.connect

    async def through_a_pooler(url: str, **arguments: Any) -> Any:
        return await connect_driver(url, **arguments | {"server_settings": {}})

    monkeypatch.setattr(asyncpg, "connect", through_a_pooler)
    async with opened(postgresql_url, statement_timeout_s=7.0, lock_timeout_s=3.0) as store:
        expected = {
            "search_path": '"tocsin"',
            "statement_timeout": "7s",
            "lock_timeout": "3s",
            "idle_in_transaction_session_timeout": "7s",
            "default_transaction_isolation": "read committed",
            "plan_cache_mode": "force_generic_plan",
            "enable_seqscan": "off",
        }
        sql = "SELECT current_setting(name) FROM unnest($1::text[]) AS wanted (name)"
        found = await writing_pool(store).run(Activity.READING, lambda session: session.fetch(sql, list(expected)))
        assert {name: value for name, (value,) in zip(expected, found, strict=True)} == expected
    async with session(postgresql_url) as other:
        assert await other.fetchval(
            "SELECT to_regclass('public.timers') IS NULL AND to_regclass('tocsin.timers') IS NOT NULL"
        )


async def test_a_closed_store_is_unavailable_and_can_be_opened_again(store: PostgresStore) -> None:
    with pytest.raises(ConfigError, match="open"):
        await store.open(4)
    batch = await claimed(store)
    await store.close()
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.claim(0, expected_epoch=1, owner=ALICE)
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.apply([batch])
    assert await store.open(4) == 4
