"""When a schedule is due: cron expressions in a time zone, and intervals. Pure; instants are microseconds since 1970 (UTC).

What a cron expression means where a zone's clocks change follows Debian's cron. If both its minute and its hour are fixed,
that is, neither field begins with `*`, each matching local time runs once: one that the clocks skip at the end of the gap,
one that they show twice the first time. Otherwise the expression follows elapsed time: it runs whenever a clock shows a
matching time.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from importlib import metadata, resources
from itertools import chain, islice
from typing import Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from tocsin.model.instants import INSTANT_MAX, INSTANT_MIN, US_PER_DAY, US_PER_SECOND

#: An expression without a match for this long has none: the rarest, 29 February on a given weekday, takes 40 years.
YEARS_MAX = 50
#: Parsing and checking an expression of this length takes about a millisecond; one that lists each minute is shorter.
EXPRESSION_CHARS_MAX = 255
EVERY_MIN_US = US_PER_SECOND
EVERY_MAX_US = 366 * US_PER_DAY

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE_US = 60 * US_PER_SECOND
_DAY = timedelta(days=1)
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
#: What other schedulers write, and how it is written here.
_FOREIGN = {
    "tz=": "send the zone as timeZone",
    "@every": "send the interval as every",
    "@reboot": "nothing reboots here; send a time",
    "?": "write * instead",
}
#: What each field takes.
_TAKEN = {
    "second": "write 0 to 59, *, lists, ranges such as 0-29 and steps such as */10",
    "minute": "write 0 to 59, *, lists, ranges such as 0-29 and steps such as */15",
    "hour": "write 0 to 23, *, lists, ranges such as 9-17 and steps such as */2",
    "day-of-month": "write 1 to 31, as far as the months have them, *, lists, ranges and steps, L or LW",
    "month": "write 1 to 12 or JAN to DEC, *, lists, ranges and steps",
    "day-of-week": "write 0 to 7 or SUN to SAT (0 and 7 are Sunday), *, lists, ranges and steps, MON#2 or 5L",
}
#: Dates whose instants are kept: resolving each minute of one on which the clocks change takes 10 ms.
_DATES_MAX = 16
#: Zones whose rules are kept in memory; there are about 600 names.
_ZONES_MAX = 1_024


class Recurrence(Protocol):
    """Instants that repeat."""

    def after(self, instant_us: int) -> int | None:
        """The first instant later than this one; None if there is none within `YEARS_MAX` or the range of instants."""
        ...

    def until(self, instant_us: int) -> int | None:
        """The last instant not later than this one; None as above."""
        ...

    def count(self, after_us: int, until_us: int, most: int) -> int:
        """How many instants are later than the first and not later than the second, at most `most`. Cheap."""
        ...


@lru_cache(1)
def tzdata_version() -> str:
    """The version of the time zone database in use."""
    return metadata.version("tzdata")


@lru_cache(_ZONES_MAX)
def time_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name, by the pinned database and never by the machine's, so that all nodes agree. Raises ValueError
    with a reason that follows the field's name."""
    if _ZONE.match(name) is None:
        raise ValueError(_NOT_A_ZONE)
    try:
        with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as rules:
            return ZoneInfo.from_file(rules, key=name)
    except (OSError, ValueError):
        raise ValueError(_NOT_A_ZONE) from None


_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}\Z", re.ASCII)
_NOT_A_ZONE = "is not an IANA time zone; write it as Europe/Berlin, America/New_York or UTC"


@dataclass(frozen=True, slots=True)
class Every:
    """`anchor_us` plus every multiple of `every_us`, by elapsed time, in both directions."""

    every_us: int
    anchor_us: int

    def after(self, instant_us: int) -> int | None:
        """The first later instant; None outside the range of instants."""
        return _in_range(instant_us + self.every_us - (instant_us - self.anchor_us) % self.every_us)

    def until(self, instant_us: int) -> int | None:
        """The last instant not later than this one; None outside the range of instants."""
        return _in_range(instant_us - (instant_us - self.anchor_us) % self.every_us)

    def count(self, after_us: int, until_us: int, most: int) -> int:
        """How many instants are in (after, until], at most `most`."""
        passed = (until_us - self.anchor_us) // self.every_us - (after_us - self.anchor_us) // self.every_us
        return min(max(passed, 0), most)


