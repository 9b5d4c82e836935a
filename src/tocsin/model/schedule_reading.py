"""Reads a rule from an English sentence: "every weekday at 9 in Berlin". Pure.

It understands what people type, and everything that `schedule_words` writes, which it reads back as the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from cronsim import CronSim

from tocsin.model.instants import parse_duration
from tocsin.model.recurrence import parsed
from tocsin.model.schedule_words import (
    CHANGES,
    ELAPSED,
    MONTHS,
    ORDINALS,
    WEEKDAYS,
    WORKDAYS,
    joined,
    ranges,
    repeats_evenly,
    suggests_fixed,
)

#: Longer texts are refused. A sentence that lists every second minute, hour, day and month is shorter.
SENTENCE_CHARS_MAX = 2_000
#: How much of what isn't understood is quoted.
_QUOTED_CHARS_MAX = 60
#: Words of the longest name of a zone, with "in" and "time".
_ZONE_WORDS_MAX = 6

_EXAMPLE = (
    "write it like “every weekday at 9 in Berlin”, “every 15 minutes” or “on the first Monday of the month at 6 am”"
)
#: How to run on days that match both their date and their weekday.
_CALENDAR = "write the dates alone, and name a calendar of the weekdays in only"
#: Other words for the same, and words without a meaning of their own.
_SAME = (
    (r"\beach\b|\ball\b", "every"), (r"\bmidday\b|\bnoon\b", "12:00"), (r"\bmidnight\b", "00:00"),
    (r"\bmonthly\b", "every month"), (r"\bhourly\b", "every hour"), (r"\bdaily\b", "every day"),
    (r"\bweekly\b", "every week"), (r"\b(yearly|annually)\b", "every year"), (r"\bevery other\b", "every 2"),
    (r"\bmins?\b", "minutes"), (r"\bsecs?\b", "seconds"), (r"\bweekends?\b", "saturday and sunday"),
    (r"\bworkdays?\b", "weekday"), (r"\b(until|till|through|–)\b", "to"), (r"(?<=[a-z]) ?- ?(?=[a-z])", " to "),
    (r"\b(the|o['’]?clock|runs?)\b", " "), (r"(?<=\d) ?([ap])\.?m\b\.?", r"\1m"), (r"\s+", " "),
)  # fmt: skip
#: What is a cron expression already.
_EXPRESSION = re.compile(r"@[a-z]+|(?:[\d*][\w*,/-]*\s+){2}(?:[\w*,/#-]+\s+){2,3}[\w*,/#-]+", re.IGNORECASE)
_PARTED = re.compile(r"(?:,| and | or )+ ?| & ")
#: What stands between clauses.
_JOINT = re.compile(r"(?:[ ,;]|and |at (?=\d))*")


def _index(names: Iterable[str], first: int) -> dict[str, int]:
    """The numbers of names: as they are, in the plural, and by their first letters."""
    found: dict[str, int] = {}
    for number, name in enumerate(map(str.lower, names), first):
        found |= dict.fromkeys((name, f"{name}s", name[:3], name[:4]), number)
    return found


#: From Monday to Sunday, which ranges end with.
_WEEKDAYS = _index([*WEEKDAYS[1:], WEEKDAYS[0]], 1)
_MONTHS = _index(MONTHS, 1)
_LAST_DAYS = {"day": CronSim.LAST, "weekday": CronSim.LAST_WEEKDAY}

_TIME = r"\d{1,2}(?::\d\d){0,2}(?:[ap]m)?"
_WEEKDAY = rf"(?:{'|'.join(sorted(_WEEKDAYS, key=len, reverse=True))})"
_MONTH = rf"(?:{'|'.join(sorted(_MONTHS, key=len, reverse=True))})"
_DAY = r"(?:0?[1-9]|[12][0-9]|3[01])"
_NTH = rf"(?:{_DAY}(?:st|nd|rd|th)|{'|'.join(ORDINALS)})"
_DATE = rf"(?:{_NTH} (?:{_WEEKDAY}|weekday|day)|{_NTH}(?! (?:{_WEEKDAY}|second|minute|hour))|{_DAY}(?= {_MONTH}))"


def _listed(item: str) -> str:
    one = rf"{item}(?: to {item})?"
    return rf"{one}(?:(?:,| and| or| &)+ ?{one})*"


class Rule(NamedTuple):
    """What a sentence means: a cron expression, with its zone if that is named, or an interval in microseconds."""

    cron: str | None
    every_us: int | None
    zone: str | None


def read_sentence(text: str) -> Rule:
    """The rule of a sentence. Raises ValueError with a reason that follows the name of the field: what is understood, and
    an example."""
    if len(text) > SENTENCE_CHARS_MAX:
        raise ValueError(f"is {len(text)} characters long; at most {SENTENCE_CHARS_MAX} are accepted")
    if _EXPRESSION.fullmatch(text.strip()):
        parsed(text)
        return Rule(text.strip(), None, None)
    rest, zone = _without_zone(" ".join(text.split()).rstrip("."))
    rest, ending = rest.lower(), None
    for fixed, words in CHANGES.items():
        if rest.endswith(words):
            rest, ending = rest.removesuffix(words), fixed
    reading = _Reading()
    reading.read(rest)
    if reading.interval:
        return Rule(None, parse_duration(reading.interval), None)
    return Rule(reading.expression(ending), None, zone)


class _Reading:
    """The sets of what is named."""

    def __init__(self) -> None:
        self.seconds: set[int] = set()
        self.minutes: set[int] = set()
        self.hours: set[int] = set()
        self.days: set[int] = set()
        self.months: set[int] = set()
        self.weekdays: set[int] = set()
        self.counted: set[tuple[int, int]] = set()
        self.times: set[tuple[int, ...]] = set()
        self.range: list[tuple[int, ...]] = []
        #: The unit of "every month"; an interval, as a duration.
        self.period = self.interval = ""
        #: Whether a day has to match both its date and its weekday.
        self.both = False
        #: What stands before a clause; whether times were named before, and whether days were since.
        self.joint, self.timed, self.parted = "", False, False

    def read(self, text: str) -> None:
        """Takes one clause after the other. Raises ValueError."""
        for word, other in _SAME:
            text = re.sub(word, other, text)
        whole = text = text.strip()
        while found := _JOINT.match(text):
            self.joint, text = found[0], text[found.end() :]
            if not text:
                break
            for pattern, take in _CLAUSES:
                if found := pattern.match(text):
                    take(self, *found.groups())
                    text = text[found.end() :]
                    break
            else:
                before = whole[: len(whole) - len(text)].strip(" ,")
                text = text if len(text) <= _QUOTED_CHARS_MAX else f"{text[:_QUOTED_CHARS_MAX]}…"
                known = f"is understood up to “{before}”, but not “{text}”" if before else f"isn’t understood: “{text}”"
                raise ValueError(f"{known}; {_EXAMPLE}")
        if not whole:
            raise ValueError(f"is empty; {_EXAMPLE}")
        if self.interval and (self.times or self.days or self.weekdays or self.counted or self.months or self.range):
            raise ValueError(
                f"has days or times, which an interval of {self.interval} can’t have; leave them out, or write how often in "
                "an hour or a day so that it divides them evenly: every 15 minutes, every 6 hours"
            )

    # ------------------------------------------------------------------ clauses

    def every(self, amount: str | None, unit: str, first: str | None, last: str | None, elapsed: str | None) -> None:
        """ "every 7 minutes from :00 to :56", "every 6 hours", "every 36 hours of elapsed time"."""
        step = int(amount or 1)
        if not step:
            raise ValueError(f"repeats after 0 {unit}s; {_EXAMPLE}")
        if unit in ("second", "minute", "hour"):
            self._take_times()
        else:
            self._take_days()
        if first is not None and last is not None:
            if int(last) < int(first):
                raise ValueError(f"has a range from :{first} to :{last}; write the earlier one first")
            self._within(unit, range(int(first), int(last) + 1, step))
        elif elapsed or (unit in ("second", "minute", "hour") and not repeats_evenly(unit, step)):
            self.interval = f"{step}{unit[0]}"
        elif unit == "hour":
            self.hours = set(range(0, 24, step))
        elif unit in ("second", "minute"):
            self._within(unit, range(0, 60, step))
        elif step > 1 and unit in ("day", "week"):
            self.interval = f"{step * (7 if unit == 'week' else 1)}d"
        elif step > 1:
            raise ValueError(f"can’t repeat every {step} {unit}s; name the months: on the 1st of January and July")
        else:
            self.period = unit

    def duration(self, text: str) -> None:
        """ "every 1h30m"."""
        if simple := re.fullmatch(r"(\d+)([dhms])", text):
            self.every(simple[1], {"d": "day", "h": "hour", "m": "minute", "s": "second"}[simple[2]], None, None, None)
        else:
            self.interval = text

    def values(self, unit: str, text: str) -> None:
        """ "at minutes 5 and 20 to 25 of every hour", "in the hours 9 and 17"."""
        if unit == "hour":
            self.hours, self.minutes = _numbers(text, int, range(24)), self.minutes or {0}
        else:
            self._within(unit, _numbers(text, int, range(60)))

    def within_hour(self, text: str) -> None:
        """ "in the minutes 0 to 5", with seconds before; ":15"."""
        self.minutes = _numbers(text, lambda part: int(part.removeprefix(":")), range(60))

    def _within(self, unit: str, values: Iterable[int]) -> None:
        if unit == "second":
            self.seconds, self.minutes = set(values), self.minutes or set(range(60))
        else:
            self.minutes = set(values)

    def hours_from(self, amount: str | None, first: str, last: str) -> None:
        """ "every 5 hours from 0:00 to 20:00"."""
        self._take_times()
        self.limits(first, last)
        self.hours = set(range(self.range[0][0], 24, int(amount or 1) or 1))

    def limits(self, first: str, last: str) -> None:
        """ "from 9:00 to 17:00"."""
        wanted = [_time(first), _time(last)]
        if self.range not in ([], wanted):
            raise ValueError("has several ranges of times; create a schedule for each")
        self.range = wanted

    def dates(self, dates: str, months: str | None) -> None:
        """ "the 1st to the 5th and the last day of March", "the first Monday of every month"."""
        self._take_days()
        if self.weekdays and not self.both and "and " not in self.joint:
            raise ValueError(_both(dates))
        bare = ""
        for part in _PARTED.split(dates):
            first, _, last = part.partition(" to ")
            word, _, kind = first.partition(" ")
            if last:
                self.days |= _days_between(first, last)
            elif kind in _WEEKDAYS:
                if bare:
                    raise ValueError(
                        f"has “{bare}” before “{part}”, which may be a date or a weekday; write “{bare} {kind} and {part}”, "
                        f"or “{bare} of the month and {part}”"
                    )
                self.counted.add((_WEEKDAYS[kind] % 7, CronSim.LAST if word == "last" else _nth(word)))
            elif word == "last":
                self.days.add(_LAST_DAYS[kind or "day"])
            elif kind == "weekday":
                raise ValueError(f"has “{first}”; of weekdays write only the last, or name a date or a day of the week")
            else:
                self.days.add(_nth(word))
            bare = bare or ("" if kind or last else first)
        self.period = self.period or "month"
        self.in_months(months)

    def has_two_meanings(self, number: str, kind: str) -> None:
        """Refuses "every 2nd day" and "every second Monday"."""
        other = f"every {number.rstrip('stndrh')} days" if kind == "day" and number[0].isdigit() else f"every {kind}"
        raise ValueError(
            f"has “every {number} {kind}”, which has two meanings; write “{other}”, or “the {number} {kind} of every month”"
        )

    def in_months(self, months: str | None) -> None:
        """ "in May to July"."""
        if months:
            self._take_days()
            self.months |= _numbers(months, _MONTHS.__getitem__, range(1, 13))

    def on_weekdays(self, weekdays: str, months: str | None) -> None:
        """ "every weekday", "Mondays and Thursdays in May"."""
        self._take_days()
        if (self.days or self.counted) and not re.search("and |,", self.joint):
            raise ValueError(_both(weekdays))
        self.weekdays |= WORKDAYS if weekdays.startswith("weekday") else _weekdays(weekdays)
        self.in_months(months)

    def if_weekday(self, weekdays: str) -> None:
        """ "if that is Monday or the first Friday"."""
        self.both = True
        for part in _PARTED.split(weekdays):
            if part.partition(" to ")[0] in _WEEKDAYS:
                self.weekdays |= _weekdays(part)
            else:
                self.dates(part, None)

    def at_times(self, times: str) -> None:
        """ "9, 12:30 and 5 pm"."""
        parts = _PARTED.split(times)
        if ranged := next((part for part in parts if " to " in part), ""):
            raise ValueError(
                f"has {ranged} as a time of day; write it after how often it runs: “every hour from {ranged}”"
            )
        named = {_time(part) for part in parts}
        if named != self.times:
            self._take_times()
        self.times |= named

    def _take_days(self) -> None:
        """The clause names days, of the times before it or of those after it."""
        self.parted = self.timed

    def _take_times(self) -> None:
        """The clause names times, of all days. Raises ValueError if other days had times of their own."""
        if self.parted:
            raise ValueError("has times for some days and other times for others; create a schedule for each")
        self.timed = True

    # ------------------------------------------------------------------ the expression

    def expression(self, ending: bool | None) -> str:
        """The cron expression; `ending` is whether it runs at fixed times, if the sentence states that. Raises ValueError."""
        self._combine()
        fixed = (bool(self.times) or suggests_fixed(self.minutes, self.hours)) if ending is None else ending
        minute, hour = _field(self.minutes, 60, star=not fixed), _field(self.hours, 24, star=not fixed)
        if not fixed and "*" not in minute[0] + hour[0]:
            if 0 in self.minutes:
                minute = _starred(self.minutes, 60)
            else:
                hour = _starred(self.hours, 24)
        symbols = [name[:3].upper() for name in WEEKDAYS]
        plain = {day for day in self.days if day > 0}
        star_date = self.both and 1 in plain
        date = [_starred(plain, 31) if star_date else _values(plain)] if plain else []
        date += [word for day, word in ((CronSim.LAST, "L"), (CronSim.LAST_WEEKDAY, "LW")) if day in self.days]
        weekdays = {day % 7 for day in self.weekdays}
        if self.both and not star_date and 0 not in weekdays:
            raise ValueError(
                f"has dates that have to be of a weekday, which a rule can have only of the 1st or of Sundays; {_CALENDAR}"
            )
        weekday = ["*/8"] if self.both and not star_date else []
        weekday += [
            each.replace(" to ", "-") for each in ranges(sorted(weekdays - {0} if weekday else weekdays), symbols)
        ]
        weekday += [f"{day}L" if n == CronSim.LAST else f"{symbols[day]}#{n}" for day, n in sorted(self.counted)]
        month = "*" if len(self.months) in (0, 12) else _values(self.months)
        fields = [minute, hour, ",".join(date) or "*", month, ",".join(weekday) or "*"]
        return " ".join(fields if self.seconds == {0} else [_field(self.seconds, 60, star=True), *fields])

    def _combine(self) -> None:
        """Completes the sets: times of day, the range of times, and what "every month" leaves open."""
        if self.times and (self.hours or self.minutes):
            raise ValueError(f"has both a distance and a time of day; {_EXAMPLE}")
        if self.times:
            self.hours, self.minutes, self.seconds = ({time[unit] for time in self.times} for unit in range(3))
            if len(self.hours) * len(self.minutes) * len(self.seconds) > len(self.times):
                shown = joined(f"{hour:02}:{minute:02}" for hour, minute, _ in sorted(self.times))
                raise ValueError(f"has times that one rule can’t have together: {shown}; create a schedule for each")
        elif not self.hours and not self.minutes:
            if self.range:
                raise ValueError(f"has a range of times, but not how often it runs then; {_EXAMPLE}")
            self.hours = {0}
        self.seconds, self.minutes = self.seconds or {0}, self.minutes or {0}
        self.hours = self.hours or set(range(24))
        if self.range:
            first, last = self.range
            begin, end = min(self.minutes), max(self.minutes)
            self.hours = {hour for hour in self.hours if (hour, begin) >= first[:2] and (hour, end) <= last[:2]}
            if not self.hours:
                raise ValueError("never runs between these times; write the earlier one first")
        if self.period == "week" and (self.days or self.counted):
            raise ValueError("has days of the month in every week; write every month, or name days of the week")
        if self.period == "week" and not self.weekdays:
            self.weekdays = {1}
        if self.period in ("month", "year") and not (self.days or self.counted or self.weekdays):
            self.days = {1}
        if self.period == "year" and not self.months:
            self.months = {1}


_OF_WHOLE = r"(?: (?:of|past) every (?:hour|minute))?"
_UNIT = rf"(second|minute|hour|day|week|month|year)s?(?! {_WEEKDAY})"
_SIXTY, _HOUR = _listed(r"[0-5]?[0-9]"), _listed(r"(?:[01]?[0-9]|2[0-3])")
_IN_MONTHS = rf"(?: (?:of |in )?(?:every |a )?(?:months?|({_listed(_MONTH)})))?"

_CLAUSES: list[tuple[re.Pattern[str], Callable[..., None]]] = [
    (re.compile(rf"{pattern}(?![\w:])"), take)
    for pattern, take in (
        (rf"every (?!last)({_NTH}) ({_WEEKDAY}|weekday|day)(?!s? (?:of|in) )", _Reading.has_two_meanings),
        (rf"every (?:(\d{{1,2}}) ?)?hours? (?:from|between) ({_TIME}) ?(?:to|and) ?({_TIME})", _Reading.hours_from),
        (rf"every (?:(\d{{1,6}}) ?)?{_UNIT}(?: from :(\d\d) to :(\d\d){_OF_WHOLE})?({ELAPSED})?", _Reading.every),
        (r"every ((?:\d+(?:\.\d+)?(?:ms|us|[dhms]))+)", _Reading.duration),
        (rf"(?:at )?(second|minute)s? ({_SIXTY}){_OF_WHOLE}", _Reading.values),
        (rf"in minutes? ({_SIXTY})", _Reading.within_hour),
        (rf"(?:at )?({_listed(r':[0-5][0-9]')}){_OF_WHOLE}", _Reading.within_hour),
        (rf"in (hour)s? ({_HOUR})", _Reading.values),
        (rf"(?:from|between) ({_TIME}) ?(?:to|and) ?({_TIME})", _Reading.limits),
        (rf"(?:on |every (?=\d|[a-z ]+ of ))?({_listed(_DATE)}){_IN_MONTHS}", _Reading.dates),
        (rf"if that is ({_listed(rf'(?:{_NTH} )?{_WEEKDAY}')})", _Reading.if_weekday),
        (rf"(?:on )?(?:every )?(weekdays?|{_listed(_WEEKDAY)})(?: in ({_listed(_MONTH)}))?", _Reading.on_weekdays),
        (rf"(?:in |every )?({_listed(_MONTH)})", _Reading.in_months),
        (rf"(?:at )?({_listed(_TIME)})", _Reading.at_times),
    )
]


def _numbers(text: str, number_of: Callable[[str], int], whole: range) -> set[int]:
    """The numbers of a list; "a to b" stands for all from one to the other, also beyond the end of the whole."""
    found: set[int] = set()
    for part in filter(None, _PARTED.split(text)):
        first, _, last = part.partition(" to ")
        begin, end = number_of(first), number_of(last or first)
        found |= (
            set(range(begin, end + 1)) if begin <= end else {each for each in whole if each >= begin or each <= end}
        )
    return found


def _weekdays(text: str) -> set[int]:
    return _numbers(text, _WEEKDAYS.__getitem__, range(1, 8))


def _nth(word: str) -> int:
    """The number of "first" and "1st"."""
    return ORDINALS.index(word) + 1 if word in ORDINALS else int(re.sub(r"\D", "", word))


def _days_between(first: str, last: str) -> set[int]:
    """The dates from one to another. Raises ValueError unless both are dates, the earlier one first."""
    if " " in first + last or "last" in (first, last) or _nth(last) < _nth(first):
        raise ValueError(
            f"has the range “{first} to {last}”; write dates of a month, the earlier one first: 1st to 5th"
        )
    return set(range(_nth(first), _nth(last) + 1))


def _both(text: str) -> str:
    """Why days of both kinds are refused; `text` are those of the second one."""
    return (
        f"has days of the week and of the month up to “{text}”; write “and” between them if either is enough; if both have "
        f"to match, {_CALENDAR}"
    )


def _time(text: str) -> tuple[int, ...]:
    """The hour, minute and second of "9", "17:15" and "5pm"."""
    hour, minute, second, *_ = [*map(int, text.rstrip("apm").split(":")), 0, 0]
    if text.endswith("m"):
        hour = hour % 12 + (12 if text.endswith("pm") else 0) if 1 <= hour <= 12 else 24
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"has {text}, which is no time of day; write it like 9, 17:15 or 5 pm")
    return hour, minute, second


def _values(values: set[int]) -> str:
    """Values as a field: a step, or lists and ranges."""
    found = sorted(values)
    step = found[1] - found[0] if len(found) > 2 else 1
    if step > 1 and found == list(range(found[0], found[-1] + 1, step)):
        return f"{found[0]}-{found[-1]}/{step}"
    return ",".join(ranges(found)).replace(" to ", "-")


def _field(values: set[int], size: int, *, star: bool) -> str:
    """Values as a field, which begins with a star if that is wanted and they divide the whole evenly."""
    step = size // len(values)
    if star and len(values) > 1 and sorted(values) == list(range(0, size, step)):
        return "*" if step == 1 else f"*/{step}"
    return _values(values)


def _starred(values: set[int], size: int) -> str:
    """Values, the first of the field among them, as a field that begins with a star."""
    return ",".join(filter(None, [f"*/{size}", _values(values - {min(values)})]))


# ---------------------------------------------------------------------- zones


@lru_cache(1)
def zone_names() -> tuple[str, ...]:
    """The names of all zones."""
    return tuple(sorted(resources.files("tzdata").joinpath("zones").read_text().split()))


def find_zone(name: str) -> str:
    """The zone with a name or of a city: `Europe/Berlin`, `berlin`, `New York`. Raises ValueError with a reason that follows
    the name of the field."""
    zones = _zones().get(_plain(name), ())
    if not zones:
        raise ValueError(
            "is not an IANA time zone; write a city such as Berlin, a name such as America/New_York, or UTC"
        )
    # Of names that share their rules, the first one.
    differing = {_rules(each): each for each in reversed(zones)} if len(zones) > 1 else {b"": zones[0]}
    if len(differing) > 1:
        raise ValueError(f"may be {joined(sorted(differing.values()), 'or')}; write one of them")
    return zones[0]


def _rules(zone: str) -> bytes:
    return resources.files("tzdata.zoneinfo").joinpath(*zone.split("/")).read_bytes()


@lru_cache(1)
def _zones() -> dict[str, list[str]]:
    """Zones by their names and by their cities, as people write them."""
    cities: dict[str, list[str]] = {}
    for name in zone_names():
        area, _, city = name.rpartition("/")
        if area and area != "Etc":
            cities.setdefault(_plain(city), []).append(name)
    return cities | {_plain(name): [name] for name in zone_names()}


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", " ")


def _without_zone(text: str) -> tuple[str, str | None]:
    """A sentence without its zone, and the zone."""
    words = text.split(" ")
    for begin, word in enumerate(words):
        for end in range(min(begin + _ZONE_WORDS_MAX, len(words)), begin, -1):
            named = " ".join(words[begin:end]).strip("(),").removeprefix("in ").removesuffix(" time")
            # Elsewhere than at the end, only "in" shows that a name is a zone's.
            if (end == len(words) or word == "in") and _plain(named) in _zones():
                before = re.sub(r"(?:,| in)+\Z", "", " ".join(words[:begin]))
                return " ".join([before, *words[end:]]), find_zone(named)
    return text, None
