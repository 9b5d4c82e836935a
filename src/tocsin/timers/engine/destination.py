"""Where due rows wait: queues at a place; and destinations, whose paths are such places."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from tocsin.ports.http import Caller
from tocsin.timers.engine.breaker import Breaker, BreakerState
from tocsin.timers.engine.rows import Row
from tocsin.timers.engine.slots import GREED, Slots

if TYPE_CHECKING:
    from tocsin.timers.engine.shard import Shard

#: Timers may wait at a path beyond their share of memory if, at the pace of its answers, all of them drain within this time:
#: suspending a burst would cost two writes for each timer, and other timers are late by at most this long.
DRAIN_US_MAX = 10_000_000
#: A path that has not answered for so long is no longer taken for a fast one.
STALL_US = 1_000_000
#: Answers over which the pace is averaged.
_PACE_ANSWERS = 64
#: Paths that a destination distinguishes, by their first segments; further ones share the rest.
PATHS_MAX = 64
#: Characters of a first segment that count.
_PATH_CHARS_MAX = 100
#: The path of all that it does not distinguish. No first segment is like it.
OTHER_PATHS = "*"
#: Back-off of a destination to which a request could not be sent: the first, doubled each time up to the second. The cause is
#: on this machine and may pass in a moment; immediate retries would add to the load.
_BACK_OFF_FIRST_US, _BACK_OFF_US_MAX = 20_000, 1_000_000


@lru_cache(maxsize=1_024)  # Most timers share a few URLs; to find one here takes a tenth of the time.
def path_prefix(url: str) -> str:
    """The first segment of a URL's path with the slash before it; empty without one."""
    start = url.find("/", url.find("://") + 3)
    if start < 0:
        return ""
    end = url.find("/", start + 1)
    segment = url[start : end if end >= 0 else len(url)][:_PATH_CHARS_MAX]
    for mark in "?#":
        if mark in segment:
            segment = segment.partition(mark)[0]
    return segment if len(segment) > 1 else ""


class Queue:
    """Deferred rows of one shard and namespace that wait at one place, in key order. Some may have been changed or deleted
    since."""

    __slots__ = ("bytes", "deferred", "namespace", "place", "rows", "shard")

    def __init__(self, shard: Shard, namespace: str, place: Place, deferred: Deferred) -> None:
        self.shard = shard
        self.namespace = namespace
        self.place = place
        self.deferred = deferred
        self.rows: deque[Row] = deque()
        self.bytes = 0


