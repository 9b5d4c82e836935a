"""`/schedules`: the list of schedules, with its filters."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from tocsin.model.schedule import ScheduleStatus
from tocsin.timers.schedules import ScheduleListRequest, ScheduleView, has_failed
from tocsin.web.http.access import listed_in
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.counts import Numbers, of_schedules
from tocsin.web.pages.filters import ListFilters
from tocsin.web.pages.lists import Listing, NamespacedList, TimeBudget, in_order, key_of
from tocsin.web.pages.schedules.outcomes import STRIP_BYTES_MAX, STRIP_CELLS, Strip, strip
from tocsin.web.pages.schedules.presentation import version

#: Strips in one response to an open page, which asks for the rows in view. Each is one read of the store.
_STRIPS_MAX = 100
#: Schedules that are sorted by their next instants at most. With more, the list is by id, and states that.
SORTED_MAX = 2_000


class ScheduleRow(NamedTuple):
    """A row of the list. Without its strip it is incomplete: an open page asks for the rows in view once more."""

    view: ScheduleView
    strip: Strip | None = None

    @property
    def version(self) -> str:
        """The version of what it shows."""
        return "-" if self.strip is None else version(self.view)


@dataclass(frozen=True, slots=True)
class ScheduleFilters(ListFilters):
    """The scope is a namespace. Live schedules are listed in the order of ids, or of their next instants, by status, and by a
    prefix of the id if there is one."""

    path = "/schedules"
    scope_name = "namespace"
    range_name = "due"
    #: Each tab lists the schedules with these statuses; none: all live ones.
    views: ClassVar = {
        "all": ("All", ()),
        "active": ("Active", (ScheduleStatus.ACTIVE,)),
        "paused": ("Paused", (ScheduleStatus.PAUSED,)),
        "failing": ("Failing", ()),
    }
    ranges: ClassVar = {"": ("Any time", None, None)}
    words = frozenset({"ns"})
    orders = frozenset({"asc", "next"})

    def tab(self, view: str) -> str:
        return self.link(view=view)

    @classmethod
    def _order(cls, view: str) -> str:
        return "asc"


class ScheduleList(NamespacedList[ScheduleFilters, ScheduleRow]):
    """The list of a namespace's schedules."""

    kind = "schedules"
    title = "Schedules"
    rows_path = "/ui/schedules/rows"
    live_path = "/ui/live/schedules"
    filters_type = ScheduleFilters

    @staticmethod
    def version(row: ScheduleRow) -> str:
        return version(row.view)

    def belongs(self, row: ScheduleRow, view: str) -> bool:
        if view == "failing":
            return has_failed(row.view.last_occurrence)
        _, statuses = self.filters_type.views.get(view, ("", ()))
        return not statuses or row.view.status in statuses

    async def get_named(self, namespace: str, ids: Sequence[str]) -> Mapping[str, ScheduleRow]:
        found = await self._site.schedules.get_many(namespace, ids)
        return {name: ScheduleRow(view) for name, view in found.items() if view.status is not ScheduleStatus.ENDED}

    async def completed(self, changed: list[ScheduleRow]) -> Sequence[ScheduleRow]:
        """Each with its strip."""
        return [*await asyncio.gather(*map(self._with_strip, changed[:_STRIPS_MAX])), *changed[_STRIPS_MAX:]]

    async def _with_strip(self, row: ScheduleRow) -> ScheduleRow:
        runs = await self._site.schedules.latest_outcomes(row.view, STRIP_CELLS, STRIP_BYTES_MAX)
        return ScheduleRow(row.view, strip(row.view, runs))

    async def count(self, context: RequestContext, scope: str) -> Numbers:
        return await of_schedules(self._site.schedules, listed_in(context.principal.key, scope))

    async def choices(self, context: RequestContext, filters: ScheduleFilters) -> dict[str, Any]:
        return {**await super().choices(context, filters), "sorted_max": SORTED_MAX}

    async def find(self, context: RequestContext, filters: ScheduleFilters) -> Listing[ScheduleRow]:
        """Ids that begin with the search text follow it in the order of ids."""
        request = self._request(context, filters)
        exact = await self.named(context, filters) if filters.search and not filters.cursor else []
        sorted_page = await self._site.schedules.soonest(request, SORTED_MAX) if filters.order == "next" else None
        if sorted_page is not None:
            found = Listing(*sorted_page)
        else:
            budget = TimeBudget(self._limits.list_search_timeout_s)
            if not (filters.cursor or filters.several):
                request = replace(request, cursor=filters.search or None)
            found = await in_order(self._site.schedules.list, request, budget, str)
        named = {key_of(row.view.timer) for row in exact}
        rows = [ScheduleRow(view) for view in found.rows if key_of(view.timer) not in named]
        unsorted = filters.order == "next" and sorted_page is None
        return Listing(rows, found.cursor, found.reached, exact, unsorted=unsorted)

    def _request(self, context: RequestContext, filters: ScheduleFilters) -> ScheduleListRequest:
        return ScheduleListRequest(
            listed_in(context.principal.key, filters.scope),
            frozenset(filters.views[filters.view][1]),
            id_prefix=filters.search,
            cursor=filters.cursor or None,
            limit=filters.rows,
            failing=filters.view == "failing",
            explained=True,
        )

    async def find_ids(self, context: RequestContext, filters: ScheduleFilters) -> tuple[Sequence[str], bool]:
        """In the order of next instants only if the page has all: in a part of it, what has moved would seem new."""
        if filters.order == "next":
            request = replace(self._request(context, filters), explained=False)
            page = await self._site.schedules.soonest(request, filters.rows)
            views, cursor = page or ((), None)
            return [key_of(view.timer) for view in views if cursor is None], False
        found = await self.find(context, filters)
        return [key_of(row.view.timer) for row in found.rows], found.cursor is not None
