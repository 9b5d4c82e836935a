"""How many timers, schedules or calls a tab lists: bounded, shared by all who look, and never what a page waits for."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from starlette.responses import Response

from tocsin.model.errors import TocsinError
from tocsin.model.schedule import ScheduleStatus
from tocsin.model.timer import Status
from tocsin.ports.agent_calls import Tenants
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.tasks import Refreshed
from tocsin.timers.listing import ListRequest, Scope
from tocsin.timers.schedules import ScheduleListRequest, Schedules, ScheduleView, has_failed
from tocsin.timers.service import TimerService
from tocsin.web.pages.presentation import count, is_waiting

K = TypeVar("K")

#: What is counted at most; a greater number is shown with a plus sign. Each costs reading a row.
COUNTED_MAX = 500
#: Rows of other statuses that a count may pass: no index has the statuses of finished timers.
_SCAN_ROWS_MAX, _BYTES_MAX = 5_000, 1024 * 1024
#: The minimum time between two counts of a scope, however many look at it.
_INTERVAL_S = 5.0
#: How long a page waits for counts; without them it is shown nevertheless, and they are there next time.
_WAIT_S = 0.15
#: Scopes whose counts are kept; the one that was asked for longest ago is dropped, unless it is being counted. An open page
#: asks for up to three every ten seconds.
_SCOPES_MAX = 2_000


@dataclass(frozen=True, slots=True)
class BoundedCount:
    """A number of timers or the like, and whether there are more than were counted."""

    number: int
    more: bool = False

    def __str__(self) -> str:
        plain = f"{count(self.number)}{' or more' if self.more else ''}"
        return f"{plain} {'timer' if self.number == 1 and not self.more else 'timers'}"

    @property
    def short(self) -> str:
        """As on a tab: `12`, `500+`; empty if nothing is known."""
        return "" if self.more and not self.number else f"{count(self.number)}{'+' if self.more else ''}"


Numbers = Mapping[str, BoundedCount]


def badge(known: BoundedCount | None) -> Response:
    """The number in the rail beside another page, empty for none; 204 if it is not known now, and what is shown stays."""
    if known is None:
        return Response(status_code=204)
    return Response(known.short if known.number else "", media_type="text/html")


async def count_timers(service: TimerService, wanted: ListRequest) -> BoundedCount:
    """How many timers match. Raises NamespaceNotFound, Unavailable."""
    return BoundedCount(*await service.count(wanted))


class _ScopeCounts(Refreshed):
    """The counts of one scope. If the store does not respond, the previous ones stay."""

    def __init__(self) -> None:
        super().__init__(_INTERVAL_S)
        #: Makes the next counts: that of the latest request.
        self.count: Callable[[], Awaitable[Numbers]] | None = None
        self.numbers: Numbers = {}

    @property
    def counting(self) -> bool:
        """Whether it is being counted, or waits for its turn."""
        return self._reading is not None and not self._reading.done()

    async def _read(self) -> None:
        count, self.count = self.count, None
        assert count is not None
        try:
            self.numbers = await count()
        except TocsinError:
            return


class Counts(Generic[K]):
    """The counts of some scopes by the names of tabs. One scope is counted at a time."""

    def __init__(self) -> None:
        self._scopes: dict[K, _ScopeCounts] = {}
        self._turn = asyncio.Semaphore(1)

    async def of(self, scope: K, read: Callable[[], Awaitable[Numbers]]) -> Numbers:
        """The counts of the scope, as of a few seconds ago, which `read` makes; empty ones if they take too long now, or too
        many others are being counted."""

        async def in_turn() -> Numbers:
            async with self._turn:
                return await read()

        if scope not in self._scopes and len(self._scopes) >= _SCOPES_MAX:
            idle = next((each for each, known in self._scopes.items() if not known.counting), None)
            if idle is None:
                return {}
            del self._scopes[idle]
        counts = self._scopes.pop(scope, None) or _ScopeCounts()
        self._scopes[scope] = counts
        counts.count = in_turn
        try:
            async with asyncio.timeout(_WAIT_S):
                await counts.refresh()
        except TimeoutError:
            pass
        return counts.numbers

    async def close(self) -> None:
        """Stops counting."""
        for counts in self._scopes.values():
            await counts.close()


async def of_timers(service: TimerService, scope: Scope) -> Numbers:
    """Pending timers, those of them that wait although they are due, and finished ones by status."""
    each = ListRequest(scope, limit=COUNTED_MAX, bytes_max=_BYTES_MAX, scan_rows_max=_SCAN_ROWS_MAX, reads_max=1)
    numbers = {
        status.value: await count_timers(service, replace(each, statuses=frozenset({status}))) for status in Status
    }
    pending = frozenset({Status.PENDING})
    due, cursor = await service.list(replace(each, statuses=pending, execute_before=service.now_us()))
    waiting = sum(map(is_waiting, await service.explained(due)))
    return {**numbers, "waiting": BoundedCount(waiting, cursor is not None)}


async def of_schedules(schedules: Schedules, scope: Scope) -> Numbers:
    """Live schedules: all, active, paused, and those whose last occurrence failed."""

    def tabs_of(view: ScheduleView) -> list[str]:
        return ["all", view.status.value, *(["failing"] if has_failed(view.last_occurrence) else [])]

    wanted = ScheduleListRequest(scope, limit=COUNTED_MAX, reads_max=1)
    listed, cursor = await schedules.list_answers(wanted, tabs_of)
    numbers = Counter(tab for tabs in listed for tab in tabs)
    tabs = ("all", ScheduleStatus.ACTIVE.value, ScheduleStatus.PAUSED.value, "failing")
    return {tab: BoundedCount(numbers[tab], cursor is not None) for tab in tabs}


async def of_calls(calls: ServiceCalls, tenants: Tenants) -> Numbers:
    """Calls by status."""
    return {
        status.lower(): BoundedCount(*counted) for status, counted in (await calls.counts(tenants, COUNTED_MAX)).items()
    }
