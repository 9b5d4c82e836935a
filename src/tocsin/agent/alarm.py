"""Waiting that can be cut short."""

from __future__ import annotations

import asyncio


class Alarm:
    """One waiter's alarm clock: rung by others, or by time."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def wake(self) -> None:
        """Ends the wait under way, or the next one. Once is as good as many times."""
        self._rung.set()

    async def wait(self, timeout_us: int | None = None) -> bool:
        """Returns at once or as soon as it is rung (True), or after the time (False)."""
        if not self._rung.is_set():
            try:
                async with asyncio.timeout(None if timeout_us is None else max(timeout_us, 0) / 1e6):
                    await self._rung.wait()
            except TimeoutError:
                return False
        self._rung.clear()
        return True
