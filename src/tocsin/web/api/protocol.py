"""HTTP/1.1 at the socket: uvicorn's protocol with a direct path to the API.

uvicorn creates an ASGI scope, a cycle, a task and two writes for every request, which costs more than creating a timer. A
request for one of the operations in `Api.direct` that arrives whole, with a body of known size and without unusual features,
goes straight to the API and is answered in one write. It is not even parsed if its head is known from an earlier request. So
is a ping that this node takes in memory. All other requests, and those that turn out to be incomplete, are handed to uvicorn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tocsin.model.errors import TocsinError
from tocsin.web.api.app import Api
from tocsin.web.api.guard import CLOSE, GuardedProtocol, encoded, encoded_json
from tocsin.web.api.heads import Head
from tocsin.web.api.request import ApiRequest
from tocsin.web.api.routes import Route
from tocsin.web.http.errors import Response
from tocsin.web.http.hosts import headers_by_name
from tocsin.web.http.monitors import PING_PATH
from tocsin.web.http.reading import size_of

PING = PING_PATH.encode()


class DirectRequest(ApiRequest):
    """A request on the direct path, whose completion is its response. It has the attributes that uvicorn reads of a
    connection's latest request: when the connection is lost or shut down, and when the next request arrives before the
    response."""

    __slots__ = ("_begun_s", "_protocol", "_route", "disconnected", "keep_alive", "response_complete")

    #: uvicorn sets it to wake the task that reads the body; here there is none.
    message_event = asyncio.Event()
    response_started = False

    def __init__(self, protocol: ApiProtocol, route: Route, headers: Mapping[bytes, bytes]) -> None:
        api = protocol.api
        super().__init__(headers, api.correlation_id(headers), protocol.client, api.proxies)
        self._protocol = protocol
        self._route = route
        self._begun_s = perf_counter()
        self.disconnected = False
        self.keep_alive = True
        self.response_complete = False

    def _resolved(self, value: object) -> None:
        if self.span is not None:
            self.end_span(None)
        route = self._route
        if isinstance(value, bytes) and route.report is None and not self.answer_headers:
            # The same as below, in one step.
            status = route.operation.status
            self.response_complete = True
            self._protocol.respond_json(self, status, value)
            self._protocol.api.measure(route.operation.name, status, perf_counter() - self._begun_s)
        else:
            self._respond(self._protocol.api.response(route, self, value))

    def _refused(self, error: TocsinError) -> None:
        self._failed(error)

    def _failed(self, error: Exception) -> None:
        if self.response_complete:
            raise error
        self.end_span(error)
        path, method = self._route.operation.path, self._route.operation.method
        self._respond(self._protocol.api.problem(error, method, path, path, self.correlation_id))

    def _respond(self, response: Response) -> None:
        self.response_complete = True
        self._protocol.respond(self, response)
        self._protocol.api.measure(self._route.operation.name, response.status, perf_counter() - self._begun_s)


class ApiProtocol(GuardedProtocol):
    """A connection. `api` is also the application that uvicorn serves."""

    def __init__(
        self, api: Api, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None
    ) -> None:
        super().__init__(api, config, server_state, app_state, _loop)
        self.api = api
        # Without it, clients keep idle connections for a few seconds only: undici, which is Node's fetch, for four.
        self._stays_open = b"keep-alive: timeout=%d\r\n\r\n" % config.timeout_keep_alive
        self._route: Route | None = None
        # The parts of the body of a request on the direct path, until it is complete; None for any other request.
        self._parts: list[bytes] | None = None
        # Whether it is a ping that this node may take in memory, until it is complete.
        self._is_ping = False
        # The data that began with the request that is being parsed; empty if the request began before it.
        self._whole = b""

    # -- called by the transport

    def data_received(self, data: bytes) -> None:
        """Serves a request with a known head that arrives whole; the parser gets everything else."""
        if self._is_between_requests():
            head = self.api.heads.find(data)
            if head is not None:
                self._serve(head, data[len(data) - head.body_bytes :])
                return
            self._whole = data
        super().data_received(data)
        self._whole = b""

    def _serve(self, head: Head, body: bytes) -> None:
        self._request = None
        self._body_bytes = head.body_bytes
        self._parsing = self._moved = True
        self._pass_on(head, body)
        self._parsing = False
        self._settle()

    # -- handling of requests

    def _interrupted(self) -> None:
        """Hands an incomplete request on the direct path to uvicorn."""
        parts, self._parts = self._parts, None
        if self._is_ping:
            self._is_ping = False
            self._hand_over()
        if parts is not None:
            self._hand_over()
            for part in parts:
                HttpToolsProtocol.on_body(self, part)

    def _begin(self) -> None:
        """Selects the direct path or uvicorn."""
        route = self.api.direct.get(self.url)
        if route is not None and self._suits(route):
            self._route = route
            self._parts = []
        elif route is None and self.url.startswith(PING) and self._length is None and self._is_plain(b"GET"):
            # A body in chunks has no length.
            self._is_ping = all(name != b"transfer-encoding" for name, _ in self.headers)
            if not self._is_ping:
                self._hand_over()
        else:
            self._hand_over()

    def _suits(self, route: Route) -> bool:
        """Whether the request may take the direct path if its body is complete in time. Only one at a time: responses to
        pipelined requests must keep their order, for which uvicorn has a queue."""
        return (
            self._length is not None and size_of(self._length) <= route.body_bytes_max and self._is_plain(route.method)
        )

    def _is_plain(self, method: bytes) -> bool:
        if self.cycle is not None and not self.cycle.response_complete:
            return False
        parser = self.parser
        return (
            parser.get_method() == method
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not self.expect_100_continue
            and not self.flow.write_paused
        )

    def on_body(self, body: bytes) -> None:
        """Collects the body of a request on the direct path."""
        if self._parts is None:
            super().on_body(body)
        else:
            self._progress = True
            self._body_bytes += len(body)
            self._parts.append(body)

    def _complete(self) -> None:
        """Passes a complete request on the direct path to the API."""
        parts, self._parts = self._parts, None
        if self._is_ping:
            self._is_ping = False
            self._complete_ping()
            return
        if parts is None:
            super()._complete()
            return
        assert self._route is not None
        body = b"".join(parts)
        head = Head(self._route, self.headers, len(body))
        self._pass_on(head, body)
        if self._whole:
            self.api.heads.learn(self._whole, head)

    def _complete_ping(self) -> None:
        """Answers a ping that needs no write, and hands any other to uvicorn."""
        api = self.api
        answer = api.pings.taken(self.url[len(PING) :])
        if answer is None:
            self._hand_over()
            super()._complete()
            return
        request = DirectRequest(self, api.pings_route, headers_by_name(self.headers))
        self.cycle = request  # type: ignore[assignment]
        request.resolve(answer)

    def _pass_on(self, head: Head, body: bytes) -> None:
        request = DirectRequest(self, head.route, head.headers)
        self.cycle = request  # type: ignore[assignment]
        self.api.handle(request, head, body)

    def respond(self, request: DirectRequest, response: Response) -> None:
        """Sends the response to the request on the direct path."""
        self._finish(request, encoded(response, self._end_of_head(request)))

    def respond_json(self, request: DirectRequest, status: int, body: bytes) -> None:
        """Likewise a response with a JSON text and nothing else."""
        self._finish(request, encoded_json(status, body, request.correlation_id, self._end_of_head(request)))

    def _end_of_head(self, request: DirectRequest) -> bytes:
        if self.api.leaving:
            request.keep_alive = False
        return self._stays_open if request.keep_alive else CLOSE

    def _finish(self, request: DirectRequest, data: bytes) -> None:
        if self.cycle is request:  # type: ignore[comparison-overlap]
            # Otherwise each keeps the other alive until the next request, or the garbage collector.
            self.cycle = None  # type: ignore[assignment]
        if self.transport.is_closing():
            self._settle()
            return
        self.write(data)
        if not request.keep_alive:
            self.transport.close()
        self.on_response_complete()
