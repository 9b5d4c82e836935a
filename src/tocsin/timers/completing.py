"""Creates whose requests have `[redacted]` in place of secrets that are stored with the timer, and outcomes of batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec

from tocsin.model.condition import Condition, Outcome
from tocsin.model.errors import IdempotencyConflict, InvalidInput, TocsinError
from tocsin.model.timer import Timer
from tocsin.model.withheld import take_secrets
from tocsin.timers.listing import TimerView

#: Timers of a batch that are completed before other requests get their turn.
_COMPLETED_PER_TURN = 100


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
                    _complete(timer, None if view is None else view.timer)
            except (InvalidInput, IdempotencyConflict) as error:
                known[id(timer)] = error
    return known


def _complete(timer: Timer, former: Timer | None) -> None:
    take_secrets(timer, former)


class Outcomes:
    """The outcomes of a batch of creates; `all` is done when the last one is settled."""

    def __init__(self, count: int) -> None:
        self.all: asyncio.Future[list[TimerView | TocsinError]] = asyncio.get_running_loop().create_future()
        self._settled: dict[int, TimerView | TocsinError] = {}
        self._count = count
        if not count:
            self.all.set_result([])

    def settle(self, index: int, outcome: TimerView | TocsinError | None) -> None:
        """Takes the outcome of one create."""
        assert outcome is not None
        self._settled[index] = outcome
        # Who waits may have gone.
        if len(self._settled) == self._count and not self.all.done():
            self.all.set_result([self._settled[each] for each in range(self._count)])
