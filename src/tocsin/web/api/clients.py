"""The client connections of one process: limits of their number, of their waiting times, and of their bodies' memory.

A connection is either busy (a response is due to its client) or waits for its client, in one of the states of `Waits`.
Each wait has a time limit, and waiting connections are closed first when there are too many.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import Counter, OrderedDict
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from tocsin.ports.observer import ClientRefused, Observer
from tocsin.web.api.request import ApiLimits

#: Interval of the check for overdue connections: how late one may be closed.
SWEEP_INTERVAL_S = 1.0
#: How long a closing connection may take to accept its remaining data without any progress.
CLOSING_S = 10.0
#: The share of the memory for bodies that one client address may use, so that it can't lock out all others; at least the
#: size of the largest body.
BODIES_SHARE_MAX = 0.5


class Waits(Enum):
    """What a connection waits for."""

    REQUEST = "send the next request"
    HEAD = "send the rest of a head"
    DISCARDED = "send the rest of a body whose request has been answered"
    READER = "read more of a response"
    END = "read the rest of the last response"

    #: Enum.__hash__ would hash the name, in Python, for each request.
    __hash__ = object.__hash__


class Connection(Protocol):
    """The interface of a connection for `Clients`, which sets `waits`: None while a response is due."""

    loop: asyncio.AbstractEventLoop
    client: tuple[str, int] | None
    waits: Waits | None
    body_taken: int

    def overdue(self, waited_for: Waits) -> None:
        """The client exceeded the time limit. The connection closes, or starts a new wait."""

    def abort(self) -> None:
        """Closes the connection immediately, discarding unsent data."""


class Clients:
    """All connections of a process. `connections_max` None: no limit. Reports refusals to `observe`."""

    def __init__(
        self, limits: ApiLimits, connections_max: int | None = None, observe: Observer = lambda event: None
    ) -> None:
        self._connections_max = connections_max
        self._observe = observe
        self._open: set[Connection] = set()
        #: The waiting connections by state, with the start of the wait (loop time); longest wait first.
        self._waiting: dict[Waits, OrderedDict[Connection, float]] = {waits: OrderedDict() for waits in Waits}
        self._limits_s = {
            Waits.REQUEST: 75.0,
            Waits.HEAD: limits.request_head_timeout_s,
            Waits.DISCARDED: limits.request_read_timeout_s,
            Waits.READER: limits.request_read_timeout_s,
            Waits.END: CLOSING_S,
        }
        self._bodies_max = limits.request_bodies_bytes_max
        self._bodies_share_max = max(BODIES_SHARE_MAX * self._bodies_max, limits.batch_request_bytes_max)
        self._bodies = 0
        self._bodies_by_address: Counter[str] = Counter()
        self._sweeping: asyncio.TimerHandle | None = None
        self._now_s: Callable[[], float] = lambda: 0.0

    @property
    def count(self) -> int:
        """Open connections."""
        return len(self._open)

    @property
    def bodies_bytes(self) -> int:
        """Bytes reserved for incomplete bodies."""
        return self._bodies

    def join(self, connection: Connection, keep_alive_s: float) -> bool:
        """Adds a new connection. If there are too many, closes the one that has waited longest for its client. False: all are
        busy, and the new one must be closed."""
        self._limits_s[Waits.REQUEST] = keep_alive_s
        if self._sweeping is None:
            self._now_s = connection.loop.time
            self._sweep_later(connection.loop)
        if self._connections_max is not None and len(self._open) >= self._connections_max:
            longest = self._longest_waiting()
            self.report("too many connections", longest or connection)
            if longest is None:
                return False
            self.leave(longest)
            longest.abort()
        self._open.add(connection)
        return True

    def leave(self, connection: Connection) -> None:
        """Removes a closed connection. Idempotent."""
        self._open.discard(connection)
        self.wait(connection, None)
        self.release_body(connection)

    def wait(self, connection: Connection, waits: Waits | None) -> None:
        """Sets what the connection waits for from now on; None: it is busy."""
        before = connection.waits
        if before is not None:
            del self._waiting[before][connection]
        connection.waits = waits
        if waits is not None:
            self._waiting[waits][connection] = self._now_s()

    def take_body(self, connection: Connection, size: int) -> bool:
        """Reserves `size` bytes in total for the connection's incomplete body. False: no memory is left, nothing changed."""
        more = size - connection.body_taken
        address = _address(connection)
        if self._bodies + more > self._bodies_max or self._bodies_by_address[address] + more > self._bodies_share_max:
            return False
        connection.body_taken = size
        self._bodies += more
        self._bodies_by_address[address] += more
        return True

    def release_body(self, connection: Connection) -> None:
        """Releases the reservation: the body is complete, or no longer needed. Idempotent."""
        taken, connection.body_taken = connection.body_taken, 0
        if not taken:
            return
        address = _address(connection)
        self._bodies -= taken
        self._bodies_by_address[address] -= taken
        if not self._bodies_by_address[address]:
            del self._bodies_by_address[address]

    def report(self, reason: str, connection: Connection | None = None) -> None:
        """Reports a refused connection or request."""
        self._observe(ClientRefused(reason, None if connection is None else _address(connection)))

    def _longest_waiting(self) -> Connection | None:
        found: Connection | None = None
        since = float("inf")
        for queue in self._waiting.values():
            for connection, began in queue.items():
                if began < since:
                    found, since = connection, began
                break
        return found

    def _sweep_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweeping = loop.call_later(SWEEP_INTERVAL_S, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweep_later(loop)
        now_s = self._now_s()
        for waits, queue in self._waiting.items():
            overdue = []
            for connection, since in queue.items():
                if now_s - since < self._limits_s[waits]:
                    break
                overdue.append(connection)
            for connection in overdue:
                connection.overdue(waits)
        self.check_descriptors()

    def check_descriptors(self) -> None:
        """Reports if no file descriptor is free: the event loop does not report that it can't accept connections."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self.report("no file descriptor is left")


def _address(connection: Connection) -> str:
    return "" if connection.client is None else connection.client[0]
