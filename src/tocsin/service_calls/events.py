"""Typed events of the agent. Logs and metrics subscribe to them; `docs/reference/events.md` lists them.

Observers must return quickly and must not raise.
"""

from __future__ import annotations

from collections.abc import Callable
from logging import DEBUG, ERROR, INFO, WARNING

from tocsin.ports.bus import AgentEvent as AgentEvent
from tocsin.ports.event import DURATION_SECONDS, LAG_SECONDS, Counter, Gauge, Histogram

_POLLS = Counter(
    "tocsin_agent_polls",
    "Polls for due schedules, by result: done or failed.",
    ("result",),
    from_zero=("done", "failed"),
)


class CommandHandled(AgentEvent, frozen=True):
    """A command was answered. `result` is `accepted`, `repeated`, or the error code of the refusal."""

    command: str
    result: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    counter = Counter(
        "tocsin_agent_commands_received",
        "Commands handled, by result: accepted, repeated, or the error code.",
        ("command", "result"),
    )


class ServiceCallChanged(AgentEvent, frozen=True):
    """A service call changed its status; the change is durable. `lag_us` is set for Running: the time from the call's
    due time to the order to execute it."""

    status: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    lag_us: int | None = None
    counter = Counter("tocsin_agent_calls", "Service calls that entered a status.", ("status",))
    histograms = (
        Histogram(
            "tocsin_agent_start_lag_seconds",
            "From a call's due time to the command to execute it.",
            LAG_SECONDS,
            "lag_us",
        ),
    )


class CallRescued(AgentEvent, frozen=True):
    """The watchdog acted on an overdue call. `action` is `dispatched` (its due time had passed unnoticed; it runs now),
    `repeated` (the order to execute it was sent again) or `checked` (its execution had begun; the execution log is
    asked for the result)."""

    action: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    overdue_us: int
    level = WARNING
    counter = Counter(
        "tocsin_agent_calls_rescued",
        "Overdue calls that the watchdog acted on: dispatched, repeated, checked.",
        ("action",),
        from_zero=("dispatched", "repeated", "checked"),
    )


class TimersScheduled(AgentEvent, frozen=True):
    """ScheduleTimer commands took effect."""

    timers: int
    counter = Counter("tocsin_agent_timers_scheduled", "ScheduleTimer commands that took effect.", by="timers")


class DuePollCompleted(AgentEvent, frozen=True):
    """The timer module read the schedules that are due."""

    found: int
    duration_us: int
    counter = _POLLS
    result = "done"
    histograms = (
        Histogram(
            "tocsin_agent_polling_duration_seconds",
            "Duration of one poll for due schedules.",
            DURATION_SECONDS,
            "duration_us",
        ),
    )
    gauge = Gauge(
        "tocsin_agent_last_poll_timestamp_seconds",
        "Time of the last successful poll for due schedules; 0 before the first.",
    )


class DuePollFailed(AgentEvent, frozen=True):
    """Reading due schedules, or publishing those that were found, failed. It is tried again."""

    error: str
    level = ERROR
    counter = _POLLS
    result = "failed"


class DueTimesReached(AgentEvent, frozen=True):
    """DueTimeReached messages were published. `lag_us` is the lag of the schedule that was due first."""

    timers: int
    lag_us: int
    counter = Counter("tocsin_agent_schedules_processed", "Schedules whose DueTimeReached was published.", by="timers")


class ExecutionBegun(AgentEvent, frozen=True):
    """A service call's request is about to be sent."""

    tenant_id: str
    service_call_id: str
    correlation_id: str
    execution_id: str
    destination: str


class ExecutionNotSent(AgentEvent, frozen=True):
    """A request did not leave this machine, because the machine lacked a resource (`code`). It does not count as an
    attempt and is tried again shortly, or as soon as its credential can be sent."""

    tenant_id: str
    service_call_id: str
    correlation_id: str
    execution_id: str
    destination: str
    code: str
    detail: str
    level = WARNING
    counter = Counter(
        "tocsin_agent_not_sent",
        "Requests that could not be sent because of a local shortage; they do not count as attempts and are retried.",
        ("code",),
    )


