"""The timers that are past their instants, and what they wait for: read while an overview is open."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tocsin.model.errors import InvalidInput, TocsinError
from tocsin.model.explanation import TimerState, WaitsFor
from tocsin.model.timer import Status
from tocsin.ports.clock import Clock
from tocsin.ports.destinations import DestinationReport
from tocsin.statistics.slots import LATE_US
from tocsin.tasks import Refreshed
from tocsin.timers.engine.breaker import BreakerState
from tocsin.timers.listing import IdListRequest
from tocsin.timers.service import ListRequest, TimerService, TimerView
from tocsin.web.pages.overview.looks import KEPT_MAX, LOOK_READS_MAX, STALE_S, Looked

#: The minimum time between two reads of the store, however many pages are open.
_READ_INTERVAL_S = 3.0
#: Timers of one read, the longest due first; each costs reading a row. Those with attempts in flight are among them.
_COUNTED_MAX = 1_000
#: Looks of which each goes on where the one before ended, until one has found something that counts.
_LOOKS_MAX = 10
#: Destinations of which it is asked why timers wait there.
_REPORTS_MAX = 100
#: Timers that seem to be fired next and are read again, because they may have been fired since.
_CONFIRMED_MAX = 100
#: What keeps timers of a node that fires, and whose receivers answer, from being fired.
LATE_FOR = frozenset({WaitsFor.NODE, WaitsFor.NAMESPACE, WaitsFor.OWNER})
#: What somebody has to mend before timers fire.
HELD_FOR = frozenset({WaitsFor.EGRESS, WaitsFor.CREDENTIAL, WaitsFor.SECRET, WaitsFor.CREATE})
#: What is counted by destination: attempts that last long have all the slots.
_AT_DESTINATIONS = frozenset({WaitsFor.DESTINATION, WaitsFor.NAMESPACE})
_COUNTED = LATE_FOR | HELD_FOR | {WaitsFor.DESTINATION}


class Wait(NamedTuple):
    """Timers of a namespace that have been due for more than a second and wait for the same: for a slot of their
    `destination` or namespace, or else its name is empty; how many these are, and since when the first of them is due
    (microseconds)."""

    namespace: str
    waits_for: WaitsFor
    destination: str
    number: int
    since: int


class Waiting(Refreshed):
    """What keeps timers waiting, as of a few seconds ago: not the pauses of nodes, namespaces and flows, nor the limits of
    flows, which are meant. Where those with the earliest instants all wait as meant, later looks go on behind them, and the
    result is up to half a minute old. If the store does not respond, the previous result stays: the verdict reports the
    store."""

    def __init__(self, service: TimerService, clock: Clock) -> None:
        super().__init__(_READ_INTERVAL_S)
        self._service = service
        self._clock = clock
        self.waits: Sequence[Wait] = ()
        #: Whether further timers may be due that were not read.
        self.more = True
        #: What all nodes know of the destinations for which timers wait, and when that was read (microseconds).
        self.reports: Mapping[str, DestinationReport] = {}
        self.read_at_us = 0
        self._cursor: str | None = None
        self._looks, self._looked_at_us = 0, 0

    @property
    def probed_at_us(self) -> int:
        """When the next probe of one of the destinations begins (microseconds); 0 if their breakers have none."""
        waits_us = [each.wait_us for each in self.reports.values() if each.breaker == BreakerState.OPEN]
        return self.read_at_us + min(waits_us) if waits_us else 0

    async def _read(self) -> None:
        if self._service.paused_reason is not None:
            # The verdict states that. Where the store does not answer, a read would only keep others from being tried.
            return
        now_us = self._clock.now_us()
        before_us = now_us - LATE_US
        if now_us - self._looked_at_us > STALE_S * 1e6:
            self.waits, self.more, self._cursor, self._looks = (), True, None, 0
        self._looked_at_us = now_us
        pending = frozenset({Status.PENDING})
        due = ListRequest(None, pending, execute_before=before_us, limit=_COUNTED_MAX, cursor=self._cursor, reads_max=4)
        try:
            views, cursor = await self._service.list(due)
            late = [view for view in await self._service.explained(views) if _since(view) <= before_us]
            waits = summed(map(self._wait, await self._confirmed(late)), lambda each: each[:3])
            reports: Mapping[str, DestinationReport] = {}
            if any(each.destination for each in waits):
                listed, _, _ = await self._service.destinations.list(_REPORTS_MAX)
                reports = {each.total.name: each.total for each in listed}
        except TocsinError:
            return
        self._looks += 1
        if not waits and cursor is not None and self._looks < _LOOKS_MAX:
            self._cursor = cursor
            return
        self._cursor, self._looks = None, 0
        self.waits, self.more, self.reports, self.read_at_us = waits, cursor is not None, reports, now_us

    async def _confirmed(self, late: Sequence[TimerView]) -> list[TimerView]:
        """Those that wait for something. One that was fired between the two questions seems to be the next to be fired."""
        found = [view for view in late if _waits_for(view) in _COUNTED]
        unsure = [view for view in found if _waits_for(view) is WaitsFor.NODE][:_CONFIRMED_MAX]
        still = await self._service.get_by_uuids([(view.timer.namespace, view.uuid) for view in unsure])
        instants = {view.uuid: view.next_attempt_at for view in still}
        gone = {view.uuid for view in unsure if instants.get(view.uuid) != view.next_attempt_at}
        return [view for view in found if view.uuid not in gone]

    def _wait(self, view: TimerView) -> Wait:
        waits_for, namespace = _waits_for(view), view.timer.namespace
        assert waits_for is not None
        name = self._name_of(view.timer.url) if waits_for in _AT_DESTINATIONS else ""
        return Wait(namespace, waits_for, name, 1, _since(view))

    def _name_of(self, url: str) -> str:
        try:
            return self._service.destinations.name_of(url)
        except InvalidInput:
            return "an unknown destination"


class HeldSchedule(NamedTuple):
    """A schedule whose occurrence is suspended: for what, and since when it is due (microseconds)."""

    namespace: str
    schedule_id: str
    waits_for: WaitsFor
    since: int


class HeldSchedules(Looked[HeldSchedule]):
    """The schedules whose occurrences somebody has to mend something for. They are not among the timers that `Waiting`
    lists; those that wait for their node or its slots are in its memory, and count in what is overdue."""

    def __init__(self, service: TimerService) -> None:
        super().__init__()
        self._service = service

    async def look(self, cursor: str | None) -> tuple[Sequence[HeldSchedule], str | None]:
        wanted = IdListRequest(cursor or "", KEPT_MAX, reads_max=LOOK_READS_MAX, of_several=True)
        listed, after = await self._service.list_schedules(None, wanted, _held, explained=True)
        return [each for each in listed if each is not None], after


def _held(view: TimerView) -> HeldSchedule | None:
    waits_for = _waits_for(view)
    if waits_for not in HELD_FOR or waits_for is None or view.next_attempt_at is None:
        return None
    return HeldSchedule(view.timer.namespace, view.timer.id, waits_for, view.next_attempt_at)


def summed(waits: Iterable[Wait], key: Callable[[Wait], Hashable]) -> list[Wait]:
    """The sums of those with the same key, the one with most timers first; of each its first namespace is named."""
    found: dict[Hashable, Wait] = {}
    for each in waits:
        known = found.get(key(each))
        if known is not None:
            each = known._replace(number=known.number + each.number, since=min(known.since, each.since))
        found[key(each)] = each
    return sorted(found.values(), key=lambda each: -each.number)


def _waits_for(view: TimerView) -> WaitsFor | None:
    """What a due timer waits for; None if that is not known, or its namespace is paused."""
    known = view.explanation
    if known is None or known.state is TimerState.PAUSED:
        return None
    # An owner that has answered, and does not own the shard any more, fires none of its timers.
    lost = known.state is TimerState.UNKNOWN and known.since is None
    return WaitsFor.OWNER if lost else known.waits_for


def _since(view: TimerView) -> int:
    """Since when a pending timer is due: one that was created or changed later, since then."""
    assert view.next_attempt_at is not None
    return max(view.next_attempt_at, view.timer.updated_at)
