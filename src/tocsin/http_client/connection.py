"""One HTTP/1.1 connection: at most one request at a time, kept alive in between."""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

import httptools

from tocsin.http_client.attempt import Attempt, AttemptOutcome
from tocsin.http_client.limits import CallbackLimits
from tocsin.model.answer import NoResponse, Response
from tocsin.ports.http import Reply

_REQUEST_TIMEOUT = 408


class Owner(Protocol):
    """Receives the outcome of requests on a connection: for each `start`, exactly one of the first two methods is called."""

    def answered(self, connection: Connection, attempt: Attempt, outcome: AttemptOutcome, reusable: bool) -> None:
        """The exchange ended, with a response or an invalid one. Unless `reusable`, the owner aborts the connection."""

    def dropped(self, connection: Connection, attempt: Attempt, outcome: NoResponse, replayable: bool) -> None:
        """The receiver closed the connection. `replayable`: it was a reused connection, and no byte was received."""

    def lost(self, connection: Connection) -> None:
        """The connection is closed, for whatever reason; called once, before `dropped`."""


class Memory:
    """A cache from the exact bytes of whole responses to the parsed response. It keeps the latest entries, between the limit
    and twice the limit. The connections of a pool share it; either all of their attempts want headers, or none does.

    Receivers often repeat the same response, and a parser in its initial state parses the same bytes the same way.
    """

    __slots__ = ("_answers_max", "_bytes_max", "_former", "_present")

    def __init__(self, limits: CallbackLimits) -> None:
        self._answers_max = limits.response_cache_entries_max
        self._bytes_max = limits.response_cache_entry_bytes_max if self._answers_max else 0
        self._present: dict[bytes, Response | Reply] = {}
        self._former: dict[bytes, Response | Reply] = {}

    def recall(self, data: bytes) -> Response | Reply | None:
        """The parsed response for these bytes, if it is cached."""
        if len(data) > self._bytes_max:
            return None
        answer = self._present.get(data)
        if answer is None and (answer := self._former.get(data)) is not None:
            self.keep(data, answer)
        return answer

    def keep(self, data: bytes, answer: Response | Reply) -> None:
        """Caches a response, unless it is too long."""
        if len(data) > self._bytes_max:
            return
        if len(self._present) >= self._answers_max:
            self._former, self._present = self._present, {}
        self._present[data] = answer


