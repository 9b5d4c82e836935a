"""Typed events of the agent. Logs and metrics subscribe to them; `docs/reference/events.md` is their table.

Observers must be quick and must not raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tocsin.ports.bus import BusEvent


class CommandHandled(NamedTuple):
    """A command was answered. `result` is accepted, repeated, or the code of its refusal."""

    command: str
    result: str
    tenant_id: str
    service_call_id: str
    correlation_id: str


class ServiceCallChanged(NamedTuple):
    """A call came into a status, durably. `lag_us`, for Running: from its due time to the order to execute it."""

    status: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    lag_us: int | None = None


class CallRescued(NamedTuple):
    """The watchdog acted; `action` is dispatched (it was due and nobody had said so), repeated (the order to execute was
    sent again) or checked (its execution had begun, and Execution is asked how it ended)."""

    action: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    overdue_us: int


class TimersScheduled(NamedTuple):
    """ScheduleTimer commands took effect."""

    timers: int


class DuePollCompleted(NamedTuple):
    """The worker looked for due schedules."""

    found: int
    duration_us: int


class DuePollFailed(NamedTuple):
    """It could not, or could not publish what it found."""

    error: str


class DueTimesReached(NamedTuple):
    """DueTimeReached was published; `lag_us` is that of the latest of them."""

    timers: int
    lag_us: int


class ExecutionBegun(NamedTuple):
    """A request is about to be sent."""

    tenant_id: str
    service_call_id: str
    correlation_id: str
    execution_id: str
    destination: str


class ExecutionNotSent(NamedTuple):
    """A request could not be sent, for a reason of this machine's own (`code`): it counts for nothing and is made again in a
    moment."""

    tenant_id: str
    service_call_id: str
    correlation_id: str
    execution_id: str
    destination: str
    code: str
    detail: str


class ExecutionFinished(NamedTuple):
    """`result` is succeeded or the error's kind."""

    result: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    execution_id: str
    destination: str
    duration_us: int


class ExecutionsInterrupted(NamedTuple):
    """Executions of an earlier run of the process were found unfinished."""

    executions: int


class MessagesPublished(NamedTuple):
    """Outbox rows went to the bus; `lag_us` is the longest time that one of them had waited."""

    messages: int
    lag_us: int


class PublishFailed(NamedTuple):
    """One row did not."""

    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    attempts: int
    error: str


class MessageSuspended(NamedTuple):
    """A row of the outbox can never be published and was set aside."""

    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    error: str


class AgentRowsPurged(NamedTuple):
    """Retention removed rows; `kind` is calls or messages."""

    kind: str
    rows: int


class AgentStepFailed(NamedTuple):
    """A step of the agent's own work (watchdog, purge, outbox read) failed and will be tried again."""

    step: str
    error: str


class AgentStarted(NamedTuple):
    """This node runs the agent from now on. `term` counts the changes of hands."""

    epoch: int


class AgentStandby(NamedTuple):
    """Another node runs the agent, and this one begins when that one ends."""

    node: str


class AgentLeadershipLost(NamedTuple):
    """This node doesn't run the agent any more: another has the database."""

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
