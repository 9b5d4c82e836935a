"""MysqlStore with servers that are killed, stopped or silent, cut connections, locks, time-outs and foreign databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from tests.integration.stores.kills import check_batches_across_kills
from tests.support.mysql import MysqlServer, opened, session
from tests.support.patience import PATIENCE_S
from tests.support.pools import busy, writing_pool
from tocsin.model.errors import (
    ConfigError,
    DefiniteFailure,
    OutcomeUnknown,
    StoreUnavailable,
)
from tocsin.model.timer import Status
from tocsin.ports.store import Applied, ListQuery, Member, ShardBatch
from tocsin.sql.pool import Activity, ServerOptions
from tocsin.stores.mysql import writes as mysql_write
from tocsin.stores.mysql.connection import connect
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.errors import TRANSLATED
from tocsin.stores.mysql.store import MysqlStore
from tocsin.stores.options import MysqlOptions
from tocsin.testing.store_conformance_base import ALICE, BOB, claimed, finished, loaded, put, row, uuid_of

#: With the primary key, so that nothing else is locked: the row of shard 0, its live timers.
LOCK_SHARD = (b"BEGIN", b"SELECT 1 FROM timers WHERE shard_id = 0 AND row_type = 1 FOR UPDATE")
LOCK_TIMERS = (b"BEGIN", b"SELECT 1 FROM timers FORCE INDEX (PRIMARY) WHERE shard_id = 0 AND row_type = 2 FOR UPDATE")


@pytest_asyncio.fixture
async def store(mysql_url: str) -> AsyncIterator[MysqlStore]:
    store = MysqlStore(mysql_url)
    await store.open(4)
    yield store
    await store.close()


async def writer(store: MysqlStore) -> int:
    """The server's number of the writing session."""

    async def thread_id(connection: Connection) -> int:
        return connection.thread_id

    return await writing_pool(store).run(Activity.READING, thread_id)


async def until(other: Connection, condition: bytes, interval_s: float = 0.01) -> None:
    """Returns when the condition holds in the server's list of sessions."""
    async with asyncio.timeout(PATIENCE_S):
        while not (await other.rows(condition))[0][0]:  # noqa: ASYNC110
            await asyncio.sleep(interval_s)


async def until_waiting(other: Connection, count: int = 1) -> None:
    """Returns when so many transactions of this database wait for a row lock."""
    await until(
        other,
        b"SELECT COUNT(*) >= %d FROM information_schema.innodb_trx AS t JOIN information_schema.processlist AS p "
        b"ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()" % count,
        # The server refreshes this table only after a tenth of a second without queries of it.
        interval_s=0.15,
    )


async def until_waiting_for_table(other: Connection, count: int = 1) -> None:
    await until(
        other,
        b"SELECT COUNT(*) >= %d FROM information_schema.processlist "
        b"WHERE db = DATABASE() AND state LIKE 'Waiting for table%%'" % count,
    )


async def until_noticed(connection: Connection) -> None:
    """Returns when a session knows that the server ended it."""
    async with asyncio.timeout(PATIENCE_S):
        while not connection.is_closed():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


# -- the server ends


async def test_acknowledged_batches_survive_server_kills_and_failed_ones_have_no_effect(mysql: MysqlServer) -> None:
    async with opened(mysql.new_url(), ServerOptions(writers=4)) as store:

        async def sessions_are_gone() -> None:
            for pool in (store._loaders, store._readers, store._leases):
                assert pool is not None
                for connection in pool._idle:
                    await until_noticed(connection)

        await check_batches_across_kills(store, mysql, sessions_are_gone)


async def test_stopped_server_is_unavailable_until_it_restarts(mysql: MysqlServer) -> None:
    async with opened(mysql.new_url()) as store:
        batch = await claimed(store)
        await put(store, kept := row(1, 1))
        mysql.stop()
        for call in (
            store.apply([replace(batch, upserts=[row(2)])]),
            store.claim(1, expected_epoch=0, owner=ALICE),
            store.heartbeat(Member(ALICE, "a", "http://a", 1)),
            store.record("kind", "key"),
        ):
            # No COMMIT was sent, so the outcome is known.
            with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
                await call
        mysql.start()
        assert await loaded(store) == [kept]
        assert await store.apply([replace(batch, upserts=[row(2, 2)])]) == [Applied.DURABLE]


