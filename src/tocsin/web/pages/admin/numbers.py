"""How many timers of some namespaces wait, are due soon, or have failed: bounded in rows and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
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


async def numbers(service: TimerService, names: Iterable[str], now_us: int) -> Mapping[str, NamespaceNumbers]:
    """The numbers of these namespaces, as far as they are known within the time; a number that the bounds leave unknown is
    None."""
    found: dict[str, NamespaceNumbers] = {}
    waiting, budget = iter(names), TimeBudget(_TIMEOUT_S)

    async def some() -> None:
        for name in waiting:
            try:
                found[name] = NamespaceNumbers(
                    await _number(service, ListRequest(name, _PENDING)),
                    await _number(
                        service,
                        ListRequest(name, _PENDING, execute_after=now_us, execute_before=now_us + _HOUR_US),
                        due="next-1h",
                    ),
                    await _number(
                        service,
                        ListRequest(name, _FAILED, execute_after=now_us - US_PER_DAY, execute_before=now_us),
                        due="last-24h",
                    ),
                )
            except TocsinError:
                # Deleted or damaged meanwhile, or the store does not respond: not known.
                continue
            if budget.spent:
                return

    await asyncio.gather(*(some() for _ in range(_AT_ONCE)))
    return found


async def _number(service: TimerService, wanted: ListRequest, **more: str) -> Number | None:
    """The number of the timers, and the list that `more` parameters of the URL make of the namespace and the status."""
    counted = await count_timers(service, replace(wanted, limit=COUNTED_MAX))
    if not counted.short:
        return None
    (status,) = wanted.statuses
    link = f"/timers?{urlencode({'namespace': str(wanted.scope), 'view': status.value, **more})}"
    return Number(counted.short, link)
