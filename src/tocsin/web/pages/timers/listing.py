"""`/timers`: the list of timers, its filters and its live updates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import JSONResponse, Response, StreamingResponse

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, NamespaceNotFound, TimerNotFound
from tocsin.model.namespace import DEFAULT_NAMESPACE, Namespace
from tocsin.timers.service import ListRequest, TimerService, TimerView
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.errors import Forbidden
from tocsin.web.pages.context import Handler, RequestContext
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.live import Streams
from tocsin.web.pages.overview.statistics import Statistics
from tocsin.web.pages.pages import Pages, compressed, render_rows
from tocsin.web.pages.timers.filters import CUSTOM_RANGE, RANGES, VIEWS, Filters
from tocsin.web.pages.timers.latest import latest
from tocsin.web.pages.timers.search import SearchResult, TimeBudget, earliest

_STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
#: Digits of milliseconds that are read; an instant has no more.
_MS_DIGITS_MAX = 15
_names_decoder = msgspec.json.Decoder(list[tuple[str, str]])


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the list. `exact` is the timer whose id equals the search text; it is not in `views`. `reached_us` is the
    instant that an unfinished search has reached."""

    views: list[TimerView]
    cursor: str | None
    exact: TimerView | None = None
    reached_us: int | None = None

    @property
    def ids(self) -> list[str]:
        """Ids of all timers on the page."""
        return [view.timer.id for view in (*self.views, *([] if self.exact is None else [self.exact]))]

    @property
    def empty(self) -> bool:
        """Whether the list is empty, with no further pages."""
        return not self.views and self.exact is None and self.cursor is None


