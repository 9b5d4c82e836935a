"""Server-sent events: once a second an open page hears what has changed, and fetches what it shows of it.

A browser keeps few connections to one server, so a page that nobody looks at closes its stream, and opens it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from tocsin.ui.limits import UiLimits

#: Rounds without news after which something is sent all the same, so that a lost connection is noticed.
_SILENT_ROUNDS_MAX = 10
#: And once more right after news: what has just happened is durable a moment later, who looked at once may have missed it.
_AGAIN_ROUND = 1

#: What a page wants to know; None ends the stream.
News = Callable[[], dict[str, Any] | None]


class Streams:
    """The open streams of one server."""

    def __init__(self, limits: UiLimits) -> None:
        self._limits = limits
        self._closing = asyncio.Event()
        self.open = 0

    @property
    def full(self) -> bool:
        """Whether no further stream may be opened."""
        return self.open >= self._limits.streams_max or self._closing.is_set()

    def close(self) -> None:
        """Ends all streams."""
        self._closing.set()

    async def events(self, news: News, refresh: Callable[[], Awaitable[None]] | None = None) -> AsyncIterator[bytes]:
        """The body of a stream: what `news` says whenever it differs from what was said last, and once more in the round
        after that. `refresh` is awaited before each question."""
        self.open += 1
        try:
            # Browsers come back this soon after a stream has ended.
            yield b"retry: 2000\n\n"
            said: dict[str, Any] = {}
            silent = 0
            while not self._closing.is_set():
                if refresh is not None:
                    await refresh()
                now = news()
                if now is None:
                    yield b"event: bye\ndata: {}\n\n"
                    return
                silent = 0 if now != said else silent + 1
                if silent in (0, _AGAIN_ROUND) or silent % _SILENT_ROUNDS_MAX == 0:
                    said = now
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
