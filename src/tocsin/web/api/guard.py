"""Protects connections before a request is complete: uvicorn's protocol with limits, and problem responses.

uvicorn buffers a request's head and trailers without limit, resets its timeout with every byte, misparses data after an
offer to upgrade as a separate request, and answers invalid HTTP with plain text, even in place of a pending response.
This protocol differs:

- the sizes of heads, trailers and chunk framing are limited; trailers are dropped;
- every wait for a client has a time limit (`Waits`), no matter which bytes arrive until then;
- responses that clients don't read have a memory limit, and the next request begins when they are read;
- offers to upgrade are ignored;
- a request names exactly one host;
- each request gets at most one response, in order; invalid input is refused after the pending responses;
- pipelined requests are parsed only as earlier ones are answered.
"""

from __future__ import annotations

import asyncio
import re
from enum import Enum
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from tocsin.model.errors import TocsinError
from tocsin.web.api.app import Api
from tocsin.web.api.clients import Waits
from tocsin.web.http.errors import BodyTooLarge, HeadersTooLarge, HeadTimeout, MalformedRequest, NoRoomForBody, Response
from tocsin.web.http.reading import DISCARDED_SIZES_MAX

#: Bytes parsed at once: the pipelined requests within them are accepted before the first is answered.
PARSED_BYTES_MAX = 16 * 1024
#: Digits of a content-length; the largest size that the parser can count has fewer.
LENGTH_DIGITS_MAX = 20
#: Headers that are read, in multiples of those accepted: a moderate excess is refused by the application instead.
HEADERS_KEPT_MAX = 2
#: How long a client counts as reading after it has read something.
READING_S = 10.0
_AUTHORITY = re.compile(rb"[^/?#]*")
_NOT_HTTP = "the request is not valid HTTP/1.1"


class _Phase(Enum):
    """The parsing state of the latest request."""

    BETWEEN = 0
    HEAD = 1
    BODY = 2

    __hash__ = object.__hash__


_BETWEEN, _HEAD, _BODY = _Phase
_READER, _END = Waits.READER, Waits.END
#: What the connection waits for while no response is due, by phase.
_WAITS_WHILE = {_BETWEEN: Waits.REQUEST, _HEAD: Waits.HEAD, _BODY: Waits.DISCARDED}


class _Refused(Exception):
    """Stops parsing from within a callback of the parser."""


