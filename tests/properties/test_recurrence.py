"""When schedules are due, against a reckoning of its own around the changes of all zones' clocks.

`make zones` tries every change from 1970 to 2037; without it, one of each kind is tried."""

from __future__ import annotations

import re
from datetime import date, timedelta
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import zone_changes
from tests.properties.zone_changes import ELAPSED, FIXED
from tests.support.cases import each
from tocsin.model.instants import US_PER_DAY, parse_instant
from tocsin.model.occurrences import check
from tocsin.model.recurrence import (
    EVERY_MAX_US,
    EVERY_MIN_US,
    EXPRESSION_CHARS_MAX,
    YEARS_MAX,
    Cron,
    Every,
    parsed,
)
from tocsin.model.schedule import Definition

DAY = timedelta(days=1)
DAYS_OF_MONTH = st.sampled_from(["*", "1", "29", "28-31", "*/31", "*/10", "L", "LW", "1,L", "8-14"])
MONTHS = st.sampled_from(["*", "2", "2,4", "6-8", "*/5", "FEB,DEC"])
WEEKDAYS = st.sampled_from(["*", "0", "1-5", "*/7", "*/6", "5L", "MON#1", "0#5,3L"])


@pytest.mark.parametrize("expression", [*FIXED, *ELAPSED])
def test_clocks_that_change_skip_and_repeat_as_cron_does(expression: str) -> None:
    for zone, changes in groupby(zone_changes.one_of_each_kind(), key=lambda change: change.zone):
        zone_changes.check(zone, changes, expression)


class CountedCron(Cron):
    """Counts the months and the dates that a search looks at."""

    looks = 0

    def _days_in(self, year: int, month: int) -> int:
        self.looks += 1
        return super()._days_in(year, month)

    def _minutes_on(self, day: date) -> tuple[int, list[int]]:
        self.looks += 1
        return super()._minutes_on(day)


@settings(max_examples=100)
@given(DAYS_OF_MONTH, MONTHS, WEEKDAYS, st.integers(0, 80_000))
def test_dates_are_those_that_a_walk_over_all_days_finds(days: str, months: str, weekdays: str, begin: int) -> None:
    fields = parsed(expression := f"0 0 {days} {months} {weekdays}")
    walked = [
        begin + passed
        for passed in range(3 * 366)
        if (day := date(1970, 1, 1) + (begin + passed) * DAY).month in fields.months and fields.match_day(day)
    ]
    if not walked:
        return
    cron = Cron(expression)
    instants = [day * US_PER_DAY for day in walked]
    assert cron.after(begin * US_PER_DAY - 1) == instants[0]
    assert [cron.after(at) for at in instants[:-1]] == instants[1:]
    assert [cron.until(at - 1) for at in instants[1:]] == instants[:-1]
    assert cron.count(instants[0], instants[-1], len(instants)) == len(instants) - 1


@pytest.mark.parametrize(
    ("expression", "zone", "looks_max"),
    [
        ("*/5 * * * *", "Europe/Berlin", 5),
        ("0 9 * * 1-5", "Europe/Berlin", 5),
        # The rarest dates: one month of each year, for 40 years.
        ("0 0 29 2 */7", "UTC", 50),
        ("0 0 */1 2 1#5", "Europe/Berlin", 50),
    ],
)
def test_a_search_looks_at_no_more_than_the_months_to_its_date(expression: str, zone: str, looks_max: int) -> None:
    cron = CountedCron(expression, zone)
    at = parse_instant("2027-01-01T00:00:00Z")
    for _ in range(20):
        cron.looks, following = 0, cron.after(at)
        assert following is not None
        assert cron.looks <= looks_max
        at = following
    cron.looks = 0
    assert cron.until(at) == at
    assert cron.looks <= looks_max


def test_no_month_is_looked_at_twice_for_an_expression_that_never_matches() -> None:
    cron = CountedCron("0 0 29 2 *")
    # The weekends' last weekday: no date.
    cron._days, cron._months, cron._days_of = (rare := parsed("0 0 LW * */7")), sorted(rare.months), {}
    cron.looks = 0
    assert cron.after(0) is None
    assert 12 * YEARS_MAX <= cron.looks <= 12 * (YEARS_MAX + 1)


