"""`/welcome`: a test timer whose callback goes to this server itself, and the received request.

It is offered only if the server may call itself anyway: on a loopback address, where callbacks to private addresses are
allowed. It relaxes no rule. The receiver accepts a few requests of a few kilobytes under a token that this server created
minutes ago, and keeps them in memory.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, NotFound
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.model.redaction import redact_headers
from tocsin.web.http import wire
from tocsin.web.http.reading import Receive, read_body
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.forms import UNLESS_EXISTS
from tocsin.web.pages.site import Part, Site, route

PREFIX = "/welcome/"
_DELAY = "5s"
#: Tokens that are valid at the same time; a further one replaces the oldest.
_TOKENS_MAX = 16
#: How long a token accepts requests and its page is available.
_KEPT_US = 600 * US_PER_SECOND
#: Requests kept for each token: one is expected, and retries may follow.
_REQUESTS_MAX = 3
_BODY_BYTES_MAX = 16 * 1024
_BODY_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A received request."""

    at: int
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class _Receiver:
    until_us: int
    timer_id: str
    received: list[ReceivedRequest] = field(default_factory=list)


class Welcome(Part):
    """Creates the test timer, shows its page, and receives its callback. `own_url` is the URL at which this process can call
    itself, None if the call might reach another process; `now_us` is the clock."""

    def __init__(self, site: Site, *, own_url: str | None, now_us: Callable[[], int]) -> None:
        super().__init__(site)
        self._rules = site.rules
        self._own_url = own_url
        self._now_us = now_us
        self._receivers: dict[str, _Receiver] = {}

    @property
    def offered(self) -> bool:
        """Whether callbacks to this server itself are possible and allowed."""
        return self._own_url is not None and self._rules.url(f"{self._own_url}{PREFIX}") is None

    @property
    def local_refused(self) -> bool:
        """Whether callbacks to other programs on this machine are refused."""
        return self._rules.url("http://127.0.0.1:9000/") is not None

    @route("POST", "/welcome")
    async def begin(self, context: RequestContext) -> Response:
        """Creates the test timer."""
        context.permit(Role.WRITE, DEFAULT_NAMESPACE)
        if not self.offered:
            raise InvalidInput(
                FieldError("callbackUrl", "can't be this server, because its settings refuse callbacks to itself")
            )
        token, timer_id = secrets.token_urlsafe(18), f"hello-{uuid.uuid4().hex[:8]}"
        sent = wire.CreateTimer(
            namespace=DEFAULT_NAMESPACE,
            id=timer_id,
            callback_url=f"{self._own_url}{PREFIX}{token}",
            delay=_DELAY,
            payload=msgspec.Raw(b'{"hello":"from Tocsin"}'),
            tags=["hello"],
        )
        while len(self._receivers) >= _TOKENS_MAX:
            del self._receivers[next(iter(self._receivers))]
        self._receivers[token] = _Receiver(context.now_us + _KEPT_US, timer_id)
        await self._service.create(self._parser.timer(sent, context.now_us, None), UNLESS_EXISTS)
        context.changed("timers/create", DEFAULT_NAMESPACE, timer_id)
        return RedirectResponse(f"{PREFIX}{token}", 303)

    @route("GET", "/welcome/{token}")
    async def show(self, context: RequestContext) -> Response:
        """The countdown, then the received request."""
        context.permit(Role.READ, DEFAULT_NAMESPACE)
        found = self._find(context.request.path_params["token"])
        if found is None:
            raise NotFound("the test timer's page has expired; it is kept for ten minutes")
        timer = (await self._service.get(DEFAULT_NAMESPACE, found.timer_id)).timer
        return self._pages.page(
            "overview/welcome.html", context, title="Your first timer", timer=timer, received=found.received
        )

    async def receive(self, request: Request, receive: Receive) -> Response:
        """Receives the callback."""
        found = self._find(request.url.path.removeprefix(PREFIX))
        if found is None:
            return PlainTextResponse("Not Found", 404)
        content_length = request.headers.get("content-length")
        body = await read_body(
            receive, None if content_length is None else content_length.encode(), _BODY_BYTES_MAX, _BODY_TIMEOUT_S
        )
        if len(found.received) < _REQUESTS_MAX:
            found.received.append(ReceivedRequest(self._now_us(), redact_headers(dict(request.headers)), body))
        return JSONResponse({"ok": True})

    def _find(self, token: str) -> _Receiver | None:
        now_us = self._now_us()
        self._receivers = {name: each for name, each in self._receivers.items() if each.until_us > now_us}
        return self._receivers.get(token)
