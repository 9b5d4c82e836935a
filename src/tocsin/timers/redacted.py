"""The stored secrets in place of `[redacted]` in requests to create, change and replay timers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec

from tocsin.model.condition import Condition, Outcome
from tocsin.model.errors import IdempotencyConflict, InvalidInput, TocsinError
from tocsin.model.redaction import take_secrets, with_headers, with_url
from tocsin.model.timer import Changes, Timer
from tocsin.timers.listing import TimerView

#: Timers of a batch whose secrets are restored before other requests get their turn.
_RESTORED_PER_TURN = 100
#: Reads timers of a namespace by their ids.
GetMany = Callable[[str, Iterable[str]], Awaitable[Mapping[str, TimerView]]]


def with_secrets(changes: Changes, stored: Timer) -> Changes:
    """The changes with the timer's secrets where they have `[redacted]`. Raises InvalidInput for those that it has not."""
    url, headers = changes.url or None, changes.headers or None
    return msgspec.structs.replace(
        changes,
        url=changes.url if url is None else with_url(url, stored.url),
        headers=changes.headers if headers is None else with_headers(headers, stored.headers),
    )


async def restore_secrets(
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
            if turns % _RESTORED_PER_TURN == 0:
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
