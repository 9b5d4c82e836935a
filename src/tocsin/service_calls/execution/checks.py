"""Handles CheckExecution: publishes again how an execution ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.model.envelope import Envelope
from tocsin.ports.clock import Clock
from tocsin.service_calls.events import AgentObserver, ExecutionsInterrupted
from tocsin.service_calls.execution.conclusion import error_of
from tocsin.service_calls.execution.executor import Executor
from tocsin.service_calls.execution.ports import ExecutionEnd, ExecutionLog, LoggedExecution
from tocsin.service_calls.execution.recovery import INTERRUPTED, interruption
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import (
    CheckExecution,
    ErrorMeta,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionSucceeded,
    Message,
    Registry,
    ResponseMeta,
)

#: A snippet may be this much shorter than its limit, because a character must not be cut in two.
_CHARACTER_BYTES_MAX = 4


class Check(NamedTuple):
    """A CheckExecution and its envelope."""

    envelope: Envelope
    message: CheckExecution

    @property
    def key(self) -> tuple[str, str, str]:
        """Tenant, call and execution: the log's key."""
        return self.envelope.tenant_id, self.message.service_call_id, self.message.execution_id


class ExecutionChecks:
    """Reads executions from the log and publishes their result again.

    An execution in flight is ignored: its end will be published. An execution without an end in the log that does not
    run was interrupted and is completed as such. An execution that is not in the log may still be ordered; only if
    it is known to have begun, it has failed.
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
        """Handles all checks. Raises StoreError; events published before that may be published again."""
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
                # It may have begun while the log was being read.
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
        error = ErrorMeta("WATCHDOG_TIMEOUT", "the execution began, but the execution log does not contain it")
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
    """The event for the end of a logged execution, rebuilt from its row. The latency counts from the logged start. A
    body as long as the limit of snippets counts as truncated."""
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
