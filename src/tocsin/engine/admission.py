"""Which due timers may be invoked now and which wait: the node's callback slots, shared among namespaces and destinations,
and the memory in which due timers wait for a slot, shared among the shards.

Both are divided in the same way: whoever asks may have up to `GREED` times what is left free. One alone gets four fifths;
n that ask for more than there is get equal parts; and something is always left for one that comes new. Nobody has to be
counted or weighed for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from tocsin.engine.rows import Row

if TYPE_CHECKING:
    from tocsin.engine.context import Context
    from tocsin.engine.shard import Shard

#: What one namespace (of slots) or queue (of memory) may have, as a multiple of what is free. Higher: one that is alone gets
#: more of it (GREED of GREED + 1 parts), and a newcomer finds less.
GREED = 4
#: The part of a shard's share of the window in which due timers may wait. The loader goes on while less than half is full.
DEFERRED_PART = 4
#: More may wait for a destination that answers so fast that all of it is gone within this time: suspending a burst would cost
#: two writes for each timer, and others are late by no more than this.
DRAIN_US_MAX = 10_000_000
#: A destination that has not answered for so long answers fast no longer.
STALL_US = 1_000_000
#: Answers over which their pace is averaged.
_PACE_ANSWERS = 64
#: Parts of what a queue may have: suspended timers come back when less than one of them waits, until two do. The gap keeps
#: the store from being read for every single one.
RESUME_PARTS = 4
#: Namespaces looked at, at most, for one slot that became free: those that have their share may be many.
TURNS_MAX = 16
#: How many destinations that are not in use are remembered with a reduced limit, and for how long. One that is forgotten
#: starts over with the full limit.
IDLE_DESTINATIONS_MAX = 10_000
IDLE_DESTINATION_US = 300_000_000


class Queue:
    """Due rows of one shard and namespace that wait for one destination, in key order. Some may have been changed or
    deleted since."""

    __slots__ = ("bytes", "destination", "namespace", "rows", "shard")

    def __init__(self, shard: Shard, namespace: str, destination: Destination) -> None:
        self.shard = shard
        self.namespace = namespace
        self.destination = destination
        self.rows: deque[Row] = deque()
        self.bytes = 0


class Destination:
    """One scheme, host and port: what is in flight to it, and what waits. `limit` shrinks while nobody answers. `back_off` is
    set while no request is tried, because one could not be sent; `back_off_us` is its length, 0 once any could be."""

    __slots__ = (
        "answered_at", "back_off", "back_off_us", "in_flight", "interval_us", "limit", "name", "queues", "waiting",
    )  # fmt: skip

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self.in_flight = 0
        self.back_off: asyncio.TimerHandle | None = None
        self.back_off_us = 0
        #: In the order of their turns.
        self.queues: dict[tuple[Shard, str], Queue] = {}
        self.waiting = 0
        #: Boot time of the last answer, and the average time between two.
        self.answered_at = 0
        self.interval_us = 0.0

    def answered(self, boot_us: int) -> None:
        """It has answered, whatever."""
        if self.answered_at:
            self.interval_us += (boot_us - self.answered_at - self.interval_us) / _PACE_ANSWERS
        self.answered_at = boot_us

    def drains(self, boot_us: int) -> bool:
        """Whether all that waits for it will be gone soon, at the pace of its answers."""
        if not self.answered_at or boot_us - self.answered_at > STALL_US:
            return False
        return self.waiting * self.interval_us <= DRAIN_US_MAX

    @property
    def has_room(self) -> bool:
        """Whether one more may be sent to it."""
        return self.in_flight < self.limit and self.back_off is None

    def end_back_off(self) -> None:
        """A request could be sent: the next ones are tried at once."""
        self.back_off_us = 0
        if self.back_off is not None:
            self.back_off.cancel()
            self.back_off = None


class _Deferred:
    """What waits in one shard's window."""

    __slots__ = ("bytes", "queues", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self.queues: dict[Queue, None] = {}


class Admission:
    """The accounts. `begin` and `end` frame a callback; `defer` and `take` a row that waits."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._limits = context.limits
        self.destinations: dict[str, Destination] = {}
        #: Callbacks in flight.
        self.in_flight = 0
        self._in_flight_of: dict[str, int] = {}
        #: Rows that wait.
        self.waiting = 0
        self._deferred: dict[Shard, _Deferred] = {}
        #: Queues whose destination has room and whose namespace has its share of the slots, by namespace, in the order of
        #: their turns. All others that wait are served when their destination gets room.
        self.blocked: dict[str, dict[Queue, None]] = {}
        # Since when (boot time) destinations with a reduced limit have not been in use, longest first.
        self._idle: dict[Destination, int] = {}

    # ------------------------------------------------------------------ slots

    def destination(self, name: str) -> Destination:
        """The destination's account."""
        destination = self.destinations.get(name)
        if destination is None:
            destination = self.destinations[name] = Destination(name, self._limits.destination_in_flight_max)
        return destination

    @property
    def free(self) -> int:
        """Slots of the node that are free."""
        return self._limits.callbacks_in_flight_max - self.in_flight

    def has_slot(self, namespace: str) -> bool:
        """Whether the namespace may have one more slot."""
        return self._in_flight_of.get(namespace, 0) < GREED * self.free

    def begin(self, destination: Destination, namespace: str) -> None:
        """A callback begins."""
        self.in_flight += 1
        destination.in_flight += 1
        self._in_flight_of[namespace] = self._in_flight_of.get(namespace, 0) + 1
        if self._idle:
            self._idle.pop(destination, None)

    def end(self, destination: Destination, namespace: str) -> None:
        """It has ended."""
        self.in_flight -= 1
        destination.in_flight -= 1
        left = self._in_flight_of[namespace] - 1
        if left:
            self._in_flight_of[namespace] = left
        else:
            del self._in_flight_of[namespace]

    def learn(self, destination: Destination, *, silent: bool, boot_us: int) -> None:
        """Additive increase, multiplicative decrease: who doesn't answer gets ever fewer of the node's slots."""
        limits = self._limits
        if silent:
            least = min(limits.destination_in_flight_min, limits.destination_in_flight_max)
            destination.limit = max(destination.limit // 2, least)
            return
        destination.answered(boot_us)
        if destination.limit < limits.destination_in_flight_max:
            destination.limit = min(destination.limit + 1, limits.destination_in_flight_max)

    def settle(self, destination: Destination) -> None:
        """Forgets the destination if nothing is known of it that will matter; else, if it isn't in use, after a while."""
        if destination.in_flight or destination.queues or destination.back_off is not None:
            return
        if self.destinations.get(destination.name) is not destination:
            # Forgotten already; another may have its name by now.
            return
        if destination.limit >= self._limits.destination_in_flight_max:
            del self.destinations[destination.name]
            return
        self._idle.pop(destination, None)
        self._idle[destination] = self._context.clock.boottime_us()
        self.forget_idle()

    def forget_idle(self) -> None:
        """Forgets destinations that have not been in use for long, and the oldest ones when there are many."""
        until_us = self._context.clock.boottime_us() - IDLE_DESTINATION_US
        while self._idle:
            destination, since_us = next(iter(self._idle.items()))
            if since_us > until_us and len(self._idle) <= IDLE_DESTINATIONS_MAX:
                return
            del self._idle[destination]
            if not destination.in_flight and not destination.queues and destination.back_off is None:
                self.destinations.pop(destination.name, None)

    # ------------------------------------------------------------------ what waits

    def may_wait(self, shard: Shard, row: Row, destination: Destination) -> bool:
        """Whether the row may wait in memory; if not, it has to be suspended (rule 14)."""
        if destination.waiting >= self._limits.destination_waiting_max:
            return False
        rows, size = self._room(shard)
        queue = destination.queues.get((shard, row.timer.namespace))
        waiting, waiting_bytes = (0, 0) if queue is None else (len(queue.rows), queue.bytes)
        if destination.back_off is not None and not waiting:
            # What could not be sent is not written for it, however little memory there is.
            return True
        if waiting < GREED * rows and waiting_bytes + row.size <= GREED * size:
            return True
        return destination.drains(self._context.clock.boottime_us())

    def _room(self, shard: Shard) -> tuple[int, int]:
        """Rows and bytes that may still wait in the shard."""
        rows, size = self._context.share_timers // DEFERRED_PART, self._context.share_bytes // DEFERRED_PART
        deferred = self._deferred.get(shard)
        return (rows, size) if deferred is None else (rows - deferred.rows, size - deferred.bytes)

    def defer(self, shard: Shard, row: Row, destination: Destination) -> None:
        """The row waits, the last of its queue."""
        namespace = row.timer.namespace
        queue = destination.queues.get((shard, namespace))
        deferred = self._deferred.get(shard)
        if deferred is None:
            deferred = self._deferred[shard] = _Deferred()
        if queue is None:
            queue = destination.queues[shard, namespace] = Queue(shard, namespace, destination)
            deferred.queues[queue] = None
        queue.rows.append(row)
        queue.bytes += row.size
        deferred.rows += 1
        deferred.bytes += row.size
        destination.waiting += 1
        self.waiting += 1
        if destination.has_room:
            self.block(queue)

    def block(self, queue: Queue) -> None:
        """The queue waits for its namespace's turn."""
        self.blocked.setdefault(queue.namespace, {})[queue] = None

    def take(self, queue: Queue, *, last: bool = False) -> Row:
        """Its first (or last) row waits no longer."""
        row = queue.rows.pop() if last else queue.rows.popleft()
        self._left(queue, 1, row.size)
        return row

    def _left(self, queue: Queue, rows: int, size: int) -> None:
        queue.bytes -= size
        queue.destination.waiting -= rows
        self.waiting -= rows
        deferred = self._deferred[queue.shard]
        deferred.rows -= rows
        deferred.bytes -= size
        if not queue.rows:
            del queue.destination.queues[queue.shard, queue.namespace]
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
        """The shard is owned no longer: nothing of it waits."""
        for queue in list(self._deferred[shard].queues) if shard in self._deferred else ():
            rows, size = len(queue.rows), queue.bytes
            queue.rows.clear()
            self._left(queue, rows, size)
            self.settle(queue.destination)

    def excess(self, shard: Shard) -> list[tuple[Row, Destination]]:
        """Rows that wait no longer, because the shard's share has shrunk below what they take, or their destination has
        stalled: the latest of the longest queues. What was changed or deleted while it waited is dropped on the way."""
        deferred = self._deferred.get(shard)
        if deferred is None or min(self._room(shard)) >= 0:
            return []
        window = shard.window
        assert window is not None
        gone: list[tuple[Row, Destination]] = []
        for queue in list(deferred.queues):
            current = [row for row in queue.rows if window.holds(row)]
            rows, size = len(queue.rows) - len(current), queue.bytes - sum(row.size for row in current)
            queue.rows = deque(current)
            self._left(queue, rows, size)
            self.settle(queue.destination)
        boot_us = self._context.clock.boottime_us()
        stalled = {queue: None for queue in deferred.queues if not queue.destination.drains(boot_us)}
        while stalled and min(self._room(shard)) < 0:
            longest = max(stalled, key=_bytes_of)
            half = max(len(longest.rows) // 2, 1)
            gone += [(self.take(longest, last=True), longest.destination) for _ in range(half)]
            if not longest.rows:
                del stalled[longest]
        return gone

    # ------------------------------------------------------------------ what comes back

    def room_for(self, shard: Shard, destination: Destination | None) -> int:
        """How many of the shard's rows that were suspended for this destination may come back now."""
        limits = self._limits
        if destination is None:
            return limits.resume_rows
        if destination.back_off is not None:
            return 0
        if destination.waiting and destination.drains(self._context.clock.boottime_us()):
            return max(min(limits.resume_rows, limits.destination_waiting_max - destination.waiting), 0)
        rows, size = self._room(shard)
        here = [queue for (owner, _), queue in destination.queues.items() if owner is shard]
        waiting, waiting_bytes = sum(len(queue.rows) for queue in here), sum(queue.bytes for queue in here)
        most = min(GREED * max(rows, 0), limits.destination_waiting_max - (destination.waiting - waiting))
        if waiting > most // RESUME_PARTS or waiting_bytes > GREED * max(size, 0) // RESUME_PARTS:
            return 0
        # Without memory to wait in, as many as can be sent at once.
        slots = 0 if destination.waiting else destination.limit - destination.in_flight
        return max(most * 2 // RESUME_PARTS - waiting, slots, 0)

    def room_back(self) -> tuple[int, int]:
        """How many suspended rows, and bytes of records, may come back to a shard for one reason in one sweep: half of what
        may wait, so that even if none of them can go they need not be suspended again."""
        parts = 2 * DEFERRED_PART
        return max(self._context.share_timers // parts, 1), max(self._context.share_bytes // parts, 1)


def _bytes_of(queue: Queue) -> int:
    return queue.bytes