class Deferred:
    """What one shard's window defers."""

    __slots__ = ("bytes", "queues", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self.queues: dict[Queue, None] = {}


#: The queues of a flow's key that has none. Never written to.
NO_QUEUES: dict[tuple[object, str], Queue] = {}


class Place:
    """Where due rows wait in memory: at their destination, or at their flow's key."""

    __slots__ = ("queues", "waiting")

    def __init__(self) -> None:
        #: In the order of their turns.
        self.queues: dict[tuple[object, str], Queue] = {}
        self.waiting = 0

    @property
    def reason(self) -> str:
        """The reason for which rows are suspended that find no room here."""
        raise NotImplementedError

    def line_up(self, name: tuple[object, str], queue: Queue) -> None:
        """Adds a queue behind the others."""
        if self.queues is NO_QUEUES:
            self.queues = {}
        self.queues[name] = queue

    @property
    def has_to_ask(self) -> bool:
        """Whether a row has to wait here before it can be known whether it may begin, and none does."""
        return False

    def drains(self, boot_us: int) -> bool:
        """Whether all that waits here leaves within `DRAIN_US_MAX`, at its present pace. What waits for a flow need not: its
        limits stay, and timers behind it would be late for as long."""
        return False


class Destination:
    """One scheme, host and port, or the first token of NATS subjects: what is in flight to it, by the first segments of the
    paths.

    `limit` shrinks while none of its paths answers. `back_off` is set while no request is tried because one could not be
    sent; `back_off_us` is its length, 0 once a request was sent.
    """

    __slots__ = (
        "alarm", "answered_at", "back_off", "back_off_us", "breaker", "caller", "failed_at", "in_flight", "last_error",
        "last_error_at", "limit", "name", "paths", "paused", "slots", "waiting_paths",
    )  # fmt: skip

    def __init__(self, name: str, caller: Caller, slots: Slots, breaker: Breaker, *, paused: bool = False) -> None:
        self.name = name
        #: Who is invoked for its timers.
        self.caller = caller
        #: The node's slots that its attempts take.
        self.slots = slots
        self.limit = slots.destination_max
        self.in_flight = 0
        self.back_off: asyncio.TimerHandle | None = None
        self.back_off_us = 0
        self.breaker = breaker
        #: Set while the breaker's wait is planned to end.
        self.alarm: asyncio.TimerHandle | None = None
        #: Paused by an operator.
        self.paused = paused
        #: Boot time of the last answer that was no failure.
        self.answered_at = 0
        #: The last failure, its boot time, and its instant by the wall clock.
        self.failed_at = 0
        self.last_error = ""
        self.last_error_at = 0
        self.paths: dict[str, DestinationPath] = {}
        #: Paths at which rows wait, in the order of their turns.
        self.waiting_paths: dict[DestinationPath, None] = {}

    def new_path(self, prefix: str) -> DestinationPath:
        """The path of a prefix that has none yet, or that of all others."""
        if len(self.paths) >= PATHS_MAX:
            prefix = OTHER_PATHS
        path = self.paths.get(prefix)
        if path is None:
            path = self.paths[prefix] = DestinationPath(self, prefix, self.slots.destination_max)
        return path

    def known_path(self, prefix: str) -> DestinationPath | None:
        """The path with that prefix, or that of all others; None if there is neither."""
        return self.paths.get(prefix) or self.paths.get(OTHER_PATHS)

    @property
    def waiting(self) -> int:
        """Rows that wait in memory."""
        return sum(path.waiting for path in self.waiting_paths)

    @property
    def takes_requests(self) -> bool:
        """Whether requests to it may begin, apart from its limits."""
        return self.back_off is None and not self.paused and not self.breaker.blocks

    @property
    def has_room(self) -> bool:
        """Whether one more request may be sent to it, if to one of its paths."""
        return self.in_flight < self.limit and self.takes_requests

    @property
    def holds(self) -> bool:
        """Whether timers wait for the destination itself, or for the operator who paused it: this node is not late then."""
        return self.paused or self.breaker.state is not BreakerState.CLOSED

    def mark_waiting(self, let_at: int) -> None:
        """Marks all that waits as held, or as free to go since this instant."""
        for path in self.waiting_paths:
            for queue in path.queues.values():
                for row in queue.rows:
                    row.let_at = let_at

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

    def set_alarm(self, wait_us: int, over: Callable[[Destination], None]) -> None:
        """Has `over` called after this time, instead of what was planned before."""
        self.cancel_alarm()
        self.alarm = asyncio.get_running_loop().call_later(wait_us / 1e6, over, self)

    def cancel_alarm(self) -> None:
        """Cancels what is planned."""
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None


class DestinationPath(Place):
    """The part of a destination below one first segment of its paths: what waits for it, and what is in flight to it.

    It may hold up to `GREED` times as many slots as are free of the destination's, so that one whose receiver hangs leaves
    slots to the others. `limit` shrinks while it does not answer.
    """

    __slots__ = ("answered_at", "destination", "in_flight", "interval_us", "limit", "prefix")

    def __init__(self, destination: Destination, prefix: str, limit: int) -> None:
        super().__init__()
        self.destination = destination
        self.prefix = prefix
        self.limit = limit
        self.in_flight = 0
        #: Boot time of the last answer, and the average time between two answers.
        self.answered_at = 0
        self.interval_us = 0.0

    @property
    def reason(self) -> str:
        return f"destination:{self.destination.name}{self.prefix}"

    def answered(self, boot_us: int) -> None:
        """Notes an answer, whatever its status."""
        if self.answered_at:
            self.interval_us += (boot_us - self.answered_at - self.interval_us) / _PACE_ANSWERS
        self.answered_at = boot_us

    def drains(self, boot_us: int) -> bool:
        if not self.answered_at or boot_us - self.answered_at > STALL_US or not self.destination.takes_requests:
            return False
        return self.waiting * self.interval_us <= DRAIN_US_MAX

    @property
    def has_room(self) -> bool:
        """Whether one more request may be sent to it."""
        destination = self.destination
        return (
            self.in_flight < self.limit
            and self.in_flight < GREED * (destination.limit - destination.in_flight)
            and destination.takes_requests
        )

    @property
    def slots(self) -> int:
        """How many more requests may be sent to it, about."""
        destination = self.destination
        if not destination.takes_requests:
            return 0
        if destination.breaker.state is not BreakerState.CLOSED:
            return 1
        return max(min(self.limit - self.in_flight, destination.limit - destination.in_flight), 0)
