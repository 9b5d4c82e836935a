"""Sends requests with aiohttp, on connections that are kept."""

from __future__ import annotations

import asyncio
import ssl
from types import SimpleNamespace

import aiohttp

from tocsin_client._core.steps import Reply, Result, Send, Steps
from tocsin_client._error_bases import TransportError

CONNECTIONS_PER_HOST = 64
#: Below the 75 s after which the server closes idle connections.
IDLE_S_MAX = 60.0


class AiohttpTransport:
    """For one event loop. A canceled task's request ends at once."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self._ssl: ssl.SSLContext | bool = True if ssl_context is None else ssl_context
        self._session: aiohttp.ClientSession | None = None

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
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()

    async def _send(self, step: Send) -> Reply:
        sending = _Sending()
        session = self._opened()
        try:
            async with session.request(
                step.method,
                step.url,
                data=step.body,
                headers=dict(step.headers),
                allow_redirects=False,
                ssl=self._ssl,
                timeout=aiohttp.ClientTimeout(total=step.timeout_s, sock_connect=step.connect_timeout_s),
                trace_request_ctx=sending,
            ) as response:
                body = await response.read()
        except (aiohttp.ClientError, asyncio.TimeoutError) as failed:
            why = f"{type(failed).__name__}: {failed}" if str(failed) else type(failed).__name__
            raise TransportError(f"{step.method} {step.url}: {why}", maybe_done=sending.begun) from failed
        return Reply(response.status, {name.lower(): value for name, value in response.headers.items()}, body)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            trace = aiohttp.TraceConfig()
            trace.on_request_headers_sent.append(_begin)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, limit_per_host=CONNECTIONS_PER_HOST, keepalive_timeout=IDLE_S_MAX
                ),
                # Cookies are no part of the API.
                cookie_jar=aiohttp.DummyCookieJar(),
                trace_configs=[trace],
            )
        return self._session


class _Sending:
    """Whether the server can have received something of a request."""

    begun = False


async def _begin(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx.begun = True
