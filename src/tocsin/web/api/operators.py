"""The operations for operators: cluster, health, metrics, documentation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files

from tocsin.model.access import Role
from tocsin.timers.service import TimerService
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest, Content
from tocsin.web.http import cluster_wire
from tocsin.web.http.convert import cluster_answer
from tocsin.web.http.errors import NotReady

#: The page may only load its own script and style sheet, and only send requests to its own server.
_PAGE_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        b"form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
]

_probe = partial(Operation, tag="Health", method="GET", any_query=True)
_page = partial(Operation, tag="Documentation", method="GET", any_query=True, documented=False)


class OperatorHandlers:
    """`metrics` returns the body of a scrape and its content type, `describe` the OpenAPI document."""

    def __init__(
        self, service: TimerService, metrics: Callable[[], tuple[bytes, str]], describe: Callable[[], bytes]
    ) -> None:
        self._service = service
        self._metrics = metrics
        self._describe = describe

    @Operation(
        "getCluster",
        "/api/v1/cluster",
        "Get the cluster's state",
        Role.READ,
        Reach.SERVICE,
        tag="Cluster",
        method="GET",
        errors=("SHARD_UNAVAILABLE",),
    )
    async def cluster(self, request: ApiRequest) -> cluster_wire.Cluster:
        """Nodes, and every shard with its owner; with window statistics if the responding node owns the shard."""
        return cluster_answer(await self._service.cluster())

    @_probe("health", "/healthz", "Is the process alive?")
    async def health(self, request: ApiRequest) -> cluster_wire.Health:
        """Liveness probe: responds as long as the process runs."""
        return cluster_wire.Health("ok")

    @_probe("readiness", "/readyz", "Should the node receive traffic?", errors=("NOT_READY",))
    async def readiness(self, request: ApiRequest) -> cluster_wire.Health:
        """Readiness probe for load balancers: 503 with the reasons while the node should receive no traffic."""
        reasons = self._service.not_ready_because()
        if reasons:
            raise NotReady(reasons)
        return cluster_wire.Health("ready")

    @_probe("metrics", "/metrics", "Metrics", Role.READ, Reach.SERVICE, media_type="text/plain")
    async def metrics(self, request: ApiRequest) -> Content:
        """In the text format of Prometheus."""
        return Content(*self._metrics())

    @_page("openapi", "/api/v1/openapi.json", "The OpenAPI document", aliases=("/openapi.json",))
    async def openapi(self, request: ApiRequest) -> Content:
        """OpenAPI 3.1; built at the first request."""
        request.answer_headers = _PAGE_HEADERS
        return Content(self._describe(), "application/json")

    # Also at the root path, so that the address that `make run` prints leads to something.
    @_page("docs", "/api/v1/docs", "The documentation page", aliases=("/docs",))
    async def docs(self, request: ApiRequest) -> Content:
        """The OpenAPI document as a page."""
        return _file(request, "docs.html", "text/html")

    @_page("docsScript", "/api/v1/docs.js", "The documentation page's script", aliases=("/docs.js",))
    async def docs_script(self, request: ApiRequest) -> Content:
        """Its script."""
        return _file(request, "docs.js", "text/javascript")

    @_page("docsStyle", "/api/v1/docs.css", "The documentation page's style sheet", aliases=("/docs.css",))
    async def docs_style(self, request: ApiRequest) -> Content:
        """Its style sheet."""
        return _file(request, "docs.css", "text/css")


def _file(request: ApiRequest, name: str, media_type: str) -> Content:
    request.answer_headers = _PAGE_HEADERS
    return Content(_read(name), f"{media_type}; charset=utf-8")


@cache
def _read(name: str) -> bytes:
    return (files("tocsin.web.api") / "page" / name).read_bytes()
