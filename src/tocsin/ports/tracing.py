"""The tracing port: what a request that creates timers or submits a service call reports, where traces are collected."""

from __future__ import annotations

from typing import Protocol


class CreateSpan(Protocol):
    """The span of a request that creates timers or submits a service call."""

    @property
    def traceparent(self) -> str | None:
        """What the timers or the call keep: firings and executions are linked to it, and sampled if its flag is set. None:
        nothing."""

    def end(self, error: BaseException | None) -> None:
        """Called once, when the request has been answered; with the error, if it was refused or failed."""


class CreateTraces(Protocol):
    """Begins spans."""

    def begin(self, operation: str, traceparent: str | None) -> CreateSpan:
        """The span of a request to the operation; `traceparent` is the caller's, if it sent a valid one."""
