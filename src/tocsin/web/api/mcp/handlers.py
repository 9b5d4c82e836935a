"""The operation at `/mcp`: what every request passes before the protocol reads it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tocsin.model.access import Role
from tocsin.model.audit import AuditSource
from tocsin.model.errors import Overloaded
from tocsin.ports.audit import AuditLog
from tocsin.web.api.mcp.caller import CALLER, Caller
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import SOURCE, ApiRequest
from tocsin.web.http.errors import Forbidden, Response, RouteNotFound
from tocsin.web.http.hosts import is_of_host
from tocsin.web.http.in_process import Asgi, Message, scope_of, serve

#: Headers of a request that those to the API have, too: who asks, from where, and in which trace.
_PASSED_ON = (b"authorization", b"host", b"x-forwarded-for", b"traceparent", b"tracestate")
_PATH = "/mcp"


class McpHandlers:
    """`serve_message` is the protocol. `api`, which serves what the tools ask for, is set before the first request."""

    def __init__(
        self, serve_message: Callable[[Message, bytes], Awaitable[Response]], audit: AuditLog, *, calls_max: int
    ) -> None:
        self._serve_message = serve_message
        self._audit = audit
        self._calls_max = calls_max
        self._calls = 0
        self.api: Asgi | None = None

    @Operation("mcp", _PATH, Role.READ, Reach.VISIBLE, undecoded=True, any_query=True)
    async def call(self, request: ApiRequest) -> Response:
        """A message of the Model Context Protocol. It needs a key wherever the API does; what a tool may do is decided by the
        operations that it asks for. No cookie counts, and no page of another site can ask."""
        headers = request.headers
        origin, host = (headers.get(name, b"").decode("latin-1") for name in (b"origin", b"host"))
        if b"origin" in headers and not is_of_host(origin, host):
            raise Forbidden(
                f"pages of {origin!r} may not use {_PATH}: the Origin header names another host than the request"
            )
        if self._calls >= self._calls_max:
            raise Overloaded(f"{self._calls} requests to {_PATH} are being served (mcp.calls_max); try again later")
        scope = scope_of("POST", _PATH.encode(), list(headers.items()), request.client)
        scope[CALLER] = Caller(request, self._ask, self._audit)
        self._calls += 1
        try:
            return await self._serve_message(scope, request.body)
        finally:
            self._calls -= 1

    async def _ask(self, request: ApiRequest, path: str, body: bytes) -> Response:
        assert self.api is not None
        headers = [(name, request.headers[name]) for name in _PASSED_ON if name in request.headers]
        headers += [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"x-correlation-id", request.correlation_id.encode()),
        ]
        scope = scope_of("POST", b"/api/v1" + path.encode(), headers, request.client)
        scope[SOURCE] = AuditSource.MCP
        return await serve(self.api, scope, body)


class McpOff:
    """What answers while MCP is off."""

    @Operation("mcp", _PATH, undecoded=True, any_query=True)
    def call(self, request: ApiRequest) -> None:
        """Refuses every message."""
        raise RouteNotFound("MCP is off on this server; its setting mcp.enabled turns it on")
