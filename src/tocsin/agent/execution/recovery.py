"""Executions that an earlier run of the process left unfinished."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.agent.events import AgentObserver, ExecutionsInterrupted
from tocsin.agent.execution.ports import ExecutionEnd, ExecutionLog, ExecutionStart
from tocsin.agent.messages import ExecutionInterrupted, Registry
from tocsin.model.envelope import Envelope

INTERRUPTED = "interrupted: the process ended while the request was under way; whether the service got it is not known"


async def recover(
    log: ExecutionLog, registry: Registry, now_us: Callable[[], int], observe: AgentObserver, rows_max: int
) -> int:
    """Completes every unfinished row and reports it as ExecutionInterrupted; returns how many. To be called while nothing
    is being executed on this database. `rows_max` is how many are dealt with in one transaction. Raises StoreError."""
    interrupted = 0
    while rows := await log.unfinished(rows_max):
        completed = await log.finish([interruption(row, registry, now_us()) for row in rows])
        if not completed:
            # They went away meanwhile, or somebody else completes them.
            break
        interrupted += len(completed)
    if interrupted:
        observe(ExecutionsInterrupted(interrupted))
    return interrupted


def interruption(
    row: ExecutionStart, registry: Registry, now_us: int, causation_id: str | None = None
) -> tuple[ExecutionEnd, Envelope]:
    """The end of a row that nobody is executing any more, and the event that reports it."""
    event = ExecutionInterrupted(row.service_call_id, row.execution_id, row.started_at, now_us)
    end = ExecutionEnd(row.tenant_id, row.service_call_id, row.execution_id, now_us, None, None, None, INTERRUPTED)
    # Without a cause it is the restart's; the message that had ordered the execution is not in the log.
    return end, registry.seal(
        event, tenant_id=row.tenant_id, correlation_id=row.correlation_id, causation_id=causation_id
    )
