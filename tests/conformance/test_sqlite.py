"""The SQLite store passes the store conformance tests."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.small_limits import SmallLimitsConformance
from tests.support.damage import damage
from tocsin.model.namespace import Namespace
from tocsin.ports.store import HistoryRow, RunRow, Store, StoredRow
from tocsin.sql.dialect import Step
from tocsin.stores.options import SqliteOptions
from tocsin.stores.sqlite.store import SqliteStore
from tocsin.testing.store_conformance import StoreConformance
from tocsin.testing.store_conformance_durability import DamageConformance

#: Ends in the first byte of a longer character, and begins with a quote, which JSON escapes.
NOT_TEXT = b'"\xff\xe2'


class TestSqliteStore(StoreConformance):
    damage = staticmethod(damage)
    examples = 40

    def make_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "tocsin.db")


class DamagedTextConformance(DamageConformance):
    """With a text that is not UTF-8, which SQLite does not check."""

    column = "timer_tags"

    def make_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "tocsin.db")

    async def damage(self, store: Store, what: StoredRow | HistoryRow | RunRow | Namespace) -> None:
        assert isinstance(store, SqliteStore)
        key: str | bytes
        column = self.column
        if isinstance(what, RunRow):
            await damage(store, what)
            return
        if isinstance(what, Namespace):
            # With another character in place of the byte it would be JSON.
            value = "substr(record_value, 1, length(record_value) - 1) || ',\"note\":' || CAST(? AS TEXT) || '\"}'"
            where, key = f"records SET record_value = {value} WHERE record_key = ?", what.name
        elif isinstance(what, HistoryRow):
            column = "timer_tags" if column == "timer_suspended_reason" else column
            where, key = f"history SET {column} = CAST(? AS TEXT) WHERE timer_generation = ?", what.generation
        else:
            # A schedule is looked for by its namespace and listed by its id.
            column = column if what.namespace == "default" else "timer_tags"
            where, key = f"timers SET {column} = CAST(? AS TEXT) WHERE timer_uuid = ?", what.uuid
        assert await store._change(Step(f"UPDATE {where}", (NOT_TEXT, key))) == 1


class TestSqliteStoreWithDamagedNamespaces(DamagedTextConformance):
    column = "timer_namespace"


class TestSqliteStoreWithDamagedIds(DamagedTextConformance):
    column = "timer_id"


class TestSqliteStoreWithDamagedTags(DamagedTextConformance):
    column = "timer_tags"


class TestSqliteStoreWithDamagedReasons(DamagedTextConformance):
    column = "timer_suspended_reason"


class TestSqliteStoreWithSmallPages(SmallLimitsConformance):
    """With small limits and another page size: pages of lists are shortened by their bytes."""

    def make_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "tocsin.db", SqliteOptions(page_bytes=8192, read_bytes_max=20))
