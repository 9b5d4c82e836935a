"""A service call as a pure state machine. Every transition is here; nothing here does I/O.

A transition takes the call and an event and returns a `Step`: the next state and the messages to send. None means that
the event changes nothing in this state: it is a duplicate, it is late, or it is about another execution.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from tocsin.model.answer import RETRIED_4XX, retry_after_at
from tocsin.model.failure import joined_failure
from tocsin.model.redaction import redact_url
from tocsin.model.retry import next_attempt_at
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import (
    STALE_TOKEN,
    CallStatus,
    CheckExecution,
    ErrorMeta,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionStarted,
    ExecutionSucceeded,
    ExecutionSuspended,
    Instant,
    Message,
    ResponseMeta,
    ScheduleTimer,
    ServiceCallDeleted,
    ServiceCallFailed,
    ServiceCallRetrying,
    ServiceCallRunning,
    ServiceCallScheduled,
    ServiceCallSubmitted,
    ServiceCallSucceeded,
    StartExecution,
    SubmitServiceCall,
    ordered_at,
)
from tocsin.service_calls.ports import WAITING, CallOutcome, ServiceCall


class Step(NamedTuple):
    """A transition: the call afterwards, and the messages to send, in order."""

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
    due_at = command.due_at
    runs = due_at is None or due_at <= now_us
    call = ServiceCall(
        tenant_id=tenant_id,
        service_call_id=command.service_call_id,
        name=command.name,
        status=CallStatus.SCHEDULED,
        submitted_at=now_us,
        due_at=now_us if due_at is None else due_at,
        request_spec=command.request_spec,
        correlation_id=correlation_id,
        fingerprint=command.fingerprint,
        watch_at=None if due_at is None else due_at + limits.watchdog_grace_us,
        idempotency_key=command.idempotency_key,
        retry_policy=None if command.retry_policy is None else command.retry_policy.policy,
        traceparent=command.traceparent,
        hooks=command.hooks,
        flow_key=command.flow_key,
        tags=tuple(sorted(set(command.tags))),
    )
    spec, key = command.request_spec, command.service_call_id
    submitted = ServiceCallSubmitted(key, call.name, spec.method, redact_url(spec.url), Instant(call.due_at), call.tags)
    if runs:
        step = _order(call, now_us=now_us, new_id=new_id, limits=limits)
        return Step(step.after, (submitted, *step.messages))
    due_at = Instant(call.due_at)
    return Step(call, (submitted, ServiceCallScheduled(key, due_at), ScheduleTimer(key, due_at)))


def due(
    call: ServiceCall, due_at_us: int, *, now_us: int, new_id: Callable[[], str], limits: AgentLimits
) -> Step | None:
    """A due time was reached. A due time before the one the call waits for changes nothing."""
    if call.status not in WAITING or due_at_us < call.awaited_at:
        return None
    return _order(call, now_us=now_us, new_id=new_id, limits=limits)


def _order(call: ServiceCall, *, now_us: int, new_id: Callable[[], str], limits: AgentLimits) -> Step:
    """Orders an execution under a new id."""
    execution_id = new_id()
    after = msgspec.structs.replace(
        call,
        status=CallStatus.RUNNING,
        started_at=None,
        outcome=None,
        execution_id=execution_id,
        executions=call.executions + 1,
        failure=None,
        watch_at=now_us + limits.watchdog_grace_us,
    )
    return Step(after, (ServiceCallRunning(call.service_call_id, execution_id), _start(call, execution_id)))


def _start(call: ServiceCall, execution_id: str) -> StartExecution:
    return StartExecution(call.service_call_id, execution_id, call.request_spec, call.traceparent, call.flow_key)


def suspended(call: ServiceCall, event: ExecutionSuspended, *, now_us: int, limits: AgentLimits) -> Step | None:
    """The execution that was ordered last waits for its flow, its credential or its destination. The execution module has the
    order in its table until the execution begins. What it reports then may be lost, so that the watchdog asks for it, but
    seldom."""
    if not _concerns(call, event.execution_id) or call.started_at is not None:
        return None
    return Step(msgspec.structs.replace(call, watch_at=now_us + limits.start_timeout_us), ())


def waits_for_turn(call: ServiceCall, *, now_us: int, limits: AgentLimits) -> bool:
    """Whether an overdue call is probably one whose execution was reported as waiting for its turn: otherwise the watchdog
    would have come sooner."""
    begun = call.started_at is not None or call.execution_id is None
    return not begun and now_us - ordered_at(call.execution_id or "") >= limits.start_timeout_us


def started(call: ServiceCall, event: ExecutionStarted, *, limits: AgentLimits) -> Step | None:
    """The execution that was ordered last began."""
    if not _concerns(call, event.execution_id) or call.started_at is not None:
        return None
    watch_at = event.started_at + limits.request_timeout_us + limits.watchdog_grace_us
    first_at = event.started_at if call.first_attempt_at is None else call.first_attempt_at
    after = msgspec.structs.replace(call, started_at=event.started_at, first_attempt_at=first_at, watch_at=watch_at)
    return Step(after, ())


def succeeded(call: ServiceCall, event: ExecutionSucceeded) -> Step | None:
    """The execution that was ordered last succeeded."""
    if not _concerns(call, event.execution_id):
        return None
    after = msgspec.structs.replace(
        call,
        status=CallStatus.SUCCEEDED,
        attempts=call.attempts + 1,
        finished_at=event.finished_at,
        outcome=CallOutcome(response_meta=event.response_meta),
        watch_at=None,
    )
    return Step(after, (ServiceCallSucceeded(call.service_call_id, event.response_meta),))


def failed(call: ServiceCall, event: ExecutionFailed, *, limits: AgentLimits) -> Step | None:
    """The execution that was ordered last failed."""
    if not _concerns(call, event.execution_id):
        return None
    error, response, ended_at = event.error_meta, event.response_meta, event.finished_at
    verdict = judge(error, response, ended_at, limits.retry_after_max_us)
    return _attempt_failed(call, ended_at, verdict, error, response, limits=limits)


def interrupted(
    call: ServiceCall, event: ExecutionInterrupted, *, now_us: int, new_id: Callable[[], str], limits: AgentLimits
) -> Step | None:
    """The execution that was ordered last was interrupted by the end of its process.

    It is repeated at once, without counting as an attempt, while the call has had fewer than `executions_max`
    executions beyond its attempts. After that, each interrupted execution counts as a failed attempt.
    """
    if not _concerns(call, event.execution_id):
        return None
    if call.executions - call.attempts < limits.executions_max:
        return _order(call, now_us=now_us, new_id=new_id, limits=limits)
    text = f"the process ended during the execution, and there were {call.executions} already"
    begun = msgspec.structs.replace(call, started_at=event.started_at)
    error = ErrorMeta("INTERRUPTED", text)
    return _attempt_failed(begun, event.noticed_at, FailureVerdict(False), error, None, limits=limits)


def watch(call: ServiceCall, *, now_us: int, new_id: Callable[[], str], limits: AgentLimits) -> Step | None:
    """The watchdog's action on a call for which nothing has happened for too long; None if it is not overdue.

    The watchdog never ends a call: only the execution log knows whether an execution can still succeed, and a result
    may be on its way. A call whose execution has ended gets the result reported again. A call whose order was lost gets
    the order again, under the same execution id.
    """
    if call.watch_at is None or now_us < call.watch_at:
        return None
    if call.status in WAITING:
        return due(call, call.awaited_at, now_us=now_us, new_id=new_id, limits=limits)
    if call.status is not CallStatus.RUNNING or call.execution_id is None:
        return None
    key, begun = call.service_call_id, call.started_at is not None
    since_us = ordered_at(call.execution_id) if call.started_at is None else call.started_at
    # Each pause is as long as the wait so far: a long outage or queue must not multiply the messages.
    waited_us = max(now_us - since_us, limits.watchdog_grace_us)
    after = msgspec.structs.replace(call, watch_at=now_us + min(waited_us, limits.start_timeout_us))
    check = CheckExecution(key, call.execution_id, begun)
    if begun:
        return Step(after, (check,))
    # The check goes first: the order stays unsettled for as long as it waits for a slot of its destination.
    return Step(after, (check, _start(call, call.execution_id)))


def retry(
    call: ServiceCall,
    execution_id: str | None = None,
    *,
    now_us: int,
    new_id: Callable[[], str],
    limits: AgentLimits,
) -> Step | None:
    """A client retries a Failed call: another execution in the same log, at once; None if the call has not failed, or not
    with this execution. Attempts go on counting, so that after another failure the retry policy allows what is left of
    it."""
    if call.status is not CallStatus.FAILED:
        return None
    if execution_id not in (None, call.execution_id):
        return None
    # If the clock was set back, not below the instant that the timer module has: it would ignore that of the next attempt.
    awaited = msgspec.structs.replace(call, next_attempt_at=max(now_us, call.awaited_at), finished_at=None)
    return _order(awaited, now_us=now_us, new_id=new_id, limits=limits)


def dismiss(call: ServiceCall, execution_id: str) -> Step | None:
    """The failure of this execution leaves the list; None if it is not listed."""
    if call.failure is None or call.execution_id != execution_id:
        return None
    return Step(msgspec.structs.replace(call, failure=None), ())


def delete(call: ServiceCall) -> tuple[Message, ...] | None:
    """The messages to send when the call is deleted; None if it must not be deleted, because it is Running or has
    finished."""
    return (ServiceCallDeleted(call.service_call_id),) if call.status in WAITING else None


def _concerns(call: ServiceCall, execution_id: str) -> bool:
    return call.status is CallStatus.RUNNING and call.execution_id == execution_id


# ---------------------------------------------------------------------- verdicts on failed attempts
#
# `docs/explanation/service-agent.md` has the decision table. A verdict depends only on the event, which the execution log can
# reproduce exactly: an attempt that is reported twice gets the same verdict.

#: Errors that a retry cannot cure: the target is forbidden, or the request cannot be sent at all.
FINAL_KINDS = frozenset({"EGRESS_REFUSED", "INVALID_REQUEST", "SECRET_UNREADABLE"})


class FailureVerdict(NamedTuple):
    """`final` forbids another attempt. `not_before_us` (from Retry-After) delays it."""

    final: bool
    not_before_us: int | None = None


def judge(error: ErrorMeta, response: ResponseMeta | None, ended_at_us: int, retry_after_us_max: int) -> FailureVerdict:
    """The verdict on a failed attempt. `retry_after_us_max` limits how far Retry-After can delay the next one."""
    if response is None:
        return FailureVerdict(error.kind in FINAL_KINDS)
    retried = response.status in RETRIED_4XX or (error.kind == "HTTP_STATUS" and error.message == STALE_TOKEN)
    if 400 <= response.status < 500 and not retried:
        return FailureVerdict(True)
    return FailureVerdict(False, retry_after_at(response.headers.get("retry-after"), ended_at_us, retry_after_us_max))


def _attempt_failed(
    call: ServiceCall,
    at_us: int,
    verdict: FailureVerdict,
    error: ErrorMeta,
    response: ResponseMeta | None,
    *,
    limits: AgentLimits,
) -> Step:
    """Counts the failed attempt and lets the retry policy decide whether there is another."""
    after = msgspec.structs.replace(call, attempts=call.attempts + 1, outcome=CallOutcome(response, error))
    key, next_at = call.service_call_id, None if verdict.final else _next_attempt_at(after, at_us, verdict)
    if next_at is None:
        after = msgspec.structs.replace(
            after,
            status=CallStatus.FAILED,
            finished_at=at_us,
            watch_at=None,
            failure=_failure_of(call, error, response),
        )
        return Step(after, (ServiceCallFailed(key, error, response),))
    after = msgspec.structs.replace(
        after, status=CallStatus.RETRYING, next_attempt_at=next_at, watch_at=next_at + limits.watchdog_grace_us
    )
    retrying = ServiceCallRetrying(key, after.attempts, Instant(next_at), error, response)
    return Step(after, (retrying, ScheduleTimer(key, Instant(next_at))))


def _failure_of(call: ServiceCall, error: ErrorMeta, response: ResponseMeta | None) -> str:
    """Destination and error, by which failed calls are grouped: as those of timers."""
    code = f"HTTP_{response.status}" if response is not None and error.kind == "HTTP_STATUS" else error.kind
    return joined_failure(call.request_spec.url, code)


def _next_attempt_at(call: ServiceCall, ended_at_us: int, verdict: FailureVerdict) -> int | None:
    """When the retry policy allows the next attempt; None: never. The delay counts from the end of the failed attempt,
    however late that is reported, so that a repeated report yields the same instant."""
    if call.retry_policy is None:
        return None
    instant = next_attempt_at(
        call.retry_policy,
        attempts_made=call.attempts,
        first_attempt_at=ended_at_us if call.first_attempt_at is None else call.first_attempt_at,
        now_us=ended_at_us,
        jitter=_jitter(call.execution_id or ""),
        not_before_us=verdict.not_before_us,
    )
    # The timer module ignores an instant that is not later than the last one. Only a clock that was set back yields one.
    return None if instant is None else max(instant, call.awaited_at + 1)


def _jitter(execution_id: str) -> float:
    """A number in [0, 1) derived from the execution id: it spreads calls that failed together, and it is the same each
    time the same failure is handled."""
    return zlib.crc32(execution_id.encode()) / 2**32
