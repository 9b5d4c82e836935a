"""Publishes timers to NATS. JetStream's acknowledgement that a stream has stored the message is the outcome."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from itertools import count

import msgspec
import structlog
from nats.aio.msg import Msg

from tocsin.http_client.in_flight import Deadlines
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.request import (
    TRACEPARENT,
    InvalidRequest,
    body_of,
    check_headers,
    envelope_headers,
    signature_of,
)
from tocsin.messaging.limits import BusLimits
from tocsin.messaging.nats.connection import NatsConnection, parse_nats_address
from tocsin.model.answer import EGRESS_REFUSED, NoResponse, Outcome, Refused, Response
from tocsin.model.errors import ConfigError
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.retry import backoff_us
from tocsin.model.subjects import SCHEME, SubjectTargets, subject_of
from tocsin.model.timer import JSON_TYPE
from tocsin.model.validation import folded
from tocsin.ports.bus import BrokerRefused, BusUnavailable
from tocsin.ports.clock import Clock
from tocsin.ports.http import Exchange, Invocation
from tocsin.tasks import end_tasks

_NAME = "tocsin timers"
#: What a stored message stands for.
_STORED = Response(200)
#: How often the sockets are polled before a message expires. All share one connection, whose acknowledgements the client
#: reads in pieces, of some hundreds each: so many polls read those of all slots.
_POLLS_BEFORE_EXPIRY = 12


class _Refusal(msgspec.Struct):
    err_code: int = 0
    description: str = ""


class _Acknowledgement(msgspec.Struct):
    stream: str = ""
    seq: int = 0
    error: _Refusal | None = None


_decode = msgspec.json.Decoder(_Acknowledgement).decode


class _InFlight:
    """A message without an acknowledgement yet."""

    __slots__ = ("deadline_ns", "done", "sent_at", "since_ns", "token")

    def __init__(self, token: str, done: Callable[[Exchange], None], sent_at: int, timeout_us: int) -> None:
        self.token = token
        self.done = done
        self.sent_at = sent_at
        self.since_ns = time.monotonic_ns()
        self.deadline_ns = self.since_ns + timeout_us * 1_000


class NatsCaller:
    """A `tocsin.ports.http.Caller` for `nats://subject`. All methods are called on one event loop's thread.

    A timer becomes one message: the envelope, or the timer's own body; the headers of a callback, and `Nats-Msg-Id` with the
    `webhook-id`, by which a stream drops a repeated attempt within its duplicate window. A stored message counts as
    answered 200. NoResponse codes: TIMEOUT, CONNECTION_FAILED, CONNECTION_CLOSED, NO_STREAM, NATS_REFUSED,
    BAD_RESPONSE, SHUTDOWN, INVALID_SECRET; and, final, INVALID_REQUEST. What the settings forbid is Refused.

    The connection is its own, and replaced when it is lost. It is made by the first timer that needs it.
    """

    def __init__(
        self, url: str, targets: SubjectTargets, limits: BusLimits, callback_limits: CallbackLimits, clock: Clock
    ) -> None:
        self._address = parse_nats_address(url, "nats_url")
        self._targets = targets
        self._limits = limits
        self._callback_limits = callback_limits
        self._clock = clock
        self._connection: NatsConnection | None = None
        self._inbox = ""
        self._tokens = count()
        self._in_flight: dict[str, _InFlight] = {}
        self._deadlines: Deadlines[_InFlight] = Deadlines(
            callback_limits.timeout_check_interval_us, self._expired, _POLLS_BEFORE_EXPIRY
        )
        #: What waits for the connection that is being made: how each goes on.
        self._waiting: list[tuple[Invocation, Callable[[Exchange], None]]] = []
        self._connecting: asyncio.Task[None] | None = None
        self._former: set[asyncio.Task[None]] = set()
        self._failures = 0
        # Before that (event loop's time) it is not connected to again; until then its last error answers.
        self._again_at = 0.0
        self._last_error = ""
        self._closed = False
        self._log = structlog.get_logger("tocsin.targets")

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as the client knows."""
        return self._connection is not None and self._connection.alive

    @property
    def in_flight(self) -> int:
        """Messages without an acknowledgement yet."""
        return len(self._in_flight) + len(self._waiting)

    def destination(self, url: str) -> str:
        """The scheme and the first token of the subject: what shares a stream usually shares it."""
        return f"{SCHEME}{subject_of(url).partition('.')[0]}"

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Publishes the timer; `done` gets the exchange, never from inside this call."""
        if self._closed:
            self._answer_soon(done, NoResponse("SHUTDOWN"))
        elif reason := self._targets.refusal(invocation.url, invocation.namespace):
            self._answer_soon(done, Refused(EGRESS_REFUSED, f"the URL {reason}"))
        elif self._connection is not None:
            self._send(self._connection, invocation, done)
        elif asyncio.get_running_loop().time() < self._again_at:
            self._answer_soon(done, NoResponse("CONNECTION_FAILED", self._last_error))
        else:
            self._waiting.append((invocation, done))
            if self._connecting is None:
                self._connecting = asyncio.get_running_loop().create_task(self._connect(), name="nats targets")

    async def close(self) -> None:
        """Ends all messages in flight as SHUTDOWN and closes the connection. Idempotent."""
        self._closed = True
        self._deadlines.close()
        await end_tasks(*([] if self._connecting is None else [self._connecting]), *self._former)
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        self._fail_all(NoResponse("SHUTDOWN"))

    # ------------------------------------------------------------------ the connection

    async def _connect(self) -> None:
        connection = NatsConnection(self._address, self._limits, _NAME, self._lost)
        try:
            await connection.open()
            self._inbox = connection.new_inbox()
            await connection.listen(f"{self._inbox}.*", self._acknowledged)
            await connection.synchronize()
        except (BusUnavailable, BrokerRefused, ConfigError, TimeoutError) as error:
            await connection.close()
            self._failed(str(error) or "NATS did not answer in time")
        except asyncio.CancelledError:
            await connection.close()
            raise
        else:
            self._failures, self._connection = 0, connection
            self._log.info("nats connected", server=str(self._address))
            waiting, self._waiting = self._waiting, []
            for invocation, done in waiting:
                self._send(connection, invocation, done)
        finally:
            self._connecting = None

    def _failed(self, reason: str) -> None:
        limits = self._limits
        self._failures += 1
        pause_us = backoff_us(self._failures, limits.nats_reconnect_initial_us, limits.nats_reconnect_max_us)
        self._again_at = asyncio.get_running_loop().time() + pause_us * random.uniform(0.5, 1.0) / 1e6
        if reason != self._last_error or self._failures == 1:
            self._log.warning("nats unreachable", server=str(self._address), error=reason)
        self._last_error = reason
        waiting, self._waiting = self._waiting, []
        for _, done in waiting:
            self._report(done, Exchange(NoResponse("CONNECTION_FAILED", reason), None, 0))

    def _lost(self, reason: str) -> None:
        connection, self._connection = self._connection, None
        if connection is None or self._closed:
            # It was lost while it was being made, which reports that itself.
            return
        self._log.warning("nats connection lost", server=str(self._address), error=reason)
        closing = asyncio.get_running_loop().create_task(connection.close(), name="nats targets")
        self._former.add(closing)
        closing.add_done_callback(self._former.discard)
        self._fail_all(NoResponse("CONNECTION_CLOSED", f"the connection to NATS ended: {reason}"))

    def _fail_all(self, outcome: NoResponse) -> None:
        in_flight, self._in_flight = self._in_flight, {}
        waiting, self._waiting = self._waiting, []
        for each in in_flight.values():
            self._finish(each, outcome)
        for _, done in waiting:
            self._report(done, Exchange(outcome, None, 0))

    # ------------------------------------------------------------------ messages

    def _send(self, connection: NatsConnection, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        now_us = self._clock.now_us()
        try:
            headers, body = compose_message(invocation, now_us, self._callback_limits)
        except InvalidRequest as error:
            self._answer_soon(done, NoResponse(error.code, str(error), error.final))
            return
        if len(body) > connection.payload_bytes_max:
            reason = f"the message has {len(body)} bytes; the NATS server accepts {connection.payload_bytes_max}"
            self._answer_soon(done, NoResponse("INVALID_REQUEST", reason, final=True))
            return
        token = str(next(self._tokens))
        sent = self._in_flight[token] = _InFlight(token, done, now_us, invocation.timeout_us)
        self._deadlines.add(sent)
        connection.send(subject_of(invocation.url), body, f"{self._inbox}.{token}", headers)

    def _acknowledged(self, message: Msg) -> None:
        sent = self._in_flight.pop(message.subject.rpartition(".")[2], None)
        if sent is not None:
            self._finish(sent, _outcome(message))

    def _expired(self, sent: _InFlight, _: int) -> None:
        del self._in_flight[sent.token]
        timeout_s = (sent.deadline_ns - sent.since_ns) / 1e9
        self._finish(sent, NoResponse("TIMEOUT", f"NATS acknowledged nothing within {timeout_s:g} s"))

    def _finish(self, sent: _InFlight, outcome: Outcome) -> None:
        self._deadlines.requests.discard(sent)
        duration_us = (time.monotonic_ns() - sent.since_ns) // 1_000
        self._report(sent.done, Exchange(outcome, sent.sent_at, duration_us))

    def _answer_soon(self, done: Callable[[Exchange], None], outcome: Outcome) -> None:
        asyncio.get_running_loop().call_soon(self._report, done, Exchange(outcome, None, 0))

    def _report(self, done: Callable[[Exchange], None], exchange: Exchange) -> None:
        try:
            done(exchange)
        except Exception as error:  # noqa: BLE001 -- the listener's error must not end the connection; the loop reports it
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a callback's listener raised", "exception": error}
            )


def compose_message(invocation: Invocation, now_us: int, limits: CallbackLimits) -> tuple[dict[str, str], bytes]:
    """Headers and body of the message. `now_us`, wall clock, becomes the `webhook-timestamp`. Raises InvalidRequest."""
    body = body_of(invocation)
    headers = {"content-type": JSON_TYPE if invocation.body is None else invocation.body.content_type}
    if invocation.headers:
        if reasons := check_headers(invocation.headers, limits):
            raise InvalidRequest("headers: " + "; ".join(reasons))
        if any(folded(name) == "content-type" for name in invocation.headers):
            headers = {}
        headers |= invocation.headers
    if invocation.body is not None and not invocation.event:
        headers |= dict(envelope_headers(invocation))
    timestamp_s = now_us // US_PER_SECOND
    headers |= {
        "Nats-Msg-Id": invocation.message_id,
        "webhook-id": invocation.message_id,
        "webhook-timestamp": str(timestamp_s),
    }
    if invocation.secrets:
        headers["webhook-signature"] = signature_of(invocation, timestamp_s, body)
    trace = invocation.traceparent
    if trace is not None and TRACEPARENT.fullmatch(trace):
        headers.setdefault("traceparent", trace)
    return headers, body


def _outcome(message: Msg) -> Outcome:
    if not message.data:
        # The server itself answers where nobody listens to the subject.
        return NoResponse("NO_STREAM", "no stream takes the subject, or JetStream is not ready")
    try:
        answer = _decode(message.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return NoResponse("BAD_RESPONSE", f"unreadable acknowledgement from NATS: {error}")
    if answer.error is not None:
        return NoResponse("NATS_REFUSED", f"{answer.error.description} ({answer.error.err_code})")
    if answer.stream and answer.seq:
        return _STORED
    return NoResponse(
        "BAD_RESPONSE", "a subscriber of the subject has replied, and no stream has acknowledged the message"
    )
