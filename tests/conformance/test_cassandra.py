"""Cassandra keeps the store port's rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cassandra import SHARED_KEYSPACE, CassandraServer
from tests.support.damage import damage
from tests.support.shared import name_of
from tocsin.ports.store import Store
from tocsin.stores.cassandra.store import CassandraStore
from tocsin.stores.options import CassandraOptions
from tocsin.testing.store_conformance import StoreConformance


class TestCassandraStore(StoreConformance):
    damage = staticmethod(damage)
    examples = 8

    @pytest.fixture(autouse=True)
    def _server(self, shared_cassandra: CassandraServer) -> None:
        self.server = shared_cassandra

    def make_store(self, folder: Path) -> Store:
        # The rows of these tests expired long ago.
        options = CassandraOptions(scope=f"{name_of(folder)}/", history_ttl_min_s=3_600, page_rows_max=7, keys_max=3)
        return CassandraStore(self.server.url(SHARED_KEYSPACE), options)
