"""The execution module on the bus: passes orders to the executor, and publishes again how executions ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.ports.bus import Bus, Delivery, Envelope, InvalidMessage
from tocsin.service_calls.background import AgentContext
from tocsin.service_calls.events import ExecutionsInterrupted
from tocsin.service_calls.execution.executor import INTERRUPTED, Executor, interruption
from tocsin.service_calls.execution.order import end_event
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import (
    CheckExecution,
    ErrorMeta,
    ExecutionFailed,
    ExecutionInterrupted,
    Instant,
    Message,
    StartExecution,
)
from tocsin.service_calls.ports import ExecutionEnd, ExecutionLog, LoggedExecution

SUBSCRIBER = "execution"
TYPES = (StartExecution, CheckExecution)
#: A snippet may be this much shorter than its limit, because a character must not be cut in two.
_CHARACTER_BYTES_MAX = 4


class _Check(NamedTuple):
    envelope: Envelope
    message: CheckExecution


class ExecutionHandlers:
    """The executor acknowledges orders once they are logged. The bus limits unacknowledged messages, which gives
    backpressure. Checks are acknowledged once they are handled."""

    def __init__(self, executor: Executor, log: ExecutionLog, context: AgentContext) -> None:
        self._executor = executor
        self._log = log
        self._context = context

    def attach(self, bus: Bus) -> None:
        """Subscribes. Call it before the bus starts."""
        bus.subscribe(SUBSCRIBER, [kind.__name__ for kind in TYPES], self.handle)

    async def handle(self, deliveries: Sequence[Delivery]) -> None:
        """A tocsin.ports.bus.Handler. A malformed message fails alone; an error of the log fails the checks."""
        orders, checks = [], []
        for delivery, message in self._context.opened(deliveries):
            if isinstance(message, StartExecution):
                orders.append((delivery, message))
            elif isinstance(message, CheckExecution):
                checks.append(_Check(delivery.envelope, message))
            else:
                delivery.fail(InvalidMessage(f"the execution module does not handle {delivery.envelope.type}"))
        self._executor.submit(orders)
        asked = [check for check in checks if not self._executor.knows(check.message.execution_id)]
        if asked:
            await self._answer(asked)

    # ------------------------------------------------------------------ checks

    async def _answer(self, asked: Sequence[_Check]) -> None:
        """Reads executions from the log and publishes their result again. Raises StoreError; events published before
        that may be published again.

        An execution in flight is not asked for: its end will be published. An execution without an end in the log that
        does not run was interrupted and is completed as such. An execution that is not in the log may still be ordered;
        only if it is known to have begun, or if its order can never be published, it has failed.
        """
        context = self._context
        rows = await self._log.find(
            {(check.envelope.tenant_id, check.message.service_call_id, check.message.execution_id) for check in asked}
        )
        cut_off: dict[str, tuple[ExecutionEnd, Envelope]] = {}
        events: dict[str, Envelope] = {}
        for check in asked:
            execution_id = check.message.execution_id
            row = rows.get(execution_id)
            if row is not None and row.end is None:
                # It may have begun while the log was being read.
                if not self._executor.knows(execution_id):
                    cut_off[execution_id] = interruption(row.start, context, check.envelope.id)
            elif (event := self._event(check, row)) is not None:
                events[execution_id] = context.registry.caused_by(check.envelope, event)
        if events:
            await self._log.report(list(events.values()))
        if cut_off and (completed := await self._log.finish(list(cut_off.values()))):
            context.observe(ExecutionsInterrupted(len(completed)))

    def _event(self, check: _Check, row: LoggedExecution | None) -> Message | None:
        if row is not None:
            assert row.end is not None
            return logged_event(row, row.end, self._context.limits)
        if check.message.begun:
            error = ErrorMeta("WATCHDOG_TIMEOUT", "the execution began, but the execution log does not contain it")
        elif check.message.refused is not None:
            error = ErrorMeta("INVALID_REQUEST", check.message.refused)
        else:
            return None
        key, execution_id = check.message.service_call_id, check.message.execution_id
        return ExecutionFailed(key, execution_id, Instant(self._context.clock.now_us()), error)


def logged_event(row: LoggedExecution, end: ExecutionEnd, limits: AgentLimits) -> Message:
    """The event for the end of a logged execution, rebuilt from its row. The latency counts from the logged start. A
    body as long as the limit of snippets counts as truncated."""
    if end.error_message == INTERRUPTED:
        started_at, noticed_at = Instant(row.start.started_at), Instant(end.finished_at)
        return ExecutionInterrupted(end.service_call_id, end.execution_id, started_at, noticed_at)
    truncated = len((end.response_body or "").encode()) > limits.snippet_bytes_max - _CHARACTER_BYTES_MAX
    return end_event(end, max(end.finished_at - row.start.started_at, 0) / 1_000, truncated)
