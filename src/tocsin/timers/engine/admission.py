"""Admission control: which due timers may fire now and which are deferred.

It shares the node's slots among namespaces and destinations, a destination's among its paths, and the memory for deferred
timers among the shards. Messages to NATS subjects, which take no connection each, have slots of their own. All are divided
by one rule: a claimant may hold up to `GREED` times what is free. One alone gets four fifths; several that want more than
there is get equal parts; and something is always left for a newcomer. No claimant has to be counted or weighted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING

from tocsin.model.answer import NoResponse, Response
from tocsin.model.failure import short_error
from tocsin.model.subjects import is_subject_url
from tocsin.model.timer import Timer
from tocsin.ports.forward import Obstacle
from tocsin.ports.http import Caller
from tocsin.timers.engine.breaker import Breaker, BreakerState
from tocsin.timers.engine.destination import (
    OTHER_PATHS,
    Deferred,
    Destination,
    DestinationPath,
    Place,
    Queue,
    path_prefix,
)
from tocsin.timers.engine.destination_events import BreakerClosed, BreakerOpened
from tocsin.timers.engine.rows import HELD, Row
from tocsin.timers.engine.slots import GREED, Slots

if TYPE_CHECKING:
    from tocsin.timers.engine.context import Context
    from tocsin.timers.engine.shard import Shard

#: Slots for messages, for each one for callbacks: in all, and of one destination. A message takes no connection of its own,
#: and is acknowledged after several passes of the event loop, in each of which `dispatch_rows_per_turn` more are published.
#: With fewer slots a burst finds none meanwhile and is deferred, which costs as much as to publish it.
MESSAGE_SLOTS = 4
#: Deferred timers may take 1/n of a shard's share of the window. The loader continues while less than half of the share is
#: full.
DEFERRED_PART = 4
#: Suspended timers are resumed when less than 1/n of what a queue may hold is waiting, until 2/n are.
#: The gap avoids reading the store for every single timer.
RESUME_PARTS = 4
#: Namespaces checked at most for one slot that became free; many may have their share already.
TURNS_MAX = 16
#: How many idle paths of destinations are remembered, with their limits, counts and last errors, and for how long. A
#: forgotten one starts over with the full limit.
IDLE_DESTINATIONS_MAX = 10_000
IDLE_DESTINATION_US = 300_000_000
#: The limit of a destination none of whose paths answers is reduced to that of so many paths that do not: further ones find
#: slots.
_SILENT_PATHS = 4


class Admission:
    """The accounts of slots and memory. `begin` and `end` bracket a callback; `defer` and `take` bracket a deferred row."""

    def __init__(
        self,
        context: Context,
        left: Callable[[Place], None] = lambda place: None,
        opened: Callable[[Destination], None] = lambda destination: None,
    ) -> None:
        self._context = context
        # Called when a destination may take requests again that took none.
        self._may_have_opened = opened
        self._limits = context.limits
        # Called when nothing waits any more at a place that is no destination.
        self._nothing_waits_at = left
        #: Destinations in use, or in the last few minutes.
        self.destinations: dict[str, Destination] = {}
        limits = self._limits
        self.callbacks = Slots(limits.callbacks_in_flight_max, limits.destination_in_flight_max)
        self.messages = Slots(
            MESSAGE_SLOTS * limits.callbacks_in_flight_max, MESSAGE_SLOTS * limits.destination_in_flight_max
        )
        #: Deferred rows.
        self.waiting = 0
        self._deferred: dict[Shard, Deferred] = {}
        # Since when (boot time) paths have been idle, longest first.
        self._idle: dict[DestinationPath, int] = {}

    # ------------------------------------------------------------------ slots

    def path(self, timer: Timer) -> DestinationPath:
        """The account of the destination and path of the timer's URL."""
        context, url = self._context, timer.url
        name, prefix = context.destination_of(timer.namespace, url), path_prefix(url)
        destination = self.destinations.get(name)
        if destination is None:
            caller = context.caller_of(timer.namespace)
            destination = self.destinations[name] = self._new_destination(name, caller, self._slots_of(url))
        path = destination.paths.get(prefix)
        return destination.new_path(prefix) if path is None else path

    def _slots_of(self, url: str) -> Slots:
        return self.messages if is_subject_url(url) else self.callbacks

    def _new_destination(self, name: str, caller: Caller, slots: Slots) -> Destination:
        context = self._context
        # What this process handles itself is no receiver that could be spared.
        other = caller is context.caller
        breaker = Breaker(enabled=other and context.breaker.enabled, wait_us_max=context.breaker.wait_max_us)
        paused = other and name in context.paused_destinations
        return Destination(name, caller, slots, breaker, paused=paused)

    @property
    def in_flight(self) -> int:
        """Attempts in flight, of both kinds."""
        return self.callbacks.in_flight + self.messages.in_flight

    def obstacle(self, namespace: str, name: str, url: str) -> Obstacle:
        """Why a timer of the namespace gets no slot for the URL, whose destination has that name, now."""
        if name in self._context.paused_destinations:
            return Obstacle.PAUSED_DESTINATION
        known = self.destinations.get(name)
        if known is not None:
            if known.back_off is not None:
                return Obstacle.UNSENT
            if known.breaker.blocks:
                return Obstacle.BREAKER
            path = known.known_path(path_prefix(url))
            if known.in_flight >= known.limit or (path is not None and not path.has_room):
                return Obstacle.DESTINATION
        slots = self._slots_of(url)
        if slots.free <= 0 or self.callbacks.free <= 0:
            return Obstacle.NODE
        return Obstacle.NONE if slots.has_slot(namespace) else Obstacle.NAMESPACE

    def begin(self, path: DestinationPath, namespace: str) -> int:
        """Takes a slot for a callback that begins. Returns what `learn` needs."""
        destination = path.destination
        destination.slots.begin(namespace)
        destination.in_flight += 1
        path.in_flight += 1
        if self._idle:
            self._idle.pop(path, None)
        return destination.breaker.begin()

    def end(self, path: DestinationPath, namespace: str) -> None:
        """Frees the slot of a callback that has ended."""
        destination = path.destination
        destination.slots.end(namespace)
        destination.in_flight -= 1
        path.in_flight -= 1

    def unsent(self, path: DestinationPath, began: int) -> None:
        """Notes that a request was not sent, which proves nothing about its receiver."""
        path.destination.breaker.end(began, self._context.clock.boottime_us(), failed=None)

    def learn(
        self,
        path: DestinationPath,
        outcome: Response | NoResponse,
        error: str | None,
        *,
        began: int,
        boot_us: int,
        lasted_us: int,
    ) -> None:
        """Notes the outcome of a request that was sent, which ends a back-off; and adapts the limits, by additive increase
        and multiplicative decrease: a path that does not answer gets ever fewer of the node's slots, and so does a
        destination of which nothing has answered since the attempt began."""
        if isinstance(outcome, NoResponse) and outcome.final:
            # No request can be made of the timer, such as a message that is too long: it proves nothing about the receiver.
            self.unsent(path, began)
            return
        destination, breaker = path.destination, path.destination.breaker
        most = destination.slots.destination_max
        if destination.back_off_us:
            destination.end_back_off()
            self.settle_paths(destination)
        if isinstance(outcome, NoResponse):
            failed = True
            least = self._limits.destination_in_flight_min
            path.limit = max(path.limit // 2, min(least, most))
            if all(each.answered_at < boot_us - lasted_us for each in destination.paths.values()):
                destination.limit = max(destination.limit // 2, min(_SILENT_PATHS * least, most))
        else:
            path.answered(boot_us)
            if path.limit < most:
                path.limit += 1
            if destination.limit < most:
                destination.limit += 1
            failed = outcome.status >= 500
        if failed:
            destination.failed_at = boot_us
            destination.last_error, destination.last_error_at = short_error(error), self._context.clock.now_us()
        else:
            destination.answered_at = boot_us
        waiting = destination.waiting if failed and breaker.state is not BreakerState.CLOSED else 0
        if breaker.end(began, boot_us, failed=failed, waiting=waiting):
            self._breaker_changed(destination, boot_us)

    # ------------------------------------------------------------------ breakers and pauses

    def _breaker_changed(self, destination: Destination, boot_us: int, by: str = "probes") -> None:
        breaker = destination.breaker
        if breaker.state is BreakerState.CLOSED:
            destination.cancel_alarm()
            if not destination.paused:
                destination.mark_waiting(self._context.clock.now_us())
            self._context.observe(BreakerClosed(destination.name, by, boot_us - breaker.opened_at))
            return
        destination.set_alarm(breaker.until_us - boot_us, self._wait_over)
        if breaker.opened_at == boot_us:
            destination.mark_waiting(HELD)
            self._context.observe(
                BreakerOpened(destination.name, breaker.failures, breaker.attempts, destination.last_error)
            )

    def _wait_over(self, destination: Destination) -> None:
        destination.alarm = None
        boot_us = self._context.clock.boottime_us()
        if destination.breaker.end_wait(boot_us):
            self._may_have_opened(destination)
        elif destination.breaker.state is BreakerState.OPEN:
            # The event loop's clock is ahead of the boot time clock.
            destination.set_alarm(destination.breaker.until_us - boot_us, self._wait_over)

    def probe(self, name: str) -> bool:
        """Lets a waiting timer of the destination be tried at once if its breaker is not closed; whether that is so."""
        destination = self.destinations.get(name)
        if destination is None or not destination.breaker.probe():
            return False
        destination.cancel_alarm()
        self._may_have_opened(destination)
        return True

    def close_breaker(self, name: str, by: str) -> None:
        """Closes the destination's breaker, if it is not closed, because of what `by` has found."""
        destination = self.destinations.get(name)
        if destination is not None and destination.breaker.state is not BreakerState.CLOSED:
            destination.breaker.close()
            self._breaker_changed(destination, self._context.clock.boottime_us(), by)
            self._may_have_opened(destination)

    def open_breakers(self) -> list[Destination]:
        """The destinations whose breakers are not closed."""
        return [each for each in self.destinations.values() if each.breaker.state is not BreakerState.CLOSED]

    def longest_open(self, most: int) -> list[tuple[str, int]]:
        """The destinations whose breakers have not been closed for longest, and for how many microseconds; not those that an
        operator has paused, which get no probes."""
        boot_us = self._context.clock.boottime_us()
        found = [(each.name, boot_us - each.breaker.opened_at) for each in self.open_breakers() if not each.paused]
        return nlargest(most, found, key=itemgetter(1))

    def apply_pauses(self) -> None:
        """Applies the pauses of destinations as they are known now."""
        for destination in list(self.destinations.values()):
            paused = (
                destination.caller is self._context.caller and destination.name in self._context.paused_destinations
            )
            if paused != destination.paused:
                destination.paused = paused
                destination.mark_waiting(HELD if destination.holds else self._context.clock.now_us())
                self._may_have_opened(destination)

    # ------------------------------------------------------------------ what is remembered

    def settle(self, place: Place) -> None:
        """Notes since when a path has been idle; it is forgotten after `IDLE_DESTINATION_US`."""
        if not isinstance(place, DestinationPath):
            self._nothing_waits_at(place)
            return
        destination = place.destination
        if place.in_flight or place.queues or destination.back_off is not None:
            return
        if destination.paths.get(place.prefix) is not place:
            # Already forgotten; another may be in its place by now.
            return
        self._idle.pop(place, None)
        self._idle[place] = self._context.clock.boottime_us()
        self.forget_idle()

    def settle_paths(self, destination: Destination) -> None:
        """Settles all paths of a destination that may have had a reason to be known."""
        for path in list(destination.paths.values()):
            self.settle(path)

    def forget_idle(self) -> None:
        """Forgets paths that have been idle for too long, and the longest idle ones when there are too many; and destinations
        with their last path."""
        until_us = self._context.clock.boottime_us() - IDLE_DESTINATION_US
        while self._idle:
            path, since_us = next(iter(self._idle.items()))
            if since_us > until_us and len(self._idle) <= IDLE_DESTINATIONS_MAX:
                return
            del self._idle[path]
            destination = path.destination
            if path.in_flight or path.queues or destination.back_off is not None:
                continue
            del destination.paths[path.prefix]
            if not destination.paths:
                del self.destinations[destination.name]
                if destination.breaker.state is not BreakerState.CLOSED:
                    destination.breaker.close()
                    self._breaker_changed(destination, self._context.clock.boottime_us(), "forgotten")

    def close(self) -> None:
        """Cancels what is planned."""
        for destination in self.destinations.values():
            destination.cancel_alarm()

    # ------------------------------------------------------------------ deferred rows

    def defer_within_memory(self, shard: Shard, row: Row, place: Place, *, has_room: bool) -> bool:
        """Defers the row at the place if there is room in memory; if not, it has to be suspended (rule 14)."""
        if place.waiting >= self._limits.destination_waiting_max:
            return False
        queue = place.queues.get((shard, row.timer.namespace))
        rows, size = self._room(shard)
        waiting, waiting_bytes = (0, 0) if queue is None else (len(queue.rows), queue.bytes)
        if not (
            (waiting < GREED * rows and waiting_bytes + row.size <= GREED * size)
            # A request that could not be sent costs no write, however little memory there is.
            or (not waiting and isinstance(place, DestinationPath) and place.destination.back_off is not None)
            # As many again, one for each flow's key: otherwise none of them would ever be granted anything.
            or (place.has_to_ask and rows + self._context.share_timers // DEFERRED_PART >= 0)
            or place.drains(self._context.clock.boottime_us())
        ):
            return False
        self._append(row, queue or self._queue(shard, row.timer.namespace, place), has_room=has_room)
        return True

    def reason(self, namespace: str, place: Place, *, has_room: bool) -> str:
        """The reason for which a row is suspended that could not be deferred at the place: its namespace, if that has used up
        its share of the slots of callbacks. Whether messages wait for theirs is known where their subject's queue is."""
        if has_room and isinstance(place, DestinationPath) and place.destination.slots is self.callbacks:
            return f"namespace:{namespace}"
        return place.reason

    def _room(self, shard: Shard) -> tuple[int, int]:
        """Rows and bytes that the shard may still defer."""
        rows, size = self._context.share_timers // DEFERRED_PART, self._context.share_bytes // DEFERRED_PART
        deferred = self._deferred.get(shard)
        return (rows, size) if deferred is None else (rows - deferred.rows, size - deferred.bytes)

    def defer(self, shard: Shard, row: Row, place: Place, *, has_room: bool = False) -> None:
        """Appends a row to its queue at the place. If that `has_room`, the row waits for its namespace's share."""
        namespace = row.timer.namespace
        queue = place.queues.get((shard, namespace))
        self._append(row, queue or self._queue(shard, namespace, place), has_room=has_room)

    def _queue(self, shard: Shard, namespace: str, place: Place) -> Queue:
        """A new queue at the place."""
        deferred = self._deferred.get(shard)
        if deferred is None:
            deferred = self._deferred[shard] = Deferred()
        queue = Queue(shard, namespace, place, deferred)
        place.line_up((shard, namespace), queue)
        deferred.queues[queue] = None
        if isinstance(place, DestinationPath):
            place.destination.waiting_paths.setdefault(place)
        return queue

    def _append(self, row: Row, queue: Queue, *, has_room: bool) -> None:
        place, deferred, size = queue.place, queue.deferred, row.size
        queue.rows.append(row)
        queue.bytes += size
        deferred.rows += 1
        deferred.bytes += size
        place.waiting += 1
        self.waiting += 1
        if isinstance(place, DestinationPath):
            if place.destination.holds:
                row.let_at = HELD
            if has_room:
                place.destination.slots.block(queue)

    def take(self, queue: Queue, *, last: bool = False) -> Row:
        """Removes and returns the queue's first (or last) row."""
        row = queue.rows.pop() if last else queue.rows.popleft()
        self._left(queue, 1, row.size)
        return row

    def _left(self, queue: Queue, rows: int, size: int) -> None:
        queue.bytes -= size
        queue.place.waiting -= rows
        self.waiting -= rows
        deferred = queue.deferred
        deferred.rows -= rows
        deferred.bytes -= size
        if not queue.rows:
            place = queue.place
            del place.queues[queue.shard, queue.namespace]
            if isinstance(place, DestinationPath):
                place.destination.slots.unblock(queue)
                if not place.queues:
                    del place.destination.waiting_paths[place]
            del deferred.queues[queue]
            if not deferred.queues:
                del self._deferred[queue.shard]

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

    def room_for(self, shard: Shard, where: str) -> int:
        """How many of the shard's rows suspended for this destination and path may be resumed now."""
        slash = where.find("/", where.find("://") + 3)
        name, prefix = (where, "") if slash < 0 else (where[:slash], where[slash:])
        if name.endswith(OTHER_PATHS):
            name, prefix = name.removesuffix(OTHER_PATHS), OTHER_PATHS
        destination, limits = self.destinations.get(name), self._limits
        if name in self._context.paused_destinations:
            return 0
        if destination is None:
            return limits.resume_rows
        if destination.back_off is not None:
            return 0
        path = destination.known_path(prefix) or DestinationPath(destination, prefix, destination.limit)
        # Without memory to defer them, as many as can be sent at once. Messages that wait for their namespace's share of the
        # slots are suspended for their subject, and while any wait in memory, these may have to as well.
        waits = path.waiting or (destination.slots is self.messages and destination.slots.blocked)
        return self.room_at(shard, path, 0 if waits else path.slots)

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

    def room_of_flows(self, shard: Shard) -> tuple[int, int]:
        """How many suspended rows, and bytes of records, the shard may resume in one sweep for all keys of flows together:
        half of what it may still defer, since what falls due meanwhile has to wait there, too."""
        rows, size = self._room(shard)
        return max(rows // 2, 0), max(size // 2, 0)

    def room_back(self) -> tuple[int, int]:
        """How many suspended rows, and bytes of records, a shard may resume for one reason in one sweep: half of what it may
        defer, so that rows that can't fire after all need not be suspended again."""
        parts = 2 * DEFERRED_PART
        return max(self._context.share_timers // parts, 1), max(self._context.share_bytes // parts, 1)


def _bytes_of(queue: Queue) -> int:
    return queue.bytes
