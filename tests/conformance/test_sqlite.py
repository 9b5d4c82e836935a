"""The SQLite store passes the store conformance tests."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.small_limits import SmallLimitsConformance
from tests.support.damage import damage
from tocsin.ports.store import Store
from tocsin.stores.options import SqliteOptions
from tocsin.stores.sqlite.store import SqliteStore
from tocsin.testing.store_conformance import StoreConformance


class TestSqliteStore(StoreConformance):
    damage = staticmethod(damage)
    examples = 40

    def make_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "tocsin.db")


class TestSqliteStoreWithSmallPages(SmallLimitsConformance):
    """With small limits and another page size: pages of lists are shortened by their bytes."""

    def make_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "tocsin.db", SqliteOptions(page_bytes=8192, read_bytes_max=20))
