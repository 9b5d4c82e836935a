"""Group writing: while one batch is being written, the next one gathers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from tocsin.model.errors import OutcomeUnknown, StoreUnavailable

T = TypeVar("T")


class Batches(Generic[T]):
    """Writes what was added, in batches of all that has gathered, one at a time, until each item is written or refused.

    A batch whose failure says nothing about its items (the database is away, or the outcome isn't known) is written again
    after a pause, and so without end. One that was refused is tried once more, then halved until those that can't be
    written stand alone: these go to `refused`, the others are not kept from being written. `write` has to bear being
    given what it has written before. There is a task only while there is something to write.
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
        self._gathered: list[T] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def add(self, item: T) -> None:
        """It is written with the next batch; nothing is after `close`."""
        self._gathered.append(item)
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def take_back(self) -> list[T]:
        """What has gathered and is not being written yet."""
        taken, self._gathered = self._gathered, []
        return taken

    async def close(self) -> None:
        """Gives up what is being written or tried again. Idempotent."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self._gathered:
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
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not hold up the others; it is told of
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
