"""A schedule runs when its sentence claims: a reader of the sentences and the recurrence agree about every instant."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import each
from tocsin.model.instants import parse_duration
from tocsin.model.recurrence import EVERY_MAX_US, EVERY_MIN_US, Cron
from tocsin.model.schedule_words import cron_sentence, every_sentence

US = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INSTANTS = 20
WEEKDAYS = list(calendar.day_name)
MONTHS = list(calendar.month_name)
ORDINALS = ["first", "second", "third", "fourth", "fifth"]
DayTest = Callable[[date], bool]


def _words(text: str) -> list[str]:
    return re.split(", | and ", text)


def _numbers(text: str, number_of: Callable[[str], int]) -> set[int]:
    found: set[int] = set()
    for part in _words(text):
        first, _, last = part.partition(" to ")
        found |= set(range(number_of(first), number_of(last or first) + 1))
    return found


def _in_months(text: str) -> DayTest:
    if text == "every month":
        return lambda day: True
    months = _numbers(text, MONTHS.index)
    return lambda day: day.month in months


def _month_days(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _date(text: str) -> DayTest:
    text = text.removeprefix("the ")
    if text == "last day":
        return lambda day: day.day == _month_days(day)
    if text == "last weekday":
        return lambda day: day.day == max(n for n in range(1, _month_days(day) + 1) if day.replace(day=n).weekday() < 5)
    if text[0].isdigit():
        days = _numbers(text, lambda part: int(re.sub(r"\D", "", part)))
        return lambda day: day.day in days
    ordinal, weekday = text.split()
    if ordinal == "last":
        return lambda day: day.weekday() == WEEKDAYS.index(weekday) and day.day + 7 > _month_days(day)
    number = ORDINALS.index(ordinal)
    return lambda day: day.weekday() == WEEKDAYS.index(weekday) and (day.day - 1) // 7 == number


def _days(text: str) -> DayTest:
    text = text[0].lower() + text[1:]
    if text.startswith("on "):
        either = re.fullmatch(r"on (the .+?) of (.+?)(?: and ((?:every (?!month)|on ).+))?", text)
        assert either is not None, text
        dates, months = [_date(word) for word in _words(either[1])], _in_months(either[2])
        other = _days(either[3]) if either[3] else lambda day: False
        return lambda day: (months(day) and any(matches(day) for matches in dates)) or other(day)
    named, _, months_text = text.removeprefix("every ").partition(" in ")
    months = _in_months(months_text or "every month")
    if named in ("day", "weekday"):
        return lambda day: months(day) and (named == "day" or day.weekday() < 5)
    weekdays = {WEEKDAYS.index(word) for word in _words(named)}
    return lambda day: months(day) and day.weekday() in weekdays


def _read(sentence: str) -> Callable[[datetime], bool] | None:
    """Whether it runs at an instant; None if the sentence is the expression."""
    text = sentence.removesuffix(", UTC")
    if not text[0].isalpha():
        return None
    if times := re.fullmatch(r"(.+?) at ((?:\d\d:\d\d(?::\d\d)?(?:, | and )?)+)", text):
        clock = {word if len(word) > 5 else f"{word}:00" for word in _words(times[2])}
        day_test = _days(times[1])
        return lambda at: at.strftime("%H:%M:%S") in clock and day_test(at.date())
    often = re.fullmatch(
        r"(?:Every (?:(\d+) )?(second|minute|hour)s?|At (second|minute)s? (.+?) of every (?:minute|hour))"
        r"(?: from (\d\d):(\d\d) to (\d\d):(\d\d))?(?:, (.+))?",
        text,
    )
    assert often is not None, sentence
    step, every, unit, listed, first_h, first_m, last_h, last_m, day_text = often.groups()
    first, last = int(first_h or 0) * 60 + int(first_m or 0), int(last_h or 23) * 60 + int(last_m or 59)
    values = _numbers(listed, int) if listed else set(range(0, 60, int(step or 1)))
    on_day = _days(day_text) if day_text else lambda day: True

    def runs(at: datetime) -> bool:
        minutes = at.hour * 60 + at.minute
        if (every or unit) == "second":
            within = at.second in values
        elif (every or unit) == "minute":
            within = at.second == 0 and at.minute in values
        else:
            within = at.second == 0 and (minutes - first) % (60 * int(step or 1)) == 0
        return within and first <= minutes <= last and on_day(at.date())

    return runs


def _field(low: int, high: int, *special: str) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    listed = st.lists(value, min_size=1, max_size=7).map(lambda found: ",".join(map(str, found)))
    ranges = st.tuples(value, value).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.sampled_from([2, 3, 5, 6, 10, 15, 30]).map(lambda step: f"*/{step}")
    return st.one_of(
        st.just("*"), st.just(str(low)), value.map(str), listed, ranges, steps, st.sampled_from(["*", *special])
    )


EXPRESSIONS = st.tuples(
    st.one_of(st.just(""), _field(0, 59)),
    _field(0, 59),
    _field(0, 23),
    _field(1, 28, "L", "LW", "1,L", "31"),
    _field(1, 12),
    _field(0, 7, "1-5", "MON#1", "5L", "1#1,3#5", "SUN,2#2", "FRI"),
).map(lambda fields: " ".join(fields).strip())


@given(EXPRESSIONS, st.lists(st.integers(1_700_000_000, 2_000_000_000), min_size=5, max_size=5))
def test_sentence_describes_exactly_when_an_expression_runs(expression: str, seconds: list[int]) -> None:
    try:
        cron = Cron(expression)
    except ValueError:
        return
    runs = _read(sentence := cron_sentence(expression, "UTC"))
    if runs is None:
        assert sentence == f"{expression}, UTC"
        return
    at = seconds[0] * US
    for _ in range(INSTANTS):
        due = cron.after(at)
        assert due is not None
        assert runs(EPOCH + timedelta(microseconds=due)), (expression, sentence, due)
        # Those of the sentence in between would be missing.
        for skipped in (due - US, due - 60 * US, due - 3_600 * US, due - 86_400 * US):
            if skipped > at:
                assert not runs(EPOCH + timedelta(microseconds=skipped)), (expression, sentence, skipped)
        at = due
    for second in seconds:
        described = runs(EPOCH + timedelta(seconds=second))
        assert described == (cron.after(second * US - 1) == second * US), (expression, sentence, second)


@given(st.integers(EVERY_MIN_US, EVERY_MAX_US))
@pytest.mark.parametrize("unit_us", [1, US, 60 * US, 3_600 * US, 86_400 * US])
def test_sentence_of_an_interval_is_its_length(unit_us: int, amount: int) -> None:
    every_us = max(amount // unit_us, 1) * unit_us
    words = every_sentence(every_us).removeprefix("Every ").split()
    if len(words) == 1 and words[0][0].isdigit():
        assert parse_duration(words[0]) == every_us
    else:
        count, unit = words if len(words) == 2 else ("1", words[0])
        assert parse_duration(count + unit[0]) == every_us


@each(
    "expression, sentence",
    [
        ("0 9 * * 1-5", "Every weekday at 09:00, Europe/Berlin"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("30 * * * * *", "At second 30 of every minute"),
        ("@daily", "Every day at 00:00, Europe/Berlin"),
        ("0 */6 * * *", "Every day at 00:00, 06:00, 12:00 and 18:00, Europe/Berlin"),
        ("*/15 9-17 * * 1-5", "Every 15 minutes from 09:00 to 17:45, every weekday, Europe/Berlin"),
        ("0 12 L 3,6,9,12 *", "On the last day of March, June, September and December at 12:00, Europe/Berlin"),
        ("0 0 13 5 FRI", "On the 13th of May and every Friday in May at 00:00, Europe/Berlin"),
        ("*/7  * * * *", "*/7 * * * *, Europe/Berlin"),
    ],
)
def test_sentence_is_plain_english(expression: str, sentence: str) -> None:
    assert cron_sentence(expression, "Europe/Berlin") == sentence
