"""A small HTTP/1.1 server whose handler may cut the connection instead of answering."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

#: Bytes of a request's head; a body may be longer.
_HEAD_BYTES_MAX = 256 * 1024


@dataclass(frozen=True)
class Request:
    """A complete request; header names as they were sent."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first header of that name, in any case."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True)
class Response:
    """A response; its length is added."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


#: Answers a request; None cuts the connection.
Handler = Callable[[Request], Awaitable[Response | None]]


def json_response(content: Any, status: int = 200) -> Response:
    """A response with JSON."""
    return Response(status, [("content-type", "application/json")], json.dumps(content).encode())


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    """Serves on a free loopback port, which it yields; at the end it cuts what is open."""
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await _converse(reader, writer, handler)
        except (OSError, EOFError):
            # The client has gone.
            pass
        except asyncio.CancelledError:
            # The scenarios are over.
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=_HEAD_BYTES_MAX)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler) -> None:
    while (request := await _read(reader)) is not None:
        response = await handler(request)
        if response is None:
            _cut(writer)
            return
        # A body that announces its length without having one would be waited for.
        bodiless = request.method == "HEAD" or response.status in (204, 304)
        names = {name.lower() for name, _ in response.headers}
        length = [] if bodiless or "content-length" in names else [("content-length", str(len(response.body)))]
        head = "".join(f"{name}: {value}\r\n" for name, value in [*response.headers, *length])
        writer.write(f"HTTP/1.1 {response.status} x\r\n{head}\r\n".encode("latin-1") + response.body)
        await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    """The next request; None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = line.split(" ")
    headers = [(name, value.strip()) for name, _, value in (each.partition(":") for each in fields)]
    request = Request(method, target, headers, b"")
    if (request.header("transfer-encoding") or "").lower() == "chunked":
        return Request(method, target, headers, await _chunks(reader))
    return Request(method, target, headers, await reader.readexactly(int(request.header("content-length") or 0)))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return body


def _cut(writer: asyncio.StreamWriter) -> None:
    """Ends the connection with RST."""
    raw = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
