"""`/schedules`: the list of schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from tocsin.model.access import Role
from tocsin.model.errors import ScheduleNotFound
from tocsin.model.schedule import ScheduleStatus
from tocsin.timers.schedules import ScheduleListRequest, ScheduleView
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.lists import Listing, ListPart
from tocsin.web.pages.schedules.filters import ScheduleFilters
from tocsin.web.pages.schedules.presentation import version
from tocsin.web.pages.site import Site, preferred


class ScheduleList(ListPart[ScheduleFilters, ScheduleView]):
    """The list of a namespace's schedules."""

    kind = "schedules"
    title = "Schedules"
    rows_path = "/ui/schedules/rows"
    live_path = "/ui/schedules/live"
    filters_type = ScheduleFilters
    version = staticmethod(version)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.change_counter = site.statistics.change_counter

    async def filters(self, context: RequestContext) -> ScheduleFilters:
        namespace = context.query.exact("namespace") or preferred(await self.visible_namespaces(context))
        self.permit(context, namespace)
        return ScheduleFilters.read(context.query, self._limits, namespace)

    def permit(self, context: RequestContext, scope: str) -> bool:
        context.permit(Role.READ, scope)
        return context.principal.may(Role.WRITE, scope)

    async def choices(self, context: RequestContext, filters: ScheduleFilters) -> dict[str, Any]:
        namespaces = await self.visible_namespaces(context)
        chosen = next((known for known in namespaces if known.name == filters.scope), None)
        return {"namespaces": namespaces, "chosen": chosen}

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
