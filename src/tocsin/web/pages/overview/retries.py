"""Where timers, schedules and service calls wait to be tried again, read while an overview is open: a place at which
attempts failed has recovered once none does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from tocsin.model.errors import TocsinError, Unavailable
from tocsin.model.failure import destination_of
from tocsin.model.timer import Status
from tocsin.ports.clock import Clock
from tocsin.statistics.slots import Failures, split_place
from tocsin.tasks import Refreshed
from tocsin.timers.listing import IdListRequest
from tocsin.timers.service import ListRequest, TimerService, TimerView
from tocsin.web.pages.calls.agent import AgentSource, AgentUnavailable
from tocsin.web.pages.overview.looks import LOOK_READS_MAX
from tocsin.web.pages.overview.places import Places, has_own_name

#: Pending timers, schedules, and attempted service calls that are read; each costs reading a row. With more, no place is
#: known to have recovered.
_READ_MAX = 1_000
#: The minimum time between two reads of the store, however many pages are open.
_READ_INTERVAL_S = 10.0
#: The same after there were more than are read: there will hardly be fewer soon.
_TOO_MANY_INTERVAL_US = 300_000_000
#: For how long nothing has failed at a place that has recovered. By then the retry of what failed last is stored.
_QUIET_US = 60_000_000
#: The slots of the statistics, at whose start a failure is counted.
_SLOT_US = 60_000_000


class Retries(Refreshed):
    """The places at which something waits to be tried again, as of a few seconds ago. While the store does not respond,
    nothing is known of them."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(_READ_INTERVAL_S)
        self._clock = clock
        self._places: frozenset[str] = frozenset()
        #: When all of them were read; 0: they are not known.
        self.read_at_us = 0
        self._read_again_at_us = 0

    @abstractmethod
    async def waiting(self) -> frozenset[str] | None:
        """The places; None: there is more than is read. Raises TocsinError."""

    def recovered(self, place: str, failures: Failures) -> bool:
        """Whether nothing has failed at a place of the statistics for a while, and nothing waits to be tried there again."""
        quiet = self.read_at_us >= failures.last_at + _SLOT_US + _QUIET_US
        return quiet and place not in self._places and has_own_name(place)

    def version(self, wanted: Callable[[str], bool]) -> str:
        """Changes with the places in these namespaces that have recovered."""
        waiting = frozenset(place for place in self._places if wanted(split_place(place)[0]))
        return f"{self.read_at_us // _SLOT_US}:{hash(waiting)}"

    async def _read(self) -> None:
        now_us = self._clock.now_us()
        if now_us < self._read_again_at_us:
            return
        try:
            found = await self.waiting()
        except TocsinError:
            self.read_at_us = 0
            return
        if found is None:
            self.read_at_us, self._read_again_at_us = 0, now_us + _TOO_MANY_INTERVAL_US
            return
        self._places, self.read_at_us = found, now_us


class TimerRetries(Retries):
    """Those of timers and schedules."""

    def __init__(self, service: TimerService, clock: Clock) -> None:
        super().__init__(clock)
        self._service = service

    async def waiting(self) -> frozenset[str] | None:
        places = Places(self._service)

        def place_of(view: TimerView) -> str | None:
            timer = view.timer
            waits = timer.attempts or (
                view.suspended and (timer.schedule is None or timer.schedule.state.paused is None)
            )
            return places.of(timer.namespace, destination_of(timer.url)) if waits else None

        pending = ListRequest(None, frozenset({Status.PENDING}), limit=_READ_MAX, reads_max=1)
        repeated = IdListRequest(limit=_READ_MAX, reads_max=LOOK_READS_MAX, of_several=True)
        found, more = await self._service.list_answers(pending, place_of)
        if more is None:
            schedules, more = await self._service.list_schedules(None, repeated, place_of)
            found += schedules
        return None if more is not None else frozenset(place for place in found if place is not None)


class CallRetries(Retries):
    """Those of service calls. Only the node that runs the agent knows them."""

    def __init__(self, service: TimerService, agent: AgentSource, clock: Clock) -> None:
        super().__init__(clock)
        self._service = service
        self._agent = agent

    async def waiting(self) -> frozenset[str] | None:
        calls = self._agent()
        if isinstance(calls, AgentUnavailable):
            raise Unavailable(calls.title)
        places = Places(self._service)
        urls = await calls.attempted_urls(_READ_MAX)
        return None if urls is None else frozenset(places.of_calls(destination_of(url)) for url in urls)
