"""Collects single creates into requests, in threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

from tocsin_client._core.batch_queue import BatchQueue, Entry
from tocsin_client._core.batches import ItemResult, create_chunk, item_of
from tocsin_client._error_bases import BatcherClosed, BatcherFull, InvalidArgument
from tocsin_client._forks import leave_to_parent, renew_after_fork
from tocsin_client._generated.models import CreateTimer, Timer
from tocsin_client._sync.runner import Runner

#: Requests at the same time, over all owners.
REQUESTS_MAX = 16


class Batcher:
    """Timers that any number of threads add are sent together: 500 in a request, or those of 5 ms.

    A forked process has its part of the batcher for itself: what waited at the fork is sent by the parent alone, which alone
    learns the results.
    """

    def __init__(self, runner: Runner, *, block: bool) -> None:
        self._runner = runner
        self._block = block
        self._begin()
        renew_after_fork(self)

    def _begin(self) -> None:
        self._queue: BatchQueue[Future[Timer]] = BatchQueue()
        self._changed = threading.Condition()
        self._requests = ThreadPoolExecutor(REQUESTS_MAX, thread_name_prefix="tocsin-batch")
        self._dispatcher: threading.Thread | None = None

    def renew_in_child(self) -> None:
        """The parent's thread, and who waits for it, are not in this process."""
        former = self._queue
        leave_to_parent(former, self._changed, self._requests, self._dispatcher)
        self._begin()
        self._queue.closing = former.closing

    def add(self, timer: CreateTimer | Mapping[str, Any]) -> Future[Timer]:
        """The future of the timer: its result is the timer as created, or the error. Blocks while 10,000 wait."""
        future: Future[Timer] = Future()
        future.set_running_or_notify_cancel()  # what is on its way can't be canceled
        try:
            item = item_of(timer)
        except InvalidArgument as error:
            future.set_exception(error)
            return future
        router = self._runner.session.router
        with self._changed:
            while self._queue.full and not self._queue.closing:
                if not self._block:
                    raise BatcherFull(f"{self._queue.waiting} timers wait; add more later, or leave `block` as it is")
                self._changed.wait()
            if self._queue.closing:
                raise BatcherClosed("the batcher is closed; make another")
            if self._dispatcher is None:
                dispatcher = threading.Thread(target=self._dispatch, name="tocsin-batcher", daemon=True)
                dispatcher.start()
                self._dispatcher = dispatcher
            owner = "" if router is None else router.url_of(item.place)
            self._queue.add(item, future, owner, time.monotonic())
            self._changed.notify_all()
        return future

    def close(self) -> None:
        """Sends what waits, and returns when every future has its result."""
        with self._changed:
            self._queue.closing = True
            self._changed.notify_all()
        if self._dispatcher is not None:
            self._dispatcher.join()
        self._requests.shutdown()

    def __enter__(self) -> Batcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _dispatch(self) -> None:
        with self._changed:
            while not (self._queue.closing and self._queue.idle):
                taken = self._queue.take(time.monotonic())
                if taken is not None:
                    self._changed.notify_all()
                    self._begin_request(*taken)
                    continue
                pause_s = self._queue.ready_at() - time.monotonic()
                self._changed.wait(None if pause_s == float("inf") else max(pause_s, 0))

    def _begin_request(self, owner: str, entries: list[Entry[Future[Timer]]]) -> None:
        begun = threading.Lock()

        def request() -> None:
            if begun.acquire(blocking=False):
                self._request(owner, entries)

        try:
            self._requests.submit(request)
        except RuntimeError:  # no thread can be started; the pool has the request nevertheless, for the threads that it has
            self._changed.release()
            try:
                request()
            finally:
                self._changed.acquire()

    def _request(self, owner: str, entries: list[Entry[Future[Timer]]]) -> None:
        def settle(index: int, result: ItemResult) -> None:
            waiter = entries[index].waiter
            if result.timer is not None:
                waiter.set_result(result.timer)
            else:
                waiter.set_exception(result.error)

        try:
            steps = create_chunk(self._runner.session, [entry.item for entry in entries], settle, self._runner.options)
            self._runner.run(steps)
        except BaseException as crash:  # noqa: BLE001 (each waiter raises it)
            for entry in entries:
                if not entry.waiter.done():
                    entry.waiter.set_exception(crash)
        finally:
            with self._changed:
                self._queue.settled(owner, entries)
                self._changed.notify_all()
