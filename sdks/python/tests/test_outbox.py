"""Timers that are rows of the program's database until they are created: in SQLite, PostgreSQL and MySQL, with a real server.

`sdks/scenarios/outbox.json` has what all SDKs have in common; here are transactions, drains at once, and kills."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import asyncpg
import psycopg
import pymysql
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import scoped_session, sessionmaker
from tests.support.mysql import MysqlServer
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer

from tocsin_client import AsyncClient, Client
from tocsin_client._core.outbox import LEASE_S, RowIds, now_us
from tocsin_client._sync import outbox as drains
from tocsin_client.errors import InvalidArgument
from tocsin_client.outbox import (
    AsyncDrain,
    Asyncpg,
    AsyncSqlAlchemy,
    DbApi,
    Drain,
    SqlAlchemy,
    async_outbox,
    outbox,
)
from tocsin_client.outbox.__main__ import connector

HOOK = "http://127.0.0.1:1/hooks"


@pytest.fixture(scope="module")
def postgresql():
    server = PostgresServer()
    server.init()
    server.start()
    yield server.url()
    server.remove()


@pytest.fixture(scope="module")
def mysql():
    server = MysqlServer()
    server.init()
    server.start()
    with pymysql.connect(host="127.0.0.1", port=server.port, user="root") as connection:
        connection.cursor().execute("CREATE DATABASE app")
    yield server.url("app")
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def url(request, tmp_path):
    """A database without rows."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'app.db'}"
    found = request.getfixturevalue(request.param)
    with contextlib.closing(connector(found)()) as connection:
        connection.cursor().execute("DROP TABLE IF EXISTS tocsin_outbox")
        connection.commit()
    return found


@pytest.fixture
def client(server):
    with server.client() as made:
        yield made


@pytest.fixture
def namespace(client, request):
    name = re.sub(r"[^A-Za-z0-9._:-]", "-", request.node.name)
    client.namespaces.create(name)
    return name


@pytest.fixture
def drain(client, url):
    made = Drain(client, DbApi(connector(url)))
    made.create_table()
    made.create_table()
    return made


def written(url, namespace, *ids, commit=True):
    with contextlib.closing(connector(url)()) as connection:
        for timer_id in ids:
            outbox(connection).create(namespace, timer_id, HOOK, delay="1h")
        (connection.commit if commit else connection.rollback)()


def rows(url, columns="timer_id"):
    with contextlib.closing(connector(url)()) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SELECT {columns} FROM tocsin_outbox ORDER BY id")
        return cursor.fetchall()


def created(client, namespace):
    return sorted(timer.id for timer in client.timers.list(namespace))


def test_committed_rows_become_timers(url, drain, client, namespace):
    written(url, namespace, "a", "größe/17 ☂")
    written(url, namespace, "never", commit=False)
    written(url, "none", "refused")
    drained = drain.once()
    assert (drained.created, drained.dead, drained.waiting, drained.unavailable) == (2, 1, 0, None)
    assert created(client, namespace) == ["a", "größe/17 ☂"]
    ((timer_id, reason),) = rows(url, "timer_id, dead_reason")
    assert timer_id == "refused" and reason.startswith("NAMESPACE_NOT_FOUND")
    assert not drain.once().found


def test_large_rows_are_several_requests(url, drain, client, namespace):
    with contextlib.closing(connector(url)()) as connection:
        for n in range(120):
            outbox(connection).create(namespace, f"t{n}", HOOK, delay="1h", payload="x" * 100_000)
        connection.commit()
    assert drain.once().created == 120
    assert len(created(client, namespace)) == 120


