"""Group commit: while one batch is being written, the next one accumulates."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from tocsin.model.errors import OutcomeUnknown, StoreUnavailable

T = TypeVar("T")


class Batches(Generic[T]):
    """Writes added items in batches, one at a time, until each item is written or refused.

    A batch whose failure does not depend on its items (the database is unavailable, or the outcome is unknown) is
    written again after a pause, without limit. A batch that fails otherwise is tried once more and then bisected until
    the items that cannot be written are found: these are passed to `refused`, the others are written. `write` must
    tolerate items that it has written before. A task exists only while there is something to write.
    """

    def __init__(
        self,
        write: Callable[[list[T]], Awaitable[None]],
        *,
        refused: Callable[[T, Exception], None],
        failed: Callable[[Exception], None],
        pause_initial_us: int,
        pause_max_us: int,
    ) -> None:
        self._write = write
        self._refused = refused
        self._failed = failed
        self._pause_initial_us = pause_initial_us
        self._pause_max_us = pause_max_us
        self._collected: list[T] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def add(self, item: T) -> None:
        """Adds an item to the next batch. After `close`, nothing is written."""
        self._collected.append(item)
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def take_back(self) -> list[T]:
        """Removes and returns the items that are not being written yet."""
        taken, self._collected = self._collected, []
        return taken

    async def close(self) -> None:
        """Cancels the current write and its retries. Idempotent."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self._collected:
                await self._write_all(self.take_back())
        finally:
            self._task = None

    async def _write_all(self, batch: list[T], refusals: int = 0) -> None:
        pause_us = self._pause_initial_us
        while True:
            try:
                await self._write(batch)
                return
            except (StoreUnavailable, OutcomeUnknown) as error:
                self._failed(error)
            except Exception as error:  # noqa: BLE001 - it must not block the others, and it is reported
                self._failed(error)
                refusals += 1
                if refusals > 1:
                    reason = error
                    break
            await asyncio.sleep(pause_us / 1e6)
            pause_us = min(2 * pause_us, self._pause_max_us)
        if len(batch) == 1:
            self._refused(batch[0], reason)
            return
        middle = len(batch) // 2
        await self._write_all(batch[:middle], 1)
        await self._write_all(batch[middle:], 1)
