"""The pipeline of requests to the API, as an ASGI application.

Every request takes the same steps: its route, the gate, its body, the handler, the response or the problem. `handle` takes
them for requests that the protocol has complete, without a task if the handler does not await; all others arrive as ASGI
calls. There is no stack of middleware: a create costs a few microseconds in addition to the server's.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from time import perf_counter
from typing import Any

import msgspec

from tocsin.keys import ApiKeys
from tocsin.model.audit import AuditSource
from tocsin.model.errors import TocsinError
from tocsin.model.ids import CountedUuid7
from tocsin.ports.tracing import CreateTraces
from tocsin.timers.monitors import Monitors
from tocsin.timers.schedules import Schedules
from tocsin.web.api.administration import AuditHandlers, KeyHandlers, NamespaceHandlers
from tocsin.web.api.calendars import CalendarHandlers
from tocsin.web.api.changes import ChangeReports
from tocsin.web.api.clients import Clients
from tocsin.web.api.credentials import CredentialHandlers, SigningKeyHandlers
from tocsin.web.api.destinations import DestinationHandlers
from tocsin.web.api.failures import FailureHandlers
from tocsin.web.api.flows import FlowHandlers
from tocsin.web.api.gate import RequestGate
from tocsin.web.api.heads import Head, KnownHeads
from tocsin.web.api.inbox import InboxHandlers
from tocsin.web.api.jobs import JobHandlers
from tocsin.web.api.monitors import MonitorHandlers, PingHandlers
from tocsin.web.api.operators import OperatorHandlers
from tocsin.web.api.request import SOURCE, ApiLimits, ApiRequest, AsgiRequest, Content, NotModified
from tocsin.web.api.routes import Route, RouteMatch, Routes, read_query
from tocsin.web.api.schedules import ScheduleHandlers
from tocsin.web.api.scopes import OPERATION_NAMES
from tocsin.web.api.service_calls import AgentSource, ServiceCallHandlers
from tocsin.web.api.statistics import StatisticsHandlers
from tocsin.web.api.timers import TimerHandlers
from tocsin.web.http.codec import native_codec
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.errors import MethodNotAllowed, Response, RouteNotFound, mounted_app_error, problem, problem_kind
from tocsin.web.http.hosts import headers_by_name
from tocsin.web.http.inbox import InboxRequests
from tocsin.web.http.monitors import PING_PATH, MonitorRequests
from tocsin.web.http.parts import Scope, WebParts, relay_request
from tocsin.web.http.reading import ClientGone, Receive, check_content_type, check_utf8, read_body

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
#: Gets each response: its operation (`_OTHER`: none), its status, and the seconds since the request.
Measure = Callable[[str, int, float], None]

_log = logging.getLogger("tocsin.api")

_CORRELATION_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}\Z")
_NOT_MODIFIED = 304
_OTHER = "other"
_JSON = (b"content-type", b"application/json")


def _measure_nothing(operation: str, status: int, duration_s: float) -> None:
    """Stands for metrics where there are none."""


@dataclass(frozen=True, slots=True)
class ApiMetrics:
    """What answers a scrape, and whether one requires no key (otherwise it requires an unlimited one); `measure` gets each
    response of an operation, `item_refused` the status of each error within a response to a batch of creates."""

    scrape: Callable[[], Awaitable[tuple[bytes, str]]]
    open: bool
    measure: Measure = _measure_nothing
    item_refused: Callable[[int], None] | None = None


class Api:
    """Serves the timers and the service agent over HTTP.

    `agent` None: the service agent is disabled on this node, and its paths return 404 unless another node is found that runs
    it. `agent` is called for each of its requests; while it returns None, requests are relayed as well.
    While `leaving` is set, responses ask clients to close their connections.
    `clients` tracks the connections; None: without a limit of their number.
    `extra` gets requests for other paths: the pages. `more` are handlers of operations that not every server has.
    `traces` gets the spans of requests that create timers or submit service calls.
    """

    def __init__(
        self,
        parts: WebParts,
        *,
        api_keys: ApiKeys,
        metrics: ApiMetrics,
        limits: ApiLimits | None = None,
        agent: AgentSource | None = None,
        clients: Clients | None = None,
        extra: Asgi | None = None,
        more: Sequence[object] = (),
        traces: CreateTraces | None = None,
    ) -> None:
        #: The limits in force.
        self.limits = limits = limits or ApiLimits()
        #: The client connections.
        self.clients = clients or Clients(limits)
        self.leaving = False
        self._clock = parts.clock
        self.proxies = parts.proxies
        #: What decides whether a request is answered.
        self.gate = RequestGate(limits, parts)
        self._extra = extra
        self.measure = metrics.measure
        self._agent = agent
        self._relay = parts.relay
        self._new_id = CountedUuid7(parts.clock.now_us)
        self._encode = msgspec.json.Encoder().encode
        service, parser, audit = parts.service, RequestParser(parts.rules), parts.audit
        monitors = MonitorRequests(Monitors(service), parser, audit, parts.base_url, parts.hosts)
        #: What takes the pings of jobs.
        self.pings = PingHandlers(monitors, parts.auth_failures)
        families: list[object] = [
            TimerHandlers(
                service, parser, limits, traces, native_codec(parts.rules, seals=parts.seals), metrics.item_refused
            ),
            ScheduleHandlers(Schedules(service), parser, traces),
            FailureHandlers(service, parts.rules, audit, agent),
            JobHandlers(parts.jobs, parts.rules, audit),
            NamespaceHandlers(service, parser, audit, parts.jobs),
            FlowHandlers(service.flow_rules, parts.rules, audit),
            CalendarHandlers(service.calendars, parts.rules, audit),
            CredentialHandlers(service.credentials, parts.rules, audit),
            SigningKeyHandlers(parts.signing_keys),
            MonitorHandlers(monitors),
            self.pings,
            DestinationHandlers(service.destinations, parts.rules, audit),
            InboxHandlers(InboxRequests(parts.inbox, parts.rules, audit)),
            KeyHandlers(api_keys, audit, OPERATION_NAMES),
            AuditHandlers(audit, parts.rules),
            StatisticsHandlers(service, parts.statistics, parts.rules),
            OperatorHandlers(service, metrics.scrape, parts.notices),
        ]
        if agent is not None:
            families.append(ServiceCallHandlers(agent, parser, audit, traces))
        families += more
        reports = None if parts.export is None else ChangeReports(parts.export)
        self._routes = Routes(families, limits, metrics_open=metrics.open, reports=reports)
        #: The routes that `handle` serves, by path; and the heads of earlier requests for them.
        self.direct = self._routes.direct
        found = self._routes.find(PING_PATH.encode() + b"token")
        assert found is not None
        pinging = found.by_method["GET"]
        assert pinging is not None
        #: The route of pings without a body.
        self.pings_route = pinging
        self.heads = KnownHeads()
        # Without these references the loop alone would refer to the tasks, weakly.
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            raise RuntimeError(f"the API does not serve {scope['type']}")
        headers = headers_by_name(scope["headers"])
        correlation_id = self.correlation_id(headers)
        raw_path = scope.get("raw_path") or scope["path"].encode()
        failure: Exception | None = None
        operation, begun_s = _OTHER, perf_counter()
        try:
            found = self._routes.find(raw_path)
            if found is not None and (route := found.by_method.get(scope["method"])) is not None:
                operation = route.operation.name
            if found is not None or self._extra is None:
                response = await self._serve(found, scope, headers, receive, correlation_id)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 -- the boundary: every error becomes a response, unknown ones are logged
            failure = error
        else:
            if found is None and self._extra is not None:
                failure = await _serve_mounted(self._extra, scope, receive, send, correlation_id)
                if failure is None:
                    return
        if failure is not None:
            path, instance = scope["path"], raw_path.decode("ascii", "replace")
            if path.startswith(PING_PATH):
                # What follows is a secret.
                path = instance = PING_PATH
            response = self.problem(failure, scope["method"], path, instance, correlation_id)
        self.measure(operation, response.status, perf_counter() - begun_s)
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else response.body})

    def handle(self, request: ApiRequest, head: Head, body: bytes) -> None:
        """Serves a complete request, which is completed now or when the result is available."""
        route, headers = head.route, head.headers
        try:
            if not head.accepted:
                self.gate.check_size(head.sent, headers)
                request.key = self.gate.admit(route, headers, request.client, request.parameters)
                check_content_type(headers)
                head.accepted = True
            else:
                request.key = self.gate.admit_again(head, request.client, request.parameters)
            request.now_us = self._clock.now_us()
            if route.shortcut is not None and route.shortcut(request, body):
                return
            check_utf8(body)
            result = route.handler(request, route.read(request, body))
        except Exception as error:  # noqa: BLE001 -- the boundary: every error becomes a response, unknown ones are logged
            request.fail(error)
            return
        if result is request:
            return
        if isawaitable(result):
            task = asyncio.get_running_loop().create_task(request.follow(result))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            request.resolve(result)

    async def _serve(
        self,
        found: RouteMatch[Route | None] | None,
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
        correlation_id: str,
    ) -> Response:
        """Passes a request through the gate to its handler, or to the node that runs the service agent."""
        if found is None:
            raise RouteNotFound(f"no operation at {scope['path']}; see /docs")
        disabled = not any(found.by_method.values())
        if disabled and self._relay is None:
            raise RouteNotFound("the service agent is disabled: this server has timers only")
        route = found.by_method.get(scope["method"])
        if route is None and not disabled:
            raise MethodNotAllowed(scope["method"], found.allowed)
        if route is None or (self._relay is not None and route.operation.of_agent and not self._has_agent()):
            return await self._relayed(scope, headers, await self._any_body(scope, headers, receive), correlation_id)
        operation, client = route.operation, scope.get("client")
        request = AsgiRequest(
            headers,
            correlation_id,
            client,
            self.proxies,
            parameters=found.parameters,
            path=scope["path"],
            source=scope.get(SOURCE, AuditSource.API),
        )
        self.gate.check_size(scope["headers"], headers)
        request.key = self.gate.admit(route, headers, client, found.parameters, scope)
        if not operation.any_query:
            request.query = read_query(scope["query_string"], operation)
        if route.before_body is not None:
            route.before_body(request)
        if operation.request is not None or operation.undecoded or operation.any_body:
            request.body = await self._body(route, headers, receive)
        if not self._has_agent() and route.names_tenant(request):
            if self._relay is None and self._agent is None:
                raise RouteNotFound("the service agent is disabled: this server has timers only")
            if self._relay is not None:
                return await self._relayed(scope, headers, request.body, correlation_id)
        request.now_us = self._clock.now_us()
        return self.response(route, request, await _result(route, request))

    async def _body(self, route: Route, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        operation = route.operation
        if not (operation.body_optional or operation.any_body):
            check_content_type(headers)
        announced = headers.get(b"content-length")
        body = await read_body(receive, announced, route.body_bytes_max, self.limits.request_read_timeout_s)
        if operation.body_optional and body:
            check_content_type(headers)
        if not (operation.batch or operation.any_body):
            check_utf8(body)
        return body

    def _has_agent(self) -> bool:
        return self._agent is not None and self._agent() is not None

    async def _any_body(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """The body of a request that another node checks. This one checks key and Host header, by its own settings and with
        the client's address."""
        self.gate.authenticate(headers, scope.get("client"), scope)
        announced, limits = headers.get(b"content-length"), self.limits
        return await read_body(receive, announced, limits.request_bytes_max, limits.request_read_timeout_s)

    async def _relayed(self, scope: Scope, headers: dict[bytes, bytes], body: bytes, correlation_id: str) -> Response:
        """The response of the node that runs the service agent, which checks the key again, and everything else."""
        assert self._relay is not None
        address = self.gate.address(scope.get("client"), headers)
        answer = await relay_request(self._relay, scope, body, correlation_id, address)
        if answer is None:
            raise RouteNotFound("no node is configured to run the service agent: this cluster has timers only")
        return Response(*answer)

    def correlation_id(self, headers: Mapping[bytes, bytes]) -> str:
        """The id that the client sent, if it is a valid one, or else a new one."""
        sent_id = headers.get(b"x-correlation-id")
        if sent_id is not None and _CORRELATION_ID.match(sent_id):
            return sent_id.decode()
        return self._new_id()

    def response(self, route: Route, request: ApiRequest, result: object) -> Response:
        """The response to a request that succeeded with what its handler returned."""
        make = route.operation.answer
        # Bytes are an answer that is encoded already.
        answer = result if make is None or isinstance(result, bytes) else make(request, result)
        status, own = route.operation.status, (b"x-correlation-id", request.correlation_id.encode())
        if route.report is not None:
            route.report(request, answer)
        if answer is None:
            return Response(status, [own, *request.answer_headers], b"")
        if isinstance(answer, Response):
            return Response(answer.status, [*answer.headers, own, *request.answer_headers], answer.body)
        if isinstance(answer, NotModified):
            return Response(_NOT_MODIFIED, [own, *request.answer_headers], b"")
        content_type = _JSON
        if isinstance(answer, Content):
            body, content_type = answer.body, (b"content-type", answer.media_type.encode())
        else:
            body = answer if isinstance(answer, bytes) else self._encode(answer)
        length = (b"content-length", b"%d" % len(body))
        return Response(status, [content_type, length, own, *request.answer_headers], body)

    def problem(self, error: BaseException, method: str, path: str, instance: str, correlation_id: str) -> Response:
        """The response to a request that failed; logs errors whose text is withheld from the client."""
        if problem_kind(error).hidden:
            fields = {"method": method, "path": path, "correlation_id": correlation_id}
            _log.error("request failed", exc_info=error, extra=fields)
        return problem(error, instance=instance, correlation_id=correlation_id, now_us=self._clock.now_us())

    def refusal(self, error: TocsinError) -> Response:
        """The response to input that did not become a request."""
        return problem(error, instance="", correlation_id=self._new_id(), now_us=self._clock.now_us())