async def test_missing_server_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match=r"mysql://127\.0\.0\.1:1/none") as refused:
        await MysqlStore("mysql://user:secret@127.0.0.1:1/none").open(4)
    assert "secret" not in str(refused.value)


async def test_wrong_password_is_unavailable_and_not_shown(shared_mysql: MysqlServer) -> None:
    with pytest.raises(StoreUnavailable, match="denied") as refused:
        await MysqlStore(f"mysql://root:s3cr3t@127.0.0.1:{shared_mysql.port}/t").open(4)
    # A start does not wait for another password.
    assert refused.type is StoreUnavailable
    assert "s3cr3t" not in str(refused.value)


async def test_a_read_only_server_is_refused(mysql: MysqlServer) -> None:
    url = mysql.new_url()
    async with opened(url) as store, session(url) as other:
        batch = await claimed(store)
        await other.run(b"SET GLOBAL read_only = 1")
        with pytest.raises(StoreUnavailable, match="read-only"):
            await MysqlStore(url).open(4)
        await other.run(b"SET GLOBAL read_only = 0")
        assert await store.apply([batch]) == [Applied.DURABLE]


async def test_nothing_is_read_from_a_server_that_became_read_only(mysql: MysqlServer) -> None:
    """As a switchover leaves it: its sessions work, and its rows are those of a replica."""
    url = mysql.new_url()
    async with opened(url) as store, session(url) as other:
        batch = await claimed(store)
        await put(store, kept := row(1, 1))
        reads = (
            lambda: loaded(store),
            lambda: store.fetch(0, [kept.uuid]),
            lambda: store.record("kind", "key"),
            lambda: store.records("kind", limit=1),
            store.shards,
            store.members,
            lambda: store.list(ListQuery(None, range(4), frozenset({Status.PENDING}))),
        )
        for read in reads:
            async with busy(store._loaders), busy(store._readers), busy(store._leases):
                pass
            await other.run(b"SET GLOBAL read_only = 1")
            with pytest.raises(StoreUnavailable, match="became read-only"):
                await read()
            # Also the sessions that were idle are not used again.
            with pytest.raises(StoreUnavailable, match="is read-only"):
                await read()
            await other.run(b"SET GLOBAL read_only = 0")
            await read()
        assert await store.apply([replace(batch, upserts=[row(2, 2)])]) == [Applied.DURABLE]


async def test_server_that_acknowledges_before_fsync_is_refused_if_durable() -> None:
    server = MysqlServer(settings={"log_bin": "binlog", "server_id": "1", "sync_binlog": "1"})
    try:
        server.init()
        server.start()
        async with opened(server.new_url()) as store, session(server.new_url(), database=False) as other:
            await claimed(store)
            for name, value in (("innodb_flush_log_at_trx_commit", 2), ("sync_binlog", 0)):
                await other.run(f"SET GLOBAL {name} = {value}".encode())
                url = server.new_url()
                with pytest.raises(ConfigError, match=rf"{name} = {value}.*mysql\.durable"):
                    await MysqlStore(url).open(4)
                async with opened(url, mysql=MysqlOptions(durable=False)) as lax:
                    await claimed(lax)
                await other.run(f"SET GLOBAL {name} = 1".encode())
    finally:
        server.remove()


# -- connections end


async def test_connection_cut_between_batches_is_replaced(mysql_url: str, store: MysqlStore) -> None:
    batch = await claimed(store)
    await put(store, row(1, 1))
    idle = writing_pool(store)._idle[0]
    async with session(mysql_url) as other:
        await other.run(b"KILL %d" % idle.thread_id)
        await until_noticed(idle)
    assert await store.apply([replace(batch, upserts=[row(2, 2)])]) == [Applied.DURABLE]


