"""How many timers of some namespaces wait, are due soon, or have failed: bounded in rows and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from tocsin.model.errors import TocsinError
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND
from tocsin.model.timer import Status
from tocsin.timers.service import ListRequest, TimerService
from tocsin.web.pages.counts import count_timers
from tocsin.web.pages.lists import TimeBudget

#: Timers that a number counts; a greater one is shown with a plus sign. Each costs reading a row.
COUNTED_MAX = 100
#: Namespaces that are counted at once, and how long for all of a page: further ones are left out.
_AT_ONCE, _TIMEOUT_S = 4, 0.5
#: For how long a number is not counted again, how long it is shown without that, and the namespaces whose numbers are kept.
_FRESH_US, _KEPT_US, _KEPT_MAX = 5 * US_PER_SECOND, 60 * US_PER_SECOND, 1_000
_HOUR_US = 3_600 * US_PER_SECOND
_PENDING, _FAILED = frozenset({Status.PENDING}), frozenset({Status.FAILED})


@dataclass(frozen=True, slots=True)
class Number:
    """A number as shown, and the list that it counts."""

    text: str
    link: str


@dataclass(frozen=True, slots=True)
class NamespaceNumbers:
    """Pending timers, those due within an hour, and the failed ones that were due in the last 24 hours."""

    pending: Number | None
    due: Number | None
    failed: Number | None


class NumberSource:
    """Counts as far as the time allows, and keeps the results for a while: a page that asks again gets the rest."""

    def __init__(self, service: TimerService) -> None:
        self._service = service
        self._known: dict[str, tuple[int, NamespaceNumbers]] = {}

    async def of(self, names: Sequence[str], now_us: int) -> Mapping[str, NamespaceNumbers]:
        """The numbers of these namespaces, as far as they are known; those known for longest are counted again."""
        ages = {name: self._known[name][0] for name in names if name in self._known}
        old = [name for name in names if ages.get(name, 0) < now_us - _FRESH_US]
        waiting, budget = iter(sorted(old, key=lambda name: ages.get(name, 0))), TimeBudget(_TIMEOUT_S)

        async def some() -> None:
            for name in waiting:
                self._known.pop(name, None)
                try:
                    self._known[name] = now_us, await self._count(name, now_us)
                except TocsinError:
                    # Deleted or damaged meanwhile, or the store does not respond: not known.
                    continue
                if budget.spent:
                    return

        await asyncio.gather(*(some() for _ in range(_AT_ONCE)))
        for name in list(self._known)[:-_KEPT_MAX]:
            del self._known[name]
        recent = {name: known for name, (at, known) in self._known.items() if at > now_us - _KEPT_US}
        return {name: recent[name] for name in names if name in recent}

    async def of_one(self, name: str, now_us: int) -> NamespaceNumbers | None:
        """The numbers of one namespace, counted now and not kept; None while the store does not respond."""
        try:
            return await self._count(name, now_us)
        except TocsinError:
            return None

    async def _count(self, name: str, now_us: int) -> NamespaceNumbers:
        hour = ListRequest(name, _PENDING, execute_after=now_us, execute_before=now_us + _HOUR_US)
        day = ListRequest(name, _FAILED, execute_after=now_us - US_PER_DAY, execute_before=now_us)
        return NamespaceNumbers(
            await _number(self._service, ListRequest(name, _PENDING)),
            await _number(self._service, hour, due="next-1h"),
            await _number(self._service, day, due="last-24h"),
        )


async def _number(service: TimerService, wanted: ListRequest, **more: str) -> Number | None:
    """The number of the timers, and the list that `more` parameters of the URL make of the namespace and the status."""
    counted = await count_timers(service, replace(wanted, limit=COUNTED_MAX))
    if not counted.short:
        return None
    (status,) = wanted.statuses
    link = f"/timers?{urlencode({'namespace': str(wanted.scope), 'view': status.value, **more})}"
    return Number(counted.short, link)
