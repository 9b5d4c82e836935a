"""The threads of a SQLite database: one that writes, and some that read."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from tocsin.model.errors import OutcomeUnknown, StoreUnavailable

T = TypeVar("T")

_SAVEPOINT = "one_work"


class Connection(Protocol):
    """A connection of a driver that begins no transactions by itself."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    def execute(self, sql: str, /) -> Any:
        """Runs a statement."""

    def close(self) -> Any:
        """Disconnects."""


C = TypeVar("C", bound=Connection)


class Translate(Protocol):
    """Translates an error into the one that callers get. It may run in any thread."""

    def __call__(self, error: BaseException, *, in_commit: bool = False) -> BaseException: ...


class _Job(NamedTuple):
    work: Callable[[Any], Any]
    done: asyncio.Future[Any]
    committed: Callable[[], None] | None
    unknown: Callable[[], None] | None


class _Settled(NamedTuple):
    job: _Job
    result: Any
    error: BaseException | None


class Writer(Generic[C]):
    """One thread does all writing. Work that accumulates while it is busy, up to `group_max`, is committed together, each
    behind a savepoint, so that a failing one rolls back only itself. With many small writes at once, most of
    their cost is the commit. `afterwards` runs in the thread after each transaction, when its callers were notified."""

    def __init__(
        self,
        name: str,
        connection: C,
        translate: Translate,
        *,
        group_max: int,
        afterwards: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._translate = translate
        self._group_max = group_max
        self._afterwards = afterwards
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name=name, daemon=True)
        self._thread.start()

    async def run(
        self,
        work: Callable[[C], T],
        committed: Callable[[], None] | None = None,
        unknown: Callable[[], None] | None = None,
    ) -> T:
        """Returns the result of `work` once it is durable. If `work` raises, its changes are rolled back.

        `committed` is called on the event loop after the commit, `unknown` instead of it if the outcome is unknown; both in
        the order of commits, even if the caller was cancelled. Must not be called once `close` was.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(work, done, committed, unknown))
        return await done

    async def close(self) -> None:
        """Waits for the work under way, then disconnects."""
        self._jobs.put(None)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._thread.join)
        await loop.run_in_executor(None, self._connection.close)

    def _write_all(self) -> None:
        while (jobs := self._next()) is not None:
            loop = jobs[0].done.get_loop()
            _call_in(loop, _settle, self._write_together(jobs))
            try:
                self._afterwards()
            except Exception as error:  # noqa: BLE001 -- it concerns no caller, and the thread goes on
                context = {"message": f"after a commit in {self._thread.name}", "exception": error}
                _call_in(loop, loop.call_exception_handler, context)

    def _next(self) -> list[_Job] | None:
        """The work that waits, up to `group_max`; None at the end, when nothing is left."""
        job = self._jobs.get()
        jobs: list[_Job] = []
        while job is not None:
            jobs.append(job)
            if len(jobs) == self._group_max:
                return jobs
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs
        if jobs:
            self._jobs.put(None)
            return jobs
        return None

    def _write_together(self, jobs: list[_Job]) -> list[_Settled]:
        settled: list[_Settled] = []
        in_commit = False
        try:
            # Takes the write lock at once, so that a busy file fails before any work is done.
            self._connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                settled.append(self._write_one(job, alone=len(jobs) == 1))
                if not self._connection.in_transaction:
                    # SQLite rolls the whole transaction back on some errors, such as a full disk.
                    raise settled[-1].error or StoreUnavailable("the work ended the transaction")
            in_commit = True
            self._connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 -- it is raised where the works' callers wait
            if self._connection.in_transaction:
                with contextlib.suppress(Exception):
                    self._connection.execute("ROLLBACK")
            translated = self._translated(error, in_commit=in_commit)
            return [_Settled(job, None, translated) for job in jobs]
        return settled

    def _write_one(self, job: _Job, *, alone: bool) -> _Settled:
        if alone:
            return _Settled(job, job.work(self._connection), None)
        self._connection.execute(f"SAVEPOINT {_SAVEPOINT}")
        try:
            settled = _Settled(job, job.work(self._connection), None)
        except BaseException as error:
            settled = _Settled(job, None, self._translated(error))
            if not self._connection.in_transaction:
                raise
            self._connection.execute(f"ROLLBACK TO {_SAVEPOINT}")
        self._connection.execute(f"RELEASE {_SAVEPOINT}")
        return settled

    def _translated(self, error: BaseException, *, in_commit: bool = False) -> BaseException:
        translated = self._translate(error, in_commit=in_commit)
        if translated is not error:
            translated.__cause__ = error
        return translated


def _call_in(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *args: Any) -> None:
    # The loop may be closed already while the process ends.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *args)


def _settle(settled: list[_Settled]) -> None:
    for job, result, error in settled:
        if error is None and job.committed is not None:
            job.committed()
        elif isinstance(error, OutcomeUnknown) and job.unknown is not None:
            job.unknown()
        if job.done.done():
            continue
        if error is None:
            job.done.set_result(result)
        else:
            job.done.set_exception(error)


class Readers(Generic[C]):
    """A thread for each connection."""

    def __init__(self, name: str, connections: Sequence[C], translate: Translate) -> None:
        self._connections = connections
        self._translate = translate
        self._idle: queue.SimpleQueue[C] = queue.SimpleQueue()
        for connection in connections:
            self._idle.put(connection)
        self._threads = ThreadPoolExecutor(len(connections), thread_name_prefix=name)

    async def run(self, work: Callable[[C], T]) -> T:
        """Runs `work` in a thread. Work that has begun continues to its end if the caller is cancelled."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, work)

    def _run(self, work: Callable[[C], T]) -> T:
        connection = self._idle.get()
        try:
            return work(connection)
        except Exception as error:
            if (translated := self._translate(error)) is error:
                raise
            raise translated from error
        finally:
            self._idle.put(connection)

    async def close(self) -> None:
        """Waits for the work under way, then disconnects."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        for connection in self._connections:
            connection.close()
