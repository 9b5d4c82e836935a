"""A small HTTP/1.1 server for callbacks, on asyncio and httptools, so that a receiver on the same machine is cheap; and the
receiver of `tocsin echo`, which responds as configured, and prints what it receives."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

import httptools
import msgspec
import typer

from tocsin.cli import output
from tocsin.cli.command import Refused
from tocsin.model.instants import format_instant, parse_instant

#: Limit of a request's body, far above the default payload limit of 100 KiB; beyond it the connection is aborted.
BODY_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReceivedCallback:
    """A received request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ReceiverResponse:
    """The response, sent `delay_s` after the request arrived."""

    status: int = 200
    body: bytes = b""
    delay_s: float = 0.0


class Receiver:
    """Listens while it is open, and responds to every request with what `handle` returns."""

    def __init__(self, handle: Callable[[ReceivedCallback], ReceiverResponse]) -> None:
        self.handle = handle
        self.connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self, host: str, port: int) -> None:
        """Starts to listen; port 0 takes a free one, which `url` names. Raises Refused if the address is not available."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Connection(self), host, port, backlog=1_024)
        except OSError as error:
            raise Refused(f"can't listen on {host}:{port}: {error.strerror or error}; choose another --port") from error
        address = self._server.sockets[0].getsockname()
        self.url = f"http://[{host}]:{address[1]}" if ":" in host else f"http://{host}:{address[1]}"

    async def stop(self) -> None:
        """Closes the port and all connections."""
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.close()
            await self._server.wait_closed()
            self._server = None


class _Connection(asyncio.Protocol):
    """Responds in the order of the requests, even if a later response is ready first."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[ReceiverResponse, bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._begin()

    def _begin(self) -> None:
        self._path = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, not a check: uvloop's transports have the methods but not the base class.
        self._transport = cast(asyncio.Transport, transport)
        self._receiver.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._receiver.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._transport.close()
        except httptools.HttpParserError:
            self._transport.write(_head(400, 0, keep_alive=False))
            self._transport.close()

    # -- httptools

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > BODY_BYTES_MAX:
            self._transport.abort()
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        callback = ReceivedCallback(
            self._parser.get_method().decode(), self._path.decode("latin-1"), self._headers, b"".join(self._body)
        )
        keep_alive = self._parser.should_keep_alive()
        self._begin()
        self._waiting.append((self._receiver.handle(callback), keep_alive))
        if len(self._waiting) == 1:
            self._next()

    # -- answers

    def _next(self) -> None:
        while self._waiting and self._timer is None:
            delay_s = self._waiting[0][0].delay_s
            if delay_s > 0:
                self._timer = self._loop.call_later(delay_s, self._later)
            else:
                self._send(*self._waiting.popleft())

    def _later(self) -> None:
        self._timer = None
        self._send(*self._waiting.popleft())
        self._next()

    def _send(self, answer: ReceiverResponse, keep_alive: bool) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(_head(answer.status, len(answer.body), keep_alive=keep_alive) + answer.body)
        if not keep_alive:
            self._transport.close()

    def close(self) -> None:
        """Aborts the connection."""
        self._transport.abort()


def _head(status: int, length: int, *, keep_alive: bool) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    kind = "content-type: application/json\r\n" if length else ""
    end = "" if keep_alive else "connection: close\r\n"
    return f"HTTP/1.1 {status} {phrase}\r\n{kind}content-length: {length}\r\n{end}\r\n".encode()


PAYLOAD_CHARS_MAX = 60
#: Timers whose reschedules are counted for --times; the least recently received one is dropped first.
COUNTED_TIMERS_MAX = 100_000


