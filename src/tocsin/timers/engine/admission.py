"""Admission control: which due timers may fire now and which are deferred.

It shares the node's callback slots among namespaces and destinations, and the memory for deferred timers among the shards.
Both are divided by one rule: a claimant may hold up to `GREED` times what is free. One alone gets four fifths; several that
want more than there is get equal parts; and something is always left for a newcomer. No claimant has to be counted or
weighted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from tocsin.ports.forward import Obstacle
from tocsin.ports.http import Caller
from tocsin.timers.engine.rows import Row

if TYPE_CHECKING:
    from tocsin.timers.engine.context import Context
    from tocsin.timers.engine.shard import Shard

#: What one namespace (of slots) or queue (of memory) may hold, as a multiple of what is free. A higher value gives one that
#: is alone more (GREED of GREED + 1 parts), and leaves a newcomer less.
GREED = 4
#: Deferred timers may take 1/n of a shard's share of the window. The loader continues while less than half of the share is
#: full.
DEFERRED_PART = 4
#: A destination may have more deferred timers than its share if, at the pace of its answers, all of them drain within this
#: time: suspending a burst would cost two writes for each timer, and other timers are late by at most this long.
DRAIN_US_MAX = 10_000_000
#: A destination that has not answered for so long is no longer taken for a fast one.
STALL_US = 1_000_000
#: Answers over which the pace is averaged.
_PACE_ANSWERS = 64
#: Suspended timers are resumed when less than 1/n of what a queue may hold is waiting, until 2/n are.
#: The gap avoids reading the store for every single timer.
RESUME_PARTS = 4
#: Namespaces checked at most for one slot that became free; many may have their share already.
TURNS_MAX = 16
#: How many idle destinations are remembered with a reduced limit, and for how long. A forgotten one starts over with the full
#: limit.
IDLE_DESTINATIONS_MAX = 10_000
IDLE_DESTINATION_US = 300_000_000
#: Back-off of a destination to which a request could not be sent: the first, doubled each time up to the second. The cause is
#: on this machine and may pass in a moment; immediate retries would add to the load.
_BACK_OFF_FIRST_US, _BACK_OFF_US_MAX = 20_000, 1_000_000


class Queue:
    """Deferred rows of one shard and namespace that wait at one place, in key order. Some may have been changed or deleted
    since."""

    __slots__ = ("bytes", "namespace", "place", "rows", "shard")

    def __init__(self, shard: Shard, namespace: str, place: Place) -> None:
        self.shard = shard
        self.namespace = namespace
        self.place = place
        self.rows: deque[Row] = deque()
        self.bytes = 0


class Place:
    """Where due rows wait in memory: at their destination, or at their flow's key."""

    __slots__ = ("queues", "waiting")

    def __init__(self) -> None:
        #: In the order of their turns.
        self.queues: dict[tuple[Shard, str], Queue] = {}
        self.waiting = 0

    @property
    def reason(self) -> str:
        """The reason for which rows are suspended that find no room here."""
        raise NotImplementedError

    @property
    def has_to_ask(self) -> bool:
        """Whether a row has to wait here before it can be known whether it may begin, and none does."""
        return False

    def drains(self, boot_us: int) -> bool:
        """Whether all that waits here leaves within `DRAIN_US_MAX`, at its present pace. What waits for a flow need not: its
        limits stay, and timers behind it would be late for as long."""
        return False


