"""What comes due within the hour, read while the page Now is open."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.model.errors import TocsinError
from tocsin.model.timer import Status
from tocsin.ports.clock import Clock
from tocsin.tasks import Refreshed
from tocsin.timers.service import ListRequest, TimerService

_HOUR_US = 3_600_000_000
#: Timers that are counted one by one; each costs reading a row. With more, the chart ends earlier, and the page states that.
COUNTED_MAX = 1_000
#: The minimum time between two reads of the store, however many pages are open.
_READ_INTERVAL_S = 10.0


class Upcoming(Refreshed):
    """The instants of the timers that are due within an hour, by namespace. If the store does not respond, the previous ones
    stay: the verdict reports the store."""

    def __init__(self, service: TimerService, clock: Clock) -> None:
        super().__init__(_READ_INTERVAL_S)
        self._service = service
        self._clock = clock
        #: Namespace and instant (microseconds), the earliest first; complete up to `until_us`, None: for the whole hour.
        self.due: Sequence[tuple[str, int]] = ()
        self.until_us: int | None = None
        #: Whether they have been read at all.
        self.known = False

    async def _read(self) -> None:
        now_us = self._clock.now_us()
        wanted = ListRequest(
            None,
            statuses=frozenset({Status.PENDING}),
            execute_after=now_us,
            execute_before=now_us + _HOUR_US,
            limit=COUNTED_MAX,
            reads_max=4,
        )
        try:
            views, cursor = await self._service.list(wanted)
        except TocsinError:
            return
        self.known = True
        self.due = [(view.timer.namespace, view.next_attempt_at) for view in views if view.next_attempt_at is not None]
        self.until_us = self.due[-1][1] if cursor is not None and self.due else None
