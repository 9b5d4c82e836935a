"""Bytes to a server and bytes back, for what no well-behaved client sends."""

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
    """An answer taken apart; `headers` by lower-case name."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        """The body, which has to be a complete problem."""
        assert self.headers["content-type"] == "application/problem+json", self
        problem = json.loads(self.body)
        assert problem.keys() >= {"type", "title", "status", "detail", "instance", "error", "message", "timestamp"}
        assert problem["status"] == self.status
        assert problem["correlationId"] == self.headers["x-correlation-id"]
        return dict(problem)


async def say(address: tuple[str, int], sent: bytes, timeout_s: float = PATIENCE_S) -> RawAnswer:
    """The answer to the bytes sent; the connection has to be closed by the server after it, and may be before all was
    sent."""
    return await asyncio.to_thread(_say, address, sent, timeout_s)


def _say(address: tuple[str, int], sent: bytes, timeout_s: float) -> RawAnswer:
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
    """What the server sends to a client that says nothing, until it closes."""
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(*address)
        try:
            return await reader.read()
        finally:
            writer.close()
