"""What a look at a schedule makes of the monitor that watches it, and which notifications and periods follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tocsin.model.monitor import (
    Monitor,
    MonitorChange,
    MonitorDefinition,
    MonitorState,
    MonitorStatus,
    PauseMonitor,
    Ping,
    PingEvent,
    PutMonitor,
    ResumeMonitor,
)
from tocsin.model.period import PeriodStatus
from tocsin.model.run import MissedInstants, Run, RunStatus
from tocsin.model.schedule import Definition, LastOccurrence, Missed, Schedule, Source, State
from tocsin.model.timer import LoggedAttempt, Timer
from tocsin.timers.engine.monitoring import MonitorTurn, Outage, change
from tocsin.timers.engine.watching import LOOK_US_MAX, Seen, watched

S = 1_000_000
MINUTE = 60 * S
HOUR = 60 * MINUTE
#: A full hour, long after the schedule was changed last.
START = 1_800_000_000 * S // HOUR * HOUR
GRACE = 10 * MINUTE
HOURLY = MonitorDefinition(schedule="s", grace_us=GRACE)


def schedule(instant: int, *, ended: Run | None = None, **state: Any) -> Timer:
    """The schedule's row with the occurrence of this instant."""
    state.setdefault("changed_at", START - HOUR)
    if ended is not None:
        at = ended.attempts[-1].at + ended.attempts[-1].duration_us
        state["last"] = LastOccurrence(ended.execute_at, Source.REGULAR, ended.status, at, ended.made)
    found = Schedule(Definition(cron="0 * * * *"), State(instant - 1, **state))
    return Timer("a", "s", instant, "http://x/", START - HOUR, START - HOUR, schedule=found)


def run(instant: int, ended_at: int, status: RunStatus = RunStatus.COMPLETED, **more: Any) -> Run:
    """An occurrence that took a second."""
    attempt = LoggedAttempt(ended_at - S, S, 200 if status is RunStatus.COMPLETED else 500, more.pop("error", None))
    return Run(instant, status, f"s-{instant}", 1, ended_at - S, (attempt,), **more)