class GuardedProtocol(HttpToolsProtocol):
    """A connection. `api` is the application that uvicorn serves; its limits apply, and it composes the refusals."""

    def __init__(
        self, api: Api, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._guard = api
        self._clients = api.clients
        self._headers_kept_max = HEADERS_KEPT_MAX * api.limits.headers_max
        self._body_bytes_max = DISCARDED_SIZES_MAX * api.limits.batch_request_bytes_max
        self.waits: Waits | None = None
        self.body_taken = self.response_taken = 0
        self._phase = _BETWEEN
        #: Whether the data parsed last contained more than parts of a head or trailers.
        self._progress = False
        #: Whether a request began or ended in the data received last.
        self._moved = False
        #: Bytes of head, trailers or chunk framing since the last progress.
        self._framing_bytes = 0
        self._body_bytes = 0
        #: The content-length of the latest request.
        self._length: bytes | None = None
        self._host: bytes | None = None
        #: The latest request as served by uvicorn; None before it is handed over.
        self._request: RequestResponseCycle | None = None
        #: Data received after pipelined requests, to be parsed when those have been answered.
        self._unparsed = b""
        self._parsing = False
        #: The head of a request that offers to upgrade, rewritten without the offer.
        self._plain_head = b""
        #: Whether parsing has stopped: the input ended, or was refused.
        self._input_ended = False
        self._half_closed = False
        self._fault: TocsinError | None = None
        #: The response to refused input, while responses to earlier requests are pending.
        self._final_response = b""
        self._unsent = 0
        #: The bytes of the response that were unsent when the client was last seen reading, and when that was (loop time).
        self._unread, self._read_at_s = 0, 0.0
        #: The size of what was written last.
        self._written = 0
        #: The request that uvicorn serves, and one that waits until the client has read the response before it.
        self._served: RequestResponseCycle | None = None
        self._deferred: tuple[RequestResponseCycle, Any] | None = None

    # -- called by the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Registers the connection, or closes it if there are too many."""
        super().connection_made(transport)
        # Writing is paused as long as anything is unsent. The transport keeps all of it until the last byte is sent.
        transport.set_write_buffer_limits(high=0)
        if self._clients.join(self, self.timeout_keep_alive):
            self._settle()
        else:
            self._input_ended = True
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Releases the connection's resources."""
        self._input_ended = True
        self._unparsed = b""
        self._deferred = None
        self._clients.leave(self)
        super().connection_lost(exc)
        served, self._served = self._served, None
        if served is not None and not served.response_complete:
            # If another request is pipelined behind it, uvicorn has notified only that one.
            served.disconnected = True
            served.message_event.set()
        # Requests refer to this connection. Each would keep the other, and what was read and answered, in memory until
        # garbage is collected.
        self.pipeline.clear()
        self._request = self.cycle = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Parses the data as far as the connection's state allows."""
        if not self._input_ended:
            self._parse(self._unparsed + data if self._unparsed else data)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Handles a half-closed connection: pending responses are sent before it closes."""
        cycle = self.cycle
        due = (
            cycle is not None
            and not cycle.response_complete
            and not getattr(cycle, "response_started", False)
            and (self._phase is _BETWEEN or bool(self._unparsed))
            and not self.transport.is_closing()
        )
        self._half_closed = due
        return due

    def pause_writing(self) -> None:
        """The client reads more slowly than the server writes. What follows the head is in memory, too."""
        super().pause_writing()
        self._unread, self._read_at_s = self.transport.get_write_buffer_size(), self.loop.time()
        self._clients.take_response(self, self._written + (self._served.expected_content_length if self._served else 0))
        self._settle()

    def resume_writing(self) -> None:
        """The client has read everything."""
        super().resume_writing()
        self._clients.release_response(self)
        deferred, self._deferred = self._deferred, None
        if deferred is not None and not self.transport.is_closing():
            self._start_asgi_task(*deferred)
        self._settle()

    # -- called by uvicorn

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.transport = self  # type: ignore[assignment]
        if self.flow.write_paused:
            self._deferred = (cycle, app)
        else:
            self._served = cycle
            super()._start_asgi_task(cycle, app)

    def write(self, data: bytes) -> None:
        """Sends a part of a response."""
        self._written = len(data)
        self.transport.write(data)

    def close(self) -> None:
        """Closes the connection once everything is sent."""
        self.transport.close()

    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self.transport.is_closing()

    def shutdown(self) -> None:
        """Closes the connection once no response is due."""
        super().shutdown()
        self._settle()

    def on_response_complete(self) -> None:
        """Begins the next pipelined request, if there is one."""
        self.server_state.total_requests += 1
        self._moved = True
        self._served = None
        if not self.transport.is_closing():
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            elif self._final_response:
                self._end_with(self._final_response)
            if not self.pipeline:
                self.flow.resume_reading()
                if self._unparsed and not self._input_ended:
                    data, self._unparsed = self._unparsed, b""
                    self._parse(data)
        self._settle()

    # -- called by the parser

    def on_message_begin(self) -> None:
        """A request begins; its ASGI scope is created only when it is handed to uvicorn."""
        self._phase = _HEAD
        self._progress = self._moved = True
        self._request = None
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._length = self._host = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Stores the header, in lower case; drops trailers."""
        if self._phase is not _HEAD:
            return
        name = name.lower()
        if name == b"content-length":
            if len(value) > LENGTH_DIGITS_MAX:
                self._fault = MalformedRequest(f"content-length has more than {LENGTH_DIGITS_MAX} digits")
                raise _Refused
            self._length = value
        elif name == b"host":
            if self._host is not None:
                self._fault = MalformedRequest("the request has more than one Host header")
                raise _Refused
            self._host = value
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        headers = self.headers
        headers.append((name, value))
        if len(headers) > self._headers_kept_max:
            self._fault = HeadersTooLarge(f"at most {self._guard.limits.headers_max} headers are accepted")
            raise _Refused

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self._progress = True
        if self.url[:1] != b"/":
            self._check_target()
        if self.parser.should_upgrade():
            self._plain_head = self._without_upgrade()
            return
        self._begin()
        self._phase = _BODY
        self._body_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Counts the body's bytes."""
        self._progress = True
        self._body_bytes += len(body)
        if self._body_bytes > self._body_bytes_max:
            self._fault = BodyTooLarge(f"the body has more than {self._body_bytes_max} bytes; send less")
            raise _Refused
        super().on_body(body)

    def on_chunk_header(self) -> None:
        """A part of the body begins, or its trailers."""
        self._progress = True

    def on_message_complete(self) -> None:
        """The request is complete."""
        if self._plain_head:
            return
        self._phase = _BETWEEN
        self._progress = self._moved = True
        self._complete()

    # -- handling of requests

    def _begin(self) -> None:
        """Handles a request whose head is complete."""
        self._hand_over()

    def _complete(self) -> None:
        """Handles a complete request."""
        super().on_message_complete()

    def _hand_over(self) -> None:
        """Hands the request, whose head is complete, to uvicorn."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers)
        super().on_headers_complete()
        self._request = self.cycle
        if self._guard.leaving:
            self.cycle.keep_alive = False

    def _check_target(self) -> None:
        """Raises _Refused for a target in absolute form whose host differs from the Host header."""
        _, absolute, rest = self.url.partition(b"://")
        if absolute and _AUTHORITY.match(rest)[0].lower() != (self._host or b"").lower():  # type: ignore[index]
            self._fault = MalformedRequest("the request's target and its Host header name different hosts")
            raise _Refused

    def _without_upgrade(self) -> bytes:
        """The head of a request that offers to upgrade, rewritten without the offer. After an offer the parser treats the
        following data as another protocol's, so the request must be parsed again. Raises _Refused for CONNECT."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._fault = MalformedRequest("CONNECT is not accepted: this server is not a proxy")
            raise _Refused
        lines = [b"%b %b HTTP/%b" % (method, self.url, self.parser.get_http_version().encode())]
        for name, value in self.headers:
            if name == b"connection":
                value = b",".join(token for token in value.split(b",") if token.strip().lower() != b"upgrade")
            if name != b"upgrade":
                lines.append(name + b": " + value)
        return b"\r\n".join((*lines, b"\r\n"))

    # -- parsing

    def _parse(self, data: bytes) -> None:
        self._parsing, self._moved = True, False
        if len(data) <= PARSED_BYTES_MAX and not self.pipeline:
            self._feed(data)
        else:
            self._parse_parts(data)
        if self._phase is _BODY:
            self._interrupted()
        self._parsing = False
        self._settle()

    def _parse_parts(self, data: bytes) -> None:
        at = 0
        while at < len(data) and not self.pipeline and not self._input_ended:
            self._feed(data[at : at + PARSED_BYTES_MAX])
            at += PARSED_BYTES_MAX
        if at < len(data) and not self._input_ended:
            self._unparsed = data[at:]
            self.flow.pause_reading()

    def _interrupted(self) -> None:
        """The rest of the request's body arrives later."""

    def _feed(self, data: bytes) -> None:
        self._progress = False
        size = len(data)
        while True:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:
                head, self._plain_head = self._plain_head, b""
                if not head:
                    self._refuse(MalformedRequest(_NOT_HTTP))
                    return
                self.parser = _new_parser(self)
                data = head + data[upgrade.args[0] :]
            except httptools.HttpParserError:
                self._refuse(self._fault or MalformedRequest(_NOT_HTTP))
                return
        if self._progress or self._phase is _BETWEEN:
            self._framing_bytes = 0
            return
        self._framing_bytes += size
        most = self._guard.limits.request_head_bytes_max
        if self._framing_bytes > most:
            what = "head exceeds" if self._phase is _HEAD else "chunk headers or trailers exceed"
            self._refuse(HeadersTooLarge(f"the request's {what} {most} bytes"))

    # -- the state of the connection

    def _is_between_requests(self) -> bool:
        """Whether the next byte begins a request, and no response is due before its own."""
        return (
            self._phase is _BETWEEN
            and (self.cycle is None or self.cycle.response_complete)
            and not self._unparsed
            and not self._input_ended
            and not self.flow.write_paused
            and not self.transport.is_closing()
        )

    def _settle(self) -> None:
        """Determines what the connection waits for now."""
        if self._parsing:
            return
        cycle = self.cycle
        waits: Waits | None
        if self.transport.is_closing():
            waits = _END
        elif cycle is not None and not cycle.response_complete:
            waits = _READER if self.flow.write_paused else None
        elif self._half_closed:
            self.transport.close()
            waits = _END
        elif self.flow.write_paused:
            waits = _READER
        else:
            waits = _WAITS_WHILE[self._phase]
        if self._phase is _BODY and waits is None:
            if not self._clients.take_body(self, self._body_bytes):
                self._clients.report("bodies take too much memory", self)
                self._refuse(NoRoomForBody())
                return
        elif self.body_taken:
            self._clients.release_body(self)
        if waits is not self.waits or (self._moved and waits is not None and waits is not _END):
            self._moved = False
            if waits is _READER or waits is _END:
                self._unsent = self.transport.get_write_buffer_size()
            self._clients.wait(self, waits)

    def is_reading(self) -> bool:
        """Whether the client has read of its response lately, or has only begun to wait."""
        unsent, now_s = self.transport.get_write_buffer_size(), self.loop.time()
        if unsent < self._unread:
            self._unread, self._read_at_s = unsent, now_s
        return now_s - self._read_at_s < READING_S

    def overdue(self, waited_for: Waits) -> None:
        """The client exceeded a time limit."""
        if waited_for is Waits.HEAD:
            seconds = self._guard.limits.request_head_timeout_s
            self._refuse(HeadTimeout(f"the request's head was not complete after {seconds:g} s"))
        elif waited_for in (Waits.READER, Waits.END):
            unsent = self.transport.get_write_buffer_size()
            if 0 < unsent < self._unsent:
                self._unsent = unsent
                self._clients.wait(self, waited_for)
            else:
                self.abort()
        else:
            self.transport.close()
            self._settle()

    def abort(self) -> None:
        """Closes the connection immediately."""
        self._input_ended = True
        self._clients.leave(self)
        self.transport.abort()

    # -- refusing

    def _refuse(self, error: TocsinError) -> None:
        """Refuses the input: responds after the pending responses, and closes the connection, since the start of the next
        request is unknown. A request that has been answered, even in part, gets no second response."""
        if self._input_ended or self.transport.is_closing():
            return
        if isinstance(error, MalformedRequest):
            self._clients.report("not HTTP", self)
        self._input_ended = True
        self._unparsed = b""
        response = encoded(self._guard.refusal(error), CLOSE)
        request = self._request if self._phase is _BODY else None
        self._phase = _BETWEEN
        due = self.cycle is not None and not self.cycle.response_complete
        if request is not None and not request.response_complete:
            request.disconnected = True
            request.message_event.set()
            if self.pipeline and self.pipeline[0][0] is request:
                self.pipeline.popleft()
            else:
                due = False
        if request is not None and (request.response_started or request.response_complete):
            response = b""
        if due:
            self._final_response = response
            self.flow.pause_reading()
        else:
            self._end_with(response)
        self._settle()

    def _end_with(self, response: bytes) -> None:
        if response:
            self.write(response)
        self.transport.close()


#: How the head of a response ends after which the connection closes.
CLOSE = b"connection: close\r\n\r\n"


def encoded(response: Response, end_of_head: bytes) -> bytes:
    """The bytes of a response. Its head ends with `end_of_head`, which announces what becomes of the connection."""
    content = [STATUS_LINE[response.status]]
    for name, value in response.headers:
        if name != b"connection":
            content += (name, b": ", value, b"\r\n")
    content += (end_of_head, response.body)
    return b"".join(content)


def encoded_json(status: int, body: bytes, correlation_id: str, end_of_head: bytes) -> bytes:
    """The bytes of `Api.response` of a JSON text without headers of its own, in one step."""
    return b"%bcontent-type: application/json\r\ncontent-length: %d\r\nx-correlation-id: %b\r\n%b%b" % (
        STATUS_LINE[status], len(body), correlation_id.encode(), end_of_head, body
    )  # fmt: skip


def _new_parser(protocol: HttpToolsProtocol) -> Any:
    """A parser as uvicorn creates it."""
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
