"""What keeps a node's lease never waits for pages of timers, for lists, or for the removal of what has expired."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.support.patience import PATIENCE_S
from tests.support.pools import busy
from tocsin.ports.store import Member
from tocsin.stores.mysql.store import MysqlStore
from tocsin.stores.postgresql.store import PostgresStore
from tocsin.testing.store_conformance_base import ALICE

STORES = {"postgresql": PostgresStore, "mysql": MysqlStore}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> PostgresStore | MysqlStore:
    return STORES[request.param](request.getfixturevalue(f"{request.param}_url"))


async def test_heartbeats_have_a_connection_of_their_own(store: PostgresStore | MysqlStore) -> None:
    await store.open(4)
    try:
        async with busy(store._loaders), busy(store._readers), asyncio.timeout(PATIENCE_S):
            member = Member(ALICE, "a", "http://a", 1)
            assert await store.heartbeat(member) > 0
            assert await store.members() == [member]
            assert await store.records_versions("kind", urgent=True) == (0,)
        async with busy(store._leases), asyncio.timeout(PATIENCE_S):
            assert await store.records_versions("kind") == (0,)
    finally:
        await store.close()


async def test_the_clock_of_a_heartbeat_is_read_when_its_row_is_written(postgresql_url: str) -> None:
    store = PostgresStore(postgresql_url)
    await store.open(4)
    other = await asyncpg.connect(postgresql_url)
    try:
        await store.heartbeat(Member(ALICE, "a", "http://a", 1))
        async with asyncio.timeout(PATIENCE_S):
            async with other.transaction():
                await other.execute("SELECT FROM tocsin.members FOR SHARE")
                beating = asyncio.create_task(store.heartbeat(Member(ALICE, "a", "http://a", 2)))
                waits = 0
                while not waits:
                    waits = await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted")
                released_us = await other.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
            assert await beating >= released_us
    finally:
        await other.close()
        await store.close()
