"""One call: tries, deadlines, retries, and which node is asked."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal
from urllib.parse import quote, urlencode

from tocsin_client._core.addresses import base_of, key_of
from tocsin_client._core.answers import error_of
from tocsin_client._core.retries import RetryBudget, is_repeated, maybe_done, retry_delay
from tocsin_client._core.routing import Place, Router
from tocsin_client._core.steps import Reply, Send, Sleep, Steps
from tocsin_client._core.tries import Try, is_reported, report
from tocsin_client._error_bases import ApiError, DeadlineExceeded, InvalidArgument, TransportError
from tocsin_client._generated.operations import OPERATIONS
from tocsin_client._values import JsonValue, encode, format_duration, parse_duration
from tocsin_client._version import __version__

CONNECT_TIMEOUT_S = 2.0
#: Longer than the server's own 10 s, so that its 503 arrives, which means more than a timeout.
TRY_TIMEOUT_S = 15.0
CALL_TIMEOUT_S = 30.0


@dataclass(slots=True)
class Call:
    """A request as it is meant, whatever number of tries it takes."""

    operation: str
    body: Mapping[str, JsonValue] | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Headers of the first try only.
    first_headers: Mapping[str, str] = field(default_factory=dict)
    #: Whether it may be repeated after a try that may have been executed.
    safe: bool = True
    #: The timer that it writes, if its owner may be asked directly.
    place: Place | None = None


@dataclass(frozen=True)
class Options:
    """Limits of one call."""

    timeout_s: float = CALL_TIMEOUT_S
    #: None: until the time is over.
    retries: int | None = None

    def __post_init__(self) -> None:
        if not self.timeout_s > 0:
            raise InvalidArgument(f"timeout: {self.timeout_s!r} is not greater than zero; give seconds")
        if self.retries is not None and not self.retries >= 0:
            raise InvalidArgument(f"retries: {self.retries!r} is negative; 0 means none")

    def allow(self, retry: int) -> bool:
        """Whether the given retry, counted from 0, is one of those that may be made."""
        return self.retries is None or retry < self.retries


@dataclass
class Tries:
    """What became of a call's tries so far."""

    #: Whether one of the failed ones may have been executed.
    maybe_done: bool = False


class Session:
    """What all calls of a client share. Time and randomness are injected by tests."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        options: Options | None = None,
        routing: Literal["owners"] | None = None,
        on_request: Callable[[dict[str, str]], None] | None = None,
        on_try: Callable[[Try], None] | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        if routing not in (None, "owners"):
            raise InvalidArgument(f"routing: {routing!r} is unknown; use 'owners', or leave it out")
        self.url: str = base_of(url)
        self.options: Options = options or Options()
        self.budget: RetryBudget = RetryBudget()
        self.router: Router | None = Router(self.url, monotonic, uniform) if routing == "owners" else None
        self.on_request = on_request
        self.on_try = on_try
        self.monotonic = monotonic
        self.now = now
        self.uniform = uniform
        self._headers = {"accept": "application/json", "user-agent": f"tocsin-client-python/{__version__}"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key_of(key)}"

    def perform(self, call: Call, options: Options | None = None, tries: Tries | None = None) -> Steps[Reply]:
        """Repeats the call until it is answered 2xx; raises the last try's ApiError or TransportError otherwise."""
        limits, tries = options or self.options, tries or Tries()
        started = self.monotonic()
        deadline = started + limits.timeout_s
        base = self.url
        if self.router is not None and call.place is not None:
            base = yield from self.router.base_for(call.place, self.read)
        retry = paid = 0
        while True:
            began = self.monotonic()
            reply = yield self._request(call, base, retry, elapsed_s=began - started, left_s=deadline - began)
            ended = self.monotonic()
            if self.router is not None and call.place is not None:
                self.router.observe(base, reply)
            if isinstance(reply, Reply) and 200 <= reply.status < 300:
                self.budget.earn(paid, retry)
                self._report(call, retry, reply, ended - began, None)
                return reply
            assert reply is not None
            error = error_of(reply) if isinstance(reply, Reply) else reply
            tries.maybe_done = tries.maybe_done or maybe_done(error)
            pause_s = self._pause(call, error, retry, limits, deadline - ended)
            if pause_s is not None and maybe_done(error):
                if self.budget.spend():
                    paid += 1
                else:
                    pause_s = None
            self._report(call, retry, error, ended - began, pause_s)
            if isinstance(error, TransportError) and ended >= deadline:
                message = f"no answer within the call's {limits.timeout_s:g} s: {error}"
                raise DeadlineExceeded(message, maybe_done=tries.maybe_done) from error
            if pause_s is None:
                raise error
            yield Sleep(pause_s)
            retry += 1
            base = self.url

    def _pause(
        self, call: Call, error: ApiError | TransportError, retry: int, limits: Options, left_s: float
    ) -> float | None:
        """Seconds before the next try; None: there is none."""
        if not limits.allow(retry) or not is_repeated(error) or (maybe_done(error) and not call.safe):
            return None
        return retry_delay(retry, error.retry_after if isinstance(error, ApiError) else None, left_s, self.uniform)

    def _report(
        self, call: Call, retry: int, outcome: Reply | ApiError | TransportError, seconds: float, pause_s: float | None
    ) -> None:
        if is_reported(self.on_try):
            status = None if isinstance(outcome, TransportError) else outcome.status
            code = outcome.code or None if isinstance(outcome, ApiError) else None
            error = str(outcome) if isinstance(outcome, TransportError) else None
            report(Try(call.operation, retry + 1, status, code, error, seconds, pause_s), self.on_try)

    def read(self, call: Call) -> Steps[Reply | ApiError | TransportError]:
        """One short try of a read whose failure changes no call's result."""
        reply = yield self._request(call, self.url, 0, 0.0, CONNECT_TIMEOUT_S)
        assert reply is not None
        return error_of(reply) if isinstance(reply, Reply) and reply.status >= 400 else reply

    def _request(self, call: Call, base: str, retry: int, elapsed_s: float, left_s: float) -> Send:
        operation = OPERATIONS[call.operation]
        target = operation.path
        if call.path:
            target = target.format_map({name: quote(value, safe="") for name, value in call.path.items()})
        if call.query:
            target = f"{target}?{urlencode(call.query, doseq=True)}"
        headers = {**self._headers, **call.headers}
        if retry == 0:
            headers.update(call.first_headers)
        body = None
        if call.body is not None:
            headers["content-type"] = "application/json"
            body = encode(remaining(call.body, elapsed_s) if retry else call.body)
        if self.on_request is not None:
            self.on_request(headers)
        left_s = max(left_s, 0.001)
        return Send(
            operation.method, base, target, headers, body, min(CONNECT_TIMEOUT_S, left_s), min(TRY_TIMEOUT_S, left_s)
        )


def remaining(body: Mapping[str, JsonValue], elapsed_s: float) -> Mapping[str, JsonValue]:
    """The body with what is left of its delay, so that a retry means the same instant. A batch's timers, too."""
    timers = body.get("timers")
    if isinstance(timers, list):
        return {**body, "timers": [remaining(each, elapsed_s) for each in timers]}
    delay = body.get("delay")
    if not isinstance(delay, str):
        return body
    try:
        left = parse_duration(delay) - timedelta(seconds=elapsed_s)
    except ValueError:
        return body  # the server reports what is wrong with it
    return {**body, "delay": format_duration(max(left, timedelta()))}
