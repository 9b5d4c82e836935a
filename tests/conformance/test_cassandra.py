"""Cassandra keeps the store port's rules, and keeps them also where its protocol is ScyllaDB's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cassandra import SHARED_KEYSPACE, CassandraServer
from tests.support.damage import damage
from tests.support.scylla import ScyllaProxy, scylla
from tests.support.shared import name_of
from tocsin.ports.store import Store
from tocsin.stores.cassandra.store import CassandraStore
from tocsin.stores.options import CassandraOptions
from tocsin.testing.store_conformance import StoreConformance


class TestCassandraStore(StoreConformance):
    damage = staticmethod(damage)
    examples = 8
    # Which batch was the last one before a claim is written with the first batch under it.
    knows_former = False
    #: Where the server is reached instead, if a proxy stands for it.
    port: int | None = None

    @pytest.fixture(autouse=True)
    def _server(self, shared_cassandra: CassandraServer) -> None:
        self.server = shared_cassandra

    def make_store(self, folder: Path) -> Store:
        # The rows of these tests expired long ago.
        options = CassandraOptions(scope=f"{name_of(folder)}/", history_ttl_min_s=3_600, page_rows_max=7, keys_max=3)
        return CassandraStore(self.server.url(SHARED_KEYSPACE, self.port), options)


@pytest.fixture(scope="module")
def proxy(shared_cassandra: CassandraServer) -> Iterator[ScyllaProxy]:
    """Answers as ScyllaDB would, for a keyspace that was created without tablets."""

    async def create_keyspace() -> None:
        store = CassandraStore(shared_cassandra.url(SHARED_KEYSPACE))
        await store.open(None)
        await store.close()

    asyncio.run(create_keyspace())
    with scylla(shared_cassandra.port) as proxy:
        yield proxy
        assert proxy.changed > 0, "no answer was ScyllaDB's"


class TestStoreWithScyllasProtocol(TestCassandraStore):
    """ScyllaDB itself was never tried."""

    examples = 4

    @pytest.fixture(autouse=True)
    def _proxy(self, proxy: ScyllaProxy) -> None:
        self.port = proxy.port