def test_the_end_of_an_expressions_instants_is_remembered() -> None:
    # Since 1981 the clocks of Berlin skip this hour whenever it matches.
    cron = CountedCron("*/1 2 * 3 0L", "Europe/Berlin")
    now = parse_instant("2027-02-01T00:00:00Z")
    assert cron.after(now) is None
    cron.looks = 0
    assert cron.after(now + US_PER_DAY) is None
    assert cron.looks == 0
    assert cron.after(0) == parse_instant("1970-03-29T01:00:00Z")
    assert cron.after(parse_instant("2029-01-01T12:00:00Z")) is None


@given(st.integers(-(10**15), 10**16), st.integers(EVERY_MIN_US, EVERY_MAX_US), st.integers(-(10**15), 10**16))
def test_intervals_are_multiples_from_their_anchor(anchor: int, every: int, now: int) -> None:
    recurrence = Every(every, anchor)
    after, until = recurrence.after(now), recurrence.until(now)
    assert after is not None
    assert until is not None
    assert until <= now < after == until + every
    assert (after - anchor) % every == 0


@pytest.mark.parametrize(
    ("expression", "zone", "after", "due"),
    [
        ("@daily", "Europe/Berlin", "2027-03-27T23:00:00Z", "2027-03-28T22:00:00Z"),
        ("30 0 9 * * MON-FRI", "America/New_York", "2027-01-01T14:00:30Z", "2027-01-04T14:00:30Z"),
        ("*/20 * * * * *", "UTC", "2027-01-01T00:00:40Z", "2027-01-01T00:01:00Z"),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"),
        ("0 12 L * *", "UTC", "2027-02-01T00:00:00Z", "2027-02-28T12:00:00Z"),
        # The whole of 30 December 2011 was skipped.
        ("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", "2011-12-30T10:00:00Z"),
    ],
)
def test_expression_is_due(expression: str, zone: str, after: str, due: str) -> None:
    assert Cron(expression, zone).after(parse_instant(after)) == parse_instant(due)


@each(
    "expression, zone, reason",
    [
        ("* * * *", "UTC", "five fields"),
        ("61 * * * *", "UTC", "bad minute"),
        ("0 0 32 1 *", "UTC", "bad day-of-month"),
        ("0 0 30 2 *", "UTC", "never matches a date"),
        ("@weekday", "UTC", "@hourly, @daily, @midnight"),
        ("0 0 * * FRI-MON", "UTC", "bad day-of-week; write 0 to 7 or SUN to SAT"),
        ("@reboot", "UTC", "nothing reboots"),
        ("0 0 ? * MON", "UTC", r"has \?; write \* instead"),
        ("CRON_TZ=Europe/Berlin 0 0 * * *", "UTC", "send the zone as timeZone"),
        ("0 0 31 2,4 *", "UTC", "never matches a date"),
        ("0 0 * 2 MON#6", "UTC", "day-of-week"),
        ("0 0 29 2 */8#5", "UTC", "day-of-week"),
        ("0 0 * * *", "Europe/../UTC", "not an IANA time zone"),
        ("0 0 * * *", "Mars/Olympus", "not an IANA time zone"),
        ("0 0 * * \u017fUN", "UTC", "characters beyond ASCII"),
        ("*," * EXPRESSION_CHARS_MAX + "1 * * * *", "UTC", "at most 255 are accepted"),
    ],
)
def test_invalid_expression_is_refused_with_its_reason(expression: str, zone: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Cron(expression, zone)


@each(
    "expression, reason",
    [
        (
            "*/90 * * * *",
            r"has \*/90 as its minute, whose step is longer than the whole; for an interval, send every: 90m",
        ),
        ("5/90 * * * *", "send every: 90m"),
        ("0 1,*/36 * * *", r"has \*/36 as its hour, .* send every: 36h"),
        ("0 0 * */13 *", "name the values"),
        ("0 0 L/2 * *", "has L/2 as its day-of-month, whose step would be ignored; write L"),
    ],
)
def test_a_step_that_would_do_nothing_is_refused(expression: str, reason: str) -> None:
    (error,) = check(Definition(cron=expression), parse_instant("2027-01-01T00:00:00Z"))
    assert error.path == "cron"
    assert re.search(reason, error.reason)


@each("expression", ["*/60 * * * *", "0 */24 * * *", "0 0 */31 * */8", "*/59 * * * *", "0 0 * * 5L", "@daily"])
def test_a_step_as_long_as_the_whole_is_accepted(expression: str) -> None:
    """Sentences whose days have to match both fields are written with it."""
    assert check(Definition(cron=expression), parse_instant("2027-01-01T00:00:00Z")) == []