#: A callback of a sender that goes by this machine's clock arrives within this time after it was fired.
_SAME_CLOCK_US = 60_000_000


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How callbacks are answered. With a `fail_rate`, that share gets `status` and the rest 200; else all get `status`."""

    delay_s: float
    fail_rate: float | None
    status: int
    reschedule_us: int | None
    times: int | None


def listen(host: str, port: int, behaviour: Behaviour, *, quiet: bool, as_json: bool) -> None:
    """Receives until SIGINT or SIGTERM."""
    import uvloop

    printer = RatePrinter(as_json) if quiet else CallbackPrinter(as_json)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_listen(host, port, Echo(behaviour, printer)))


async def _listen(host: str, port: int, answering: Echo) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    receiver = Receiver(answering)
    await receiver.start(host, port)
    output.note(f"Listening on {receiver.url}. Try: tocsin timers create {receiver.url}/ --in 2s")
    ticking = asyncio.create_task(answering.printer.tick())
    await ended.wait()
    ticking.cancel()
    await receiver.stop()
    output.note(f"Received {answering.printer.count:,} callbacks.")


class CallbackPrinter:
    """A line for each callback."""

    def __init__(self, as_json: bool) -> None:
        self.count = 0
        self._as_json = as_json

    async def tick(self) -> None:
        """Does nothing: nothing is printed periodically."""

    def __call__(self, callback: ReceivedCallback, body: dict[str, Any], lag_us: int | None, status: int) -> None:
        """Prints a line."""
        self.count += 1
        if self._as_json:
            shown = {"lagMs": None if lag_us is None else lag_us / 1e3, "answered": status, "headers": callback.headers}
            came = body if "timerId" in body else {"method": callback.method, "body": _text(callback)}
            output.print_json({"path": callback.path, **came, **shown})
            return
        parts = [(time.strftime("%H:%M:%S  "), "dim")]
        # Not a timer's callback but, for example, a service call: only the request itself is known.
        plain = "timerId" not in body
        name = f"{callback.method} {callback.path}" if plain else f"{body.get('namespace')}/{body['timerId']}"
        parts.append((name, "bold"))
        if lag_us is not None:
            parts.append((f"  {lag_us / 1e3:+,.1f} ms", "red" if lag_us < 0 else "green"))
        if "attempt" in body:
            parts.append((f"  attempt {body['attempt']}", ""))
        parts.append((f"  → {status}", "" if status < 300 else "yellow"))
        payload = " ".join(_text(callback).split()) if plain else output.compact(body.get("payload"))
        if payload:
            cut = payload if len(payload) <= PAYLOAD_CHARS_MAX else payload[: PAYLOAD_CHARS_MAX - 1] + "…"
            parts.append((f"  {cut}", ""))
        output.print_line(parts)


class RatePrinter:
    """A line per second, while callbacks arrive."""

    def __init__(self, as_json: bool) -> None:
        self.count = 0
        self._as_json = as_json
        self._lags_us: list[int] = []

    def __call__(self, callback: ReceivedCallback, body: dict[str, Any], lag_us: int | None, status: int) -> None:
        """Counts it."""
        self.count += 1
        if lag_us is not None:
            self._lags_us.append(lag_us)

    async def tick(self) -> None:
        """Prints until it is cancelled."""
        before, started = 0, time.monotonic()
        while True:
            await asyncio.sleep(1)
            now = time.monotonic()
            rate, before, started = (self.count - before) / (now - started), self.count, now
            lags, self._lags_us = sorted(self._lags_us), []
            if not rate:
                continue
            middle, late = (lags[len(lags) // 2] / 1e3, lags[len(lags) * 99 // 100] / 1e3) if lags else (0.0, 0.0)
            if self._as_json:
                output.print_json({"ratePerSecond": round(rate), "lagMsP50": middle, "lagMsP99": late, "total": before})
            else:
                typer.echo(f"{rate:>9,.0f}/s  lag p50 {middle:,.1f} ms, p99 {late:,.1f} ms  total {before:,}")


class Echo:
    """Decides each response, and prints the callback."""

    def __init__(self, behaviour: Behaviour, printer: CallbackPrinter | RatePrinter) -> None:
        self.printer = printer
        self._behaviour = behaviour
        self._started_us = time.time_ns() // 1_000
        self._rescheduled: OrderedDict[tuple[Any, Any], int] = OrderedDict()
        self._decode = msgspec.json.Decoder().decode

    def __call__(self, callback: ReceivedCallback) -> ReceiverResponse:
        """The response to one callback."""
        now_us = time.time_ns() // 1_000
        body = self._body(callback)
        behaviour = self._behaviour
        status = behaviour.status
        if behaviour.fail_rate is not None and random.random() >= behaviour.fail_rate:
            status = 200
        answer = b""
        if status < 300 and behaviour.reschedule_us is not None and self._wanted_again(body):
            # The sender's clock counts, which may not be this machine's.
            again_us = (_instant(body, "firedAt") or now_us) + behaviour.reschedule_us
            answer = b'{"ok":true,"nextExecuteAt":"%s"}' % format_instant(again_us).encode()
        self.printer(callback, body, self._lag_us(body, now_us), status)
        return ReceiverResponse(status, answer, behaviour.delay_s)

    def _body(self, callback: ReceivedCallback) -> dict[str, Any]:
        try:
            body = self._decode(callback.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
        return body if isinstance(body, dict) else {}

    def _wanted_again(self, body: dict[str, Any]) -> bool:
        if self._behaviour.times is None:
            return True
        timer = (body.get("namespace"), body.get("timerId"))
        done = self._rescheduled.pop(timer, 0)
        if done >= self._behaviour.times:
            return False
        self._rescheduled[timer] = done + 1
        if len(self._rescheduled) > COUNTED_TIMERS_MAX:
            self._rescheduled.popitem(last=False)
        return True

    def _lag_us(self, body: dict[str, Any], now_us: int) -> int | None:
        """The lag behind the due time. None for a retry, and for an instant before this receiver started: only the server
        knows when those could have arrived. None if the sender goes by another clock."""
        execute_at, fired_at = _instant(body, "executeAt"), _instant(body, "firedAt")
        if execute_at is None or body.get("attempt") != 1 or execute_at < self._started_us:
            return None
        return None if fired_at is not None and abs(fired_at - now_us) > _SAME_CLOCK_US else now_us - execute_at


def _instant(body: dict[str, Any], name: str) -> int | None:
    """An instant of a callback's body; None if it has none of that name."""
    try:
        return parse_instant(body[name])
    except (KeyError, TypeError, ValueError):
        return None


def _text(callback: ReceivedCallback) -> str:
    return callback.body.decode(errors="replace")
