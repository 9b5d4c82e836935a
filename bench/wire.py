"""A fast HTTP/1.1 client and receiver for benchmarks: bare asyncio protocols with only the necessary checks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import cast


def _content_length(head: bytes) -> int:
    """Content length from a head in lower case; 0 if the head has none."""
    at = head.find(b"content-length:")
    return int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


class Caller(asyncio.Protocol):
    """One keep-alive connection that sends the requests of an iterator one after another and records each latency."""

    def __init__(
        self, bodies: Iterator[bytes], done: Callable[[], None], pace: Callable[[], float] | None = None
    ) -> None:
        self._bodies = bodies
        self._done = done
        self._pace = pace
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._began = 0.0
        self._ended = False
        self.latencies_s: list[float] = []
        self.failures = 0
        self.first_failure = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop has a transport class of its own.
        self._transport = cast("asyncio.Transport", transport)
        self._next()

    def _next(self) -> None:
        assert self._transport is not None
        body = next(self._bodies, None)
        if body is None:
            self._transport.close()
            self._end()
            return
        delay = self._pace() if self._pace is not None else 0.0
        if delay > 0:
            asyncio.get_running_loop().call_later(delay, self._send, body)
        else:
            self._send(body)

    def _send(self, body: bytes) -> None:
        assert self._transport is not None
        if self._ended:
            return
        self._began = time.perf_counter()
        self._transport.write(body)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        length = _content_length(head)
        if len(self._buffer) < end + 4 + length:
            return
        self.latencies_s.append(time.perf_counter() - self._began)
        # A batch's response is 200 even where some of its timers were refused.
        if not head.startswith(b"http/1.1 20") or b'"error":{' in self._buffer:
            self.failures += 1
            self.first_failure = self.first_failure or self._buffer[:500]
        self._buffer = b""
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        # A server also closes a connection that was idle for long.
        if not self._ended:
            self.failures += 1
            self.first_failure = self.first_failure or repr(exc or "the connection was closed").encode()
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._done()


def request(path: str, body: bytes) -> bytes:
    """The bytes of a POST request."""
    return (
        b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        % (path.encode(), len(body))
        + body
    )


class Answerer(asyncio.Protocol):
    """Passes each request body to `seen`, and answers with what that returns, or 200 with an empty body."""

    def __init__(self, seen: Callable[[bytes], bytes | None]) -> None:
        self._seen = seen
        self._transport: asyncio.Transport | None = None
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop has a transport class of its own.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._buffer += data
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[:end].lower()
            length = _content_length(head)
            if len(self._buffer) < end + 4 + length:
                return
            answer = self._seen(self._buffer[end + 4 : end + 4 + length])
            self._buffer = self._buffer[end + 4 + length :]
            self._transport.write(answer or b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