class Destination(Place):
    """One scheme, host and port: what is in flight to it, and what waits for it.

    `limit` shrinks while it does not answer. `back_off` is set while no request is tried because one could not be sent;
    `back_off_us` is its length, 0 once a request was sent.
    """

    __slots__ = ("answered_at", "back_off", "back_off_us", "caller", "in_flight", "interval_us", "limit", "name")

    def __init__(self, name: str, caller: Caller, limit: int) -> None:
        super().__init__()
        self.name = name
        #: Who is invoked for its timers.
        self.caller = caller
        self.limit = limit
        self.in_flight = 0
        self.back_off: asyncio.TimerHandle | None = None
        self.back_off_us = 0
        #: Boot time of the last answer, and the average time between two answers.
        self.answered_at = 0
        self.interval_us = 0.0

    @property
    def reason(self) -> str:
        return f"destination:{self.name}"

    def answered(self, boot_us: int) -> None:
        """Notes an answer, whatever its status."""
        if self.answered_at:
            self.interval_us += (boot_us - self.answered_at - self.interval_us) / _PACE_ANSWERS
        self.answered_at = boot_us

    def drains(self, boot_us: int) -> bool:
        """Whether all that waits here leaves within `DRAIN_US_MAX`, at its present pace."""
        if not self.answered_at or boot_us - self.answered_at > STALL_US:
            return False
        return self.waiting * self.interval_us <= DRAIN_US_MAX

    @property
    def has_room(self) -> bool:
        """Whether one more request may be sent to it."""
        return self.in_flight < self.limit and self.back_off is None

    def start_back_off(self, over: Callable[[Destination], None]) -> None:
        """Starts a back-off, unless one is under way, because a request could not be sent; calls `over` at its end."""
        if self.back_off is None:
            self.back_off_us = min(max(2 * self.back_off_us, _BACK_OFF_FIRST_US), _BACK_OFF_US_MAX)
            self.back_off = asyncio.get_running_loop().call_later(self.back_off_us / 1e6, self._back_off_over, over)

    def _back_off_over(self, over: Callable[[Destination], None]) -> None:
        self.back_off = None
        over(self)

    def end_back_off(self) -> None:
        """Ends the back-off, because a request was sent."""
        self.back_off_us = 0
        if self.back_off is not None:
            self.back_off.cancel()
            self.back_off = None


