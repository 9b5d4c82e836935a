"""The pages as one ASGI application: who asks is found out first, then a handler answers, then the headers are set.

Every answer that people see comes through here, so that no page can forget the checks: the Host header, the sign-in, the
token of a form, the role, and the headers that tell the browser what the page may do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Match, Route

from tocsin.http.access import RELAYED
from tocsin.http.errors import Forbidden, client_message, problem_headers, problem_kind
from tocsin.http.hosts import Hosts
from tocsin.http.proxies import Proxies
from tocsin.http.reading import ClientGone, Receive, read_body
from tocsin.model.errors import TocsinError, Unavailable
from tocsin.ports.clock import Clock
from tocsin.ui.assets import PREFIX, Assets
from tocsin.ui.cluster_statistics import ClusterStatistics
from tocsin.ui.cookies import cookie_name, cookie_value
from tocsin.ui.limits import UiLimits
from tocsin.ui.live import Streams
from tocsin.ui.pages import Pages, toast
from tocsin.ui.paused import Paused
from tocsin.ui.sessions import Sessions, Visitor
from tocsin.ui.statistics import Statistics
from tocsin.ui.unbuilt import UNBUILT
from tocsin.ui.visit import Fields, Handler, NewCookie, Relayed, Visit, read_form
from tocsin.ui.welcome import PREFIX as WELCOME
from tocsin.ui.welcome import WelcomeHandlers

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log = logging.getLogger(__name__)

#: Scripts and styles of our own, nothing inline, nothing from elsewhere, and in nobody's frame.
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE = frozenset({"GET", "HEAD"})
#: Forms up to this size are read on the event loop.
_FORM_BYTES_AT_ONCE = 32 * 1024
#: Pages for those who have yet to sign in.
_OPEN_PATHS = frozenset({"/login"})


class Ui:
    """The pages. `handlers` are (method, path pattern, handler); patterns as Starlette writes them."""

    def __init__(
        self,
        handlers: Sequence[tuple[str, str, Handler]],
        *,
        pages: Pages,
        assets: Assets,
        sessions: Sessions,
        hosts: Hosts,
        proxies: Proxies,
        statistics: Statistics,
        cluster_statistics: ClusterStatistics,
        paused: Paused,
        welcome: WelcomeHandlers,
        streams: Streams,
        clock: Clock,
        limits: UiLimits,
    ) -> None:
        self._routes = [Route(path, _never, methods=[method]) for method, path, _ in handlers]
        self._handlers = [handler for _, _, handler in handlers]
        self._pages = pages
        self._assets = assets
        self._sessions = sessions
        self._hosts = hosts
        self._proxies = proxies
        self._statistics = statistics
        self._cluster_statistics = cluster_statistics
        self._paused = paused
        self._welcome = welcome
        self._streams = streams
        self._clock = clock
        self._limits = limits
        self._rolling: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to keep the statistics. Needs a running event loop."""
        self._rolling = asyncio.get_running_loop().create_task(self._roll())

    async def close(self) -> None:
        """Ends the open streams, for which a server that stops would wait otherwise. Idempotent."""
        self._streams.close()
        await self._cluster_statistics.close()
        await self._paused.close()
        if self._rolling is not None:
            self._rolling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._rolling
            self._rolling = None

    async def _roll(self) -> None:
        while True:
            await asyncio.sleep(self._limits.live_interval_s)
            self._statistics.roll(self._clock.now_us())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            raise RuntimeError(f"the pages do not serve {scope['type']}")
        request = Request(scope, receive)
        if scope["path"].startswith("/api/"):
            # Nobody's: the API words it.
            response: Response = PlainTextResponse("Not Found", 404)
        else:
            try:
                response = await self._answer(request, receive)
            except ClientGone:
                return
        for name, value in SECURITY_HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("cache-control", "no-store")
        await response(scope, receive, send)

    async def _answer(self, request: Request, receive: Receive) -> Response:
        host = request.headers.get("host")
        relayed = request.scope.get(RELAYED, False)
        if not relayed and not self._hosts.accepts(host):
            return _plain(421, "Another name, please", _WRONG_HOST)
        if not relayed and not self._sessions.required:
            try:
                self._hosts.check_unforwarded({name for name, _ in request.scope["headers"]})
            except Forbidden as error:
                return _plain(403, "A key, please", str(error))
        path = request.url.path
        if path.startswith(PREFIX) and request.method in _SAFE:
            return self._asset(request, path)
        if path.startswith(WELCOME) and request.method == "POST":
            return await self._received(request, receive)
        if not self._assets.built:
            return HTMLResponse(UNBUILT, 503 if path == "/" else 404)
        name, secure = cookie_name(self._hosts, request)
        sent = cookie_value(request, name)
        fresh = not self._sessions.well_formed(sent)
        cookie = self._sessions.new_cookie() if fresh or sent is None else sent
        response = await self._visit(request, receive, cookie)
        if isinstance(response, Relayed):
            # The node that made it has set what is to be set.
            return response
        if isinstance(response, NewCookie):
            cookie, fresh = response.cookie, True
        if fresh:
            response.set_cookie(name, cookie, path="/", httponly=True, samesite="strict", secure=secure)
        return response

    async def _received(self, request: Request, receive: Receive) -> Response:
        """A callback of this server to itself: no form of a page, so that it is asked for no token of one."""
        try:
            return await self._welcome.receive(request, receive)
        except TocsinError as error:
            return PlainTextResponse(client_message(error, ""), problem_kind(error).status)

    async def _visit(self, request: Request, receive: Receive, cookie: str) -> Response:
        """The answer, errors included."""
        visitor: Visitor | None = None
        visit = Visit(
            request,
            self._sessions.stranger(cookie),
            cookie,
            now_us=self._clock.now_us(),
            correlation_id=request.scope.get("state", {}).get("correlation_id", ""),
            renew=lambda: self._sessions.still(cookie),
            address=self._address(request),
        )
        open_path = request.url.path in _OPEN_PATHS
        try:
            try:
                visitor = await self._sessions.visitor(cookie)
            except Unavailable:
                # Whoever can't be recognized can still sign in.
                if not open_path:
                    raise
            nobody = visitor is None and not open_path
            if nobody and request.method in _SAFE:
                return _to_login(request)
            visit.visitor = visitor or visit.visitor
            if request.method not in _SAFE:
                visit.body = await self._body(request, receive)
                visit.form = await self._form(request, visit.body, cookie)
                if nobody:
                    return _to_login(request)
            return await self._routed(visit)
        except TocsinError as error:
            return self._refusal(visit, error, nobody=visitor is None)

    def _address(self, request: Request) -> str:
        forwarded = request.headers.get("x-forwarded-for")
        return self._proxies.address(request.scope.get("client"), (forwarded and forwarded.encode("latin-1")) or None)

    async def _routed(self, visit: Visit) -> Response:
        wrong_method = False
        for route, handler in zip(self._routes, self._handlers, strict=True):
            match, found = route.matches(visit.request.scope)
            if match is Match.FULL:
                visit.request.scope.update(found)
                return await handler(visit)
            wrong_method = wrong_method or match is Match.PARTIAL
        if "text/html" not in visit.request.headers.get("accept", ""):
            return PlainTextResponse("Not Found", 405 if wrong_method else 404)
        return self._pages.page("missing.html", visit, 405 if wrong_method else 404, title="Nothing here")

    async def _body(self, request: Request, receive: Receive) -> bytes:
        announced = request.headers.get("content-length")
        return await read_body(
            receive,
            None if announced is None else announced.encode(),
            self._limits.form_bytes_max,
            self._limits.form_read_timeout_s,
        )

    async def _form(self, request: Request, body: bytes, cookie: str) -> Fields:
        """The form, if one of our own pages sent it; Forbidden otherwise."""
        headers = request.headers
        site = headers.get("sec-fetch-site")
        origin = headers.get("origin")
        if site not in (None, "same-origin") or (
            origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
        ):
            raise Forbidden("This form was sent from another site's page; nothing was done.")
        # Undoing the escapes of a large form takes longer than timers may wait.
        form = read_form(body) if len(body) <= _FORM_BYTES_AT_ONCE else await asyncio.to_thread(read_form, body)
        token = headers.get("x-csrf-token") or form.get("csrf")
        if not self._sessions.csrf_holds(cookie, token):
            raise Forbidden(
                "The page that you acted on is of another sign-in, or of a server that has gone. Reload it and try again."
            )
        return form

    def _refusal(self, visit: Visit, error: TocsinError, *, nobody: bool) -> Response:
        kind = problem_kind(error)
        if kind.hidden:
            _log.error(
                "page failed: %s %s (correlation id %s)",
                visit.request.method,
                visit.path,
                visit.correlation_id,
                exc_info=error,
                extra={"correlation_id": visit.correlation_id},
            )
        message = client_message(error, visit.correlation_id)
        if visit.fragment:
            return HTMLResponse("", kind.status, headers=toast(message, "failed"))
        template = "login.html" if nobody else "refused.html"
        response = self._pages.page(template, visit, kind.status, title=kind.title, message=message, to="/")
        for name, value in problem_headers(error):
            if name == b"retry-after":
                response.headers["retry-after"] = value.decode()
        return response

    def _asset(self, request: Request, path: str) -> Response:
        asset = self._assets.find(path)
        if asset is None:
            return PlainTextResponse("Not Found", 404)
        headers = {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
        body = asset.plain
        if asset.gzip is not None and "gzip" in request.headers.get("accept-encoding", ""):
            body = asset.gzip
            headers["content-encoding"] = "gzip"
        return Response(body, headers={**headers, "content-type": asset.content_type.decode()})


async def _never(request: Request) -> Response:
    raise AssertionError("routes are only matched")


def _to_login(request: Request) -> Response:
    if request.headers.get("hx-request") == "true" or request.headers.get("accept") == "text/event-stream":
        return Response(status_code=401, headers={"hx-redirect": "/login"})
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = "/login" if request.method not in _SAFE or here == "/" else f"/login?to={quote(here, safe='')}"
    return RedirectResponse(target, 303)


_WRONG_HOST = (
    "This server does not answer under the name in the address bar, so that no foreign page can pass itself off as this "
    'one. Use its IP address or localhost, or tell it its name: ui.origins = ["https://the.name"] in its settings.'
)


def _plain(status: int, title: str, text: str) -> Response:
    """A page without style or anybody's text."""
    return HTMLResponse(f"<!doctype html><html lang=en><title>{title}</title><h1>{title}</h1><p>{text}</p>", status)
