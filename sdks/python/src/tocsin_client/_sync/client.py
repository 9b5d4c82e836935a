# Made from _async/client.py by unasync.py; edit that.
"""The client."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Literal

import urllib3

from tocsin_client._sync.audit import Audit
from tocsin_client._sync.calendars import Calendars
from tocsin_client._sync.calls import Calls
from tocsin_client._sync.destinations import Destinations
from tocsin_client._sync.failures import Failures
from tocsin_client._sync.flows import Flows
from tocsin_client._sync.jobs import Jobs
from tocsin_client._sync.keys import Keys
from tocsin_client._sync.monitors import Monitors
from tocsin_client._sync.namespaces import ClusterView, Namespaces
from tocsin_client._sync.runner import Runner
from tocsin_client._sync.schedules import Schedules
from tocsin_client._sync.timers import Timers
from tocsin_client._core.session import CALL_TIMEOUT_S, Options, Session
from tocsin_client._core.tries import Try
from tocsin_client._transport_urllib3 import Urllib3Transport
from tocsin_client._values import Duration, seconds_of


class Client:
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
        http_client: urllib3.PoolManager | None = None,
    ) -> None:
        options = Options(timeout_s=seconds_of("timeout", timeout), retries=retries)
        session = Session(url, key, options, routing=routing, on_request=on_request, on_try=on_try)
        self._use(Runner(session, Urllib3Transport(ssl_context, http_client), options))

    def _use(self, runner: Runner) -> None:
        self._runner = runner
        self.timers: Timers = Timers(runner)
        self.schedules: Schedules = Schedules(runner)
        self.failures: Failures = Failures(runner)
        self.jobs: Jobs = Jobs(runner)
        self.namespaces: Namespaces = Namespaces(runner)
        self.flows: Flows = Flows(runner)
        self.calendars: Calendars = Calendars(runner)
        self.monitors: Monitors = Monitors(runner)
        self.destinations: Destinations = Destinations(runner)
        self.keys: Keys = Keys(runner)
        self.audit: Audit = Audit(runner)
        self.cluster: ClusterView = ClusterView(runner)

    def calls(self, tenant_id: str) -> Calls:
        """The service calls of this tenant."""
        return Calls(self._runner, tenant_id)

    def with_options(self, *, timeout: Duration | None = None, retries: int | None = None) -> Client:
        """This client with other limits. It shares the connections, and is closed with it."""
        options = self._runner.options
        options = Options(
            timeout_s=options.timeout_s if timeout is None else seconds_of("timeout", timeout),
            retries=options.retries if retries is None else retries,
        )
        view = object.__new__(type(self))
        view._use(replace(self._runner, options=options))
        return view

    def close(self) -> None:
        """Closes the connections."""
        self._runner.transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
