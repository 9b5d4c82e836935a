"""A service call as a pure state machine. Every transition is here; nothing here does I/O.

A transition takes the call and what happened, and gives a `Step`: the next state and the messages to send. None says that
what happened means nothing in this state: a duplicate, something late, something about another execution.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from tocsin.agent.limits import AgentLimits
from tocsin.agent.messages import (
    CheckExecution,
    ErrorMeta,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionStarted,
    ExecutionSucceeded,
    Key,
    Message,
    RequestSpec,
    ResponseMeta,
    ScheduleTimer,
    ServiceCallDeleted,
    ServiceCallFailed,
    ServiceCallRunning,
    ServiceCallScheduled,
    ServiceCallSubmitted,
    ServiceCallSucceeded,
    StartExecution,
    SubmitServiceCall,
    ordered_at,
)
from tocsin.model.redaction import redact_url


class Status(StrEnum):
    """Scheduled → Running → Succeeded or Failed; the last two are final."""

    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Outcome(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """How a call ended: `response_meta` when the service answered, `error_meta` when the call failed."""

    response_meta: ResponseMeta | None = None
    error_meta: ErrorMeta | None = None


class ServiceCall(msgspec.Struct, frozen=True, gc=False):
    """The state of one call. Instants in microseconds.

    `execution_id` names the execution ordered last, `executions` counts them, `started_at` is when it began. `watch_at` is
    when the watchdog has to look after it, None once it has finished. `tags` are those it was submitted with; they are
    not loaded with it.
    """

    tenant_id: str
    service_call_id: str
    name: str
    status: Status
    submitted_at: int
    due_at: int
    request_spec: RequestSpec
    correlation_id: str
    fingerprint: str
    watch_at: int | None
    idempotency_key: str | None = None
    started_at: int | None = None
    finished_at: int | None = None
    outcome: Outcome | None = None
    execution_id: str | None = None
    executions: int = 0
    tags: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """Tenant and id."""
        return Key(self.tenant_id, self.service_call_id)


class Step(NamedTuple):
    """A transition: the call as it is afterwards, and what has to be sent because of it, in order."""

    after: ServiceCall
    messages: tuple[Message, ...]


def submit(
    command: SubmitServiceCall,
    *,
    tenant_id: str,
    correlation_id: str,
    now_us: int,
    new_id: Callable[[], str],
    limits: AgentLimits,
) -> Step:
    """A new call. Without a due time, or with one that has passed, it is Running at once and its due time is now."""
    due_at = command.due_at_us
    runs = due_at is None or due_at <= now_us
    call = ServiceCall(
        tenant_id=tenant_id,
        service_call_id=command.service_call_id,
        name=command.name,
        status=Status.SCHEDULED,
        submitted_at=now_us,
        due_at=now_us if due_at is None else due_at,
        request_spec=command.request_spec,
        correlation_id=correlation_id,
        fingerprint=command.fingerprint,
        watch_at=None if due_at is None else due_at + limits.watchdog_grace_us,
        idempotency_key=command.idempotency_key,
        tags=tuple(sorted(set(command.tags))),
    )
    spec, key = command.request_spec, command.service_call_id
    submitted = ServiceCallSubmitted(key, call.name, spec.method, redact_url(spec.url), call.due_at, call.tags)
    if runs:
        step = _order(call, now_us=now_us, new_id=new_id, limits=limits)
        return Step(step.after, (submitted, *step.messages))
    return Step(call, (submitted, ServiceCallScheduled(key, call.due_at), ScheduleTimer(key, call.due_at)))


def due(
    call: ServiceCall, due_at_us: int, *, now_us: int, new_id: Callable[[], str], limits: AgentLimits
) -> Step | None:
    """This due time has come; one before the call's own means nothing."""
    if call.status is not Status.SCHEDULED or due_at_us < call.due_at:
        return None
    return _order(call, now_us=now_us, new_id=new_id, limits=limits)


def _order(call: ServiceCall, *, now_us: int, new_id: Callable[[], str], limits: AgentLimits) -> Step:
    """An execution with an id of its own is ordered."""
    execution_id = new_id()
    after = msgspec.structs.replace(
        call,
        status=Status.RUNNING,
        started_at=None,
        execution_id=execution_id,
        executions=call.executions + 1,
        watch_at=now_us + limits.watchdog_grace_us,
    )
    key = call.service_call_id
    return Step(after, (ServiceCallRunning(key, execution_id), StartExecution(key, execution_id, call.request_spec)))


