"""The execution module on the bus."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.ports.bus import Bus, Delivery, InvalidMessage
from tocsin.service_calls.execution.checks import Check, ExecutionChecks
from tocsin.service_calls.execution.executor import Executor
from tocsin.service_calls.messages import CheckExecution, Registry, StartExecution

SUBSCRIBER = "execution"
TYPES = (StartExecution, CheckExecution)


class ExecutionHandlers:
    """Passes orders to the executor, which acknowledges them once they are logged. The bus limits unacknowledged
    messages, which gives backpressure. Checks are acknowledged once they are handled."""

    def __init__(self, executor: Executor, checks: ExecutionChecks, registry: Registry) -> None:
        self._executor = executor
        self._checks = checks
        self._registry = registry

    def subscribe(self, bus: Bus) -> None:
        """Call it before the bus starts."""
        bus.subscribe(SUBSCRIBER, [kind.__name__ for kind in TYPES], self.handle)

    async def handle(self, deliveries: Sequence[Delivery]) -> None:
        """A tocsin.ports.bus.Handler. A malformed message fails alone; an error of the log fails the checks."""
        orders, checks = [], []
        for delivery in deliveries:
            try:
                message = self._registry.open(delivery.envelope)
                if isinstance(message, StartExecution):
                    delivery.keep()
                    orders.append((delivery, message))
                elif isinstance(message, CheckExecution):
                    checks.append(Check(delivery.envelope, message))
                else:
                    raise InvalidMessage(f"the execution module does not handle {delivery.envelope.type}")
            except InvalidMessage as error:
                delivery.fail(error)
        self._executor.submit(orders)
        if checks:
            await self._checks.answer(checks)