class _Deferred:
    """What one shard's window defers."""

    __slots__ = ("bytes", "queues", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self.queues: dict[Queue, None] = {}


class Admission:
    """The accounts of slots and memory. `begin` and `end` bracket a callback; `defer` and `take` bracket a deferred row."""

    def __init__(self, context: Context, left: Callable[[Place], None] = lambda place: None) -> None:
        self._context = context
        self._limits = context.limits
        # Called when nothing waits any more at a place that is no destination.
        self._nothing_waits_at = left
        self.destinations: dict[str, Destination] = {}
        #: Callbacks in flight.
        self.in_flight = 0
        self._in_flight_of: dict[str, int] = {}
        #: Deferred rows.
        self.waiting = 0
        self._deferred: dict[Shard, _Deferred] = {}
        #: Queues whose destination has room and whose namespace has used up its share of the slots, by namespace, in the
        #: order of their turns. All other queues are served when their destination gets room.
        self.blocked: dict[str, dict[Queue, None]] = {}
        # Since when (boot time) destinations with a reduced limit have been idle, longest first.
        self._idle: dict[Destination, int] = {}

    # ------------------------------------------------------------------ slots

    def destination(self, name: str, caller: Caller) -> Destination:
        """The account of the destination with that name, whose timers this caller invokes."""
        destination = self.destinations.get(name)
        if destination is None:
            destination = self.destinations[name] = Destination(name, caller, self._limits.destination_in_flight_max)
        return destination

    @property
    def free(self) -> int:
        """Free slots of the node."""
        return self._limits.callbacks_in_flight_max - self.in_flight

    def has_slot(self, namespace: str) -> bool:
        """Whether the namespace may have one more slot."""
        return self._in_flight_of.get(namespace, 0) < GREED * self.free

    def obstacle(self, namespace: str, destination: str) -> Obstacle:
        """Why a timer of the namespace gets no slot for the destination of that name now."""
        known = self.destinations.get(destination)
        if known is not None and not known.has_room:
            return Obstacle.DESTINATION if known.back_off is None else Obstacle.UNSENT
        if self.free <= 0:
            return Obstacle.NODE
        return Obstacle.NONE if self.has_slot(namespace) else Obstacle.NAMESPACE

    def begin(self, destination: Destination, namespace: str) -> None:
        """Takes a slot for a callback that begins."""
        self.in_flight += 1
        destination.in_flight += 1
        self._in_flight_of[namespace] = self._in_flight_of.get(namespace, 0) + 1
        if self._idle:
            self._idle.pop(destination, None)

    def end(self, destination: Destination, namespace: str) -> None:
        """Frees the slot of a callback that has ended."""
        self.in_flight -= 1
        destination.in_flight -= 1
        left = self._in_flight_of[namespace] - 1
        if left:
            self._in_flight_of[namespace] = left
        else:
            del self._in_flight_of[namespace]

    def learn(self, destination: Destination, *, silent: bool, boot_us: int) -> None:
        """Notes that a request was sent, which ends a back-off, and adapts the destination's limit, by additive increase and
        multiplicative decrease: one that does not answer gets ever fewer of the node's slots."""
        limits = self._limits
        if destination.back_off_us:
            destination.end_back_off()
        if silent:
            least = min(limits.destination_in_flight_min, limits.destination_in_flight_max)
            destination.limit = max(destination.limit // 2, least)
            return
        destination.answered(boot_us)
        if destination.limit < limits.destination_in_flight_max:
            destination.limit = min(destination.limit + 1, limits.destination_in_flight_max)

    def settle(self, destination: Place) -> None:
        """Forgets an unused destination at once if it has its full limit, else after `IDLE_DESTINATION_US`."""
        if not isinstance(destination, Destination):
            self._nothing_waits_at(destination)
            return
        if destination.in_flight or destination.queues or destination.back_off is not None:
            return
        if self.destinations.get(destination.name) is not destination:
            # Already forgotten; another may have its name by now.
            return
        if destination.limit >= self._limits.destination_in_flight_max:
            del self.destinations[destination.name]
            return
        self._idle.pop(destination, None)
        self._idle[destination] = self._context.clock.boottime_us()
        self.forget_idle()

    def forget_idle(self) -> None:
        """Forgets destinations that have been idle for too long, and the longest idle ones when there are too many."""
        until_us = self._context.clock.boottime_us() - IDLE_DESTINATION_US
        while self._idle:
            destination, since_us = next(iter(self._idle.items()))
            if since_us > until_us and len(self._idle) <= IDLE_DESTINATIONS_MAX:
                return
            del self._idle[destination]
            if not destination.in_flight and not destination.queues and destination.back_off is None:
                self.destinations.pop(destination.name, None)

    # ------------------------------------------------------------------ deferred rows

    def may_wait(self, shard: Shard, row: Row, place: Place) -> bool:
        """Whether the row may be deferred in memory; if not, it has to be suspended (rule 14)."""
        if place.waiting >= self._limits.destination_waiting_max:
            return False
        rows, size = self._room(shard)
        queue = place.queues.get((shard, row.timer.namespace))
        waiting, waiting_bytes = (0, 0) if queue is None else (len(queue.rows), queue.bytes)
        if isinstance(place, Destination) and place.back_off is not None and not waiting:
            # A request that could not be sent costs no write, however little memory there is.
            return True
        if waiting < GREED * rows and waiting_bytes + row.size <= GREED * size:
            return True
        if place.has_to_ask and rows + self._context.share_timers // DEFERRED_PART >= 0:
            # As many again, one for each flow's key: otherwise none of them would ever be granted anything.
            return True
        return place.drains(self._context.clock.boottime_us())

    def _room(self, shard: Shard) -> tuple[int, int]:
        """Rows and bytes that the shard may still defer."""
        rows, size = self._context.share_timers // DEFERRED_PART, self._context.share_bytes // DEFERRED_PART
        deferred = self._deferred.get(shard)
        return (rows, size) if deferred is None else (rows - deferred.rows, size - deferred.bytes)

    def defer(self, shard: Shard, row: Row, place: Place) -> None:
        """Appends the row to its queue."""
        namespace = row.timer.namespace
        queue = place.queues.get((shard, namespace))
        deferred = self._deferred.get(shard)
        if deferred is None:
            deferred = self._deferred[shard] = _Deferred()
        if queue is None:
            queue = place.queues[shard, namespace] = Queue(shard, namespace, place)
            deferred.queues[queue] = None
        queue.rows.append(row)
        queue.bytes += row.size
        deferred.rows += 1
        deferred.bytes += row.size
        place.waiting += 1
        self.waiting += 1
        if isinstance(place, Destination) and place.has_room:
            self.block(queue)

    def block(self, queue: Queue) -> None:
        """Has the queue wait for its namespace's turn."""
        self.blocked.setdefault(queue.namespace, {})[queue] = None

    def take(self, queue: Queue, *, last: bool = False) -> Row:
        """Removes and returns the queue's first (or last) row."""
        row = queue.rows.pop() if last else queue.rows.popleft()
        self._left(queue, 1, row.size)
        return row

    def _left(self, queue: Queue, rows: int, size: int) -> None:
        queue.bytes -= size
        queue.place.waiting -= rows
        self.waiting -= rows
        deferred = self._deferred[queue.shard]
        deferred.rows -= rows
        deferred.bytes -= size
        if not queue.rows:
            del queue.place.queues[queue.shard, queue.namespace]
            del deferred.queues[queue]
            if not deferred.queues:
                del self._deferred[queue.shard]
            self._unblock(queue)

    def _unblock(self, queue: Queue) -> None:
        waiting = self.blocked.get(queue.namespace)
        if waiting is not None:
            waiting.pop(queue, None)
            if not waiting:
                del self.blocked[queue.namespace]

    def drop(self, shard: Shard) -> None:
        """Drops all deferred rows of a shard that is no longer owned."""
        for queue in list(self._deferred[shard].queues) if shard in self._deferred else ():
            rows, size = len(queue.rows), queue.bytes
            queue.rows.clear()
            self._left(queue, rows, size)
            self.settle(queue.place)

    def excess(self, shard: Shard) -> list[tuple[Row, Place]]:
        """Removes and returns the rows that exceed the shard's share, because the share shrank or a destination stalled: the
        latest rows of the longest queues. Rows that were changed or deleted while they waited are dropped as well."""
        deferred = self._deferred.get(shard)
        if deferred is None or min(self._room(shard)) >= 0:
            return []
        window = shard.window
        assert window is not None
        gone: list[tuple[Row, Place]] = []
        for queue in list(deferred.queues):
            current = [row for row in queue.rows if window.holds(row)]
            rows, size = len(queue.rows) - len(current), queue.bytes - sum(row.size for row in current)
            queue.rows = deque(current)
            self._left(queue, rows, size)
            self.settle(queue.place)
        boot_us = self._context.clock.boottime_us()
        stalled = {queue: None for queue in deferred.queues if not queue.place.drains(boot_us)}
        while stalled and min(self._room(shard)) < 0:
            longest = max(stalled, key=_bytes_of)
            half = max(len(longest.rows) // 2, 1)
            gone += [(self.take(longest, last=True), longest.place) for _ in range(half)]
            if not longest.rows:
                del stalled[longest]
        return gone

    # ------------------------------------------------------------------ resuming

    def room_for(self, shard: Shard, destination: Destination | None) -> int:
        """How many of the shard's rows suspended for this destination may be resumed now."""
        limits = self._limits
        if destination is None:
            return limits.resume_rows
        if destination.back_off is not None:
            return 0
        # Without memory to defer them, as many as can be sent at once.
        return self.room_at(shard, destination, 0 if destination.waiting else destination.limit - destination.in_flight)

    def room_at(self, shard: Shard, place: Place, slots: int) -> int:
        """How many of the shard's rows may be resumed that would wait at this place; as many as `slots` need not wait."""
        limits = self._limits
        if place.waiting and place.drains(self._context.clock.boottime_us()):
            return max(min(limits.resume_rows, limits.destination_waiting_max - place.waiting), 0)
        rows, size = self._room(shard)
        here = [queue for (owner, _), queue in place.queues.items() if owner is shard]
        waiting, waiting_bytes = sum(len(queue.rows) for queue in here), sum(queue.bytes for queue in here)
        # What `may_wait` lets the queue hold beside the others.
        most = GREED * max(rows + waiting, 0) // (GREED + 1)
        most = min(most, limits.destination_waiting_max - (place.waiting - waiting))
        most_bytes = GREED * max(size + waiting_bytes, 0) // (GREED + 1)
        if waiting > most // RESUME_PARTS or waiting_bytes > most_bytes // RESUME_PARTS:
            return 0
        return max(most * 2 // RESUME_PARTS - waiting, slots, 0)

    def room_back(self) -> tuple[int, int]:
        """How many suspended rows, and bytes of records, a shard may resume for one reason in one sweep: half of what it may
        defer, so that rows that can't fire after all need not be suspended again."""
        parts = 2 * DEFERRED_PART
        return max(self._context.share_timers // parts, 1), max(self._context.share_bytes // parts, 1)


def _bytes_of(queue: Queue) -> int:
    return queue.bytes
