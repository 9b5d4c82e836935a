"""Data that is read while a page is open: at most once in an interval, however many pages there are."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from tocsin.tasks import end_tasks


class Refreshed(ABC):
    """Reads its data on request, unless it did so within the interval."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._reading: asyncio.Task[None] | None = None
        self._read_at_s: float | None = None

    @abstractmethod
    async def _read(self) -> None:
        """Reads the data. Leaves the previous data if that is impossible."""

    async def refresh(self) -> None:
        """Reads the data if the interval is over. Concurrent callers share one read."""
        if self._reading is None or self._reading.done():
            now_s = asyncio.get_running_loop().time()
            if self._read_at_s is not None and now_s - self._read_at_s < self._interval_s:
                return
            self._read_at_s = now_s
            self._reading = asyncio.ensure_future(self._read())
        reading = self._reading
        await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()

    async def close(self) -> None:
        """Stops reading. Idempotent."""
        if self._reading is not None:
            await end_tasks(self._reading)
