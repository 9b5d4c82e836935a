"""Closes executions that an earlier run of the process left unfinished."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.model.envelope import Envelope
from tocsin.service_calls.events import AgentObserver, ExecutionsInterrupted
from tocsin.service_calls.execution.ports import ExecutionEnd, ExecutionLog, ExecutionStart
from tocsin.service_calls.messages import ExecutionInterrupted, Registry

INTERRUPTED = "interrupted: the process ended while the request was under way; whether the service got it is not known"


async def recover(
    log: ExecutionLog, registry: Registry, now_us: Callable[[], int], observe: AgentObserver, rows_max: int
) -> int:
    """Completes every unfinished row and reports it as ExecutionInterrupted. Returns how many. Call it while nothing is
    being executed on this database. `rows_max` is the number of rows in one transaction. Raises StoreError."""
    interrupted = 0
    while rows := await log.unfinished(rows_max):
        completed = await log.finish([interruption(row, registry, now_us()) for row in rows])
        if not completed:
            # They were deleted meanwhile, or another process completes them.
            break
        interrupted += len(completed)
    if interrupted:
        observe(ExecutionsInterrupted(interrupted))
    return interrupted


def interruption(
    row: ExecutionStart, registry: Registry, now_us: int, causation_id: str | None = None
) -> tuple[ExecutionEnd, Envelope]:
    """The end of a row whose execution was interrupted, and the event that reports it."""
    event = ExecutionInterrupted(row.service_call_id, row.execution_id, row.started_at, now_us)
    end = ExecutionEnd(row.tenant_id, row.service_call_id, row.execution_id, now_us, None, None, None, INTERRUPTED)
    # After a restart there is no cause: the log does not have the message that ordered the execution.
    return end, registry.seal(
        event, tenant_id=row.tenant_id, correlation_id=row.correlation_id, causation_id=causation_id
    )
