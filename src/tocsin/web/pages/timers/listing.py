"""`/timers`: the list of timers, with its filters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from msgspec import UNSET

from tocsin.model.instants import format_instant, parse_instant
from tocsin.model.timer import Status
from tocsin.timers.listing import cursor_instant
from tocsin.timers.service import ListRequest, TimerView
from tocsin.web.http import wire
from tocsin.web.http.access import listed_in
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.counts import Numbers, of_timers
from tocsin.web.pages.filters import CUSTOM_RANGE, ListFilters
from tocsin.web.pages.lists import Listing, NamespacedList, TimeBudget, in_order
from tocsin.web.pages.presentation import is_waiting, row_key, shown_version

#: Lists timers, page by page: a page, and the cursor of the next one.
ListFunction = Callable[[ListRequest], Awaitable[tuple[list[TimerView], str | None]]]

_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US
_DAY_US = 24 * _HOUR_US


@dataclass(frozen=True, slots=True)
class TimerFilters(ListFilters):
    """The scope is a namespace, the time range one of due times. Pending timers are listed earliest first, others latest
    first. The waiting ones are those pending ones that are due and have no attempt in flight."""

    path = "/timers"
    scope_name = "namespace"
    range_name = "due"
    #: Each tab lists the timers with these statuses; none: all.
    views: ClassVar = {
        "pending": ("Pending", (Status.PENDING,)),
        "waiting": ("Waiting", (Status.PENDING,)),
        "completed": ("Completed", (Status.COMPLETED,)),
        "failed": ("Failed", (Status.FAILED,)),
        "expired": ("Expired", (Status.EXPIRED,)),
        "canceled": ("Canceled", (Status.CANCELED,)),
        "all": ("All", ()),
    }
    ranges: ClassVar = {
        "": ("Any time", None, None),
        "next-5m": ("Next 5 minutes", 0, 5 * _MINUTE_US),
        "next-1h": ("Next hour", 0, _HOUR_US),
        "next-24h": ("Next 24 hours", 0, _DAY_US),
        "last-15m": ("Last 15 minutes", -15 * _MINUTE_US, 0),
        "last-1h": ("Last hour", -_HOUR_US, 0),
        "last-24h": ("Last 24 hours", -_DAY_US, 0),
        "last-7d": ("Last 7 days", -7 * _DAY_US, 0),
    }
    words = frozenset({"tag", "to", "error", "ns"})
    orders = frozenset({"asc", "desc"})
    earliest_first = frozenset({"pending", "waiting"})

    def bounds(self, now_us: int) -> tuple[str, str]:
        """Also those of the tab: what waits is due."""
        after, before = super(TimerFilters, self).bounds(now_us)
        if self.view != "waiting":
            return after, before
        try:
            due = bool(before) and parse_instant(before) <= now_us
        except ValueError:
            # The API refuses it.
            due = True
        return after, before if due else format_instant(now_us)

    def api_request(self, now_us: int) -> wire.ListTimers:
        """The equivalent API request."""
        after, before = self.bounds(now_us)
        return wire.ListTimers(
            self.scope,
            status=list(self.views[self.view][1]) or UNSET,
            tags=list(self.tags) or UNSET,
            id_prefix=self.search or UNSET,
            execute_after=after or UNSET,
            execute_before=before or UNSET,
            destination=self.destination or UNSET,
            error=self.error or UNSET,
            limit=self.rows,
            cursor=self.cursor or UNSET,
        )

    def fixed(self, now_us: int) -> TimerFilters:
        """The filters for a job: pending timers only, from the start of the list, with a relative time range resolved to
        instants."""
        after, before = self.bounds(now_us)
        span = CUSTOM_RANGE if after or before else ""
        return replace(self, view="pending", order="asc", range=span, after=after, before=before, cursor="")


class TimerList(NamespacedList[TimerFilters, TimerView]):
    """The list of a namespace's timers."""

    kind = "timers"
    title = "Timers"
    rows_path = "/ui/rows"
    live_path = "/ui/live"
    filters_type = TimerFilters

    def subject(self, key: str) -> str:
        head, _, timer_id = key.partition("/")
        return f"{head.partition('@')[0]}/{timer_id}"

    def version(self, row: TimerView) -> str:
        return shown_version(row, paused=self._service.namespaces.is_paused(row.timer.namespace))

    def belongs(self, row: TimerView, view: str) -> bool:
        if view == "waiting":
            return is_waiting(row)
        _, statuses = self.filters_type.views.get(view, ("", ()))
        return not statuses or row.timer.status in statuses

    async def get_named(self, namespace: str, ids: Sequence[str]) -> Mapping[str, TimerView]:
        views = (await self._service.get_many(namespace, ids)).values()
        return {view.timer.id: view for view in await self._service.explained([*views])}

    async def count(self, context: RequestContext, scope: str) -> Numbers:
        return await of_timers(self._service, listed_in(context.principal.key, scope))

    async def find(self, context: RequestContext, filters: TimerFilters) -> Listing[TimerView]:
        request = self.request(context, filters)
        exact = await self.named(context, filters) if filters.search and not filters.cursor else []
        found = await self._search(filters, request)
        if filters.view != "waiting":
            found = replace(found, rows=await self._service.explained(found.rows))
        if not exact:
            return found
        named = set(map(row_key, exact))
        return replace(found, rows=[view for view in found.rows if row_key(view) not in named], exact=exact)

    async def find_ids(self, context: RequestContext, filters: TimerFilters) -> tuple[Sequence[str], bool]:
        found = await self._search(filters, self.request(context, filters))
        return [row_key(view) for view in found.rows], found.cursor is not None

    def request(self, context: RequestContext, filters: TimerFilters) -> ListRequest:
        """The request to the service. Raises InvalidInput."""
        return self._parser.list_request(filters.api_request(context.now_us), context.principal.key)

    async def _search(self, filters: TimerFilters, request: ListRequest) -> Listing[TimerView]:
        ordered = replace(request, descending=filters.order == "desc")
        budget = TimeBudget(self._limits.list_search_timeout_s)
        return await in_order(self.lists_of(filters), ordered, budget, cursor_instant)

    def lists_of(self, filters: TimerFilters) -> ListFunction:
        """What lists the timers of a tab, page by page."""
        return self._waiting if filters.view == "waiting" else self._service.list

    async def _waiting(self, request: ListRequest) -> tuple[list[TimerView], str | None]:
        """A page of due timers, without those of which an attempt is in flight: only the owners of their shards know that."""
        views, cursor = await self._service.list(request)
        return [view for view in await self._service.explained(views) if is_waiting(view)], cursor
