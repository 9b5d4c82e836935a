"""Which connection a request goes on, and which connections are kept. It decides and does no I/O; `sender` carries it out."""

from __future__ import annotations

from enum import Enum, auto

from tocsin.http_client.connection import Connection
from tocsin.http_client.in_flight import RequestInFlight
from tocsin.http_client.limits import CallbackLimits


class Choice(Enum):
    """For a request without an idle connection: one is opened for it, or it waits because the limit is reached."""

    OPEN = auto()
    WAIT = auto()


class _Destination:
    """The connections of one destination, open or being opened. The last entry of `idle` was used most recently."""

    __slots__ = ("connections", "idle")

    def __init__(self) -> None:
        self.connections = 0
        self.idle: dict[Connection, None] = {}


class Pool:
    """The connections for requests of one kind: kept alive per destination, limited in total. A connection that it gives up
    is forgotten, and has to be aborted.

    A destination without connections takes no memory, so that `connections_max` bounds the pool's memory.
    """

    def __init__(self, limits: CallbackLimits, connections_max: int) -> None:
        self._limits = limits
        self._connections_max = connections_max
        #: How often the rules for addresses have changed.
        self.rules = 0
        #: Connections in use and idle ones.
        self.open: set[Connection] = set()
        #: Requests that wait for a connection, in the order of their turns.
        self.waiting: dict[RequestInFlight, None] = {}
        #: Idle connections of all destinations, the longest idle first.
        self.idle: dict[Connection, None] = {}
        self._opening = 0
        self._destinations: dict[str, _Destination] = {}

    @property
    def connections(self) -> int:
        """The number of connections, open or being opened."""
        return len(self.open) + self._opening

    def choose(self, request: RequestInFlight, now_ns: int) -> tuple[Connection | Choice, list[Connection]]:
        """Where the request goes: on the idle connection that is returned, on one to be opened for it, or among those that
        wait. And the connections that are given up: found dead, or closed to make room.

        A request that is made again goes on a fresh connection; one that must not be sent twice, only on a fresh one or on
        one so recently used that the receiver has hardly closed it.
        """
        destination = self._destinations.get(request.origin.destination)
        given_up: list[Connection] = []
        while destination is not None and destination.idle and not request.replayed:
            connection = next(reversed(destination.idle))
            if connection.closing:
                given_up.append(self.forget(connection))
            elif request.replayable or now_ns - connection.idle_since_ns < self._limits.reuse_idle_max_us * 1_000:
                del destination.idle[connection], self.idle[connection]
                return connection, given_up
            else:
                # Otherwise each of several rare requests would leave an idle connection.
                given_up.append(self.forget(next(iter(destination.idle))))
                break
        if self._is_full():
            if not self.idle:
                self.waiting[request] = None
                return Choice.WAIT, given_up
            given_up.append(self.forget(next(iter(self.idle))))
        self.opening(request)
        return Choice.OPEN, given_up

    def next_waiting(self) -> RequestInFlight | None:
        """Removes and returns the first request that waits, if there may be a connection for it now."""
        if not self.waiting or (self._is_full() and not self.idle):
            return None
        request = next(iter(self.waiting))
        del self.waiting[request]
        return request

    def opening(self, request: RequestInFlight) -> None:
        """Counts a connection that is being opened, until `opened` or `not_opened`."""
        name = request.origin.destination
        destination = self._destinations.get(name)
        if destination is None:
            destination = self._destinations[name] = _Destination()
        destination.connections += 1
        self._opening += 1

    def opened(self, connection: Connection) -> None:
        """The connection is open, and in use."""
        self._opening -= 1
        self.open.add(connection)

    def not_opened(self, request: RequestInFlight) -> None:
        """The connection for this request could not be opened."""
        self._opening -= 1
        self._uncount(request.origin.destination)

    def keep(self, connection: Connection, now_ns: int) -> bool:
        """Whether a connection that is no longer in use stays open, idle; if not, it is given up."""
        idle = self._destinations[connection.destination].idle
        if len(idle) >= self._limits.idle_connections_max or connection.rules != self.rules:
            self.forget(connection)
            return False
        connection.idle_since_ns = now_ns
        idle[connection] = self.idle[connection] = None
        return True

    def rules_changed(self) -> list[Connection]:
        """No request is sent on a connection that was opened before this call. Returns the connections given up."""
        self.rules += 1
        return [self.forget(connection) for connection in list(self.idle)]

    def too_long_idle(self, until_ns: int) -> list[Connection]:
        """Gives up connections that have been idle since this instant or longer, and returns them."""
        given_up = []
        while (connection := next(iter(self.idle), None)) is not None and connection.idle_since_ns <= until_ns:
            given_up.append(self.forget(connection))
        return given_up

    def forget(self, connection: Connection) -> Connection:
        """Removes the connection, if the pool still has it, and returns it."""
        if connection in self.open:
            self.open.discard(connection)
            self.idle.pop(connection, None)
            self._destinations[connection.destination].idle.pop(connection, None)
            self._uncount(connection.destination)
        return connection

    def _is_full(self) -> bool:
        return self.connections >= self._connections_max

    def _uncount(self, name: str) -> None:
        destination = self._destinations[name]
        destination.connections -= 1
        if not destination.connections:
            del self._destinations[name]
