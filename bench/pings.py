"""Pings of monitors through one node: 2,000 a second over 10,000 monitors, and as many as it takes. A monitor's first ping in
ten seconds is written; the others are taken in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import count as count_up

import uvloop

from bench import processes
from bench.scenarios import Costs, Results
from bench.wire import Caller, request

_CONNECTIONS = 64
#: The rate that is asked of one node.
RATE = 2_000


def pings(monitors: int, seconds: float) -> Results:
    """Pings of so many monitors, which expect one every minute, for so many seconds: at `RATE`, then without a pause; each in
    turn of all monitors. The first ping of each, which is always written, is not measured."""
    with processes.folder() as data, processes.server(data, "--no-agent") as server:
        tokens = uvloop.run(_created(server.port, monitors))
        uvloop.run(_pinged(server.port, tokens, monitors))
        found: Results = {}
        for name, count, rate in (
            (f"pings, {RATE} per s asked", int(RATE * seconds), RATE),
            ("pings", int(RATE * seconds), 0),
        ):
            costs = Costs(server)
            latencies_s, took_s = uvloop.run(_pinged(server.port, tokens, count, rate))
            found |= {
                f"{name}, per s": count / took_s,
                f"{name}, p50 ms": latencies_s[len(latencies_s) // 2] * 1e3,
                f"{name}, p99 ms": latencies_s[len(latencies_s) * 99 // 100] * 1e3,
                **costs.of(name, count),
            }
        return found


async def _created(port: int, monitors: int) -> list[str]:
    """The tokens of new monitors."""
    numbers, tokens = iter(range(monitors)), list[str]()

    async def create() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            sent = {"namespace": "default", "id": f"m{number}", "every": "60s", "grace": "30s"}
            writer.write(request("/api/v1/monitors/put", json.dumps(sent).encode()))
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            body = await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
            tokens.append(json.loads(body)["pingUrl"].rpartition("/")[2])
        writer.close()

    await asyncio.gather(*(create() for _ in range(_CONNECTIONS)))
    return tokens


async def _pinged(port: int, tokens: list[str], count: int, rate: int = 0) -> tuple[list[float], float]:
    """The latencies of so many pings, ascending, and how long all of them took. Raises RuntimeError if one failed."""
    loop, finished, left = asyncio.get_running_loop(), asyncio.Event(), _CONNECTIONS
    numbers = iter(range(count))

    def sent() -> Iterator[bytes]:
        for number in numbers:
            yield b"GET /ping/%s HTTP/1.1\r\nhost: localhost\r\n\r\n" % tokens[number % len(tokens)].encode()

    def done() -> None:
        nonlocal left
        left -= 1
        if not left:
            finished.set()

    began, turns = loop.time(), count_up()

    def pace() -> float:
        return began + next(turns) / rate - loop.time()

    callers = [
        (await loop.create_connection(lambda: Caller(sent(), done, pace if rate else None), "127.0.0.1", port))[1]
        for _ in range(_CONNECTIONS)
    ]
    await finished.wait()
    took_s = loop.time() - began
    failed = next((caller.first_failure for caller in callers if caller.failures), None)
    if failed is not None:
        raise RuntimeError(f"a ping failed: {failed!r}")
    return sorted(latency for caller in callers for latency in caller.latencies_s), took_s
