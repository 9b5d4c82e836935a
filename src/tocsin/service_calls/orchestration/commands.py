"""Handles the commands of clients: submit, tag, untag, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.model.envelope import Envelope
from tocsin.ports.bus import InvalidMessage
from tocsin.ports.clock import Clock
from tocsin.service_calls.events import AgentEvent, AgentObserver, CommandHandled
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import (
    CallKey,
    CommandAccepted,
    CommandRefused,
    DeleteServiceCall,
    Message,
    Registry,
    SubmitServiceCall,
    TagServiceCall,
    UntagServiceCall,
)
from tocsin.service_calls.orchestration.ports import ServiceCallStore, Transaction
from tocsin.service_calls.orchestration.service_call import ServiceCall, delete, submit
from tocsin.service_calls.orchestration.unit_of_work import UnitOfWork, transact

TYPES = (SubmitServiceCall, TagServiceCall, UntagServiceCall, DeleteServiceCall)


class _Command(NamedTuple):
    envelope: Envelope
    key: CallKey
    message: Message


class _Answer(NamedTuple):
    reply: CommandAccepted | CommandRefused
    correlation_id: str


class Commands:
    """The responder for commands. An accepted command is durable before its reply is sent."""

    def __init__(
        self,
        store: ServiceCallStore,
        registry: Registry,
        clock: Clock,
        limits: AgentLimits,
        observe: AgentObserver,
    ) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._limits = limits
        self._observe = observe

    async def answer(self, envelopes: Sequence[Envelope]) -> list[Envelope]:
        """A tocsin.ports.bus.Responder: handles all commands in one transaction. Raises InvalidMessage and the store's
        errors. Nothing was written then, except possibly after OutcomeUnknown; the same commands may be sent again."""
        commands = [
            _Command(envelope, CallKey(envelope.tenant_id, envelope.aggregate_id), self._registry.open(envelope))
            for envelope in envelopes
        ]
        answers, events = await transact(self._store, lambda transaction: self._work(transaction, commands))
        for event in events:
            self._observe(event)
        replies = []
        for command, answer in zip(commands, answers, strict=True):
            self._observe(_handled(command, answer.reply))
            replies.append(
                self._registry.seal(
                    answer.reply,
                    tenant_id=command.key.tenant_id,
                    correlation_id=answer.correlation_id,
                    causation_id=command.envelope.id,
                )
            )
        return replies

    def _work(self, transaction: Transaction, commands: Sequence[_Command]) -> tuple[list[_Answer], list[AgentEvent]]:
        unit = UnitOfWork(transaction, self._registry, self._clock.now_us())
        unit.load({command.key for command in commands})
        unit.load_tags(
            {c.key for c in commands if isinstance(c.message, TagServiceCall | UntagServiceCall) and unit.get(c.key)}
        )
        by_idempotency_key = _load_by_idempotency_key(unit, transaction, commands)
        answers = [self._apply(unit, command, by_idempotency_key) for command in commands]
        unit.write()
        return answers, unit.events

    def _apply(
        self, unit: UnitOfWork, command: _Command, by_idempotency_key: dict[tuple[str, str], CallKey]
    ) -> _Answer:
        message = command.message
        if isinstance(message, SubmitServiceCall):
            return self._submit(unit, command, message, by_idempotency_key)
        call = unit.get(command.key)
        if call is None:
            return _refused(command, "SERVICE_CALL_NOT_FOUND", "the service call does not exist")
        if isinstance(message, TagServiceCall):
            tags = unit.tags(command.key)
            if message.tag not in tags and len(tags) >= self._limits.tags_max:
                return self._too_many_tags(command)
            tags.add(message.tag)
        elif isinstance(message, UntagServiceCall):
            unit.tags(command.key).discard(message.tag)
        elif isinstance(message, DeleteServiceCall):
            messages = delete(call)
            if messages is None:
                return _refused(
                    command, "SERVICE_CALL_NOT_SCHEDULED", f"the service call is {call.status.value} already"
                )
            unit.delete(command.key, messages, command.envelope.id)
        else:
            raise InvalidMessage(f"orchestration does not handle the command {command.envelope.type}")
        return _Answer(CommandAccepted(call.service_call_id, call.status.value), command.envelope.correlation_id)

    def _submit(
        self,
        unit: UnitOfWork,
        command: _Command,
        message: SubmitServiceCall,
        by_idempotency_key: dict[tuple[str, str], CallKey],
    ) -> _Answer:
        tenant_id = command.key.tenant_id
        present = unit.get(command.key)
        index = None
        if message.idempotency_key is not None:
            index = (tenant_id, message.idempotency_key)
            if present is None and index in by_idempotency_key:
                present = unit.get(by_idempotency_key[index])
        if present is not None:
            return _repeated(command, message, present)
        if len(set(message.tags)) > self._limits.tags_max:
            return self._too_many_tags(command)
        step = submit(
            message,
            tenant_id=tenant_id,
            correlation_id=command.envelope.correlation_id,
            now_us=unit.now_us,
            new_id=unit.new_id,
            limits=self._limits,
        )
        unit.insert(step, command.envelope.id)
        if index is not None:
            by_idempotency_key[index] = command.key
        return _Answer(
            CommandAccepted(message.service_call_id, step.after.status.value), command.envelope.correlation_id
        )

    def _too_many_tags(self, command: _Command) -> _Answer:
        return _refused(command, "TOO_MANY_TAGS", f"a service call has at most {self._limits.tags_max} tags")


def _load_by_idempotency_key(
    unit: UnitOfWork, transaction: Transaction, commands: Sequence[_Command]
) -> dict[tuple[str, str], CallKey]:
    """The keys of the existing calls that have the idempotency keys of these submissions."""
    wanted = {
        (command.key.tenant_id, command.message.idempotency_key)
        for command in commands
        if isinstance(command.message, SubmitServiceCall) and command.message.idempotency_key is not None
    }
    if not wanted:
        return {}
    found = transaction.find_by_idempotency_key(wanted)
    unit.adopt(found.values())
    return {index: call.key for index, call in found.items()}


def _repeated(command: _Command, message: SubmitServiceCall, present: ServiceCall) -> _Answer:
    if present.fingerprint != message.fingerprint:
        what = "id" if present.key == command.key else "idempotency key"
        return _refused(command, "IDEMPOTENCY_CONFLICT", f"a different service call already has this {what}")
    reply = CommandAccepted(present.service_call_id, present.status.value, created=False)
    return _Answer(reply, present.correlation_id)


def _refused(command: _Command, code: str, reason: str) -> _Answer:
    return _Answer(CommandRefused(command.key.service_call_id, code, reason), command.envelope.correlation_id)


def _handled(command: _Command, reply: CommandAccepted | CommandRefused) -> CommandHandled:
    return CommandHandled(
        command.envelope.type,
        _result(reply),
        command.key.tenant_id,
        reply.service_call_id,
        command.envelope.correlation_id,
    )


def _result(reply: CommandAccepted | CommandRefused) -> str:
    if isinstance(reply, CommandRefused):
        return reply.code
    return "accepted" if reply.created else "repeated"
