"""How many executions are under way at once, in all and per destination, and whose turn is next."""

from __future__ import annotations

from collections import deque
from typing import Generic, Protocol, TypeVar


class Bound(Protocol):
    """What goes somewhere."""

    destination: str


B = TypeVar("B", bound=Bound)


class _Destination(Generic[B]):
    """`queued`: it stands in the rotation."""

    __slots__ = ("in_flight", "name", "queued", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.in_flight = 0
        self.queued = False
        self.waiting: deque[B] = deque()


class Slots(Generic[B]):
    """Lets what is held go, within both limits; destinations that have work and room take turns, one each.

    The place at the destination is free when it has answered; the place in all only when the result is durable, so that
    results never pile up.
    """

    def __init__(self, in_flight_max: int, per_destination_max: int) -> None:
        self._in_flight_max = in_flight_max
        self._per_destination_max = per_destination_max
        self._destinations: dict[str, _Destination[B]] = {}
        self._rotation: deque[_Destination[B]] = deque()
        #: What was let go and has not been released.
        self.in_flight = 0
        #: What waits.
        self.waiting = 0

    def add(self, item: B) -> None:
        """It wants to go; `admit` says when."""
        destination = self._destinations.get(item.destination)
        if destination is None:
            destination = self._destinations[item.destination] = _Destination(item.destination)
        destination.waiting.append(item)
        self.waiting += 1
        self._rotate(destination)

    def admit(self) -> list[B]:
        """What may go now. Each is followed by one `answered` and one `released`."""
        admitted: list[B] = []
        while self._rotation and self.in_flight < self._in_flight_max:
            destination = self._rotation.popleft()
            destination.queued = False
            admitted.append(destination.waiting.popleft())
            destination.in_flight += 1
            self.in_flight += 1
            self.waiting -= 1
            self._rotate(destination)
        return admitted

    def answered(self, item: B) -> None:
        """Nothing is under way to its destination for it any more."""
        destination = self._destinations[item.destination]
        destination.in_flight -= 1
        self._rotate(destination)
        if destination.in_flight == 0 and not destination.waiting:
            del self._destinations[destination.name]

    def released(self) -> None:
        """One that was let go has come to its end."""
        self.in_flight -= 1

    def drop_waiting(self) -> list[B]:
        """Takes back all that waits."""
        waiting = [item for destination in self._destinations.values() for item in destination.waiting]
        self._rotation.clear()
        self.waiting = 0
        for destination in list(self._destinations.values()):
            destination.waiting.clear()
            destination.queued = False
            if destination.in_flight == 0:
                del self._destinations[destination.name]
        return waiting

    def _rotate(self, destination: _Destination[B]) -> None:
        if destination.waiting and not destination.queued and destination.in_flight < self._per_destination_max:
            destination.queued = True
            self._rotation.append(destination)
