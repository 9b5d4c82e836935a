"""A request in flight, and the enforcement of its deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tocsin.http_client.target import Origin
from tocsin.model.answer import Outcome
from tocsin.ports.http import Exchange, Reply, Result

if TYPE_CHECKING:
    from tocsin.http_client.connection import Connection


#: The outcome of a request: a Reply if headers are wanted, else a Response; or why there is none.
RequestOutcome = Outcome | Reply


class RequestInFlight:
    """One `invoke` or `send`, until its `done` is called. Times in nanoseconds are of the monotonic clock.

    It is in exactly one state: on a connection, with a task that opens one, or waiting for a free connection. While it waits,
    `deadline_ns` is the end of the wait; its timeout starts afterwards.
    """

    __slots__ = (
        "connection",
        "data",
        "deadline_ns",
        "done",
        "finished",
        "head_only",
        "items",
        "origin",
        "replayed",
        "sent_at",
        "started_ns",
        "task",
        "timeout_ns",
    )

    #: The type of the argument of `done`.
    record: type[Exchange] | type[Result] = Exchange
    #: Whether the response is reported with its headers, as a Reply.
    wants_headers = False
    #: Whether the request may be sent twice. Callbacks may: they are delivered at least once.
    replayable = True

    def __init__(
        self,
        origin: Origin,
        data: bytes,
        head_only: bool,
        timeout_us: int,
        done: Callable[[Any], None],
        items: int = 1,
    ) -> None:
        self.origin = origin
        self.data = data
        #: The response to a HEAD request has no body, even if its headers declare one.
        self.head_only = head_only
        #: How many callbacks the response answers.
        self.items = items
        self.started_ns = started_ns = time.monotonic_ns()
        self.timeout_ns = timeout_us * 1_000
        self.deadline_ns = started_ns + self.timeout_ns
        self.done = done
        #: Wall clock, microseconds, when the request was first written to a socket.
        self.sent_at: int | None = None
        self.replayed = False
        self.finished = False
        self.connection: Connection | None = None
        self.task: asyncio.Task[Any] | None = None


class CallInFlight(RequestInFlight):
    """One `send`, a service call's request."""

    __slots__ = ()

    record = Result
    wants_headers = True


class OnceOnlyCall(CallInFlight):
    """One `send` whose method is not idempotent."""

    __slots__ = ()

    replayable = False


#: How often the event loop polls its sockets before an expired deadline takes effect, where each request has a connection of
#: its own. One poll is enough for a loop that polls before it runs queued callbacks; uvloop polls after.
_POLLS_BEFORE_EXPIRY = 3


class Expiring(Protocol):
    """What has a deadline, in nanoseconds of the monotonic clock. `sent_at` is None until it is sent."""

    @property
    def deadline_ns(self) -> int: ...

    @property
    def sent_at(self) -> int | None: ...


T = TypeVar("T", bound=Expiring)


class Deadlines(Generic[T]):
    """Reports requests whose deadline has passed: never early, and up to `interval_us` late while the event loop runs.

    Data that has arrived is read first: after the process was stalled, responses may have waited in the sockets' buffers
    for long. A request that has not been sent by then is reported immediately, before it can be sent.

    One timer of the event loop serves all requests. It is set to the nearest deadline and is not moved when that request
    ends in time, so that a request costs a set insertion instead of a timer.
    """

    def __init__(self, interval_us: int, expired: Callable[[T, int], None], polls: int = _POLLS_BEFORE_EXPIRY) -> None:
        """`expired` gets the request, and by how many nanoseconds its deadline was detected late. The event loop polls its
        sockets `polls` times before: as often as it takes to read all that may have arrived."""
        self.requests: set[T] = set()
        self._interval_ns = interval_us * 1_000
        self._expired = expired
        self._polls = polls
        self._next_ns: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def add(self, request: T) -> None:
        """Watches the request until it is removed from `requests`. Its deadline may be postponed until then."""
        self.requests.add(request)
        if self._next_ns is None or request.deadline_ns < self._next_ns:
            self._set(request.deadline_ns)

    def close(self) -> None:
        """Stops watching."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._next_ns = None

    def _set(self, instant_ns: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # The loop's clock may be constant during an iteration (uvloop): it only schedules the check, which then uses the
        # monotonic clock.
        wait_ns = max(instant_ns - time.monotonic_ns(), self._interval_ns)
        self._next_ns = instant_ns
        self._timer = asyncio.get_running_loop().call_later(wait_ns / 1e9, self._check)

    def _check(self) -> None:
        self._timer = self._next_ns = None
        now_ns = time.monotonic_ns()
        late = [request for request in self.requests if request.deadline_ns <= now_ns]
        nearest = min((a.deadline_ns for a in self.requests if a.deadline_ns > now_ns), default=None)
        if nearest is not None:
            self._set(nearest)
        sent = []
        for request in late:
            if request.sent_at is None:
                self._expire(request, now_ns)
            else:
                sent.append(request)
        if sent:
            self._after_polls(self._polls, sent, now_ns)

    def _after_polls(self, polls: int, late: list[T], noticed_ns: int) -> None:
        if polls:
            asyncio.get_running_loop().call_soon(self._after_polls, polls - 1, late, noticed_ns)
            return
        for request in late:
            self._expire(request, noticed_ns)

    def _expire(self, request: T, noticed_ns: int) -> None:
        # Expiring earlier requests may have postponed or ended this one.
        if request in self.requests and request.deadline_ns <= noticed_ns:
            self._expired(request, noticed_ns - request.deadline_ns)
