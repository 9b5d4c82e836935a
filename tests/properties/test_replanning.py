"""Newer time zones: a waiting row that is planned again waits for what a node with them would have planned, and every instant
on the way is accounted for."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tocsin.model.occurrences import Occurrences
from tocsin.model.schedule import CatchUp, Definition, Replan, Schedule, State
from tocsin.model.timer import Timer
from tocsin.timers.engine import schedule_changes
from tocsin.timers.engine.recurring import Turn
from tocsin.timers.engine.rows import OpKind, WriteOp

SECOND = 1_000_000
HOUR = 3_600 * SECOND
BEGIN = 1_800_000_000 * SECOND
UUID = b"s" * 16
#: Zones whose clocks are fixed: the rules of one zone, before and after an update.
ZONES = [f"Etc/GMT{hours:+}" for hours in range(-14, 13)]


def replanned(timer: Timer, now: int, *, in_flight: bool = False) -> Turn | Timer:
    op = WriteOp(OpKind.SCHEDULE, UUID, "n", change=Replan())
    found = schedule_changes.Subject(timer, None, timer.execute_at, in_flight, "f")
    outcome = schedule_changes.change(op, found, now)
    assert isinstance(outcome, Turn | Timer)
    return outcome


@given(
    st.sampled_from(["0 9 * * *", "30 2 * * MON-FRI", "*/40 */5 * * *", "0 0 1 * *"]),
    st.tuples(st.sampled_from(ZONES), st.sampled_from(ZONES)),
    st.integers(0, 40 * 24).map(lambda hours: BEGIN + hours * HOUR),
    st.integers(0, 30),
    st.sampled_from(list(CatchUp)),
    st.sampled_from([0, HOUR]),
)
def test_a_row_planned_again_accounts_for_every_instant(
    cron: str, zones: tuple[str, str], ended: int, later_hours: int, catch_up: CatchUp, jitter: int
) -> None:
    former, present = (
        Definition(cron=cron, time_zone=zone, catch_up=catch_up, jitter_us=jitter, catch_up_window_us=12 * HOUR)
        for zone in zones
    )
    planned = Occurrences(former, UUID, 0).after(ended)
    assert planned is not None
    # The row waits, and is checked before it is due.
    now = min(ended + later_hours * HOUR, planned - 1)
    schedule = Schedule(present, State(ended, tzdata="2000.1"))
    timer = Timer("n", "s", planned, "http://h/", 0, ended, schedule=schedule, firing=f"s-{planned}")
    right = Occurrences(present, UUID, 0)
    turn = replanned(timer, now)
    if right.after(ended) == planned:
        assert turn is timer
        return
    assert isinstance(turn, Turn)
    at, missed = turn.timer.execute_at, turn.missed
    assert right.until(at) == at > ended
    assert turn.timer.firing == f"s-{at}"
    before = right.count(ended, at - 1)
    assert sum(each.instants for each in missed) == before
    assert all(ended < each.first_at <= each.last_at < at for each in missed)
    assert before == 0 or right.after(ended) <= now  # type: ignore[operator]
    assert replanned(turn.timer, now) is turn.timer


def test_an_occurrence_that_has_begun_is_not_planned_again() -> None:
    definition = Definition(cron="0 9 * * *")
    at = Occurrences(definition, UUID, 0).after(BEGIN)
    assert at is not None
    waiting = Timer(
        "n", "s", at + HOUR, "http://h/", 0, 0, schedule=Schedule(definition, State(BEGIN, tzdata="2000.1"))
    )
    assert isinstance(replanned(waiting, BEGIN), Turn)
    assert replanned(waiting, BEGIN, in_flight=True) is waiting
    tried = msgspec.structs.replace(waiting, attempts=1)
    assert replanned(tried, BEGIN) is tried
