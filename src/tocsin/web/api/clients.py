"""The client connections of one process: limits of their number, of their waiting times, and of the memory for what they
send slowly and read slowly.

A connection is either busy (a response is due to its client) or waits for its client, in one of the states of `Waits`.
Each wait has a time limit, and waiting connections are closed first when there are too many.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import chain
from typing import Protocol

from tocsin.ports.observer import ClientRefused, Observer
from tocsin.web.api.request import ApiLimits

#: Interval of the check for overdue connections: how late one may be closed.
SWEEP_INTERVAL_S = 1.0
#: How long a closing connection may take to accept its remaining data without any progress.
CLOSING_S = 10.0
#: The share of the memory for bodies, and of that for responses, that one client address may use, so that it can't lock out
#: all others; at least the size of the largest body or response.
SHARE_MAX = 0.5
#: Bytes by which the response to a batch may exceed its request.
_RESULTS_BYTES_MAX = 4 * 1024 * 1024


class Waits(Enum):
    """What a connection waits for."""

    REQUEST = "send the next request"
    HEAD = "send the rest of a head"
    DISCARDED = "send the rest of a body whose request has been answered"
    READER = "read more of a response"
    END = "read the rest of the last response"

    #: Enum.__hash__ would hash the name, in Python, for each request.
    __hash__ = object.__hash__


class ClientConnection(Protocol):
    """The interface of a connection for `Clients`, which sets `waits`: None while a response is due."""

    loop: asyncio.AbstractEventLoop
    client: tuple[str, int] | None
    waits: Waits | None
    body_taken: int
    response_taken: int

    def is_reading(self) -> bool:
        """Whether the client has read of its response lately, or has only begun to wait."""

    def overdue(self, waited_for: Waits) -> None:
        """The client exceeded the time limit. The connection closes, or starts a new wait."""

    def abort(self) -> None:
        """Closes the connection immediately, discarding unsent data."""


class _Budget:
    """Memory in bytes, for all connections and for those of each address; one item of `item_max` bytes has room."""

    def __init__(self, total_max: int, item_max: int) -> None:
        self._total_max = max(total_max, item_max)
        self._share_max = max(SHARE_MAX * total_max, item_max)
        self.taken = 0
        self._by_address: Counter[str] = Counter()

    def has_room(self, address: str, more: int = 0) -> bool:
        """Whether everything, and what the address has taken, is within its limit with this many bytes more."""
        return self.taken + more <= self._total_max and self._by_address[address] + more <= self._share_max

    def take(self, address: str, more: int) -> None:
        """Counts this many bytes more, or less."""
        self.taken += more
        self._by_address[address] += more
        if not self._by_address[address]:
            del self._by_address[address]


class Clients:
    """All connections of a process. `connections_max` None: no limit. Reports refusals to `observe`."""

    def __init__(
        self, limits: ApiLimits, connections_max: int | None = None, observe: Observer = lambda event: None
    ) -> None:
        self._connections_max = connections_max
        self._observe = observe
        self._open: set[ClientConnection] = set()
        #: The waiting connections by state, with the start of the wait (loop time); longest wait first.
        self._waiting: dict[Waits, OrderedDict[ClientConnection, float]] = {waits: OrderedDict() for waits in Waits}
        self._limits_s = {
            Waits.REQUEST: 75.0,
            Waits.HEAD: limits.request_head_timeout_s,
            Waits.DISCARDED: limits.request_read_timeout_s,
            Waits.READER: limits.request_read_timeout_s,
            Waits.END: CLOSING_S,
        }
        self._bodies = _Budget(limits.request_bodies_bytes_max, limits.batch_request_bytes_max)
        self._responses = _Budget(
            limits.unread_responses_bytes_max, limits.batch_request_bytes_max + _RESULTS_BYTES_MAX
        )
        self._cutting: asyncio.Handle | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self._now_s: Callable[[], float] = lambda: 0.0

    @property
    def count(self) -> int:
        """Open connections."""
        return len(self._open)

    @property
    def bodies_bytes(self) -> int:
        """Bytes reserved for incomplete bodies."""
        return self._bodies.taken

    @property
    def responses_bytes(self) -> int:
        """Bytes of responses that clients have not read."""
        return self._responses.taken

    def join(self, connection: ClientConnection, keep_alive_s: float) -> bool:
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

    def leave(self, connection: ClientConnection) -> None:
        """Removes a closed connection. Idempotent."""
        self._open.discard(connection)
        self.wait(connection, None)
        self.release_body(connection)
        self.release_response(connection)

    def wait(self, connection: ClientConnection, waits: Waits | None) -> None:
        """Sets what the connection waits for from now on; None: it is busy. One that has left waits for nothing: it would be
        closed in place of another, and that would make no room."""
        if connection not in self._open:
            waits = None
        before = connection.waits
        if before is not None:
            del self._waiting[before][connection]
        connection.waits = waits
        if waits is not None:
            self._waiting[waits][connection] = self._now_s()

    def take_body(self, connection: ClientConnection, size: int) -> bool:
        """Reserves `size` bytes in total for the connection's incomplete body. False: no memory is left, nothing changed."""
        more, address = size - connection.body_taken, _address(connection)
        if not self._bodies.has_room(address, more):
            return False
        connection.body_taken = size
        self._bodies.take(address, more)
        return True

    def release_body(self, connection: ClientConnection) -> None:
        """Releases the reservation: the body is complete, or no longer needed. Idempotent."""
        taken, connection.body_taken = connection.body_taken, 0
        if taken:
            self._bodies.take(_address(connection), -taken)

    def take_response(self, connection: ClientConnection, size: int) -> None:
        """Counts `size` more bytes of responses that are kept until the client has read the last of them. If this is too
        much, clients that don't read are cut off soon."""
        connection.response_taken += size
        address = _address(connection)
        self._responses.take(address, size)
        if self._cutting is None and not self._responses.has_room(address):
            # Not now: the caller may be writing to a connection that is closed then.
            self._cutting = connection.loop.call_soon(self._cut_off)

    def release_response(self, connection: ClientConnection) -> None:
        """The client has read everything, or is gone. Idempotent."""
        taken, connection.response_taken = connection.response_taken, 0
        if taken:
            self._responses.take(_address(connection), -taken)

    def _cut_off(self) -> None:
        """Closes connections until the responses have room: the longest waiting ones first, and those whose clients are
        reading last."""
        self._cutting = None
        waiting = [*chain(self._waiting[Waits.READER], self._waiting[Waits.END])]
        self._close_while_full(connection for connection in waiting if not connection.is_reading())
        self._close_while_full(waiting)

    def _close_while_full(self, connections: Iterable[ClientConnection]) -> None:
        for connection in connections:
            if connection.response_taken and not self._responses.has_room(_address(connection)):
                self.leave(connection)
                connection.abort()
                self.report("unread responses take too much memory", connection)

    def report(self, reason: str, connection: ClientConnection | None = None) -> None:
        """Reports a refused connection or request."""
        self._observe(ClientRefused(reason, None if connection is None else _address(connection)))

    def _longest_waiting(self) -> ClientConnection | None:
        found: ClientConnection | None = None
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


def _address(connection: ClientConnection) -> str:
    return "" if connection.client is None else connection.client[0]
