"""Sends requests with aiohttp, on connections that are kept."""

from __future__ import annotations

import asyncio
import ssl

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from tocsin_client._core.steps import Reply, Result, Send, Steps
from tocsin_client._error_bases import InvalidArgument, TransportError
from tocsin_client._forks import leave_to_parent, renew_after_fork
from tocsin_client._proxies import proxy_of
from tocsin_client._trust import is_untrusted

CONNECTIONS_PER_HOST = 64
#: Below the 75 s after which the server closes idle connections.
IDLE_S_MAX = 60.0
#: The server can't have received the request.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class AiohttpTransport:
    """Has connections of its own in each event loop that uses it. A canceled task's request ends at once."""

    def __init__(self, ssl_context: ssl.SSLContext | None, http_client: aiohttp.ClientSession | None) -> None:
        self._ssl: ssl.SSLContext | bool = True if ssl_context is None else ssl_context
        self._given = http_client
        self._is_of_the_parent = False
        #: aiohttp's belong to an event loop.
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        #: The proxy for each base URL. aiohttp itself would ask the environment in a thread for each request.
        self._proxies: dict[str, str | None] = {}
        #: Of the last request, which most others share.
        self._timeout = aiohttp.ClientTimeout()
        renew_after_fork(self)

    async def run(self, steps: Steps[Result]) -> Result:
        """Does what the steps ask for until they return or raise."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Send):
                    try:
                        outcome: Reply | TransportError = await self._send(step)
                    except TransportError as failed:
                        outcome = failed
                    step = steps.send(outcome)
                else:
                    await asyncio.sleep(step.seconds)
                    step = steps.send(None)
        except StopIteration as done:
            result: Result = done.value
            return result
        finally:
            steps.close()

    async def close(self) -> None:
        """Closes the connections, but not those of a session that was given, or of another event loop that runs."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()
        await self._close_of_ended_loops()

    def renew_in_child(self) -> None:
        """The parent goes on using its connections, and its event loop."""
        leave_to_parent(self._sessions, self._given)
        self._sessions = {}
        self._is_of_the_parent = True

    async def _send(self, step: Send) -> Reply:
        session = self._given or self._sessions.get(asyncio.get_running_loop()) or await self._opened()
        if session is self._given and self._is_of_the_parent:
            raise InvalidArgument(
                "http_client: its session was made before this process was forked; make client and session in each process"
            )
        body = None if step.body is None else _Body(step.body)
        try:
            async with session.request(
                step.method,
                step.url,
                data=body,
                headers=step.headers,
                allow_redirects=False,
                raise_for_status=False,
                ssl=self._ssl,
                proxy=self._proxy(step.base),
                timeout=self._timeout_of(step),
            ) as response:
                answer = await response.read()
        except (aiohttp.ClientError, asyncio.TimeoutError) as failed:
            why = f"{type(failed).__name__}: {failed}" if str(failed) else type(failed).__name__
            begun = not isinstance(failed, _NOT_SENT) if body is None else body.begun
            raise TransportError(
                f"{step.method} {step.url}: {why}", maybe_done=begun, final=is_untrusted(failed)
            ) from failed
        return Reply(response.status, response.headers, answer)

    def _timeout_of(self, step: Send) -> aiohttp.ClientTimeout:
        known = self._timeout
        if known.total != step.timeout_s or known.sock_connect != step.connect_timeout_s:
            known = self._timeout = aiohttp.ClientTimeout(total=step.timeout_s, sock_connect=step.connect_timeout_s)
        return known

    def _proxy(self, base: str) -> str | None:
        if self._given is not None:
            return None
        if base not in self._proxies:
            self._proxies[base] = proxy_of(base)
        return self._proxies[base]

    async def _opened(self) -> aiohttp.ClientSession:
        session = self._sessions[asyncio.get_running_loop()] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, limit_per_host=CONNECTIONS_PER_HOST, keepalive_timeout=IDLE_S_MAX),
            # Cookies are no part of the API.
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        await self._close_of_ended_loops()
        return session

    async def _close_of_ended_loops(self) -> None:
        """`asyncio.run` makes a loop for each call, such as a job of a program, or a firing that a receiver handles."""
        for loop in list(self._sessions):
            if loop.is_closed() and (session := self._sessions.pop(loop, None)) is not None:
                await session.close()


class _Body(aiohttp.BytesPayload):
    """A request's body that knows whether the server can have received something of it."""

    begun = False

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self.begun = True
        await super().write_with_length(writer, content_length)
