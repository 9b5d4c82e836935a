"""The failures of the last hour that are still listed: what was replayed or dismissed needs no attention any more."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tocsin.model.errors import StoreError, Unavailable
from tocsin.model.failure import split_failure
from tocsin.model.namespace import HistoryMode
from tocsin.ports.clock import Clock
from tocsin.service_calls.api.failures import CallFailureFilter
from tocsin.statistics.slots import Failures, Slot, split_place
from tocsin.tasks import Refreshed
from tocsin.timers.failures import FailureFilter, namespace_of
from tocsin.timers.service import TimerService
from tocsin.web.pages.calls.agent import AgentSource, AgentUnavailable
from tocsin.web.pages.overview.places import Places, has_own_name

_HOUR_US, _MINUTE_US = 3_600_000_000, 60_000_000
#: The minimum time between two reads of the store, however many pages are open.
_READ_INTERVAL_S = 5.0
#: Failures that are counted one by one. With more, those of the statistics are shown.
_COUNTED_MAX = 1_000
#: The statistics count a failure before it is committed. After this time it is listed.
_COMMITTED_WITHIN_US = 10_000_000


class OpenFailures(Refreshed):
    """The failures of the last hour that nobody has dealt with, as of a few seconds ago. While the store does not respond,
    nothing is known of them."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(_READ_INTERVAL_S)
        self._clock = clock
        #: By the places of the statistics.
        self._counts: Counter[str] = Counter()
        #: Namespaces whose failures are not listed.
        self._unlisted: frozenset[str] = frozenset()
        self._complete = False
        #: What failed in a minute that ended before this was listed when the store was read.
        self.settled_us = 0

    @abstractmethod
    async def count(self, since_us: int) -> tuple[Counter[str], bool]:
        """How many are left by the places of the statistics, and whether these are all. Raises StoreError, Unavailable."""

    @abstractmethod
    def failing(self, slot: Slot) -> Mapping[str, Failures]:
        """What failed in a slot of the statistics."""

    async def _read(self) -> None:
        as_of_us = self._clock.now_us()
        try:
            self._counts, self._complete = await self.count(as_of_us - _HOUR_US)
        except (StoreError, Unavailable):
            self._complete = False
            return
        self.settled_us = as_of_us - _COMMITTED_WITHIN_US

    def left(self, slots: Sequence[Slot]) -> Callable[[str], int | None]:
        """How many failures are left of a place of the statistics, which are of these slots; None if that is unknown, as it
        is of a place where something failed in a minute that had not ended well before the store was read."""
        later = [self.failing(slot) for slot in slots if slot.begins_us + _MINUTE_US > self.settled_us]
        recent = {place for failing in later for place, failures in failing.items() if failures.exhausted}
        return lambda place: None if place in recent else self._of(place)

    def _of(self, place: str) -> int | None:
        if not self._complete:
            return None
        if not has_own_name(place) or split_place(place)[0] in self._unlisted:
            return None
        return self._counts[place]

    def number(self, wanted: Callable[[str], bool]) -> int | None:
        """How many are left in these namespaces; None if that is unknown."""
        if not self._complete:
            return None
        return sum(number for place, number in self._counts.items() if wanted(split_place(place)[0]))


class OpenTimerFailures(OpenFailures):
    """Those of timers and schedules."""

    def __init__(self, service: TimerService, clock: Clock) -> None:
        super().__init__(clock)
        self._service = service

    async def count(self, since_us: int) -> tuple[Counter[str], bool]:
        namespaces = await self._service.namespaces.all()
        rows, cursor = await self._service.failures.members(FailureFilter(None, since_us), _COUNTED_MAX, None)
        self._unlisted = frozenset(each.name for each in namespaces if each.history is HistoryMode.NONE)
        places = Places(self._service)
        found = Counter(places.of(namespace_of(row), split_failure(row.failure)[0]) for row in rows)
        return found, cursor is None

    def failing(self, slot: Slot) -> Mapping[str, Failures]:
        return slot.failing


class OpenCallFailures(OpenFailures):
    """Those of service calls. Only the node that runs the agent knows them."""

    def __init__(self, service: TimerService, agent: AgentSource, clock: Clock) -> None:
        super().__init__(clock)
        self._service = service
        self._agent = agent

    async def count(self, since_us: int) -> tuple[Counter[str], bool]:
        calls = self._agent()
        if isinstance(calls, AgentUnavailable):
            raise Unavailable(calls.title)
        found, cursor = await calls.failures.members(CallFailureFilter(None, since_us), _COUNTED_MAX, None)
        places = Places(self._service)
        return Counter(places.of_calls(split_failure(each.failure)[0]) for each in found), cursor is None

    def failing(self, slot: Slot) -> Mapping[str, Failures]:
        return slot.calls_failing


def with_uncounted_ends(failing: Mapping[str, Failures], left: Callable[[str], int | None]) -> dict[str, Failures]:
    """The places of the statistics of service calls with at least the ends that are left there: a node that did not see a
    call's last attempt does not know at which place it ended."""
    return {
        place: Failures(each.failures, max(each.exhausted, left(place) or 0), each.last_error, each.last_at)
        for place, each in failing.items()
    }


def needing_attention(
    failing: Mapping[str, Failures],
    left: Callable[[str], int | None],
    recovered: Callable[[str, Failures], bool],
) -> dict[str, Failures]:
    """The places of the statistics with what failed there; where none of the ends that failed is left, only the attempts
    that were made again, unless the place has `recovered` from those."""
    found = {}
    for place, failures in failing.items():
        if failures.exhausted and left(place) == 0:
            # A call's end is counted apart from its last attempt, perhaps in the minute after it.
            retried = max(failures.failures - failures.exhausted, 0)
            failures = Failures(retried, 0, failures.last_error, failures.last_at)
        if failures.exhausted or (failures.failures and not recovered(place, failures)):
            found[place] = failures
    return found
