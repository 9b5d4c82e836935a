"""Sends results of attempts that were in flight when their shard was handed over to its present owner (rule 25)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tocsin.model.errors import TimerNotFound, TimerNotPending, TocsinError, Unavailable
from tocsin.ports.observer import WriteRefused
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.rows import Conclusion, InFlightAttempt, WriteOp, conclusion_op

#: How long after its time-out a handed-over attempt counts as lost and is made again. It leaves time for the result to reach
#: the owner, and for two clocks that each differ from the store's as much as is allowed.
MARGIN_US = 5_000_000

#: Seconds between two checks whether a shard's hand-over, or a node's draining, is complete.
POLL_INTERVAL_S = 0.01

#: Sends writes to the shard's owner; the callback gets each one's error, or None.
Submit = Callable[[int, Sequence[WriteOp], Callable[[WriteOp, object], None]], None]


class HandedOverResults:
    """Sends each result until the owner has written it or found the timer changed, for at most `drain_timeout`.

    Sending a result twice is harmless: it applies to one generation of the row and ends that generation.
    """

    def __init__(self, context: Context, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        #: Set when other nodes can be reached; while None, a hand-over waits for the attempts in flight.
        self.submit: Submit | None = None
        #: Results not yet confirmed by an owner.
        self.pending = 0
        self._context = context
        self._spawn = spawn

    def send(self, shard_id: int, attempt: InFlightAttempt, conclusion: Conclusion) -> None:
        """Begins to send the conclusion of an attempt that has ended."""
        self.pending += 1
        self._spawn(self._send(shard_id, attempt, conclusion))

    async def _send(self, shard_id: int, attempt: InFlightAttempt, conclusion: Conclusion) -> None:
        clock, limits = self._context.clock, self._context.limits
        deadline = clock.boottime_us() + limits.drain_timeout_us
        try:
            while True:
                answer = await self._ask(shard_id, conclusion_op(attempt.row, attempt.handed_over_as, conclusion))
                if not isinstance(answer, Unavailable) or clock.boottime_us() >= deadline:
                    break
                await asyncio.sleep(limits.store_retry_interval_us / 1e6)
        finally:
            self.pending -= 1
        if isinstance(answer, TocsinError) and not isinstance(answer, TimerNotFound | TimerNotPending):
            self._context.observe(WriteRefused(shard_id, attempt.row.key[1], str(answer)))

    async def _ask(self, shard_id: int, op: WriteOp) -> object:
        assert self.submit is not None
        answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.submit(shard_id, [op], lambda _, answer: None if answered.done() else answered.set_result(answer))
        return await answered