def started(call: ServiceCall, event: ExecutionStarted, *, limits: AgentLimits) -> Step | None:
    """The execution ordered last began."""
    if not _concerns(call, event.execution_id) or call.started_at is not None:
        return None
    watch_at = event.started_at_us + limits.request_timeout_us + limits.watchdog_grace_us
    return Step(msgspec.structs.replace(call, started_at=event.started_at_us, watch_at=watch_at), ())


def succeeded(call: ServiceCall, event: ExecutionSucceeded) -> Step | None:
    """The execution ordered last ended well."""
    if not _concerns(call, event.execution_id):
        return None
    after = msgspec.structs.replace(
        call,
        status=Status.SUCCEEDED,
        finished_at=event.finished_at_us,
        outcome=Outcome(response_meta=event.response_meta),
        watch_at=None,
    )
    return Step(after, (ServiceCallSucceeded(call.service_call_id, event.response_meta),))


def failed(call: ServiceCall, event: ExecutionFailed) -> Step | None:
    """The execution ordered last did not."""
    if not _concerns(call, event.execution_id):
        return None
    return _fail(call, event.finished_at_us, event.error_meta, event.response_meta)


def interrupted(
    call: ServiceCall,
    event: ExecutionInterrupted,
    *,
    now_us: int,
    new_id: Callable[[], str],
    limits: AgentLimits,
) -> Step | None:
    """The execution ordered last was cut off by the end of its process: there is another, as long as there may be."""
    if not _concerns(call, event.execution_id):
        return None
    if call.executions < limits.executions_max:
        return _order(call, now_us=now_us, new_id=new_id, limits=limits)
    text = f"the process ended during the execution, and there were {call.executions} already"
    after = msgspec.structs.replace(call, started_at=event.started_at_us)
    return _fail(after, event.noticed_at_us, ErrorMeta("INTERRUPTED", text))


def watch(call: ServiceCall, *, now_us: int, new_id: Callable[[], str], limits: AgentLimits) -> Step | None:
    """What has to happen because nothing has happened for too long; None while nothing is overdue.

    It never ends a call: whether an execution can still succeed is known to the execution log alone, and what the log
    says may be under way. A call that has a result gets it reported again; one whose order was lost gets another order,
    under the same execution id.
    """
    if call.watch_at is None or now_us < call.watch_at:
        return None
    if call.status is Status.SCHEDULED:
        return due(call, call.due_at, now_us=now_us, new_id=new_id, limits=limits)
    if call.status is not Status.RUNNING or call.execution_id is None:
        return None
    key, begun = call.service_call_id, call.started_at is not None
    since_us = ordered_at(call.execution_id) if call.started_at is None else call.started_at
    # Each pause is as long as the wait so far, so that a long outage, or a long queue, doesn't multiply the messages.
    waited_us = max(now_us - since_us, limits.watchdog_grace_us)
    after = msgspec.structs.replace(call, watch_at=now_us + min(waited_us, limits.start_timeout_us))
    check = CheckExecution(key, call.execution_id, begun)
    if begun:
        return Step(after, (check,))
    # The question goes first: the order stays in hand for as long as it waits for a place at its destination.
    return Step(after, (check, StartExecution(key, call.execution_id, call.request_spec)))


def delete(call: ServiceCall) -> tuple[Message, ...] | None:
    """What has to be sent when the call goes; None when it may not, because it is no longer Scheduled."""
    return (ServiceCallDeleted(call.service_call_id),) if call.status is Status.SCHEDULED else None


def _concerns(call: ServiceCall, execution_id: str) -> bool:
    return call.status is Status.RUNNING and call.execution_id == execution_id


def _fail(call: ServiceCall, at_us: int, error: ErrorMeta, response: ResponseMeta | None = None) -> Step:
    after = msgspec.structs.replace(
        call, status=Status.FAILED, finished_at=at_us, outcome=Outcome(response, error), watch_at=None
    )
    return Step(after, (ServiceCallFailed(call.service_call_id, error, response),))