async def _result(route: Route, request: AsgiRequest) -> object:
    """What the handler returns, or completes the request with."""
    try:
        result = route.start(request)
        if result is request:
            result = await request.answer
        elif isawaitable(result):
            result = await result
    except BaseException as error:
        request.end_span(error)
        raise
    request.end_span(None)
    return result


async def _serve_mounted(
    app: Asgi, scope: Scope, receive: Receive, send: Send, correlation_id: str
) -> Exception | None:
    """Serves a request for the path of no operation by `app`, whose plain-text error responses and exceptions become
    problems. Returns the error to respond with instead, if there is one. Responses that pass get the correlation
    id, unless they were relayed from another node, which has added it."""
    replaced: Exception | None = None
    started = False

    async def watch(message: MutableMapping[str, Any]) -> None:
        nonlocal replaced, started
        if message["type"] == "http.response.start":
            replaced = _failure(message, scope)
            if replaced is None:
                started = True
                headers = list(message.get("headers", ()))
                if all(name != b"x-correlation-id" for name, _ in headers):
                    headers.append((b"x-correlation-id", correlation_id.encode()))
                message = {**message, "headers": headers}
        if replaced is None:
            await send(message)

    scope.setdefault("state", {})["correlation_id"] = correlation_id
    try:
        await app(scope, receive, watch)
    except Exception as error:
        if started:
            raise
        return error
    return replaced


def _failure(message: MutableMapping[str, Any], scope: Scope) -> Exception | None:
    headers = dict(message.get("headers", ()))
    if message["status"] < 400 or not headers.get(b"content-type", b"").startswith(b"text/plain"):
        return None
    allow = headers.get(b"allow")
    return mounted_app_error(
        message["status"], scope["method"], scope["path"], None if allow is None else allow.decode("latin-1")
    )
