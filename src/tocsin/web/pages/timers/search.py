"""Searches timers within a time budget: returns the matches found so far, and a cursor to continue from.

The service lists the earliest first. To list the latest first, time is divided into spans, short around now and long far
away, which are read from the future to the past. A span with more timers than are still needed is halved, and its later half
is read first; so a page costs a few dozen small reads, however many timers there are. If a read stops before the end of its
span because few timers match the filters, the span is read in parts of the size that one read covers, beginning at its end.
A page ends at the boundary of a span, unless several timers are due in the same microsecond.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.timers.listing import cursor_instant
from tocsin.timers.service import ListRequest, TimerView
from tocsin.web.pages.lists import Listing, TimeBudget

ListFunction = Callable[[ListRequest], Awaitable[tuple[list[TimerView], str | None]]]

_SECOND_US = 1_000_000
_DAY_US = 86_400 * _SECOND_US
#: Distances from now of the boundaries between spans; no timer may lie beyond the last.
_DISTANCES_US = (
    10 * _SECOND_US, 60 * _SECOND_US, 600 * _SECOND_US, 3_600 * _SECOND_US, 6 * 3_600 * _SECOND_US, _DAY_US, 4 * _DAY_US,
    30 * _DAY_US, 366 * _DAY_US, 4_000 * _DAY_US, 200 * 366 * _DAY_US,
)  # fmt: skip
#: Reads for one page; a page that would need more is shorter and has a cursor.
READS_MAX = 300
_CURSOR = re.compile(r"(-?\d{1,19})\.([A-Za-z0-9_-]*)\Z", re.ASCII)

#: Start, end, and the width that one read covers, counted from the end; None: the whole span.
_Span = tuple[int, int, int | None]


async def latest(
    lists: ListFunction,
    request: ListRequest,
    now_us: int,
    budget: TimeBudget,
    reached: Callable[[str], int] = cursor_instant,
) -> Listing[TimerView]:
    """The page of `request`, latest due time first, or the part of it that was found within the time budget.
    `request.cursor` is a cursor of this module. `reached` returns the instant up to which a list's cursor has read."""
    before, inside = _read(request.cursor)
    views: list[TimerView] = []
    spans = _spans(request, before, inside, now_us)
    for _ in range(READS_MAX):
        if not spans:
            return Listing(views)
        begin, end, width = spans.pop()
        low = begin if width is None else max(begin, end - width)
        wanted = request.limit - len(views)
        one_instant = end - low == 1
        part = replace(
            request,
            execute_after=low,
            execute_before=end,
            limit=wanted,
            cursor=inside if one_instant and inside else None,
            reads_max=1,
        )
        found, cursor = await lists(part)
        if cursor is None:
            # Timers of one instant keep the store's order, on one page and across pages.
            views += found if one_instant else reversed(found)
            inside = ""
            if low > begin:
                spans.append((begin, low, (end - low) * 5 // 4 + 1))
        elif one_instant:
            views += found
            inside = cursor
            spans += [(begin, low, width)] if low > begin else []
            spans.append((low, end, None))
        elif len(found) >= wanted:
            spans.append((begin, end, (end - low) // 2))
            continue
        else:
            # More than one read covers; the part that was read determines the width of the next.
            spans.append((begin, end, max((reached(cursor) - low) * 3 // 4, 1)))
            continue
        if len(views) >= request.limit or budget.spent:
            break
    if not spans:
        return Listing(views)
    boundary = spans[-1][1]
    unfinished = len(views) < request.limit
    return Listing(views, f"{boundary}.{inside}", boundary if unfinished else None)


def _spans(request: ListRequest, before: int | None, inside: str, now_us: int) -> list[_Span]:
    """The spans to read, in reverse order."""
    edges = sorted(now_us + sign * distance for distance in _DISTANCES_US for sign in (-1, 1))
    low = edges[0] if request.execute_after is None else request.execute_after
    high = edges[-1] if request.execute_before is None else request.execute_before
    if before is not None:
        high = min(high, before)
        if inside:
            # The page ended within an instant that has more timers: that instant is a separate span.
            edges = sorted({*edges, high - 1})
    inner = [edge for edge in edges if low < edge < high]
    points = [low, *inner, high]
    return [(begin, end, None) for begin, end in pairwise(points) if begin < end]


def _read(cursor: str | None) -> tuple[int | None, str]:
    if cursor is None:
        return None, ""
    match = _CURSOR.match(cursor)
    if match is None:
        raise InvalidInput(FieldError("cursor", "is not a cursor of this list; omit it to start at the first page"))
    return int(match[1]), match[2]
