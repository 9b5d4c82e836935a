"""Server-sent events: once a second an open page is notified of changes, and fetches those that it shows.

A browser opens few connections to one server, so a page in the background closes its stream and reopens it later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse

from tocsin.model.errors import Overloaded
from tocsin.ports.clock import ClockMover
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.outages import Outage

#: Seconds without a change after which an event is sent anyway, so that a page can distinguish a quiet server from one that
#: does not answer. It is well below the time after which a page gives its stream up (`web/src/live.js`): a round may take
#: seconds.
_QUIET_S_MAX = 10.0
#: A change is sent once more in the next round: it may not be durable yet when a page reads it right after the first event.
_REPEAT_ROUND = 1

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}

#: Returns the data of the next event; None ends the stream.
Update = Callable[[], dict[str, Any] | None]


class Streams:
    """The open streams of one server."""

    def __init__(
        self,
        limits: UiLimits,
        clock: ClockMover | None = None,
        outage: Callable[[], Awaitable[Outage | None]] | None = None,
        words: Callable[[Outage | None], str] = str,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` is set where it can be moved: open pages are notified of what it shows then. `outage` returns what is out,
        `words` the HTML with which open pages show it. `now_s` is a clock for elapsed time."""
        self._limits = limits
        self._clock = clock
        self._outage = outage
        self._words = words
        self._now_s = now_s
        self._closing = asyncio.Event()
        self.open = 0

    def close(self) -> None:
        """Ends all streams."""
        self._closing.set()

    def response(
        self,
        context: RequestContext,
        news: Callable[[], dict[str, Any]],
        refresh: Callable[[], Awaitable[None]] | None = None,
    ) -> Response:
        """A stream with the results of `news`, until the principal changes. Raises Overloaded if too many streams are open,
        or the server is stopping."""
        if self.open >= self._limits.streams_max or self._closing.is_set():
            raise Overloaded("Too many open pages: this server updates no more pages live for now.")
        principal, renew = context.principal, context.renew
        events = self.events(lambda: news() if renew() == principal else None, refresh)
        return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)

    async def events(
        self, update: Update, refresh: Callable[[], Awaitable[None]] | None = None
    ) -> AsyncIterator[bytes]:
        """The body of a stream: an event whenever the result of `update` changes, repeated once in the next round, and after
        ten seconds without one. `refresh` is awaited before each call of `update`."""
        self.open += 1
        try:
            # The delay after which browsers reconnect, in milliseconds.
            yield b"retry: 2000\n\n"
            sent: dict[str, Any] = {}
            sent_s = float("-inf")
            unchanged = 0
            offset_us: int | None = None
            reported: Outage | None = None
            while not self._closing.is_set():
                if self._clock is not None and (reading := self._clock.read()).offset_us != offset_us:
                    offset_us = reading.offset_us
                    yield b"event: clock\ndata: %d\n\n" % (reading.now_us // 1_000)
                if self._outage is not None and (outage := await self._outage()) != reported:
                    reported = outage
                    yield b"event: outage\ndata: %b\n\n" % msgspec.json.encode(self._words(outage))
                if refresh is not None:
                    await refresh()
                now = update()
                if now is None:
                    yield b"event: bye\ndata: {}\n\n"
                    return
                unchanged = 0 if now != sent else unchanged + 1
                if unchanged in (0, _REPEAT_ROUND) or self._now_s() - sent_s >= _QUIET_S_MAX:
                    sent, sent_s = now, self._now_s()
                    yield b"data: %b\n\n" % msgspec.json.encode(now)
                await self._pause()
        finally:
            self.open -= 1

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._limits.live_interval_s):
                await self._closing.wait()
        except TimeoutError:
            return
