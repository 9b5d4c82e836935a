"""The callback port and the HTTP client port over HTTP/1.1."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from tocsin.callbacks.attempt import Answer, Attempt, Deadlines, OnceOnlyAttempt, RequestAttempt
from tocsin.callbacks.connector import Connector
from tocsin.callbacks.egress import EgressPolicy
from tocsin.callbacks.limits import CallbackLimits
from tocsin.callbacks.plain import IDEMPOTENT, compose_plain
from tocsin.callbacks.pool import Pool
from tocsin.callbacks.request import InvalidRequest, compose
from tocsin.callbacks.resolver import Lookup, Resolver, system_lookup
from tocsin.callbacks.target import InvalidUrl, parse_url
from tocsin.model.answer import NoResponse
from tocsin.ports.callback import Exchange, Ring
from tocsin.ports.clock import Clock
from tocsin.ports.http import Request, Result

T = TypeVar("T")


class HttpCaller:
    """Implements `tocsin.ports.callback.Caller` and `tocsin.ports.http.Requester` with one pool of connections. All methods
    are called on one event loop's thread.

    An attempt costs no task once a connection to its destination is open. NoResponse codes: TIMEOUT, CONNECTION_FAILED,
    CONNECTION_CLOSED, NAME_NOT_RESOLVED, TLS_FAILED, BAD_RESPONSE, SHUTDOWN, INVALID_SECRET; and, final,
    EGRESS_REFUSED and INVALID_REQUEST. `lookup` and `tls` stand in for the system's resolver and trusted authorities.
    """

    def __init__(
        self,
        limits: CallbackLimits,
        egress: EgressPolicy,
        clock: Clock,
        *,
        lookup: Lookup = system_lookup,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._resolver = Resolver(limits, lookup)
        self._pool = Pool(limits, Connector(self._resolver, egress, tls), clock, self._finish)
        self._deadlines = Deadlines(limits.deadline_interval_us, self._expired)
        self._under_way = self._deadlines.attempts
        self._target = lru_cache(maxsize=limits.targets_cached_max)(parse_url)
        self._closed = False

    def destination(self, url: str) -> str:
        """Scheme, host and port; `invalid:` for a URL that can't be called."""
        try:
            return self._target(url).origin.destination
        except InvalidUrl:
            return "invalid:"

    def ring(self, ring: Ring, done: Callable[[Exchange], None]) -> None:
        """See Caller."""
        try:
            target = self._target(ring.url)
            request = compose(ring, target, self._clock.now_us(), self._limits)
        except InvalidUrl as error:
            self._refuse(done, Exchange(_invalid(error), None, 0))
            return
        except InvalidRequest as error:
            self._refuse(done, Exchange(NoResponse(error.code, str(error), error.final), None, 0))
            return
        if self._closed:
            self._refuse(done, Exchange(NoResponse("SHUTDOWN"), None, 0))
            return
        attempt = Attempt(target.origin, request, ring.method == "HEAD", ring.timeout_us, done)
        self._deadlines.add(attempt)
        self._pool.assign(attempt)

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        """See Requester."""
        method = request.method
        try:
            target = self._target(request.url)
            data = compose_plain(request, target)
        except InvalidUrl as error:
            self._refuse(done, Result(_invalid(error), None, 0))
            return
        except InvalidRequest as error:
            self._refuse(done, Result(NoResponse(error.code, str(error), error.final), None, 0))
            return
        if self._closed:
            self._refuse(done, Result(NoResponse("SHUTDOWN"), None, 0))
            return
        kind = RequestAttempt if method in IDEMPOTENT else OnceOnlyAttempt
        attempt = kind(target.origin, data, method == "HEAD", request.timeout_us, done)
        self._deadlines.add(attempt)
        self._pool.assign(attempt)

    async def close(self) -> None:
        """See Caller. Idempotent; whatever rings later ends as SHUTDOWN too."""
        self._closed = True
        for attempt in list(self._under_way):
            self._end(attempt, NoResponse("SHUTDOWN"))
        self._deadlines.close()
        self._resolver.close()
        await self._pool.close()

    def _expired(self, attempt: Attempt) -> None:
        if attempt.connection is not None:
            detail = "there was no complete answer"
        elif attempt.task is not None:
            detail = "no connection was established"
        else:
            detail = "no connection was free"
        timeout_s = (attempt.deadline_ns - attempt.started_ns) / 1e9
        self._end(attempt, NoResponse("TIMEOUT", f"{detail} within {timeout_s:g} s"))

    def _end(self, attempt: Attempt, outcome: NoResponse) -> None:
        if not attempt.finished:
            attempt.finished = True
            self._pool.withdraw(attempt)
            self._report(attempt, outcome)

    def _finish(self, attempt: Attempt, outcome: Answer) -> None:
        attempt.finished = True
        self._report(attempt, outcome)

    def _report(self, attempt: Attempt, outcome: Answer) -> None:
        self._under_way.discard(attempt)
        duration_us = (time.monotonic_ns() - attempt.started_ns) // 1_000
        # The connection answers an attempt with what its record holds.
        _tell(attempt.done, attempt.record(outcome, attempt.sent_at, duration_us))  # type: ignore[arg-type]

    def _refuse(self, done: Callable[[T], None], result: T) -> None:
        asyncio.get_running_loop().call_soon(_tell, done, result)


def _invalid(error: InvalidUrl) -> NoResponse:
    return NoResponse("INVALID_REQUEST", f"the URL {error}", final=True)


def _tell(done: Callable[[T], None], result: T) -> None:
    try:
        done(result)
    except Exception as error:  # noqa: BLE001 - the listener's fault must not end the connection; the loop reports it
        asyncio.get_running_loop().call_exception_handler(
            {"message": "a callback's listener raised", "exception": error}
        )
