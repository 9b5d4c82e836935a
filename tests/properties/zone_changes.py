"""When cron expressions run around the changes of a zone's clocks, by a reckoning of its own: what the clocks show is known
by conversion from UTC alone, and each stretch of time with one offset is laid out minute by minute.

`make zones` checks every change of every zone from 1970 to 2037; the tests check one of each kind."""

from __future__ import annotations

import argparse
import calendar
import time
import zoneinfo
from bisect import bisect_left
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from itertools import pairwise

from tocsin.model.recurrence import Cron, time_zone

US = 1_000_000
DAY_S = 86_400
BEGIN_S, END_S = 0, calendar.timegm((2038, 1, 1, 0, 0, 0))
#: Shorter than the time between two changes of any zone's clocks.
_STEP_S = 4 * DAY_S

#: Expressions, and the minutes of a day that they mean.
FIXED = {"30 2 * * *": {150}, "0,20 0,23 * * *": {0, 20, 1380, 1400}, "5 1-3 * * *": {65, 125, 185}}
ELAPSED = {
    "*/15 * * * *": set(range(0, 1440, 15)),
    "7 * * * *": set(range(7, 1440, 60)),
    "* 2 * * *": set(range(120, 180)),
}


@dataclass(frozen=True)
class Change:
    """A change of a zone's clocks: its instant, and what they are ahead of UTC before and after it, in seconds."""

    zone: str
    at_s: int
    before_s: int
    after_s: int


@dataclass(frozen=True)
class _Stretch:
    """The clocks are ahead of UTC by `offset_s` from `begin_s` until before `end_s`."""

    begin_s: int
    end_s: int
    offset_s: int

    def shows(self, local_s: int) -> bool:
        return self.begin_s <= local_s - self.offset_s < self.end_s


@cache
def zones() -> list[str]:
    """A name of each zone of the database; other names have the same rules."""
    names: dict[bytes, str] = {}
    for name in sorted(zoneinfo.available_timezones() - {"localtime", "Factory"}):
        names.setdefault(resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).read_bytes(), name)
    return list(names.values())


@cache
def changes(zone: str) -> list[Change]:
    """All changes of the zone's clocks from 1970 to 2037."""
    rules, found = time_zone(zone), []

    def ahead_s(at_s: int) -> int:
        offset = datetime.fromtimestamp(at_s, rules).utcoffset()
        assert offset is not None
        return offset // timedelta(seconds=1)

    offset_s = ahead_s(BEGIN_S)
    for day_s in range(BEGIN_S, END_S, _STEP_S):
        if (now_s := ahead_s(day_s + _STEP_S)) != offset_s:
            seconds = range(day_s, day_s + _STEP_S)
            unchanged_s = bisect_left(seconds, True, key=lambda at_s: ahead_s(at_s) != offset_s)
            found.append(Change(zone, day_s + unchanged_s, offset_s, now_s))
            offset_s = now_s
    return found


def one_of_each_kind() -> list[Change]:
    """One change of each kind: offsets before and after, and the time of day. Those of a zone follow one another."""
    found: dict[tuple[int, int, int], Change] = {}
    for zone in zones():
        for change in changes(zone):
            found.setdefault((change.before_s, change.after_s, change.at_s % DAY_S), change)
    return list(found.values())


def check(zone: str, chosen: Iterable[Change], expression: str) -> None:
    """Compares the instants within a day of each change, later and earlier ones alike."""
    fixed = expression in FIXED
    minutes = FIXED[expression] if fixed else ELAPSED[expression]
    cron = Cron(expression, zone)
    for change in chosen:
        due = [at * US for at in _due(_stretches(change), minutes, change.at_s, fixed=fixed)]
        at, found = due[0] - 1, []
        while (at := cron.after(at) or 0) <= due[-1]:
            found.append(at)
        assert found == due, (change, expression)
        assert cron.count(due[0] - 1, due[-1], len(due) + 1) == len(due), (change, expression)
        assert [cron.until(at) for at in due] == due, (change, expression)
        assert [cron.until(at - 1) for at in due[1:]] == due[:-1], (change, expression)


def _stretches(change: Change) -> list[_Stretch]:
    near = [other for other in changes(change.zone) if abs(other.at_s - change.at_s) <= 4 * DAY_S]
    ends = [near[0].at_s - 4 * DAY_S, *(other.at_s for other in near), near[-1].at_s + 4 * DAY_S]
    offsets = [near[0].before_s, *(other.after_s for other in near)]
    return [_Stretch(begin, end, offset) for (begin, end), offset in zip(pairwise(ends), offsets, strict=True)]


def _due(stretches: list[_Stretch], minutes: set[int], around_s: int, *, fixed: bool) -> list[int]:
    """The instants within a day of an instant at which the expression runs."""
    due: set[int] = set()
    first_day = around_s // DAY_S - 3
    for day in range(first_day, first_day + 7):
        for local_s in (day * DAY_S + 60 * minute for minute in minutes):
            shown = [local_s - stretch.offset_s for stretch in stretches if stretch.shows(local_s)]
            if not fixed:
                due.update(shown)
            elif shown:
                due.add(min(shown))
            else:
                # Skipped: the clocks pass over it at the beginning of a stretch.
                due.update(
                    later.begin_s
                    for earlier, later in pairwise(stretches)
                    if earlier.end_s + earlier.offset_s <= local_s < later.begin_s + later.offset_s
                )
    return sorted(at for at in due if abs(at - around_s) <= DAY_S)


def _check_zone(zone: str) -> int:
    for expression in (*FIXED, *ELAPSED):
        check(zone, changes(zone), expression)
    return len(changes(zone))


def main() -> None:
    """Checks every change of every zone; exits with a traceback at the first deviation."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    began = time.monotonic()
    with ProcessPoolExecutor(parser.parse_args().jobs) as processes:
        counts = list(processes.map(_check_zone, zones()))
    print(f"{len(counts)} zones, {sum(counts):,} changes, {time.monotonic() - began:.0f} s: all as reckoned")


if __name__ == "__main__":
    main()
