"""Creates: their operations, and the stored secrets in place of `[redacted]` in their requests. Outcomes of writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec

from tocsin.model.condition import Condition, Outcome
from tocsin.model.errors import IdempotencyConflict, InvalidInput, TocsinError
from tocsin.model.ids import timer_uuid
from tocsin.model.redaction import take_secrets
from tocsin.model.timer import Timer
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.listing import TimerView

#: Timers of a batch that are completed before other requests get their turn.
_COMPLETED_PER_TURN = 100


#: The outcome of a client's write: the durable timer, the error, or None after a delete.
Settlement = TimerView | TocsinError | None
#: Takes the outcome of a client's write; of several, each with its operation. Must not raise.
Settled = Callable[[Settlement], None]
SettledOp = Callable[[WriteOp, Settlement], None]
#: Reads timers of a namespace by their ids.
GetMany = Callable[[str, Iterable[str]], Awaitable[Mapping[str, TimerView]]]


async def complete(
    timers: Sequence[tuple[Timer, Condition | None]], get_many: GetMany
) -> dict[int, TimerView | TocsinError]:
    """Puts the stored secrets into the timers, where their requests have `[redacted]`.

    Returns the answers that are already known, by `id(timer)`: the error where a secret is not stored, and the stored timer
    for a repetition, whose secrets may no longer be stored."""
    known: dict[int, TimerView | TocsinError] = {}
    turns = 0
    for namespace in {timer.namespace for timer, _ in timers}:
        wanted = [(timer, condition) for timer, condition in timers if timer.namespace == namespace]
        try:
            stored = await get_many(namespace, {timer.id for timer, _ in wanted})
        except TocsinError as error:
            known.update((id(timer), error) for timer, _ in wanted)
            continue
        for timer, condition in wanted:
            turns += 1
            if turns % _COMPLETED_PER_TURN == 0:
                await asyncio.sleep(0)
            view = stored.get(timer.id)
            try:
                if condition is not None and view is not None and condition.is_repeated(view.timer):
                    known[id(timer)] = msgspec.structs.replace(view, outcome=Outcome.REPLAYED)
                else:
                    take_secrets(timer, None if view is None else view.timer)
            except (InvalidInput, IdempotencyConflict) as error:
                known[id(timer)] = error
    return known


def create_op(timer: Timer, condition: Condition | None) -> WriteOp:
    """The operation that creates the timer."""
    uuid = timer_uuid(timer.namespace, timer.id)
    return WriteOp(OpKind.CREATE, uuid, timer.namespace, timer=timer, condition=condition)


class Outcomes:
    """The outcomes of a batch of creates, in order; `all` is done when the last one is settled."""

    def __init__(self, ops: Sequence[WriteOp]) -> None:
        self.all: asyncio.Future[list[TimerView | TocsinError]] = asyncio.get_running_loop().create_future()
        self._ops = ops
        self._settled: dict[WriteOp, TimerView | TocsinError] = {}
        if not ops:
            self.all.set_result([])

    def settle(self, op: WriteOp, outcome: Settlement) -> None:
        """Takes the outcome of one create."""
        assert outcome is not None
        self._settled[op] = outcome
        # Who waits may have gone.
        if len(self._settled) == len(self._ops) and not self.all.done():
            self.all.set_result([self._settled[each] for each in self._ops])


def settle_one(settle: Settled, op: WriteOp, outcome: Settlement) -> None:
    """Passes on the outcome of the only operation."""
    settle(outcome)


def settle_all(ops: Iterable[WriteOp], settle: SettledOp, error: TocsinError) -> None:
    """Settles all operations with the error."""
    for op in ops:
        settle(op, error)


def settle_future(future: asyncio.Future[Settlement], op: WriteOp, outcome: Settlement) -> None:
    """Wakes who waits for the outcome, unless it has gone."""
    if not future.done():
        future.set_result(outcome)
