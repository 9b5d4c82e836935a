"""The client."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Literal

import aiohttp

from tocsin_client._async.audit import AsyncAudit
from tocsin_client._async.calendars import AsyncCalendars
from tocsin_client._async.calls import AsyncCalls
from tocsin_client._async.destinations import AsyncDestinations
from tocsin_client._async.failures import AsyncFailures
from tocsin_client._async.flows import AsyncFlows
from tocsin_client._async.jobs import AsyncJobs
from tocsin_client._async.keys import AsyncKeys
from tocsin_client._async.monitors import AsyncMonitors
from tocsin_client._async.namespaces import AsyncClusterView, AsyncNamespaces
from tocsin_client._async.runner import Runner
from tocsin_client._async.schedules import AsyncSchedules
from tocsin_client._async.timers import AsyncTimers
from tocsin_client._core.session import CALL_TIMEOUT_S, Options, Session
from tocsin_client._core.tries import Try
from tocsin_client._transport_aiohttp import AiohttpTransport
from tocsin_client._values import Duration, seconds_of


class AsyncClient:
    """Speaks to a Tocsin server, or to any node of a cluster. Make one for the whole program: it keeps connections, and
    closes them at the end of a `with` statement or by `close`.

    Each call takes at most `timeout`, with all its retries. There are as many as fit, or at most `retries`; 0 means none.
    `routing="owners"` sends writes to the nodes that store them, if the client can reach the nodes themselves. `on_request`
    gets the headers of each request and may add to them. `on_try` gets each try with its outcome; an exception of it is
    logged, and the call goes on.

    Requests go through the proxy that the environment names, as in HTTPS_PROXY. Or they are sent by the `http_client` that
    you give, with its limits and proxies; you close it yourself. InvalidArgument: an argument is wrong.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: Duration = CALL_TIMEOUT_S,
        retries: int | None = None,
        routing: Literal["owners"] | None = None,
        on_request: Callable[[dict[str, str]], None] | None = None,
        on_try: Callable[[Try], None] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        http_client: aiohttp.ClientSession | None = None,
    ) -> None:
        options = Options(timeout_s=seconds_of("timeout", timeout), retries=retries)
        session = Session(url, key, options, routing=routing, on_request=on_request, on_try=on_try)
        self._use(Runner(session, AiohttpTransport(ssl_context, http_client), options))

    def _use(self, runner: Runner) -> None:
        self._runner = runner
        self.timers: AsyncTimers = AsyncTimers(runner)
        self.schedules: AsyncSchedules = AsyncSchedules(runner)
        self.failures: AsyncFailures = AsyncFailures(runner)
        self.jobs: AsyncJobs = AsyncJobs(runner)
        self.namespaces: AsyncNamespaces = AsyncNamespaces(runner)
        self.flows: AsyncFlows = AsyncFlows(runner)
        self.calendars: AsyncCalendars = AsyncCalendars(runner)
        self.monitors: AsyncMonitors = AsyncMonitors(runner)
        self.destinations: AsyncDestinations = AsyncDestinations(runner)
        self.keys: AsyncKeys = AsyncKeys(runner)
        self.audit: AsyncAudit = AsyncAudit(runner)
        self.cluster: AsyncClusterView = AsyncClusterView(runner)

    def calls(self, tenant_id: str) -> AsyncCalls:
        """The service calls of this tenant."""
        return AsyncCalls(self._runner, tenant_id)

    def with_options(self, *, timeout: Duration | None = None, retries: int | None = None) -> AsyncClient:
        """This client with other limits. It shares the connections, and is closed with it."""
        options = self._runner.options
        options = Options(
            timeout_s=options.timeout_s if timeout is None else seconds_of("timeout", timeout),
            retries=options.retries if retries is None else retries,
        )
        view = object.__new__(type(self))
        view._use(replace(self._runner, options=options))
        return view

    async def close(self) -> None:
        """Closes the connections."""
        await self._runner.transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
