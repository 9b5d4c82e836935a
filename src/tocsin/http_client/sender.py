"""Sends requests of one kind: does what the pool decides, with connections, and reports each request's outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from tocsin.http_client.connection import Connection, Connector, ResponseCache
from tocsin.http_client.faults import NO_DESCRIPTOR
from tocsin.http_client.in_flight import RequestInFlight, RequestOutcome
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.pool import Choice, Pool
from tocsin.model.answer import NoResponse, NotSent
from tocsin.ports.clock import Clock

_Opened = Connection | NoResponse | NotSent


class Sender:
    """Sends each request once a connection is free, and reports its outcome through `finish`, never from inside `send`.

    A receiver may close an idle connection just when a request is sent on it. If such a connection closes before the first
    byte of a response, the request is replayed once, immediately, on a fresh connection: at-least-once delivery allows this,
    and without it this common race would cost a timer one of its attempts, often its only one. The same applies to a 408 on
    such a connection, which closes. A request that must not be sent twice is never replayed.
    """

    def __init__(
        self,
        limits: CallbackLimits,
        connections_max: int,
        connector: Connector,
        clock: Clock,
        finish: Callable[[RequestInFlight, RequestOutcome], None],
    ) -> None:
        self._limits = limits
        self._pool = Pool(limits, connections_max)
        self._connector = connector
        self._clock = clock
        self._finish = finish
        self._cache = ResponseCache(limits)
        self._opening: set[asyncio.Task[_Opened]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    @property
    def connections(self) -> int:
        """The number of connections, open or being opened."""
        return self._pool.connections

    def send(self, request: RequestInFlight) -> None:
        """Sends the request on an idle connection, or opens one, or has it wait for one."""
        now_ns = time.monotonic_ns()
        chosen, given_up = self._pool.choose(request, now_ns)
        if given_up:
            _abort(given_up)
        if isinstance(chosen, Connection):
            chosen.start(request, self._clock.now_us())
        elif chosen is Choice.OPEN:
            self._open(request)
        elif request.sent_at is None:
            request.deadline_ns = now_ns + self._limits.connection_wait_max_us * 1_000

    def is_waiting(self, request: RequestInFlight) -> bool:
        """Whether the request waits for a free connection."""
        return request in self._pool.waiting

    def rules_changed(self) -> None:
        """The rules for addresses have changed: no request is sent on a connection that was opened before. Requests under way
        on one end as they would have."""
        _abort(self._pool.rules_changed())
        self._serve_waiting()

    def withdraw(self, request: RequestInFlight) -> None:
        """Drops a request that its owner has ended."""
        if request.connection is not None:
            self._close(request.connection)
            request.connection = None
        elif request.task is not None:
            request.task.cancel()
        else:
            self._pool.waiting.pop(request, None)

    async def close(self) -> None:
        """Closes every connection. All requests must be withdrawn before, and none sent after."""
        self._pool.waiting.clear()
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        if self._sweep is not None:
            self._sweep.cancel()
        if self._pool.open:
            self._emptied = asyncio.get_running_loop().create_future()
            _abort(list(self._pool.open))
            await self._emptied

    # -- called by connections

    def answered(
        self, connection: Connection, request: RequestInFlight, outcome: RequestOutcome, reusable: bool
    ) -> None:
        """Keeps or closes the connection, and reports the outcome."""
        request.connection = None
        if reusable:
            self._release(connection)
        else:
            self._close(connection)
        self._finish(request, outcome)

    def dropped(self, connection: Connection, request: RequestInFlight, outcome: NoResponse, replayable: bool) -> None:
        """Replays the request if allowed, else reports the outcome."""
        request.connection = None
        self._close(connection)
        if replayable and request.replayable and not request.replayed and self._emptied is None:
            request.replayed = True
            self.send(request)
        else:
            self._finish(request, outcome)

    def lost(self, connection: Connection) -> None:
        """Removes the connection, and serves requests that wait."""
        self._pool.forget(connection)
        self._serve_waiting()
        if self._emptied is not None and not self._pool.open and not self._emptied.done():
            self._emptied.set_result(None)

    # -- internal

    def _open(self, request: RequestInFlight) -> None:
        """Opens a connection that the pool has counted."""
        origin, rules = request.origin, self._pool.rules

        def make() -> Connection:
            return Connection(self, self._limits, origin.destination, self._cache, rules)

        task = asyncio.get_running_loop().create_task(self._connector.connect(origin, make, request.deadline_ns))
        request.task = task
        self._opening.add(task)
        task.add_done_callback(lambda opened: self._opened(request, opened))

    def _opened(self, request: RequestInFlight, task: asyncio.Task[_Opened]) -> None:
        self._opening.discard(task)
        request.task = None
        opened = _result(task)
        if isinstance(opened, Connection) and not opened.lost:
            self._pool.opened(opened)
            if request.finished or request.deadline_ns <= time.monotonic_ns():
                # The deadline's owner ends the request.
                self._release(opened)
            elif opened.rules != self._pool.rules:
                self._pool.forget(opened).abort()
                self._open_again(request)
            else:
                opened.start(request, self._clock.now_us())
            return
        self._pool.not_opened(request)
        if request.finished:
            pass
        elif isinstance(opened, Connection):
            detail = "the receiver closed the connection before the request was sent"
            self._finish(request, NoResponse("CONNECTION_CLOSED", detail))
        elif isinstance(opened, NotSent) and opened.code == NO_DESCRIPTOR and self._pool.idle:
            self._pool.forget(next(iter(self._pool.idle))).abort()
            self._open_again(request)
        else:
            self._finish(request, opened)
        self._serve_waiting()

    def _open_again(self, request: RequestInFlight) -> None:
        self._pool.opening(request)
        self._open(request)

    def _release(self, connection: Connection) -> None:
        """Leaves a connection that is no longer in use to the pool."""
        if not self._pool.keep(connection, time.monotonic_ns()):
            connection.abort()
        elif self._sweep is None:
            self._schedule_sweep()
        if self._pool.waiting:
            self._serve_waiting()

    def _close(self, connection: Connection) -> None:
        self._pool.forget(connection).abort()
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        while (request := self._pool.next_waiting()) is not None:
            if request.sent_at is None:
                request.deadline_ns = time.monotonic_ns() + request.timeout_ns
            self.send(request)

    def _schedule_sweep(self) -> None:
        # A quarter of the time limit: an idle connection is kept at most a quarter longer.
        interval_s = self._limits.idle_timeout_us / 4e6
        self._sweep = asyncio.get_running_loop().call_later(interval_s, self._close_long_idle)

    def _close_long_idle(self) -> None:
        self._sweep = None
        _abort(self._pool.too_long_idle(time.monotonic_ns() - self._limits.idle_timeout_us * 1_000))
        if self._pool.idle:
            self._schedule_sweep()


def _abort(connections: Iterable[Connection]) -> None:
    for connection in connections:
        connection.abort()


def _result(task: asyncio.Task[_Opened]) -> _Opened:
    if task.cancelled():
        return NoResponse("SHUTDOWN")
    error = task.exception()
    if error is None:
        return task.result()
    task.get_loop().call_exception_handler({"message": "opening a connection failed", "exception": error, "task": task})
    return NoResponse("CONNECTION_FAILED", f"{type(error).__name__}: {error}")
