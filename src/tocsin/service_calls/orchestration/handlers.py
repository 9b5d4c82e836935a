"""Orchestration on the bus: answers commands and reacts to events of the timer and execution modules."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.model.envelope import Envelope
from tocsin.ports.bus import Bus, Delivery, InvalidMessage
from tocsin.ports.clock import Clock
from tocsin.service_calls.events import AgentEvent, AgentObserver
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import (
    CallKey,
    DueTimeReached,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionStarted,
    ExecutionSucceeded,
    Message,
    Registry,
)
from tocsin.service_calls.orchestration import commands, service_call
from tocsin.service_calls.orchestration.ports import ServiceCallStore, Transaction
from tocsin.service_calls.orchestration.service_call import ServiceCall, Step
from tocsin.service_calls.orchestration.unit_of_work import UnitOfWork, transact

SUBSCRIBER = "orchestration"
#: Streams and metrics show it beside the subscriber's name, so it must differ.
RESPONDER = "orchestration-commands"
TYPES = (DueTimeReached, ExecutionStarted, ExecutionSucceeded, ExecutionFailed, ExecutionInterrupted)


class Orchestration:
    """The module's handlers. Each batch of messages is one transaction. A message that is delivered again changes
    nothing."""

    def __init__(
        self,
        store: ServiceCallStore,
        registry: Registry,
        clock: Clock,
        limits: AgentLimits,
        observe: AgentObserver,
    ) -> None:
        self.commands = commands.Commands(store, registry, clock, limits, observe)
        self._store = store
        self._registry = registry
        self._clock = clock
        self._limits = limits
        self._observe = observe

    def attach(self, bus: Bus) -> None:
        """Registers the responder and the subscription. Call it before the bus starts."""
        batch_max = self._limits.orchestration_batch_max
        bus.respond(RESPONDER, [kind.__name__ for kind in commands.TYPES], self.commands.answer, batch_max=batch_max)
        bus.subscribe(SUBSCRIBER, [kind.__name__ for kind in TYPES], self.handle, batch_max=batch_max)

    async def handle(self, deliveries: Sequence[Delivery]) -> None:
        """A tocsin.ports.bus.Handler: handles all messages in one transaction. A malformed message fails alone; an
        error of the store fails all."""
        received = []
        for delivery in deliveries:
            try:
                received.append((delivery.envelope, self._registry.open(delivery.envelope)))
            except InvalidMessage as error:
                delivery.fail(error)
        if received:
            for event in await transact(self._store, lambda transaction: self._work(transaction, received)):
                self._observe(event)

    def _work(self, transaction: Transaction, received: Sequence[tuple[Envelope, Message]]) -> list[AgentEvent]:
        unit = UnitOfWork(transaction, self._registry, self._clock.now_us())
        unit.load({CallKey(envelope.tenant_id, envelope.aggregate_id) for envelope, _ in received})
        for envelope, message in received:
            key = CallKey(envelope.tenant_id, envelope.aggregate_id)
            call = unit.get(key)
            # A call that does not exist was deleted, by a client or by retention.
            step = self._decide(call, message, unit) if call is not None else None
            if step is not None:
                unit.take(key, step, envelope.id)
        unit.write()
        return unit.events

    def _decide(self, call: ServiceCall, message: Message, unit: UnitOfWork) -> Step | None:
        limits = self._limits
        match message:
            case DueTimeReached():
                return service_call.due(call, message.due_at_us, now_us=unit.now_us, new_id=unit.new_id, limits=limits)
            case ExecutionStarted():
                return service_call.started(call, message, limits=limits)
            case ExecutionSucceeded():
                return service_call.succeeded(call, message)
            case ExecutionFailed():
                return service_call.failed(call, message, limits=limits)
            case ExecutionInterrupted():
                return service_call.interrupted(call, message, now_us=unit.now_us, new_id=unit.new_id, limits=limits)
        raise InvalidMessage(f"orchestration does not handle {type(message).__name__}")
