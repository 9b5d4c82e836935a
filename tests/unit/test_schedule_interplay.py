"""What triggers, pauses, backfills and the next instant of a schedule make of one another."""

from __future__ import annotations

from tests.support.cases import each
from tests.unit.test_schedules import BEGIN, MINUTE, SECOND, UUID, Plan

from tocsin.model.schedule import CatchUp, Fire, Refill, ScheduleChange, Skip, Source, Unskip
from tocsin.timers.engine import recurring
from tocsin.timers.engine.recurring import Turn


@each("late", (1, 59 * SECOND))
@each("asked", (Fire(), Skip(BEGIN + 9 * MINUTE), Refill(BEGIN - 2 * MINUTE, BEGIN), Unskip(BEGIN + 8 * MINUTE)))
def test_without_catch_up_an_instant_that_is_due_is_not_given_up_for_another_change(
    late: int, asked: ScheduleChange
) -> None:
    plan = Plan(catch_up=CatchUp.NONE)
    plan.ask(Skip(BEGIN + 8 * MINUTE))
    plan.now = BEGIN + MINUTE + late
    assert isinstance(plan.ask(asked), Turn)
    assert (plan.state.source, plan.minute, plan.state.missed) == (Source.REGULAR, 1, {})
    assert not recurring.gives_way(plan.timer, UUID, plan.now)  # type: ignore[arg-type]
    plan.answered()
    assert (plan.state.missed, plan.state.counts) == ({}, {"completed": 1})
    if isinstance(asked, Fire | Refill):
        assert plan.state.source is (Source.TRIGGER if isinstance(asked, Fire) else Source.BACKFILL)
        plan.answered()
    assert (plan.state.source, plan.minute) == (Source.REGULAR, 2)


def test_without_catch_up_an_instant_outside_the_window_is_given_up() -> None:
    plan = Plan(catch_up=CatchUp.NONE)
    plan.now = BEGIN + MINUTE + 61 * SECOND
    plan.ask(Fire())
    assert (plan.state.source, plan.state.missed) == (Source.TRIGGER, {"late": 2})
