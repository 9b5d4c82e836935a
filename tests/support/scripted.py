"""A webhook receiver with a script of responses for each path."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tests.support.patience import PATIENCE_S


@dataclass(frozen=True)
class Reply:
    """A response, sent when `until` is set. Status 0 closes the connection instead, -1 never responds."""

    status: int
    body: bytes = b""
    headers: tuple[str, ...] = ()
    until: asyncio.Event | None = None


@dataclass(frozen=True)
class Arrival:
    """A request as it came; `arrived_at` in microseconds of this machine's clock, `body` {} when there was none, or it was
    no JSON object."""

    method: str
    headers: dict[str, str]
    body: dict[str, Any]
    arrived_at: int
    raw: bytes


Script = Sequence[Reply | Callable[[], Reply]]


class ScriptedReceiver:
    """Listens on a free port. The last response of a script repeats; a path without a script gets 200."""

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self._scripts = scripts
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.arrived = asyncio.Condition()
        self.calls: dict[str, list[Arrival]] = defaultdict(list)
        self.connections = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=256)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def url(self, name: str) -> str:
        """The callback URL of that script."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/{name}"

    async def count(self, name: str, number: int, timeout_s: float = PATIENCE_S) -> list[Arrival]:
        """The script's received requests, once there are this many."""
        async with asyncio.timeout(timeout_s), self.arrived:
            await self.arrived.wait_for(lambda: len(self.calls[name]) >= number)
        return self.calls[name]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # The caller is done with the connection.
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = first.split(" ")
        parted = [line.partition(":") for line in lines if line]
        headers = {name.lower(): value.strip() for name, _, value in parted}
        assert len(headers) == len(parted), f"a header came twice: {lines}"
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        calls, script = self.calls[path[1:]], self._scripts.get(path[1:], (Reply(200),))
        calls.append(Arrival(method, headers, _object(raw), time.time_ns() // 1_000, raw))
        async with self.arrived:
            self.arrived.notify_all()
        step = script[min(len(calls), len(script)) - 1]
        reply = step if isinstance(step, Reply) else step()
        if reply.until is not None:
            await reply.until.wait()
        if reply.status == -1:
            await reader.read()
        if reply.status <= 0:
            return False
        lines = [f"HTTP/1.1 {reply.status} X", *reply.headers]
        if reply.status != 204:
            lines.append(f"content-length: {len(reply.body)}")
        writer.write("\r\n".join((*lines, "", "")).encode() + reply.body)
        await writer.drain()
        return True


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw) if raw else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
