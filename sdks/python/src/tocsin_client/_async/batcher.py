"""Collects single creates into requests, in tasks."""

from __future__ import annotations

import asyncio
from types import TracebackType

from tocsin_client._async.runner import Runner
from tocsin_client._core.batch_queue import BatchQueue, Entry
from tocsin_client._core.batches import ItemResult, create_chunk, item_of
from tocsin_client._error_bases import BatcherClosed, BatcherFull
from tocsin_client._generated.models import CreateTimer, Timer


class AsyncBatcher:
    """Timers that any number of tasks add are sent together: 500 in a request, or those of 5 ms."""

    def __init__(self, runner: Runner, *, block: bool) -> None:
        self._runner = runner
        self._block = block
        self._queue: BatchQueue[asyncio.Future[Timer]] = BatchQueue()
        self._changed = asyncio.Condition()
        self._requests: set[asyncio.Task[None]] = set()
        self._dispatcher: asyncio.Task[None] | None = None

    async def add(self, timer: CreateTimer) -> asyncio.Future[Timer]:
        """The future of the timer: its result is the timer as created, or the error. Waits while 10,000 wait."""
        item = item_of(timer)
        loop = asyncio.get_running_loop()
        router = self._runner.session.router
        async with self._changed:
            while self._queue.full and not self._queue.closing:
                if not self._block:
                    raise BatcherFull(f"{self._queue.waiting} timers wait; add more later, or leave `block` as it is")
                await self._changed.wait()
            if self._queue.closing:
                raise BatcherClosed("the batcher is closed; make another")
            future: asyncio.Future[Timer] = loop.create_future()
            owner = "" if router is None else router.url_of(item.place)
            self._queue.add(item, future, owner, loop.time())
            if self._dispatcher is None:
                self._dispatcher = loop.create_task(self._dispatch())
            self._changed.notify_all()
        return future

    async def close(self) -> None:
        """Sends what waits, and returns when every future has its result."""
        async with self._changed:
            self._queue.closing = True
            self._changed.notify_all()
        if self._dispatcher is not None:
            await self._dispatcher

    async def __aenter__(self) -> AsyncBatcher:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _dispatch(self) -> None:
        loop = asyncio.get_running_loop()
        async with self._changed:
            while not (self._queue.closing and self._queue.idle):
                taken = self._queue.take(loop.time())
                if taken is not None:
                    self._changed.notify_all()
                    request = loop.create_task(self._request(*taken))
                    self._requests.add(request)
                    request.add_done_callback(self._requests.discard)
                    continue
                pause_s = self._queue.ready_at() - loop.time()
                if pause_s == float("inf"):
                    await self._changed.wait()
                    continue
                try:
                    await asyncio.wait_for(self._changed.wait(), max(pause_s, 0))
                except asyncio.TimeoutError:
                    continue

    async def _request(self, owner: str, entries: list[Entry[asyncio.Future[Timer]]]) -> None:
        def settle(index: int, result: ItemResult) -> None:
            waiter = entries[index].waiter
            if waiter.done():  # its task was canceled, and the timer is created nevertheless
                return
            if result.timer is not None:
                waiter.set_result(result.timer)
            elif result.error is not None:
                waiter.set_exception(result.error)

        try:
            steps = create_chunk(self._runner.session, [entry.item for entry in entries], settle, self._runner.options)
            await self._runner.run(steps)
        except BaseException as crash:  # noqa: BLE001 (each waiter raises it)
            for entry in entries:
                if not entry.waiter.done():
                    entry.waiter.set_exception(crash)
        finally:
            async with self._changed:
                self._queue.settled(owner, entries)
                self._changed.notify_all()
