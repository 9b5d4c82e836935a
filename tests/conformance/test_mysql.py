"""MySQL, here MariaDB, keeps the store port's rules."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.support.mysql import MysqlServer
from tocsin.ports.store import Store
from tocsin.stores.mysql import MysqlStore
from tocsin.testing.store_conformance import StoreConformance


def database_of(folder: Path) -> str:
    """A database of its own for each folder."""
    return "t" + hashlib.sha256(str(folder).encode()).hexdigest()[:24]


class TestMysqlStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def _server(self, shared_mysql: MysqlServer) -> None:
        self.server = shared_mysql

    def make_store(self, folder: Path) -> Store:
        return MysqlStore(self.server.url(database_of(folder)))


class TestMysqlStoreWithSmallPages(TestMysqlStore):
    """Pages are cut by octets all the time, ranges are deleted in many pieces, batches take many packets and cross the
    lanes of several writers."""

    examples = 20

    def make_store(self, folder: Path) -> Store:
        return MysqlStore(
            self.server.url(database_of(folder)),
            writers=3,
            read_bytes_max=20,
            statement_bytes_max=700_000,
            delete_rows_max=2,
        )
