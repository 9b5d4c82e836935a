"""When a schedule is due: cron expressions in a time zone, and intervals. Pure; instants are microseconds since 1970 (UTC).

What a cron expression means where a zone's clocks change follows Debian's cron. If both its minute and its hour are fixed,
that is, neither field begins with `*`, each matching local time runs once: one that the clocks skip at the end of the gap,
one that they show twice the first time. Otherwise the expression follows elapsed time: it runs whenever a clock shows a
matching time.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta
from functools import lru_cache
from importlib import metadata, resources
from itertools import islice
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
#: The greatest step of each field, with which its first value alone matches, and the unit of an interval as long.
_STEPS = {
    "second": (60, "s"),
    "minute": (60, "m"),
    "hour": (24, "h"),
    "day-of-month": (31, "d"),
    "month": (12, ""),
    "day-of-week": (8, ""),
}
#: Dates whose instants are kept for each expression: a search looks at the same ones as the one before.
_DATES_MAX = 16
#: Pairs of fields whose matching days are kept. Many expressions have the same ones.
_DAY_FIELDS_MAX = 1_024
#: Months whose kind is kept: those of YEARS_MAX, and as many again.
_MONTHS_MAX = 2 * 12 * YEARS_MAX
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


def check_steps(expression: str) -> None:
    """Raises ValueError for a step of a valid expression that would do nothing, with what to send instead."""
    for (name, (whole, unit)), part in zip(_STEPS.items(), parsed(expression).parts, strict=True):
        for item in part.split(","):
            value, _, step = item.partition("/")
            if value in ("L", "LW") and step:
                raise ValueError(f"has {item} as its {name}, whose step would be ignored; write {value}")
            if step and int(step) > whole:
                instead = f"for an interval, send every: {step}{unit}" if unit else "name the values"
                raise ValueError(f"has {item} as its {name}, whose step is longer than the whole; {instead}")


class Cron:
    """A cron expression of five fields, or six with the seconds first, in a zone. Fields are numbers, lists, ranges, steps
    and names; the day may be `L` (last) or `LW` (last weekday), the day of the week `MON#2` or `5L`. Days are combined as in
    cron: if both the day of the month and that of the week are restricted, either is enough.

    Raises ValueError for an invalid expression or zone, and for an expression that never matches."""

    def __init__(self, expression: str, zone: str = "UTC") -> None:
        self._days = parsed(expression)
        self.zone = time_zone(zone)
        _, minute, hour, day, _, weekday = self._days.parts
        #: The matching days of each kind of month, whether it matches or not.
        self._days_of = _days_by_kind(day, weekday)
        self._fixed = not minute.startswith("*") and not hour.startswith("*")
        self._seconds = sorted(self._days.seconds)
        self._months = sorted(self._days.months)
        #: The matching minutes of a day, since midnight.
        self._minutes = sorted(
            (60 * hour + minute) * _MINUTE_US for hour in self._days.hours for minute in self._days.minutes
        )
        self._dates: dict[date, tuple[int, list[int]]] = {}
        #: The first and the end of a range of instants that none follows.
        self._last: tuple[int, int] = (0, 0)
        if self.after(0) is None:
            raise ValueError(f"matches no date within {YEARS_MAX} years")

    def after(self, instant_us: int) -> int | None:
        """The first later instant; None if there is none within YEARS_MAX."""
        if self._last[0] <= instant_us < self._last[1]:
            return None
        found = self._nearest(instant_us, 1)
        if found is None:
            self._last = (instant_us, self._end_of_year(instant_us))
        return found

    def until(self, instant_us: int) -> int | None:
        """The last instant not later than this one; None if there is none within YEARS_MAX."""
        return self._nearest(instant_us, -1)

    def count(self, after_us: int, until_us: int, most: int) -> int:
        """How many instants are in (after, until], at most `most`. Whole days are counted at once."""
        number, latest = 0, None
        try:
            last = _local(until_us, self.zone).date() + _DAY
            for day in self._matching(_local(after_us, self.zone).date() - _DAY, 1):
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

    @property
    def minutes(self) -> list[int] | None:
        """The times of day at which it runs, as microseconds since midnight; None if it has seconds, or follows elapsed
        time."""
        return self._minutes if self._fixed and self._seconds == [0] else None

    def date_after(self, day: date) -> date | None:
        """The first matching date after this one; None if there is none within YEARS_MAX."""
        try:
            return next(self._matching(day + _DAY, 1), None)
        except OverflowError:
            return None

    def moment(self, day: date, minute_us: int) -> int:
        """The instant of one of `minutes` on a date, whether that matches or not."""
        base_us, minutes = self._minutes_of(day)
        if minutes is self._minutes:
            return base_us + minute_us
        local = datetime.combine(day, time()) + timedelta(microseconds=minute_us)
        at = _us(local.replace(tzinfo=self.zone))
        if _local(at, self.zone).replace(tzinfo=None) == local:
            return at
        # The clocks skip it: the end of the gap, which is among the date's instants.
        return self._change(at - US_PER_DAY, at)

    def _passed(self, minutes: list[int], until_us: int) -> int:
        """How many of a date's instants are not later than an instant, all of them relative to the same base."""
        index = bisect_right(minutes, until_us)
        if not index:
            return 0
        seconds = bisect_right(self._seconds, (until_us - minutes[index - 1]) // US_PER_SECOND)
        return (index - 1) * len(self._seconds) + seconds

    def _nearest(self, instant_us: int, direction: int) -> int | None:
        nearest, step = (self._later, _DAY) if direction > 0 else (self._not_later, -_DAY)
        try:
            # A day to the other side, because a change of the clocks may move a date's times beyond its end.
            for day in self._matching(_local(instant_us, self.zone).date() - step, direction):
                base_us, minutes = self._minutes_of(day)
                found = nearest(base_us, minutes, instant_us)
                if found is None:
                    continue
                if minutes is not self._minutes and self._matches(day + step):
                    # The next date may have a nearer one: clocks that go back at midnight show the end of a date, the
                    # beginning of the next one, and both again.
                    other = nearest(*self._minutes_of(day + step), instant_us)
                    found = min((found, other or found), key=lambda at: abs(at - instant_us))
                return _in_range(found)
        except OverflowError:
            pass
        return None

    def _end_of_year(self, instant_us: int) -> int:
        """The instant until which YEARS_MAX end in the same year as from the given one, or before."""
        try:
            year = (_local(instant_us, self.zone) - _DAY).year
            return _us(datetime(year + 1, 1, 1, tzinfo=self.zone))
        except (OverflowError, ValueError):
            return instant_us

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

    def _matching(self, day: date, direction: int) -> Iterator[date]:
        """The matching dates from a date on, forward (1) or backward (-1), for YEARS_MAX. It looks at each month once, and at
        no date that doesn't match."""
        year, month = day.year, day.month
        days = self._days_in(year, month) & (-1 << day.day if direction > 0 else (2 << day.day) - 1)
        later = self._months_beyond(year, month, direction)
        while True:
            while days:
                number = (days & -days if direction > 0 else days).bit_length() - 1
                days ^= 1 << number
                yield date(year, month, number)
            beyond = next(later, None)
            if beyond is None:
                return
            year, month = beyond
            days = self._days_in(year, month)

    def _months_beyond(self, year: int, month: int, direction: int) -> Iterator[tuple[int, int]]:
        last = min(year + YEARS_MAX, MAXYEAR) if direction > 0 else max(year - YEARS_MAX, MINYEAR)
        months = self._months[::direction]
        for each in months:
            if (each - month) * direction > 0:
                yield year, each
        for following in range(year + direction, last + direction, direction):
            for each in months:
                yield following, each

    def _matches(self, day: date) -> bool:
        return bool(self._days_in(day.year, day.month) >> day.day & 1)

    def _days_in(self, year: int, month: int) -> int:
        """The matching days of a month, as bits."""
        if month not in self._days.months:
            return 0
        kind = _kind_of_month(year, month)
        days = self._days_of.get(kind)
        if days is None:
            matching = (number for number in range(1, kind[1] + 1) if self._days.match_day(date(year, month, number)))
            days = self._days_of[kind] = sum(1 << number for number in matching)
        return days

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
        # The clocks change once: no zone's do so twice within six days. `early` and `late` are the instants of midnight by
        # the offsets that make them so.
        by_old, by_new = _us(begin), _us(end.replace(fold=1)) - US_PER_DAY
        early, late = min(by_old, by_new), max(by_old, by_new)
        change_us = self._change(early, late + US_PER_DAY)
        # The minutes from the first to the second are skipped if the clocks go forward, and shown twice if they go back.
        first, second = bisect_left(self._minutes, change_us - late), bisect_left(self._minutes, change_us - early)
        if by_new < by_old:
            skipped = {change_us} if self._fixed and first < second else set()
            before, after = self._minutes[:first], self._minutes[second:]
        else:
            skipped = set()
            before, after = self._minutes[:second], self._minutes[second if self._fixed else first :]
        return 0, sorted(skipped.union((by_old + at for at in before), (by_new + at for at in after)))

    def _change(self, before_us: int, after_us: int) -> int:
        """The instant, to the second, at which the zone's offset changes between two instants."""
        seconds = range(before_us // US_PER_SECOND, after_us // US_PER_SECOND)
        old = _local(before_us, self.zone).utcoffset()
        changed = bisect_left(seconds, True, key=lambda at: _local(at * US_PER_SECOND, self.zone).utcoffset() != old)
        return (seconds.start + changed) * US_PER_SECOND


@lru_cache(_DAY_FIELDS_MAX)
def _days_by_kind(day: str, weekday: str) -> dict[tuple[int, int], int]:
    """What is known of the days that two fields match, for all expressions with them: by the kind of month, of which there
    are 28, the days as bits; bit 1 stands for the first."""
    return {}


@lru_cache(_MONTHS_MAX)
def _kind_of_month(year: int, month: int) -> tuple[int, int]:
    """On what the matching days of a month depend: the weekday of its first day, and how many it has."""
    return monthrange(year, month)


def _local(instant_us: int, zone: ZoneInfo) -> datetime:
    return (_EPOCH + timedelta(microseconds=instant_us)).astimezone(zone)


def _us(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def _in_range(instant_us: int) -> int | None:
    return instant_us if INSTANT_MIN <= instant_us <= INSTANT_MAX else None