class ExecutionFinished(AgentEvent, frozen=True):
    """An execution ended. `result` is `succeeded` or the kind of the error; `status` is that of a response."""

    result: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    execution_id: str
    destination: str
    duration_us: int
    status: int | None = None
    counter = Counter(
        "tocsin_agent_executions", "Finished executions, by result: succeeded, or the kind of the error.", ("result",)
    )
    histograms = (
        Histogram(
            "tocsin_agent_execution_duration_seconds",
            "From sending a request to the end of its response.",
            DURATION_SECONDS,
            "duration_us",
        ),
    )

    def severity(self) -> int:
        return DEBUG if self.result == "succeeded" else WARNING


class ExecutionsInterrupted(AgentEvent, frozen=True):
    """Executions that an earlier run of the process had left unfinished were closed as interrupted."""

    executions: int
    level = WARNING
    counter = Counter(
        "tocsin_agent_executions_interrupted", "Executions that an earlier process left unfinished.", by="executions"
    )


class MessagesPublished(AgentEvent, frozen=True):
    """Messages of the outbox were published. `lag_us` is the longest time that one of them had waited."""

    messages: int
    lag_us: int
    counter = Counter("tocsin_agent_messages_published", "Outbox rows published to the bus.", by="messages")
    histograms = (
        Histogram(
            "tocsin_agent_outbox_lag_seconds",
            "From writing a message to its acceptance by the bus.",
            LAG_SECONDS,
            "lag_us",
        ),
    )


class PublishFailed(AgentEvent, frozen=True):
    """Publishing a message of the outbox failed. It is tried again."""

    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    attempts: int
    error: str
    level = WARNING
    counter = Counter("tocsin_agent_publish_failures", "Failed attempts to publish an outbox row.", ("type",))


class MessageSuspended(AgentEvent, frozen=True):
    """A message of the outbox can never be published and was suspended."""

    type: str
    tenant_id: str
    service_call_id: str
    correlation_id: str
    error: str
    level = ERROR
    counter = Counter(
        "tocsin_agent_messages_suspended", "Outbox rows suspended because they can never be published.", ("type",)
    )


class AgentRowsPurged(AgentEvent, frozen=True):
    """Retention deleted rows. `kind` is `calls` or `messages`."""

    kind: str
    rows: int
    counter = Counter("tocsin_agent_purged", "Rows removed by retention: calls or messages.", ("kind",), by="rows")


class AgentRowDamaged(AgentEvent, frozen=True):
    """A row of a table of the agent can't be decoded. Background work passes it by and goes on with the others.
    `execution_id` is empty for a call, which is reported again after `agent.start_timeout`."""

    table: str
    tenant_id: str
    service_call_id: str
    execution_id: str
    error: str
    level = ERROR
    counter = Counter(
        "tocsin_agent_rows_damaged",
        "Times that the agent's background work passed by a row that can't be decoded.",
        ("table",),
    )


class AgentStepFailed(AgentEvent, frozen=True):
    """A background step of the agent (`watchdog`, `outbox read`, …) failed and will be tried again."""

    step: str
    error: str
    level = ERROR
    counter = Counter(
        "tocsin_agent_step_failures", "Failed steps of the agent's background work, which are retried.", ("step",)
    )


# Which node runs the agent changes rarely, and is most needed among the failures that accompany a change: no limit on lines.


class AgentStarted(AgentEvent, frozen=True):
    """This node runs the agent from now on. `epoch` grows with every takeover."""

    epoch: int
    level = INFO
    line_limit = None
    counter = Counter("tocsin_agent_starts", "Starts of the agent on this node, where several nodes share it.")


class AgentStandby(AgentEvent, frozen=True):
    """Another node (`node`) runs the agent. This node takes over when that one stops."""

    node: str
    level = INFO
    line_limit = None


class AgentLeadershipLost(AgentEvent, frozen=True):
    """This node no longer runs the agent."""

    reason: str
    level = WARNING
    line_limit = None
    counter = Counter(
        "tocsin_agent_leadership_losses",
        "Times that this node lost the agent's leadership to another node before it released it.",
    )


AgentObserver = Callable[[AgentEvent], None]
