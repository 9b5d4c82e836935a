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
from tocsin.testing.store_conformance_batches import BatchConformance, ClaimConformance, FenceConformance
from tocsin.testing.store_conformance_durability import (
    ConcurrencyConformance,
    DurabilityConformance,
    OpeningConformance,
    RecordsConformance,
)
from tocsin.testing.store_conformance_failures import FailureConformance
from tocsin.testing.store_conformance_lists import HistoryConformance
from tocsin.testing.store_conformance_machine import MachineConformance


def store_of(server: CassandraServer, folder: Path, port: int | None = None) -> Store:
    """The store of a folder; `port` is that of a proxy which stands for the server."""
    # The rows of these tests expired long ago.
    options = CassandraOptions(scope=f"{name_of(folder)}/", history_ttl_min_s=3_600, page_rows_max=7, keys_max=3)
    return CassandraStore(server.url(SHARED_KEYSPACE, port), options)


class TestCassandraStore(StoreConformance):
    damage = staticmethod(damage)
    examples = 8

    @pytest.fixture(autouse=True)
    def _server(self, shared_cassandra: CassandraServer) -> None:
        self.server = shared_cassandra

    def make_store(self, folder: Path) -> Store:
        return store_of(self.server, folder)


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


class TestStoreWithScyllasProtocol(
    ClaimConformance,
    FenceConformance,
    BatchConformance,
    HistoryConformance,
    FailureConformance,
    RecordsConformance,
    OpeningConformance,
    ConcurrencyConformance,
    DurabilityConformance,
    MachineConformance,
):
    """The topics of conditional writes and of opening, whose answers differ. Pages and lists are read as Cassandra's: random
    operations try some. ScyllaDB itself was never tried."""

    examples = 4

    @pytest.fixture(autouse=True)
    def _proxy(self, shared_cassandra: CassandraServer, proxy: ScyllaProxy) -> None:
        self.server, self.port = shared_cassandra, proxy.port

    def make_store(self, folder: Path) -> Store:
        return store_of(self.server, folder, self.port)
