"""What the agent's modules share."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.ports.clock import Clock
from tocsin.service_calls.events import AgentObserver, AgentStepFailed
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import Registry


@dataclass(frozen=True, slots=True)
class AgentContext:
    """The registry of messages, the clock, the limits in force and the observer of events."""

    registry: Registry
    clock: Clock
    limits: AgentLimits
    observe: AgentObserver

    def step_failed(self, step: str, error: Exception) -> None:
        """Reports that a background step failed and will be tried again."""
        self.observe(AgentStepFailed(step, describe(error)))


def describe(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}"
