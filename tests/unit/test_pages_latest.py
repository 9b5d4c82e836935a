"""Searches in both orders: pages contain every match once, in order, wherever a page ends."""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import replace
from itertools import count

import pytest
from tests.support.cases import each

from tocsin.model.errors import InvalidInput
from tocsin.model.timer import Timer
from tocsin.timers.service import ListRequest, TimerView
from tocsin.web.pages.lists import TimeBudget, in_order
from tocsin.web.pages.timers.search import READS_MAX, latest

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
        self.reads = 0

    @property
    def wanted(self) -> list[TimerView]:
        return [view for view in self.rows if self.matches(view)]

    def matches(self, view: TimerView) -> bool:
        return int.from_bytes(view.uuid, "big") % self.every == 0

    async def __call__(self, request: ListRequest) -> tuple[list[TimerView], str | None]:
        assert request.reads_max == 1
        self.reads += 1
        low = 0 if request.execute_after is None else bisect_left(self.instants, request.execute_after)
        high = len(self.rows) if request.execute_before is None else bisect_left(self.instants, request.execute_before)
        position = low if request.cursor is None else max(low, int(request.cursor.split("_")[1]))
        found: list[TimerView] = []
        for at in range(position, min(high, position + self.scan)):
            found += [self.rows[at]] if self.matches(self.rows[at]) else []
            position = at + 1
            if len(found) == request.limit:
                break
        return found, f"{self.instants[position - 1]}_{position}" if position < high else None


def reached(cursor: str) -> int:
    """The instant in a cursor of Listed."""
    return int(cursor.split("_")[0])


def budget(steps: int = 10**9) -> TimeBudget:
    """A time budget that is spent after so many steps."""
    ticks = count()
    return TimeBudget(steps, lambda: next(ticks))


async def all_pages(listed: Listed, request: ListRequest, steps: int = 10**9) -> list[TimerView]:
    views: list[TimerView] = []
    cursor: str | None = None
    while True:
        listed.reads = 0
        page = await latest(listed, replace(request, cursor=cursor), NOW, budget(steps), reached)
        assert len(page.rows) <= request.limit
        assert listed.reads <= READS_MAX
        views += page.rows
        if page.reached is not None:
            assert len(page.rows) < request.limit
            assert isinstance(page.reached, int)
            assert page.reached <= min((view.timer.execute_at for view in page.rows), default=page.reached)
        cursor = page.cursor
        if cursor is None:
            return views


@each("seed", range(30))
@each("limit", [1, 7, 50])
async def test_pages_contain_every_timer_once_latest_first(seed: int, limit: int) -> None:
    chance = random.Random(seed)
    spread = chance.choice([5, 1_000, 10**7, 10**10, 10**15])
    listed = Listed([NOW + chance.randint(-spread, spread) for _ in range(chance.choice([0, 1, 49, 300]))])
    views = await all_pages(listed, ListRequest("default", limit=limit))
    instants = [view.timer.execute_at for view in views]
    assert instants == sorted(instants, reverse=True)
    assert sorted(view.uuid for view in views) == sorted(view.uuid for view in listed.rows)


async def test_timers_of_one_instant_span_several_pages() -> None:
    listed = Listed([NOW - 5] * 130 + [NOW - 4, NOW - 6])
    views = await all_pages(listed, ListRequest("default", limit=50))
    assert [view.timer.execute_at - NOW for view in views] == [-4, *[-5] * 130, -6]
    assert len({view.uuid for view in views}) == 132


async def test_list_respects_its_time_range() -> None:
    listed = Listed(list(range(NOW - 100, NOW + 100)))
    request = ListRequest("default", limit=10, execute_after=NOW - 20, execute_before=NOW + 20)
    assert [view.timer.execute_at - NOW for view in await all_pages(listed, request)] == list(range(19, -21, -1))


async def test_page_of_a_long_list_takes_few_reads() -> None:
    listed = Listed([NOW - n * 1_000 for n in range(20_000)])
    page = await latest(listed, ListRequest("default", limit=50), NOW, budget(), reached)
    assert (len(page.rows), page.cursor is not None, page.reached) == (50, True, None)
    assert listed.reads < 120


async def test_invalid_cursor_is_refused() -> None:
    with pytest.raises(InvalidInput):
        await latest(Listed([]), ListRequest("default", cursor="nonsense!"), NOW, budget())


@each("seed", range(30))
@each("steps", [1, 4, 10**9])
async def test_interrupted_search_finds_every_match_once(seed: int, steps: int) -> None:
    chance = random.Random(seed)
    spread = chance.choice([5, 1_000, 10**7, 10**10, 10**15])
    instants = [NOW + chance.randint(-spread, spread) for _ in range(2_000)]
    listed = Listed(instants, every=chance.choice([7, 300, 10_000]), scan=chance.choice([10, 130, 1_999, 5_000]))
    views = await all_pages(listed, ListRequest("default", limit=chance.choice([1, 50])), steps)
    instants = [view.timer.execute_at for view in views]
    assert instants == sorted(instants, reverse=True)
    assert sorted(view.uuid for view in views) == sorted(view.uuid for view in listed.wanted)


async def test_search_latest_first_takes_few_extra_reads() -> None:
    """Earliest first, the search would take a hundred reads."""
    listed = Listed(list(range(NOW, NOW + 10**11, 10**6)), every=50_000, scan=1_000)
    found = await latest(listed, ListRequest("default", limit=50), NOW, budget(), reached)
    assert len(found.rows) == 2
    assert listed.reads < 240


async def test_search_earliest_first_stops_in_time_and_reports_its_position() -> None:
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
