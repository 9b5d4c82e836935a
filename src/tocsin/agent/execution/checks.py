"""Answers to the question what became of an execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.agent.events import AgentObserver, ExecutionsInterrupted
from tocsin.agent.execution.conclusion import error_of
from tocsin.agent.execution.executor import Executor
from tocsin.agent.execution.ports import ExecutionEnd, ExecutionLog, LoggedExecution
from tocsin.agent.execution.recovery import INTERRUPTED, interruption
from tocsin.agent.limits import AgentLimits
from tocsin.agent.messages import (
    CheckExecution,
    ErrorMeta,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionSucceeded,
    Message,
    Registry,
    ResponseMeta,
)
from tocsin.model.envelope import Envelope
from tocsin.ports.clock import Clock

#: Of a character that the limit of a snippet would have cut in two.
_CHARACTER_BYTES_MAX = 4


class Check(NamedTuple):
    """A question, with the envelope it came in."""

    envelope: Envelope
    message: CheckExecution

    @property
    def key(self) -> tuple[str, str, str]:
        """As the log knows the execution."""
        return self.envelope.tenant_id, self.message.service_call_id, self.message.execution_id


class ExecutionChecks:
    """Looks executions up in the log and publishes again how they ended.

    About one that is under way nothing is said: its end will be. One that the log has without an end and that is not
    under way was cut off, and is completed as interrupted. One that the log doesn't have can still be ordered; only if it
    is known to have begun, it has failed.
    """

    def __init__(
        self,
        log: ExecutionLog,
        executor: Executor,
        registry: Registry,
        clock: Clock,
        limits: AgentLimits,
        observe: AgentObserver,
    ) -> None:
        self._log = log
        self._executor = executor
        self._registry = registry
        self._clock = clock
        self._limits = limits
        self._observe = observe

    async def answer(self, checks: Sequence[Check]) -> None:
        """All of them. Raises StoreError; what was published by then may be published again."""
        asked = [check for check in checks if not self._executor.knows(check.message.execution_id)]
        if not asked:
            return
        rows = await self._log.find({check.key for check in asked})
        cut_off: dict[str, tuple[ExecutionEnd, Envelope]] = {}
        events: dict[str, Envelope] = {}
        for check in asked:
            execution_id = check.message.execution_id
            row = rows.get(execution_id)
            if row is not None and row.end is None:
                # It may have begun while the log was read.
                if not self._executor.knows(execution_id):
                    cut_off[execution_id] = interruption(
                        row.start, self._registry, self._clock.now_us(), check.envelope.id
                    )
            elif (event := self._event(check, row)) is not None:
                events[execution_id] = self._seal(check, event)
        if events:
            await self._log.report(list(events.values()))
        if cut_off and (completed := await self._log.finish(list(cut_off.values()))):
            self._observe(ExecutionsInterrupted(len(completed)))

    def _event(self, check: Check, row: LoggedExecution | None) -> Message | None:
        if row is not None:
            assert row.end is not None
            return end_event(row, row.end, self._limits)
        if not check.message.begun:
            return None
        error = ErrorMeta("WATCHDOG_TIMEOUT", "it began, and the execution log doesn't have it")
        key, execution_id = check.message.service_call_id, check.message.execution_id
        return ExecutionFailed(key, execution_id, self._clock.now_us(), error)

    def _seal(self, check: Check, event: Message) -> Envelope:
        asked = check.envelope
        return self._registry.seal(
            event, tenant_id=asked.tenant_id, correlation_id=asked.correlation_id, causation_id=asked.id
        )


def end_event(
    row: LoggedExecution, end: ExecutionEnd, limits: AgentLimits
) -> ExecutionSucceeded | ExecutionFailed | ExecutionInterrupted:
    """The event of a row's end, from what the row keeps: the latency is counted from the beginning that was logged, and a
    body that is as long as snippets may be is taken for a cut one."""
    key, execution_id = end.service_call_id, end.execution_id
    if end.error_message == INTERRUPTED:
        return ExecutionInterrupted(key, execution_id, row.start.started_at, end.finished_at)
    latency_ms = max(end.finished_at - row.start.started_at, 0) / 1_000
    response = None
    if end.response_status is not None:
        body = end.response_body or ""
        cut = len(body.encode()) > limits.snippet_bytes_max - _CHARACTER_BYTES_MAX
        response = ResponseMeta(end.response_status, end.response_headers or {}, body, latency_ms, cut)
    if end.error_message is not None:
        error = error_of(end.error_message, latency_ms)
        return ExecutionFailed(key, execution_id, end.finished_at, error, response)
    assert response is not None
    return ExecutionSucceeded(key, execution_id, end.finished_at, response)
