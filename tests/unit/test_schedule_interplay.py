"""What triggers, pauses, backfills and the next instant of a schedule make of one another."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.support.cases import each
from tests.unit.test_schedules import BEGIN, MINUTE, SECOND, UUID, Plan

from tocsin.model.calendar import Calendar, Calendars
from tocsin.model.instants import INSTANT_MAX, INSTANT_MIN, US_PER_DAY
from tocsin.model.schedule import CatchUp, Fire, Pause, Refill, Resume, ScheduleChange, Skip, Source, Unskip
from tocsin.model.timer import Status
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


@each("catch_up", CatchUp)
def test_a_trigger_of_a_paused_schedule_is_tried_again(catch_up: CatchUp) -> None:
    plan = Plan(catch_up=catch_up)
    plan.ask(Pause())
    plan.now = BEGIN + 3 * MINUTE
    plan.ask(Fire())
    assert plan.timer is not None
    name = plan.timer.firing
    turn = plan.answered(Status.PENDING, again_at=plan.now + 10 * MINUTE, last_error="503")
    assert (turn.at, turn.timer.firing, plan.state.counts) == (plan.now + 10 * MINUTE, name, {})
    assert recurring.suspended_reason(plan.timer) is None
    plan.now += 10 * MINUTE
    # The receiver asks for another call.
    plan.answered(Status.PENDING, again_at=plan.now + MINUTE, firing=recurring.postponed(plan.timer))
    assert (plan.timer.firing, plan.state.counts) == (f"{name}.1", {})
    plan.answered()
    assert (plan.state.counts, recurring.suspended_reason(plan.timer)) == ({"completed": 1}, "schedule:paused")


def test_a_pause_ends_a_trigger_that_was_asked_for_before_it() -> None:
    plan = Plan()
    plan.ask(Fire())
    plan.now += SECOND
    plan.ask(Pause(), in_flight=True)
    plan.answered(Status.PENDING, again_at=plan.now + SECOND, last_error="503")
    assert plan.state.counts == {"failed": 1}


def test_a_trigger_that_had_to_wait_does_not_expire() -> None:
    plan = Plan()
    assert plan.timer is not None
    plan.timer.expire_after_us = SECOND
    assert plan.timer.expires_at == BEGIN + MINUTE + SECOND
    plan.ask(Fire())
    assert plan.state.source is Source.TRIGGER
    assert msgspec.structs.replace(plan.timer).expires_at is None


def paused_after(status: Status, **changes: object) -> Plan:
    """A schedule that is paused during another attempt of its first occurrence."""
    plan = Plan()
    plan.now = BEGIN + MINUTE
    plan.answered(status, again_at=plan.now + SECOND, **changes)
    plan.now += SECOND
    plan.ask(Pause(), in_flight=True)
    return plan


def test_a_trigger_of_a_paused_schedule_does_not_wait_for_a_result_that_was_lost() -> None:
    plan = paused_after(Status.PENDING, last_error="503")
    assert plan.timer is not None
    plan.ask(Fire(), in_flight=True)
    assert plan.state.source is Source.REGULAR
    turn = plan.ask(Fire())
    assert isinstance(turn, Turn)
    assert (plan.state.source, plan.state.counts, len(plan.state.triggers)) == (Source.TRIGGER, {"failed": 1}, 2)
    assert recurring.suspended_reason(plan.timer) is None
    assert (turn.run is not None and turn.run.status, turn.changed) == (Status.FAILED, "triggered")


def test_a_trigger_of_a_paused_schedule_waits_for_a_result_from_a_former_owner_until_the_retry_is_due() -> None:
    plan = Plan()
    plan.now = BEGIN + MINUTE
    assert plan.timer is not None
    plan.timer, plan.at = recurring.left(plan.timer), plan.now + SECOND
    plan.ask(Pause())
    plan.ask(Fire())
    assert (plan.state.source, plan.state.away) == (Source.REGULAR, True)
    plan.now += SECOND
    turn = plan.ask(Fire())
    assert isinstance(turn, Turn)
    assert (plan.state.source, plan.state.away, turn.run) == (Source.TRIGGER, False, None)
    plan.answered()
    plan.ask(Resume())
    assert (plan.state.counts, plan.state.missed) == ({"completed": 1}, {"paused": 1})


def test_jitter_has_no_room_at_the_last_instant_of_all() -> None:
    plan = Plan(every_us=US_PER_DAY, anchor=INSTANT_MAX, start_at=INSTANT_MAX, jitter_us=SECOND)
    assert plan.timer is not None
    assert plan.timer.execute_at == INSTANT_MAX


@each("rule", ({"cron": "0 9 * * *", "every_us": None, "anchor": None}, {}))
def test_a_backfill_may_begin_at_the_first_instant_of_all(rule: dict[str, Any]) -> None:
    plan = Plan(**rule)
    plan.now += US_PER_DAY
    assert isinstance(plan.ask(Refill(INSTANT_MIN - 1, BEGIN)), Turn)
    assert plan.state.backfills[0].after < INSTANT_MIN + 7 * US_PER_DAY


def test_an_instant_that_passed_as_excluded_does_not_come_late_after_a_trigger() -> None:
    weekends = Calendar("n", "weekends", 0, 0, weekdays=("SAT", "SUN"))
    rule: dict[str, Any] = {"cron": "0 9 * * *", "every_us": None, "anchor": None, "skip": ("weekends",)}
    friday, noon = BEGIN + 60 * MINUTE, BEGIN + 2 * US_PER_DAY + 4 * 60 * MINUTE
    plan = Plan(calendars=Calendars([weekends]), **rule)
    assert plan.timer is not None
    assert plan.timer.execute_at == friday
    plan.now = friday
    plan.answered()
    # On Sunday, while it is triggered, Sundays are no longer excluded.
    plan.now = noon
    plan.ask(Fire())
    plan.calendars = Calendars([msgspec.structs.replace(weekends, weekdays=("SAT",), version=2)])
    plan.now += SECOND
    plan.answered()
    assert (plan.timer.execute_at, plan.state.missed) == (friday + 3 * US_PER_DAY, {"excluded": 2})
