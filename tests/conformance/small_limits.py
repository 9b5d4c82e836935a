"""What limits of pages and batches may change of a store."""

from __future__ import annotations

from tocsin.testing.store_conformance_batches import BatchConformance, FetchConformance, LoadConformance
from tocsin.testing.store_conformance_durability import ConcurrencyConformance
from tocsin.testing.store_conformance_lists import HistoryConformance, ListConformance, ScheduleConformance
from tocsin.testing.store_conformance_machine import MachineConformance


class SmallLimitsConformance(
    BatchConformance,
    LoadConformance,
    FetchConformance,
    ListConformance,
    HistoryConformance,
    ScheduleConformance,
    ConcurrencyConformance,
    MachineConformance,
):
    """The topics that read pages or write batches. Claims, fences, damage and durability have neither."""

    examples = 20