class Connection(asyncio.Protocol):
    """Sends prepared requests, and reads their responses within size limits."""

    __slots__ = (
        "_body",
        "_body_bytes",
        "_complete",
        "_ends_with_connection",
        "_extra",
        "_headers",
        "_headers_done",
        "_keep_alive",
        "_limits",
        "_memory",
        "_owner",
        "_parser",
        "_raw_bytes",
        "_retry_after",
        "_status",
        "_transport",
        "_used",
        "attempt",
        "destination",
        "idle_since_ns",
        "lost",
    )

    def __init__(self, owner: Owner, limits: CallbackLimits, destination: str, memory: Memory) -> None:
        self._owner = owner
        self._limits = limits
        self._memory = memory
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._used = False
        self.destination = destination
        self.attempt: Attempt | None = None
        self.idle_since_ns = 0
        self.lost = False
        self._reset()

    def _reset(self) -> None:
        self._raw_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._status = 0
        self._retry_after: str | None = None
        self._headers: list[tuple[str, str]] = []
        self._headers_done = False
        self._keep_alive = False
        self._ends_with_connection = True
        self._complete = False
        self._extra = False

    @property
    def closing(self) -> bool:
        """Whether the connection is closing, even if that has not been reported yet."""
        return self._transport is None or self._transport.is_closing()

    def start(self, attempt: Attempt, now_us: int) -> None:
        """Sends the attempt's request in one write. Only for an idle connection."""
        assert self.attempt is None and self._transport is not None
        self.attempt = attempt
        attempt.connection = self
        if attempt.sent_at is None:
            attempt.sent_at = now_us
        self._transport.write(attempt.request)

    def abort(self) -> None:
        """Closes immediately. The attempt in flight is dropped; only `lost` is called."""
        self.attempt = None
        if self._transport is not None:
            self._transport.abort()

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Parses a part of a response, or finds the whole response in the cache."""
        attempt = self.attempt
        if attempt is None:
            # Unsolicited data could be mistaken for the response to the next request.
            self.abort()
            return
        if self._raw_bytes == 0 and not attempt.head_only:
            known = self._memory.recall(data)
            if known is not None:
                self._used = True
                self.attempt = None
                self._owner.answered(self, attempt, known, True)
                return
        self._parse(attempt, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the attempt in flight: with its response, if that ends with the connection; else as dropped."""
        self.lost = True
        attempt, self.attempt = self.attempt, None
        del self._parser  # Breaks a reference cycle.
        self._owner.lost(self)
        if attempt is None:
            return
        if exc is None and self._headers_done and self._ends_with_connection:
            self._owner.answered(self, attempt, self._answer(attempt), False)
            return
        where = "before its response" if self._raw_bytes == 0 else "during its response"
        detail = f"the receiver closed the connection {where}" + (f" ({exc})" if exc else "")
        replayable = self._used and self._raw_bytes == 0
        self._owner.dropped(self, attempt, NoResponse("CONNECTION_CLOSED", detail), replayable)

    # -- called by the parser, while it is being fed

    def on_message_begin(self) -> None:
        """A response begins; a second one after the requested response is surplus."""
        self._extra = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Reads the few relevant headers, and keeps all of them if the attempt wants headers. Trailers are ignored."""
        attempt = self.attempt
        wanted = attempt is not None and attempt.wants_headers and not self._headers_done
        if wanted and len(self._headers) < self._limits.response_headers_max:
            self._headers.append((name.decode("latin-1"), value.decode("latin-1").strip()))
        length = len(name)
        if length not in (11, 14, 17) or self._complete:
            return
        name = name.lower()
        if name == b"retry-after":
            self._retry_after = value.decode("latin-1").strip()
        elif name in (b"content-length", b"transfer-encoding"):
            self._ends_with_connection = False

    def on_headers_complete(self) -> None:
        """The head is complete; the response to HEAD ends with it."""
        if self._complete:
            return
        self._status = self._parser.get_status_code()
        self._keep_alive = self._parser.should_keep_alive()
        self._headers_done = self._status >= 200
        if self._headers_done and self.attempt is not None and self.attempt.head_only:
            self._complete = True

    def on_body(self, body: bytes) -> None:
        """Keeps the body within the limit."""
        if self._complete:
            self._extra = True
        elif self._body_bytes <= self._limits.response_body_bytes_max:
            self._body.append(body)
            self._body_bytes += len(body)

    def on_message_complete(self) -> None:
        """Ends the exchange, unless this was an interim response (1xx)."""
        if self._headers_done:
            self._complete = True
        else:
            self._retry_after = None
            self._headers.clear()
            self._ends_with_connection = True

    # -- internal

    def _parse(self, attempt: Attempt, data: bytes) -> None:
        whole = self._raw_bytes == 0
        self._raw_bytes += len(data)
        problem = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            problem = "the receiver switched to another protocol, which was not requested"
        except httptools.HttpParserError as error:
            problem = f"the response is not HTTP/1.1: {error}"
        limits = self._limits
        if self._body_bytes > limits.response_body_bytes_max:
            self._settle(attempt, self._answer(attempt), False)
        elif self._raw_bytes - self._body_bytes > limits.response_head_bytes_max + _CHUNK_OVERHEAD * self._body_bytes:
            self._settle(attempt, NoResponse("BAD_RESPONSE", "the response's headers exceed the size limit"), False)
        elif self._complete:
            reusable = self._keep_alive and not self._extra and problem is None
            if (
                self._status == _REQUEST_TIMEOUT
                and self._used
                and not reusable
                and attempt.replayable
                and not attempt.replayed
            ):
                # The receiver sent it on the idle connection before the request arrived (RFC 9110 section 15.5.9).
                self.attempt = None
                self._owner.dropped(self, attempt, NoResponse("CONNECTION_CLOSED"), True)
                return
            answer = self._answer(attempt)
            if whole and reusable and not attempt.head_only:
                self._memory.keep(data, answer)
            self._settle(attempt, answer, reusable)
        elif problem is not None:
            self._settle(attempt, NoResponse("BAD_RESPONSE", problem), False)

    def _settle(self, attempt: Attempt, outcome: AttemptOutcome, reusable: bool) -> None:
        self.attempt = None
        if reusable:
            self._used = True
            if attempt.head_only:
                # The parser still waits for the body that a response to HEAD announces but doesn't have.
                self._parser = httptools.HttpResponseParser(self)
            self._reset()
        self._owner.answered(self, attempt, outcome, reusable)

    def _answer(self, attempt: Attempt) -> Response | Reply:
        body = b"".join(self._body)
        response_body_bytes_max = self._limits.response_body_bytes_max
        truncated = len(body) > response_body_bytes_max
        if attempt.wants_headers:
            return Reply(self._status, tuple(self._headers), body[:response_body_bytes_max], truncated)
        return Response(self._status, body[:response_body_bytes_max], self._retry_after, truncated)


#: Allowed bytes of framing per byte of body: a chunk of one byte takes five, extensions a few more.
_CHUNK_OVERHEAD = 8
