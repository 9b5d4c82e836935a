"""A service that records the arrival of each request and responds after a delay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class SlowReceiver:
    """Listens on a free port. `delay_s` gets the path and returns how long the answer takes; `status` its code. Its body is
    `answer`, or that of the request.
    `arrivals` are paths with the wall clock in microseconds at which their request was complete."""

    def __init__(
        self,
        delay_s: Callable[[str], float],
        status: Callable[[str], int] = lambda path: 200,
        answer: bytes | None = None,
    ) -> None:
        self._delay_s = delay_s
        self._status = status
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.arrivals: list[tuple[str, int]] = []
        self.url = ""

    async def __aenter__(self) -> SlowReceiver:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
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
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path = head.split(" ", 2)[1]
                length = 0
                for line in head.lower().split("\r\n"):
                    if line.startswith("content-length:"):
                        length = int(line.partition(":")[2])
                body = await reader.readexactly(length)
                self.arrivals.append((path, time.time_ns() // 1_000))
                delay_s = self._delay_s(path)
                if delay_s:
                    await asyncio.sleep(delay_s)
                if self._answer is not None:
                    body = self._answer
                answer = b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n" % (self._status(path), len(body)) + body
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
