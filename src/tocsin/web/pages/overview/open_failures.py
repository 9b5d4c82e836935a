"""The failures of the last hour that are still listed: what was replayed or dismissed needs no attention any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tocsin.model.errors import TocsinError
from tocsin.model.failure import destination_of, split_failure
from tocsin.model.namespace import HistoryMode
from tocsin.ports.clock import Clock
from tocsin.statistics.counting import PATH_CHARS_MAX
from tocsin.statistics.slots import OTHER_DESTINATIONS, Failures, Slot, split_place
from tocsin.tasks import Refreshed
from tocsin.timers.failures import FailureFilter, namespace_of
from tocsin.timers.service import TimerService

_HOUR_US = 3_600_000_000
#: The minimum time between two reads of the store, however many pages are open.
_READ_INTERVAL_S = 5.0
#: Failures that are counted one by one. With more, those of the statistics are shown.
_COUNTED_MAX = 1_000


class OpenFailures(Refreshed):
    """The failures of the last hour that nobody has dealt with, as of a few seconds ago. If the store does not respond, the
    previous result stays: nothing can be replayed meanwhile."""

    def __init__(self, service: TimerService, clock: Clock) -> None:
        super().__init__(_READ_INTERVAL_S)
        self._service = service
        self._clock = clock
        self._counts: Counter[tuple[str, str]] = Counter()
        #: Namespaces whose failures are not listed.
        self._unlisted: frozenset[str] = frozenset()
        self._complete = False

    async def _read(self) -> None:
        wanted = FailureFilter(None, self._clock.now_us() - _HOUR_US)
        try:
            namespaces = await self._service.namespaces.all()
            rows, cursor = await self._service.failures.members(wanted, _COUNTED_MAX, None)
        except TocsinError:
            return
        self._unlisted = frozenset(each.name for each in namespaces if each.history is HistoryMode.NONE)
        self._counts = Counter((namespace_of(row), split_failure(row.failure)[0]) for row in rows)
        self._complete = cursor is None

    def of(self, place: str) -> int | None:
        """How many are left of a place of the statistics; None if that is unknown."""
        namespace, destination, path = split_place(place)
        if not self._complete or namespace in self._unlisted:
            return None
        if destination == OTHER_DESTINATIONS or len(path) >= PATH_CHARS_MAX:
            return None
        return self._counts[namespace, destination_of(f"{destination}{path}")]

    def needing_attention(self, slots: Sequence[Slot], failing: dict[str, Failures]) -> dict[str, Failures]:
        """The places of the statistics with what failed there in these slots, the earliest first, and was not dealt with. Of
        a place without a failure that is left, these are the attempts that failed since the minute of its last failure."""
        found = {}
        for place, failures in failing.items():
            if failures.exhausted and self.of(place) == 0:
                failures = Failures()
                for slot in reversed(slots):
                    of_slot = slot.failing.get(place, Failures())
                    if of_slot.exhausted:
                        break
                    failures.add(of_slot)
            if failures.failures:
                found[place] = failures
        return found

    def number(self, wanted: Callable[[str], bool]) -> int:
        """How many are left in these namespaces, as far as they were counted."""
        return sum(number for (namespace, _), number in self._counts.items() if wanted(namespace))
