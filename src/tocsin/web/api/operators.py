"""Handlers of the operations for operators: cluster, health, metrics, documentation."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

import msgspec

from tocsin.timers.service import TimerService
from tocsin.web.api.openapi import describe
from tocsin.web.api.request import ApiRequest, CustomResponse, Handler
from tocsin.web.http import cluster_wire
from tocsin.web.http.convert import cluster_answer
from tocsin.web.http.errors import NotReady

#: The page may only load its own script and style sheet, and only send requests to its own server.
_PAGE_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        b"form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)


class OperatorHandlers:
    """`metrics` returns the body of a scrape and its content type."""

    def __init__(self, service: TimerService, metrics: Callable[[], tuple[bytes, str]]) -> None:
        self._service = service
        self._metrics = metrics
        self._encode = msgspec.json.Encoder().encode
        folder = files("tocsin.web.api") / "page"
        self._page = CustomResponse((folder / "docs.html").read_bytes(), "text/html; charset=utf-8", _PAGE_HEADERS)
        self._script = CustomResponse(
            (folder / "docs.js").read_bytes(), "text/javascript; charset=utf-8", _PAGE_HEADERS
        )
        self._style = CustomResponse((folder / "docs.css").read_bytes(), "text/css; charset=utf-8", _PAGE_HEADERS)

    def by_name(self) -> dict[str, Handler]:
        """The handlers by operation name."""
        return {
            "getCluster": self.cluster,
            "health": self.health,
            "readiness": self.readiness,
            "metrics": self.metrics,
            "openapi": self.openapi,
            "docs": self.docs,
            "docsScript": self.docs_script,
            "docsStyle": self.docs_style,
        }

    async def cluster(self, request: ApiRequest) -> bytes:
        """Returns the nodes and shards."""
        return self._encode(cluster_answer(await self._service.cluster()))

    async def health(self, request: ApiRequest) -> bytes:
        """Returns ok: the process is alive."""
        return self._encode(cluster_wire.Health("ok"))

    async def readiness(self, request: ApiRequest) -> bytes:
        """Returns ready, or raises NotReady with the reasons."""
        reasons = self._service.not_ready_because()
        if reasons:
            raise NotReady(reasons)
        return self._encode(cluster_wire.Health("ready"))

    async def metrics(self, request: ApiRequest) -> CustomResponse:
        """Returns the metrics."""
        return CustomResponse(*self._metrics())

    async def openapi(self, request: ApiRequest) -> CustomResponse:
        """Returns the OpenAPI document, which is built at the first request."""
        return CustomResponse(describe(), "application/json", _PAGE_HEADERS)

    async def docs(self, request: ApiRequest) -> CustomResponse:
        """Returns the documentation page."""
        return self._page

    async def docs_script(self, request: ApiRequest) -> CustomResponse:
        """Returns the page's script."""
        return self._script

    async def docs_style(self, request: ApiRequest) -> CustomResponse:
        """Returns the page's style sheet."""
        return self._style
