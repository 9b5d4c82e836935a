"""The store port's conformance tests, for Tocsin's adapters and third-party ones.

    class TestMyStore(StoreConformance):
        def make_store(self, folder):
            return MyStore(folder / "data")

They require pytest, pytest-asyncio in auto mode, and hypothesis. Tests that do not apply to a database are skipped by
capability (`Capabilities`, `persistent`), never by the database's name.
"""

from __future__ import annotations

from tocsin.testing.store_conformance_batches import (
    BatchConformance,
    ClaimConformance,
    FenceConformance,
    FetchConformance,
    LoadConformance,
)
from tocsin.testing.store_conformance_durability import (
    ConcurrencyConformance,
    DamageConformance,
    DurabilityConformance,
    OpeningConformance,
    RecordsConformance,
)
from tocsin.testing.store_conformance_events import EventConformance
from tocsin.testing.store_conformance_failures import FailureConformance
from tocsin.testing.store_conformance_lists import (
    EndsConformance,
    HistoryConformance,
    ListConformance,
    ScheduleConformance,
)
from tocsin.testing.store_conformance_machine import MachineConformance


class StoreConformance(
    ClaimConformance,
    FenceConformance,
    BatchConformance,
    LoadConformance,
    FetchConformance,
    ListConformance,
    HistoryConformance,
    EndsConformance,
    FailureConformance,
    EventConformance,
    ScheduleConformance,
    DamageConformance,
    RecordsConformance,
    OpeningConformance,
    ConcurrencyConformance,
    DurabilityConformance,
    MachineConformance,
):
    """The tests of all topics."""
