"""The embedded bus conforms to the bus port."""

from __future__ import annotations

from pathlib import Path

from tocsin.messaging.embedded import EmbeddedBus
from tocsin.messaging.limits import BusLimits
from tocsin.ports.bus import Bus, Check
from tocsin.testing.bus_conformance import BusConformance
from tocsin.testing.bus_conformance_base import Notes


class TestEmbeddedBus(BusConformance):
    durable = False

    def make_bus(self, folder: Path, limits: BusLimits, check: Check, notes: Notes) -> Bus:
        return EmbeddedBus(limits, check, notes.observe)
