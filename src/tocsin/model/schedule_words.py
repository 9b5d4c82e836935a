"""When a schedule runs, as a sentence in English: "Every weekday at 09:00, Europe/Berlin". Pure.

The words are made from what an expression matches and not from how it is written, and they exist for every expression.
`schedule_reading` reads them back as the same rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise, product

from cronsim import CronSim

from tocsin.model.instants import US_PER_DAY, US_PER_SECOND, format_duration
from tocsin.model.recurrence import parsed

#: In the order of cron's numbers.
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
WORKDAYS = frozenset({1, 2, 3, 4, 5})
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "last")
#: What ends the sentence of an expression that treats changes of the clocks otherwise than its words suggest: it runs at
#: fixed times (`True`), or whenever the clocks show a matching time.
CHANGES = {True: ", once where clocks change", False: ", each time the clocks show it"}
#: What ends the sentence of an interval whose words would otherwise be those of an expression.
ELAPSED = " of elapsed time"

_LAST = len(ORDINALS)
_NUMBERS = tuple(map(str, range(60)))
_UNITS = (
    ("day", US_PER_DAY),
    ("hour", 3_600 * US_PER_SECOND),
    ("minute", 60 * US_PER_SECOND),
    ("second", US_PER_SECOND),
)
#: How many of a unit have no remainder in the next larger one: expressions repeat as often.
_WHOLES = {"hour": 24, "minute": 60, "second": 60}
#: More times of day than this are named by their hours and minutes.
_TIMES_MAX = 6
#: More values than this, at equal distances, are named by their first, their last and the distance.
_LIST_MAX = 6
#: From this many units on, one unit alone is hard to imagine: "Every 1h1m1s" and not "Every 3661 seconds".
_UNITS_MAX = 120
_SENTENCES_CACHED_MAX = 4_096


@lru_cache(_SENTENCES_CACHED_MAX)
def cron_sentence(expression: str, time_zone: str) -> str:
    """When a valid cron expression runs in a zone."""
    return f"{rule_sentence(parsed(expression))}, {time_zone}"


def rule_sentence(fields: CronSim) -> str:
    """When an expression runs, without its zone."""
    days, fixed = _days(fields), _is_fixed(fields)
    if fixed and len(fields.hours) * len(fields.minutes) * len(fields.seconds) <= _TIMES_MAX:
        shown = product(sorted(fields.hours), sorted(fields.minutes), sorted(fields.seconds))
        return _capital(f"{days or 'every day'} at {joined(_clock(*time, fields.seconds != {0}) for time in shown)}")
    often = _often(fields)
    ending = "" if fixed is suggests_fixed(fields.minutes, fields.hours) else CHANGES[fixed]
    return _capital(f"{often}, {days}{ending}" if days else f"{often}{ending}")


def every_sentence(every_us: int) -> str:
    """How often an interval repeats."""
    for unit, unit_us in _UNITS:
        amount, rest = divmod(every_us, unit_us)
        if rest == 0 and amount > 0 and (unit, amount) != ("day", 1):
            if amount > _UNITS_MAX and unit != "day":
                break
            words = f"Every {unit}" if amount == 1 else f"Every {amount} {unit}s"
            return words + ELAPSED if repeats_evenly(unit, amount) else words
    return f"Every {format_duration(every_us)}"


def repeats_evenly(unit: str, amount: int) -> bool:
    """Whether an expression can repeat after so many of a unit: they divide the next larger one."""
    return unit in _WHOLES and amount < _WHOLES[unit] and _WHOLES[unit] % amount == 0


def suggests_fixed(minutes: Collection[int], hours: Collection[int]) -> bool:
    """Whether words that name hours and minutes apart suggest fixed times: neither names an even distance through the whole
    hour or the whole day."""
    return not (_step(minutes, 60) or _step(hours, 24))


def _step(values: Collection[int], size: int) -> int:
    """The distance of values that divide a whole evenly, from 0 on; 0 if they don't, or are one."""
    step = size // len(values)
    return step if len(values) > 1 and sorted(values) == list(range(0, size, step)) else 0


def _is_fixed(fields: CronSim) -> bool:
    return not fields.parts[1].startswith("*") and not fields.parts[2].startswith("*")


