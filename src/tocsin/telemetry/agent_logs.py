"""The agent's events as log lines, each with the tenant, service call and correlation id that it concerns."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import structlog

from tocsin.ports import bus
from tocsin.rate_limit import RateLimit
from tocsin.service_calls import events
from tocsin.service_calls.events import AgentEvent
from tocsin.telemetry.logs import event_phrase, suppressed_field

#: Warnings per second about single calls and messages; the next line has the number of suppressed ones.
WARNING_LINES_PER_SECOND_MAX = 20

#: The log level of each event; `docs/reference/events.md` lists them.
AGENT_LEVELS: dict[type, int] = {
    events.CommandHandled: logging.DEBUG,
    events.ServiceCallChanged: logging.DEBUG,
    events.CallRescued: logging.WARNING,
    events.TimersScheduled: logging.DEBUG,
    events.DuePollCompleted: logging.DEBUG,
    events.DuePollFailed: logging.ERROR,
    events.DueTimesReached: logging.DEBUG,
    events.ExecutionBegun: logging.DEBUG,
    events.ExecutionNotSent: logging.WARNING,
    events.ExecutionFinished: logging.DEBUG,
    events.ExecutionsInterrupted: logging.WARNING,
    events.MessagesPublished: logging.DEBUG,
    events.PublishFailed: logging.WARNING,
    events.MessageSuspended: logging.ERROR,
    events.AgentRowsPurged: logging.DEBUG,
    events.AgentStepFailed: logging.ERROR,
    events.AgentStarted: logging.INFO,
    events.AgentStandby: logging.INFO,
    events.AgentLeadershipLost: logging.WARNING,
    bus.DeliveryFailed: logging.WARNING,
    bus.MessageDeadLettered: logging.ERROR,
    bus.BrokerConnection: logging.WARNING,
}

#: Events about which node runs the agent are rare, and most needed among the failures that accompany a change.
_NEVER_SUPPRESSED = (events.AgentStarted, events.AgentStandby, events.AgentLeadershipLost)


class AgentLog:
    """An observer that logs one line per significant event. A failed call is a warning, rate-limited like every event that
    can occur once per call."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._logger = structlog.get_logger("tocsin.agent")
        self._debug = logging.getLogger().isEnabledFor(logging.DEBUG)
        self._warnings = RateLimit(WARNING_LINES_PER_SECOND_MAX, now_s=now_s)

    def __call__(self, event: AgentEvent) -> None:
        """Logs the event."""
        level = AGENT_LEVELS[type(event)]
        if isinstance(event, events.ExecutionFinished) and event.result != "succeeded":
            level = logging.WARNING
        elif isinstance(event, bus.BrokerConnection) and event.connected:
            level = logging.INFO
        if level == logging.DEBUG:
            if self._debug:
                self._logger.debug(event_phrase(type(event).__name__), **_fields(event))
            return
        suppressed = 0 if isinstance(event, _NEVER_SUPPRESSED) else self._warnings.grant()
        if suppressed is not None:
            self._logger.log(
                level, event_phrase(type(event).__name__), **_fields(event), **suppressed_field(suppressed)
            )


def _fields(event: AgentEvent) -> dict[str, Any]:
    return {_camel(name): value for name, value in event._asdict().items() if value is not None}


def _camel(name: str) -> str:
    """The field's name in the API's spelling, so that one search finds a call in logs and responses."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
