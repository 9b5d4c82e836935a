"""`/calls`: the list of a tenant's service calls, its filters and its live updates."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, ServiceCallNotFound
from tocsin.service_calls.api.ports import CallRecord
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.web.http.errors import Forbidden
from tocsin.web.pages.calls.agent import Gate
from tocsin.web.pages.calls.filters import PAST, VIEWS, CallFilters
from tocsin.web.pages.calls.presentation import list_path
from tocsin.web.pages.calls.statistics import CallStatistics
from tocsin.web.pages.calls.tenants import Tenants
from tocsin.web.pages.context import Handler, RequestContext
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.live import Streams
from tocsin.web.pages.pages import Pages, compressed, render_rows
from tocsin.web.pages.timers.filters import CUSTOM_RANGE
from tocsin.web.pages.timers.search import TimeBudget

_STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_names_decoder = msgspec.json.Decoder(list[tuple[str, str]])

NOTICES = {"deleted": "Call deleted. It is not sent, and no record of it is kept."}


@dataclass(frozen=True, slots=True)
class CallListing:
    """A page of the list. `exact` is the call whose id was searched for; then there are no others. `reached_us` is the
    instant that an unfinished search has reached: all calls submitted later were searched."""

    calls: list[CallRecord]
    cursor: str | None
    exact: CallRecord | None = None
    reached_us: int | None = None

    @property
    def names(self) -> list[str]:
        """Names of all calls on the page."""
        return [call.name for call in (*self.calls, *([] if self.exact is None else [self.exact]))]

    @property
    def empty(self) -> bool:
        """Whether the list is empty."""
        return not self.calls and self.exact is None and self.reached_us is None


class CallListHandlers:
    """The list and its parts."""

    def __init__(
        self,
        gate: Gate,
        pages: Pages,
        tenants: Tenants,
        statistics: CallStatistics,
        streams: Streams,
        limits: UiLimits,
    ) -> None:
        self._gate = gate
        self._pages = pages
        self._tenants = tenants
        self._statistics = statistics
        self._streams = streams
        self._limits = limits

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("GET", "/calls", self._gate(self.list)),
            ("GET", "/calls/tenants", self._gate(self.tenants)),
            ("POST", "/calls/tenants", self._gate(self.new_tenant)),
            ("GET", "/ui/more/calls", self._gate(self.more)),
            ("GET", "/ui/fresh/calls", self._gate(self.fresh)),
            ("POST", "/ui/calls/rows", self._gate(self.rows)),
            ("GET", "/ui/live/calls", self._gate(self.live, elsewhere=self.live_elsewhere)),
        ]

    async def list(self, context: RequestContext, calls: ServiceCalls) -> Response:
        """The page, or for a script the results only. Without a tenant it redirects to the most recent one."""
        tenant = context.query.get("tenant").lower()
        known = self._tenants.known(context)
        if not tenant:
            return RedirectResponse(list_path(known[0]), 303) if known else await self.tenants(context, calls)
        filters = self._filters(context)
        problem: InvalidInput | None = None
        listing = CallListing([], None)
        change_counter = self._statistics.change_counter(tenant)
        try:
            listing = await self._listing(calls, filters, context.now_us)
        except InvalidInput as error:
            problem = error
        values: dict[str, Any] = {
            "title": "Calls",
            "filters": filters,
            "tenants": known if tenant in known else [tenant, *known],
            "listing": listing,
            "problem": problem,
            "tabs": VIEWS,
            "ranges": PAST,
            "custom_range": CUSTOM_RANGE,
            "limits": self._limits,
            "change_counter": change_counter,
            "may_write": context.principal.may_call(Role.WRITE, tenant),
            "notice_text": NOTICES.get(context.query.get("notice"), ""),
            "live": f"/ui/live/calls?{urlencode({'tenant': tenant})}",
        }
        template = "calls/results.html" if context.fragment else "calls/list.html"
        # A script shows errors as a part of the page, and ignores responses with another status.
        status = 400 if problem is not None and not context.fragment else 200
        response = await render_rows(filters.rows, lambda: self._pages.page(template, context, status, **values))
        response.headers["vary"] = "hx-request, accept-encoding"
        if context.fragment:
            response.headers["hx-push-url"] = filters.link(cursor=filters.cursor)
        if problem is None:
            self._tenants.remember(context, tenant, response)
        return response

    async def more(self, context: RequestContext, calls: ServiceCalls) -> Response:
        """The next rows of an open list, and the link to the rows after them."""
        filters = self._filters(context)
        values = {
            "filters": filters,
            "listing": await self._listing(calls, filters, context.now_us),
            "may_write": context.principal.may_call(Role.WRITE, filters.tenant),
        }
        return await render_rows(
            filters.rows, lambda: compressed(context, self._pages.text("calls/more.html", context, values))
        )

    async def fresh(self, context: RequestContext, calls: ServiceCalls) -> Response:
        """The ids with which the list would now start, or continue after its cursor, in order: an open page compares them
        with its rows to find new ones. `more` in the response indicates whether more ids follow."""
        filters = self._filters(context)
        listing = await self._listing(calls, filters, context.now_us)
        found = listing.calls if listing.exact is None else [listing.exact]
        return JSONResponse({"ids": [call.service_call_id for call in found], "more": listing.cursor is not None})

    def _filters(self, context: RequestContext) -> CallFilters:
        tenant = context.query.get("tenant").lower()
        context.permit_tenant(Role.READ, tenant)
        return CallFilters.read(context.query, self._limits, tenant)

    async def _listing(self, calls: ServiceCalls, filters: CallFilters, now_us: int) -> CallListing:
        if filters.names_id:
            # An id names one call, on any tab: a lookup instead of a search.
            try:
                return CallListing([], None, (await calls.get(filters.tenant, filters.search)).call)
            except ServiceCallNotFound:
                return CallListing([], None)
        request, budget = filters.request(now_us), TimeBudget(self._limits.list_search_timeout_s)
        found: list[CallRecord] = []
        while True:
            left = str(filters.rows - len(found))
            page = await calls.list(filters.tenant, request._replace(limit=left))
            found += page.calls
            if page.cursor is None or len(found) >= filters.rows:
                return CallListing(found, page.cursor)
            if budget.spent:
                return CallListing(found, page.cursor, reached_us=page.reached.submitted_at if page.reached else None)
            request = request._replace(cursor=page.cursor)

    async def tenants(self, context: RequestContext, calls: ServiceCalls) -> Response:
        """The choice of a tenant."""
        known, may_write = self._tenants.known(context), context.principal.may_call_somewhere(Role.WRITE)
        fresh = calls.new_id() if may_write and not known and not context.principal.is_limited else ""
        return self._pages.page(
            "calls/tenants.html", context, title="Choose a tenant", tenants=known, may_write=may_write, fresh=fresh
        )

    async def new_tenant(self, context: RequestContext, calls: ServiceCalls) -> Response:
        """Creates a tenant, which takes no more than an unused id."""
        tenant = calls.new_id()
        context.permit_tenant(Role.WRITE, tenant)
        response = RedirectResponse(list_path(tenant), 303)
        self._tenants.remember(context, tenant, response)
        return response

    async def rows(self, context: RequestContext, calls: ServiceCalls) -> Response:
        """The changed rows of an open page, which sends its ids and versions, and the tenant."""
        tenant = context.form.get("tenant")
        context.permit_tenant(Role.READ, tenant)
        try:
            wanted = _names_decoder.decode(context.form.exact("rows"))
        except msgspec.DecodeError:
            raise InvalidInput(FieldError("rows", "is not a list of ids and versions")) from None
        if len(wanted) > self._limits.list_rows_max:
            raise InvalidInput(FieldError("rows", f"has more than {self._limits.list_rows_max} entries"))
        values = {
            "wanted": wanted,
            "calls": await calls.get_many(tenant, [service_call_id for service_call_id, _ in wanted]),
            "may_write": context.principal.may_call(Role.WRITE, tenant),
        }
        return await render_rows(
            len(wanted), lambda: compressed(context, self._pages.text("calls/changed.html", context, values))
        )

    async def live(self, context: RequestContext, calls: ServiceCalls) -> Response:
        """Streams to an open page whenever calls of its tenant change."""
        return await self.live_elsewhere(context)

    async def live_elsewhere(self, context: RequestContext) -> Response:
        """The stream on a node without the agent: it has no changes to report, and the page reloads its rows periodically."""
        tenant = context.query.get("tenant")
        context.permit_tenant(Role.READ, tenant)
        if self._streams.full:
            raise Forbidden("Too many open pages: this server updates no more pages live. Reload to see changes.")
        principal, renew = context.principal, context.renew

        def update() -> dict[str, Any] | None:
            if renew() != principal:
                return None
            change_counter = self._statistics.change_counter(tenant)
            return {"created": change_counter.created, "changed": change_counter.changed}

        body: AsyncIterator[bytes] = self._streams.events(update)
        return StreamingResponse(body, media_type="text/event-stream", headers=_STREAM_HEADERS)
