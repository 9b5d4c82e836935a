"""Which waiting timers go into the next request. Time is passed in."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tocsin_client._core.batches import BYTES_MAX, ENVELOPE_BYTES, Item

Waiter = TypeVar("Waiter")

ITEMS_PER_REQUEST = 500
LINGER_S = 0.005
REQUESTS_PER_OWNER = 2
WAITING_MAX = 10_000


@dataclass(frozen=True)
class Entry(Generic[Waiter]):
    """A timer that waits, and who waits for it."""

    item: Item
    waiter: Waiter
    added_at: float


@dataclass
class _Lane(Generic[Waiter]):
    """The timers for one node."""

    waiting: deque[Entry[Waiter]] = field(default_factory=deque)
    requests: int = 0


class BatchQueue(Generic[Waiter]):
    """Collects timers by owner until there are enough for a request, or the first has waited long enough."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane[Waiter]] = {}
        #: Timers in requests: two requests with the same one could take effect in either order.
        self._in_flight: set[Hashable] = set()
        #: Of each timer that waits the owner, and how often it waits.
        self._places: dict[Hashable, tuple[str, int]] = {}
        self.waiting = 0
        #: Whether nothing more comes, so that there is nothing to linger for.
        self.closing = False

    @property
    def full(self) -> bool:
        """Whether a caller should wait before it adds more."""
        return self.waiting >= WAITING_MAX

    @property
    def idle(self) -> bool:
        """Whether every timer was taken and settled."""
        return self.waiting == 0 and not self._in_flight

    def add(self, item: Item, waiter: Waiter, owner: str, now: float) -> None:
        """Appends the timer to those of its owner, or where the same timer already waits: one after the other takes effect,
        also if its owner has changed meanwhile."""
        owner, times = self._places.get(item.place, (owner, 0))
        self._places[item.place] = owner, times + 1
        self._lanes.setdefault(owner, _Lane()).waiting.append(Entry(item, waiter, now))
        self.waiting += 1

    def take(self, now: float) -> tuple[str, list[Entry[Waiter]]] | None:
        """The owner and the timers of a request to send now. `settled` has to follow."""
        for owner, lane in self._lanes.items():
            if self._ready_at(lane) <= now and (taken := self._take(lane)):
                lane.requests += 1
                return owner, taken
        return None

    def ready_at(self) -> float:
        """When `take` has something, if nothing is added or settled before; infinity: never."""
        return min((self._ready_at(lane) for lane in self._lanes.values()), default=float("inf"))

    def settled(self, owner: str, entries: Sequence[Entry[Waiter]]) -> None:
        """The request of these timers is over."""
        self._in_flight.difference_update(entry.item.place for entry in entries)
        lane = self._lanes[owner]
        lane.requests -= 1
        if not lane.waiting and not lane.requests:
            del self._lanes[owner]

    def _ready_at(self, lane: _Lane[Waiter]) -> float:
        free = any(entry.item.place not in self._in_flight for entry in lane.waiting)
        if not free or lane.requests >= REQUESTS_PER_OWNER:
            return float("inf")
        if self.closing or len(lane.waiting) >= ITEMS_PER_REQUEST:
            return float("-inf")
        return lane.waiting[0].added_at + LINGER_S

    def _take(self, lane: _Lane[Waiter]) -> list[Entry[Waiter]]:
        taken: list[Entry[Waiter]] = []
        left: deque[Entry[Waiter]] = deque()
        size_bytes = ENVELOPE_BYTES
        #: Names that wait on: later timers of the same name stay behind them.
        blocked: set[Hashable] = set()
        while lane.waiting:
            entry = lane.waiting.popleft()
            place, fits = entry.item.place, size_bytes + entry.item.size_bytes <= BYTES_MAX or not taken
            if len(taken) < ITEMS_PER_REQUEST and fits and place not in self._in_flight and place not in blocked:
                taken.append(entry)
                size_bytes += entry.item.size_bytes
                self._in_flight.add(place)
                owner, times = self._places.pop(place)
                if times > 1:
                    self._places[place] = owner, times - 1
            else:
                left.append(entry)
                blocked.add(place)
            if len(taken) == ITEMS_PER_REQUEST:
                break
        left.extend(lane.waiting)
        lane.waiting = left
        self.waiting -= len(taken)
        return taken
