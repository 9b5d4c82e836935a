"""A connection pool for the attempts of one kind: connections are kept alive per destination, and limited in total."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tocsin.http_client.attempt import Attempt, AttemptOutcome
from tocsin.http_client.connection import Connection, Connector, ResponseCache
from tocsin.http_client.faults import NO_DESCRIPTOR
from tocsin.http_client.limits import CallbackLimits
from tocsin.model.answer import NoResponse, NotSent
from tocsin.ports.clock import Clock

_Opened = Connection | NoResponse | NotSent


class _Destination:
    """The connections of one destination, open or being opened. The last entry of `idle` was used most recently."""

    __slots__ = ("connections", "idle")

    def __init__(self) -> None:
        self.connections = 0
        self.idle: dict[Connection, None] = {}


class Pool:
    """Finds a connection for each attempt, and reports its outcome through `finish`, never from inside `assign`.

    A receiver may close an idle connection just when it is reused. If such a connection closes before the first byte of a
    response, the request is replayed once, immediately, on a fresh connection: at-least-once delivery allows this, and
    without it this common race would cost a timer one of its attempts, often its only one. The same applies to a 408 on a
    reused connection that closes. A request that must not be sent twice is never replayed; it is sent only on connections
    so recently used that the race is unlikely.

    A destination without connections takes no memory, so that `connections_max` bounds the pool's memory.
    """

    def __init__(
        self,
        limits: CallbackLimits,
        connections_max: int,
        connector: Connector,
        clock: Clock,
        finish: Callable[[Attempt, AttemptOutcome], None],
    ) -> None:
        self._limits = limits
        self._connections_max = connections_max
        self._connector = connector
        self._clock = clock
        self._finish = finish
        self._cache = ResponseCache(limits)
        self._destinations: dict[str, _Destination] = {}
        self._connections: set[Connection] = set()
        #: Idle connections of all destinations, the longest idle first.
        self._idle: dict[Connection, None] = {}
        self._opening: set[asyncio.Task[_Opened]] = set()
        self._waiting: dict[Attempt, None] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None
        #: How often the rules for addresses have changed.
        self._rules = 0

    @property
    def connections(self) -> int:
        """The number of connections, open or being opened."""
        return len(self._connections) + len(self._opening)

    def assign(self, attempt: Attempt) -> None:
        """Sends the attempt on an idle connection, or opens one, or queues the attempt if the limit is reached."""
        connection = None if attempt.replayed else self._take_idle(attempt)
        if connection is not None:
            connection.start(attempt, self._clock.now_us())
        elif self._is_full() and not self._close_longest_idle():
            self._waiting[attempt] = None
            if attempt.sent_at is None:
                attempt.deadline_ns = time.monotonic_ns() + self._limits.connection_wait_max_us * 1_000
        else:
            self._open(attempt)

    def is_waiting(self, attempt: Attempt) -> bool:
        """Whether the attempt waits for a free connection."""
        return attempt in self._waiting

    def rules_changed(self) -> None:
        """The rules for addresses have changed: no request is sent on a connection that was opened before. Requests under way
        on one end as they would have."""
        self._rules += 1
        for connection in list(self._idle):
            self._close(connection)
        self._serve_waiting()

    def withdraw(self, attempt: Attempt) -> None:
        """Drops an attempt that its owner has ended."""
        if attempt.connection is not None:
            self._discard(attempt.connection)
            attempt.connection = None
        elif attempt.task is not None:
            attempt.task.cancel()
        else:
            self._waiting.pop(attempt, None)

    async def close(self) -> None:
        """Closes every connection. All attempts must be withdrawn before, and none assigned after."""
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

    # -- called by connections

    def answered(self, connection: Connection, attempt: Attempt, outcome: AttemptOutcome, reusable: bool) -> None:
        """Keeps or closes the connection, and reports the outcome."""
        attempt.connection = None
        if reusable:
            self._rest(connection)
        else:
            self._discard(connection)
        self._finish(attempt, outcome)

    def dropped(self, connection: Connection, attempt: Attempt, outcome: NoResponse, replayable: bool) -> None:
        """Replays the attempt if allowed, else reports the outcome."""
        attempt.connection = None
        self._discard(connection)
        if replayable and attempt.replayable and not attempt.replayed and self._emptied is None:
            attempt.replayed = True
            self.assign(attempt)
        else:
            self._finish(attempt, outcome)

    def lost(self, connection: Connection) -> None:
        """Removes the connection, and serves queued attempts."""
        self._forget(connection)
        self._serve_waiting()
        if self._emptied is not None and not self._connections and not self._emptied.done():
            self._emptied.set_result(None)

    # -- internal

    def _take_idle(self, attempt: Attempt) -> Connection | None:
        destination = self._destinations.get(attempt.origin.destination)
        while destination is not None and destination.idle:
            connection = next(reversed(destination.idle))
            if connection.closing:
                self._close(connection)
            elif attempt.replayable or self._is_fresh(connection):
                del destination.idle[connection], self._idle[connection]
                return connection
            else:
                # Otherwise each of several rare requests would leave an idle connection.
                self._close(next(iter(destination.idle)))
                return None
        return None

    def _open(self, attempt: Attempt) -> None:
        origin = attempt.origin
        destination = self._destinations.get(origin.destination)
        if destination is None:
            destination = self._destinations[origin.destination] = _Destination()
        destination.connections += 1
        rules = self._rules

        def make() -> Connection:
            return Connection(self, self._limits, origin.destination, self._cache, rules)

        task = asyncio.get_running_loop().create_task(self._connector.connect(origin, make, attempt.deadline_ns))
        attempt.task = task
        self._opening.add(task)
        task.add_done_callback(lambda opened: self._opened(attempt, opened))

    def _opened(self, attempt: Attempt, task: asyncio.Task[_Opened]) -> None:
        self._opening.discard(task)
        attempt.task = None
        opened = _result(task)
        if isinstance(opened, Connection) and not opened.lost:
            self._connections.add(opened)
            if attempt.finished or attempt.deadline_ns <= time.monotonic_ns():
                # The deadline's owner ends the attempt.
                self._rest(opened)
            elif opened.rules != self._rules:
                self._close(opened)
                self._open(attempt)
            else:
                opened.start(attempt, self._clock.now_us())
            return
        self._uncount(attempt.origin.destination)
        if attempt.finished:
            pass
        elif isinstance(opened, Connection):
            detail = "the receiver closed the connection before the request was sent"
            self._finish(attempt, NoResponse("CONNECTION_CLOSED", detail))
        elif isinstance(opened, NotSent) and opened.code == NO_DESCRIPTOR and self._close_longest_idle():
            self._open(attempt)
        else:
            self._finish(attempt, opened)
        self._serve_waiting()

    def _is_fresh(self, connection: Connection) -> bool:
        """Whether the connection was in use recently enough for a request that must not be sent twice."""
        return time.monotonic_ns() - connection.idle_since_ns < self._limits.reuse_idle_max_us * 1_000

    def _rest(self, connection: Connection) -> None:
        idle = self._destinations[connection.destination].idle
        if len(idle) >= self._limits.idle_connections_max or connection.rules != self._rules:
            self._discard(connection)
            return
        connection.idle_since_ns = time.monotonic_ns()
        idle[connection] = self._idle[connection] = None
        if self._sweep is None:
            self._schedule_sweep()
        if self._waiting:
            self._serve_waiting()

    def _serve_waiting(self) -> None:
        while self._waiting and (self._idle or not self._is_full()):
            attempt = next(iter(self._waiting))
            del self._waiting[attempt]
            if attempt.sent_at is None:
                attempt.deadline_ns = time.monotonic_ns() + attempt.timeout_ns
            self.assign(attempt)

    def _is_full(self) -> bool:
        return self.connections >= self._connections_max

    def _close_longest_idle(self) -> bool:
        connection = next(iter(self._idle), None)
        if connection is None:
            return False
        self._close(connection)
        return True

    def _close(self, connection: Connection) -> None:
        self._forget(connection)
        connection.abort()

    def _discard(self, connection: Connection) -> None:
        self._close(connection)
        self._serve_waiting()

    def _forget(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            self._idle.pop(connection, None)
            self._destinations[connection.destination].idle.pop(connection, None)
            self._uncount(connection.destination)

    def _uncount(self, name: str) -> None:
        destination = self._destinations[name]
        destination.connections -= 1
        if not destination.connections:
            del self._destinations[name]

    def _schedule_sweep(self) -> None:
        # A quarter of the time limit: an idle connection is kept at most a quarter longer.
        interval_s = self._limits.idle_timeout_us / 4e6
        self._sweep = asyncio.get_running_loop().call_later(interval_s, self._close_long_idle)

    def _close_long_idle(self) -> None:
        self._sweep = None
        oldest_ns = time.monotonic_ns() - self._limits.idle_timeout_us * 1_000
        while (connection := next(iter(self._idle), None)) is not None and connection.idle_since_ns <= oldest_ns:
            self._close(connection)
        if self._idle:
            self._schedule_sweep()


def _result(task: asyncio.Task[_Opened]) -> _Opened:
    if task.cancelled():
        return NoResponse("SHUTDOWN")
    error = task.exception()
    if error is None:
        return task.result()
    task.get_loop().call_exception_handler({"message": "opening a connection failed", "exception": error, "task": task})
    return NoResponse("CONNECTION_FAILED", f"{type(error).__name__}: {error}")
