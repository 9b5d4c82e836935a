"""What the programs of all peers share.

A client prints a line when it is ready. Then each line of its standard input is an order, as JSON: `count` timers, due at
`due_us` or scattered over `spread_s` seconds from then on, in batches of `batch` (0: one a call), by `callers` at a time. It
prints a line with the seconds that creating took. A worker posts the body of each due timer to the receiver.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Timer(NamedTuple):
    """One timer, and the body of its request, which has its instant."""

    name: str
    due: datetime
    body: str

    def left(self) -> timedelta:
        """How long until it is due."""
        return max(self.due - datetime.now(UTC), timedelta())


def _calls(order: dict[str, Any]) -> list[list[Timer]]:
    """The timers of each call. They are made before the clock starts."""
    instants = random.Random(order["due_us"])
    timers = []
    for number in range(order["count"]):
        offset_us = int(instants.random() * order["spread_s"] * 1e6)
        due = _EPOCH + timedelta(microseconds=order["due_us"] + offset_us)
        name = f"{order['due_us']}-{number}"
        at = due.isoformat(timespec="microseconds").replace("+00:00", "Z")
        timers.append(Timer(name, due, f'{{"executeAt":"{at}","order":"{name}","amount":4200}}'))
    size = order["batch"] or 1
    return [timers[first : first + size] for first in range(0, len(timers), size)]


def _orders() -> Iterator[dict[str, Any]]:
    print("{}", flush=True)
    for line in sys.stdin:
        yield json.loads(line)


def _report(began: float) -> None:
    print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)


async def obey(create: Callable[[list[Timer]], Awaitable[object]]) -> None:
    """Carries out orders with a function that returns once these timers are acknowledged."""

    async def caller(calls: Iterator[list[Timer]]) -> None:
        for timers in calls:
            await create(timers)

    orders = _orders()
    # The loop goes on while no order is there.
    while (order := await asyncio.to_thread(next, orders, None)) is not None:
        calls = iter(_calls(order))
        began = time.perf_counter()
        await asyncio.gather(*(caller(calls) for _ in range(order["callers"])))
        _report(began)


def obey_in_threads(create: Callable[[list[Timer]], object]) -> None:
    """The same for a library that blocks."""
    for order in _orders():
        calls = _calls(order)
        with ThreadPoolExecutor(order["callers"]) as callers:
            began = time.perf_counter()
            for _ in callers.map(create, calls):
                pass
            _report(began)


class Poster:
    """Posts bodies to the receiver by connections that stay open. Made where an event loop runs."""

    def __init__(self, receiver: str) -> None:
        import aiohttp

        self._receiver = receiver
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64))

    async def __call__(self, body: str) -> None:
        async with self._session.post(
            self._receiver, data=body.encode(), headers={"content-type": "application/json"}
        ) as response:
            response.raise_for_status()
