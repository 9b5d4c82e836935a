"""The SQLite store passes the store conformance tests."""

from __future__ import annotations

from pathlib import Path

from tocsin.ports.store import Store
from tocsin.stores.sqlite.store import SqliteStore
from tocsin.testing.store_conformance import StoreConformance


class TestSqliteStore(StoreConformance):
    def make_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "tocsin.db")


class TestSqliteStoreWithSmallPages(StoreConformance):
    """With small limits and another page size: pages of lists are shortened by their bytes."""

    examples = 20

    def make_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "tocsin.db", page_bytes=8192, read_bytes_max=20)
