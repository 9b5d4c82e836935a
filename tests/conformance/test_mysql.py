"""The MySQL store, on MariaDB, passes the store conformance tests, with statements that TiDB's grammar accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.small_limits import SmallLimitsConformance
from tests.support.damage import damage
from tests.support.mysql import MysqlServer
from tests.support.shared import name_of
from tests.support.tidb_grammar import every_statement_is_parsed
from tocsin.ports.store import Store
from tocsin.sql.pool import ServerOptions
from tocsin.stores.mysql.store import MysqlStore
from tocsin.stores.options import MysqlOptions
from tocsin.testing.store_conformance import StoreConformance


class _OnServer:
    @pytest.fixture(autouse=True)
    def _server(self, shared_mysql: MysqlServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        self.server = shared_mysql
        with every_statement_is_parsed(monkeypatch):
            yield


class TestMysqlStore(_OnServer, StoreConformance):
    damage = staticmethod(damage)
    #: SQLite's, which has the same statements, are more.
    examples = 20

    def make_store(self, folder: Path) -> Store:
        return MysqlStore(self.server.url(name_of(folder)))


class TestMysqlStoreWithSmallPages(_OnServer, SmallLimitsConformance):
    """With small limits: pages are shortened by their bytes, ranges are deleted in many steps, and batches need many packets
    and several writers' lanes."""

    def make_store(self, folder: Path) -> Store:
        return MysqlStore(
            self.server.url(name_of(folder)),
            ServerOptions(writers=3, read_bytes_max=20),
            MysqlOptions(statement_bytes_max=700_000, delete_rows_max=2),
        )
