"""When a schedule runs, as a sentence in English: "Every weekday at 09:00, Europe/Berlin". Pure.

The words are made from what an expression matches and not from how it is written, and only where they mean exactly that. For
any other expression the sentence is the expression itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise, product

from cronsim import CronSim

from tocsin.model.instants import US_PER_DAY, US_PER_SECOND, format_duration
from tocsin.model.recurrence import parsed

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_WORKDAYS = {1, 2, 3, 4, 5}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "last")
_LAST = len(_ORDINALS)
_UNITS = (
    ("day", US_PER_DAY),
    ("hour", 3_600 * US_PER_SECOND),
    ("minute", 60 * US_PER_SECOND),
    ("second", US_PER_SECOND),
)
#: Longer lists are harder to read than the expression.
_LIST_MAX = 6
#: From this many units on, one unit alone is hard to imagine: "Every 1h1m1s" and not "Every 3661 seconds".
_UNITS_MAX = 120
_SENTENCES_CACHED_MAX = 4_096


@lru_cache(_SENTENCES_CACHED_MAX)
def cron_sentence(expression: str, time_zone: str) -> str:
    """When a valid cron expression runs in a zone."""
    fields = parsed(expression)
    days, times, often = _days(fields), _times(fields), _often(fields)
    if days is None or (times is None and often is None):
        return f"{' '.join(expression.split())}, {time_zone}"
    if times is not None:
        return f"{_capital(days or 'every day')} at {times}, {time_zone}"
    assert often is not None
    words, names_time = often
    sentence = _capital(f"{words}, {days}" if days else words)
    return f"{sentence}, {time_zone}" if days or names_time else sentence


def every_sentence(every_us: int) -> str:
    """How often an interval repeats."""
    for unit, unit_us in _UNITS:
        amount, rest = divmod(every_us, unit_us)
        if rest == 0 and amount > 0 and (unit, amount) != ("day", 1):
            if amount > _UNITS_MAX and unit != "day":
                break
            return f"Every {unit}" if amount == 1 else f"Every {amount} {unit}s"
    return f"Every {format_duration(every_us)}"


def _times(fields: CronSim) -> str | None:
    """Times of day, if they are few."""
    if len(fields.hours) * len(fields.minutes) * len(fields.seconds) > _LIST_MAX:
        return None
    shown = product(sorted(fields.hours), sorted(fields.minutes), sorted(fields.seconds))
    return _joined(_clock(hour, minute, second if fields.seconds != {0} else None) for hour, minute, second in shown)


def _often(fields: CronSim) -> tuple[str, bool] | None:
    """How often in a day, and whether that depends on what the zone's clocks show."""
    every_hour = len(fields.hours) == 24
    if fields.seconds != {0}:
        # With fewer minutes or hours there would be two ranges to name.
        words = _within(fields.seconds, "second", "minute")
        return (words, False) if words and every_hour and len(fields.minutes) == 60 else None
    step, range_of_hours = _hours(fields)
    if fields.minutes == {0} and step:
        return f"every {step} hours{range_of_hours}" if step > 1 else f"every hour{range_of_hours}", True
    words = _within(fields.minutes, "minute", "hour")
    return (words + range_of_hours, not every_hour or words.startswith("at ")) if words and step == 1 else None


def _hours(fields: CronSim) -> tuple[int, str]:
    """The number of hours from each matching one to the next, 0 if it varies, and in which range of the day they are."""
    hours = sorted(fields.hours)
    steps = {later - earlier for earlier, later in pairwise(hours)} or {1}
    if len(steps) > 1:
        return 0, ""
    if len(hours) == 24:
        return 1, ""
    return min(steps), f" from {_clock(hours[0], min(fields.minutes))} to {_clock(hours[-1], max(fields.minutes))}"


def _within(values: set[int], unit: str, whole: str) -> str | None:
    """Seconds of a minute or minutes of an hour: a step, or a list; None if that is too long."""
    step = min((later - earlier for earlier, later in pairwise(sorted(values))), default=60)
    if step < 60 and 60 % step == 0 and values == set(range(0, 60, step)):
        return f"every {unit}" if step == 1 else f"every {step} {unit}s"
    named = _ranges(sorted(values), [str(value) for value in range(60)], 0)
    return named and f"at {unit}{'s' if len(values) > 1 else ''} {named} of every {whole}"


def _days(fields: CronSim) -> str | None:
    """The days, such as "every Monday in May"; empty for every day, None if that takes too many words."""
    months = _ranges(sorted(fields.months), _MONTHS, 1)
    if months is None:
        return None
    whole, within = ("every month", "") if len(fields.months) == 12 else (months, f" in {months}")
    plain = {item % 7 for item in fields.weekdays if isinstance(item, int)}
    any_date, any_weekday = set(range(1, 32)) <= fields.days, len(plain) == 7
    if (any_date and any_weekday) or (not fields.day_and and (any_date or any_weekday)):
        return f"every day{within}" if within else ""
    dates = None if any_date else _dates(fields.days)
    dates = dates and f"on {dates} of {whole}"
    weekdays = _weekdays(plain) + within if plain else _counted_weekdays(fields.weekdays, whole)
    if plain and any(isinstance(item, tuple) for item in fields.weekdays) and not any_weekday:
        weekdays = None
    if fields.day_and:
        return dates if any_weekday else weekdays if any_date else None
    return f"{dates} and {weekdays}" if dates and weekdays else None


def _dates(days: set[int]) -> str | None:
    """Days of a month, such as "the 1st and the last day"."""
    known = sorted(day for day in days if day > 0)
    found = [_ranges(known, [f"the {_nth(day)}" for day in range(1, 32)], 1)] if known else []
    if CronSim.LAST_WEEKDAY in days:
        found.append("the last weekday")
    if CronSim.LAST in days:
        found.append("the last day")
    # A list within a list would need more than commas.
    return found[0] if len(found) == 1 else _joined(filter(None, found)) if len(known) < 2 else None


def _weekdays(days: set[int]) -> str:
    # The week begins on Monday.
    named = _joined(_WEEKDAYS[day] for day in sorted(days, key=lambda day: (day - 1) % 7))
    return "every weekday" if days == _WORKDAYS else f"every {named}"


def _counted_weekdays(weekdays: Iterable[int | tuple[int, int]], months: str) -> str | None:
    """Such as "on the first Monday of every month"."""
    pairs = (item for item in weekdays if isinstance(item, tuple))
    counted = sorted({(_LAST if number == CronSim.LAST else number, day % 7) for day, number in pairs})
    named = _joined(f"the {_ORDINALS[number - 1]} {_WEEKDAYS[day]}" for number, day in counted)
    return f"on {named} of {months}" if len(counted) <= _LIST_MAX else None


def _ranges(values: Sequence[int], names: Sequence[str], first: int) -> str | None:
    """The names of ascending values, with "to" for three and more that follow one another; None if they are too many.
    `first` is the value of the first name."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    parts: list[str] = []
    for run in runs:
        shown = [names[value - first] for value in run]
        parts += [f"{shown[0]} to {shown[-1]}"] if len(run) > 2 else shown
    return _joined(parts) if len(parts) <= _LIST_MAX else None


def _joined(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _clock(hour: int, minute: int, second: int | None = None) -> str:
    return f"{hour:02}:{minute:02}" if second is None else f"{hour:02}:{minute:02}:{second:02}"


def _nth(number: int) -> str:
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
