"""Limits concurrent executions, in total and per destination, and decides which order is next."""

from __future__ import annotations

from collections import deque
from typing import Generic, Protocol, TypeVar


class Bound(Protocol):
    """An item with a destination."""

    destination: str


B = TypeVar("B", bound=Bound)


class _Destination(Generic[B]):
    """`queued`: it is in the rotation."""

    __slots__ = ("deferred", "in_flight", "name", "queued")

    def __init__(self, name: str) -> None:
        self.name = name
        self.in_flight = 0
        self.queued = False
        self.deferred: deque[B] = deque()


class Slots(Generic[B]):
    """Admits deferred items within both limits. Destinations that have deferred items and free slots take turns, one item
    each.

    The slot of the destination is free when the destination has answered; the slot of the total is free only when the
    result is durable, so that unwritten results never accumulate.
    """

    def __init__(self, in_flight_max: int, per_destination_max: int) -> None:
        self._in_flight_max = in_flight_max
        self._per_destination_max = per_destination_max
        self._destinations: dict[str, _Destination[B]] = {}
        self._rotation: deque[_Destination[B]] = deque()
        #: Items that were admitted and not released.
        self.in_flight = 0
        #: Items that wait.
        self.deferred = 0

    def add(self, item: B) -> None:
        """Adds a deferred item; `admit` returns it when its turn comes."""
        destination = self._destinations.get(item.destination)
        if destination is None:
            destination = self._destinations[item.destination] = _Destination(item.destination)
        destination.deferred.append(item)
        self.deferred += 1
        self._rotate(destination)

    def admit(self) -> list[B]:
        """The items that may start now. For each, call `answered` and `released` once."""
        admitted: list[B] = []
        while self._rotation and self.in_flight < self._in_flight_max:
            destination = self._rotation.popleft()
            destination.queued = False
            admitted.append(destination.deferred.popleft())
            destination.in_flight += 1
            self.in_flight += 1
            self.deferred -= 1
            self._rotate(destination)
        return admitted

    def answered(self, item: B) -> None:
        """The item no longer uses its destination."""
        destination = self._destinations[item.destination]
        destination.in_flight -= 1
        self._rotate(destination)
        if destination.in_flight == 0 and not destination.deferred:
            del self._destinations[destination.name]

    def released(self) -> None:
        """One admitted item has ended."""
        self.in_flight -= 1

    def drop_deferred(self) -> list[B]:
        """Removes and returns all deferred items."""
        deferred = [item for destination in self._destinations.values() for item in destination.deferred]
        self._rotation.clear()
        self.deferred = 0
        for destination in list(self._destinations.values()):
            destination.deferred.clear()
            destination.queued = False
            if destination.in_flight == 0:
                del self._destinations[destination.name]
        return deferred

    def _rotate(self, destination: _Destination[B]) -> None:
        if destination.deferred and not destination.queued and destination.in_flight < self._per_destination_max:
            destination.queued = True
            self._rotation.append(destination)
