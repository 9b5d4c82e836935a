"""The operations for operators: cluster, health, metrics, and the API's description."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable
from functools import cache, partial
from hashlib import blake2b
from importlib.resources import files
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.timers.service import TimerService
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest, Content, NotModified, is_current
from tocsin.web.http import cluster as wire
from tocsin.web.http.access import require_service
from tocsin.web.http.errors import NotReady

#: A browser may keep the document, and asks with its ETag whether it is current.
_DOCUMENT_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-cache"),
    (b"vary", b"accept-encoding"),
]

_open = partial(Operation, method="GET", any_query=True)


class OperatorHandlers:
    """`metrics` returns the body of a scrape and its content type, `notices` what people should know of a ready node."""

    def __init__(
        self,
        service: TimerService,
        metrics: Callable[[], Awaitable[tuple[bytes, str]]],
        notices: Callable[[], list[str]] = list,
    ) -> None:
        self._service = service
        self._notices = notices
        self._metrics = metrics
        self._encode = msgspec.json.Encoder().encode

    @Operation("getCluster", "/api/v1/cluster", Role.READ, Reach.VISIBLE, method="GET", query=("view",))
    async def cluster(self, request: ApiRequest) -> wire.Cluster | bytes | NotModified:
        """Nodes, and every shard with its owner; with window statistics if its owner could be reached. This view needs a key
        that is not limited to namespaces or tenants. With `view=owners` any key gets the map of owners: at once, without
        asking other nodes, and with an ETag, so that reading it again costs little."""
        if "view" not in request.query:
            if request.key is not None:
                require_service(request.key, Role.READ)
            return wire.cluster_answer(await self._service.cluster())
        if request.query["view"] != ["owners"]:
            raise InvalidInput(FieldError("view", "must be owners; leave it out for the state of nodes and shards"))
        body = self._encode(wire.owners_answer(self._service.owners()))
        etag = b'"%b"' % blake2b(body, digest_size=8).hexdigest().encode()
        request.answer_headers = [(b"etag", etag), (b"cache-control", b"no-cache")]
        return NotModified() if is_current(etag, request.headers.get(b"if-none-match")) else body

    @_open("health", "/healthz")
    def health(self, request: ApiRequest) -> wire.Health:
        """Liveness probe: responds as long as the process runs."""
        return wire.Health("ok")

    @_open("readiness", "/readyz")
    def readiness(self, request: ApiRequest) -> wire.Health:
        """Readiness probe for load balancers: 503 with the reasons while the node should receive no traffic. A ready node
        names the parts that do not work, on which nothing else depends."""
        reasons = self._service.not_ready_because()
        if reasons:
            raise NotReady(reasons)
        return wire.Health("ready", self._notices() or UNSET)

    @_open("metrics", "/metrics", Role.READ, Reach.SERVICE)
    async def metrics(self, request: ApiRequest) -> Content:
        """In the text format of Prometheus."""
        return Content(*await self._metrics())

    @_open("openapi", "/api/v1/openapi.json", aliases=("/openapi.json",))
    def openapi(self, request: ApiRequest) -> Content | NotModified:
        """OpenAPI 3.1, made by `scripts/openapi`; compressed for clients that accept it."""
        document = _document()
        # Weak, since the compressed bytes have the same one.
        request.answer_headers = [*_DOCUMENT_HEADERS, (b"etag", b"W/" + document.etag)]
        if is_current(document.etag, request.headers.get(b"if-none-match")):
            return NotModified()
        if b"gzip" not in request.headers.get(b"accept-encoding", b""):
            return Content(document.plain, "application/json")
        request.answer_headers.append((b"content-encoding", b"gzip"))
        return Content(document.gzip, "application/json")


class _Document(NamedTuple):
    plain: bytes
    gzip: bytes
    etag: bytes


@cache
def _document() -> _Document:
    plain = (files("tocsin.web.api") / "openapi.json").read_bytes()
    etag = b'"%b"' % blake2b(plain, digest_size=8).hexdigest().encode()
    return _Document(plain, gzip.compress(plain, mtime=0), etag)
