"""Searches of schedules with calendars look at a bounded number of dates, whatever the calendars exclude, and at none beyond
the range that was asked for. Looks are counted, not timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import msgspec
import pytest
from tests.unit.test_schedules import UUID, ScheduleBench

from tocsin.model.calendar import WEEKDAYS, Calendar, Calendars, Days, Exclusions
from tocsin.model.instants import INSTANT_MAX, US_PER_DAY, US_PER_SECOND
from tocsin.model.occurrences import Occurrences, check
from tocsin.model.recurrence import Cron
from tocsin.model.schedule import Definition, DefinitionChanges, Edit, Missed, OnSkipped
from tocsin.model.timer import Changes
from tocsin.timers.engine.recurring import excluded_between, missed_between
from tocsin.timers.engine.rows import OpKind, WriteOp

MONDAY = 1_800_230_400 * US_PER_SECOND
assert date(1970, 1, 1) + timedelta(microseconds=MONDAY) == date(2027, 1, 18)
#: How often one search may look, and the searches of a plan together.
HOUR = 3_600 * US_PER_SECOND
SEARCH_MAX, PLAN_MAX = 5_000, 15_000


class Looks:
    """How often calendars were looked at: at runs of dates and at excluded stretches."""

    def __init__(self) -> None:
        self.count = 0

    def take(self) -> int:
        count, self.count = self.count, 0
        return count


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    counted = Looks()

    def noting(look: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **options: Any) -> Any:
            counted.count += 1
            assert counted.count <= 3 * PLAN_MAX, "the search goes on and on"
            return look(*args, **options)

        return noted

    monkeypatch.setattr(Days, "run", noting(Days.run))
    monkeypatch.setattr(Exclusions, "stretch", noting(Exclusions.stretch))
    return counted


def of_weekdays(*weekdays: str, name: str = "") -> Calendar:
    return Calendar("n", name or "-".join(weekdays), 0, 0, weekdays=weekdays)


def occurrences(calendars: list[Calendar], **definition: object) -> Occurrences:
    rule = Definition(**definition)  # type: ignore[arg-type]
    assert check(rule, MONDAY) == []
    return Occurrences(rule, UUID, MONDAY, Calendars(calendars))


SHIFTS = [of_weekdays("MON", "WED", "FRI"), of_weekdays("TUE", "THU", "SAT", "SUN")]


def test_missed_instants_are_counted_without_looking_beyond_their_range(looks: Looks) -> None:
    """Two calendars alternate and leave no gap, so that no excluded instant ever comes."""
    found = occurrences(SHIFTS, every_us=US_PER_SECOND, only=("MON-WED-FRI", "TUE-THU-SAT-SUN"))
    (missed,) = missed_between(found, Missed.OVERLAP, MONDAY, MONDAY + 2 * US_PER_SECOND)
    assert missed[1:] == (2, MONDAY + US_PER_SECOND, MONDAY + 2 * US_PER_SECOND)
    assert excluded_between(found, MONDAY, MONDAY + 2 * US_PER_SECOND) == []
    assert looks.take() < 50
    hourly = occurrences(SHIFTS, cron="0 * * * *", only=("MON-WED-FRI", "TUE-THU-SAT-SUN"))
    week = MONDAY + 7 * US_PER_DAY
    assert (hourly.count(MONDAY, week), hourly.excluded(MONDAY, week)) == (7 * 24, [])
    assert looks.take() < 200


def test_a_preview_looks_for_excluded_instants_up_to_its_end(looks: Looks) -> None:
    found = occurrences(SHIFTS, every_us=US_PER_SECOND, only=("MON-WED-FRI", "TUE-THU-SAT-SUN"))
    assert list(found.excluded_instants(MONDAY, MONDAY + 10 * US_PER_SECOND)) == []
    assert looks.take() < 50


EXCLUDING_ALL = [
    [of_weekdays(*WEEKDAYS[:5], name="workdays"), of_weekdays(*WEEKDAYS[5:], name="weekends")],
    [of_weekdays(weekday) for weekday in WEEKDAYS],
    [of_weekdays(weekday) for weekday in reversed(WEEKDAYS)],
]


@pytest.mark.parametrize("calendars", EXCLUDING_ALL, ids=("halves", "weekdays", "backwards"))
@pytest.mark.parametrize("jitter", (0, US_PER_SECOND))
@pytest.mark.parametrize("on_skipped", OnSkipped)
def test_a_search_ends_where_calendars_exclude_everything(
    looks: Looks, calendars: list[Calendar], jitter: int, on_skipped: OnSkipped
) -> None:
    names = tuple(each.name for each in calendars)
    found = occurrences(calendars, cron="0 9,10,11,12 * * *", skip=names, jitter_us=jitter, on_skipped=on_skipped)
    search = found.search(MONDAY)
    assert search.at is None
    assert search.reached is not None
    assert search.reached > MONDAY + 60 * US_PER_DAY
    assert looks.take() <= PLAN_MAX
    # It goes on when that has come.
    further = found.search(search.reached)
    assert further.reached is not None
    assert further.reached > search.reached + 60 * US_PER_DAY
    assert looks.take() <= PLAN_MAX
    # What is known is not looked up again.
    found.search(MONDAY)
    assert looks.take() <= PLAN_MAX
    assert found.until(search.reached) is None
    assert looks.take() <= PLAN_MAX


@pytest.mark.parametrize("calendars", EXCLUDING_ALL, ids=("halves", "weekdays", "backwards"))
def test_excluded_instants_are_counted_as_far_as_calendars_were_looked_at(
    looks: Looks, calendars: list[Calendar]
) -> None:
    found = occurrences(calendars, cron="0 9 * * *", skip=tuple(each.name for each in calendars))
    (excluded,) = found.excluded(MONDAY, MONDAY + 60 * US_PER_DAY)
    assert excluded.instants == 60
    assert found.count(MONDAY, MONDAY + 10_000 * US_PER_DAY) == 0
    assert looks.take() <= 2 * SEARCH_MAX


def test_times_that_move_are_looked_for_as_far_as_calendars_were_looked_at(looks: Looks) -> None:
    """Each date is excluded by its own time zone, so that an hour is left between two of them at which nothing is due."""
    calendars = [
        msgspec.structs.replace(of_weekdays("MON", "WED", "FRI", name="east"), time_zone="Etc/GMT-1"),
        of_weekdays("TUE", "THU", "SAT", name="west"),
        of_weekdays("SUN", name="sunday"),
    ]
    found = occurrences(
        calendars,
        cron=f"0 {','.join(map(str, range(1, 22)))} 1 1 *",
        skip=("east", "west", "sunday"),
        on_skipped=OnSkipped.NEXT,
    )
    found.search(MONDAY)
    found.until(MONDAY + 3_650 * US_PER_DAY)
    found.count(MONDAY, MONDAY + 3_650 * US_PER_DAY)
    assert looks.take() <= PLAN_MAX


def dates_without(rule: Cron, excluded: set[date], begin: int, end: int) -> Iterator[int]:
    at = rule.after(begin)
    while at is not None and at <= end:
        if date(1970, 1, 1) + timedelta(microseconds=at) not in excluded:
            yield at
        at = rule.after(at)


def test_a_year_of_weekends_and_holidays_is_counted() -> None:
    holidays = {date(year, month, day) for year in range(2027, 2030) for month in range(1, 13) for day in (1, 14)}
    calendars = [of_weekdays("SAT", "SUN"), Calendar("n", "holidays", 0, 0, dates=tuple(sorted(holidays)))]
    end = MONDAY + 365 * US_PER_DAY
    days = [date(2027, 1, 18) + timedelta(number) for number in range(365 + 1)]
    excluded = holidays | {day for day in days if day.weekday() > 4}
    left = list(dates_without(Cron("0 9 * * *"), excluded, MONDAY, end))
    found = occurrences(calendars, cron="0 9 * * *", skip=("SAT-SUN", "holidays"))
    assert found.count(MONDAY, end) == len(left)
    assert sum(each.instants for each in found.excluded(MONDAY, end)) == 365 - len(left)
    assert found.until(end) == left[-1]


@pytest.mark.parametrize("begin", (-10_000 * US_PER_DAY, INSTANT_MAX - 100 * US_PER_DAY), ids=("before", "beyond"))
def test_dates_that_no_calendar_may_have_do_not_exclude_those_between(begin: int) -> None:
    """The weekdays of a calendar are of every week, also before 1970 and in the last year of all."""
    found = occurrences([of_weekdays("SAT", "SUN")], cron="0 9 * * *", skip=("SAT-SUN",))
    week = [begin + number * US_PER_DAY for number in range(7)]
    for look in (found.until, found.after):
        assert all(look(at) != at for at in week)
    assert found.after(MONDAY) == MONDAY + 9 * HOUR
    assert found.until(MONDAY) == MONDAY - 3 * US_PER_DAY + 9 * HOUR


def test_what_is_looked_up_for_one_change_counts_as_reckoning() -> None:
    bench = ScheduleBench()
    calendars = Calendars(EXCLUDING_ALL[0])
    for skip in (("workdays", "weekends"), ("weekends", "workdays")):
        change = Edit(DefinitionChanges(skip=skip))
        bench.window.accept(WriteOp(OpKind.SCHEDULE, UUID, "n", changes=Changes(), change=change))
    bench.calendars_of = lambda _: calendars
    batch = bench.assemble()
    assert len(batch.ops) == 2
    assert batch.reckoned > 50
