"""A small HTTP/1.1 server for callbacks, on asyncio and httptools, so that a receiver on the same machine is cheap."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

import httptools

from tocsin.cli.failure import Refused

#: Limit of a request's body, far above the default payload limit of 100 KiB; beyond it the connection is aborted.
BODY_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReceivedCallback:
    """A received request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ReceiverResponse:
    """The response, sent `delay_s` after the request arrived."""

    status: int = 200
    body: bytes = b""
    delay_s: float = 0.0


class Receiver:
    """Listens while it is open, and responds to every request with what `handle` returns."""

    def __init__(self, handle: Callable[[ReceivedCallback], ReceiverResponse]) -> None:
        self.handle = handle
        self.connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self, host: str, port: int) -> None:
        """Starts to listen; port 0 takes a free one, which `url` names. Raises Refused if the address is not available."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Connection(self), host, port, backlog=1_024)
        except OSError as error:
            raise Refused(f"can't listen on {host}:{port}: {error.strerror or error}; choose another --port") from error
        address = self._server.sockets[0].getsockname()
        self.url = f"http://[{host}]:{address[1]}" if ":" in host else f"http://{host}:{address[1]}"

    async def stop(self) -> None:
        """Closes the port and all connections."""
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.close()
            await self._server.wait_closed()
            self._server = None


class _Connection(asyncio.Protocol):
    """Responds in the order of the requests, even if a later response is ready first."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[ReceiverResponse, bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._begin()

    def _begin(self) -> None:
        self._path = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, not a check: uvloop's transports have the methods but not the base class.
        self._transport = cast(asyncio.Transport, transport)
        self._receiver.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._receiver.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._transport.close()
        except httptools.HttpParserError:
            self._transport.write(_head(400, 0, keep_alive=False))
            self._transport.close()

    # -- httptools

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > BODY_BYTES_MAX:
            self._transport.abort()
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        callback = ReceivedCallback(
            self._parser.get_method().decode(), self._path.decode("latin-1"), self._headers, b"".join(self._body)
        )
        keep_alive = self._parser.should_keep_alive()
        self._begin()
        self._waiting.append((self._receiver.handle(callback), keep_alive))
        if len(self._waiting) == 1:
            self._next()

    # -- answers

    def _next(self) -> None:
        while self._waiting and self._timer is None:
            delay_s = self._waiting[0][0].delay_s
            if delay_s > 0:
                self._timer = self._loop.call_later(delay_s, self._later)
            else:
                self._send(*self._waiting.popleft())

    def _later(self) -> None:
        self._timer = None
        self._send(*self._waiting.popleft())
        self._next()

    def _send(self, answer: ReceiverResponse, keep_alive: bool) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(_head(answer.status, len(answer.body), keep_alive=keep_alive) + answer.body)
        if not keep_alive:
            self._transport.close()

    def close(self) -> None:
        """Aborts the connection."""
        self._transport.abort()


def _head(status: int, length: int, *, keep_alive: bool) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    kind = "content-type: application/json\r\n" if length else ""
    end = "" if keep_alive else "connection: close\r\n"
    return f"HTTP/1.1 {status} {phrase}\r\n{kind}content-length: {length}\r\n{end}\r\n".encode()
