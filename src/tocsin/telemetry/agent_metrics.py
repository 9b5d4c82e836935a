"""The service agent's metrics: an observer of its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tocsin.ports import bus
from tocsin.service_calls import events
from tocsin.service_calls.events import AgentEvent
from tocsin.telemetry.tally import DURATION_SECONDS, LAG_SECONDS, Tally

#: Every counter: name, labels, help. `docs/reference/metrics.md` is made from these tables.
AGENT_COUNTERS: dict[str, tuple[tuple[str, ...], str]] = {
    "tocsin_agent_commands_received": (
        ("command", "result"),
        "Commands handled, by result: accepted, repeated, or the error code.",
    ),
    "tocsin_agent_calls": (("status",), "Service calls that entered a status."),
    "tocsin_agent_timers_scheduled": ((), "ScheduleTimer commands that took effect."),
    "tocsin_agent_schedules_processed": ((), "Schedules whose DueTimeReached was published."),
    "tocsin_agent_polls": (("result",), "Polls for due schedules, by result: done or failed."),
    "tocsin_agent_executions": (("result",), "Finished executions, by result: succeeded, or the kind of the error."),
    "tocsin_agent_not_sent": (
        ("code",),
        "Requests that could not be sent because of a local shortage; they do not count as attempts and are retried.",
    ),
    "tocsin_agent_executions_interrupted": ((), "Executions that an earlier process left unfinished."),
    "tocsin_agent_calls_rescued": (
        ("action",),
        "Overdue calls that the watchdog acted on: dispatched, repeated, checked.",
    ),
    "tocsin_agent_messages_published": ((), "Outbox rows published to the bus."),
    "tocsin_agent_publish_failures": (("type",), "Failed attempts to publish an outbox row."),
    "tocsin_agent_messages_suspended": (("type",), "Outbox rows suspended because they can never be published."),
    "tocsin_agent_delivery_failures": (("subscriber", "type"), "Deliveries whose handler failed."),
    "tocsin_agent_dead_letters": (("subscriber", "type"), "Messages whose deliveries were exhausted."),
    "tocsin_agent_broker_disconnects": ((), "Lost connections to the broker."),
    "tocsin_agent_starts": ((), "Starts of the agent on this node, where several nodes share it."),
    "tocsin_agent_leadership_losses": (
        (),
        "Times that this node lost the agent's leadership to another node before it released it.",
    ),
    "tocsin_agent_step_failures": (("step",), "Failed steps of the agent's background work, which are retried."),
    "tocsin_agent_purged": (("kind",), "Rows removed by retention: calls or messages."),
}
#: Counters that start at 0 for each value of their label.
_FROM_ZERO = {
    "tocsin_agent_polls": ("done", "failed"),
    "tocsin_agent_calls_rescued": ("dispatched", "repeated", "checked"),
}
#: Every histogram: name, bucket bounds, help.
AGENT_HISTOGRAMS: dict[str, tuple[tuple[float, ...], str]] = {
    "tocsin_agent_start_lag_seconds": (LAG_SECONDS, "From a call's due time to the command to execute it."),
    "tocsin_agent_execution_duration_seconds": (DURATION_SECONDS, "From sending a request to the end of its response."),
    "tocsin_agent_polling_duration_seconds": (DURATION_SECONDS, "Duration of one poll for due schedules."),
    "tocsin_agent_outbox_lag_seconds": (LAG_SECONDS, "From writing a message to its acceptance by the bus."),
}
#: Every gauge: name, help. Their values are read at the scrape.
AGENT_GAUGES: dict[str, str] = {
    "tocsin_agent_running": "1 on the node that runs the agent, 0 on standby nodes.",
    "tocsin_agent_last_poll_timestamp_seconds": "Time of the last successful poll for due schedules; 0 before the first.",
    "tocsin_agent_executions_in_flight": "Requests to services in flight.",
    "tocsin_agent_executions_deferred": "Calls that wait for a free slot within the limits on requests.",
    "tocsin_agent_messages_waiting": "Messages on the bus that this process has yet to handle.",
    "tocsin_agent_outbox_waiting": "Outbox rows read and not yet accepted by the bus.",
    "tocsin_agent_broker_connected": "1 while the broker is reachable.",
}


class AgentMetrics(Tally):
    """Counts events for Prometheus. Each scrape calls `gauges` for the values of AGENT_GAUGES, except that of the last poll,
    which is tracked here; `now_s` is the wall clock, in seconds."""

    def __init__(self, gauges: Callable[[], Mapping[str, float]], now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.last_poll_s = 0.0
        super().__init__(
            AGENT_COUNTERS,
            AGENT_HISTOGRAMS,
            AGENT_GAUGES,
            lambda: {**gauges(), "tocsin_agent_last_poll_timestamp_seconds": self.last_poll_s},
            _FROM_ZERO,
        )

    def __call__(self, event: AgentEvent) -> None:
        """Counts the event."""
        kind = type(event)
        if kind in _COUNTED:
            name, by = _COUNTED[kind]
            labels = [getattr(event, label) for label in AGENT_COUNTERS[name][0]]
            self.count(name, *labels, by=1 if by is None else getattr(event, by))
        elif isinstance(event, events.DuePollCompleted):
            self.count("tocsin_agent_polls", "done")
            self.last_poll_s = self._now_s()
        elif isinstance(event, events.DuePollFailed):
            self.count("tocsin_agent_polls", "failed")
        elif isinstance(event, bus.BrokerConnection) and not event.connected:
            self.count("tocsin_agent_broker_disconnects")
        if kind in _MEASURED:
            name, field = _MEASURED[kind]
            if (value_us := getattr(event, field)) is not None:
                self.observe(name, value_us / 1e6)


#: The counter of each event, and the field that it grows by; None: by one. Its labels are fields of the event.
_COUNTED: dict[type, tuple[str, str | None]] = {
    events.CommandHandled: ("tocsin_agent_commands_received", None),
    events.ServiceCallChanged: ("tocsin_agent_calls", None),
    events.CallRescued: ("tocsin_agent_calls_rescued", None),
    events.TimersScheduled: ("tocsin_agent_timers_scheduled", "timers"),
    events.DueTimesReached: ("tocsin_agent_schedules_processed", "timers"),
    events.ExecutionNotSent: ("tocsin_agent_not_sent", None),
    events.ExecutionFinished: ("tocsin_agent_executions", None),
    events.ExecutionsInterrupted: ("tocsin_agent_executions_interrupted", "executions"),
    events.MessagesPublished: ("tocsin_agent_messages_published", "messages"),
    events.PublishFailed: ("tocsin_agent_publish_failures", None),
    events.MessageSuspended: ("tocsin_agent_messages_suspended", None),
    events.AgentRowsPurged: ("tocsin_agent_purged", "rows"),
    events.AgentStarted: ("tocsin_agent_starts", None),
    events.AgentLeadershipLost: ("tocsin_agent_leadership_losses", None),
    events.AgentStepFailed: ("tocsin_agent_step_failures", None),
    bus.DeliveryFailed: ("tocsin_agent_delivery_failures", None),
    bus.MessageDeadLettered: ("tocsin_agent_dead_letters", None),
}
#: The histogram of each event, and the field in microseconds that it shows.
_MEASURED: dict[type, tuple[str, str]] = {
    events.ServiceCallChanged: ("tocsin_agent_start_lag_seconds", "lag_us"),
    events.DuePollCompleted: ("tocsin_agent_polling_duration_seconds", "duration_us"),
    events.ExecutionFinished: ("tocsin_agent_execution_duration_seconds", "duration_us"),
    events.MessagesPublished: ("tocsin_agent_outbox_lag_seconds", "lag_us"),
}