def test_drains_at_once_create_each_timer_once_and_keep_the_order_of_each(url, drain, server, client, namespace):
    """Each row of a timer has a greater number than the row before."""
    with contextlib.closing(connector(url)()) as connection:
        for n in range(600):
            outbox(connection).create(namespace, f"t{n % 200}", HOOK, delay="1h", payload=n)
        connection.commit()
    made, failures = [], []

    def run():
        with server.client() as own:
            mine = Drain(own, DbApi(connector(url)), rows_max=40)
            while rows(url):
                try:
                    made.append(mine.once())
                except (sqlite3.OperationalError, pymysql.OperationalError) as busy:
                    failures.append(busy)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sum(drained.created for drained in made) == 600, failures
    assert not any(drained.dead or drained.unavailable for drained in made)
    last = {timer.id: timer.payload for timer in client.timers.list(namespace)}
    assert last == {f"t{n}": 400 + n for n in range(200)}


def test_rows_that_a_killed_drain_has_taken_are_created_once(tmp_path, client, server, namespace, monkeypatch):
    url = f"sqlite:///{tmp_path / 'app.db'}"
    drain = Drain(client, DbApi(connector(url)))
    drain.create_table()
    written(url, namespace, "a", "b")
    program = Path(__file__).with_name("killed_drain.py")
    died = subprocess.run([sys.executable, program, server.url, tmp_path / "app.db"], check=False, timeout=PATIENCE_S)
    assert died.returncode == -signal.SIGKILL
    before = {timer.id: timer.created_at for timer in client.timers.list(namespace)}
    assert sorted(before) == ["a", "b"] and len(rows(url)) == 2
    assert not drain.once().found, "the lease of the killed drain is not over"
    monkeypatch.setattr(drains, "now_us", lambda: now_us() + (LEASE_S + 1) * 1_000_000)
    assert drain.once().created == 2 and not rows(url)
    assert {timer.id: timer.created_at for timer in client.timers.list(namespace)} == before


def test_runs_in_the_background_while_the_server_comes_and_goes(url, drain, server, namespace, caplog, monkeypatch):
    caplog.set_level(logging.WARNING, "tocsin_client.outbox")
    with Client("http://127.0.0.1:1", retries=0) as away:
        written(url, namespace, "a")
        assert Drain(away, DbApi(connector(url))).once().unavailable is not None
        seen = threading.Event()
        # Pytest has one handler for all tests.
        monkeypatch.setattr(caplog.handler, "emit", lambda record: seen.set())
        with Drain(away, DbApi(connector(url))).start():
            assert seen.wait(PATIENCE_S), "a drain without a server warns"
    assert len(rows(url)) == 1
    with server.client() as client, drain.start(every="10ms"):
        wait_until(lambda: not rows(url))
        written(url, namespace, "b")
        wait_until(lambda: not rows(url))
        assert created(client, namespace) == ["a", "b"]


def wait_until(is_so):
    stop = threading.Event()
    for _ in range(int(PATIENCE_S / 0.02)):
        if is_so():
            return
        stop.wait(0.02)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize("rollback", [False, True])
