"""Orchestration: answers commands, reacts to events of the timer and execution modules, and acts on overdue calls."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from tocsin.ports.bus import Bus, Delivery, Envelope, InvalidMessage
from tocsin.service_calls.background import AgentContext, Periodic
from tocsin.service_calls.events import CallRescued, CommandHandled
from tocsin.service_calls.messages import (
    CallKey,
    CallStatus,
    CommandAccepted,
    CommandRefused,
    DeleteServiceCall,
    DismissFailure,
    DueTimeReached,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionStarted,
    ExecutionSucceeded,
    ExecutionSuspended,
    Message,
    RetryServiceCall,
    SubmitServiceCall,
    TagServiceCall,
    UntagServiceCall,
)
from tocsin.service_calls.orchestration import service_call
from tocsin.service_calls.orchestration.notifications import notification
from tocsin.service_calls.orchestration.service_call import Step
from tocsin.service_calls.orchestration.unit_of_work import UnitOfWork, transact
from tocsin.service_calls.ports import WAITING, ServiceCall, ServiceCallStore, is_deleted

SUBSCRIBER = "orchestration"
#: Streams and metrics show it next to the subscriber's name, so it must differ.
RESPONDER = "orchestration-commands"
COMMANDS = (
    SubmitServiceCall,
    TagServiceCall,
    UntagServiceCall,
    DeleteServiceCall,
    RetryServiceCall,
    DismissFailure,
)
EVENTS = (
    DueTimeReached,
    ExecutionSuspended,
    ExecutionStarted,
    ExecutionSucceeded,
    ExecutionFailed,
    ExecutionInterrupted,
)


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
        received = [_Received(delivery.envelope, message) for delivery, message in self._context.opened(deliveries)]

        async def work(unit: UnitOfWork) -> None:
            await unit.load({each.key for each in received})
            for each in received:
                call = unit.get(each.key)
                # A call that does not exist was deleted, by a client or by retention.
                step = self._decide(call, each.message, unit) if call is not None else None
                if call is not None and step is not None:
                    unit.take(each.key, step, each.envelope.id)
                    if call.hooks is not None:
                        self._notify(unit, step.after, each.envelope.id)

        if received:
            await transact(self._store, self._context, work)

    def _decide(self, call: ServiceCall, message: Message, unit: UnitOfWork) -> Step | None:
        limits = self._context.limits
        match message:
            case DueTimeReached():
                return service_call.due(call, message.due_at, now_us=unit.now_us, new_id=unit.new_id, limits=limits)
            case ExecutionSuspended():
                return service_call.suspended(call, message, now_us=unit.now_us, limits=limits)
            case ExecutionStarted():
                return service_call.started(call, message, limits=limits)
            case ExecutionSucceeded():
                return service_call.succeeded(call, message)
            case ExecutionFailed():
                return service_call.failed(call, message, limits=limits)
            case ExecutionInterrupted():
                return service_call.interrupted(call, message, now_us=unit.now_us, new_id=unit.new_id, limits=limits)
        raise InvalidMessage(f"orchestration does not handle {type(message).__name__}")

    def _notify(self, unit: UnitOfWork, call: ServiceCall, cause: str) -> None:
        """Submits the call that reports the end of another, in the transaction that ends it."""
        command = notification(call, unit.new_id(), unit.now_us)
        if command is not None:
            unit.insert(self._submitted(unit, command, call.tenant_id, call.correlation_id), cause)

    def _submitted(self, unit: UnitOfWork, command: SubmitServiceCall, tenant_id: str, correlation_id: str) -> Step:
        return service_call.submit(
            command,
            tenant_id=tenant_id,
            correlation_id=correlation_id,
            now_us=unit.now_us,
            new_id=unit.new_id,
            limits=self._context.limits,
        )

    # ------------------------------------------------------------------ commands

    async def answer(self, envelopes: Sequence[Envelope]) -> list[Envelope]:
        """A tocsin.ports.bus.Responder: handles all commands of clients in one transaction, which is durable before
        they are answered. Raises InvalidMessage and the store's errors. Nothing was written then, except possibly after
        OutcomeUnknown; the same commands may be sent again."""
        commands = [_Received(envelope, self._context.registry.open(envelope)) for envelope in envelopes]

        async def work(unit: UnitOfWork) -> list[Envelope]:
            await unit.load({each.key for each in commands})
            await unit.load_tags({c.key for c in commands if _needs_tags(c.message) and unit.get(c.key)})
            await unit.load_by_idempotency_key(
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
        step = self._submitted(unit, message, command.key.tenant_id, command.envelope.correlation_id)
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
            case DeleteServiceCall(only_if=only_if):
                messages = service_call.delete(call)
                if messages is None:
                    reason = f"the service call is {call.status.value} already"
                    return _refused(command, "SERVICE_CALL_NOT_SCHEDULED", reason)
                if only_if is not None and not is_deleted(only_if.filter, call, unit.tags(command.key)):
                    return _refused(command, "SERVICE_CALL_NOT_SCHEDULED", "the service call does not match any more")
                unit.delete(command.key, messages, command.envelope.id)
            case DismissFailure(execution_id=execution_id):
                step = service_call.dismiss(call, execution_id)
                if step is not None:
                    unit.take(command.key, step, command.envelope.id)
            case RetryServiceCall(execution_id=execution_id):
                limits = self._context.limits
                step = service_call.retry(call, execution_id, now_us=unit.now_us, new_id=unit.new_id, limits=limits)
                if step is None:
                    reason = f"the service call is {call.status.value}; only a Failed one can be retried"
                    if call.status is CallStatus.FAILED:
                        reason = "the service call has been attempted again since"
                    return _refused(command, "SERVICE_CALL_NOT_FAILED", reason)
                unit.take(command.key, step, command.envelope.id)
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
            reply, tenant_id=asked.tenant_id, correlation_id=correlation_id, causation_id=asked.id, id=unit.new_id()
        )


def _needs_tags(message: Message) -> bool:
    if isinstance(message, DeleteServiceCall):
        return message.only_if is not None
    return isinstance(message, TagServiceCall | UntagServiceCall)


def _refused(command: _Received, code: str, reason: str) -> CommandRefused:
    return CommandRefused(command.key.service_call_id, code, reason)


class Watchdog:
    """Acts on overdue calls and deletes calls that finished longer ago than the retention time.

    Runs two loops: every `watchdog_interval` for overdue calls, every `purge_interval` for retention.
    """

    def __init__(self, store: ServiceCallStore, context: AgentContext) -> None:
        self._store = store
        self._context = context
        limits = context.limits
        self._checking = Periodic(
            "watchdog", self.check, context, limits.watchdog_interval_us, limits.watchdog_grace_us
        )
        self._purging = Periodic("call purge", self.purge, context, limits.purge_interval_us)

    def start(self) -> None:
        """Starts both loops. The first check comes after `watchdog_grace`: the timer and execution modules report first
        what fell due or was interrupted while no agent ran."""
        self._checking.start()
        self._purging.start()

    async def close(self) -> None:
        """Returns when the current transactions have ended. Idempotent."""
        await self._checking.close()
        await self._purging.close()

    async def check(self) -> int:
        """Acts on every call that is overdue now. Returns their number. Raises the store's errors."""
        rescued = 0
        while not self._checking.closing:
            checked, acted_on, damaged = await transact(self._store, self._context, self._check)
            rescued += acted_on
            if checked + damaged < self._context.limits.watchdog_batch_max or not (acted_on or damaged):
                break
        return rescued

    async def _check(self, unit: UnitOfWork) -> tuple[int, int, int]:
        """Returns how many calls it looked at, how many of them it acted on, and how many can't be decoded."""
        limits, acted_on = self._context.limits, 0
        calls, damaged = await unit.load_overdue(limits.watchdog_batch_max, limits.start_timeout_us)
        for call in calls:
            step = service_call.watch(call, now_us=unit.now_us, new_id=unit.new_id, limits=limits)
            if step is not None:
                # No message caused it.
                unit.take(call.key, step, None)
                acted_on += 1
                if not service_call.waits_for_turn(call, now_us=unit.now_us, limits=limits):
                    unit.events.append(_rescued(call, unit.now_us))
        return len(calls), acted_on, damaged

    async def purge(self) -> int:
        """Deletes the calls that finished longer ago than `retention`. Returns their number. Raises the store's errors."""
        now_us, kept_us = self._context.clock.now_us(), self._context.limits.retention_us

        def delete(rows_max: int) -> Awaitable[int]:
            return self._store.transact(lambda transaction: transaction.purge(now_us, kept_us, rows_max))

        return await self._context.purge("calls", delete, lambda: self._purging.closing)


def _rescued(before: ServiceCall, now_us: int) -> CallRescued:
    since = before.watch_at or now_us
    if before.status in WAITING:
        action, since = "dispatched", before.awaited_at
    elif before.started_at is not None:
        action = "checked"
    else:
        action = "repeated"
    return CallRescued(action, before.tenant_id, before.service_call_id, before.correlation_id, now_us - since)