def parsed(expression: str) -> CronSim:
    """What the fields of an expression match, each for itself. Raises ValueError for an invalid one."""
    if len(expression) > EXPRESSION_CHARS_MAX:
        raise ValueError(f"is {len(expression)} characters long; at most {EXPRESSION_CHARS_MAX} are accepted")
    if not expression.isascii():
        raise ValueError("has characters beyond ASCII; use digits, names such as MON, and * , - / L #")
    fields = _MACROS.get(expression.strip().lower(), expression).split()
    for foreign, remedy in _FOREIGN.items():
        if foreign in expression.lower():
            raise ValueError(f"has {foreign.upper()}; {remedy}")
    if fields and fields[0].startswith("@"):
        raise ValueError(f"has an unknown name; write {', '.join(_MACROS)} or five fields")
    if len(fields) not in (5, 6):
        raise ValueError("must have five fields (minute hour day month weekday), or six with the seconds first")
    try:
        return CronSim(" ".join(fields), datetime(2000, 1, 1))
    except CronSimError as error:
        field = str(error).lower().removeprefix("bad ")
        if field == "day-of-month" and _is_valid([*fields[:-2], "*", fields[-1]]):
            raise ValueError("never matches a date; correct the day of the month or the month") from None
        raise ValueError(f"has a bad {field}; {_TAKEN.get(field, 'correct it')}") from None


def _is_valid(fields: list[str]) -> bool:
    try:
        CronSim(" ".join(fields), datetime(2000, 1, 1))
    except CronSimError:
        return False
    return True


