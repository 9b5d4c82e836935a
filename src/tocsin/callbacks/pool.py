"""Connections shared by all attempts: kept alive per destination, limited in all."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from tocsin.callbacks.attempt import Answer, Attempt
from tocsin.callbacks.connection import Connection, Memory
from tocsin.callbacks.connector import Connector
from tocsin.callbacks.limits import CallbackLimits
from tocsin.model.answer import NoResponse
from tocsin.ports.clock import Clock


class _Destination:
    """What is known of one destination. `idle` is a stack: its last entry was used most recently."""

    __slots__ = ("connections", "idle", "memory")

    def __init__(self, limits: CallbackLimits) -> None:
        self.connections = 0
        self.idle: list[Connection] = []
        self.memory = Memory(limits)


class Pool:
    """Finds a connection for each attempt, and reports its outcome through `finish`, never from inside `assign`.

    A receiver may close an idle connection just when we reuse it. If such a connection ends before the first byte of an
    answer, the request is sent once more at once, on a fresh connection: at-least-once allows it, and without it this
    everyday race would cost a timer one of its attempts, for most their only one. Likewise for 408 on a reused
    connection that closes. A request that must not be sent twice is not; it only goes on connections so fresh that the
    race is unlikely.
    """

    def __init__(
        self, limits: CallbackLimits, connector: Connector, clock: Clock, finish: Callable[[Attempt, Answer], None]
    ) -> None:
        self._limits = limits
        self._connector = connector
        self._clock = clock
        self._finish = finish
        self._destinations: dict[str, _Destination] = {}
        self._connections: set[Connection] = set()
        self._opening: set[asyncio.Task[Connection | NoResponse]] = set()
        self._waiting: deque[Attempt] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    def assign(self, attempt: Attempt) -> None:
        """Sends the attempt on an idle connection, or opens one, or lets it wait for the limit."""
        if not attempt.replayed:
            destination = self._destinations.get(attempt.origin.destination)
            if destination is not None and destination.idle:
                if attempt.replayable or self._is_fresh(destination):
                    destination.idle.pop().start(attempt, self._clock.now_us())
                    return
                # Else rare requests would leave a connection behind each.
                self._close_oldest(destination)
        if self._is_full() and not self._close_an_idle():
            self._waiting.append(attempt)
            return
        self._open(attempt)

    def withdraw(self, attempt: Attempt) -> None:
        """Lets go of an attempt that its owner has ended."""
        if attempt.connection is not None:
            self._discard(attempt.connection)
            attempt.connection = None
        elif attempt.task is not None:
            attempt.task.cancel()
        # One that waits is passed over when its turn comes.

    async def close(self) -> None:
        """Closes every connection. All attempts have to be withdrawn before, and none assigned after."""
        self._waiting.clear()
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        if self._sweep is not None:
            self._sweep.cancel()
        if self._connections:
            self._emptied = asyncio.get_running_loop().create_future()
            for connection in list(self._connections):
                connection.abort()
            await self._emptied

    # -- told by connections

    def answered(self, connection: Connection, attempt: Attempt, outcome: Answer, reusable: bool) -> None:
        """See Owner."""
        attempt.connection = None
        if reusable:
            self._rest(connection)
        else:
            self._discard(connection)
        self._finish(attempt, outcome)

    def dropped(self, connection: Connection, attempt: Attempt, outcome: NoResponse, replayable: bool) -> None:
        """See Owner."""
        attempt.connection = None
        self._discard(connection)
        if replayable and attempt.replayable and not attempt.replayed and self._emptied is None:
            attempt.replayed = True
            self.assign(attempt)
        else:
            self._finish(attempt, outcome)

    def lost(self, connection: Connection) -> None:
        """See Owner."""
        self._forget(connection)
        self._serve_waiting()
        if self._emptied is not None and not self._connections and not self._emptied.done():
            self._emptied.set_result(None)

    # -- ourselves

    def _open(self, attempt: Attempt) -> None:
        origin = attempt.origin
        memory = self._destination(origin.destination).memory

        def make() -> Connection:
            return Connection(self, self._limits, origin.destination, memory)

        task = asyncio.get_running_loop().create_task(self._connector.connect(origin, make, attempt.deadline_ns))
        attempt.task = task
        self._opening.add(task)
        task.add_done_callback(lambda opened: self._opened(attempt, opened))

    def _opened(self, attempt: Attempt, task: asyncio.Task[Connection | NoResponse]) -> None:
        self._opening.discard(task)
        attempt.task = None
        connection = _result(task)
        if isinstance(connection, NoResponse):
            if not attempt.finished:
                self._finish(attempt, connection)
            self._serve_waiting()
            return
        if connection.lost:
            self._serve_waiting()
            if not attempt.finished:
                detail = "the receiver closed the connection before the request was sent"
                self._finish(attempt, NoResponse("CONNECTION_CLOSED", detail))
            return
        self._connections.add(connection)
        self._destination(connection.destination).connections += 1
        if attempt.finished:
            self._rest(connection)
        else:
            connection.start(attempt, self._clock.now_us())

    def _destination(self, name: str) -> _Destination:
        destination = self._destinations.get(name)
        if destination is None:
            destination = self._destinations[name] = _Destination(self._limits)
        return destination

    def _is_fresh(self, destination: _Destination) -> bool:
        """Whether the connection that would be taken was in use a moment ago."""
        return time.monotonic_ns() - destination.idle[-1].idle_since_ns < self._limits.reuse_idle_max_us * 1_000

    def _rest(self, connection: Connection) -> None:
        idle = self._destinations[connection.destination].idle
        if len(idle) >= self._limits.idle_connections_max:
            self._discard(connection)
            return
        connection.idle_since_ns = time.monotonic_ns()
        idle.append(connection)
        if self._sweep is None:
            self._schedule_sweep()
        if self._waiting:
            self._serve_waiting(has_idle=True)

    def _serve_waiting(self, has_idle: bool = False) -> None:
        while self._waiting:
            if self._waiting[0].finished:
                self._waiting.popleft()
                continue
            if self._is_full() and not has_idle:
                return
            has_idle = False
            self.assign(self._waiting.popleft())

    def _is_full(self) -> bool:
        return len(self._connections) + len(self._opening) >= self._limits.connections_max

    def _close_an_idle(self) -> bool:
        for destination in self._destinations.values():
            if destination.idle:
                self._close_oldest(destination)
                return True
        return False

    def _close_oldest(self, destination: _Destination) -> None:
        connection = destination.idle[0]
        self._forget(connection)
        connection.abort()

    def _discard(self, connection: Connection) -> None:
        self._forget(connection)
        connection.abort()
        self._serve_waiting()

    def _forget(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            destination = self._destinations[connection.destination]
            destination.connections -= 1
            if connection in destination.idle:
                destination.idle.remove(connection)

    def _schedule_sweep(self) -> None:
        # A quarter of the time limit: an idle connection lives at most a quarter longer than it should.
        interval_s = self._limits.idle_timeout_us / 4e6
        self._sweep = asyncio.get_running_loop().call_later(interval_s, self._close_long_idle)

    def _close_long_idle(self) -> None:
        self._sweep = None
        oldest_ns = time.monotonic_ns() - self._limits.idle_timeout_us * 1_000
        for name, destination in list(self._destinations.items()):
            while destination.idle and destination.idle[0].idle_since_ns <= oldest_ns:
                self._close_oldest(destination)
            if not destination.connections:
                del self._destinations[name]
        if self._destinations:
            self._schedule_sweep()


def _result(task: asyncio.Task[Connection | NoResponse]) -> Connection | NoResponse:
    if task.cancelled():
        return NoResponse("SHUTDOWN")
    error = task.exception()
    if error is None:
        return task.result()
    task.get_loop().call_exception_handler({"message": "opening a connection failed", "exception": error, "task": task})
    return NoResponse("CONNECTION_FAILED", f"{type(error).__name__}: {error}")
