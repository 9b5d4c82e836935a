"""The paused namespaces and the number of their overdue timers, read while an overview is open."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.errors import Unavailable
from tocsin.model.timer import Status
from tocsin.ports.clock import Clock
from tocsin.tasks import Refreshed
from tocsin.timers.service import ListRequest, TimerService
from tocsin.web.pages.counts import COUNTED_MAX, BoundedCount, count_timers

#: The minimum time between two reads of the store, however many overviews are open.
_READ_INTERVAL_S = 5.0


@dataclass(frozen=True, slots=True)
class PausedNamespace:
    """A paused namespace and the number of its overdue timers."""

    name: str
    waiting: BoundedCount


async def count_due(service: TimerService, namespace: str, before_us: int) -> BoundedCount:
    """The number of the namespace's pending timers that are due before an instant."""
    pending = frozenset({Status.PENDING})
    return await count_timers(service, ListRequest(namespace, pending, execute_before=before_us, limit=COUNTED_MAX))


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
