"""`/calls`: the list of a tenant's service calls with its filters, and the choice of a tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import ServiceCallNotFound
from tocsin.model.ids import is_uuid7
from tocsin.service_calls.api.validation import PageRequest
from tocsin.service_calls.messages import CallStatus
from tocsin.service_calls.ports import CallRecord
from tocsin.web.pages.calls.presentation import STAR, list_path, version
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.filters import ListFilters
from tocsin.web.pages.lists import Listing, ListPart, TimeBudget
from tocsin.web.pages.site import CallPart, Site, route
from tocsin.web.pages.timers.listing import TimerFilters


@dataclass(frozen=True, slots=True)
class CallFilters(ListFilters):
    """The scope is a tenant, the time range one of submission times that ends now. The latest call is listed first."""

    path = "/calls"
    scope_name = "tenant"
    range_name = "submitted"
    #: Each tab lists the calls with this status; None: all.
    views: ClassVar = {
        "all": ("All", None),
        "scheduled": ("Scheduled", CallStatus.SCHEDULED),
        "running": ("Running", CallStatus.RUNNING),
        "retrying": ("Retrying", CallStatus.RETRYING),
        "succeeded": ("Succeeded", CallStatus.SUCCEEDED),
        "failed": ("Failed", CallStatus.FAILED),
    }
    ranges: ClassVar = {
        name: (title, after, None)
        for name, (title, after, _) in TimerFilters.ranges.items()
        if not name.startswith("next-")
    }

    @classmethod
    def _search(cls, query: Fields) -> tuple[str, dict[str, list[str]]]:
        text, words = super(CallFilters, cls)._search(query)
        return text.strip(), words

    @property
    def names_id(self) -> bool:
        """Whether the search text is a call's id; any other text is a part of a name."""
        return is_uuid7(self.search.lower())

    def request(self, now_us: int) -> PageRequest:
        """The equivalent API request, unchecked."""
        status = self.views[self.view][1]
        after, before = self.bounds(now_us)
        return PageRequest(
            statuses=() if status is None else (status,),
            tags=(*self.tags, *((STAR,) if self.starred else ())),
            name=self.search or None,
            submitted_from=after or None,
            submitted_to=before or None,
            limit=str(self.rows),
            cursor=self.cursor or None,
        )


NOTICES = {"deleted": "Call deleted. It is not sent, and no record of it is kept."}


class CallList(ListPart[CallFilters, CallRecord], CallPart):
    """The list of a tenant's calls."""

    kind = "calls"
    title = "Calls"
    rows_path = "/ui/calls/rows"
    live_path = "/ui/live/calls"
    filters_type = CallFilters
    version = staticmethod(version)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.change_counter = site.call_statistics.change_counter

    async def filters(self, context: RequestContext) -> CallFilters:
        tenant = context.query.get("tenant").lower()
        self.permit(context, tenant)
        return CallFilters.read(context.query, self._limits, tenant)

    def permit(self, context: RequestContext, scope: str) -> bool:
        context.permit_tenant(Role.READ, scope)
        return context.principal.may_call(Role.WRITE, scope)

    async def choices(self, context: RequestContext, filters: CallFilters) -> dict[str, Any]:
        known = self._site.tenants.known(context)
        return {
            "tenants": known if filters.scope in known else [filters.scope, *known],
            "notice_text": NOTICES.get(context.query.get("notice"), ""),
        }

    async def get_many(self, context: RequestContext, scope: str, ids: Sequence[str]) -> Mapping[str, CallRecord]:
        return await context.calls.get_many(scope, ids)

    async def find(self, context: RequestContext, filters: CallFilters) -> Listing[CallRecord]:
        if filters.names_id:
            # An id names one call, on any tab: a lookup instead of a search.
            try:
                return Listing((), exact=[(await context.calls.get(filters.scope, filters.search)).call])
            except ServiceCallNotFound:
                return Listing(())
        request, budget = filters.request(context.now_us), TimeBudget(self._limits.list_search_timeout_s)
        found: list[CallRecord] = []
        while True:
            page = await context.calls.list(filters.scope, request._replace(limit=str(filters.rows - len(found))))
            found += page.calls
            if page.cursor is None or len(found) >= filters.rows:
                return Listing(found, page.cursor)
            if budget.spent:
                return Listing(found, page.cursor, page.reached.submitted_at if page.reached else None)
            request = request._replace(cursor=page.cursor)

    async def find_ids(self, context: RequestContext, filters: CallFilters) -> tuple[Sequence[str], bool]:
        found = await self.find(context, filters)
        return [call.service_call_id for call in found.all], found.cursor is not None

    async def list(self, context: RequestContext) -> Response:
        """The page. Without a tenant it redirects to the most recent one, or offers a choice."""
        tenant = context.query.get("tenant").lower()
        if not tenant:
            known = self._site.tenants.known(context)
            return RedirectResponse(list_path(known[0]), 303) if known else await self.tenants(context)
        response = await super().list(context)
        if response.status_code == 200:
            self._site.tenants.remember(context, tenant, response)
        return response

    @route("GET", "/calls/tenants")
    async def tenants(self, context: RequestContext) -> Response:
        """The choice of a tenant."""
        known, may_write = self._site.tenants.known(context), context.principal.may_call_somewhere(Role.WRITE)
        fresh = context.calls.new_id() if may_write and not known and not context.principal.is_limited else ""
        return self._pages.page(
            "calls/tenants.html", context, title="Choose a tenant", tenants=known, may_write=may_write, fresh=fresh
        )

    @route("POST", "/calls/tenants")
    async def new_tenant(self, context: RequestContext) -> Response:
        """Creates a tenant, which takes no more than an unused id."""
        tenant = context.calls.new_id()
        context.permit_tenant(Role.WRITE, tenant)
        response = RedirectResponse(list_path(tenant), 303)
        self._site.tenants.remember(context, tenant, response)
        return response
