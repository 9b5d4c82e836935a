"""Lists with the latest first have every timer once, in order, page by page."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tocsin.model.errors import InvalidInput
from tocsin.model.timer import Timer
from tocsin.service import ListRequest, TimerView
from tocsin.ui.latest import READS_MAX, latest

NOW = 1_900_000_000_000_000


class Listed:
    """What a service lists, the earliest first; its cursors are numbers."""

    def __init__(self, instants: list[int]) -> None:
        views = [
            TimerView(Timer("default", f"t{n}", at, "http://x/", NOW, NOW), n.to_bytes(16, "big"), 0, at)
            for n, at in enumerate(instants)
        ]
        self.views = sorted(views, key=lambda view: (view.timer.execute_at, view.uuid))
        self.reads = 0

    async def __call__(self, request: ListRequest) -> tuple[list[TimerView], str | None]:
        self.reads += 1
        low = request.execute_after if request.execute_after is not None else -(2**63)
        high = request.execute_before if request.execute_before is not None else 2**63
        start = int(request.cursor or 0)
        found = [view for view in self.views if low <= view.timer.execute_at < high]
        end = start + request.limit
        return found[start:end], str(end) if end < len(found) else None


async def all_pages(listed: Listed, request: ListRequest) -> list[TimerView]:
    views: list[TimerView] = []
    cursor: str | None = None
    while True:
        listed.reads = 0
        page, cursor = await latest(listed, replace(request, cursor=cursor), NOW)
        assert len(page) <= request.limit
        assert listed.reads <= READS_MAX
        views += page
        if cursor is None:
            return views


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("limit", [1, 7, 50])
async def test_every_timer_once_and_latest_first(seed: int, limit: int) -> None:
    chance = random.Random(seed)
    spread = chance.choice([5, 1_000, 10**7, 10**10, 10**15])
    listed = Listed([NOW + chance.randint(-spread, spread) for _ in range(chance.choice([0, 1, 49, 300]))])
    views = await all_pages(listed, ListRequest("default", limit=limit))
    instants = [view.timer.execute_at for view in views]
    assert instants == sorted(instants, reverse=True)
    assert sorted(view.uuid for view in views) == sorted(view.uuid for view in listed.views)


async def test_a_crowd_at_one_instant_goes_over_several_pages() -> None:
    listed = Listed([NOW - 5] * 130 + [NOW - 4, NOW - 6])
    views = await all_pages(listed, ListRequest("default", limit=50))
    assert [view.timer.execute_at - NOW for view in views] == [-4, *[-5] * 130, -6]
    assert len({view.uuid for view in views}) == 132


async def test_bounds_hold() -> None:
    listed = Listed(list(range(NOW - 100, NOW + 100)))
    request = ListRequest("default", limit=10, execute_after=NOW - 20, execute_before=NOW + 20)
    assert [view.timer.execute_at - NOW for view in await all_pages(listed, request)] == list(range(19, -21, -1))


async def test_a_page_of_many_costs_few_reads() -> None:
    listed = Listed([NOW - n * 1_000 for n in range(20_000)])
    page, cursor = await latest(listed, ListRequest("default", limit=50), NOW)
    assert (len(page), cursor is not None) == (50, True)
    assert listed.reads < 120


async def test_a_foreign_cursor_is_refused() -> None:
    with pytest.raises(InvalidInput):
        await latest(Listed([]), ListRequest("default", cursor="nonsense!"), NOW)