def _often(fields: CronSim) -> str:
    """How often in a day."""
    hours = sorted(fields.hours)
    steps = {later - earlier for earlier, later in pairwise(hours)} or {1}
    first, last = _clock(hours[0], min(fields.minutes)), _clock(hours[-1], max(fields.minutes))
    within = "" if len(hours) == 24 else f" from {first} to {last}"
    if fields.seconds != {0}:
        of_minute = _within(fields.seconds, "second", "minute")
        # With other minutes, a range of the day would have two meanings.
        minutes = "" if len(fields.minutes) == 60 else f" in the minutes {joined(ranges(sorted(fields.minutes)))}"
        return of_minute + minutes + ("" if len(hours) == 24 else f" in the hours {joined(ranges(hours))}")
    if fields.minutes == {0} and len(steps) == 1:
        step = steps.pop()
        return f"every {step} hours{within}" if step > 1 else f"every hour{within}"
    if steps != {1}:
        within = f" in the hours {joined(ranges(hours))}"
    return _within(fields.minutes, "minute", "hour") + within


def _within(values: Collection[int], unit: str, whole: str) -> str:
    """Seconds of a minute or minutes of an hour: a step, or a list."""
    if step := _step(values, 60):
        return f"every {unit}" if step == 1 else f"every {step} {unit}s"
    found = sorted(values)
    steps = {later - earlier for earlier, later in pairwise(found)}
    if len(found) > _LIST_MAX and len(steps) == 1 and (step := steps.pop()) > 1:
        return f"every {step} {unit}s from :{found[0]:02} to :{found[-1]:02} of every {whole}"
    return f"at {unit}{'s' if len(found) > 1 else ''} {joined(ranges(found))} of every {whole}"


def _days(fields: CronSim) -> str:
    """The days, such as "every Monday in May"; empty for every day."""
    months = joined(ranges(sorted(fields.months), MONTHS, 1))
    whole, within = ("every month", "") if len(fields.months) == 12 else (months, f" in {months}")
    plain = {item % 7 for item in fields.weekdays if isinstance(item, int)}
    counted = sorted({(item[1], item[0] % 7) for item in fields.weekdays if isinstance(item, tuple)})
    any_date, any_weekday = set(range(1, 32)) <= fields.days, len(plain) == 7
    if (any_date and any_weekday) or (not fields.day_and and (any_date or any_weekday)):
        return f"every day{within}" if within else ""
    dates = f"on {joined(_dates(fields.days))} of {whole}"
    if any_weekday:
        return dates
    if fields.day_and and not any_date:
        named = [WEEKDAYS[day] for day in sorted(plain, key=_from_monday)]
        return f"{dates} if that is {joined([*named, *map(_counted, counted)], 'or')}"
    alternatives = [] if any_date else [dates]
    if plain:
        alternatives.append(_weekdays(plain) + within)
    if counted:
        alternatives.append(f"on {joined(map(_counted, counted))} of {whole}")
    return joined(alternatives)


def _dates(days: set[int]) -> list[str]:
    """Days of a month, such as "the 1st" and "the last day"."""
    found = ranges(sorted(day for day in days if day > 0), [f"the {_nth(day)}" for day in range(1, 32)], 1)
    named = {CronSim.LAST_WEEKDAY: "the last weekday", CronSim.LAST: "the last day"}
    return found + [words for day, words in named.items() if day in days]


def _from_monday(day: int) -> int:
    return (day - 1) % 7


def _weekdays(days: set[int]) -> str:
    named = joined(WEEKDAYS[day] for day in sorted(days, key=_from_monday))
    return "every weekday" if days == WORKDAYS else f"every {named}"


def _counted(pair: tuple[int, int]) -> str:
    """Such as "the first Monday"."""
    number, day = pair
    return f"the {ORDINALS[_LAST - 1 if number == CronSim.LAST else number - 1]} {WEEKDAYS[day]}"


def ranges(values: Sequence[int], names: Sequence[str] = _NUMBERS, first: int = 0) -> list[str]:
    """The names of ascending values, with "to" for three and more that follow one another. `first` is the value of the first
    name."""
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
    return parts


def joined(words: Iterable[str], conjunction: str = "and") -> str:
    """Words as a list: "a, b and c"."""
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def _clock(hour: int, minute: int, second: int = 0, with_seconds: bool = False) -> str:
    return f"{hour:02}:{minute:02}:{second:02}" if with_seconds else f"{hour:02}:{minute:02}"


def _nth(number: int) -> str:
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
