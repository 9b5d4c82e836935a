"""The paused namespaces with the number of their overdue timers, the paused destinations and flows, and the schedules that
paused themselves: read while an overview is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tocsin.model.errors import Unavailable
from tocsin.model.flow import PAUSED_FOR_GOOD
from tocsin.model.schedule import PAUSED_AFTER_FAILURES, ScheduleStatus
from tocsin.model.timer import Status
from tocsin.ports.clock import Clock
from tocsin.tasks import Refreshed
from tocsin.timers.schedules import ScheduleListRequest, Schedules, ScheduleView
from tocsin.timers.service import ListRequest, TimerService
from tocsin.web.pages.counts import COUNTED_MAX, BoundedCount, count_timers
from tocsin.web.pages.overview.looks import KEPT_MAX, LOOK_READS_MAX, READ_INTERVAL_S, Looked


@dataclass(frozen=True, slots=True)
class PausedNamespace:
    """A paused namespace and the number of its overdue timers."""

    name: str
    waiting: BoundedCount


class PausedDestination(NamedTuple):
    """A paused destination, and how many due timers wait for it in the memory of this node."""

    name: str
    waiting: int


class PausedFlow(NamedTuple):
    """A paused flow, and when it is resumed by itself (microseconds; None: not at all)."""

    namespace: str
    match: str
    until: int | None


async def count_due(service: TimerService, namespace: str, before_us: int) -> BoundedCount:
    """The number of the namespace's pending timers that are due before an instant."""
    pending = frozenset({Status.PENDING})
    return await count_timers(service, ListRequest(namespace, pending, execute_before=before_us, limit=COUNTED_MAX))


class Paused(Refreshed):
    """The paused namespaces, destinations and flows, as of a few seconds ago. If the store does not respond, the previous
    result stays; the health sentence reports the store."""

    def __init__(self, service: TimerService, clock: Clock) -> None:
        super().__init__(READ_INTERVAL_S)
        self._service = service
        self._clock = clock
        self.namespaces: list[PausedNamespace] = []
        self.destinations: list[PausedDestination] = []
        self.flows: list[PausedFlow] = []
        #: Whether they have been read at all.
        self.known = False

    async def _read(self) -> None:
        try:
            namespaces = await self._service.namespaces.all()
            names = [each.name for each in namespaces if each.paused]
            now_us = self._clock.now_us()
            self.namespaces = [PausedNamespace(name, await count_due(self._service, name, now_us)) for name in names]
            self.flows = [
                PausedFlow(each.name, flow.match, None if until == PAUSED_FOR_GOOD else until)
                for each in namespaces
                for flow in self._service.flow_rules.known(each.name).all()
                if (until := flow.closed_until(now_us)) is not None
            ]
            views = await self._service.destinations.paused()
            self.destinations = [PausedDestination(each.total.name, each.total.waiting) for each in views]
            self.known = True
        except Unavailable:
            return


class PausedSchedule(NamedTuple):
    """A schedule that paused itself after failures in a row: how many these are by now, and when its last occurrence ended.
    `at_once`: with that one it paused itself, as nothing was fired by hand since."""

    namespace: str
    schedule_id: str
    failures: int
    ended_at: int
    at_once: bool


class PausedSchedules(Looked[PausedSchedule]):
    """The schedules that paused themselves."""

    def __init__(self, schedules: Schedules) -> None:
        super().__init__()
        self._schedules = schedules

    async def look(self, cursor: str | None) -> tuple[Sequence[PausedSchedule], str | None]:
        wanted = ScheduleListRequest(
            None, frozenset({ScheduleStatus.PAUSED}), cursor=cursor, limit=KEPT_MAX, reads_max=LOOK_READS_MAX
        )
        listed, after = await self._schedules.list_answers(wanted, paused_itself)
        return [each for each in listed if each is not None], after


def paused_itself(view: ScheduleView) -> PausedSchedule | None:
    """What is shown of a schedule if it paused itself."""
    schedule, last = view.timer.schedule, view.last_occurrence
    if schedule is None or last is None or view.paused != PAUSED_AFTER_FAILURES:
        return None
    failures = schedule.state.failures
    at_once = failures == view.definition.pause_after_failures
    return PausedSchedule(view.timer.namespace, view.timer.id, failures, last.finished_at, at_once)
