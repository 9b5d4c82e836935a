"""`/timers`: find timers, watch them, select many."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import JSONResponse, Response, StreamingResponse

from tocsin.http.convert import RequestParser
from tocsin.http.errors import Forbidden
from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, NamespaceNotFound, TimerNotFound
from tocsin.model.namespace import DEFAULT_NAMESPACE, Namespace
from tocsin.service import ListRequest, TimerService, TimerView
from tocsin.ui.filters import CUSTOM_RANGE, RANGES, VIEWS, Filters
from tocsin.ui.latest import latest
from tocsin.ui.limits import UiLimits
from tocsin.ui.live import Streams
from tocsin.ui.pages import Pages, by_rows, packed
from tocsin.ui.search import Found, Patience, earliest
from tocsin.ui.statistics import Statistics
from tocsin.ui.visit import Handler, Visit

_STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
#: Digits of milliseconds that are read; an instant has no more.
_MS_DIGITS_MAX = 15
_names_decoder = msgspec.json.Decoder(list[tuple[str, str]])


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list. `exact` is the timer whose id is the whole of what was searched for; it is not in `views`.
    `reached_us` is how far an unfinished search has come."""

    views: list[TimerView]
    cursor: str | None
    exact: TimerView | None = None
    reached_us: int | None = None

    @property
    def ids(self) -> list[str]:
        """Of all that is shown."""
        return [view.timer.id for view in (*self.views, *([] if self.exact is None else [self.exact]))]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show, now or later."""
        return not self.views and self.exact is None and self.cursor is None


class ListHandlers:
    """The list and what it needs."""

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

    async def visible_namespaces(self, visit: Visit) -> Sequence[Namespace]:
        """Those that the visitor may read."""
        return [
            namespace for namespace in await self._service.namespaces() if visit.visitor.may(Role.READ, namespace.name)
        ]

    async def filters(self, visit: Visit) -> tuple[Filters, Sequence[Namespace]]:
        """What the URL asks for, and the namespaces to choose from."""
        namespaces = await self.visible_namespaces(visit)
        names = [namespace.name for namespace in namespaces]
        first = DEFAULT_NAMESPACE if DEFAULT_NAMESPACE in names or not names else names[0]
        filters = Filters.read(visit.query, self._limits, first)
        visit.permit(Role.READ, filters.namespace)
        return filters, namespaces

    async def list(self, visit: Visit) -> Response:
        """The page, or for a script only its results."""
        filters, namespaces = await self.filters(visit)
        problem: InvalidInput | NamespaceNotFound | None = None
        status, listing = 200, Listing([], None)
        pulse = self._statistics.pulse(filters.namespace)
        try:
            listing = await self._listing(filters, visit.now_us)
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
            "pulse": pulse,
            "may_write": visit.visitor.may(Role.WRITE, filters.namespace),
            "live": f"/ui/live?namespace={quote(filters.namespace, safe='')}",
        }
        template = "timers/results.html" if visit.fragment else "timers/list.html"
        # A script gets what is wrong as a part of the page, too; it would not show another status.
        shown = 200 if visit.fragment else status
        response = await by_rows(filters.rows, lambda: self._pages.page(template, visit, shown, **values))
        response.headers["vary"] = "hx-request, accept-encoding"
        if visit.fragment:
            response.headers["hx-push-url"] = filters.link(cursor=filters.cursor)
        return response

    async def more(self, visit: Visit) -> Response:
        """What follows in a list that is open: its next rows, and the link to those behind them."""
        filters, _ = await self.filters(visit)
        listing = await self._listing(filters, visit.now_us)
        values = {
            "filters": filters,
            "listing": listing,
            "may_write": visit.visitor.may(Role.WRITE, filters.namespace),
        }
        return await by_rows(filters.rows, lambda: packed(visit, self._pages.text("timers/more.html", visit, values)))

    async def fresh(self, visit: Visit) -> Response:
        """The ids that the list would begin with by now, or go on with behind its cursor, in order, for an open page to
        find those that it lacks. `until` (ms): up to where the page shows an earliest-first list. `more`: whether others
        follow within that."""
        filters, _ = await self.filters(visit)
        request = self.request(filters, visit.now_us)
        until = visit.query.get("until")
        if filters.order == "asc" and until.isdecimal():
            bounds = [bound for bound in (request.execute_before, int(until[:_MS_DIGITS_MAX]) * 1_000) if bound]
            request = replace(request, execute_before=min(bounds))
        found = await self._search(filters, request, visit.now_us)
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

    async def _search(self, filters: Filters, request: ListRequest, now_us: int) -> Found:
        patience = Patience(self._limits.list_search_timeout_s)
        if filters.order == "desc":
            return await latest(self._service.list, request, now_us, patience)
        return await earliest(self._service.list, request, patience)

    def request(self, filters: Filters, now_us: int) -> ListRequest:
        """What to ask of the service; InvalidInput."""
        return self._parser.list_request(filters.wish(now_us))

    async def _exact(self, filters: Filters) -> TimerView | None:
        """The timer of exactly this id, whatever the tab: a lookup instead of a search."""
        try:
            return await self._service.get(filters.namespace, filters.prefix)
        except TimerNotFound:
            return None

    async def rows(self, visit: Visit) -> Response:
        """The rows of an open page that have changed: it sends ids with versions, and the namespace."""
        namespace = visit.form.exact("namespace")
        visit.permit(Role.READ, namespace)
        try:
            wanted = _names_decoder.decode(visit.form.exact("rows"))
        except msgspec.DecodeError:
            raise InvalidInput(FieldError("rows", "is not a list of ids and versions")) from None
        if len(wanted) > self._limits.list_rows_max:
            raise InvalidInput(FieldError("rows", f"has more than {self._limits.list_rows_max} entries"))
        views = await self._service.get_many(namespace, [timer_id for timer_id, _ in wanted])
        values = {
            "wanted": wanted,
            "views": views,
            "may_write": visit.visitor.may(Role.WRITE, namespace),
        }
        return await by_rows(len(wanted), lambda: packed(visit, self._pages.text("timers/changed.html", visit, values)))

    async def live(self, visit: Visit) -> Response:
        """Tells an open page when its namespace has changed."""
        namespace = visit.query.exact("namespace")
        visit.permit(Role.READ, namespace)
        if self._streams.full:
            raise Forbidden("As many pages as this server keeps up to date are open already.")
        visitor, renew = visit.visitor, visit.renew

        def news() -> dict[str, Any] | None:
            if renew() != visitor:
                return None
            pulse = self._statistics.pulse(namespace)
            return {"created": pulse.created, "changed": pulse.changed}

        body: AsyncIterator[bytes] = self._streams.events(news)
        return StreamingResponse(body, media_type="text/event-stream", headers=_STREAM_HEADERS)
