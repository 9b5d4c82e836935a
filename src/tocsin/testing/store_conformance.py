"""The store port as tests, for every adapter, ours or yours.

    class TestMyStore(StoreConformance):
        def make_store(self, folder):
            return MyStore(folder / "data")

Needs pytest, pytest-asyncio in auto mode, and hypothesis. Differences between databases are skipped by capability
(`Capabilities`, `persistent`), never by name.
"""

from __future__ import annotations

from tocsin.testing.store_conformance_batches import BatchConformance, FetchConformance, LoadConformance
from tocsin.testing.store_conformance_claims import ClaimConformance, FenceConformance
from tocsin.testing.store_conformance_durability import (
    AdministrationConformance,
    ConcurrencyConformance,
    DurabilityConformance,
)
from tocsin.testing.store_conformance_lists import HistoryConformance, ListConformance
from tocsin.testing.store_conformance_machine import MachineConformance


class StoreConformance(
    ClaimConformance,
    FenceConformance,
    BatchConformance,
    LoadConformance,
    FetchConformance,
    ListConformance,
    HistoryConformance,
    AdministrationConformance,
    ConcurrencyConformance,
    DurabilityConformance,
    MachineConformance,
):
    """Every topic."""
