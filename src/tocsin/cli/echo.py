"""`tocsin echo`: a callback receiver that shows what it gets, and can be slow, fail or reschedule on request."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.options import AsJson, duration_us

if TYPE_CHECKING:
    from tocsin.cli.receiver import Answer, Ring

PAYLOAD_CHARS_MAX = 60
#: Timers whose reschedules are counted for --times; the longest unheard one is forgotten first.
COUNTED_TIMERS_MAX = 100_000
FAILING_STATUS = 500


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("echo", epilog="Example: tocsin echo --port 9000 --fail-rate 0.2 --delay 50ms")(echo)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How rings are answered. With a `fail_rate`, that share gets `status` and the rest 200; else all get `status`."""

    delay_s: float
    fail_rate: float | None
    status: int
    reschedule_us: int | None
    times: int | None


def echo(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.")] = 9_000,
    delay: Annotated[str, typer.Option(metavar="DURATION", help="Take so long to answer.")] = "0s",
    fail_rate: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, metavar="SHARE", help="Let this share fail, with --status or 500.")
    ] = None,
    status: Annotated[
        int | None, typer.Option(min=200, max=599, help="The status to answer; with --fail-rate, for what fails.")
    ] = None,
    reschedule: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Ask to be called again after so long.")
    ] = None,
    times: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="With --reschedule: so many times for each timer.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="A line a second, with the rate, instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Receive callbacks and print them: when, how late, which attempt, what payload. Ctrl-C ends it."""
    behaviour = Behaviour(
        delay_s=duration_us("--delay", delay) / 1e6,
        fail_rate=fail_rate,
        status=status or (FAILING_STATUS if fail_rate is not None else 200),
        reschedule_us=None if reschedule is None else duration_us("--reschedule", reschedule),
        times=times,
    )
    printer = RatePrinter(as_json) if quiet else RingPrinter(as_json)

    def loop() -> asyncio.AbstractEventLoop:
        import uvloop

        return uvloop.new_event_loop()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(_listen(host, port, Echo(behaviour, printer)))


async def _listen(host: str, port: int, answering: Echo) -> None:
    from tocsin.cli.receiver import Receiver

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


class RingPrinter:
    """A line for each callback."""

    def __init__(self, as_json: bool) -> None:
        self.count = 0
        self._as_json = as_json
        self._console = output.console()

    async def tick(self) -> None:
        """Nothing is printed by the clock."""

    def __call__(self, ring: Ring, body: dict[str, Any], lag_us: int | None, status: int) -> None:
        """Prints it."""
        self.count += 1
        if self._as_json:
            shown = {"lagMs": None if lag_us is None else lag_us / 1e3, "answered": status, "headers": ring.headers}
            output.print_json({"path": ring.path, **body, **shown})
            return
        from rich.text import Text

        line = Text(time.strftime("%H:%M:%S  "), style="dim")
        line.append(f"{body.get('namespace', '?')}/{body.get('timerId', ring.path)}", style="bold")
        if lag_us is not None:
            line.append(f"  {lag_us / 1e3:+,.1f} ms", style="red" if lag_us < 0 else "green")
        if "attempt" in body:
            line.append(f"  attempt {body['attempt']}")
        line.append(f"  → {status}", style="" if status < 300 else "yellow")
        payload = output.compact(body.get("payload"))
        if payload is not None:
            line.append(f"  {payload if len(payload) <= PAYLOAD_CHARS_MAX else payload[: PAYLOAD_CHARS_MAX - 1] + '…'}")
        self._console.print(line, soft_wrap=True)


class RatePrinter:
    """A line a second, while something comes in."""

    def __init__(self, as_json: bool) -> None:
        self.count = 0
        self._as_json = as_json
        self._lags_us: list[int] = []

    def __call__(self, ring: Ring, body: dict[str, Any], lag_us: int | None, status: int) -> None:
        """Counts it."""
        self.count += 1
        if lag_us is not None:
            self._lags_us.append(lag_us)

    async def tick(self) -> None:
        """Prints for ever."""
        before, begun = 0, time.monotonic()
        while True:
            await asyncio.sleep(1)
            now = time.monotonic()
            rate, before, begun = (self.count - before) / (now - begun), self.count, now
            lags, self._lags_us = sorted(self._lags_us), []
            if not rate:
                continue
            middle, late = (lags[len(lags) // 2] / 1e3, lags[len(lags) * 99 // 100] / 1e3) if lags else (0.0, 0.0)
            if self._as_json:
                output.print_json({"ratePerSecond": round(rate), "lagMsP50": middle, "lagMsP99": late, "total": before})
            else:
                typer.echo(f"{rate:>9,.0f}/s  lag p50 {middle:,.1f} ms, p99 {late:,.1f} ms  total {before:,}")


class Echo:
    """Decides what is answered, and lets it be printed."""

    def __init__(self, behaviour: Behaviour, printer: RingPrinter | RatePrinter) -> None:
        import msgspec

        self.printer = printer
        self._behaviour = behaviour
        self._rescheduled: OrderedDict[tuple[Any, Any], int] = OrderedDict()
        self._decode = msgspec.json.Decoder().decode

    def __call__(self, ring: Ring) -> Answer:
        """The answer to one callback."""
        from tocsin.cli.receiver import Answer

        now_us = time.time_ns() // 1_000
        body = self._body(ring)
        behaviour = self._behaviour
        status = behaviour.status
        if behaviour.fail_rate is not None and random.random() >= behaviour.fail_rate:
            status = 200
        answer = b""
        if status < 300 and behaviour.reschedule_us is not None and self._wanted_again(body):
            from tocsin.model.instants import format_instant

            answer = b'{"ok":true,"nextExecuteAt":"%s"}' % format_instant(now_us + behaviour.reschedule_us).encode()
        self.printer(ring, body, _lag_us(body, now_us), status)
        return Answer(status, answer, behaviour.delay_s)

    def _body(self, ring: Ring) -> dict[str, Any]:
        import msgspec

        try:
            body = self._decode(ring.body)
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


def _lag_us(body: dict[str, Any], now_us: int) -> int | None:
    from tocsin.model.instants import parse_instant

    try:
        return now_us - parse_instant(body["executeAt"])
    except (KeyError, TypeError, ValueError):
        return None
