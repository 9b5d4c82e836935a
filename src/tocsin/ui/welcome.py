"""`/welcome`: a first timer that fires at this server itself, and what arrived.

Only a server that may call itself anyway offers it: on a loopback address, where callbacks to private addresses are allowed.
Nothing is opened for it. The receiver takes what comes under a token that was made here a while ago, a few requests of a few
kilobytes, keeps them in memory, and sends nothing anywhere.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from tocsin.http import wire
from tocsin.http.convert import RequestParser
from tocsin.http.reading import Receive, read_body
from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, NotFound
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.model.redaction import redact_headers
from tocsin.model.validation import InputRules
from tocsin.service import TimerService
from tocsin.ui.names import UNLESS_EXISTS
from tocsin.ui.pages import Pages
from tocsin.ui.visit import Handler, Visit

PREFIX = "/welcome/"
_DELAY = "5s"
#: Tokens at a time; with one more, the oldest ends.
_TOKENS_MAX = 16
#: For how long a token takes requests, and what they brought is shown.
_KEPT_US = 600 * US_PER_SECOND
#: Requests kept of each token: one is due, and another attempt of it may come.
_REQUESTS_MAX = 3
_BODY_BYTES_MAX = 16 * 1024
_BODY_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request as it came."""

    at: int
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class _Open:
    until_us: int
    timer_id: str
    arrived: list[Arrived] = field(default_factory=list)


class WelcomeHandlers:
    """The button, its page, and the receiver. `own_url` is where this server reaches itself, None where that may be another
    process; `now_us` the clock."""

    def __init__(
        self,
        service: TimerService,
        parser: RequestParser,
        rules: InputRules,
        pages: Pages,
        *,
        own_url: str | None,
        now_us: Callable[[], int],
    ) -> None:
        self._service = service
        self._parser = parser
        self._rules = rules
        self._pages = pages
        self._own_url = own_url
        self._now_us = now_us
        self._open: dict[str, _Open] = {}

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [("POST", "/welcome", self.begin), ("GET", "/welcome/{token}", self.show)]

    @property
    def offered(self) -> bool:
        """Whether a timer may fire at this server itself."""
        return self._own_url is not None and self._rules.url(f"{self._own_url}{PREFIX}") is None

    @property
    def local_refused(self) -> bool:
        """Whether callbacks to other programs of this machine are refused."""
        return self._rules.url("http://127.0.0.1:9000/") is not None

    async def begin(self, visit: Visit) -> Response:
        """Creates the timer."""
        visit.permit(Role.WRITE, DEFAULT_NAMESPACE)
        if not self.offered:
            raise InvalidInput(FieldError("callbackUrl", "can't be this server: callbacks to it are refused here"))
        token, timer_id = secrets.token_urlsafe(18), f"hello-{uuid.uuid4().hex[:8]}"
        sent = wire.CreateTimer(
            namespace=DEFAULT_NAMESPACE,
            id=timer_id,
            callback_url=f"{self._own_url}{PREFIX}{token}",
            delay=_DELAY,
            payload=msgspec.Raw(b'{"hello":"from Tocsin"}'),
            tags=["hello"],
        )
        while len(self._open) >= _TOKENS_MAX:
            del self._open[next(iter(self._open))]
        self._open[token] = _Open(visit.now_us + _KEPT_US, timer_id)
        await self._service.create(self._parser.timer(sent, visit.now_us, None), UNLESS_EXISTS)
        return RedirectResponse(f"{PREFIX}{token}", 303)

    async def show(self, visit: Visit) -> Response:
        """The countdown, and then what arrived."""
        visit.permit(Role.READ, DEFAULT_NAMESPACE)
        found = self._find(visit.request.path_params["token"])
        if found is None:
            raise NotFound("what this page showed was kept for ten minutes only")
        timer = (await self._service.get(DEFAULT_NAMESPACE, found.timer_id)).timer
        return self._pages.page("welcome.html", visit, title="Your first timer", timer=timer, arrived=found.arrived)

    async def receive(self, request: Request, receive: Receive) -> Response:
        """The receiver."""
        found = self._find(request.url.path.removeprefix(PREFIX))
        if found is None:
            return PlainTextResponse("Not Found", 404)
        announced = request.headers.get("content-length")
        body = await read_body(
            receive, None if announced is None else announced.encode(), _BODY_BYTES_MAX, _BODY_TIMEOUT_S
        )
        if len(found.arrived) < _REQUESTS_MAX:
            found.arrived.append(Arrived(self._now_us(), redact_headers(dict(request.headers)), body))
        return JSONResponse({"ok": True})

    def _find(self, token: str) -> _Open | None:
        now_us = self._now_us()
        self._open = {name: each for name, each in self._open.items() if each.until_us > now_us}
        return self._open.get(token)
