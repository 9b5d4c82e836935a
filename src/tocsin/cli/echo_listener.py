"""The receiver of `tocsin echo`: responds as configured, and prints what it receives."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import msgspec
import typer

from tocsin.cli import output
from tocsin.cli.receiver import ReceivedCallback, Receiver, ReceiverResponse
from tocsin.model.instants import format_instant, parse_instant

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
