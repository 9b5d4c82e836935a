"""Collects single creates into requests, in tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tocsin_client._async.runner import Runner
from tocsin_client._core.batch_queue import BatchQueue, Entry
from tocsin_client._core.batches import ItemResult, create_chunk, item_of
from tocsin_client._error_bases import BatcherClosed, BatcherFull, InvalidArgument
from tocsin_client._forks import leave_to_parent, renew_after_fork
from tocsin_client._generated.models import CreateTimer, Timer


class AsyncBatcher:
    """Timers that any number of tasks add are sent together: 500 in a request, or those of 5 ms.

    A forked process has its part of the batcher for itself: what waited at the fork is sent by the parent alone, which alone
    learns the results.
    """

    def __init__(self, runner: Runner, *, block: bool) -> None:
        self._runner = runner
        self._block = block
        self._begin()
        renew_after_fork(self)

    def _begin(self) -> None:
        self._queue: BatchQueue[asyncio.Future[Timer]] = BatchQueue()
        self._changed = asyncio.Condition()
        self._requests: set[asyncio.Task[None]] = set()
        self._dispatcher: asyncio.Task[None] | None = None

    def renew_in_child(self) -> None:
        """The parent's event loop, and who waits in it, are not in this process."""
        former = self._queue
        leave_to_parent(former, self._changed, self._requests, self._dispatcher)
        self._begin()
        self._queue.closing = former.closing

    async def add(self, timer: CreateTimer | Mapping[str, Any]) -> asyncio.Future[Timer]:
        """The future of the timer: its result is the timer as created, or the error. Waits while 10,000 wait."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Timer] = loop.create_future()
        try:
            item = item_of(timer)
        except InvalidArgument as error:
            future.set_exception(error)
            return future
        router = self._runner.session.router
        async with self._changed:
            while self._queue.full and not self._queue.closing:
                if not self._block:
                    raise BatcherFull(f"{self._queue.waiting} timers wait; add more later, or leave `block` as it is")
                await self._changed.wait()
            if self._queue.closing:
                raise BatcherClosed("the batcher is closed; make another")
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
