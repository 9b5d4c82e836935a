"""A service that records the arrival of each request and responds after a delay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tests.support.http import Receiver


class SlowReceiver(Receiver):
    """`delay_s` gets the path and returns how long the answer takes; `status` its code. Its body is `answer`, or that of the
    request. `arrivals` are paths with the wall clock in microseconds at which their request was complete."""

    _path = ""

    def __init__(
        self,
        delay_s: Callable[[str], float],
        status: Callable[[str], int] = lambda path: 200,
        answer: bytes | None = None,
    ) -> None:
        super().__init__(lambda body, headers: (200, b""))
        self._delay_s = delay_s
        self._status = status
        self._body = answer
        self.arrivals: list[tuple[str, int]] = []

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        self.arrivals.append((path, time.time_ns() // 1_000))
        if delay_s := self._delay_s(path):
            await asyncio.sleep(delay_s)
        return self._status(path), raw if self._body is None else self._body
