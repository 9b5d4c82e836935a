"""Calendars: named sets of dates in a time zone, and the instants that they exclude from schedules. Pure; instants are
microseconds since 1970 (UTC).

A date begins when the clocks of the calendar's zone first show it, and ends when the next one begins. So each instant is of
one date, also where clocks go back over midnight.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import INSTANT_MIN
from tocsin.model.recurrence import time_zone

#: Calendars of one namespace, and of one schedule's `only` and `skip`: every node has all of them in memory.
CALENDARS_MAX = 100
NAMED_MAX = 10
#: Dates and ranges of one calendar. Its record is at most 256 KiB.
DATES_MAX, RANGES_MAX = 10_000, 1_000
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
#: The dates that a calendar may have. Schedules fire no later.
DATE_MIN, DATE_MAX = date(1970, 1, 1), date(9998, 12, 31)
#: Bad dates that one error lists.
_ERRORS_MAX = 20
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)

#: How much one search may look at: some 5 ms. A year of weekends and holidays is less. To look at a run of dates that is at
#: hand counts as 1, to find another one or a stretch as `_LOOKUP`.
LOOKS_MAX, _LOOKUP = 5_000, 10
#: Excluded stretches that are kept for one combination of calendars, and combinations that are kept of one namespace.
_STRETCHES_MAX, _COMBINATIONS_MAX = 4_096, 4_096
_EVERY_WEEKDAY = 127
#: Dates up to this ordinal begin in the range of dates, but not in every zone.
_DAY_MIN = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class DateRange(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Dates from the first to the last, both included."""

    first: date
    last: date


class Calendar(msgspec.Struct, frozen=True, omit_defaults=True):
    """A named set of dates: those that it lists, those of its ranges, and the weekdays of every week. All three are sorted,
    without duplicates. `weekdays` has names of `WEEKDAYS`. `version` is its record's. `managed_by` names the declaration that
    it comes from; `description` is for people."""

    namespace: str
    name: str
    created_at: int
    updated_at: int
    time_zone: str = "UTC"
    dates: tuple[date, ...] = ()
    ranges: tuple[DateRange, ...] = ()
    weekdays: tuple[str, ...] = ()
    version: int = 1
    managed_by: str | None = None
    description: str | None = None


class Dates(NamedTuple):
    """The dates of a calendar, as `Calendar` has them."""

    dates: tuple[date, ...]
    ranges: tuple[DateRange, ...]
    weekdays: tuple[str, ...]


def read_dates(dates: Sequence[str], ranges: Sequence[tuple[str, str]], weekdays: Iterable[str]) -> Dates:
    """The dates that these texts stand for, in any order and with duplicates; the names of `weekdays` are valid. Raises
    InvalidInput, of bad dates with the first few, if one is none, if they are too many, or if there is none at all."""
    errors = [
        FieldError(name, f"has {number} entries; send at most {most}")
        for name, number, most in (("dates", len(dates), DATES_MAX), ("ranges", len(ranges), RANGES_MAX))
        if number > most
    ]
    if errors:
        raise InvalidInput(*errors)
    days = {_date(f"dates[{at}]", text, errors) for at, text in enumerate(dates)}
    spans = set()
    for at, (first, last) in enumerate(ranges):
        span = _date(f"ranges[{at}].first", first, errors), _date(f"ranges[{at}].last", last, errors)
        spans.add(span)
        if span[1] < span[0]:
            errors.append(FieldError(f"ranges[{at}].last", "is before first; send the later date as last"))
    found = Dates(
        tuple(sorted(days)),
        tuple(DateRange(*span) for span in sorted(spans)),
        tuple(sorted({str(each) for each in weekdays}, key=WEEKDAYS.index)),
    )
    if not any(found):
        errors.append(FieldError("", "the calendar has no dates; send dates, ranges or weekdays"))
    if errors:
        raise InvalidInput(*errors[:_ERRORS_MAX])
    return found


def _date(path: str, text: str, errors: list[FieldError]) -> date:
    """The date in a text; `DATE_MIN` for one that is reported."""
    try:
        if _DATE.fullmatch(text) and DATE_MIN <= (day := date.fromisoformat(text)) <= DATE_MAX:
            return day
    except ValueError:
        pass
    errors.append(FieldError(path, f"is no date from {DATE_MIN} to {DATE_MAX}; write it as 2027-12-25"))
    return DATE_MIN


