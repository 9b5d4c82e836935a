"""Raw bytes to and from a server, for requests that no HTTP library sends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from dataclasses import dataclass
from typing import Any

from tests.support.patience import PATIENCE_S


@dataclass
class RawAnswer:
    """A parsed response; `headers` by lower-case name."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        """The body, which must be a complete problem document."""
        assert self.headers["content-type"] == "application/problem+json", self
        problem = json.loads(self.body)
        assert problem.keys() >= {"type", "title", "status", "detail", "instance", "error", "message", "timestamp"}
        assert problem["status"] == self.status
        assert problem["correlationId"] == self.headers["x-correlation-id"]
        return dict(problem)


async def exchange(address: tuple[str, int], sent: bytes, timeout_s: float = PATIENCE_S) -> RawAnswer:
    """The response to the bytes sent. The server must close the connection after it, possibly before all bytes are sent."""
    return await asyncio.to_thread(_exchange, address, sent, timeout_s)


def _exchange(address: tuple[str, int], sent: bytes, timeout_s: float) -> RawAnswer:
    # A plain socket: what was received stays readable after sending has failed.
    received = b""
    with socket.create_connection(address, timeout_s) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(sent)
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65_536):
                received += part
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return RawAnswer(int(first.split(" ")[1]), headers, body)


async def closed(address: tuple[str, int], timeout_s: float = PATIENCE_S) -> bytes:
    """The data that the server sends to a silent client until it closes the connection."""
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(*address)
        try:
            return await reader.read()
        finally:
            writer.close()
