"""Lists with the latest first, over a service that lists the earliest first.

Time is cut into spans, fine around now and coarse far away, and walked from the future into the past. A span with more
timers than are still wanted is halved, its later half first; so a page costs a few dozen small reads, however many timers
there are. One with more timers than a read looks through for a few that match is read in parts as large as that read came,
from its end on. Pages end where spans do, except among timers of one and the same microsecond.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.ports.list_cursor import cursor_instant
from tocsin.service import ListRequest, TimerView
from tocsin.ui.search import Found, Lists, Patience

_SECOND_US = 1_000_000
_DAY_US = 86_400 * _SECOND_US
#: Distances from now at which spans begin and end; the last is farther than any timer may lie.
_DISTANCES_US = (
    10 * _SECOND_US, 60 * _SECOND_US, 600 * _SECOND_US, 3_600 * _SECOND_US, 6 * 3_600 * _SECOND_US, _DAY_US, 4 * _DAY_US,
    30 * _DAY_US, 366 * _DAY_US, 4_000 * _DAY_US, 200 * 366 * _DAY_US,
)  # fmt: skip
#: Reads for one page; a page that would take more is short and says where to go on.
READS_MAX = 300
_CURSOR = re.compile(r"(-?\d{1,19})\.([A-Za-z0-9_-]*)\Z", re.ASCII)

#: From, to, and how much of its end is read at once; None: all of it.
_Span = tuple[int, int, int | None]


async def latest(
    lists: Lists,
    request: ListRequest,
    now_us: int,
    patience: Patience,
    reached: Callable[[str], int] = cursor_instant,
) -> Found:
    """The page of `request`, latest due first, or as much of it as was found in time; `request.cursor` is one of ours.
    `reached` tells how far a list has come that goes on at a cursor."""
    before, inside = _read(request.cursor)
    views: list[TimerView] = []
    spans = _spans(request, before, inside, now_us)
    for _ in range(READS_MAX):
        if not spans:
            return Found(views)
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
            # Timers of one instant come in their own order, also over several pages.
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
            # Too many to look through at once; the part that was looked through says how many that is.
            spans.append((begin, end, max((reached(cursor) - low) * 3 // 4, 1)))
            continue
        if len(views) >= request.limit or patience.over:
            break
    if not spans:
        return Found(views)
    place = spans[-1][1]
    unfinished = len(views) < request.limit
    return Found(views, f"{place}.{inside}", place if unfinished else None)


def _spans(request: ListRequest, before: int | None, inside: str, now_us: int) -> list[_Span]:
    """The spans to walk, the last one first."""
    edges = sorted(now_us + sign * distance for distance in _DISTANCES_US for sign in (-1, 1))
    low = edges[0] if request.execute_after is None else request.execute_after
    high = edges[-1] if request.execute_before is None else request.execute_before
    if before is not None:
        high = min(high, before)
        if inside:
            # The instant within which a page ended has more timers: it is a span of its own.
            edges = sorted({*edges, high - 1})
    inner = [edge for edge in edges if low < edge < high]
    points = [low, *inner, high]
    return [(begin, end, None) for begin, end in pairwise(points) if begin < end]


def _read(cursor: str | None) -> tuple[int | None, str]:
    if cursor is None:
        return None, ""
    match = _CURSOR.match(cursor)
    if match is None:
        raise InvalidInput(FieldError("cursor", "is not one that this list gave; leave it out to start anew"))
    return int(match[1]), match[2]
