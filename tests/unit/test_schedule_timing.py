"""What becomes of the instants of a schedule whose timing a client changes."""

from __future__ import annotations

from datetime import date, timedelta

from tests.support.cases import each
from tests.unit.test_schedules import BEGIN, MINUTE, SECOND, UUID, Plan

from tocsin.model.calendar import Calendar, Calendars
from tocsin.model.instants import US_PER_DAY
from tocsin.model.occurrences import Occurrences
from tocsin.model.schedule import CatchUp, Definition, DefinitionChanges, Edit, Missed, Pause, Schedule, Skip
from tocsin.timers.engine.recurring import MissedRange, Turn


@each(
    "begun, paused, missed",
    (
        (False, False, ("late", 3, 1, 3)),
        (True, False, ("overlap", 2, 2, 3)),
        (False, True, ("paused", 3, 1, 3)),
    ),
)
def test_instants_that_another_timing_leaves_behind_are_missed(
    begun: bool, paused: bool, missed: tuple[str, int, int, int]
) -> None:
    """The occurrence of the first minute is due, and has begun or not. The one of the fifth is skipped by hand."""
    plan = Plan(catch_up=CatchUp.ALL)
    plan.ask(Skip(BEGIN + 4 * MINUTE))
    if paused:
        plan.ask(Pause())
    plan.now = BEGIN + 4 * MINUTE + SECOND
    turn = plan.ask(Edit(DefinitionChanges(every_us=7 * MINUTE)), in_flight=begun)
    assert isinstance(turn, Turn)
    reason, count, first, last = missed
    assert turn.missed == [
        MissedRange(Missed(reason), count, BEGIN + first * MINUTE, BEGIN + last * MINUTE),
        MissedRange(Missed.EXCLUDED, 1, BEGIN + 4 * MINUTE, BEGIN + 4 * MINUTE),
    ]
    assert (plan.state.missed, plan.state.skips) == ({reason: count, "excluded": 1}, ())
    if begun:
        assert plan.answered().missed == []
    assert plan.minute == 7


def test_another_timing_leaves_nothing_behind_an_occurrence_that_is_the_last() -> None:
    plan = Plan(occurrences_max=1)
    plan.now = BEGIN + 4 * MINUTE
    plan.ask(Edit(DefinitionChanges(every_us=7 * MINUTE)), in_flight=True)
    assert plan.state.missed == {}


def test_of_skipped_instants_another_timing_keeps_its_own() -> None:
    plan = Plan()
    for minute in (4, 6):
        plan.ask(Skip(BEGIN + minute * MINUTE))
    plan.ask(Edit(DefinitionChanges(every_us=3 * MINUTE)))
    assert plan.state.skips == (BEGIN + 6 * MINUTE,)
    plan.now = BEGIN + 3 * MINUTE
    plan.answered()
    assert plan.minute == 9
    plan.now = BEGIN + 9 * MINUTE
    plan.answered()
    assert plan.state.missed == {"excluded": 1}


def test_what_is_skipped_by_hand_counts_once_if_it_would_fire_otherwise() -> None:
    """One of the skipped instants is no longer any, and one is excluded by a calendar."""
    rule = Definition(cron="0 9 * * *", skip=("holidays",))
    holidays = Calendars([Calendar("n", "holidays", 0, 0, dates=(date(2027, 1, 20),))])
    noon = 1_800_230_400 * SECOND + 12 * 60 * MINUTE
    assert date(1970, 1, 1) + timedelta(microseconds=noon) == date(2027, 1, 18)
    excluded, skipped = (noon + days * US_PER_DAY - 3 * 60 * MINUTE for days in (2, 3))
    found = Occurrences(rule, UUID, 0, holidays, (excluded, skipped, skipped + MINUTE))
    end = noon + 5 * US_PER_DAY
    assert found.count(noon, end) == 3
    assert [each.first_at for each in found.excluded(noon, end)] == [excluded, skipped]
    assert [(each.instant, each.reason) for each in found.excluded_instants(noon, end)] == [
        (excluded, "skip"),
        (skipped, "once"),
    ]


def test_a_time_zone_that_is_unknown_here_is_replaced() -> None:
    plan = Plan()
    assert plan.timer is not None
    unknown = Definition(cron="0 0 * * * *", time_zone="Etc/Nowhere")
    plan.timer.schedule = Schedule(unknown, plan.state)
    plan.now = BEGIN + 4 * MINUTE
    plan.ask(Edit(DefinitionChanges(time_zone="UTC")))
    assert (plan.state.missed, plan.minute) == ({}, 60)
