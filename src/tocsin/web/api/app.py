"""The ASGI application.

An exact path leads to its handler with one dictionary lookup; paths with parameters are looked up next, and all other
paths go to the mounted application, if there is one. There is no stack of middleware: a create costs a few microseconds
in addition to the server's.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from types import MappingProxyType
from typing import Any

from tocsin.keys import ApiKeys
from tocsin.model.access import ApiKey
from tocsin.model.errors import TocsinError
from tocsin.model.uuid7 import CountedUuid7
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog, NoAudit
from tocsin.ports.clock import Clock
from tocsin.timers.service import TimerService
from tocsin.web.api.audit import AuditHandlers
from tocsin.web.api.clients import Clients
from tocsin.web.api.keys import KeyHandlers
from tocsin.web.api.mounted import Mounted
from tocsin.web.api.namespaces import NamespaceHandlers
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.operators import OperatorHandlers
from tocsin.web.api.request import ApiLimits, ApiRequest, CustomResponse, Handler
from tocsin.web.api.routes import DirectRoute, Route, Routes, direct_routes
from tocsin.web.api.service_calls import AgentSource, ServiceCallHandlers
from tocsin.web.api.templates import read_query
from tocsin.web.api.tenants import TenantHandlers
from tocsin.web.api.timers import TimerHandlers
from tocsin.web.http.access import (
    KEY_HASH,
    RELAYED,
    Keyring,
    authenticate,
    require_role,
    require_service,
    require_tenant,
)
from tocsin.web.http.auth_failures import AuthFailures
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.errors import (
    PROBLEM_MEDIA_TYPE,
    HeadersTooLarge,
    MethodNotAllowed,
    RouteNotFound,
    problem,
    problem_headers,
    problem_kind,
)
from tocsin.web.http.hosts import Hosts
from tocsin.web.http.proxies import Proxies
from tocsin.web.http.reading import ClientGone, Receive, check_content_type, check_utf8, read_body

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
Hook = Callable[[], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
#: Another node's response: status, headers, body. None: no node serves the path.
Relayed = tuple[int, Headers, bytes] | None
#: Relays a request (method, target as sent, headers, body, client address) to the node that serves it. Raises Unavailable.
Relay = Callable[[str, bytes, Headers, bytes, str], Awaitable[Relayed]]
#: Sends the response of a request on the direct path: status, headers, body.
Respond = Callable[[int, Headers, bytes], None]

_log = logging.getLogger("tocsin.api")

_CORRELATION_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}\Z")
_NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})
_NO_QUERY: Mapping[str, list[str]] = MappingProxyType({})


class _NoOperation(Exception):
    """No operation has this path."""


class _OnAnotherNode(Exception):
    """Another node may serve this path."""


class Api:
    """Serves `service` over HTTP. With `metrics_open` the metrics require no key; otherwise they require an unlimited one.

    `agent` None: the service agent is disabled on this node, and its paths return 404 unless `relay` finds the node that
    runs it. `agent` is called for each of its requests; while it returns None, requests are relayed as well.
    While `leaving` is set, responses ask clients to close their connections.
    `hosts` are the hosts for which requests without a key are accepted; None: any.
    `clients` tracks the connections; None: without a limit of their number.

    `extra` gets requests for other paths: pages, other APIs, WebSockets. `startup` and `shutdown` follow the server's
    lifespan; an exception in `startup` keeps the server from starting.
    """

    def __init__(
        self,
        service: TimerService,
        *,
        rules: InputRules,
        clock: Clock,
        keys: Keyring,
        api_keys: ApiKeys,
        auth_failures: AuthFailures | None = None,
        audit: AuditLog | None = None,
        metrics: Callable[[], tuple[bytes, str]],
        metrics_open: bool,
        limits: ApiLimits | None = None,
        agent: AgentSource | None = None,
        relay: Relay | None = None,
        hosts: Hosts | None = None,
        clients: Clients | None = None,
        proxies: Proxies | None = None,
        extra: Asgi | None = None,
        startup: Hook | None = None,
        shutdown: Hook | None = None,
    ) -> None:
        self._limits = limits = limits or ApiLimits()
        #: The client connections.
        self.clients = clients or Clients(limits)
        self._clock = clock
        self._keys = keys
        self._auth_failures = auth_failures or AuthFailures()
        self._hosts = hosts
        self._proxies = proxies or Proxies()
        self._mounted = None if extra is None else Mounted(extra, self._send_problem)
        self._extra = extra
        self._agent = agent
        self._relay = relay
        self.leaving = False
        self._startup = startup
        self._shutdown = shutdown
        self._new_id = CountedUuid7(clock.now_us)
        parser = RequestParser(rules)
        audit = audit or NoAudit()
        timers = TimerHandlers(service, parser, limits)
        handlers: dict[str, Handler] = {
            **timers.by_name(),
            **NamespaceHandlers(service, parser, audit).by_name(),
            **KeyHandlers(api_keys, audit).by_name(),
            **AuditHandlers(audit, rules).by_name(),
            **OperatorHandlers(service, metrics).by_name(),
            **({} if agent is None else ServiceCallHandlers(agent).by_name()),
            **({} if agent is None else TenantHandlers(agent, parser, audit).by_name()),
        }
        routes = Routes(handlers, limits, metrics_open)
        self._routes, self._allowed, self._templates = routes.exact, routes.allowed, routes.templates
        #: The operations with a direct path, by path.
        self.direct = direct_routes(timers.direct(), self._routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._not_http(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        correlation_id = self._correlation_id(headers)
        route = self._routes.get((scope["method"], _sent_path(scope)))
        parameters = _NO_PARAMETERS
        try:
            if route is None:
                route, parameters = self._find_template(scope)
            body = await self._handle(route, parameters, scope, headers, receive, correlation_id)
        except ClientGone:
            return
        except _NoOperation:
            await self._serve_mounted(scope, receive, send, correlation_id)
            return
        except _OnAnotherNode:
            await self._relay_request(scope, headers, receive, send, correlation_id)
            return
        except Exception as error:  # noqa: BLE001 -- the boundary: every error becomes a response, unknown ones are logged
            await self._send_problem(error, scope, send, correlation_id)
            return
        await _send_response(route, body, correlation_id, send)

    async def _handle(
        self,
        route: Route,
        parameters: Mapping[str, str],
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
        correlation_id: str,
    ) -> bytes | CustomResponse:
        """Passes the request through the gate to its handler."""
        key = self._gate(route, scope["headers"], headers, scope.get("client"), parameters, scope)
        operation = route.operation
        query = _NO_QUERY if operation.any_query else read_query(scope["query_string"], operation)
        body = b""
        if route.has_body:
            body = await self._body(route, headers, receive)
        now_us = self._clock.now_us()
        address = self._address(scope.get("client"), headers)
        return await route.handler(ApiRequest(body, headers, key, now_us, correlation_id, parameters, query, address))

    def begin(
        self, direct: DirectRoute, sent: Headers, body: bytes, respond: Respond, client: tuple[str, int] | None = None
    ) -> None:
        """Serves a complete request without a task; `respond` is called once, now or when the result is available."""
        headers = dict(sent)
        correlation_id = self._correlation_id(headers)
        route = direct.route

        def done(result: object) -> None:
            # Called from the engine, into which no error may propagate.
            try:
                if isinstance(result, Exception):
                    raise result
                body = direct.encode(result)
            except Exception as error:  # noqa: BLE001 -- the boundary: every error becomes a response
                method = direct.method.decode()
                respond(*self._problem(error, method, direct.path, direct.path, correlation_id))
                return
            respond(route.status, *_response_parts(route, body, correlation_id))

        try:
            key = self._gate(route, sent, headers, client)
            check_content_type(headers)
            check_utf8(body)
            direct.begin(ApiRequest(body, headers, key, self._clock.now_us(), correlation_id), done)
        except Exception as error:  # noqa: BLE001 -- as above
            done(error)

    def _correlation_id(self, headers: dict[bytes, bytes]) -> str:
        sent_id = headers.get(b"x-correlation-id")
        if sent_id is not None and _CORRELATION_ID.match(sent_id):
            return sent_id.decode()
        return self._new_id()

    def _gate(
        self,
        route: Route,
        sent: Headers,
        headers: dict[bytes, bytes],
        client: tuple[str, int] | None,
        parameters: Mapping[str, str] = _NO_PARAMETERS,
        scope: Mapping[str, Any] = _NO_PARAMETERS,
    ) -> ApiKey | None:
        """Checks headers, key, role and scope of a request; returns the caller's key."""
        limits = self._limits
        if len(sent) > limits.headers_max or sum(map(len, headers.values())) > limits.header_bytes_max:
            raise HeadersTooLarge(
                f"at most {limits.headers_max} headers with {limits.header_bytes_max} bytes in total are accepted"
            )
        if route.is_open:
            if self._hosts is not None and route.operation.reach is not Reach.OPEN:
                self._hosts.check_keyless(headers)
            return None
        key = self._authenticate(headers, client, scope)
        if key is not None:
            _check_reach(route.operation, key, parameters)
        return key

    def _authenticate(
        self, headers: dict[bytes, bytes], client: tuple[str, int] | None, scope: Mapping[str, Any]
    ) -> ApiKey | None:
        """Authenticates the caller. `scope` has what the relaying node says about a relayed request."""
        authorization = headers.get(b"authorization")
        key_hash = scope.get(KEY_HASH, "")
        failed = partial(self._failed, client, headers) if authorization is not None or key_hash else None
        key = authenticate(authorization, self._keys, key_hash, failed)
        if key is None and self._hosts is not None and not scope.get(RELAYED, False):
            # DNS rebinding: a page of any site could otherwise send requests from its user's browser.
            self._hosts.check_keyless(headers)
        return key

    def _failed(self, client: tuple[str, int] | None, headers: Mapping[bytes, bytes], reason: str) -> None:
        """Records a failed authentication. Raises TooManyFailures."""
        self._auth_failures.failure(self._address(client, headers), reason, "api")

    def _address(self, client: tuple[str, int] | None, headers: Mapping[bytes, bytes]) -> str:
        return self._proxies.address(client, headers.get(b"x-forwarded-for"))

    async def _body(self, route: Route, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        optional = route.operation.body_optional
        if not optional:
            check_content_type(headers)
        announced = headers.get(b"content-length")
        body = await read_body(receive, announced, route.body_bytes_max, self._limits.request_read_timeout_s)
        if optional and body:
            check_content_type(headers)
        if not route.operation.batch:
            check_utf8(body)
        return body

    def _find_template(self, scope: Scope) -> tuple[Route, Mapping[str, str]]:
        """The route of a path with parameters, and their values. Raises the error for the client, or how else to serve it."""
        method, path = scope["method"], scope["path"]
        allowed = self._allowed.get(_sent_path(scope))
        if allowed is not None:
            raise MethodNotAllowed(method, allowed)
        found = self._templates.find(scope.get("raw_path") or path.encode())
        if found is None:
            raise _NoOperation
        if not any(found.by_method.values()):
            if self._relay is not None:
                raise _OnAnotherNode
            raise RouteNotFound("the service agent is disabled: this server has timers only")
        route = found.by_method.get(method)
        if route is None:
            raise MethodNotAllowed(method, found.allowed)
        if self._relay is not None and route.operation.of_agent and not self._has_agent():
            raise _OnAnotherNode
        return route, found.parameters

    def _has_agent(self) -> bool:
        return self._agent is not None and self._agent() is not None

    async def _relay_request(
        self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send, correlation_id: str
    ) -> None:
        """Relays a request for the service agent to the node that runs it. This node checks key and Host header, by its own
        settings and with the client's address; the other node checks the key again, and everything else."""
        assert self._relay is not None
        try:
            client = scope.get("client")
            self._authenticate(headers, client, scope)
            length = headers.get(b"content-length")
            body = await read_body(receive, length, self._limits.request_bytes_max, self._limits.request_read_timeout_s)
            sent = [(name, value) for name, value in scope["headers"] if name != b"x-correlation-id"]
            sent.append((b"x-correlation-id", correlation_id.encode()))
            query = scope["query_string"]
            target = (scope.get("raw_path") or scope["path"].encode()) + (b"?" + query if query else b"")
            answer = await self._relay(scope["method"], target, sent, body, self._address(client, headers))
            if answer is None:
                raise RouteNotFound("no node runs the service agent: this cluster has timers only")
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 -- as above
            await self._send_problem(error, scope, send, correlation_id)
            return
        status, answered, content = answer
        await send({"type": "http.response.start", "status": status, "headers": answered})
        await send({"type": "http.response.body", "body": content})

    async def _serve_mounted(self, scope: Scope, receive: Receive, send: Send, correlation_id: str) -> None:
        """Serves a path that no operation has."""
        if self._mounted is not None:
            await self._mounted(scope, receive, send, correlation_id)
        else:
            error = RouteNotFound(f"no operation at {scope['path']}; see /docs")
            await self._send_problem(error, scope, send, correlation_id)

    async def _send_problem(self, error: BaseException, scope: Scope, send: Send, correlation_id: str) -> None:
        method, path = scope["method"], scope["path"]
        raw_path = scope.get("raw_path") or path.encode()
        instance = raw_path.decode("ascii", "replace")
        status, headers, body = self._problem(error, method, path, instance, correlation_id)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})

    def _problem(
        self, error: BaseException, method: str, path: str, instance: str, correlation_id: str
    ) -> tuple[int, Headers, bytes]:
        """Status, headers and body of an error's response; logs errors whose text is withheld from the client."""
        kind = problem_kind(error)
        if kind.hidden:
            fields = {"method": method, "path": path, "correlation_id": correlation_id}
            _log.error("request failed", exc_info=error, extra=fields)
        body = problem(error, instance=instance, correlation_id=correlation_id, now_us=self._clock.now_us())
        headers = [
            (b"content-type", PROBLEM_MEDIA_TYPE),
            (b"content-length", b"%d" % len(body)),
            (b"x-correlation-id", correlation_id.encode()),
            *problem_headers(error),
        ]
        return kind.status, headers, body

    @property
    def limits(self) -> ApiLimits:
        """The limits in force."""
        return self._limits

    def refusal(self, error: TocsinError) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Status, headers and body of the response to input that did not become a request."""
        correlation_id = self._new_id()
        body = problem(error, instance="", correlation_id=correlation_id, now_us=self._clock.now_us())
        headers = [
            (b"content-type", PROBLEM_MEDIA_TYPE),
            (b"content-length", b"%d" % len(body)),
            (b"x-correlation-id", correlation_id.encode()),
            *problem_headers(error),
        ]
        return problem_kind(error).status, headers, body

    async def _not_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif self._extra is not None:
            await self._extra(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        for phase, hook in (("startup", self._startup), ("shutdown", self._shutdown)):
            message = await receive()
            if message["type"] != f"lifespan.{phase}":
                raise RuntimeError(f"the server sent {message['type']}, expected lifespan.{phase}")
            try:
                if hook is not None:
                    await hook()
            except Exception as error:  # noqa: BLE001 -- reported to the server, which stops
                _log.error("%s failed", phase, exc_info=error)
                await send({"type": f"lifespan.{phase}.failed", "message": str(error)})
                return
            await send({"type": f"lifespan.{phase}.complete"})


def _sent_path(scope: Scope) -> str:
    """The path as it was sent. An encoded spelling of a path is another path, so that no proxy's rule about a path can be
    bypassed."""
    path: str = scope["path"]
    raw_path: bytes = scope.get("raw_path") or b""
    return raw_path.decode("latin-1") if b"%" in raw_path else path


async def _send_response(route: Route, body: bytes | CustomResponse, correlation_id: str, send: Send) -> None:
    headers, content = _response_parts(route, body, correlation_id)
    await send({"type": "http.response.start", "status": route.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if route.is_head else content})


def _response_parts(route: Route, body: bytes | CustomResponse, correlation_id: str) -> tuple[Headers, bytes]:
    if not isinstance(body, CustomResponse):
        return _response_headers(route, body, correlation_id), body
    headers = _response_headers(route, body.body, correlation_id)
    headers[:1] = [(b"content-type", body.content_type.encode()), *body.headers]
    return headers, body.body


def _response_headers(route: Route, body: bytes, correlation_id: str) -> Headers:
    sent_id = (b"x-correlation-id", correlation_id.encode())
    if not route.content_type:
        return [sent_id]
    return [(b"content-type", route.content_type), (b"content-length", b"%d" % len(body)), sent_id]


def _check_reach(operation: Operation, key: ApiKey, parameters: Mapping[str, str]) -> None:
    if operation.role is None:
        return
    if operation.reach is Reach.SERVICE:
        require_service(key, operation.role)
    elif operation.reach is Reach.TENANT:
        require_tenant(key, operation.role, parameters["tenantId"])
    else:
        require_role(key, operation.role)
