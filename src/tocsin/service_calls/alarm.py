"""A wait that another task can end early."""

from __future__ import annotations

import asyncio


class Alarm:
    """Wakes one waiting task, early by `wake` or at its timeout. A wake-up that comes while nobody waits ends the next
    wait."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Ends the current wait, or the next one. Repeated calls before that have no further effect."""
        self._woken.set()

    async def wait(self, timeout_us: int | None = None) -> bool:
        """Returns True as soon as `wake` is called, at once if it was called before; False after the timeout."""
        if not self._woken.is_set():
            try:
                async with asyncio.timeout(None if timeout_us is None else max(timeout_us, 0) / 1e6):
                    await self._woken.wait()
            except TimeoutError:
                return False
        self._woken.clear()
        return True
