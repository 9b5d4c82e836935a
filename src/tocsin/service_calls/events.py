"""Typed events of the agent. Logs and metrics subscribe to them; `docs/reference/events.md` lists them.

Observers must return quickly and must not raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tocsin.ports.bus import BusEvent


class CommandHandled(NamedTuple):
    """A command was answered. `result` is `accepted`, `repeated`, or the error code of the refusal."""

    command: str
    result: str
    tenant_id: str
    service_call_id: str
    correlation_id: str


class ServiceCallChanged(NamedTuple):
    """A service call changed its status; the change is durable. `lag_us` is set for Running: the time from the call's
    due time to the order to execute it."""

    status: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    lag_us: int | None = None


class CallRescued(NamedTuple):
    """The watchdog acted on an overdue call. `action` is `dispatched` (its due time had passed unnoticed; it runs now),
    `repeated` (the order to execute it was sent again) or `checked` (its execution had begun; the execution log is
    asked for the result)."""

    action: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    overdue_us: int


class TimersScheduled(NamedTuple):
    """ScheduleTimer commands took effect."""

    timers: int


class DuePollCompleted(NamedTuple):
    """The timer module read the schedules that are due."""

    found: int
    duration_us: int


class DuePollFailed(NamedTuple):
    """Reading due schedules, or publishing those that were found, failed. It is tried again."""

    error: str


class DueTimesReached(NamedTuple):
    """DueTimeReached messages were published. `lag_us` is the lag of the schedule that was due first."""

    timers: int
    lag_us: int


class ExecutionBegun(NamedTuple):
    """A service call's request is about to be sent."""

    tenant_id: str
    service_call_id: str
    correlation_id: str
    execution_id: str
    destination: str


class ExecutionNotSent(NamedTuple):
    """A request did not leave this machine, because the machine lacked a resource (`code`). It does not count as an
    attempt and is tried again shortly."""

    tenant_id: str
    service_call_id: str
    correlation_id: str
    execution_id: str
    destination: str
    code: str
    detail: str


class ExecutionFinished(NamedTuple):
    """An execution ended. `result` is `succeeded` or the kind of the error."""

    result: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    execution_id: str
    destination: str
    duration_us: int


class ExecutionsInterrupted(NamedTuple):
    """Executions that an earlier run of the process had left unfinished were closed as interrupted."""

    executions: int


class MessagesPublished(NamedTuple):
    """Messages of the outbox were published. `lag_us` is the longest time that one of them had waited."""

    messages: int
    lag_us: int


class PublishFailed(NamedTuple):
    """Publishing a message of the outbox failed. It is tried again."""

    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    attempts: int
    error: str


class MessageSuspended(NamedTuple):
    """A message of the outbox can never be published and was suspended."""

    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    error: str


class AgentRowsPurged(NamedTuple):
    """Retention deleted rows. `kind` is `calls` or `messages`."""

    kind: str
    rows: int


class AgentStepFailed(NamedTuple):
    """A background step of the agent (`watchdog`, `outbox read`, …) failed and will be tried again."""

    step: str
    error: str


class AgentStarted(NamedTuple):
    """This node runs the agent from now on. `epoch` grows with every takeover."""

    epoch: int


class AgentStandby(NamedTuple):
    """Another node (`node`) runs the agent. This node takes over when that one stops."""

    node: str


class AgentLeadershipLost(NamedTuple):
    """This node no longer runs the agent."""

    reason: str


AgentEvent = (
    CommandHandled
    | ServiceCallChanged
    | CallRescued
    | TimersScheduled
    | DuePollCompleted
    | DuePollFailed
    | DueTimesReached
    | ExecutionBegun
    | ExecutionNotSent
    | ExecutionFinished
    | ExecutionsInterrupted
    | MessagesPublished
    | PublishFailed
    | MessageSuspended
    | AgentRowsPurged
    | AgentStepFailed
    | AgentStarted
    | AgentStandby
    | AgentLeadershipLost
    | BusEvent
)

AgentObserver = Callable[[AgentEvent], None]
