"""The bus port as tests, for every adapter, ours or yours.

    class TestMyBus(BusConformance):
        def make_bus(self, folder, limits, check, notes):
            return MyBus(folder, limits, check, notes.observe)

Needs pytest, and pytest-asyncio in auto mode. `BrokerConformance` in `bus_conformance_broker` is for buses whose broker is
a process of its own.
"""

from __future__ import annotations

from tocsin.testing.bus_conformance_failures import FailureConformance, SettlingConformance
from tocsin.testing.bus_conformance_life import EndConformance, RestartConformance, SendingConformance
from tocsin.testing.bus_conformance_order import DeliveryConformance, DuplicateConformance, OrderConformance
from tocsin.testing.bus_conformance_requests import RequestConformance


class BusConformance(
    DeliveryConformance,
    OrderConformance,
    DuplicateConformance,
    FailureConformance,
    SettlingConformance,
    RequestConformance,
    SendingConformance,
    EndConformance,
    RestartConformance,
):
    """Every topic."""
