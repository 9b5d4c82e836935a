"""Limits concurrent executions, in total and per destination, and decides which order is next."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Bound(Protocol):
    """An item with a destination."""

    destination: str


B = TypeVar("B", bound=Bound)


class Slots(Generic[B]):
    """Admits deferred items within both limits. Destinations that have deferred items and free slots take turns, one item
    each.

    The slot of the destination is free when the destination has answered; the slot of the total is free only when the
    result is durable, so that unwritten results never accumulate.
    """

    def __init__(self, in_flight_max: int, per_destination_max: int) -> None:
        self._in_flight_max = in_flight_max
        self._per_destination_max = per_destination_max
        self._deferred: defaultdict[str, deque[B]] = defaultdict(deque)
        self._in_flight_to: defaultdict[str, int] = defaultdict(int)
        # Destinations that have deferred items and free slots, in the order of their turns.
        self._turns: deque[str] = deque()
        self._has_turn: set[str] = set()
        #: Items that were admitted and not released.
        self.in_flight = 0
        #: Items that wait.
        self.deferred = 0

    def add(self, item: B) -> None:
        """Adds a deferred item; `admit` returns it when its turn comes."""
        self._deferred[item.destination].append(item)
        self.deferred += 1
        self._give_turn(item.destination)

    def admit(self, lets_begin: Callable[[B], bool] = lambda item: True) -> list[B]:
        """The items that may start now. For each, call `answered` and `released` once. An item that has its turn and that
        `lets_begin` refuses takes no slot, and is no longer deferred here."""
        admitted: list[B] = []
        while self._turns and self.in_flight < self._in_flight_max:
            destination = self._turns.popleft()
            self._has_turn.remove(destination)
            deferred = self._deferred[destination]
            item = deferred.popleft()
            if not deferred:
                del self._deferred[destination]
            self.deferred -= 1
            if lets_begin(item):
                admitted.append(item)
                self._in_flight_to[destination] += 1
                self.in_flight += 1
            self._give_turn(destination)
        return admitted

    def answered(self, item: B) -> None:
        """The item no longer uses its destination."""
        self._in_flight_to[item.destination] -= 1
        if self._in_flight_to[item.destination] == 0:
            del self._in_flight_to[item.destination]
        self._give_turn(item.destination)

    def has_room(self, destination: str) -> bool:
        """Whether an item for this destination would be admitted at once."""
        return (
            self.in_flight < self._in_flight_max and self._in_flight_to.get(destination, 0) < self._per_destination_max
        )

    def released(self) -> None:
        """One admitted item has ended."""
        self.in_flight -= 1

    def is_crowded(self, destination: str, deferred_max: int) -> bool:
        """Whether so many items wait for a slot of the destination that another one should wait elsewhere: as many as there
        is room for others, of at most `deferred_max`. So one destination takes half of the room, and there is always some
        left for one that has few."""
        if self.deferred < deferred_max // 2:
            # No destination can have as many.
            return False
        free = min(
            self._in_flight_max - self.in_flight, self._per_destination_max - self._in_flight_to.get(destination, 0)
        )
        waiting = len(self._deferred.get(destination, ())) - max(free, 0)
        return waiting >= max(deferred_max - self.deferred, 0)

    def drop_if(self, is_late: Callable[[B], bool]) -> list[B]:
        """Removes and returns all deferred items of those destinations of which the first item is late."""
        dropped: list[B] = []
        for destination, deferred in list(self._deferred.items()):
            if is_late(deferred[0]):
                dropped += self._deferred.pop(destination)
                if destination in self._has_turn:
                    self._has_turn.remove(destination)
                    self._turns.remove(destination)
        self.deferred -= len(dropped)
        return dropped

    def drop_deferred(self) -> list[B]:
        """Removes and returns all deferred items."""
        dropped = [item for deferred in self._deferred.values() for item in deferred]
        for waiting in (self._deferred, self._turns, self._has_turn):
            waiting.clear()
        self.deferred = 0
        return dropped

    def _give_turn(self, destination: str) -> None:
        free = self._in_flight_to.get(destination, 0) < self._per_destination_max
        if free and destination in self._deferred and destination not in self._has_turn:
            self._has_turn.add(destination)
            self._turns.append(destination)
