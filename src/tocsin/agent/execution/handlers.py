"""The execution module on the bus."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.agent.execution.executor import Executor
from tocsin.agent.messages import Registry, StartExecution
from tocsin.ports.bus import Bus, Delivery, InvalidMessage

SUBSCRIBER = "execution"


class ExecutionHandlers:
    """Gives StartExecution messages to the executor, which settles them when the log has them: backpressure is what the
    bus lets wait unsettled."""

    def __init__(self, executor: Executor, registry: Registry) -> None:
        self._executor = executor
        self._registry = registry

    def subscribe(self, bus: Bus) -> None:
        """Before the bus starts."""
        bus.subscribe(SUBSCRIBER, (StartExecution.__name__,), self.start_executions)

    async def start_executions(self, deliveries: Sequence[Delivery]) -> None:
        """See tocsin.ports.bus.Handler. A message that can't be read fails alone."""
        orders = []
        for delivery in deliveries:
            delivery.keep()
            try:
                message = self._registry.open(delivery.envelope)
                if not isinstance(message, StartExecution):
                    raise InvalidMessage(f"{delivery.envelope.type} is not for the execution module")
            except InvalidMessage as error:
                delivery.fail(error)
            else:
                orders.append((delivery, message))
        self._executor.submit(orders)
