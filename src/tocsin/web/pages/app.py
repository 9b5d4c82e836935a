"""The pages as one ASGI application: it identifies the principal, calls a handler, and sets the security headers.

Every response to a browser passes through here, so that no page can skip a check: the Host header, the sign-in, the CSRF
token of a form, and the content security policy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Match, Route

from tocsin.model.errors import OutcomeUnknown, TocsinError, Unavailable
from tocsin.web.http.access import RELAYED, require_source
from tocsin.web.http.errors import Forbidden, ForeignSource, client_message, problem_headers, problem_kind
from tocsin.web.http.hosts import headers_by_name, is_https, is_of_host
from tocsin.web.http.parts import WebParts
from tocsin.web.http.reading import ClientGone, Receive, read_body
from tocsin.web.pages.admin.sessions import Principal, Sessions
from tocsin.web.pages.admin.single_sign_on import BEGIN, CALLBACK
from tocsin.web.pages.assets import PREFIX, UNBUILT, Assets
from tocsin.web.pages.context import (
    Fields,
    NewCookie,
    NewCookiePage,
    Relayed,
    RequestContext,
    cookie_name,
    cookie_value,
    read_form,
)
from tocsin.web.pages.overview.welcome import PREFIX as WELCOME
from tocsin.web.pages.overview.welcome import Welcome
from tocsin.web.pages.pages import toast
from tocsin.web.pages.site import RouteEntry, Site

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log = logging.getLogger("tocsin.ui")

#: The pages load only their own scripts and styles, run nothing inline, and can't be framed.
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE = frozenset({"GET", "HEAD"})
#: Forms up to this size are read on the event loop.
_FORM_BYTES_AT_ONCE = 32 * 1024
#: After how many seconds a page that is unavailable is requested again.
_AGAIN_S = 5
#: How long a page waits for a database that is known not to answer, or too slowly: longer than Now and Store, which do
#: without it after a while.
_OUTAGE_WAIT_S = 4.0
#: Pages that need no sign-in.
_OPEN_PATHS = frozenset({"/login", "/docs", BEGIN, CALLBACK})


class Ui:
    """The pages. `closing` is awaited when they are closed."""

    def __init__(
        self,
        handlers: Sequence[RouteEntry],
        site: Site,
        parts: WebParts,
        *,
        assets: Assets,
        sessions: Sessions,
        welcome: Welcome,
        closing: Sequence[Callable[[], Awaitable[None]]],
    ) -> None:
        self._routes = [Route(path, _never, methods=[method]) for method, path, _ in handlers]
        self._handlers = [handler for _, _, handler in handlers]
        self._site = site
        self._service = site.service
        self._pages = site.pages
        self._limits = site.limits
        self._assets = assets
        self._sessions = sessions
        self._hosts = parts.hosts
        self._proxies = parts.proxies
        self._welcome = welcome
        self._clock = parts.clock
        self._closing = closing
        self._export = parts.export
        self._auth_failures = parts.auth_failures

    async def close(self) -> None:
        """Ends the open streams, which would otherwise delay the server's shutdown. Idempotent."""
        self._site.streams.close()
        for close in self._closing:
            await close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            raise RuntimeError(f"the pages do not serve {scope['type']}")
        request = Request(scope, receive)
        if scope["path"].startswith("/api/"):
            # Not a page: the API formulates the error.
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
            return _plain(421, "Unknown host name", _WRONG_HOST)
        if not relayed and not self._sessions.required:
            try:
                self._hosts.check_unforwarded({name for name, _ in request.scope["headers"]})
            except Forbidden as error:
                return _plain(403, "API key required", str(error))
        path = request.url.path
        if path.startswith(PREFIX) and request.method in _SAFE:
            return self._asset(request, path)
        if path.startswith(WELCOME) and request.method == "POST":
            return await self._received(request, receive)
        if not self._assets.built:
            return HTMLResponse(UNBUILT, 503 if path == "/" else 404)
        secure = self._secure(request)
        name = cookie_name(request, secure=secure)
        sent = cookie_value(request, name)
        fresh = not self._sessions.well_formed(sent)
        cookie = self._sessions.new_cookie() if fresh or sent is None else sent
        response = await self._handle(request, receive, cookie, secure=secure)
        if isinstance(response, Relayed):
            # The node that produced the response has set its cookies.
            return response
        if isinstance(response, NewCookie | NewCookiePage):
            cookie, fresh = response.cookie, True
        if fresh:
            response.set_cookie(name, cookie, path="/", httponly=True, samesite="strict", secure=secure)
        return response

    async def _received(self, request: Request, receive: Receive) -> Response:
        """A callback of this server to itself: not a form, so it carries no CSRF token."""
        try:
            return await self._welcome.receive(request, receive)
        except TocsinError as error:
            return PlainTextResponse(client_message(error, ""), problem_kind(error).status)

    async def _handle(self, request: Request, receive: Receive, cookie: str, *, secure: bool) -> Response:
        """The response, errors included."""
        principal: Principal | None = None
        context = RequestContext(
            request,
            self._sessions.anonymous(cookie),
            cookie,
            now_us=self._clock.now_us(),
            correlation_id=request.scope.get("state", {}).get("correlation_id", ""),
            renew=lambda: self._sessions.current(cookie),
            secure=secure,
            address=self._address(request),
            export=self._export,
        )
        open_path = request.url.path in _OPEN_PATHS
        try:
            try:
                principal = await self._sessions.principal(cookie, used=not _by_itself(request))
            except Unavailable:
                # The sign-in page works even if the cookie can't be checked.
                if not open_path:
                    raise
            key = None if principal is None else principal.key
            if key is not None and not open_path:
                require_source(key, context.address)
            elif key is not None and not key.comes_from(context.address):
                principal = None
            unauthenticated = principal is None and not open_path
            if unauthenticated and request.method in _SAFE:
                return _to_login(request)
            context.principal = principal or context.principal
            if request.method not in _SAFE:
                context.body = await self._body(request, receive)
                context.form = await self._form(request, context.body, cookie)
                if unauthenticated:
                    return _to_login(request)
            return await self._routed_soon(context)
        except TocsinError as error:
            if isinstance(error, ForeignSource):
                self._auth_failures.report(context.address, "foreign_source", "pages", error.key_id)
            return await self._refusal(context, error, unauthenticated=principal is None)

    def _address(self, request: Request) -> str:
        headers = headers_by_name(request.scope["headers"])
        return self._proxies.address(request.scope.get("client"), headers.get(b"x-forwarded-for"))

    def _secure(self, request: Request) -> bool:
        """Whether the browser uses https. The names of its cookies depend on this, so every node has to come to the same
        result for all requests of a browser; of a relayed one the relaying node has found it."""
        forwarded = headers_by_name(request.scope["headers"]).get(b"x-forwarded-proto")
        if request.scope.get(RELAYED, False):
            return is_https(forwarded)
        return self._hosts.secure(request.headers.get("host")) or self._proxies.secure(
            request.scope.get("client"), forwarded
        )

    async def _routed_soon(self, context: RequestContext) -> Response:
        """The response. While the node knows that the database does not answer, a page waits for it only for a short time."""
        out = self._service.paused_reason is not None and context.request.method in _SAFE
        waiting = asyncio.timeout(_OUTAGE_WAIT_S if out else None)
        try:
            async with waiting:
                return await self._routed(context)
        except TimeoutError:
            if not waiting.expired():
                raise
            raise OutcomeUnknown("the page can't be read now") from None

    async def _routed(self, context: RequestContext) -> Response:
        wrong_method = False
        for route, handler in zip(self._routes, self._handlers, strict=True):
            match, found = route.matches(context.request.scope)
            if match is Match.FULL:
                context.request.scope.update(found)
                return await handler(context)
            wrong_method = wrong_method or match is Match.PARTIAL
        if "text/html" not in context.request.headers.get("accept", ""):
            return PlainTextResponse("Not Found", 405 if wrong_method else 404)
        return self._pages.page("missing.html", context, 405 if wrong_method else 404, title="Page not found")

    async def _body(self, request: Request, receive: Receive) -> bytes:
        content_length = request.headers.get("content-length")
        return await read_body(
            receive,
            None if content_length is None else content_length.encode(),
            self._limits.form_bytes_max,
            self._limits.form_read_timeout_s,
        )

    async def _form(self, request: Request, body: bytes, cookie: str) -> Fields:
        """The form's fields. Raises Forbidden unless one of the server's own pages sent it."""
        headers = request.headers
        site = headers.get("sec-fetch-site")
        origin = headers.get("origin")
        if site not in (None, "same-origin") or not is_of_host(origin, headers.get("host", "")):
            raise Forbidden("This form was sent from another site, so nothing was done.")
        # Decoding a large form would block the event loop for too long.
        form = read_form(body) if len(body) <= _FORM_BYTES_AT_ONCE else await asyncio.to_thread(read_form, body)
        token = headers.get("x-csrf-token") or form.get("csrf")
        if not self._sessions.csrf_holds(cookie, token):
            raise Forbidden(
                "This page belongs to an earlier sign-in or an earlier server. Reload the page and try again."
            )
        return form

    async def _refusal(self, context: RequestContext, error: TocsinError, *, unauthenticated: bool) -> Response:
        kind = problem_kind(error)
        if kind.hidden:
            _log.error(
                "page failed: %s %s (correlation id %s)",
                context.request.method,
                context.path,
                context.correlation_id,
                exc_info=error,
                extra={"correlation_id": context.correlation_id},
            )
        message = client_message(error, context.correlation_id)
        # What was only asked for is asked for again by itself.
        again = kind.status == 503 and context.request.method in _SAFE
        outage = await self._site.outages.of(error, of_calls=_is_of_calls(context.path)) if again else None
        if outage is not None:
            message = outage.title
        by_itself = _by_itself(context.request)
        if by_itself and kind.status == 403:
            # An open page states why it can't be read any more.
            return JSONResponse({"message": message}, 403)
        if context.fragment:
            # An open page that has no other way to learn of an outage shows the words.
            headers = {} if by_itself else toast(message, "failed")
            # The 503 of a proxy, which has none, is a page of its own.
            headers |= {} if outage is None else {"tocsin-outage": "yes"}
            return HTMLResponse(self._pages.outage(outage), kind.status, headers)
        template = "admin/login.html" if unauthenticated else "refused.html"
        response = self._pages.page(
            template,
            context,
            kind.status,
            title=kind.title if outage is None else "This page can’t be read now",
            message=message,
            to="/",
            again_s=_AGAIN_S if again else 0,
            missing=kind.status == 404,
            outage=outage,
        )
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


