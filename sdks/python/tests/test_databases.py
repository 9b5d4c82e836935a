"""Transactions that Dedup gets into, of sessions and asynchronous drivers; whole programs are in the docs."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker
from tests.support.postgresql import PostgresServer

from tocsin_client.errors import InvalidArgument
from tocsin_client.receiver import AsyncDedup, Asyncpg, AsyncSqlAlchemy, Dedup, SqlAlchemy, done, fail, retry
from tocsin_client.testing import firing


@pytest.fixture(scope="module")
def url():
    server = PostgresServer()
    server.init()
    server.start()
    yield server.url()
    server.remove()


class OfAsyncpg:
    def __init__(self, url):
        self.url = url

    async def __aenter__(self):
        self.pool = await asyncpg.create_pool(self.url)
        self.dedup = AsyncDedup(Asyncpg(self.pool), table="of_asyncpg")
        return self

    async def __aexit__(self, *_):
        await self.pool.close()

    async def execute(self, connection, statement):
        await connection.execute(statement)

    async def works(self):
        return await self.pool.fetchval("SELECT count(*) FROM work")


class OfSqlAlchemy:
    def __init__(self, url):
        self.engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))

    async def __aenter__(self):
        self.dedup = AsyncDedup(AsyncSqlAlchemy(async_sessionmaker(self.engine)), table="of_sqlalchemy")
        return self

    async def __aexit__(self, *_):
        await self.engine.dispose()

    async def execute(self, session, statement):
        await session.execute(text(statement))

    async def works(self):
        async with self.engine.connect() as connection:
            return (await connection.execute(text("SELECT count(*) FROM work"))).scalar()


@pytest.mark.parametrize("database", [OfAsyncpg, OfSqlAlchemy])
def test_asynchronous_work_is_done_once(url, database):
    async def run():
        connection = await asyncpg.connect(url)
        await connection.execute("DROP TABLE IF EXISTS work; CREATE TABLE work (id TEXT)")
        await connection.close()
        async with database(url) as used:

            def working(answer):
                async def work(tx):
                    await used.execute(tx, "INSERT INTO work VALUES ('x')")
                    return answer

                return work

            await used.dedup.create_table()
            await used.dedup.create_table()
            given, final = firing(), done()
            for undone in (retry(3), fail("no such order")):
                assert await used.dedup.once(given, working(undone)) == undone
            with pytest.raises(TypeError):
                await used.dedup.once(given, working(None))
            assert await used.works() == 0
            at_once = await asyncio.gather(*(used.dedup.once(given, working(final)) for _ in range(4)))
            assert at_once == [final] * 4 and await used.works() == 1
            assert await used.dedup.forget() == 0
            assert await used.dedup.forget(timedelta(seconds=-5)) == 1

    asyncio.run(run())


def test_asynchronous_sessions_in_autocommit_mode_are_refused(url):
    async def run():
        asynchronous = url.replace("postgresql://", "postgresql+asyncpg://")
        engine = create_async_engine(asynchronous, isolation_level="AUTOCOMMIT")
        try:
            with pytest.raises(InvalidArgument, match="autocommit"):
                await AsyncDedup(AsyncSqlAlchemy(async_sessionmaker(engine))).create_table()
        finally:
            await engine.dispose()

    asyncio.run(run())


def test_sessions_in_autocommit_mode_are_refused(url, tmp_path):
    for each in (f"sqlite:///{tmp_path / 'app.db'}", url.replace("postgresql://", "postgresql+psycopg://")):
        engine = create_engine(each, isolation_level="AUTOCOMMIT")
        with pytest.raises(InvalidArgument, match="autocommit"):
            Dedup(SqlAlchemy(sessionmaker(engine))).create_table()
        engine.dispose()


def test_sessions_that_begin_transactions_themselves(tmp_path):
    """As SQLAlchemy's documentation has it for SQLite."""
    engine = create_engine(f"sqlite:///{tmp_path / 'app.db'}")

    @event.listens_for(engine, "connect")
    def _leave_to_us(connection, _):
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _begin(connection):
        connection.exec_driver_sql("BEGIN")

    dedup = Dedup(SqlAlchemy(sessionmaker(engine)))
    dedup.create_table()
    assert dedup.once(firing(), lambda _: retry()) == retry()
    assert dedup.forget(timedelta(seconds=-5)) == 0


def test_sessions(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path / 'app.db'}")
    dedup = Dedup(SqlAlchemy(sessionmaker(engine)))
    dedup.create_table()
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE work (id TEXT)"))

    def working(answer):
        def work(session):
            session.execute(text("INSERT INTO work VALUES ('x')"))
            return answer

        return work

    given = firing()
    assert dedup.once(given, working(retry())) == retry()
    assert [dedup.once(given, working(answer)) for answer in (done(), fail("late"))] == [done()] * 2
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM work")).scalar() == 1
    assert dedup.forget(timedelta(seconds=-5)) == 1