def test_sessions_and_connections_of_sqlalchemy(url, drain, rollback, namespace):
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:").replace("mysql:", "mysql+pymysql:"))
    sessions = sessionmaker(engine)
    scoped = scoped_session(sessions)
    with sessions() as session, engine.connect() as connection:
        for used, timer_id in ((session, "session"), (scoped, "scoped"), (connection, "connection")):
            outbox(used).create(namespace, timer_id, HOOK, delay="1h")
            (used.rollback if rollback else used.commit)()
    scoped.remove()
    assert len(rows(url)) == (0 if rollback else 3)
    drained = Drain(drain._client, SqlAlchemy(sessions)).once()
    assert drained.created == (0 if rollback else 3) and not rows(url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as each, pytest.raises(InvalidArgument):
        outbox(each)
    engine.dispose()


def test_transactions_that_the_program_opens_in_autocommit_mode(tmp_path, postgresql, mysql):
    at = f"sqlite:///{tmp_path / 'app.db'}"
    opened = [
        (at, connector(at)(), lambda c: setattr(c, "isolation_level", None), "BEGIN"),
        (postgresql, psycopg.connect(postgresql), lambda c: setattr(c, "autocommit", True), "BEGIN"),
        (mysql, connector(mysql)(), lambda c: c.autocommit(True), "BEGIN"),
    ]
    for url, connection, switch, begin in opened:
        with contextlib.closing(connection):
            with Client("http://127.0.0.1:1") as client:
                Drain(client, DbApi(connector(url))).create_table()
            switch(connection)
            with pytest.raises(InvalidArgument, match="autocommit"):
                outbox(connection)
            connection.cursor().execute(begin)
            outbox(connection).create("n", "own", HOOK, delay="1h")
            connection.rollback()
        assert "own" not in str(rows(url))


def test_asynchronous_programs(postgresql, server, namespace):
    async def run():
        pool = await asyncpg.create_pool(postgresql)
        engine = create_async_engine(postgresql.replace("postgresql:", "postgresql+asyncpg:"))
        sessions = async_sessionmaker(engine)
        async with AsyncClient(server.url) as client, pool.acquire() as connection:
            await connection.execute("DROP TABLE IF EXISTS tocsin_outbox")
            drain = AsyncDrain(client, Asyncpg(pool))
            await drain.create_table()
            with pytest.raises(InvalidArgument, match="autocommit"):
                async_outbox(connection)
            async with connection.transaction():
                await async_outbox(connection).create(namespace, "asyncpg", HOOK, delay="1h")
            with contextlib.suppress(LookupError):
                async with connection.transaction():
                    await async_outbox(connection).create(namespace, "never", HOOK, delay="1h")
                    raise LookupError
            async with sessions.begin() as session:
                await async_outbox(session).create(namespace, "session", HOOK, delay="1h")
            async with await psycopg.AsyncConnection.connect(postgresql) as third:
                await async_outbox(third).create(namespace, "psycopg", HOOK, delay="1h")
            assert (await AsyncDrain(client, AsyncSqlAlchemy(sessions), rows_max=1).once()).created == 1
            async with drain.start(every="10ms"):
                await asyncio.to_thread(wait_until, lambda: not rows(postgresql))
            found = [timer.id async for timer in client.timers.list(namespace)]
            assert sorted(found) == ["asyncpg", "psycopg", "session"]
        await pool.close()
        await engine.dispose()

    asyncio.run(run())


def test_command(url, server, client, namespace):
    def run(*arguments, **environment):
        command = [sys.executable, "-m", "tocsin_client.outbox", "--server", server.url, *arguments]
        environment = {**os.environ, **environment}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        return ran.returncode, ran.stdout.strip(), ran.stderr.strip()

    assert run("--database", url, "--create-table", "--once") == (0, "0 created, 0 dead", "")
    written(url, namespace, "a", "b")
    assert run("--once", DATABASE_URL=url) == (0, "2 created, 0 dead", "")
    assert created(client, namespace) == ["a", "b"]
    assert run("--once", "--server", "http://127.0.0.1:1", "--database", url)[0] == 0
    assert run("--once", "--database", "oracle://x")[0] == 2
    process = subprocess.Popen(
        [sys.executable, "-m", "tocsin_client.outbox", "--server", server.url, "--database", url, "--every", "10ms"],
        stderr=subprocess.DEVNULL,
    )
    try:
        written(url, namespace, "c")
        wait_until(lambda: not rows(url))
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


def test_what_cannot_be_sent_is_refused_at_once():
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(InvalidArgument, match="delay"):
            outbox(connection).create("n", "i", HOOK, delay=-1)
        with pytest.raises(InvalidArgument, match="table"):
            outbox(connection, table="a; DROP TABLE b")
    with pytest.raises(InvalidArgument, match="connection"):
        outbox("sqlite:///app.db")


def test_row_ids_are_made_in_a_process_that_is_forked_meanwhile():
    ids = RowIds()
    with ids._lock:  # by another thread of the parent, at the fork
        pid = os.fork()
        if pid == 0:
            signal.alarm(5)
            os._exit(0 if ids.next(1_801_396_800_000) else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_row_ids_ascend():
    ids = RowIds()
    made = [ids.next(1_801_396_800_000) for _ in range(5_000)] + [ids.next(1_801_396_799_000)]
    assert made == sorted(set(made))
    assert all(each[14] == "7" and each[19] in "89ab" for each in made)