class Watching:
    """A monitor of an hourly schedule, and all that has come of it. Each look reads what is given."""

    def __init__(self, definition: MonitorDefinition = HOURLY) -> None:
        wanted = Timer("a", "m", START, "", START, START, monitor=Monitor(definition, MonitorState("token")))
        self.timer = wanted
        self.at: int | None = None
        self.periods: list[tuple[int, PeriodStatus, int]] = []
        self.reported: list[str] = []
        self.generation = 0
        self._take(change(PutMonitor(), None, wanted, START, ()))

    @property
    def state(self) -> MonitorState:
        assert self.timer.monitor is not None
        return self.timer.monitor.state

    @property
    def status(self) -> MonitorStatus:
        return self.state.status

    def _take(self, turn: object) -> None:
        assert isinstance(turn, MonitorTurn), turn
        self.timer, self.at = turn.timer, turn.at
        self.periods += [((each.expected_at - START) // MINUTE, each.state, each.periods) for each in turn.periods]
        self.reported += [what for _, what in turn.reported]

    def change(self, asked: MonitorChange, at: int, wanted: Timer | None = None) -> None:
        self._take(change(asked, self.timer, wanted, at, ()))

    def look(
        self,
        at: int,
        found: Timer | None,
        *runs: Run,
        outages: Sequence[Outage] = (),
        held: bool = False,
        known_until: int | None = None,
        began: int | None = None,
        changed: int = 0,
    ) -> None:
        self.generation += 1
        until = at if known_until is None else known_until
        seen = Seen(
            at if began is None else began,
            found,
            self.generation.to_bytes(32, "big"),
            runs,
            False,
            held,
            outages,
            until,
            changed,
        )
        self._take(watched(self.timer, seen, at))


def test_monitor_of_a_schedule_looks_at_once_and_then_after_the_next_instant() -> None:
    monitor = Watching()
    assert monitor.at == START
    monitor.look(START, schedule(START + 2 * MINUTE))
    assert (monitor.status, monitor.state.expected) == (MonitorStatus.NEW, START + 2 * MINUTE)
    assert monitor.at == START + 2 * MINUTE + 2 * S
    monitor.look(START + S, schedule(START + HOUR))
    assert monitor.at == START + S + LOOK_US_MAX, "a change of the schedule is seen by then"


def test_occurrences_that_end_in_time_are_periods_on_time() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    ok = run(START + HOUR, START + HOUR + 5 * S)
    monitor.look(START + HOUR + 10 * S, schedule(START + 2 * HOUR, ended=ok), ok)
    assert monitor.periods == [(60, PeriodStatus.ON_TIME, 1)]
    assert (monitor.status, monitor.state.last_ping) == (MonitorStatus.UP, START + HOUR + 5 * S)
    monitor.look(START + HOUR + 20 * S, schedule(START + 2 * HOUR, ended=ok))
    assert len(monitor.periods) == 1
    assert monitor.reported == []


def test_occurrence_that_has_not_ended_is_late_after_its_grace_and_recovers() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    hanging = schedule(START + HOUR)
    monitor.look(START + HOUR + 10 * S, hanging)
    assert monitor.at == START + HOUR + 20 * S
    deadline = START + HOUR + GRACE
    monitor.look(deadline + S, hanging)
    assert monitor.reported == [], "its result may be on its way to the store"
    assert monitor.at == deadline + 5 * S
    monitor.look(deadline + 5 * S, hanging)
    assert (monitor.status, monitor.reported) == (MonitorStatus.LATE, ["late"])
    monitor.look(deadline + MINUTE, hanging)
    assert monitor.reported == ["late"]
    done = run(START + HOUR, deadline + 2 * MINUTE)
    monitor.look(deadline + 3 * MINUTE, schedule(START + 2 * HOUR, ended=done), done)
    assert (monitor.status, monitor.reported) == (MonitorStatus.UP, ["late", "recovered"])
    assert monitor.periods == [(60, PeriodStatus.LATE, 1)]


def test_late_occurrence_is_notified_again_as_often_as_asked() -> None:
    monitor = Watching(msgspec.structs.replace(HOURLY, repeat_us=MINUTE))
    monitor.look(START, schedule(START + HOUR))
    at = START + HOUR + GRACE + 5 * S
    monitor.look(at, schedule(START + HOUR))
    assert monitor.at == at + MINUTE
    monitor.look(at + MINUTE, schedule(START + HOUR))
    assert monitor.reported == ["late", "late"]


def test_failed_occurrence_is_notified_once_until_one_succeeds() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    bad = [run(START + n * HOUR, START + n * HOUR + S, RunStatus.FAILED, error="HTTP 500") for n in (1, 2)]
    monitor.look(START + HOUR + 10 * S, schedule(START + 2 * HOUR, ended=bad[0]), bad[0])
    monitor.look(START + 2 * HOUR + 10 * S, schedule(START + 3 * HOUR, ended=bad[1]), bad[1])
    assert (monitor.status, monitor.reported) == (MonitorStatus.FAILED, ["failed"])
    good = run(START + 3 * HOUR, START + 3 * HOUR + S)
    monitor.look(START + 3 * HOUR + 10 * S, schedule(START + 4 * HOUR, ended=good), good)
    assert monitor.reported == ["failed", "recovered"]
    assert [state for _, state, _ in monitor.periods] == [PeriodStatus.FAILED] * 2 + [PeriodStatus.ON_TIME]


def test_failure_between_two_looks_is_notified_although_a_success_followed() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    bad = run(START + HOUR, START + HOUR + S, RunStatus.FAILED)
    good = run(START + 2 * HOUR, START + 2 * HOUR + S)
    monitor.look(START + 2 * HOUR + 10 * S, schedule(START + 3 * HOUR, ended=good), bad, good)
    assert (monitor.status, monitor.reported) == (MonitorStatus.UP, ["failed", "recovered"])


def test_last_occurrence_counts_where_no_runs_are_kept() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    bad = run(START + HOUR, START + HOUR + S, RunStatus.FAILED)
    monitor.look(START + HOUR + 10 * S, schedule(START + 2 * HOUR, ended=bad))
    monitor.look(START + HOUR + 20 * S, schedule(START + 2 * HOUR, ended=bad))
    assert monitor.periods == [(60, PeriodStatus.FAILED, 1)]
    assert monitor.reported == ["failed"]


def test_what_was_before_the_monitor_counts_for_nothing() -> None:
    monitor = Watching()
    bad = run(START - HOUR, START - HOUR + S, RunStatus.FAILED)
    hanging = schedule(START - HOUR // 2, ended=bad)
    monitor.look(START, hanging, bad)
    assert (monitor.periods, monitor.reported) == ([], [])
    monitor.look(START + GRACE, hanging)
    assert monitor.reported == []
    monitor.look(START + GRACE + 5 * S, hanging)
    assert monitor.reported == ["late"], "but from then on it has its grace"


def test_paused_ended_and_deleted_schedules_and_held_namespaces_expect_nothing() -> None:
    overdue = START + HOUR + 2 * GRACE
    for found, held in (
        (schedule(START + HOUR, paused="request"), False),
        (schedule(START + HOUR, waits=True), False),
        (None, False),
        (schedule(START + HOUR), True),
    ):
        monitor = Watching()
        monitor.look(START, schedule(START + HOUR))
        monitor.look(overdue, found, held=held)
        assert (monitor.reported, monitor.state.expected) == ([], None)
        assert monitor.at == overdue + LOOK_US_MAX
        # Once it goes on, the row may be of an old instant for a moment.
        monitor.look(overdue + MINUTE, schedule(START + HOUR))
        assert monitor.reported == []
        assert monitor.state.deadline == overdue + GRACE


def test_changed_schedule_has_its_grace_from_then_on() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    resumed = START + 5 * HOUR
    monitor.look(resumed + MINUTE, schedule(START + HOUR, changed_at=resumed, missed={Missed.PAUSED: 3}))
    assert monitor.reported == []
    assert monitor.state.deadline == resumed + GRACE


def test_excluded_and_skipped_instants_are_not_expected_any_more() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    monitor.look(START + 2 * HOUR + 10 * S, schedule(START + 3 * HOUR, missed={Missed.EXCLUDED: 2}))
    assert (monitor.reported, monitor.state.expected) == ([], START + 3 * HOUR)


def test_instant_that_was_overtaken_is_late_although_the_row_moves_on() -> None:
    """With catch-up of the latest instant, what can't fire is replaced by the next instant again and again."""
    monitor = Watching(msgspec.structs.replace(HOURLY, grace_us=90 * MINUTE))
    monitor.look(START, schedule(START + HOUR))
    for hour in (2, 3):
        missed = MissedInstants(Missed.LATE, 1, START + (hour - 1) * HOUR, START + (hour - 1) * HOUR)
        skipped = Run(START + (hour - 1) * HOUR, RunStatus.MISSED, missed=(missed,))
        monitor.look(
            START + hour * HOUR + MINUTE, schedule(START + hour * HOUR, missed={Missed.LATE: hour - 1}), skipped
        )
    assert monitor.reported == ["late"]
    assert monitor.periods == [(60, PeriodStatus.MISSED, 1), (120, PeriodStatus.MISSED, 1)]
    assert monitor.state.expected == START + HOUR


def test_outage_of_the_schedules_shard_moves_the_deadline_and_excuses() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    outage = Outage(START + HOUR - 5 * MINUTE, START + 2 * HOUR - 5 * MINUTE)
    monitor.look(START + HOUR + GRACE + 5 * S, schedule(START + HOUR), outages=[outage])
    assert monitor.reported == []
    assert monitor.state.deadline == START + 2 * HOUR - 5 * MINUTE + GRACE
    done = run(START + HOUR, START + 2 * HOUR - 4 * MINUTE)
    monitor.look(START + 2 * HOUR - 3 * MINUTE, schedule(START + 2 * HOUR, ended=done), done, outages=[outage])
    assert monitor.reported == []
    assert monitor.periods == [(60, PeriodStatus.EXCUSED, 1)]


def test_instants_that_an_outage_has_missed_are_excused() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    outage = Outage(START + HOUR - MINUTE, START + HOUR + 20 * MINUTE)
    missed = MissedInstants(Missed.WINDOW, 1, START + HOUR, START + HOUR)
    gone = Run(START + HOUR, RunStatus.MISSED, missed=(missed,))
    found = schedule(START + 2 * HOUR, missed={Missed.WINDOW: 1})
    monitor.look(START + HOUR + 40 * MINUTE, found, gone, outages=[outage])
    assert (monitor.reported, monitor.periods) == ([], [(60, PeriodStatus.EXCUSED, 1)])
    assert monitor.state.expected == START + 2 * HOUR


def test_backlog_after_an_outage_waits_for_its_turn() -> None:
    """Occurrences that fire one after the other have their grace from the end of the one before."""
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    outage = Outage(START + HOUR - MINUTE, START + 3 * HOUR)
    done = [run(START + HOUR, START + 3 * HOUR + 8 * MINUTE), run(START + 2 * HOUR, START + 3 * HOUR + 16 * MINUTE)]
    now = START + 3 * HOUR + 17 * MINUTE
    monitor.look(now, schedule(START + 3 * HOUR - MINUTE, ended=done[1]), *done, outages=[outage])
    assert monitor.reported == []
    assert [state for _, state, _ in monitor.periods] == [PeriodStatus.EXCUSED] * 2
    assert monitor.state.deadline == START + 3 * HOUR + 16 * MINUTE + GRACE


def test_nothing_is_late_while_nobody_knows_whether_its_shard_had_an_owner() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    deadline = START + HOUR + GRACE
    monitor.look(deadline + MINUTE, schedule(START + HOUR), known_until=deadline - S)
    assert monitor.reported == []
    assert monitor.at == deadline + MINUTE + 10 * S
    monitor.look(deadline + 2 * MINUTE, schedule(START + HOUR), known_until=deadline)
    assert monitor.reported == ["late"]


def test_look_that_began_before_the_deadline_decides_nothing() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    deadline = START + HOUR + GRACE
    monitor.look(deadline + MINUTE, schedule(START + HOUR), began=deadline - S)
    assert monitor.reported == []


def test_occurrences_by_hand_and_replays_have_their_grace_from_when_they_begin() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    begun = START + 30 * MINUTE
    backfill = schedule(START - HOUR, source=Source.BACKFILL)
    backfill.updated_at = begun
    monitor.look(begun + GRACE, backfill)
    assert monitor.reported == []
    monitor.look(begun + GRACE + 5 * S, backfill)
    assert monitor.reported == ["late"]


def test_occurrence_by_hand_that_has_to_wait_has_its_grace_from_when_it_begins() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    asked, begins = START + HOUR + MINUTE // 2, START + HOUR + 9 * MINUTE
    long = run(START + HOUR, begins)
    by_hand = schedule(asked, ended=long, source=Source.TRIGGER)
    # Asked for again meanwhile.
    by_hand.updated_at = begins + MINUTE
    monitor.look(asked + GRACE + 5 * S, by_hand, long)
    assert (monitor.reported, monitor.state.deadline) == ([], begins + GRACE)
    done = msgspec.structs.replace(run(asked, begins + 2 * MINUTE), firing="m-1", first_attempt_at=begins)
    monitor.look(begins + 3 * MINUTE, schedule(START + 2 * HOUR, ended=done), done)
    assert (monitor.reported, monitor.periods) == ([], [(60, PeriodStatus.ON_TIME, 1)] * 2)


def test_pings_change_nothing_and_a_paused_monitor_begins_again() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    assert change(Ping(PingEvent.FAIL), monitor.timer, None, START + S, ()) is monitor.timer
    monitor.change(PauseMonitor(), START + MINUTE)
    assert monitor.at is None
    resumed = START + 3 * HOUR
    monitor.change(ResumeMonitor(), resumed)
    assert monitor.at is not None
    bad = run(START + HOUR, START + HOUR + S, RunStatus.FAILED)
    monitor.look(resumed, schedule(START + 4 * HOUR, ended=bad), bad)
    assert (monitor.reported, monitor.periods) == ([], [])


def test_late_occurrence_is_kept_when_its_monitor_is_paused() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    late = START + HOUR + GRACE + 5 * S
    monitor.look(late, schedule(START + HOUR))
    monitor.change(PauseMonitor(), late + MINUTE)
    assert monitor.periods == [(60, PeriodStatus.LATE, 1)]


def test_monitor_that_watches_pings_from_now_on_waits_for_the_first() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    pinged = Timer(
        "a", "m", START, "", START, START, monitor=Monitor(MonitorDefinition(every_us=HOUR), MonitorState(""))
    )
    monitor.change(PutMonitor(), START + MINUTE, pinged)
    assert (monitor.at, monitor.status, monitor.state.expected) == (None, MonitorStatus.NEW, None)
    back = Timer("a", "m", START, "", START, START, monitor=Monitor(HOURLY, MonitorState("")))
    monitor.change(PutMonitor(), START + 2 * MINUTE, back)
    assert monitor.at == START + 2 * MINUTE
    assert monitor.state.token == "token"


def test_what_was_before_a_namespace_is_resumed_counts_for_nothing() -> None:
    monitor = Watching()
    monitor.look(START, None, held=True)
    old = run(START - HOUR, START - HOUR + MINUTE, RunStatus.FAILED)
    monitor.look(START + MINUTE, schedule(START + HOUR, ended=old), old)
    monitor.look(START + 2 * MINUTE, schedule(START + HOUR, ended=old))
    assert (monitor.periods, monitor.reported, monitor.status) == ([], [], MonitorStatus.NEW)


def _missed(first: int, last: int, instants: int) -> Run:
    """Instants that did not fire after the occurrence before, which was seen."""
    missed = MissedInstants(Missed.LATE, instants, first, last)
    return Run(first, RunStatus.MISSED, missed=(missed,))


def test_what_was_due_in_a_paused_namespace_has_its_grace_from_when_that_is_resumed() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    monitor.look(START + 3 * HOUR - MINUTE, None, held=True)
    # Not seen by a look, which would come later.
    resumed = START + 3 * HOUR + 2 * MINUTE
    gone = _missed(START + HOUR, START + 2 * HOUR, 2)
    late = run(START + 3 * HOUR, resumed + GRACE - S)
    found = schedule(START + 4 * HOUR, ended=late, missed={Missed.LATE: 2})
    monitor.look(resumed + GRACE, found, gone, late, changed=resumed)
    assert (monitor.reported, monitor.periods) == ([], [(180, PeriodStatus.ON_TIME, 1)])
    # A later change of the namespace is no pause.
    slow = run(START + 4 * HOUR, START + 4 * HOUR + GRACE + S)
    found = schedule(START + 5 * HOUR, ended=slow, missed={Missed.LATE: 2})
    monitor.look(START + 4 * HOUR + GRACE + 2 * S, found, slow, changed=START + 4 * HOUR + MINUTE)
    assert monitor.periods[1:] == [(240, PeriodStatus.LATE, 1)]


def test_what_a_paused_namespace_has_left_waits_for_its_turn() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    resumed = START + 3 * HOUR + MINUTE
    monitor.look(resumed, None, held=True)
    done = [run(START + n * HOUR, resumed + n * 8 * MINUTE) for n in (1, 2)]
    monitor.look(resumed + 17 * MINUTE, schedule(START + 3 * HOUR, ended=done[1]), *done)
    assert (monitor.reported, monitor.periods) == ([], [(60, PeriodStatus.ON_TIME, 1), (120, PeriodStatus.ON_TIME, 1)])
    assert monitor.state.deadline == resumed + 16 * MINUTE + GRACE


def test_of_missed_instants_only_those_count_that_came_after_a_pause() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START + HOUR))
    monitor.look(START + 2 * HOUR, None, held=True)
    found = schedule(START + 5 * HOUR, missed={Missed.LATE: 4})
    monitor.look(START + 4 * HOUR + MINUTE, found, _missed(START + HOUR, START + 4 * HOUR, 4))
    assert monitor.periods == [(180, PeriodStatus.MISSED, 2)]


def test_what_ended_before_a_first_look_that_could_not_read_the_schedule_counts_for_nothing() -> None:
    monitor = Watching()
    monitor.look(START, None)
    old = run(START - HOUR, START - HOUR + MINUTE, RunStatus.FAILED)
    monitor.look(START + MINUTE, schedule(START + HOUR, ended=old))
    assert (monitor.periods, monitor.reported) == ([], [])


def test_look_that_leaves_runs_for_the_next_one_is_followed_by_it_at_once() -> None:
    monitor = Watching()
    monitor.look(START, schedule(START))
    first, last = run(START, START + S), run(START + HOUR, START + HOUR + S)
    now = START + HOUR + MINUTE
    live = schedule(START + 2 * HOUR, ended=last)
    monitor._take(watched(monitor.timer, Seen(now, live, b"1" * 32, [first], more=True, known_until=now), now))
    assert monitor.at == now
    monitor.look(now, live, last)
    assert monitor.periods == [(0, PeriodStatus.ON_TIME, 1), (60, PeriodStatus.ON_TIME, 1)]
