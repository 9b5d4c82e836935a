"""`/schedules`: the list of schedules, with its filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from tocsin.model.schedule import ScheduleStatus
from tocsin.timers.schedules import ScheduleListRequest, ScheduleView
from tocsin.web.http.access import listed_in
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.filters import ListFilters
from tocsin.web.pages.lists import Listing, NamespacedList, TimeBudget, in_order, key_of
from tocsin.web.pages.schedules.presentation import version


@dataclass(frozen=True, slots=True)
class ScheduleFilters(ListFilters):
    """The scope is a namespace. Live schedules are listed in the order of ids, by status, and by a prefix of the id if there
    is one."""

    path = "/schedules"
    scope_name = "namespace"
    range_name = "due"
    #: Each tab lists the schedules with these statuses; none: all live ones.
    views: ClassVar = {
        "all": ("All", ()),
        "active": ("Active", (ScheduleStatus.ACTIVE,)),
        "paused": ("Paused", (ScheduleStatus.PAUSED,)),
    }
    ranges: ClassVar = {"": ("Any time", None, None)}

    @classmethod
    def _order(cls, view: str) -> str:
        return "asc"


class ScheduleList(NamespacedList[ScheduleFilters, ScheduleView]):
    """The list of a namespace's schedules."""

    kind = "schedules"
    title = "Schedules"
    rows_path = "/ui/schedules/rows"
    live_path = "/ui/live/schedules"
    filters_type = ScheduleFilters

    def version(self, row: ScheduleView) -> str:
        return version(row, paused=self._service.namespaces.is_paused(row.timer.namespace))

    async def get_named(self, namespace: str, ids: Sequence[str]) -> Mapping[str, ScheduleView]:
        found = await self._site.schedules.get_many(namespace, ids)
        return {name: view for name, view in found.items() if view.status is not ScheduleStatus.ENDED}

    async def find(self, context: RequestContext, filters: ScheduleFilters) -> Listing[ScheduleView]:
        """Ids that begin with the search text follow it in the order of ids."""
        request = ScheduleListRequest(
            listed_in(context.principal.key, filters.scope),
            frozenset(filters.views[filters.view][1]),
            id_prefix=filters.search,
            cursor=filters.cursor or ("" if filters.several else filters.search) or None,
            limit=filters.rows,
            explained=True,
        )
        exact = await self.named(context, filters) if filters.search and not filters.cursor else []
        budget = TimeBudget(self._limits.list_search_timeout_s)
        found = await in_order(self._site.schedules.list, request, budget, str)
        return replace(found, exact=exact)

    async def find_ids(self, context: RequestContext, filters: ScheduleFilters) -> tuple[Sequence[str], bool]:
        found = await self.find(context, filters)
        return [key_of(view.timer) for view in found.rows], found.cursor is not None
