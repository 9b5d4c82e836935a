"""`/timers`: the list of timers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tocsin.model.errors import TimerNotFound
from tocsin.timers.listing import cursor_instant
from tocsin.timers.service import ListRequest, TimerView
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.lists import Listing, NamespaceList, TimeBudget, in_order
from tocsin.web.pages.presentation import version
from tocsin.web.pages.timers.filters import TimerFilters
from tocsin.web.pages.timers.search import latest

#: Digits of milliseconds that are read; an instant has no more.
_MS_DIGITS_MAX = 15


class TimerList(NamespaceList[TimerFilters, TimerView]):
    """The list of a namespace's timers."""

    kind = "timers"
    title = "Timers"
    rows_path = "/ui/rows"
    live_path = "/ui/live"
    filters_type = TimerFilters
    version = staticmethod(version)

    async def get_many(self, context: RequestContext, scope: str, ids: Sequence[str]) -> Mapping[str, TimerView]:
        return await self._service.get_many(scope, ids)

    async def find(self, context: RequestContext, filters: TimerFilters) -> Listing[TimerView]:
        request = self.request(filters, context.now_us)
        exact = await self._exact(filters) if filters.search and not filters.cursor else None
        found = await self._search(filters, request, context.now_us)
        if exact is None:
            return found
        return replace(found, rows=[view for view in found.rows if view.timer.id != filters.search], exact=exact)

    async def find_ids(self, context: RequestContext, filters: TimerFilters) -> tuple[Sequence[str], bool]:
        """`until` in the query (milliseconds) is the due time up to which the page shows an earliest-first list."""
        request = self.request(filters, context.now_us)
        until = context.query.get("until")
        if filters.order == "asc" and until.isdecimal():
            bounds = [bound for bound in (request.execute_before, int(until[:_MS_DIGITS_MAX]) * 1_000) if bound]
            request = replace(request, execute_before=min(bounds))
        found = await self._search(filters, request, context.now_us)
        return [view.timer.id for view in found.rows], found.cursor is not None

    def request(self, filters: TimerFilters, now_us: int) -> ListRequest:
        """The request to the service. Raises InvalidInput."""
        return self._parser.list_request(filters.api_request(now_us))

    async def _search(self, filters: TimerFilters, request: ListRequest, now_us: int) -> Listing[TimerView]:
        budget = TimeBudget(self._limits.list_search_timeout_s)
        if filters.order == "desc":
            return await latest(self._service.list, request, now_us, budget)
        return await in_order(self._service.list, request, budget, cursor_instant)

    async def _exact(self, filters: TimerFilters) -> TimerView | None:
        """The timer whose id equals the search text, on any tab: a lookup instead of a search."""
        try:
            return await self._service.get(filters.scope, filters.search)
        except TimerNotFound:
            return None
