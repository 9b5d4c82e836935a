"""The service agent's metrics: an observer of its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tocsin.agent import events
from tocsin.agent.events import AgentEvent
from tocsin.ports import bus
from tocsin.telemetry.tally import DURATION_SECONDS, LAG_SECONDS, Tally

#: Every counter: name, labels, help. `docs/reference/metrics.md` is made from these tables.
AGENT_COUNTERS: dict[str, tuple[tuple[str, ...], str]] = {
    "tocsin_agent_commands_received": (
        ("command", "result"),
        "Commands answered, by result: accepted, repeated, or the code of the refusal.",
    ),
    "tocsin_agent_calls": (("status",), "Service calls that came into a status."),
    "tocsin_agent_timers_scheduled": ((), "ScheduleTimer commands that took effect."),
    "tocsin_agent_schedules_processed": ((), "Schedules whose DueTimeReached was published."),
    "tocsin_agent_polls": (("result",), "Looks for due schedules: done or failed."),
    "tocsin_agent_executions": (("result",), "Executions that ended: succeeded, or the kind of the error."),
    "tocsin_agent_not_sent": (
        ("code",),
        "Requests that could not be sent for a reason of this machine's own; they don't count and are made again.",
    ),
    "tocsin_agent_executions_interrupted": ((), "Executions that an earlier run of the process left unfinished."),
    "tocsin_agent_calls_rescued": (("action",), "Calls that the watchdog had to help: dispatched, repeated, checked."),
    "tocsin_agent_messages_published": ((), "Outbox rows that went to the bus."),
    "tocsin_agent_publish_failures": (("type",), "Attempts to publish a row that failed."),
    "tocsin_agent_messages_suspended": (("type",), "Rows that can never be published and were set aside."),
    "tocsin_agent_delivery_failures": (("subscriber", "type"), "Deliveries whose handler failed."),
    "tocsin_agent_dead_letters": (("subscriber", "type"), "Messages that were given up."),
    "tocsin_agent_broker_disconnects": ((), "Times that the connection to the broker was lost."),
    "tocsin_agent_turns": ((), "Times that this node began to run an agent that several nodes share."),
    "tocsin_agent_losses": ((), "Times that this node lost it to another before it had ended in order."),
    "tocsin_agent_step_failures": (("step",), "Steps of the agent's own work that failed and were tried again."),
    "tocsin_agent_purged": (("kind",), "Rows removed by retention: calls or messages."),
}
#: Every histogram: name, bucket bounds, help.
AGENT_HISTOGRAMS: dict[str, tuple[tuple[float, ...], str]] = {
    "tocsin_agent_start_lag_seconds": (LAG_SECONDS, "From a call's due time to the order to execute it."),
    "tocsin_agent_execution_duration_seconds": (DURATION_SECONDS, "From sending a request to the end of its answer."),
    "tocsin_agent_polling_duration_seconds": (DURATION_SECONDS, "Time of one look for due schedules."),
    "tocsin_agent_outbox_lag_seconds": (LAG_SECONDS, "From a message's making to its being taken by the bus."),
}
#: Every gauge: name, help. Their values are read at the scrape.
AGENT_GAUGES: dict[str, str] = {
    "tocsin_agent_running": "1 on the node that runs the agent, 0 while this one stands by.",
    "tocsin_agent_last_poll_timestamp_seconds": "When due schedules were last looked for, successfully; 0 before.",
    "tocsin_agent_executions_in_flight": "Requests to services under way.",
    "tocsin_agent_executions_held": "Calls that wait for a limit on requests.",
    "tocsin_agent_messages_waiting": "Messages on the bus that are not dealt with, as far as this process knows.",
    "tocsin_agent_outbox_waiting": "Outbox rows that are known and not yet taken by the bus.",
    "tocsin_agent_broker_connected": "1 while the broker can be reached.",
}


class AgentMetrics(Tally):
    """Observes events and shows them. `gauges` is asked at each scrape for the values named in AGENT_GAUGES but that of the
    last poll, which is known here; `now_s` is the wall clock, in seconds."""

    def __init__(self, gauges: Callable[[], Mapping[str, float]], now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.last_poll_s = 0.0
        super().__init__(
            AGENT_COUNTERS,
            AGENT_HISTOGRAMS,
            AGENT_GAUGES,
            lambda: {**gauges(), "tocsin_agent_last_poll_timestamp_seconds": self.last_poll_s},
        )

    def __call__(self, event: AgentEvent) -> None:
        """Observes."""
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    def _changed(self, event: events.ServiceCallChanged) -> None:
        self.count("tocsin_agent_calls", event.status)
        if event.lag_us is not None:
            self.observe("tocsin_agent_start_lag_seconds", event.lag_us / 1e6)

    def _polled(self, event: events.DuePollCompleted) -> None:
        self.count("tocsin_agent_polls", "done")
        self.observe("tocsin_agent_polling_duration_seconds", event.duration_us / 1e6)
        self.last_poll_s = self._now_s()

    def _executed(self, event: events.ExecutionFinished) -> None:
        self.count("tocsin_agent_executions", event.result)
        self.observe("tocsin_agent_execution_duration_seconds", event.duration_us / 1e6)

    def _published(self, event: events.MessagesPublished) -> None:
        self.count("tocsin_agent_messages_published", by=event.messages)
        self.observe("tocsin_agent_outbox_lag_seconds", event.lag_us / 1e6)

    def _connection(self, event: bus.BrokerConnection) -> None:
        if not event.connected:
            self.count("tocsin_agent_broker_disconnects")


_Handler = Callable[[AgentMetrics, "AgentEvent"], None]

_HANDLERS: dict[type, _Handler] = {
    events.CommandHandled: lambda m, e: m.count("tocsin_agent_commands_received", e.command, e.result),  # type: ignore[union-attr]
    events.ServiceCallChanged: AgentMetrics._changed,  # type: ignore[dict-item]
    events.CallRescued: lambda m, e: m.count("tocsin_agent_calls_rescued", e.action),  # type: ignore[union-attr]
    events.TimersScheduled: lambda m, e: m.count("tocsin_agent_timers_scheduled", by=e.timers),  # type: ignore[union-attr]
    events.DuePollCompleted: AgentMetrics._polled,  # type: ignore[dict-item]
    events.DuePollFailed: lambda m, e: m.count("tocsin_agent_polls", "failed"),
    events.DueTimesReached: lambda m, e: m.count("tocsin_agent_schedules_processed", by=e.timers),  # type: ignore[union-attr]
    events.ExecutionNotSent: lambda m, e: m.count("tocsin_agent_not_sent", e.code),  # type: ignore[union-attr]
    events.ExecutionFinished: AgentMetrics._executed,  # type: ignore[dict-item]
    events.ExecutionsInterrupted: lambda m, e: m.count("tocsin_agent_executions_interrupted", by=e.executions),  # type: ignore[union-attr]
    events.MessagesPublished: AgentMetrics._published,  # type: ignore[dict-item]
    events.PublishFailed: lambda m, e: m.count("tocsin_agent_publish_failures", e.type),  # type: ignore[union-attr]
    events.MessageSuspended: lambda m, e: m.count("tocsin_agent_messages_suspended", e.type),  # type: ignore[union-attr]
    events.AgentRowsPurged: lambda m, e: m.count("tocsin_agent_purged", e.kind, by=e.rows),  # type: ignore[union-attr]
    events.AgentStarted: lambda m, e: m.count("tocsin_agent_turns"),
    events.AgentLeadershipLost: lambda m, e: m.count("tocsin_agent_losses"),
    events.AgentStepFailed: lambda m, e: m.count("tocsin_agent_step_failures", e.step),  # type: ignore[union-attr]
    bus.DeliveryFailed: lambda m, e: m.count("tocsin_agent_delivery_failures", e.subscriber, e.type),  # type: ignore[union-attr]
    bus.MessageDeadLettered: lambda m, e: m.count("tocsin_agent_dead_letters", e.subscriber, e.type),  # type: ignore[union-attr]
    bus.BrokerConnection: AgentMetrics._connection,  # type: ignore[dict-item]
}
