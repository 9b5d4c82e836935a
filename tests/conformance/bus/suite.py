"""The conformance tests of the bus port, for any adapter.

    class TestMyBus(BusConformance):
        def make_bus(self, folder, limits, check, notes):
            return MyBus(folder, limits, check, notes.observe)

Requires pytest, and pytest-asyncio in auto mode. `BrokerConformance` in `broker` is for buses with an
external broker process.
"""

from __future__ import annotations

from tests.conformance.bus.failures import FailureConformance, SettlingConformance
from tests.conformance.bus.life import EndConformance, RestartConformance, SendingConformance
from tests.conformance.bus.order import DeliveryConformance, DuplicateConformance, OrderConformance
from tests.conformance.bus.requests import RequestConformance


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