async def test_connection_idle_for_too_long_is_replaced(store: MysqlStore) -> None:
    batch = await claimed(store)
    await put(store, row(1, 1))
    idle = writing_pool(store)._idle[0]
    idle._used_at -= 3_600
    assert await store.apply([replace(batch, upserts=[row(2, 2)])]) == [Applied.DURABLE]
    assert writing_pool(store)._idle[0] is not idle


async def test_connection_cut_before_the_commit_is_a_definite_failure(mysql_url: str, store: MysqlStore) -> None:
    batch = await claimed(store)
    thread_id = await writer(store)
    async with session(mysql_url) as other:
        await other.run(*LOCK_SHARD)
        writing = asyncio.create_task(store.apply([replace(batch, upserts=[row(1, 1)])]))
        await until_waiting(other)
        await other.run(b"KILL %d" % thread_id)
        with pytest.raises(StoreUnavailable):
            await writing
    assert await loaded(store) == []
    assert await store.apply([replace(batch, upserts=[row(2, 2)])]) == [Applied.DURABLE]


async def test_connection_cut_during_the_commit_leaves_the_outcome_unknown(
    shared_mysql: MysqlServer, mysql_url: str, store: MysqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup's lock blocks commits only."""
    batch = await claimed(store)
    await put(store, kept := row(99, 99))
    writing_session = writing_pool(store)._idle[0]
    commit = writing_session.commit
    async with session(mysql_url) as other, session(mysql_url) as killer:

        async def commit_held_up() -> None:
            await other.run(*shared_mysql.kind.hold_commits)
            await commit()

        monkeypatch.setattr(writing_session, "commit", commit_held_up)
        writing = asyncio.create_task(store.apply([replace(batch, upserts=[row(1, 1)])]))
        thread_id = writing_session.thread_id
        await until(
            killer,
            b"SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d AND info = 'COMMIT'" % thread_id,
        )
        await killer.run(b"KILL %d" % thread_id)
        with pytest.raises(OutcomeUnknown, match="outcome of the transaction is unknown"):
            await writing
    assert await store.claim(0, expected_epoch=1, owner=ALICE) == 2
    assert kept in await loaded(store)
    assert len(await loaded(store)) in (1, 2)
    assert await store.apply([batch]) == [Applied.OWNERSHIP_LOST]
    assert await store.apply([replace(batch, epoch=2, upserts=[row(2, 2)])]) == [Applied.DURABLE]


async def test_a_read_whose_connection_is_cut_is_unavailable(mysql_url: str, store: MysqlStore) -> None:
    async with session(mysql_url) as other:
        await other.run(b"LOCK TABLES timers WRITE")
        reading = asyncio.create_task(store.shards())
        await until_waiting_for_table(other)
        rows = await other.rows(
            b"SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for table%'"
        )
        await other.run(b"KILL %d" % rows[0][0])
        with pytest.raises(StoreUnavailable):
            await reading
    assert await store.shards() == []


async def test_silent_server_before_the_commit_is_a_definite_failure_and_releases_locks(mysql: MysqlServer) -> None:
    """The server process is stopped during a batch, the store's wait times out, and the server continues."""
    async with opened(mysql.new_url()) as store:
        batch = await claimed(store)
        await put(store, kept := row(99, 99))
        # The client's time-out, not the server's, which would end the statement itself.
        impatient = ServerOptions(statement_timeout_s=0.2, answer_grace_s=0.0)
        writing_pool(store)._server = replace(store._server, options=impatient)
        mysql.pause()
        try:
            with pytest.raises(StoreUnavailable):
                await store.apply([replace(batch, upserts=[row(i, i) for i in range(1, 51)])])
        finally:
            mysql.resume()
        # Waits for the late transaction, if that has the shard row already.
        assert await store.claim(0, expected_epoch=1, owner=ALICE) == 2
        assert await loaded(store) == [kept]


async def test_frozen_nodes_transaction_is_ended_by_the_server(mysql_url: str) -> None:
    """The next owner waits for at most `lock_timeout`, and what the frozen node still sends has no effect."""
    async with opened(mysql_url, mysql=MysqlOptions(idle_transaction_timeout_s=1)) as store:
        batch = await claimed(store)
        vanished = await connect(store._server)
        await vanished.run(mysql_write.BEGIN, mysql_write.fence([batch]))
        async with opened(mysql_url) as beside:
            assert await beside.claim(0, expected_epoch=1, owner=BOB) == 2
            await until_noticed(vanished)
            with pytest.raises(TRANSLATED):
                await vanished.commit()
            vanished.terminate()
            assert await store.apply([replace(batch, upserts=[row(1)])]) == [Applied.OWNERSHIP_LOST]
            assert await loaded(beside) == []


# -- time-outs, locks, limits


async def test_statement_timeout_is_a_definite_failure(mysql_url: str) -> None:
    # The patient one creates the tables, for which a busy machine takes longer.
    async with (
        opened(mysql_url) as patient,
        opened(mysql_url, ServerOptions(statement_timeout_s=1.0, answer_grace_s=60)) as store,
        session(mysql_url) as other,
    ):
        await other.run(b"LOCK TABLES timers WRITE")
        with pytest.raises(DefiniteFailure, match=r"max_statement_time|maximum statement execution time") as failed:
            await store.shards()
        assert not isinstance(failed.value, StoreUnavailable)
        await other.run(b"UNLOCK TABLES")
        assert await patient.shards() == []


async def test_write_that_times_out_has_no_effect(shared_mysql: MysqlServer, mysql_url: str) -> None:
    """MySQL does not end the statement, so the node stops waiting for the answer."""
    ends_writes = shared_mysql.kind.ends_writes
    grace_s = 60 if ends_writes else 0.5
    async with (
        opened(mysql_url) as beside,
        opened(mysql_url, ServerOptions(statement_timeout_s=1.0, answer_grace_s=grace_s)) as store,
        session(mysql_url) as other,
    ):
        batch = await claimed(beside)
        await other.run(*LOCK_SHARD)
        expected = "max_statement_time" if ends_writes else "mysql://127"
        with pytest.raises(DefiniteFailure, match=expected) as failed:
            await store.apply([replace(batch, upserts=[row(1)])])
        assert isinstance(failed.value, StoreUnavailable) == (not ends_writes)
        await other.run(b"ROLLBACK")
        # Waits for the late transaction, which finds its node gone.
        assert await beside.apply([replace(batch, upserts=[new := row(2)])]) == [Applied.DURABLE]
        assert await loaded(beside) == [new]


async def test_lock_timeout_is_unavailable_and_rolls_back_the_transaction(mysql_url: str) -> None:
    async with opened(mysql_url, ServerOptions(lock_timeout_s=1)) as store, session(mysql_url) as other:
        batch = await claimed(store)
        await put(store, old := row(1, 1))
        await other.run(*LOCK_TIMERS)
        # The fence and the new row succeeded; the server rolls back only the statement that waited.
        with pytest.raises(StoreUnavailable, match=r"[Ll]ock wait"):
            await store.apply([replace(batch, upserts=[row(2, 2), row(1, 5)])])
        await other.run(b"ROLLBACK")
        assert await loaded(store) == [old]
        assert await store.claim(0, expected_epoch=1, owner=BOB) == 2


async def test_a_claim_waits_for_the_batch_under_way(mysql_url: str, store: MysqlStore) -> None:
    batch = await claimed(store)
    await put(store, old := row(1, 1))
    async with session(mysql_url) as other, opened(mysql_url) as beside:
        # The batch has locked the shard row, and waits at this timer.
        await other.run(*LOCK_TIMERS)
        writing = asyncio.create_task(store.apply([replace(batch, upserts=[new := row(1, 2)])]))
        await until_waiting(other)
        claiming = asyncio.create_task(beside.claim(0, expected_epoch=1, owner=BOB))
        await until_waiting(other, 2)
        assert await loaded(beside) == [old]
        await other.run(b"ROLLBACK")
        assert await writing == [Applied.DURABLE]
        assert await claiming == 2
        assert await loaded(beside) == [new]
        assert await store.apply([replace(batch, upserts=[row(3)])]) == [Applied.OWNERSHIP_LOST]


async def test_batch_waits_only_for_earlier_batches_of_its_shards(mysql_url: str, store: MysqlStore) -> None:
    """Also when it deletes more rows than the table has, which servers would prefer to scan. At the end of a range they lock
    the following row, which may be the next shard's."""
    batch, _, other_batch = [await claimed(store, shard_id) for shard_id in range(3)]
    await put(store, old := row(1, 1))
    async with session(mysql_url) as other:
        await other.run(mysql_write.BEGIN, mysql_write.fence([other_batch]))
        deletes = [uuid_of(number) for number in range(1, 1_000)]
        everything = replace(batch, upserts=[new := row(2_000, 9)], deletes=deletes, delete_to=(5, uuid_of(9)))
        assert await store.apply([replace(everything, history=[finished(old)])]) == [Applied.DURABLE]
        await other.run(b"ROLLBACK")
    assert await loaded(store) == [new]


async def deadlocked(mysql_url: str, store: MysqlStore, batch: ShardBatch) -> list[Applied]:
    """Applies the batch, which moves the timer 1, against a transaction that holds this timer and wants the shard row."""
    async with session(mysql_url) as other, session(mysql_url) as beside:
        await other.run(*LOCK_TIMERS)
        # The server rolls back the transaction that has changed less.
        await other.run(*(b"INSERT INTO members VALUES (x'%02x', '', '', 0)" % number for number in range(50)))
        writing = asyncio.create_task(store.apply([batch]))
        await until_waiting(beside)
        crossing = asyncio.create_task(other.run(LOCK_SHARD[1]))
        await crossing
        await other.run(b"ROLLBACK")
        return await writing


async def test_deadlocked_transaction_is_retried(mysql_url: str, store: MysqlStore) -> None:
    batch = await claimed(store)
    await put(store, row(1, 1))
    assert await deadlocked(mysql_url, store, replace(batch, upserts=[new := row(1, 2)])) == [Applied.DURABLE]
    assert await loaded(store) == [new]


async def test_repeated_deadlocks_are_definite_failures(mysql_url: str) -> None:
    async with opened(mysql_url, mysql=MysqlOptions(undone_retries_max=0)) as store:
        batch = await claimed(store)
        await put(store, old := row(1, 1))
        with pytest.raises(DefiniteFailure, match=r"[Dd]eadlock") as failed:
            await deadlocked(mysql_url, store, replace(batch, upserts=[row(1, 2)]))
        assert not isinstance(failed.value, StoreUnavailable)
        assert await loaded(store) == [old]


async def test_cancelled_read_returns_its_connection(mysql_url: str) -> None:
    async with opened(mysql_url, ServerOptions(loaders=1)) as store, session(mysql_url) as other:
        await other.run(b"LOCK TABLES timers WRITE")
        reading = asyncio.create_task(store.shards())
        await until_waiting_for_table(other)
        reading.cancel()
        waiting = asyncio.create_task(store.members())
        await asyncio.wait([reading])
        assert reading.cancelled()
        await other.run(b"UNLOCK TABLES")
        assert await waiting == []


async def test_concurrent_commits_of_neighbouring_shards_do_not_deadlock(mysql_url: str) -> None:
    """Upserts that move rows lock gaps in the uuid index; neighbouring shards lock the same gaps."""
    async with opened(mysql_url, ServerOptions(writers=4)) as store:
        batches = [await claimed(store, shard_id) for shard_id in range(4)]

        async def lane(batch: ShardBatch) -> None:
            for number in range(40):
                upserts = [row(1 + (number * 7 + i * 13) % 60, number * 10 + i) for i in range(4)]
                deletes = [uuid_of(70 + number % 5)]
                history = [finished(each) for each in upserts]
                parts = replace(batch, upserts=upserts, deletes=deletes, history=history, delete_to=(number - 30, b""))
                assert await store.apply([parts]) == [Applied.DURABLE]

        await asyncio.gather(*(lane(batch) for batch in batches))