class ListHandlers:
    """The list and its parts."""

    def __init__(
        self,
        service: TimerService,
        parser: RequestParser,
        pages: Pages,
        statistics: Statistics,
        streams: Streams,
        limits: UiLimits,
    ) -> None:
        self._service = service
        self._parser = parser
        self._pages = pages
        self._statistics = statistics
        self._streams = streams
        self._limits = limits

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("GET", "/timers", self.list),
            ("GET", "/ui/more/timers", self.more),
            ("GET", "/ui/fresh/timers", self.fresh),
            ("POST", "/ui/rows", self.rows),
            ("GET", "/ui/live", self.live),
        ]

    async def visible_namespaces(self, context: RequestContext) -> Sequence[Namespace]:
        """The namespaces that the principal may read."""
        return [
            namespace
            for namespace in await self._service.namespaces()
            if context.principal.may(Role.READ, namespace.name)
        ]

    async def filters(self, context: RequestContext) -> tuple[Filters, Sequence[Namespace]]:
        """The filters in the URL, and the namespaces to choose from."""
        namespaces = await self.visible_namespaces(context)
        names = [namespace.name for namespace in namespaces]
        first = DEFAULT_NAMESPACE if DEFAULT_NAMESPACE in names or not names else names[0]
        filters = Filters.read(context.query, self._limits, first)
        context.permit(Role.READ, filters.namespace)
        return filters, namespaces

    async def list(self, context: RequestContext) -> Response:
        """The page, or for a script the results only."""
        filters, namespaces = await self.filters(context)
        problem: InvalidInput | NamespaceNotFound | None = None
        status, listing = 200, Listing([], None)
        change_counter = self._statistics.change_counter(filters.namespace)
        try:
            listing = await self._listing(filters, context.now_us)
        except InvalidInput as error:
            problem, status = error, 400
        except NamespaceNotFound as error:
            problem, status = error, 404
        values: dict[str, Any] = {
            "title": "Timers",
            "filters": filters,
            "namespaces": namespaces,
            "chosen": next((known for known in namespaces if known.name == filters.namespace), None),
            "listing": listing,
            "problem": problem,
            "tabs": VIEWS,
            "ranges": RANGES,
            "custom_range": CUSTOM_RANGE,
            "limits": self._limits,
            "change_counter": change_counter,
            "may_write": context.principal.may(Role.WRITE, filters.namespace),
            "live": f"/ui/live?namespace={quote(filters.namespace, safe='')}",
        }
        template = "timers/results.html" if context.fragment else "timers/list.html"
        # A script shows errors as a part of the page, and ignores responses with another status.
        shown = 200 if context.fragment else status
        response = await render_rows(filters.rows, lambda: self._pages.page(template, context, shown, **values))
        response.headers["vary"] = "hx-request, accept-encoding"
        if context.fragment:
            response.headers["hx-push-url"] = filters.link(cursor=filters.cursor)
        return response

    async def more(self, context: RequestContext) -> Response:
        """The next rows of an open list, and the link to the rows after them."""
        filters, _ = await self.filters(context)
        listing = await self._listing(filters, context.now_us)
        values = {
            "filters": filters,
            "listing": listing,
            "may_write": context.principal.may(Role.WRITE, filters.namespace),
        }
        return await render_rows(
            filters.rows, lambda: compressed(context, self._pages.text("timers/more.html", context, values))
        )

    async def fresh(self, context: RequestContext) -> Response:
        """The ids with which the list would now start, or continue after its cursor, in order: an open page compares them
        with its rows to find new ones. `until` (milliseconds) is the due time up to which the page shows an earliest-first
        list; `more` in the response indicates whether more ids follow before it."""
        filters, _ = await self.filters(context)
        request = self.request(filters, context.now_us)
        until = context.query.get("until")
        if filters.order == "asc" and until.isdecimal():
            bounds = [bound for bound in (request.execute_before, int(until[:_MS_DIGITS_MAX]) * 1_000) if bound]
            request = replace(request, execute_before=min(bounds))
        found = await self._search(filters, request, context.now_us)
        return JSONResponse({"ids": [view.timer.id for view in found.views], "more": found.cursor is not None})

    async def _listing(self, filters: Filters, now_us: int) -> Listing:
        request = self.request(filters, now_us)
        exact = None
        if filters.prefix and not filters.cursor:
            exact = await self._exact(filters)
        found = await self._search(filters, request, now_us)
        views = found.views
        if exact is not None:
            views = [view for view in views if view.timer.id != filters.prefix]
        return Listing(views, found.cursor, exact, found.reached_us)

    async def _search(self, filters: Filters, request: ListRequest, now_us: int) -> SearchResult:
        budget = TimeBudget(self._limits.list_search_timeout_s)
        if filters.order == "desc":
            return await latest(self._service.list, request, now_us, budget)
        return await earliest(self._service.list, request, budget)

    def request(self, filters: Filters, now_us: int) -> ListRequest:
        """The request to the service. Raises InvalidInput."""
        return self._parser.list_request(filters.api_request(now_us))

    async def _exact(self, filters: Filters) -> TimerView | None:
        """The timer whose id equals the search text, on any tab: a lookup instead of a search."""
        try:
            return await self._service.get(filters.namespace, filters.prefix)
        except TimerNotFound:
            return None

    async def rows(self, context: RequestContext) -> Response:
        """The changed rows of an open page, which sends its ids and versions, and the namespace."""
        namespace = context.form.exact("namespace")
        context.permit(Role.READ, namespace)
        try:
            wanted = _names_decoder.decode(context.form.exact("rows"))
        except msgspec.DecodeError:
            raise InvalidInput(FieldError("rows", "is not a list of ids and versions")) from None
        if len(wanted) > self._limits.list_rows_max:
            raise InvalidInput(FieldError("rows", f"has more than {self._limits.list_rows_max} entries"))
        views = await self._service.get_many(namespace, [timer_id for timer_id, _ in wanted])
        values = {
            "wanted": wanted,
            "views": views,
            "may_write": context.principal.may(Role.WRITE, namespace),
        }
        return await render_rows(
            len(wanted), lambda: compressed(context, self._pages.text("timers/changed.html", context, values))
        )

    async def live(self, context: RequestContext) -> Response:
        """Streams to an open page whenever timers of its namespace change."""
        namespace = context.query.exact("namespace")
        context.permit(Role.READ, namespace)
        if self._streams.full:
            raise Forbidden("Too many open pages: this server updates no more pages live. Reload to see changes.")
        principal, renew = context.principal, context.renew

        def update() -> dict[str, Any] | None:
            if renew() != principal:
                return None
            change_counter = self._statistics.change_counter(namespace)
            return {"created": change_counter.created, "changed": change_counter.changed}

        body: AsyncIterator[bytes] = self._streams.events(update)
        return StreamingResponse(body, media_type="text/event-stream", headers=_STREAM_HEADERS)
