"""The HTTP/1.1 client: implements the callback port and the HTTP client port."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from tocsin.http_client.connection import Connector, Opened
from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.faults import NO_CONNECTION_SLOT, PROCESS_STALLED
from tocsin.http_client.in_flight import CallInFlight, Deadlines, OnceOnlyCall, RequestInFlight, RequestOutcome
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.plain import IDEMPOTENT, compose_plain
from tocsin.http_client.request import InvalidRequest, compose
from tocsin.http_client.resolver import Lookup, Resolver, SystemLookup
from tocsin.http_client.sender import Sender
from tocsin.http_client.target import InvalidUrl, Origin, Target, parse_url, secured
from tocsin.model.answer import NoResponse, NotSent, Outcome, Refused
from tocsin.ports.clock import Clock
from tocsin.ports.http import Exchange, Invocation, Request, Result, Tls

T = TypeVar("T")

#: A deadline noticed this late, relative to the timeout and at least, passed because this process was stalled.
_STALL_SHARE = 0.5
_STALL_NS_MIN = 1_000_000_000


class HttpCaller:
    """Implements `tocsin.ports.http.Caller` and `tocsin.ports.http.Requester`, with a separate connection pool for each,
    so that neither can exhaust the other's. All methods are called on one event loop's thread.

    A request costs no task once a connection to its destination is open. NoResponse codes: TIMEOUT, CONNECTION_FAILED,
    CONNECTION_CLOSED, NAME_NOT_RESOLVED, TLS_FAILED, BAD_RESPONSE, SHUTDOWN, INVALID_SECRET; and, final,
    INVALID_REQUEST. NotSent codes: see `faults`. A refused address is Refused for `invoke`, and for `send` the final
    NoResponse EGRESS_REFUSED. `signed_by` is the clock of `webhook-timestamp` if that
    is not `clock`: receivers compare it with their own. `lookup` and `tls` replace the system's resolver
    and trusted certificate authorities.
    """

    def __init__(
        self,
        limits: CallbackLimits,
        egress: EgressPolicy,
        clock: Clock,
        *,
        signed_by: Clock | None = None,
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits
        self._clock = signed_by or clock
        self._system_lookup = SystemLookup()
        self._resolver = Resolver(limits, lookup or self._system_lookup)
        self._connector = connector = Connector(self._resolver, egress, tls)
        self._timers = Sender(limits, limits.connections_max, connector, clock, self._finish)
        self._calls = Sender(limits, limits.agent_connections_max, connector, clock, self._finish)
        self._deadlines = Deadlines(limits.timeout_check_interval_us, self._expired)
        self._in_flight = self._deadlines.requests
        self._target = lru_cache(maxsize=limits.targets_cached_max)(parse_url)
        self._closed = False

    @property
    def connections(self) -> int:
        """Connections to timers' receivers, open or being opened."""
        return self._timers.connections

    @property
    def agent_connections(self) -> int:
        """Connections for requests of `send`, open or being opened."""
        return self._calls.connections

    @property
    def resolving(self) -> int:
        """Names being resolved."""
        return self._resolver.resolving

    def destination(self, url: str) -> str:
        """Scheme, host and port; `invalid:` for a URL that can't be called."""
        try:
            return self._target(url).origin.destination
        except InvalidUrl:
            return "invalid:"

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Invokes a callback; `done` gets the exchange, never from inside this call."""
        try:
            target = self._target(invocation.url)
            data = compose(invocation, target, self._clock.now_us(), self._limits)
        except (InvalidUrl, InvalidRequest) as error:
            self._refuse(done, Exchange(_invalid(error), None, 0))
            return
        head_only = invocation.method == "HEAD"
        items = 1 if invocation.items is None else len(invocation.items)
        origin = _origin(target, None if invocation.identity is None else invocation.identity.tls)
        self._begin(self._timers, RequestInFlight(origin, data, head_only, invocation.timeout_us, done, items))

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        """Sends a service call's request; `done` gets the result, never from inside this call."""
        try:
            target = self._target(request.url)
            data = compose_plain(request, target, self._clock.now_us())
        except (InvalidUrl, InvalidRequest) as error:
            self._refuse(done, Result(_invalid(error), None, 0))
            return
        kind = CallInFlight if request.method in IDEMPOTENT else OnceOnlyCall
        origin = _origin(target, request.tls)
        self._begin(self._calls, kind(origin, data, request.method == "HEAD", request.timeout_us, done))

    def _begin(self, sender: Sender, request: RequestInFlight) -> None:
        if self._closed:
            self._refuse(request.done, request.record(NoResponse("SHUTDOWN"), None, 0))
            return
        sender.send(request)
        self._deadlines.add(request)

    async def open(self, url: str, tls: Tls | None, timeout_us: int, stays_us: int = 0) -> NoResponse | NotSent | None:
        """Opens a connection to the URL's origin as a request would have, and closes it; why there is none, else None. One
        that the receiver closes within `stays_us` counts as none: in TLS 1.3, a server looks at the client's certificate
        after the client has taken the connection for open."""
        try:
            origin = _origin(self._target(url), tls)
        except InvalidUrl as error:
            return _invalid(error)
        opened = Opened()
        try:
            async with asyncio.timeout(timeout_us / 1e6):
                found = await self._connector.connect(origin, lambda: opened, time.monotonic_ns() + timeout_us * 1_000)
                if isinstance(found, (NoResponse, NotSent)):
                    return found
                return await opened.outlasts(stays_us)
        except TimeoutError:
            return NoResponse("TIMEOUT", f"no connection was established within {timeout_us / 1e6:g} s")
        finally:
            opened.abort()

    def rules_changed(self) -> None:
        """To be called after the egress policy has changed: connections that it permitted before are not used any more."""
        self._timers.rules_changed()
        self._calls.rules_changed()

    async def close(self) -> None:
        """Ends all requests as SHUTDOWN and closes all connections. Idempotent; later ones end as SHUTDOWN as well."""
        self._closed = True
        for request in list(self._in_flight):
            self._end(request, NoResponse("SHUTDOWN"))
        self._deadlines.close()
        self._resolver.close()
        self._system_lookup.close()
        await asyncio.gather(self._timers.close(), self._calls.close())

    def _expired(self, request: RequestInFlight, late_ns: int) -> None:
        timeout_s = request.timeout_ns / 1e9
        if self._sender(request).is_waiting(request):
            waited_s = self._limits.connection_wait_max_us / 1e6
            outcome: Outcome = NotSent(NO_CONNECTION_SLOT, f"no connection was free within {waited_s:g} s")
        elif request.sent_at is not None:
            outcome = NoResponse("TIMEOUT", f"no complete response within {timeout_s:g} s")
        elif late_ns >= max(request.timeout_ns * _STALL_SHARE, _STALL_NS_MIN):
            outcome = NotSent(PROCESS_STALLED, f"this process was stalled for {late_ns / 1e9:.1f} s")
        else:
            outcome = NoResponse("TIMEOUT", f"no connection was established within {timeout_s:g} s")
        self._end(request, outcome)

    def _sender(self, request: RequestInFlight) -> Sender:
        return self._calls if isinstance(request, CallInFlight) else self._timers

    def _end(self, request: RequestInFlight, outcome: Outcome) -> None:
        if not request.finished:
            request.finished = True
            self._sender(request).withdraw(request)
            self._report(request, outcome)

    def _finish(self, request: RequestInFlight, outcome: RequestOutcome) -> None:
        request.finished = True
        self._report(request, outcome)

    def _report(self, request: RequestInFlight, outcome: RequestOutcome) -> None:
        self._in_flight.discard(request)
        if isinstance(outcome, NotSent) and request.sent_at is not None:
            detail = f"the receiver closed the connection before its response; not sent again: {outcome.detail}"
            outcome = NoResponse("CONNECTION_CLOSED", detail)
        elif isinstance(outcome, Refused) and isinstance(request, CallInFlight):
            # A service call is not suspended: it fails, and whoever submitted it decides.
            outcome = NoResponse("EGRESS_REFUSED", outcome.detail, final=True)
        duration_us = (time.monotonic_ns() - request.started_ns) // 1_000
        # The connection's outcome is of the type that the request's record holds.
        _notify(request.done, request.record(outcome, request.sent_at, duration_us))  # type: ignore[arg-type]

    def _refuse(self, done: Callable[[T], None], result: T) -> None:
        asyncio.get_running_loop().call_soon(_notify, done, result)


def _origin(target: Target, tls: Tls | None) -> Origin:
    return target.origin if tls is None else secured(target.origin, tls)


def _invalid(error: InvalidUrl | InvalidRequest) -> NoResponse:
    if isinstance(error, InvalidUrl):
        return NoResponse("INVALID_REQUEST", f"the URL {error}", final=True)
    return NoResponse(error.code, str(error), error.final)


def _notify(done: Callable[[T], None], result: T) -> None:
    try:
        done(result)
    except Exception as error:  # noqa: BLE001 - the listener's error must not end the connection; the loop reports it
        asyncio.get_running_loop().call_exception_handler(
            {"message": "a callback's listener raised", "exception": error}
        )
