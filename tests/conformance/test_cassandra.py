"""Cassandra keeps the store port's rules."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.support.cassandra import SHARED_KEYSPACE, CassandraServer
from tests.support.damage import damage
from tocsin.ports.store import Store
from tocsin.stores.cassandra.store import CassandraStore
from tocsin.stores.options import CassandraOptions
from tocsin.testing.store_conformance import StoreConformance


def scope_of(folder: Path) -> str:
    """A part of the table of its own for each folder: creating tables takes long."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:24] + "/"


class TestCassandraStore(StoreConformance):
    damage = staticmethod(damage)
    examples = 8

    @pytest.fixture(autouse=True)
    def _server(self, shared_cassandra: CassandraServer) -> None:
        self.server = shared_cassandra

    def make_store(self, folder: Path) -> Store:
        # The rows of these tests expired long ago.
        options = CassandraOptions(scope=scope_of(folder), history_ttl_min_s=3_600, page_rows_max=7, keys_max=3)
        return CassandraStore(self.server.url(SHARED_KEYSPACE), options)