class Cron:
    """A cron expression of five fields, or six with the seconds first, in a zone. Fields are numbers, lists, ranges, steps
    and names; the day may be `L` (last) or `LW` (last weekday), the day of the week `MON#2` or `5L`. Days are combined as in
    cron: if both the day of the month and that of the week are restricted, either is enough.

    Raises ValueError for an invalid expression or zone, and for an expression that never matches."""

    def __init__(self, expression: str, zone: str = "UTC") -> None:
        self._days = parsed(expression)
        self.zone = time_zone(zone)
        _, minute, hour, *_ = self._days.parts
        self._fixed = not minute.startswith("*") and not hour.startswith("*")
        self._seconds = sorted(self._days.seconds)
        #: The matching minutes of a day, since midnight.
        self._minutes = sorted(
            (60 * hour + minute) * _MINUTE_US for hour in self._days.hours for minute in self._days.minutes
        )
        self._dates: dict[date, tuple[int, list[int]]] = {}
        if self.after(0) is None:
            raise ValueError(f"matches no date within {YEARS_MAX} years")

    def after(self, instant_us: int) -> int | None:
        """The first later instant; None if there is none within YEARS_MAX."""
        return self._nearest(instant_us, _DAY)

    def until(self, instant_us: int) -> int | None:
        """The last instant not later than this one; None if there is none within YEARS_MAX."""
        return self._nearest(instant_us, -_DAY)

    def count(self, after_us: int, until_us: int, most: int) -> int:
        """How many instants are in (after, until], at most `most`. Whole days are counted at once."""
        number, latest = 0, None
        try:
            last = _local(until_us, self.zone).date() + _DAY
            for day in self._matching(_local(after_us, self.zone).date() - _DAY, _DAY):
                if day > last or number >= most:
                    break
                base_us, minutes = self._minutes_of(day)
                if not minutes:
                    continue
                first, latest_before, latest = base_us + minutes[0], latest, base_us + minutes[-1]
                if first == latest_before:
                    # Times of two dates that the clocks skip at midnight run together.
                    minutes = minutes[1:]
                number += self._passed(minutes, until_us - base_us) - self._passed(minutes, after_us - base_us)
        except OverflowError:
            pass
        return min(number, most)

    def _passed(self, minutes: list[int], until_us: int) -> int:
        """How many of a date's instants are not later than an instant, all of them relative to the same base."""
        index = bisect_right(minutes, until_us)
        if not index:
            return 0
        seconds = bisect_right(self._seconds, (until_us - minutes[index - 1]) // US_PER_SECOND)
        return (index - 1) * len(self._seconds) + seconds

    def _nearest(self, instant_us: int, step: timedelta) -> int | None:
        nearest = self._later if step > timedelta() else self._not_later
        try:
            # A day to the other side, because a change of the clocks may move a date's times beyond its end.
            for day in self._matching(_local(instant_us, self.zone).date() - step, step):
                found = nearest(*self._minutes_of(day), instant_us)
                if found is None:
                    continue
                # The next date may have a nearer one: clocks that go back at midnight show the end of a date, the beginning
                # of the next one, and both again.
                if self._matches(day + step):
                    other = nearest(*self._minutes_of(day + step), instant_us)
                    found = min((found, other or found), key=lambda at: abs(at - instant_us))
                return _in_range(found)
        except OverflowError:
            pass
        return None

    def _later(self, base_us: int, minutes: list[int], instant_us: int) -> int | None:
        passed_us = instant_us - base_us
        for minute in islice(minutes, bisect_right(minutes, passed_us - _MINUTE_US), None):
            if (index := bisect_right(self._seconds, (passed_us - minute) // US_PER_SECOND)) < len(self._seconds):
                return base_us + minute + self._seconds[index] * US_PER_SECOND
        return None

    def _not_later(self, base_us: int, minutes: list[int], instant_us: int) -> int | None:
        passed_us = instant_us - base_us
        for number in range(bisect_right(minutes, passed_us) - 1, -1, -1):
            if index := bisect_right(self._seconds, (passed_us - minutes[number]) // US_PER_SECOND):
                return base_us + minutes[number] + self._seconds[index - 1] * US_PER_SECOND
        return None

    def _matching(self, day: date, step: timedelta) -> Iterator[date]:
        """The matching dates from a date on, in the direction of the step, for YEARS_MAX. Raises OverflowError at the end of
        the calendar."""
        forward = step > timedelta()
        last = day.year + (YEARS_MAX if forward else -YEARS_MAX)
        while day.year <= last if forward else day.year >= last:
            if day.month not in self._days.months:
                month = day.replace(day=1)
                day = (month + 32 * _DAY).replace(day=1) if forward else month - _DAY
                continue
            if self._matches(day):
                yield day
            day += step

    def _matches(self, day: date) -> bool:
        return day.month in self._days.months and self._days.match_day(day)

    def _minutes_of(self, day: date) -> tuple[int, list[int]]:
        """The instants of a date's matching minutes: a base, and what to add to it, ascending."""
        known = self._dates.get(day)
        if known is None:
            if len(self._dates) >= _DATES_MAX:
                self._dates.clear()
            known = self._dates[day] = self._minutes_on(day)
        return known

    def _minutes_on(self, day: date) -> tuple[int, list[int]]:
        midnight = datetime.combine(day, time())
        begin, end = midnight.replace(tzinfo=self.zone), (midnight + _DAY).replace(tzinfo=self.zone)
        if begin.utcoffset() == end.utcoffset() == end.replace(fold=1).utcoffset():
            return _us(begin), self._minutes
        instants = (self._resolved(midnight + timedelta(microseconds=minute)) for minute in self._minutes)
        return 0, sorted(set(chain.from_iterable(instants)))

    def _resolved(self, local: datetime) -> list[int]:
        """The instants at which a local time runs."""
        early, late = (_us(local.replace(tzinfo=self.zone, fold=fold)) for fold in (0, 1))
        if early == late:
            return [early]
        if early < late:
            # Shown twice.
            return [early] if self._fixed else [early, late]
        # Skipped: with the offset from after the change it lies before it, with that from before it after it.
        return [self._change(late, early)] if self._fixed else []

    def _change(self, before_us: int, after_us: int) -> int:
        """The instant, to the second, at which the zone's offset changes between two instants."""
        seconds = range(before_us // US_PER_SECOND, after_us // US_PER_SECOND)
        old = _local(before_us, self.zone).utcoffset()
        changed = bisect_left(seconds, True, key=lambda at: _local(at * US_PER_SECOND, self.zone).utcoffset() != old)
        return (seconds.start + changed) * US_PER_SECOND


def _local(instant_us: int, zone: ZoneInfo) -> datetime:
    return (_EPOCH + timedelta(microseconds=instant_us)).astimezone(zone)


def _us(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def _in_range(instant_us: int) -> int | None:
    return instant_us if INSTANT_MIN <= instant_us <= INSTANT_MAX else None
