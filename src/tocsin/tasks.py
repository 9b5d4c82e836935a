"""Tasks of the event loop: how background tasks end, how many requests are made at once, and how long reckoning that
clients ask for may delay the others."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

A = TypeVar("A")
T = TypeVar("T")

#: Until a task that has not ended is cancelled again, in seconds: time for it to close what it uses.
_AGAIN_S = 1.0


def spawn(work: Coroutine[Any, Any, T], fatal: Callable[[BaseException], None]) -> asyncio.Task[T]:
    """Begins a task whose work handles every error that is not a defect; `fatal` is called with one that it raises."""

    def ended(task: asyncio.Task[T]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            fatal(error)

    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(ended)
    return task


async def end_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancels the tasks, and returns when all of them have ended, by cancellation or otherwise.

    A cancellation can be lost: before Python 3.12, `asyncio.wait_for`, which some database drivers and the NATS client use,
    returns a result that arrives at the same moment instead. So a task that goes on is cancelled again after a second.
    """
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=_AGAIN_S)


async def in_parallel(ask: Callable[[A], Awaitable[T]], arguments: Iterable[A], *limits: asyncio.Semaphore) -> list[T]:
    """The results of the requests, in the order of their arguments. Each request holds all the limits while it is made; a
    single one needs none. The first failure cancels the others."""

    async def within_limits(argument: A) -> T:
        async with AsyncExitStack() as stack:
            for limit in limits:
                await stack.enter_async_context(limit)
            return await ask(argument)

    arguments = list(arguments)
    if len(arguments) == 1:
        return [await ask(arguments[0])]
    tasks = [asyncio.ensure_future(within_limits(argument)) for argument in arguments]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


#: How long a page waits for data.
_PAGE_WAITS_S = 1.0


class Refreshed(ABC):
    """Data that is read on request, unless it was within the interval."""

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

    async def refresh_for_page(self) -> None:
        """Like `refresh`, but returns soon, with what is known, if the read takes long. The read goes on."""
        try:
            async with asyncio.timeout(_PAGE_WAITS_S):
                await self.refresh()
        except TimeoutError:
            return

    async def close(self) -> None:
        """Stops reading. Idempotent."""
        if self._reading is not None:
            await end_tasks(self._reading)


#: How long pieces of work may follow one another before everything else on the event loop gets its turn. One piece takes
#: well below a millisecond.
TURN_S = 0.002


class Turns:
    """Pieces of work of all requests of a process, one request at a time. After each `TURN_S` of them the event loop does
    what else is due, and the request that has waited longest goes on. However many requests ask at once, they delay a timer
    by one turn. `now_s` is a clock for elapsed time."""

    def __init__(self, now_s: Callable[[], float] = time.perf_counter) -> None:
        self._now_s = now_s
        self._lock = asyncio.Lock()
        self._ends_s = float("-inf")

    async def each(self, pieces: Iterable[T]) -> list[T]:
        """All items of an iterable. To compute one is a piece of work."""
        remaining, done = iter(pieces), []
        while True:
            async with self._lock:
                if self._now_s() >= self._ends_s:
                    # Still holding the lock: otherwise every request would have a turn before the loop goes on.
                    await asyncio.sleep(0)
                    self._ends_s = self._now_s() + TURN_S
                for piece in remaining:
                    done.append(piece)
                    if self._now_s() >= self._ends_s:
                        break
                else:
                    return done

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of a function, which is one piece of work."""
        (result,) = await self.each(function(*arguments) for _ in range(1))
        return result
