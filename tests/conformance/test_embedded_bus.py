"""The embedded bus conforms to the bus port."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.bus.base import Notes
from tests.conformance.bus.suite import BusConformance
from tocsin.messaging.embedded import EmbeddedBus
from tocsin.messaging.limits import BusLimits
from tocsin.ports.bus import Bus, Check


class TestEmbeddedBus(BusConformance):
    durable = False

    def make_bus(self, folder: Path, limits: BusLimits, check: Check, notes: Notes) -> Bus:
        return EmbeddedBus(limits, check, notes.observe)
