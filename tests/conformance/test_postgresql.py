"""The PostgreSQL store passes the store conformance tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.small_limits import SmallLimitsConformance
from tests.support.damage import damage
from tests.support.postgresql import PostgresServer
from tests.support.shared import name_of
from tocsin.ports.store import Store
from tocsin.sql.pool import ServerOptions
from tocsin.stores.options import PostgresOptions
from tocsin.stores.postgresql.store import PostgresStore
from tocsin.testing.store_conformance import StoreConformance


class _OnServer:
    @pytest.fixture(autouse=True)
    def _server(self, shared_postgresql: PostgresServer) -> None:
        self.url = shared_postgresql.url()


class TestPostgresStore(_OnServer, StoreConformance):
    damage = staticmethod(damage)
    #: SQLite's, which has the same statements, are more.
    examples = 15

    def make_store(self, folder: Path) -> Store:
        return PostgresStore(self.url, postgres=PostgresOptions(schema=name_of(folder)))


class TestPostgresStoreWithSmallPages(_OnServer, SmallLimitsConformance):
    """With small limits: pages are shortened by their bytes, and batches need several writers' lanes."""

    def make_store(self, folder: Path) -> Store:
        return PostgresStore(
            self.url, ServerOptions(writers=3, read_bytes_max=20), PostgresOptions(schema=name_of(folder))
        )
