"""Searches a list within a time budget: returns the matches found so far, and a cursor to continue from. This module lists
earliest first, as the stores do; `tocsin.web.pages.timers.latest` lists latest first."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tocsin.ports.list_cursor import cursor_instant
from tocsin.timers.service import ListRequest, TimerView

ListFunction = Callable[[ListRequest], Awaitable[tuple[list[TimerView], str | None]]]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Timers in order, and the cursor of the next page. `reached_us` is set if the time budget ended before the page was
    full: the instant up to which (latest first: down to which) everything was searched."""

    views: list[TimerView]
    cursor: str | None = None
    reached_us: int | None = None


class TimeBudget:
    """The time that a search may take. A search makes at least one read, however small its budget."""

    def __init__(self, timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until = monotonic() + timeout_s

    @property
    def spent(self) -> bool:
        """Whether the time has run out."""
        return self._monotonic() >= self._until


async def earliest(
    lists: ListFunction, request: ListRequest, budget: TimeBudget, reached: Callable[[str], int] = cursor_instant
) -> SearchResult:
    """The page of `request`, or the part of it that was found within the time budget. `reached` returns the instant up to
    which a list's cursor has read. Raises InvalidInput for a bad cursor."""
    views: list[TimerView] = []
    cursor = request.cursor
    while True:
        step = replace(request, cursor=cursor, limit=request.limit - len(views), reads_max=1)
        found, cursor = await lists(step)
        views += found
        if cursor is None or len(views) >= request.limit:
            return SearchResult(views, cursor)
        if budget.spent:
            return SearchResult(views, cursor, reached(cursor))