class Run(NamedTuple):
    """Consecutive instants that are all of the calendar, or all not: from `begin` on, before `end`. None: without a bound."""

    is_member: bool
    begin: int | None
    end: int | None


class Stretch(NamedTuple):
    """Consecutive excluded instants: from `begin` on, before `end`. None: without a bound."""

    begin: int | None
    end: int | None


class Meter:
    """How much has been looked at so far, for all who look at the same calendars."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent = 0


class Days:
    """The dates of a calendar, ready to be looked up. The meter counts each look."""

    __slots__ = ("_begins", "_ends", "_last", "_meter", "_weekdays", "_zone", "name")

    def __init__(self, calendar: Calendar, meter: Meter) -> None:
        self.name = calendar.name
        self._meter = meter
        #: The run that was found last, of those between two dates that a calendar may have. A search often needs it again.
        self._last: tuple[int, int, Run] = (0, 0, Run(False, 0, 0))
        self._zone = time_zone(calendar.time_zone)
        self._weekdays = sum(1 << WEEKDAYS.index(each) for each in calendar.weekdays)
        spans = [(day.toordinal(), day.toordinal() + 1) for day in calendar.dates]
        spans += [(each.first.toordinal(), each.last.toordinal() + 1) for each in calendar.ranges]
        if self._weekdays == _EVERY_WEEKDAY:
            spans = [(1, DATE_MAX.toordinal() + 1)]
        self._begins: list[int] = []
        self._ends: list[int] = []
        for begin, end in sorted(map(self._extended, spans)):
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._begins.append(begin)
                self._ends.append(end)

    def _extended(self, span: tuple[int, int]) -> tuple[int, int]:
        """The span with the weekdays of the calendar that adjoin it, so that no run has both kinds of dates beside it."""
        begin, end = span
        if self._weekdays == _EVERY_WEEKDAY:
            return span
        while self._is_weekday(begin - 1):
            begin -= 1
        while self._is_weekday(end):
            end += 1
        return begin, end

    def _is_weekday(self, day: int) -> bool:
        # Ordinal 1 is a Monday.
        return bool(self._weekdays >> (day - 1) % 7 & 1)

    def run(self, instant_us: int) -> Run:
        """The run of dates around an instant."""
        begin_us, end_us, found = self._last
        if begin_us <= instant_us < end_us:
            self._meter.spent += 1
            return found
        self._meter.spent += _LOOKUP
        is_member, begin, end = self._run_of_days(_day_of(instant_us, self._zone))
        found = Run(is_member, _begin_within(begin, self._zone), _end_within(end, self._zone))
        if found.begin is not None and found.end is not None:
            self._last = (found.begin, found.end, found)
        return found

    def _run_of_days(self, day: int) -> tuple[bool, int | None, int | None]:
        index = bisect_right(self._begins, day) - 1
        if index >= 0 and day < self._ends[index]:
            return True, self._begins[index], self._ends[index]
        by_weekday = bool(self._weekdays) and self._weekdays != _EVERY_WEEKDAY
        before = self._ends[index] if index >= 0 else None
        after = self._begins[index + 1] if index + 1 < len(self._begins) else None
        if not by_weekday:
            return False, before, after
        is_member, begin, end = self._is_weekday(day), day, day + 1
        while self._is_weekday(begin - 1) is is_member and begin != before:
            begin -= 1
        while self._is_weekday(end) is is_member and end != after:
            end += 1
        return is_member, begin, end


class Exclusions:
    """The instants that a schedule's calendars exclude: those of no calendar of `only`, if there is one, and those of any
    calendar of `skip`. If a calendar is `missing`, all instants are excluded: nobody knows which ones it would exclude.

    `stamp` changes whenever one of the calendars does."""

    def __init__(
        self, only: Sequence[Days], skip: Sequence[Days], missing: Sequence[str], stamp: str, meter: Meter
    ) -> None:
        self._only, self._skip, self.stamp, self._meter = only, skip, stamp, meter
        self.missing = tuple(missing)
        # Stretches that are known, by their beginnings. No two of them overlap or adjoin.
        self._begins: list[int] = []
        self._found: list[Stretch] = []

    @property
    def spent(self) -> int:
        """How much has been looked at so far. Whoever searches sets a limit to it, so that no search takes long."""
        return self._meter.spent

    def limit(self) -> int:
        """What `spent` may be at the end of a search that begins now."""
        return self._meter.spent + LOOKS_MAX

    def stretch(self, instant_us: int, limit: int, *, back: bool = False) -> Stretch | None:
        """The known excluded instants around this one; None if it is not excluded. If it was not known yet, they are all that
        follow without a gap, or with `back` all before it; fewer if `spent` reaches the limit."""
        self._meter.spent += _LOOKUP
        if self.missing:
            return Stretch(None, None)
        index = bisect_right(self._begins, instant_us) - 1
        if index >= 0 and ((end := self._found[index].end) is None or instant_us < end):
            return self._found[index]
        if not self._is_excluded(instant_us):
            return None
        if back:
            known = self._found[index].end if index >= 0 else None
            return self._join(Stretch(self._begin(instant_us, known, limit), instant_us + 1))
        following = self._begins[index + 1] if index + 1 < len(self._begins) else None
        return self._join(Stretch(instant_us, self._end(instant_us, following, limit)))

    def _join(self, found: Stretch) -> Stretch:
        """Keeps a stretch, as one with those that it meets."""
        if len(self._begins) >= _STRETCHES_MAX:
            self._begins.clear()
            self._found.clear()
        first = 0 if found.begin is None else bisect_right(self._begins, found.begin)
        if first and found.begin is not None and ((end := self._found[first - 1].end) is None or end >= found.begin):
            first -= 1
        last = len(self._begins) if found.end is None else bisect_right(self._begins, found.end)
        met = self._found[first:last]
        if met:
            begin = None if None in (found.begin, met[0].begin) else min(found.begin or 0, met[0].begin or 0)
            end = None if None in (found.end, met[-1].end) else max(found.end or 0, met[-1].end or 0)
            found = Stretch(begin, end)
        self._begins[first:last] = [INSTANT_MIN if found.begin is None else found.begin]
        self._found[first:last] = [found]
        return found

    def next_begin(self, instant_us: int, until_us: int, limit: int) -> int | None:
        """The first excluded instant from the first to the second, both included; None if there is none before `spent`
        reaches the limit."""
        at = instant_us
        while at <= until_us:
            if self.missing or self._is_excluded(at):
                return at
            # Not excluded: of no calendar of `skip`, and of one of `only`.
            ends = [each.run(at).end for each in self._skip]
            if self._only:
                reach: list[int | None] = [run.end for each in self._only if (run := each.run(at)).is_member]
                ends.append(None if None in reach else max(end for end in reach if end is not None))
            known = [end for end in ends if end is not None]
            if not known or self._meter.spent >= limit:
                return None
            at = min(known)
        return None

    def reason(self, instant_us: int) -> tuple[str, str]:
        """Why an excluded instant is: `missing`, `only` or `skip`, and the calendar, or calendars, by name."""
        if self.missing:
            return "missing", self.missing[0]
        for each in self._skip:
            if each.run(instant_us).is_member:
                return "skip", each.name
        return "only", ", ".join(each.name for each in self._only)

    def _is_excluded(self, instant_us: int) -> bool:
        if any(each.run(instant_us).is_member for each in self._skip):
            return True
        return bool(self._only) and not any(each.run(instant_us).is_member for each in self._only)

    def _end(self, at: int, following: int | None, limit: int) -> int | None:
        """The first instant after an excluded one that is not, or that is known to be one; or how far it was looked for."""
        while True:
            moved = False
            for each in self._skip:
                run = each.run(at)
                if run.is_member:
                    if run.end is None:
                        return None
                    at, moved = run.end, True
            if self._only:
                runs = [each.run(at) for each in self._only]
                if not any(run.is_member for run in runs):
                    begins = [run.end for run in runs if run.end is not None]
                    if not begins:
                        return None
                    at, moved = min(begins), True
            if not moved or self._meter.spent >= limit or (following is not None and at >= following):
                return at

    def _begin(self, at: int, known: int | None, limit: int) -> int | None:
        """The first instant from which all up to an excluded one are, or one before `known`, the end of others; or how far it
        was looked for."""
        while True:
            moved = False
            for each in self._skip:
                run = each.run(at)
                if run.is_member:
                    if run.begin is None:
                        return None
                    at, moved = run.begin - 1, True
            if self._only:
                runs = [each.run(at) for each in self._only]
                if not any(run.is_member for run in runs):
                    ends = [run.begin for run in runs if run.begin is not None]
                    if not ends:
                        return None
                    at, moved = max(ends) - 1, True
            if not moved or self._meter.spent >= limit or (known is not None and at < known):
                return at + 1


class Calendars:
    """The calendars of one namespace, as of one moment."""

    def __init__(self, calendars: Iterable[Calendar] = ()) -> None:
        self._calendars = {each.name: each for each in calendars}
        self._days: dict[str, Days] = {}
        self._meter, self._reported = Meter(), 0
        self._combinations: dict[tuple[tuple[str, ...], tuple[str, ...]], Exclusions] = {}

    def __len__(self) -> int:
        return len(self._calendars)

    def looked(self) -> int:
        """How much of them has been looked at since this was asked last, as `Exclusions.spent` counts it."""
        before, self._reported = self._reported, self._meter.spent
        return self._meter.spent - before

    def get(self, name: str) -> Calendar | None:
        """The calendar of that name."""
        return self._calendars.get(name)

    def all(self) -> list[Calendar]:
        """All of them, by name."""
        return sorted(self._calendars.values(), key=lambda each: each.name)

    def exclusions(self, only: tuple[str, ...], skip: tuple[str, ...]) -> Exclusions | None:
        """What these calendars exclude, the same object each time; None if none is named."""
        if not only and not skip:
            return None
        found = self._combinations.get((only, skip))
        if found is None:
            if len(self._combinations) >= _COMBINATIONS_MAX:
                self._combinations.clear()
            named = (*only, *skip)
            missing = [name for name in named if name not in self._calendars]
            known = [self._calendars[name] for name in named if name in self._calendars]
            stamps = [f"{each.name}/{each.created_at}/{each.version}" for each in known]
            stamp = hashlib.sha256("\n".join([*stamps, *missing]).encode()).hexdigest()[:16]
            found = Exclusions(self._of(only), self._of(skip), missing, stamp, self._meter)
            self._combinations[only, skip] = found
        return found

    def _of(self, names: Iterable[str]) -> list[Days]:
        for name in names:
            if name not in self._days and name in self._calendars:
                self._days[name] = Days(self._calendars[name], self._meter)
        return [self._days[name] for name in names if name in self._days]


NO_CALENDARS = Calendars()


def _begin_within(day: int | None, zone: ZoneInfo) -> int | None:
    """The instant at which a run begins, at the latest that of the first date beyond those that a calendar may have; None for
    the first date of all, which has no whole date before it in each zone."""
    if day is None or day <= _DAY_MIN:
        return None
    return _begin_of(min(day, DATE_MAX.toordinal() + 1), zone)


def _end_within(day: int | None, zone: ZoneInfo) -> int | None:
    """The instant at which a run ends; None beyond the dates that a calendar may have."""
    return None if day is None or day > DATE_MAX.toordinal() else _begin_of(day, zone)


def _begin_of(day: int, zone: ZoneInfo) -> int:
    """The instant at which the date begins. One that the clocks skip begins where the skipped times would."""
    midnight = datetime.fromordinal(day).replace(tzinfo=zone)
    return (midnight - _EPOCH) // _MICROSECOND


def _day_of(instant_us: int, zone: ZoneInfo) -> int:
    """The date of an instant, as an ordinal."""
    local = (_EPOCH + timedelta(microseconds=instant_us)).astimezone(zone)
    day = local.toordinal()
    # The clocks may show the end of a date once more after the next one has begun.
    return day + 1 if local.fold and instant_us >= _begin_of(day + 1, zone) else day
