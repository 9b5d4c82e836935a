"""Slots: how many attempts a node makes at once, and how namespaces share them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tocsin.timers.engine.destination import Queue

#: What one namespace (of a node's slots), path (of a destination's) or queue (of memory) may hold, as a multiple of what is
#: free. A higher value gives one that is alone more (GREED of GREED + 1 parts), and leaves a newcomer less.
GREED = 4


class Slots:
    """The slots for attempts of one kind. One destination gets at most `destination_max`."""

    __slots__ = ("_in_flight_of", "blocked", "destination_max", "in_flight", "limit")

    def __init__(self, limit: int, destination_max: int) -> None:
        self.limit = limit
        self.destination_max = destination_max
        self.in_flight = 0
        self._in_flight_of: dict[str, int] = {}
        #: Queues whose destination has room and whose namespace has used up its share of the slots, by namespace, in the
        #: order of their turns. All other queues are served when their destination gets room.
        self.blocked: dict[str, dict[Queue, None]] = {}

    @property
    def free(self) -> int:
        """Free slots."""
        return self.limit - self.in_flight

    def has_slot(self, namespace: str) -> bool:
        """Whether the namespace may have one more slot."""
        return self._in_flight_of.get(namespace, 0) < GREED * (self.limit - self.in_flight)

    def begin(self, namespace: str) -> None:
        """Takes a slot."""
        self.in_flight += 1
        self._in_flight_of[namespace] = self._in_flight_of.get(namespace, 0) + 1

    def end(self, namespace: str) -> None:
        """Frees a slot."""
        self.in_flight -= 1
        left = self._in_flight_of[namespace] - 1
        if left:
            self._in_flight_of[namespace] = left
        else:
            del self._in_flight_of[namespace]

    def block(self, queue: Queue) -> None:
        """Has the queue wait for its namespace's turn."""
        self.blocked.setdefault(queue.namespace, {})[queue] = None

    def unblock(self, queue: Queue) -> None:
        """The queue waits no more."""
        waiting = self.blocked.get(queue.namespace)
        if waiting is not None:
            waiting.pop(queue, None)
            if not waiting:
                del self.blocked[queue.namespace]
