"""One HTTP/1.1 connection: at most one request at a time, kept alive in between. How it is opened: resolves the name, checks
every address, connects, performs the TLS handshake."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

import httptools

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.faults import check_descriptors, local_fault
from tocsin.http_client.in_flight import RequestInFlight, RequestOutcome
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.resolver import Resolver
from tocsin.http_client.target import Origin
from tocsin.model.answer import EGRESS_REFUSED, NoResponse, NotSent, Refused, Response
from tocsin.ports.http import Reply

P = TypeVar("P", bound=asyncio.Protocol)

_REQUEST_TIMEOUT = 408
#: Headers that determine where a body ends.
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
#: Lengths of the names of headers that are read, to skip most others early.
_READ_LENGTHS = frozenset(map(len, (b"retry-after", *_FRAMING)))


class Owner(Protocol):
    """Receives the outcome of requests on a connection: for each `start`, exactly one of the first two methods is called."""

    def answered(
        self, connection: Connection, request: RequestInFlight, outcome: RequestOutcome, reusable: bool
    ) -> None:
        """The exchange ended, with a response or an invalid one. Unless `reusable`, the owner aborts the connection."""

    def dropped(self, connection: Connection, request: RequestInFlight, outcome: NoResponse, replayable: bool) -> None:
        """The receiver closed the connection. `replayable`: it was an idle connection, and no byte was received."""

    def lost(self, connection: Connection) -> None:
        """The connection is closed, for any reason; called once, before `dropped`."""


class ResponseCache:
    """The parsed response for the exact bytes of each of the latest whole responses; it starts over when it is full. The
    connections of a pool share it; either all of their requests want headers, or none does.

    Receivers often repeat the same response, and a parser in its initial state parses the same bytes the same way. That
    takes a sixth off the client's CPU time for a callback (`bench/http_client.py` measures it).
    """

    __slots__ = ("_bytes_max", "_entries", "_entries_max")

    def __init__(self, limits: CallbackLimits) -> None:
        self._entries_max = limits.response_cache_entries_max
        self._bytes_max = limits.response_cache_entry_bytes_max if self._entries_max else 0
        self._entries: dict[bytes, Response | Reply] = {}

    def get(self, data: bytes) -> Response | Reply | None:
        """The parsed response for these bytes, if it is cached."""
        return self._entries.get(data) if len(data) <= self._bytes_max else None

    def put(self, data: bytes, response: Response | Reply) -> None:
        """Caches a response, unless it is too long."""
        if len(data) > self._bytes_max:
            return
        if len(self._entries) >= self._entries_max:
            self._entries.clear()
        self._entries[data] = response


class Connection(asyncio.Protocol):
    """Sends prepared requests, and reads their responses within size limits."""

    __slots__ = (
        "_body",
        "_body_bytes_max",
        "_cache",
        "_complete",
        "_ends_with_connection",
        "_extra",
        "_headers",
        "_headers_done",
        "_keep_alive",
        "_limits",
        "_owner",
        "_parser",
        "_raw_bytes",
        "_retry_after",
        "_status",
        "_transport",
        "_wants_headers",
        "destination",
        "idle_since_ns",
        "lost",
        "request",
        "rules",
    )

    def __init__(
        self, owner: Owner, limits: CallbackLimits, destination: str, cache: ResponseCache, rules: int = 0
    ) -> None:
        #: Which of the owner's successive rules for addresses permitted it.
        self.rules = rules
        self._owner = owner
        self._limits = limits
        self._cache = cache
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._wants_headers = False
        self._body_bytes_max = limits.response_body_bytes_max
        self.destination = destination
        self.request: RequestInFlight | None = None
        #: When it was last left idle, monotonic; 0: it never was.
        self.idle_since_ns = 0
        self.lost = False
        self._reset()

    def _reset(self) -> None:
        self._raw_bytes = 0
        # Grows in place: kept by themselves, pieces of two bytes would take twenty times their size.
        self._body = bytearray()
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

    @property
    def was_idle(self) -> bool:
        """Whether the receiver may have closed it as idle: after an earlier request, or since its first did not come."""
        return self.idle_since_ns > 0

    def start(self, request: RequestInFlight, now_us: int) -> None:
        """Sends the request in one write. Only for an idle connection."""
        assert self.request is None and self._transport is not None
        self.request = request
        self._wants_headers = request.wants_headers
        self._body_bytes_max = self._limits.body_bytes_max(request.items)
        request.connection = self
        if request.sent_at is None:
            request.sent_at = now_us
        self._transport.write(request.data)

    def abort(self) -> None:
        """Closes immediately. The request in flight is dropped; only `lost` is called."""
        self.request = None
        if self._transport is not None:
            self._transport.abort()

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Parses a part of a response, or finds the whole response in the cache; the last part ends the exchange."""
        request = self.request
        if request is None:
            # Unsolicited data could be mistaken for the response to the next request.
            self.abort()
            return
        first = self._raw_bytes == 0 and not request.head_only
        if first and (known := self._cache.get(data)) is not None:
            self.request = None
            self._owner.answered(self, request, known, True)
            return
        self._raw_bytes += len(data)
        problem = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            problem = "the receiver switched to another protocol, which was not requested"
        except httptools.HttpParserError as error:
            problem = f"the response is not HTTP/1.1: {error}"
        head_bytes_max, body_bytes = self._limits.response_head_bytes_max, len(self._body)
        if body_bytes > self._body_bytes_max:
            self._settle(request, self._answer(request), False)
        elif self._raw_bytes - body_bytes > head_bytes_max + _CHUNK_OVERHEAD * body_bytes:
            self._settle(request, NoResponse("BAD_RESPONSE", "the response's headers exceed the size limit"), False)
        elif self._complete:
            reusable = self._keep_alive and not self._extra and problem is None
            again = request.replayable and not request.replayed
            if self._status == _REQUEST_TIMEOUT and self.was_idle and not reusable and again:
                # The receiver sent it on the idle connection before the request arrived (RFC 9110 section 15.5.9).
                self.request = None
                self._owner.dropped(self, request, NoResponse("CONNECTION_CLOSED"), True)
                return
            answer = self._answer(request)
            if first and reusable:
                self._cache.put(data, answer)
            self._settle(request, answer, reusable)
        elif problem is not None:
            self._settle(request, NoResponse("BAD_RESPONSE", problem), False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the request in flight: with its response, if that ends with the connection; else as dropped."""
        self.lost = True
        request, self.request = self.request, None
        del self._parser  # Breaks a reference cycle.
        self._owner.lost(self)
        if request is None:
            return
        if exc is None and self._headers_done and self._ends_with_connection:
            self._owner.answered(self, request, self._answer(request), False)
            return
        where = "before its response" if self._raw_bytes == 0 else "during its response"
        detail = f"the receiver closed the connection {where}" + (f" ({exc})" if exc else "")
        replayable = self.was_idle and self._raw_bytes == 0
        self._owner.dropped(self, request, NoResponse("CONNECTION_CLOSED", detail), replayable)

    # -- called by the parser, while it is being fed

    def on_message_begin(self) -> None:
        """A response begins; a second one after the requested response is surplus."""
        self._extra = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Reads the few relevant headers, and keeps all of them if the request wants headers. Trailers are ignored."""
        if self._wants_headers and not self._headers_done and len(self._headers) < self._limits.response_headers_max:
            self._headers.append((name.decode("latin-1"), value.decode("latin-1").strip()))
        if len(name) not in _READ_LENGTHS or self._complete:
            return
        name = name.lower()
        if name == b"retry-after":
            self._retry_after = value.decode("latin-1").strip()
        elif name in _FRAMING:
            self._ends_with_connection = False

    def on_headers_complete(self) -> None:
        """The head is complete; the response to HEAD ends with it."""
        if self._complete:
            return
        self._status = self._parser.get_status_code()
        self._keep_alive = self._parser.should_keep_alive()
        self._headers_done = self._status >= 200
        if self._headers_done and self.request is not None and self.request.head_only:
            self._complete = True

    def on_body(self, body: bytes) -> None:
        """Keeps the body within the limit."""
        if self._complete:
            self._extra = True
        elif len(self._body) <= self._body_bytes_max:
            self._body += body

    def on_message_complete(self) -> None:
        """Ends the exchange, unless this was an interim response (1xx)."""
        if self._headers_done:
            self._complete = True
        else:
            self._retry_after = None
            self._headers.clear()
            self._ends_with_connection = True

    # -- internal

    def _settle(self, request: RequestInFlight, outcome: RequestOutcome, reusable: bool) -> None:
        self.request = None
        if reusable:
            if request.head_only:
                # The parser still waits for the body that a response to HEAD announces but doesn't have.
                self._parser = httptools.HttpResponseParser(self)
            self._reset()
        self._owner.answered(self, request, outcome, reusable)

    def _answer(self, request: RequestInFlight) -> Response | Reply:
        truncated = len(self._body) > self._body_bytes_max
        if truncated:
            del self._body[self._body_bytes_max :]
        body = bytes(self._body)
        if request.wants_headers:
            return Reply(self._status, tuple(self._headers), body, truncated)
        return Response(self._status, body, self._retry_after, truncated)


class Opened(asyncio.Protocol):
    """A connection that is only opened, to see whether it can be."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The receiver has closed it, or this end has."""
        if not self._lost.done():
            self._lost.set_result(exc)

    async def outlasts(self, stays_us: int) -> NoResponse | None:
        """None if the receiver leaves it open that long."""
        try:
            async with asyncio.timeout(stays_us / 1e6):
                error = await asyncio.shield(self._lost)
        except TimeoutError:
            return None
        if isinstance(error, ssl.SSLError):
            return NoResponse("TLS_FAILED", _tls_reason(error))
        return NoResponse("CONNECTION_CLOSED", str(error or "the receiver closed the connection"))

    def abort(self) -> None:
        """Closes immediately."""
        if self._transport is not None:
            self._transport.abort()


#: Allowed bytes of framing per byte of body: a chunk of one byte takes five, extensions a few more.
_CHUNK_OVERHEAD = 8


class Connector:
    """Connects only to permitted addresses, and to exactly the address that was checked.

    Addresses are tried in order of preference. Each but the last gets an equal share of the remaining time, so that one
    dead address does not use up the time that a live one after it needs.
    """

    def __init__(self, resolver: Resolver, egress: EgressPolicy, tls: ssl.SSLContext | None = None) -> None:
        self._resolver = resolver
        self._egress = egress
        self._tls = tls

    async def connect(self, origin: Origin, make: Callable[[], P], deadline_ns: int) -> P | NoResponse | NotSent:
        """A connection to the origin, or the reason for the failure. The caller cancels at the deadline."""
        try:
            addresses = [origin.host] if origin.is_address else await self._resolver.resolve(origin.host)
        except OSError as error:
            text = f"{origin.host}: {error.strerror or error}"
            return local_fault(error) or NoResponse("NAME_NOT_RESOLVED", text)
        refusals = {ip: self._egress.refusal(ip, origin.host, origin.port) for ip in addresses}
        permitted = [ip for ip, refusal in refusals.items() if refusal is None]
        if not permitted:
            return Refused(EGRESS_REFUSED, f"{origin.host} {next(iter(refusals.values()))}", ", ".join(addresses))
        return await self._try_each(origin, permitted, make, deadline_ns)

    async def _try_each(
        self, origin: Origin, addresses: list[str], make: Callable[[], P], deadline_ns: int
    ) -> P | NoResponse | NotSent:
        failure = NoResponse("CONNECTION_FAILED")
        unsent: NotSent | None = None
        for index, ip in enumerate(addresses):
            share_s = max(0, deadline_ns - time.monotonic_ns()) / 1e9 / (len(addresses) - index)
            try:
                # The last address has all the remaining time: the caller enforces the request's deadline.
                async with asyncio.timeout(share_s if index < len(addresses) - 1 else None):
                    return await self._dial(origin, ip, make)
            except ssl.SSLError as error:
                failure = NoResponse("TLS_FAILED", f"{origin.host} ({ip}): {_tls_reason(error)}")
            except TimeoutError:
                failure = NoResponse(
                    "CONNECTION_FAILED", f"{ip} port {origin.port}: no connection within {share_s:.1f} s"
                )
            except OSError as error:
                unsent = unsent or local_fault(error, ip)
                failure = NoResponse("CONNECTION_FAILED", f"{ip} port {origin.port}: {error.strerror or error}")
        # An address that could not be tried might have worked.
        return unsent or failure

    async def _dial(self, origin: Origin, ip: str, make: Callable[[], P]) -> P:
        loop = asyncio.get_running_loop()
        if origin.scheme == "http":
            _, connection = await loop.create_connection(make, ip, origin.port)
        else:
            name = origin.host.rstrip(".")
            _, connection = await loop.create_connection(
                make, ip, origin.port, ssl=origin.tls or self._tls_context(), server_hostname=name
            )
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            # Loading the system's certificate authorities takes milliseconds: once, and only if TLS is used. Without a
            # free descriptor it would silently load none.
            check_descriptors()
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    return error.reason or str(error)
