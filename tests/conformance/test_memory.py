"""The memory store, which is the specification, passes the store conformance tests."""

from __future__ import annotations

from pathlib import Path

from tests.support.damage import damage
from tocsin.ports.store import Store
from tocsin.stores.memory import MemoryStore
from tocsin.testing.store_conformance import StoreConformance


class TestMemoryStore(StoreConformance):
    damage = staticmethod(damage)
    persistent = False
    #: It is compared with itself.
    examples = 5

    def make_store(self, folder: Path) -> Store:
        return MemoryStore()
