"""Scripted receivers, and a client that checks the port's guarantees at every call."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.http import HttpCaller
from tocsin.http_client.limits import CallbackLimits
from tocsin.ports.http import Exchange, Invocation, Request, Result
from tocsin.telemetry.clock import SystemClock

OK = b'HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"ok":true}'


class Peer:
    """One accepted connection, for a receiver's script."""

    def __init__(self, receiver: Receiver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.receiver = receiver
        self.reader = reader
        self.writer = writer
        self.number = receiver.connections
        self.requests = 0

    async def request(self) -> tuple[str, dict[str, str], bytes] | None:
        """The next request's line, headers and body; None when the client has closed."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("ascii")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        line, *rest = head[:-4].split("\r\n")
        headers = {name.lower(): value for name, _, value in (text.partition(": ") for text in rest)}
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        self.requests += 1
        self.receiver.requests.append((line, headers, body))
        return line, headers, body

    async def send(self, data: bytes) -> None:
        """Writes, and waits until the data has been sent."""
        self.writer.write(data)
        await self.writer.drain()

    async def closed_by_client(self) -> None:
        """Waits until the client closes the connection."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65_536):
                pass


Script = Callable[[Peer], Awaitable[None]]


class Receiver:
    """A server on a free port that runs a script for each connection and then closes it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.connections = 0
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.failures: list[BaseException] = []
        self.closed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""
        self.port = 0

    async def start(self, host: str, tls: ssl.SSLContext | None) -> None:
        """Listens."""
        # With a short queue the kernel drops the opening of many connections at once, to be repeated a second later.
        self._server = await asyncio.start_server(self._accept, host, 0, ssl=tls, backlog=1_024)
        self.port = self._server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http{'s' if tls else ''}://{shown}:{self.port}/hook"

    async def stop(self) -> None:
        """Ends all scripts."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self.script(Peer(self, reader, writer))
        except ConnectionError:
            pass  # The client went away in the middle, which many tests are about.
        except Exception as error:  # noqa: BLE001 - reported when the test ends
            self.failures.append(error)
        finally:
            self._tasks.discard(task)
            self.closed.set()
            writer.close()


async def keep_answering(peer: Peer) -> None:
    """A well-behaved receiver."""
    while await peer.request():
        await peer.send(OK)


def answer_with(*pieces: bytes, close: bool = False) -> Script:
    """Answers each request with these pieces, each in a separate write; optionally closes after the first."""

    async def script(peer: Peer) -> None:
        while await peer.request():
            for piece in pieces:
                await peer.send(piece)
                await asyncio.sleep(0)
            if close:
                return

    return script


def an_invocation(url: str, **changes: Any) -> Invocation:
    """An ordinary attempt with a generous timeout."""
    now_us = time.time_ns() // 1_000
    usual = Invocation(
        namespace="n",
        timer_id="t",
        execute_at=now_us,
        fired_at=now_us,
        attempt=1,
        payload=msgspec.Raw(b'{"a":1}'),
        message_id="m1",
        url=url,
        method="POST",
        headers=None,
        timeout_us=20_000_000,
        secrets=(),
        traceparent=None,
    )
    return msgspec.structs.replace(usual, **changes)


class Client:
    """An HttpCaller that checks `done`: exactly once each, and never from inside `invoke`."""

    def __init__(self, **options: Any) -> None:
        limits = options.pop("limits", None) or CallbackLimits()
        egress = options.pop("egress", None) or EgressPolicy(allow_private=True)
        self.caller = HttpCaller(limits, egress, SystemClock(), **options)
        self.broken_promises: list[str] = []
        self.begun: list[asyncio.Future[Exchange]] = []

    def begin(self, url: str, **changes: Any) -> asyncio.Future[Exchange]:
        """Starts a call with a generous timeout."""
        future: asyncio.Future[Exchange] = asyncio.get_running_loop().create_future()
        self.begun.append(future)
        invocation = an_invocation(url, **changes)
        returned = False

        def done(exchange: Exchange) -> None:
            if not returned:
                self.broken_promises.append("done was called inside invoke")
            if future.done():
                self.broken_promises.append(f"done was called again: {exchange}")
            else:
                future.set_result(exchange)

        self.caller.invoke(invocation, done)
        returned = True
        return future

    async def call(self, url: str, **changes: Any) -> Exchange:
        """Starts a call and waits for its end."""
        return await self.begin(url, **changes)


async def send(client: Client, url: str, method: str = "POST", **changes: Any) -> Result:
    """One request and its result; checks that `done` is called once, and not from inside `send`."""
    ended: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    request = Request(method, url, (), None, 20_000_000)._replace(**changes)
    client.caller.send(request, ended.set_result)
    assert not ended.done()
    return await ended


def closing_at_the_second(parting: bytes) -> Script:
    """Answers one request of the first connection, and the second with `parting`."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        if peer.number == 1:
            await peer.request()
            await peer.send(parting)
        else:
            await keep_answering(peer)

    return script
