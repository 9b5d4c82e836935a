"""The paused namespaces and the number of their overdue timers, read while an overview is open."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.errors import Unavailable
from tocsin.model.timer import Status
from tocsin.ports.clock import Clock
from tocsin.tasks import Refreshed
from tocsin.timers.service import ListRequest, TimerService
from tocsin.web.pages.presentation import count

#: Timers of a namespace that are counted; a greater number is shown as "or more". Each costs reading a row.
COUNTED_MAX = 500
#: The minimum time between two reads of the store, however many overviews are open.
_READ_INTERVAL_S = 5.0


@dataclass(frozen=True, slots=True)
class BoundedCount:
    """A number of timers, and whether there are more than were counted."""

    timers: int
    more: bool = False

    def __str__(self) -> str:
        plain = f"{count(self.timers)}{' or more' if self.more else ''}"
        return f"{plain} {'timer' if self.timers == 1 and not self.more else 'timers'}"


@dataclass(frozen=True, slots=True)
class PausedNamespace:
    """A paused namespace and the number of its overdue timers."""

    name: str
    waiting: BoundedCount


async def count_due(service: TimerService, namespace: str, before_us: int) -> BoundedCount:
    """The number of the namespace's pending timers that are due before an instant."""
    views, cursor = await service.list(
        ListRequest(
            namespace, statuses=frozenset({Status.PENDING}), execute_before=before_us, limit=COUNTED_MAX, reads_max=2
        )
    )
    return BoundedCount(len(views), cursor is not None)


class Paused(Refreshed):
    """The paused namespaces, as of a few seconds ago. If the store does not respond, the previous result stays; the health
    sentence reports the store."""

    def __init__(self, service: TimerService, clock: Clock) -> None:
        super().__init__(_READ_INTERVAL_S)
        self._service = service
        self._clock = clock
        self.namespaces: list[PausedNamespace] = []

    async def _read(self) -> None:
        try:
            names = [each.name for each in await self._service.namespaces.all() if each.paused]
            now_us = self._clock.now_us()
            self.namespaces = [PausedNamespace(name, await count_due(self._service, name, now_us)) for name in names]
        except Unavailable:
            return