def _is_of_calls(path: str) -> bool:
    """Whether the path is that of service calls, or of what a script asks for about them."""
    parts = path.split("/")
    return parts[1] == "calls" or (parts[1] == "ui" and "calls" in parts)


def _by_itself(request: Request) -> bool:
    """Whether an open page makes the request without anybody's doing."""
    headers = request.headers
    return headers.get("tocsin-background") == "true" or headers.get("accept") == "text/event-stream"


def _to_login(request: Request) -> Response:
    if _by_itself(request):
        # The page stays, with what has been typed into it.
        return Response(status_code=401)
    if request.headers.get("hx-request") == "true":
        return Response(status_code=401, headers={"hx-redirect": "/login"})
    # As it stands in the address, which is ASCII.
    raw_path: bytes = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
    here = raw_path.decode("ascii", "replace") + (f"?{request.url.query}" if request.url.query else "")
    target = "/login" if request.method not in _SAFE or here == "/" else f"/login?to={quote(here, safe='')}"
    return RedirectResponse(target, 303)


_WRONG_HOST = (
    "This server does not serve pages under the host name in the address bar. Use its IP address or localhost, or add the "
    'name to its settings: ui.origins = ["https://tocsin.example"].'
)


def _plain(status: int, title: str, text: str) -> Response:
    """A page without styles and without any text from the request."""
    return HTMLResponse(f"<!doctype html><html lang=en><title>{title}</title><h1>{title}</h1><p>{text}</p>", status)
