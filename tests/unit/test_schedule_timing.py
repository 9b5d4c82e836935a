"""What becomes of the instants of a schedule whose timing a client changes."""

from __future__ import annotations

from tests.support.cases import each
from tests.unit.test_schedules import BEGIN, MINUTE, SECOND, Plan

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


def test_a_time_zone_that_is_unknown_here_is_replaced() -> None:
    plan = Plan()
    assert plan.timer is not None
    unknown = Definition(cron="0 0 * * * *", time_zone="Etc/Nowhere")
    plan.timer.schedule = Schedule(unknown, plan.state)
    plan.now = BEGIN + 4 * MINUTE
    plan.ask(Edit(DefinitionChanges(time_zone="UTC")))
    assert (plan.state.missed, plan.minute) == ({}, 60)
