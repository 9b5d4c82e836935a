"""`/calls`: find a tenant's service calls, watch them, star them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from tocsin.agent.api.ports import CallRecord
from tocsin.agent.api.service_calls import ServiceCalls
from tocsin.http.errors import Forbidden
from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, ServiceCallNotFound
from tocsin.ui.calls.agent import Gate
from tocsin.ui.calls.filters import PAST, VIEWS, CallFilters
from tocsin.ui.calls.show import list_path
from tocsin.ui.calls.statistics import CallStatistics
from tocsin.ui.calls.tenants import Tenants
from tocsin.ui.filters import CUSTOM_RANGE
from tocsin.ui.limits import UiLimits
from tocsin.ui.live import Streams
from tocsin.ui.pages import Pages, by_rows, packed
from tocsin.ui.search import Patience
from tocsin.ui.visit import Handler, Visit

_STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_names_decoder = msgspec.json.Decoder(list[tuple[str, str]])

SAID = {"deleted": "Deleted. It will not be made, and nothing of it is kept."}


@dataclass(frozen=True, slots=True)
class CallListing:
    """A page of a list. `exact` is the call whose id was searched for; then there are no others. `reached_us` is how far an
    unfinished search for a name has come: all that was submitted later was looked through."""

    calls: list[CallRecord]
    cursor: str | None
    exact: CallRecord | None = None
    reached_us: int | None = None

    @property
    def names(self) -> list[str]:
        """Of all that is shown."""
        return [call.name for call in (*self.calls, *([] if self.exact is None else [self.exact]))]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.calls and self.exact is None and self.reached_us is None


class CallListHandlers:
    """The list and what it needs."""

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

    async def list(self, visit: Visit, calls: ServiceCalls) -> Response:
        """The page, or for a script only its results. Without a tenant it leads to the one that was looked at last."""
        tenant = visit.query.get("tenant").lower()
        known = self._tenants.known(visit)
        if not tenant:
            return RedirectResponse(list_path(known[0]), 303) if known else await self.tenants(visit, calls)
        filters = self._filters(visit)
        problem: InvalidInput | None = None
        listing = CallListing([], None)
        pulse = self._statistics.pulse(tenant)
        try:
            listing = await self._listing(calls, filters, visit.now_us)
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
            "pulse": pulse,
            "may_write": visit.visitor.may_call(Role.WRITE, tenant),
            "said": SAID.get(visit.query.get("did"), ""),
            "live": f"/ui/live/calls?{urlencode({'tenant': tenant})}",
        }
        template = "calls/results.html" if visit.fragment else "calls/list.html"
        # A script gets what is wrong as a part of the page, too; it would not show another status.
        status = 400 if problem is not None and not visit.fragment else 200
        response = await by_rows(filters.rows, lambda: self._pages.page(template, visit, status, **values))
        response.headers["vary"] = "hx-request, accept-encoding"
        if visit.fragment:
            response.headers["hx-push-url"] = filters.link(cursor=filters.cursor)
        if problem is None:
            self._tenants.remember(visit, tenant, response)
        return response

    async def more(self, visit: Visit, calls: ServiceCalls) -> Response:
        """What follows in a list that is open: its next rows, and the link to those behind them."""
        filters = self._filters(visit)
        values = {
            "filters": filters,
            "listing": await self._listing(calls, filters, visit.now_us),
            "may_write": visit.visitor.may_call(Role.WRITE, filters.tenant),
        }
        return await by_rows(filters.rows, lambda: packed(visit, self._pages.text("calls/more.html", visit, values)))

    async def fresh(self, visit: Visit, calls: ServiceCalls) -> Response:
        """The ids that the list would begin with by now, or go on with behind its cursor, in order, for an open page to
        find those that it lacks. `more`: whether others follow."""
        filters = self._filters(visit)
        listing = await self._listing(calls, filters, visit.now_us)
        found = listing.calls if listing.exact is None else [listing.exact]
        return JSONResponse({"ids": [call.service_call_id for call in found], "more": listing.cursor is not None})

    def _filters(self, visit: Visit) -> CallFilters:
        tenant = visit.query.get("tenant").lower()
        visit.permit_tenant(Role.READ, tenant)
        return CallFilters.read(visit.query, self._limits, tenant)

    async def _listing(self, calls: ServiceCalls, filters: CallFilters, now_us: int) -> CallListing:
        if filters.names_id:
            # An id is one call, whatever the tab: a lookup instead of a search.
            try:
                return CallListing([], None, (await calls.get(filters.tenant, filters.search)).call)
            except ServiceCallNotFound:
                return CallListing([], None)
        request, patience = filters.request(now_us), Patience(self._limits.list_search_timeout_s)
        found: list[CallRecord] = []
        while True:
            left = str(filters.rows - len(found))
            page = await calls.list(filters.tenant, request._replace(limit=left))
            found += page.calls
            if page.cursor is None or len(found) >= filters.rows:
                return CallListing(found, page.cursor)
            if patience.over:
                return CallListing(found, page.cursor, reached_us=page.reached.submitted_at if page.reached else None)
            request = request._replace(cursor=page.cursor)

    async def tenants(self, visit: Visit, calls: ServiceCalls) -> Response:
        """The choice of a tenant."""
        known, may_write = self._tenants.known(visit), visit.visitor.may_call_somewhere(Role.WRITE)
        fresh = calls.new_id() if may_write and not known and not visit.visitor.names_tenants else ""
        return self._pages.page(
            "calls/tenants.html", visit, title="Whose calls?", tenants=known, may_write=may_write, fresh=fresh
        )

    async def new_tenant(self, visit: Visit, calls: ServiceCalls) -> Response:
        """A new one: an id that nobody has is all there is to it."""
        tenant = calls.new_id()
        visit.permit_tenant(Role.WRITE, tenant)
        response = RedirectResponse(list_path(tenant), 303)
        self._tenants.remember(visit, tenant, response)
        return response

    async def rows(self, visit: Visit, calls: ServiceCalls) -> Response:
        """The rows of an open page that have changed: it sends ids with versions, and the tenant."""
        tenant = visit.form.get("tenant")
        visit.permit_tenant(Role.READ, tenant)
        try:
            wanted = _names_decoder.decode(visit.form.exact("rows"))
        except msgspec.DecodeError:
            raise InvalidInput(FieldError("rows", "is not a list of ids and versions")) from None
        if len(wanted) > self._limits.list_rows_max:
            raise InvalidInput(FieldError("rows", f"has more than {self._limits.list_rows_max} entries"))
        values = {
            "wanted": wanted,
            "calls": await calls.get_many(tenant, [service_call_id for service_call_id, _ in wanted]),
            "may_write": visit.visitor.may_call(Role.WRITE, tenant),
        }
        return await by_rows(len(wanted), lambda: packed(visit, self._pages.text("calls/changed.html", visit, values)))

    async def live(self, visit: Visit, calls: ServiceCalls) -> Response:
        """Tells an open page when its tenant's calls have changed."""
        return await self.live_elsewhere(visit)

    async def live_elsewhere(self, visit: Visit) -> Response:
        """The same on a node that has not the agent: it has nothing to tell, and the page looks by itself whenever nothing
        has been told for a while."""
        tenant = visit.query.get("tenant")
        visit.permit_tenant(Role.READ, tenant)
        if self._streams.full:
            raise Forbidden("As many pages as this server keeps up to date are open already.")
        visitor, renew = visit.visitor, visit.renew

        def news() -> dict[str, Any] | None:
            if renew() != visitor:
                return None
            pulse = self._statistics.pulse(tenant)
            return {"created": pulse.created, "changed": pulse.changed}

        body: AsyncIterator[bytes] = self._streams.events(news)
        return StreamingResponse(body, media_type="text/event-stream", headers=_STREAM_HEADERS)
