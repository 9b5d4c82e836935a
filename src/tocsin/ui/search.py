"""Looking through a list for what matches, for as long as somebody would wait: then with what was found so far, and from
where to go on. The stores' own order is the earliest first; `tocsin.ui.latest` makes the other one of it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tocsin.ports.list_cursor import cursor_instant
from tocsin.service import ListRequest, TimerView

Lists = Callable[[ListRequest], Awaitable[tuple[list[TimerView], str | None]]]


@dataclass(frozen=True, slots=True)
class Found:
    """Timers in order, and the cursor of what follows. `reached_us` where the time was over before so many were found as
    were asked for: the instant up to which (latest first: down to which) everything was looked through."""

    views: list[TimerView]
    cursor: str | None = None
    reached_us: int | None = None


class Patience:
    """How long a search goes on. Every search makes one step, however little time it has."""

    def __init__(self, timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until = monotonic() + timeout_s

    @property
    def over(self) -> bool:
        """Whether it is time to answer."""
        return self._monotonic() >= self._until


async def earliest(
    lists: Lists, request: ListRequest, patience: Patience, reached: Callable[[str], int] = cursor_instant
) -> Found:
    """The page of `request`, or as much of it as was found in time; InvalidInput for a bad cursor. `reached` tells how far
    a list has come that goes on at a cursor."""
    views: list[TimerView] = []
    cursor = request.cursor
    while True:
        step = replace(request, cursor=cursor, limit=request.limit - len(views), reads_max=1)
        found, cursor = await lists(step)
        views += found
        if cursor is None or len(views) >= request.limit:
            return Found(views, cursor)
        if patience.over:
            return Found(views, cursor, reached(cursor))
