"""The words of a rule are read back as the same rule, for every rule. What people type is understood, or refused with what
is understood and an example."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import each
from tocsin.model.recurrence import EVERY_MAX_US, EVERY_MIN_US, Cron, parsed
from tocsin.model.schedule_reading import Rule, find_zone, read_sentence
from tocsin.model.schedule_words import cron_sentence, every_sentence

US = 1_000_000
#: Every kind of month: each weekday as its first day, and each length.
MONTHS = [(year, month) for year in range(2000, 2028) for month in range(1, 13)]


def _days(fields: CronSim) -> list[date]:
    """The days of some years that an expression matches."""
    return [
        day for year, month in MONTHS if month in fields.months
        for number in range(1, 32) if (day := _date(year, month, number)) and fields.match_day(day)
    ]  # fmt: skip


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def meaning(expression: str) -> tuple[Any, ...]:
    """When an expression runs, and how it treats changes of the clocks."""
    fields = parsed(expression)
    fixed = not fields.parts[1].startswith("*") and not fields.parts[2].startswith("*")
    return fields.seconds, fields.minutes, fields.hours, fixed, _days(fields)


def _field(low: int, high: int, *special: str) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    listed = st.lists(value, min_size=1, max_size=9).map(lambda found: ",".join(map(str, found)))
    ranges = st.tuples(value, value).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.tuples(st.sampled_from(["*", f"{low}-{high}", str(low + 1)]), st.integers(2, high)).map(
        "{0[0]}/{0[1]}".format
    )
    return st.one_of(
        st.just("*"), st.just(str(low)), value.map(str), listed, ranges, steps, st.sampled_from(["*", *special])
    )


EXPRESSIONS = st.tuples(
    st.one_of(st.just(""), _field(0, 59, "*/7")),
    _field(0, 59, "*/7", "*/15", "0-59", "*/20,5"),
    _field(0, 23, "*/5", "*/6", "0-23", "9-17/2", "*/8,5"),
    _field(1, 28, "L", "LW", "1,L", "31", "2,5-9,LW", "*/2"),
    _field(1, 12),
    _field(0, 7, "1-5", "MON#1", "5L", "1#1,3#5", "SUN,2#2", "FRI", "*/2", "*/3,MON#1"),
).map(lambda fields: " ".join(fields).strip())


@given(EXPRESSIONS)
def test_words_of_an_expression_are_read_back_as_the_same_rule(expression: str) -> None:
    try:
        Cron(expression)
    except ValueError:
        return
    sentence = cron_sentence(expression, "Europe/Berlin")
    assert "*" not in sentence
    read = read_sentence(sentence)
    assert read.zone == "Europe/Berlin"
    assert read.cron is not None
    assert meaning(read.cron) == meaning(expression), (expression, sentence, read.cron)
    assert cron_sentence(read.cron, "Europe/Berlin") == sentence


@given(st.integers(EVERY_MIN_US, EVERY_MAX_US))
@pytest.mark.parametrize("unit_us", [1, US, 60 * US, 3_600 * US, 86_400 * US])
def test_words_of_an_interval_are_read_back_as_the_same_interval(unit_us: int, amount: int) -> None:
    every_us = max(amount // unit_us, 1) * unit_us
    assert read_sentence(every_sentence(every_us)) == Rule(None, every_us, None)


@each(
    "expression, sentence",
    [
        ("0 9 * * 1-5", "Every weekday at 09:00"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("30 * * * * *", "At second 30 of every minute"),
        ("@daily", "Every day at 00:00"),
        ("0 0,6,12,18 * * *", "Every day at 00:00, 06:00, 12:00 and 18:00"),
        ("0 */6 * * *", "Every 6 hours from 00:00 to 18:00"),
        ("*/15 9-17 * * 1-5", "Every 15 minutes from 09:00 to 17:45, every weekday"),
        ("0 12 L 3,6,9,12 *", "On the last day of March, June, September and December at 12:00"),
        ("0 0 13 5 FRI", "On the 13th of May and every Friday in May at 00:00"),
        ("0 0 13 * */2", "On the 13th of every month if that is Tuesday, Thursday, Saturday or Sunday at 00:00"),
        ("*/7  * * * *", "Every 7 minutes from :00 to :56 of every hour"),
        (
            "*/7 9,12 * * *",
            "Every 7 minutes from :00 to :56 of every hour in the hours 9 and 12, each time the clocks show it",
        ),
        ("0,30 0-23 * * *", "Every 30 minutes, once where clocks change"),
        ("*/60 9 * * *", "Every hour from 09:00 to 09:00, each time the clocks show it"),
    ],
)
def test_sentence_is_plain_english(expression: str, sentence: str) -> None:
    assert cron_sentence(expression, "Europe/Berlin") == f"{sentence}, Europe/Berlin"


@each(
    "text, cron, zone",
    [
        ("every weekday at 9 in Berlin", "0 9 * * MON-FRI", "Europe/Berlin"),
        ("every weekday in Berlin at 9", "0 9 * * MON-FRI", "Europe/Berlin"),
        ("every monday 9am", "0 9 * * MON", None),
        ("every 15 minutes", "*/15 * * * *", None),
        ("daily at 02:30", "30 2 * * *", None),
        ("first of the month at 6", "0 6 1 * *", None),
        ("every hour", "0 * * * *", None),
        ("every hour at :15", "15 * * * *", None),
        ("mondays and thursdays at 17:15 Europe/Paris", "15 17 * * MON,THU", "Europe/Paris"),
        ("Mon-Fri at 5:30 p.m. London time", "30 17 * * MON-FRI", "Europe/London"),
        ("every 2 hours", "0 */2 * * *", None),
        ("at noon", "0 12 * * *", None),
        ("weekends at 10", "0 10 * * SUN,SAT", None),
        ("last day of the month", "0 0 L * *", None),
        ("monthly on the 15th at 8", "0 8 15 * *", None),
        ("on the second Monday of every month at 9, New York time", "0 9 * * MON#2", "America/New_York"),
        ("every 5 minutes between 9 and 17 on weekdays, UTC", "*/5 9-16 * * MON-FRI", "UTC"),
        ("weekly", "0 0 * * MON", None),
        ("yearly on 1 January at 12 am", "0 0 1 1 *", None),
        ("friday to monday at 9", "0 9 * * SUN,MON,FRI,SAT", None),
        ("sunday to tuesday at 9", "0 9 * * SUN-TUE", None),
        ("sat-mon at 9", "0 9 * * SUN,MON,SAT", None),
        ("nov to feb at 9", "0 9 * 1,2,11,12 *", None),
        ("december to february on the 1st", "0 0 1 1,2,12 *", None),
        ("in the hours 22 to 1", "0 0,1,22,23 * * *", None),
        ("on the first Monday and the third Monday at 9", "0 9 * * MON#1,MON#3", None),
        ("fridays and the 13th at 9", "0 9 13 * FRI", None),
        ("on the 1st if that is Monday to Wednesday at 9", "0 9 */31 * MON-WED", None),
        ("on the 13th if that is Sunday to Tuesday at 9", "0 9 13 * */8,MON,TUE", None),
        ("every 2nd day of the month at 9", "0 9 2 * *", None),
        ("first to fifth of the month at 9", "0 9 1-5 * *", None),
        ("mondays at 9 and thursdays at 9", "0 9 * * MON,THU", None),
        ("mondays at 9 and at 17", "0 9,17 * * MON", None),
        ("30 2 * * *", "30 2 * * *", None),
    ],
)
def test_what_people_type_is_understood(text: str, cron: str, zone: str | None) -> None:
    assert read_sentence(text) == Rule(cron, None, zone)


@each(
    "text, reason",
    [
        (
            "every monday at 9 in Springfield",
            "is understood up to “every monday at 9”, but not “in springfield”; write it like",
        ),
        ("sometimes", "isn’t understood: “sometimes”; write it like “every weekday at 9 in Berlin”"),
        (
            "every second Monday",
            "has “every second monday”, which has two meanings; write “every monday”, or “the second",
        ),
        ("every 2nd day at 9", "has “every 2nd day”, which has two meanings; write “every 2 days”, or “the 2nd day of"),
        (
            "on the first and third monday at 9",
            "has “first” before “third monday”, which may be a date or a weekday; write",
        ),
        ("first weekday of the month at 9", "has “first weekday”; of weekdays write only the last"),
        ("every friday the 13th at 9", "has days of the week and of the month up to “13th”; write “and” between them"),
        (
            "on the 13th if that is Friday",
            "has dates that have to be of a weekday, which a rule can have only of the 1st or",
        ),
        ("on the 13th every friday", "has days of the week and of the month up to “friday”"),
        ("weekdays at 9 and saturdays at 10", "has times for some days and other times for others; create a schedule"),
        ("at 9 on weekdays and at 10 on saturdays", "has times for some days and other times for others"),
        ("every hour on weekdays and every 2 hours on saturdays", "has times for some days and other times for others"),
        ("from 9 to 17 on weekdays and from 9 to 12, every hour", "has several ranges of times"),
        (
            "9 to 17 every hour",
            "has 9 to 17 as a time of day; write it after how often it runs: “every hour from 9 to 17”",
        ),
        ("on the 28th to the 3rd", "has the range “28th to 3rd”; write dates of a month, the earlier one first"),
        ("first monday to third monday", "has the range “first monday to third monday”"),
        ("every 7 minutes from :50 to :10", "has a range from :50 to :10; write the earlier one first"),
        ("weekly on the 15th", "has days of the month in every week"),
        ("", "is empty"),
        ("at 25", "has 25, which is no time of day"),
        ("at 13 pm", "has 13pm, which is no time of day"),
        ("at 9:00 and 17:30", "has times that one rule can’t have together: 09:00 and 17:30"),
        ("every 3 days at 9", "has days or times, which an interval of 3d can’t have"),
        ("every 15 minutes at 9", "has both a distance and a time of day"),
        ("every hour from 17 to 9", "never runs between these times"),
        ("from 9 to 17", "has a range of times, but not how often"),
        ("every 0 minutes", "repeats after 0 minutes"),
        ("every monday at 9, West time", "may be Australia/West or Brazil/West"),
        ("every day at 9, " + "x" * 2_000, "is 2016 characters long"),
    ],
)
def test_refusal_states_what_is_understood(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        read_sentence(text)
    assert str(refused.value).startswith(reason)


@given(st.text("abcdefghijklmnopqrstuvwxyz 0123456789:,*-/#’", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read = read_sentence(f"every {text}")
    except ValueError as error:
        assert "invalid literal" not in str(error)
        return
    assert (read.cron is None) != (read.every_us is None)


def test_zones_are_found_by_name_and_city() -> None:
    assert [find_zone(name) for name in ("Europe/Berlin", " berlin", "new york", "utc", "Buenos Aires")] == [
        "Europe/Berlin", "Europe/Berlin", "America/New_York", "UTC", "America/Argentina/Buenos_Aires",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="write a city"):
        find_zone("Mars")


@each("text", [f"on {'1st to ' * 250}", f"every {'mon and ' * 240}", f"at minutes {'5, ' * 600}x", "in " * 660])
def test_hostile_text_is_refused_within_bounds(text: str) -> None:
    """Lists and ranges are bounded by what their field has; otherwise this takes all memory."""
    with pytest.raises(ValueError, match="understood"):
        read_sentence(text)
