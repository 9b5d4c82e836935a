"""`/schedules`: the list of schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from tocsin.model.errors import ScheduleNotFound
from tocsin.model.schedule import ScheduleStatus
from tocsin.timers.schedules import ScheduleListRequest, ScheduleView
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.lists import Listing, NamespaceList
from tocsin.web.pages.schedules.filters import ScheduleFilters
from tocsin.web.pages.schedules.presentation import version


class ScheduleList(NamespaceList[ScheduleFilters, ScheduleView]):
    """The list of a namespace's schedules."""

    kind = "schedules"
    title = "Schedules"
    rows_path = "/ui/schedules/rows"
    live_path = "/ui/live/schedules"
    filters_type = ScheduleFilters
    version = staticmethod(version)

    async def get_many(self, context: RequestContext, scope: str, ids: Sequence[str]) -> Mapping[str, ScheduleView]:
        return await self._site.schedules.get_many(scope, ids)

    async def find(self, context: RequestContext, filters: ScheduleFilters) -> Listing[ScheduleView]:
        """Ids that begin with the search text follow it in the order of ids."""
        views, cursor = await self._site.schedules.list(
            ScheduleListRequest(filters.scope, cursor=filters.cursor or filters.search or None, limit=filters.rows)
        )
        if not filters.search:
            return Listing(views, cursor)
        found = list(takewhile(lambda view: view.timer.id.startswith(filters.search), views))
        exact = None if filters.cursor else await self._exact(filters)
        return Listing(found, cursor if len(found) == len(views) else None, exact=exact)

    async def find_ids(self, context: RequestContext, filters: ScheduleFilters) -> tuple[Sequence[str], bool]:
        found = await self.find(context, filters)
        return [view.timer.id for view in found.rows], found.cursor is not None

    async def _exact(self, filters: ScheduleFilters) -> ScheduleView | None:
        """The live schedule whose id equals the search text."""
        try:
            view = await self._site.schedules.get(filters.scope, filters.search)
        except ScheduleNotFound:
            return None
        return view if view.status is not ScheduleStatus.ENDED else None
