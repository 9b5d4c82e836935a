"""Measures how many callbacks a second the HTTP client makes on one core, beside the machine's own limit.

    python bench/http_client.py [--calls N] [--in-flight N ...] [--json FILE]

A receiver in another process answers every request with the same bytes. The raw limit sends prepared bytes over bare
protocols and counts the answers without parsing them; the other rows do everything that a firing timer needs. CPU seconds are
those of this process only, so that the cost per call is meaningful on a busy machine, too.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.http import HttpCaller
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.request import compose
from tocsin.http_client.target import parse_url
from tocsin.model.answer import Response
from tocsin.ports.http import Exchange, Invocation

ANSWER = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"ok":true}'
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
WARM_UP_CALLS = 2_000


@dataclass(frozen=True)
class Measurement:
    """One row of the table. `cpu_us_per_call` is the time of the client process only."""

    what: str
    in_flight: int
    calls_per_s: float
    cpu_us_per_call: float


class SystemClock:
    """The machine's clocks."""

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970."""
        return time.time_ns() // 1_000

    def boottime_us(self) -> int:
        """Microseconds since the machine's start, including suspend."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


class Receiver(asyncio.Protocol):
    """The cheapest possible receiver: it answers each segment, which on the loopback interface is one whole request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.transport.write(ANSWER)


def receive(pipe: Pipe) -> None:
    """The receiver's process: sends its port through the pipe, and ends when the other side closes."""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Receiver, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        ended = asyncio.Event()
        loop.add_reader(pipe.fileno(), ended.set)
        await ended.wait()

    uvloop.run(serve())


def an_invocation(port: int, secret: str | None) -> Invocation:
    """The invocation of an ordinary timer."""
    now_us = SystemClock().now_us()
    return Invocation(
        namespace="orders",
        timer_id="order-4711-reminder",
        execute_at=now_us,
        fired_at=now_us,
        attempt=1,
        payload=msgspec.Raw(b'{"order":4711,"customer":"c-99","reason":"payment overdue"}'),
        message_id="0198f1c2d3e4a5b6c7d8e9f0",
        url=f"http://127.0.0.1:{port}/hooks/orders",
        method="POST",
        headers=None,
        timeout_us=10_000_000,
        secrets=() if secret is None else (secret,),
        traceparent=None,
    )


class Counter:
    """Counts the calls that are left to start and to end; `ended` resolves after the last one."""

    def __init__(self, calls: int) -> None:
        self.left_to_start = calls
        self.left_to_end = calls
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def may_start(self) -> bool:
        """Takes one call to start; returns false if none is left."""
        self.left_to_start -= 1
        return self.left_to_start >= 0

    def end_one(self) -> None:
        """Counts a call that ended."""
        self.left_to_end -= 1
        if self.left_to_end == 0:
            self.ended.set_result(None)


async def timed(what: str, in_flight: int, calls: int, drive: Callable[[Counter], None]) -> Measurement:
    """Runs `drive` (which starts the first calls) to its end, once to warm up and once to measure."""
    warm_up = Counter(WARM_UP_CALLS)
    drive(warm_up)
    await warm_up.ended
    counter = Counter(calls)
    began, cpu_began = time.perf_counter(), time.process_time()
    drive(counter)
    await counter.ended
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    return Measurement(what, in_flight, calls / wall_s, cpu_s / calls * 1e6)


async def raw_limit(port: int, in_flight: int, calls: int) -> Measurement:
    """Prepared bytes over bare protocols."""
    request = compose(an_invocation(port, None), parse_url(f"http://127.0.0.1:{port}/"), 0, CallbackLimits())

    class Sending(asyncio.Protocol):
        counter: Counter

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport: asyncio.Transport = transport  # type: ignore[assignment]

        def begin(self) -> None:
            if self.counter.may_start():
                self.transport.write(request)

        def data_received(self, data: bytes) -> None:
            self.counter.end_one()
            self.begin()

    loop = asyncio.get_running_loop()
    opened = [await loop.create_connection(Sending, "127.0.0.1", port) for _ in range(in_flight)]

    def drive(counter: Counter) -> None:
        for _, protocol in opened:
            protocol.counter = counter
            protocol.begin()

    try:
        return await timed("raw limit: bare protocol, answers not parsed", in_flight, calls, drive)
    finally:
        for transport, _ in opened:
            transport.close()


async def client(
    what: str, port: int, in_flight: int, calls: int, secret: str | None, limits: CallbackLimits
) -> Measurement:
    """The client itself. Raises RuntimeError on an unexpected answer."""
    caller = HttpCaller(limits, EgressPolicy(allow_private=True), SystemClock())
    invocation = an_invocation(port, secret)

    def drive(counter: Counter) -> None:
        def begin() -> None:
            if counter.may_start():
                caller.invoke(invocation, done)

        def done(exchange: Exchange) -> None:
            outcome = exchange.outcome
            if not isinstance(outcome, Response) or outcome.status != 200:
                if not counter.ended.done():
                    counter.ended.set_exception(RuntimeError(f"unexpected answer: {outcome}"))
                return
            counter.end_one()
            begin()

        for _ in range(in_flight):
            begin()

    try:
        return await timed(what, in_flight, calls, drive)
    finally:
        await caller.close()


async def _measure(port: int, calls: int, in_flights: list[int]) -> list[Measurement]:
    limits = CallbackLimits()
    measurements = []
    for in_flight in in_flights:
        measurements.append(await raw_limit(port, in_flight, calls))
        measurements.append(await client("call", port, in_flight, calls, None, limits))
        measurements.append(await client("call, signed", port, in_flight, calls, SECRET, limits))
        every = replace(limits, response_cache_entries_max=0)
        measurements.append(await client("call, signed, every answer parsed", port, in_flight, calls, SECRET, every))
    return measurements


def measure(calls: int = 50_000, in_flights: list[int] | None = None) -> list[Measurement]:
    """Runs all measurements in this process against a receiver in another."""
    ours, theirs = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(target=receive, args=(theirs,), daemon=True)
    receiver.start()
    try:
        port = ours.recv()
        return uvloop.run(_measure(port, calls, in_flights or [64, 256]))
    finally:
        ours.send("end")
        receiver.join(timeout=5)


def main() -> None:
    """Prints a table and, with --json, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--in-flight", type=int, nargs="*", default=[64, 256])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    measurements = measure(options.calls, options.in_flight)
    table = Table("what", "in flight", "calls/s", "client CPU µs/call")
    for row in measurements:
        table.add_row(row.what, str(row.in_flight), f"{row.calls_per_s:,.0f}", f"{row.cpu_us_per_call:.1f}")
    Console().print(table)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps([asdict(row) for row in measurements], indent=2) + "\n")


if __name__ == "__main__":
    main()
