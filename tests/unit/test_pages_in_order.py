"""A page of a list is what was found within the time budget."""

from __future__ import annotations

from itertools import count

from tocsin.model.timer import Timer
from tocsin.timers.service import ListRequest, TimerView
from tocsin.web.pages.lists import TimeBudget, in_order

NOW = 1_900_000_000_000_000


class Listed:
    """A list function over timers, earliest first, that matches every `every`th timer. A read scans up to `scan` timers. A
    cursor consists of an instant and a position."""

    def __init__(self, instants: list[int], every: int = 1, scan: int = 10**9) -> None:
        views = [
            TimerView(Timer("default", f"t{n}", at, "http://x/", NOW, NOW), n.to_bytes(16, "big"), 0, at)
            for n, at in enumerate(instants)
        ]
        self.rows = sorted(views, key=lambda view: (view.timer.execute_at, view.uuid))
        self.instants = [view.timer.execute_at for view in self.rows]
        self.every = every
        self.scan = scan

    def matches(self, view: TimerView) -> bool:
        return int.from_bytes(view.uuid, "big") % self.every == 0

    async def __call__(self, request: ListRequest) -> tuple[list[TimerView], str | None]:
        assert request.reads_max == 1
        position = 0 if request.cursor is None else int(request.cursor.split("_")[1])
        found: list[TimerView] = []
        for at in range(position, min(len(self.rows), position + self.scan)):
            found += [self.rows[at]] if self.matches(self.rows[at]) else []
            position = at + 1
            if len(found) == request.limit:
                break
        return found, f"{self.instants[position - 1]}_{position}" if position < len(self.rows) else None


def reached(cursor: str) -> int:
    """The instant in a cursor of Listed."""
    return int(cursor.split("_")[0])


def budget(steps: int = 10**9) -> TimeBudget:
    """A time budget that is spent after so many steps."""
    ticks = count()
    return TimeBudget(steps, lambda: next(ticks))


async def test_search_stops_in_time_and_reports_its_position() -> None:
    listed = Listed(list(range(NOW, NOW + 1_000)), every=400, scan=100)
    first = await in_order(listed, ListRequest("default", limit=50), budget(2), reached)
    assert [view.timer.id for view in first.rows] == ["t0"]
    assert first.reached == NOW + 199
    rest = await in_order(listed, ListRequest("default", limit=50, cursor=first.cursor), budget(), reached)
    assert [view.timer.id for view in rest.rows] == ["t400", "t800"]
    assert (rest.cursor, rest.reached) == (None, None)


async def test_full_page_is_not_an_unfinished_search() -> None:
    listed = Listed(list(range(NOW, NOW + 1_000)), scan=20)
    page = await in_order(listed, ListRequest("default", limit=50), budget(3), reached)
    assert (len(page.rows), page.reached) == (50, None)
    assert page.cursor is not None
