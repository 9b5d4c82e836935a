"""The bus over NATS conforms to the bus port."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import pytest

from tests.conformance.bus.base import Notes
from tests.conformance.bus.broker import Broker, BrokerConformance
from tests.conformance.bus.suite import BusConformance
from tests.support.nats import NatsServer
from tocsin.messaging.limits import BusLimits
from tocsin.messaging.nats.bus import NatsBus
from tocsin.ports.bus import Bus, Check


def prefix_of(folder: Path) -> str:
    """The same prefix for the same folder."""
    return f"t{blake2b(str(folder).encode(), digest_size=12).hexdigest()}"


class TestNatsBus(BusConformance):
    server: NatsServer

    @pytest.fixture(autouse=True)
    def _take_server(self, shared_nats: NatsServer) -> None:
        self.server = shared_nats

    def make_bus(self, folder: Path, limits: BusLimits, check: Check, notes: Notes) -> Bus:
        return NatsBus(self.server.url, limits, check, notes.observe, prefix=prefix_of(folder), owner=str(folder))


class TestNatsBroker(BrokerConformance):
    server: NatsServer

    @pytest.fixture(autouse=True)
    def broker(self, nats: NatsServer) -> Broker:
        self.server = nats
        return nats

    def make_bus(self, folder: Path, limits: BusLimits, check: Check, notes: Notes) -> Bus:
        return NatsBus(self.server.url, limits, check, notes.observe, prefix=prefix_of(folder), owner=str(folder))
