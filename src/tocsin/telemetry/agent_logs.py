"""The agent's events as log lines, each with the tenant, the service call and the correlation id that it is about."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import structlog

from tocsin.agent import events
from tocsin.agent.events import AgentEvent
from tocsin.ports import bus
from tocsin.telemetry.logs import Ration, words

#: Warnings about single calls and messages in a second; further ones are counted and reported with the next line.
WARNING_LINES_PER_SECOND_MAX = 20

#: Where each event is logged; `docs/reference/events.md` shows it.
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

#: Who runs the agent: rare, and most wanted among the many failures that come with it.
_NEVER_LEFT_OUT = (events.AgentStarted, events.AgentStandby, events.AgentLeadershipLost)


class AgentLog:
    """An observer that writes one line per event worth reading. A failed call is a warning, rationed like all that can
    come once per call."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._logger = structlog.get_logger("tocsin.agent")
        self._debug = logging.getLogger().isEnabledFor(logging.DEBUG)
        self._warnings = Ration(now_s, WARNING_LINES_PER_SECOND_MAX)

    def __call__(self, event: AgentEvent) -> None:
        """Observes."""
        level = AGENT_LEVELS[type(event)]
        if isinstance(event, events.ExecutionFinished) and event.result != "succeeded":
            level = logging.WARNING
        elif isinstance(event, bus.BrokerConnection) and event.connected:
            level = logging.INFO
        if level == logging.DEBUG:
            if self._debug:
                self._logger.debug(words(type(event).__name__), **_fields(event))
            return
        extra = {} if isinstance(event, _NEVER_LEFT_OUT) else self._warnings.grant()
        if extra is not None:
            self._logger.log(level, words(type(event).__name__), **_fields(event), **extra)


def _fields(event: AgentEvent) -> dict[str, Any]:
    return {_camel(name): value for name, value in event._asdict().items() if value is not None}


def _camel(name: str) -> str:
    """Names as they stand in the API, so that one search finds a call in both."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
