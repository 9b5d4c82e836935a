"""A small HTTP/1.1 client and receiver for tests under load: asyncio streams, keep-alive, JSON."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from tests.support.patience import PATIENCE_S


class Client:
    """One keep-alive connection to a server, opened on demand; requests go one after another."""

    def __init__(self, base: Callable[[], tuple[str, int]], headers: dict[str, str] | None = None) -> None:
        self._base = base
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items()).encode()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: Any, timeout_s: float = PATIENCE_S) -> tuple[int, Any]:
        """The status and decoded body. Raises OSError, EOFError or TimeoutError if there is no complete response."""
        raw = json.dumps(body).encode()
        return await self._ask(
            b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n%scontent-length: %d\r\n\r\n"
            % (path.encode(), self._headers, len(raw))
            + raw,
            timeout_s,
        )

    async def get(self, path: str, timeout_s: float = PATIENCE_S) -> tuple[int, Any]:
        """The status and decoded body of a GET."""
        return await self._ask(
            b"GET %s HTTP/1.1\r\nhost: localhost\r\n%s\r\n" % (path.encode(), self._headers), timeout_s
        )

    async def delete(self, path: str, timeout_s: float = PATIENCE_S) -> int:
        """The status of a DELETE."""
        status, _ = await self._ask(
            b"DELETE %s HTTP/1.1\r\nhost: localhost\r\n%s\r\n" % (path.encode(), self._headers), timeout_s
        )
        return status

    async def _ask(self, request: bytes, timeout_s: float) -> tuple[int, Any]:
        """Closes the connection if a response is no longer awaited: the next request would get that response."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(request)
        except BaseException:
            self.close()
            raise

    async def _exchange(self, request: bytes) -> tuple[int, Any]:
        if self._reader is not None:
            # A busy event loop has not read yet what has arrived: one turn finds it, the next one handles it.
            for _ in range(2):
                await asyncio.sleep(0)
        if self._reader is not None and (self._reader.at_eof() or self._reader.exception() is not None):
            # The server has closed it meanwhile, as it may at any time between two requests.
            self.close()
        if self._writer is None:
            host, port = self._base()
            self._reader, self._writer = await asyncio.open_connection(host, port)
        assert self._reader is not None
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length, last = 0, False
        for line in head.lower().split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name == b"content-length":
                length = int(value)
            elif name == b"connection":
                last = value.strip() == b"close"
        raw = await self._reader.readexactly(length) if length else b""
        if last:
            self.close()
        return status, json.loads(raw) if raw else None

    def close(self) -> None:
        """Drops the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


class Receiver:
    """A webhook receiver on a free port. `answer` gets the decoded request body and returns (status, body). While the event
    `responding` is not set, responses are held back. With `tls` it speaks TLS, and the headers have the
    subject of the client's certificate, as `:organizationName`."""

    _path = "/hook"
    #: Lines that are added to the head of responses with a status.
    more_headers: ClassVar[Mapping[int, bytes]] = {}

    def __init__(
        self,
        answer: Callable[[dict[str, Any], dict[str, str]], tuple[int, bytes]],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._answer, self._tls = answer, tls
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.responding = asyncio.Event()
        self.responding.set()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024, ssl=self._tls)
        self.url = f"http{'s' if self._tls else ''}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{self._path}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {
                    name.strip().lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in lines if line)
                }
                subject = (writer.get_extra_info("peercert") or {}).get("subject", ())
                headers |= {f":{name}": value for ((name, value),) in subject}
                raw = await reader.readexactly(int(headers.get("content-length", "0")))
                status, body = await self._respond(first.split(" ")[1], headers, raw)
                more = self.more_headers.get(status, b"")
                writer.write(b"HTTP/1.1 %d X\r\n%bcontent-length: %d\r\n\r\n" % (status, more, len(body)) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        headers[":body"] = raw.decode()
        answer = self._answer(json.loads(raw) if raw else {}, headers)
        await self.responding.wait()
        return answer
