"""Orchestration on the bus: answers commands and reacts to events of the timer and execution modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.ports.bus import Bus, Delivery, Envelope, InvalidMessage
from tocsin.service_calls.context import AgentContext
from tocsin.service_calls.events import CommandHandled
from tocsin.service_calls.messages import (
    CallKey,
    CommandAccepted,
    CommandRefused,
    DeleteServiceCall,
    DueTimeReached,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionStarted,
    ExecutionSucceeded,
    Message,
    SubmitServiceCall,
    TagServiceCall,
    UntagServiceCall,
)
from tocsin.service_calls.orchestration import service_call
from tocsin.service_calls.orchestration.ports import ServiceCallStore
from tocsin.service_calls.orchestration.service_call import ServiceCall, Step
from tocsin.service_calls.orchestration.unit_of_work import UnitOfWork, transact

SUBSCRIBER = "orchestration"
#: Streams and metrics show it beside the subscriber's name, so it must differ.
RESPONDER = "orchestration-commands"
COMMANDS = (SubmitServiceCall, TagServiceCall, UntagServiceCall, DeleteServiceCall)
EVENTS = (DueTimeReached, ExecutionStarted, ExecutionSucceeded, ExecutionFailed, ExecutionInterrupted)


class _Received(NamedTuple):
    envelope: Envelope
    message: Message

    @property
    def key(self) -> CallKey:
        return CallKey(self.envelope.tenant_id, self.envelope.aggregate_id)


class Orchestration:
    """The module's handlers. Each batch of messages is one transaction. A message that is delivered again changes
    nothing."""

    def __init__(self, store: ServiceCallStore, context: AgentContext) -> None:
        self._store = store
        self._context = context

    def attach(self, bus: Bus) -> None:
        """Registers the responder and the subscription. Call it before the bus starts."""
        batch_max = self._context.limits.orchestration_batch_max
        bus.respond(RESPONDER, [kind.__name__ for kind in COMMANDS], self.answer, batch_max=batch_max)
        bus.subscribe(SUBSCRIBER, [kind.__name__ for kind in EVENTS], self.handle, batch_max=batch_max)

    # ------------------------------------------------------------------ events

    async def handle(self, deliveries: Sequence[Delivery]) -> None:
        """A tocsin.ports.bus.Handler: handles all messages in one transaction. A malformed message fails alone; an
        error of the store fails all."""
        received = []
        for delivery in deliveries:
            try:
                received.append(_Received(delivery.envelope, self._context.registry.open(delivery.envelope)))
            except InvalidMessage as error:
                delivery.fail(error)

        def work(unit: UnitOfWork) -> None:
            unit.load({each.key for each in received})
            for each in received:
                call = unit.get(each.key)
                # A call that does not exist was deleted, by a client or by retention.
                step = self._decide(call, each.message, unit) if call is not None else None
                if step is not None:
                    unit.take(each.key, step, each.envelope.id)

        if received:
            await transact(self._store, self._context, work)

    def _decide(self, call: ServiceCall, message: Message, unit: UnitOfWork) -> Step | None:
        limits = self._context.limits
        match message:
            case DueTimeReached():
                return service_call.due(call, message.due_at, now_us=unit.now_us, new_id=unit.new_id, limits=limits)
            case ExecutionStarted():
                return service_call.started(call, message, limits=limits)
            case ExecutionSucceeded():
                return service_call.succeeded(call, message)
            case ExecutionFailed():
                return service_call.failed(call, message, limits=limits)
            case ExecutionInterrupted():
                return service_call.interrupted(call, message, now_us=unit.now_us, new_id=unit.new_id, limits=limits)
        raise InvalidMessage(f"orchestration does not handle {type(message).__name__}")

    # ------------------------------------------------------------------ commands

    async def answer(self, envelopes: Sequence[Envelope]) -> list[Envelope]:
        """A tocsin.ports.bus.Responder: handles all commands of clients in one transaction, which is durable before
        they are answered. Raises InvalidMessage and the store's errors. Nothing was written then, except possibly after
        OutcomeUnknown; the same commands may be sent again."""
        commands = [_Received(envelope, self._context.registry.open(envelope)) for envelope in envelopes]

        def work(unit: UnitOfWork) -> list[Envelope]:
            unit.load({each.key for each in commands})
            unit.load_tags(
                {
                    c.key
                    for c in commands
                    if isinstance(c.message, TagServiceCall | UntagServiceCall) and unit.get(c.key)
                }
            )
            unit.load_by_idempotency_key(
                {
                    (each.key.tenant_id, each.message.idempotency_key)
                    for each in commands
                    if isinstance(each.message, SubmitServiceCall) and each.message.idempotency_key is not None
                }
            )
            return [self._command(unit, each) for each in commands]

        return await transact(self._store, self._context, work)

    def _command(self, unit: UnitOfWork, command: _Received) -> Envelope:
        """Applies the command. Returns its reply."""
        message, call = command.message, unit.get(command.key)
        reply: CommandAccepted | CommandRefused | None
        if isinstance(message, SubmitServiceCall):
            call = call or unit.get_by_idempotency_key(command.key.tenant_id, message.idempotency_key)
            if call is not None and call.fingerprint == message.fingerprint:
                # The correlation id is that of the call.
                accepted = CommandAccepted(call.service_call_id, call.status.value, created=False)
                return self._reply(unit, command, accepted, call.correlation_id)
            reply = self._submit(unit, command, message, call)
        elif call is None:
            reply = _refused(command, "SERVICE_CALL_NOT_FOUND", "the service call does not exist")
        else:
            reply = self._change(unit, command, call) or CommandAccepted(call.service_call_id, call.status.value)
        return self._reply(unit, command, reply, command.envelope.correlation_id)

    def _submit(
        self, unit: UnitOfWork, command: _Received, message: SubmitServiceCall, present: ServiceCall | None
    ) -> CommandAccepted | CommandRefused:
        if present is not None:
            what = "id" if present.key == command.key else "idempotency key"
            return _refused(command, "IDEMPOTENCY_CONFLICT", f"a different service call already has this {what}")
        if len(set(message.tags)) > self._context.limits.tags_max:
            return self._too_many_tags(command)
        step = service_call.submit(
            message,
            tenant_id=command.key.tenant_id,
            correlation_id=command.envelope.correlation_id,
            now_us=unit.now_us,
            new_id=unit.new_id,
            limits=self._context.limits,
        )
        unit.insert(step, command.envelope.id)
        return CommandAccepted(message.service_call_id, step.after.status.value)

    def _change(self, unit: UnitOfWork, command: _Received, call: ServiceCall) -> CommandRefused | None:
        """Applies a command to an existing call. Returns why it is refused, or None."""
        match command.message:
            case TagServiceCall(tag=tag):
                tags = unit.tags(command.key)
                if tag not in tags and len(tags) >= self._context.limits.tags_max:
                    return self._too_many_tags(command)
                tags.add(tag)
            case UntagServiceCall(tag=tag):
                unit.tags(command.key).discard(tag)
            case DeleteServiceCall():
                messages = service_call.delete(call)
                if messages is None:
                    reason = f"the service call is {call.status.value} already"
                    return _refused(command, "SERVICE_CALL_NOT_SCHEDULED", reason)
                unit.delete(command.key, messages, command.envelope.id)
            case _:
                raise InvalidMessage(f"orchestration does not handle the command {command.envelope.type}")
        return None

    def _too_many_tags(self, command: _Received) -> CommandRefused:
        return _refused(command, "TOO_MANY_TAGS", f"a service call has at most {self._context.limits.tags_max} tags")

    def _reply(
        self, unit: UnitOfWork, command: _Received, reply: CommandAccepted | CommandRefused, correlation_id: str
    ) -> Envelope:
        asked = command.envelope
        accepted = "accepted" if isinstance(reply, CommandAccepted) and reply.created else "repeated"
        result = reply.code if isinstance(reply, CommandRefused) else accepted
        unit.events.append(
            CommandHandled(asked.type, result, asked.tenant_id, reply.service_call_id, asked.correlation_id)
        )
        return self._context.registry.seal(
            reply,
            tenant_id=asked.tenant_id,
            correlation_id=correlation_id,
            causation_id=asked.id,
            id=unit.new_id(),
        )


def _refused(command: _Received, code: str, reason: str) -> CommandRefused:
    return CommandRefused(command.key.service_call_id, code, reason)
