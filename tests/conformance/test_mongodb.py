"""The MongoDB store, on the stand-in, passes the store conformance tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.damage import damage
from tests.support.mongodb import MongoServer
from tests.support.shared import name_of
from tocsin.ports.store import Store
from tocsin.stores.mongodb.store import MongoStore
from tocsin.stores.options import MongoOptions
from tocsin.testing.store_conformance import StoreConformance
from tocsin.testing.store_conformance_batches import LoadConformance
from tocsin.testing.store_conformance_lists import ListConformance

#: What the suite writes expired in 1970, and MongoDB would delete it meanwhile. The stand-in takes a millisecond and more for
#: each document of a batch.
OPTIONS = MongoOptions(expire=False, operation_timeout_s=100.0)


class TestMongoStore(StoreConformance):
    damage = staticmethod(damage)
    examples = 10

    @pytest.fixture(autouse=True)
    def _server(self, shared_mongodb: MongoServer) -> None:
        self.server = shared_mongodb

    def make_store(self, folder: Path) -> Store:
        return MongoStore(self.server.url(name_of(folder)), OPTIONS)


class TestMongoStoreWithSmallPages(LoadConformance, ListConformance):
    """Pages are cut by their bytes."""

    @pytest.fixture(autouse=True)
    def _server(self, shared_mongodb: MongoServer) -> None:
        self.server = shared_mongodb

    def make_store(self, folder: Path) -> Store:
        return MongoStore(self.server.url(name_of(folder)), replace(OPTIONS, read_bytes_max=20))
