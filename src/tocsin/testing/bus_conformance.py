"""The conformance tests of the bus port, for any adapter.

    class TestMyBus(BusConformance):
        def make_bus(self, folder, limits, check, notes):
            return MyBus(folder, limits, check, notes.observe)

Requires pytest, and pytest-asyncio in auto mode. `BrokerConformance` in `bus_conformance_broker` is for buses with an
external broker process.
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
