"""What pings, deadlines and clients make of a monitor, and which notifications and periods follow."""

from __future__ import annotations

import msgspec
import pytest

from tocsin.model.errors import MonitorNotFound, VersionConflict
from tocsin.model.hooks import Event
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
    RotateToken,
    hash_token,
    is_token,
    new_token,
)
from tocsin.model.period import PeriodStatus
from tocsin.model.timer import Timer
from tocsin.timers.engine.monitoring import MonitorTurn, Outage, change, overdue

S = 1_000_000
MINUTE = 60 * S
HOUR = 60 * MINUTE
#: A full hour.
START = 1_800_000_000 * S // HOUR * HOUR
CRON = MonitorDefinition(cron="0 * * * *", grace_us=10 * MINUTE)
EVERY = MonitorDefinition(every_us=HOUR, grace_us=10 * MINUTE)
OK, BEGUN, BAD = (Ping(event) for event in (PingEvent.SUCCESS, PingEvent.START, PingEvent.FAIL))


class Watched:
    """A monitor, and all that has come of it."""

    def __init__(self, definition: MonitorDefinition) -> None:
        wanted = Timer("a", "m", START, "", START, START, monitor=Monitor(definition, MonitorState("token")))
        made = change(PutMonitor(), None, wanted, START, ())
        assert isinstance(made, MonitorTurn)
        self.timer, self.at = made.timer, made.at
        self.periods: list[tuple[int, PeriodStatus, int]] = []
        self.reported: list[str] = []
        #: What the shard remembers when clients change the monitor.
        self.outages: list[Outage] = []

    @property
    def state(self) -> MonitorState:
        assert self.timer.monitor is not None
        return self.timer.monitor.state

    def take(self, turn: object) -> None:
        """Writes what has come of the row."""
        assert isinstance(turn, MonitorTurn), turn
        self.timer, self.at = turn.timer, turn.at
        self.periods += [((each.expected_at - START) // MINUTE, each.state, each.periods) for each in turn.periods]
        self.reported += [kind for _, kind in turn.reported]

    def ask(self, asked: MonitorChange, minute: float, wanted: Timer | None = None) -> None:
        """A client's change at a minute."""
        self.take(change(asked, self.timer, wanted, START + int(minute * MINUTE), self.outages))

    def alarm(self, *outages: Outage) -> float:
        """The row's instant comes; returns its minute."""
        assert self.at is not None
        at = self.at
        self.take(overdue(self.timer, at, outages))
        return (at - START) / MINUTE


def outage(first: float, last: float, *, lossy: bool = True) -> Outage:
    """An outage from one minute to another."""
    return Outage(START + int(first * MINUTE), START + int(last * MINUTE), lossy)


@pytest.mark.parametrize("definition", [CRON, EVERY])
def test_new_monitor_waits_for_its_first_report(definition: MonitorDefinition) -> None:
    watched = Watched(definition)
    assert (watched.state.status, watched.at) == (MonitorStatus.NEW, None)
    watched.ask(OK, 5)
    assert watched.state.status is MonitorStatus.UP
    assert watched.at == START + (70 if definition is CRON else 75) * MINUTE
    assert watched.periods == [(5, PeriodStatus.ON_TIME, 1)]


def test_reports_in_time_end_their_periods_and_notify_nobody() -> None:
    watched = Watched(CRON)
    for minute in (1, 61, 130, 180):
        watched.ask(OK, minute)
    assert watched.periods[1:] == [(hour, PeriodStatus.ON_TIME, 1) for hour in (60, 120, 180)]
    assert watched.reported == []


def test_report_a_little_early_is_that_of_the_coming_period() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.ask(OK, 59.9)
    assert watched.periods[1:] == [(60, PeriodStatus.ON_TIME, 1)]
    assert watched.at == START + 130 * MINUTE


def test_late_job_is_notified_once_and_recovers() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    assert watched.alarm() == 70
    assert (watched.state.status, watched.at, watched.reported) == (MonitorStatus.LATE, None, ["late"])
    watched.ask(OK, 75)
    assert watched.periods[1:] == [(60, PeriodStatus.LATE, 1)]
    assert (watched.state.status, watched.reported) == (MonitorStatus.UP, ["late", "recovered"])
    assert watched.at == START + 130 * MINUTE


@pytest.mark.parametrize(("definition", "first"), [(CRON, 60), (EVERY, 61)])
def test_what_passes_while_it_is_late_is_missed(definition: MonitorDefinition, first: int) -> None:
    watched = Watched(definition)
    watched.ask(OK, 1)
    watched.alarm()
    watched.ask(OK, 245)
    assert watched.periods[1:] == [(first, PeriodStatus.MISSED, 3), (first + 180, PeriodStatus.ON_TIME, 1)]


def test_a_late_job_is_notified_again_if_asked() -> None:
    watched = Watched(msgspec.structs.replace(CRON, repeat_us=30 * MINUTE))
    watched.ask(OK, 1)
    assert [watched.alarm() for _ in range(3)] == [70, 100, 130]
    assert watched.reported == ["late"] * 3


def test_failure_is_notified_once_and_its_end_too() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.ask(msgspec.structs.replace(BAD, exit_code=3, body="password=secret"), 61)
    watched.ask(BAD, 121)
    watched.ask(OK, 181)
    assert watched.periods[1:] == [
        (60, PeriodStatus.FAILED, 1),
        (120, PeriodStatus.FAILED, 1),
        (180, PeriodStatus.ON_TIME, 1),
    ]
    assert watched.reported == ["failed", "recovered"]


def test_secrets_in_a_body_are_not_kept() -> None:
    watched = Watched(CRON)
    turn = change(msgspec.structs.replace(OK, body="password=hunter2"), watched.timer, None, START, ())
    assert isinstance(turn, MonitorTurn)
    assert turn.periods[0].body == "password=[redacted]"


def test_a_job_that_has_started_gets_its_grace_from_then_on() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.ask(BEGUN, 65)
    assert watched.at == START + 75 * MINUTE
    watched.ask(OK, 72)
    assert watched.periods[1:] == [(60, PeriodStatus.ON_TIME, 1)]
    watched.ask(BEGUN, 121)
    assert watched.alarm() == 131


def test_instants_during_a_long_run_are_missed_with_the_reason() -> None:
    watched = Watched(msgspec.structs.replace(CRON, grace_us=5 * HOUR))
    watched.ask(OK, 1)
    watched.ask(BEGUN, 61)
    watched.ask(OK, 185)
    assert watched.periods[1:] == [(120, PeriodStatus.MISSED, 2), (60, PeriodStatus.ON_TIME, 1)]
    assert watched.at == START + (240 + 300) * MINUTE


def test_further_reports_move_what_an_interval_expects_and_end_no_period() -> None:
    watched = Watched(EVERY)
    watched.ask(OK, 1)
    watched.ask(OK, 30)
    assert len(watched.periods) == 1
    assert watched.at == START + 100 * MINUTE
    watched.ask(OK, 61)
    assert watched.periods[1:] == [(90, PeriodStatus.ON_TIME, 1)]


@pytest.mark.parametrize(
    ("further", "at", "expected", "deadline"),
    [([50], 120, 110, 210), ([20, 59], 145, 119, 235), ([50], 175, 110, 265)],
)
def test_a_report_after_further_ones_ends_the_period_that_these_have_moved(
    further: list[int], at: int, expected: int, deadline: int
) -> None:
    """However late the last of them came: it makes no report an early one of the interval after."""
    watched = Watched(msgspec.structs.replace(EVERY, grace_us=30 * MINUTE))
    watched.ask(OK, 0)
    for minute in further:
        watched.ask(OK, minute)
    if at > expected + 30:
        watched.alarm()
    watched.ask(OK, at)
    missed = [(expected, PeriodStatus.MISSED, 1)] if at > expected + 60 else []
    last = expected + 60 * len(missed)
    assert watched.periods[1:] == [*missed, (last, PeriodStatus.ON_TIME, 1)]
    assert watched.at == START + deadline * MINUTE


# ---------------------------------------------------------------------- outages (rule 33)


def test_outage_moves_the_deadline_and_excuses_a_later_report() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    assert watched.alarm(outage(62, 82)) == 70
    # By its length, and as long as further reports may be in memory alone.
    assert watched.at == START + 90 * MINUTE + 10 * S
    watched.ask(OK, 85)
    assert watched.periods[1:] == [(60, PeriodStatus.EXCUSED, 1)]
    assert watched.reported == []


def test_period_whose_report_may_be_lost_notifies_nobody_and_the_next_one_does() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.alarm(outage(62, 63))
    watched.alarm(outage(62, 63))
    assert watched.periods[1:] == [(60, PeriodStatus.EXCUSED, 1)]
    assert watched.reported == []
    assert watched.alarm(outage(62, 63)) == 130
    assert watched.reported == ["late"]


def test_outage_before_the_period_opens_moves_nothing() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    assert watched.alarm(outage(20, 50)) == 70
    assert watched.reported == ["late"]


def test_each_outage_of_a_period_counts_once() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.alarm(outage(62, 64))
    assert watched.at == START + 72 * MINUTE + 10 * S
    watched.alarm(outage(62, 64), outage(71, 72))
    assert watched.at == START + 73 * MINUTE + 20 * S


def test_outages_that_overlap_count_once() -> None:
    """The second owner died before it had recorded that it worked, and the third one the same."""
    once, thrice = Watched(CRON), Watched(CRON)
    for watched in (once, thrice):
        watched.ask(OK, 0)
    once.alarm(outage(65, 95))
    thrice.alarm(outage(65, 80), outage(65, 95), outage(70, 90))
    assert thrice.at == once.at
    assert thrice.state == once.state


def test_an_interval_follows_the_last_end_of_outages_that_overlap() -> None:
    once, twice = Watched(EVERY), Watched(EVERY)
    for watched in (once, twice):
        watched.ask(OK, 0)
    once.alarm(outage(1, 70))
    twice.alarm(outage(1, 70), outage(2, 60))
    assert twice.at == once.at


def test_instants_of_a_long_outage_are_excused_at_once() -> None:
    watched = Watched(MonitorDefinition(cron="* * * * *", grace_us=5 * MINUTE))
    watched.ask(OK, 0)
    half_a_day = outage(0.5, 720.5)
    turns = 0
    while watched.state.status is MonitorStatus.UP:
        watched.alarm(half_a_day)
        turns += 1
    # The last instant of the outage stays open for as long as a report may come.
    excused = [(1, PeriodStatus.EXCUSED, 719), (720, PeriodStatus.EXCUSED, 1)]
    assert watched.periods[1:] == excused
    assert (watched.state.expected, turns) == (START + 721 * MINUTE, 5)
    assert watched.reported == ["late"]


def test_report_after_a_long_outage_is_that_of_the_last_instant() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    hours = outage(65, 300.5)
    watched.alarm(hours)
    watched.alarm(hours)
    assert watched.periods[1:] == [(60, PeriodStatus.EXCUSED, 4)]
    watched.ask(OK, 307)
    assert watched.periods[2:] == [(300, PeriodStatus.ON_TIME, 1)]
    assert watched.at == START + 370 * MINUTE


@pytest.mark.parametrize(("definition", "first"), [(CRON, 60), (EVERY, 61)])
def test_report_after_an_outage_comes_before_the_deadline_has_met_it(definition: MonitorDefinition, first: int) -> None:
    watched = Watched(definition)
    watched.ask(OK, 1)
    watched.outages = [outage(65, 245)]
    watched.ask(OK, 246)
    assert watched.periods[1:] == [(first, PeriodStatus.EXCUSED, 3), (first + 180, PeriodStatus.ON_TIME, 1)]
    assert watched.reported == []


def test_report_after_its_time_is_excused_by_an_outage_in_it() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.outages = [outage(65, 74)]
    watched.ask(OK, 75)
    assert watched.periods[1:] == [(60, PeriodStatus.EXCUSED, 1)]


def test_report_excuses_only_what_outages_may_have_lost() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    assert watched.alarm() == 70
    watched.outages = [outage(-90, -80), outage(190, 195), outage(301, 302), outage(305, 315, lossy=False)]
    watched.ask(OK, 480)
    assert watched.periods[1:] == [
        (60, PeriodStatus.MISSED, 2),
        (180, PeriodStatus.EXCUSED, 1),
        (240, PeriodStatus.MISSED, 1),
        (300, PeriodStatus.EXCUSED, 1),
        (360, PeriodStatus.MISSED, 2),
        (480, PeriodStatus.ON_TIME, 1),
    ]


def test_a_report_leaves_no_more_entries_than_a_store_can_write_at_once() -> None:
    """DynamoDB writes a hundred rows at once, and would refuse each report of a job that was dead through many outages."""
    watched = Watched(CRON)
    watched.ask(OK, 1)
    assert watched.alarm() == 70
    watched.outages = [outage(hour * 60 - 1, hour * 60 + 1) for hour in range(3, 200, 2)]
    watched.ask(OK, 201 * 60)
    *entries, own = watched.periods[1:]
    assert own == (201 * 60, PeriodStatus.ON_TIME, 1)
    assert len(entries) == 40
    assert entries[:3] == [
        (60, PeriodStatus.MISSED, 2),
        (180, PeriodStatus.EXCUSED, 1),
        (240, PeriodStatus.MISSED, 1),
    ]
    assert entries[-1][1] is PeriodStatus.MISSED
    assert sum(number for _, _, number in entries) == 200, "each is accounted for"
    assert watched.state.status is MonitorStatus.UP


@pytest.mark.parametrize(("definition", "first"), [(CRON, 60), (EVERY, 61)])
def test_report_and_alarm_judge_the_last_period_of_an_outage_alike(definition: MonitorDefinition, first: int) -> None:
    watched = Watched(definition)
    watched.ask(OK, 1)
    watched.outages = [outage(65, first + 195)]
    watched.ask(OK, first + 196)
    assert watched.periods[1:] == [(first, PeriodStatus.EXCUSED, 3), (first + 180, PeriodStatus.EXCUSED, 1)]


def test_hand_over_later_than_an_outage_excuses_none_of_what_was_missed() -> None:
    each_minute = MonitorDefinition(cron="* * * * *", grace_us=30 * MINUTE)
    watched = Watched(each_minute)
    watched.ask(OK, 0)
    watched.outages = [outage(0.5, 3.5), outage(20, 20.1, lossy=False)]
    watched.ask(OK, 25)
    assert watched.periods[1:] == [
        (1, PeriodStatus.EXCUSED, 3),
        (4, PeriodStatus.MISSED, 21),
        (25, PeriodStatus.ON_TIME, 1),
    ]


def test_excuse_stays_though_the_shard_has_forgotten_its_outage() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    assert watched.alarm(outage(65, 66)) == 70
    watched.ask(OK, 125)
    assert watched.periods[1:] == [(60, PeriodStatus.EXCUSED, 1), (120, PeriodStatus.ON_TIME, 1)]


def test_instants_during_a_run_are_excused_as_its_end_may_be_lost() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.ask(BEGUN, 60)
    watched.outages = [outage(61, 190)]
    watched.ask(OK, 256)
    assert watched.periods[1:-1] == [(120, PeriodStatus.EXCUSED, 2), (240, PeriodStatus.MISSED, 1)]


def test_an_outage_after_their_deadlines_excuses_no_instants() -> None:
    watched = Watched(MonitorDefinition(cron="* * * * *", grace_us=30 * MINUTE))
    watched.ask(OK, 0)
    watched.ask(BEGUN, 25)
    watched.outages = [outage(50, 51)]
    watched.ask(OK, 56)
    assert watched.periods[1:] == [
        (1, PeriodStatus.EXCUSED, 1),
        (2, PeriodStatus.MISSED, 18),
        (20, PeriodStatus.EXCUSED, 32),
        (52, PeriodStatus.MISSED, 4),
        (56, PeriodStatus.ON_TIME, 1),
    ]


def test_a_report_may_have_come_early_in_an_outage() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.ask(OK, 61)
    watched.outages = [outage(175, 179.9), outage(62, 63)]
    watched.ask(OK, 245)
    assert watched.periods[2:] == [
        (120, PeriodStatus.MISSED, 1),
        (180, PeriodStatus.EXCUSED, 1),
        (240, PeriodStatus.ON_TIME, 1),
    ]


def test_a_longer_grace_excuses_no_job_that_was_late() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    assert watched.alarm() == 70
    longer = msgspec.structs.replace(CRON, grace_us=60 * MINUTE)
    watched.ask(PutMonitor(), 80, msgspec.structs.replace(watched.timer, monitor=Monitor(longer, watched.state)))
    watched.outages = [outage(100, 101)]
    watched.ask(OK, 200)
    assert watched.periods[1][:2] == (60, PeriodStatus.MISSED)


def test_a_report_that_had_to_wait_is_in_time() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.outages = [outage(65, 74, lossy=False)]
    watched.ask(OK, 75)
    assert watched.periods[1:] == [(60, PeriodStatus.ON_TIME, 1)]


def test_only_instants_whose_report_may_be_lost_are_excused_at_once() -> None:
    watched = Watched(MonitorDefinition(cron="* * * * *", grace_us=30 * MINUTE))
    watched.ask(OK, 0)
    outages = outage(0.5, 3.5), outage(20, 20.1, lossy=False)
    watched.alarm(*outages)
    watched.alarm(*outages)
    assert watched.periods[1:] == [(1, PeriodStatus.EXCUSED, 2)]
    assert watched.state.expected == START + 3 * MINUTE


def test_hand_over_moves_the_deadline_but_excuses_nothing() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.alarm(outage(62, 62, lossy=False))
    watched.alarm(outage(62, 62, lossy=False))
    assert watched.reported == ["late"]


def test_by_an_interval_a_lost_report_is_followed_by_another_within_it() -> None:
    watched = Watched(EVERY)
    watched.ask(OK, 1)
    watched.alarm(outage(50, 51))
    assert watched.at == START + (51 + 60 + 10) * MINUTE
    watched.ask(OK, 110)
    assert watched.reported == []
    assert watched.alarm(outage(50, 51)) == 180
    assert watched.reported == ["late"]


# ---------------------------------------------------------------------- changes


def test_paused_monitor_expects_nothing_and_goes_on_with_the_next_instant() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.ask(PauseMonitor(), 2)
    assert watched.at is None
    watched.ask(OK, 61)
    assert watched.state.status is MonitorStatus.PAUSED
    watched.ask(ResumeMonitor(), 190)
    assert watched.at == START + 250 * MINUTE


@pytest.mark.parametrize("how", ["paused", "watches a schedule"])
def test_what_a_late_job_has_not_reported_is_kept_though_no_report_will_end_it(how: str) -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    assert watched.alarm() == 70
    watched.outages = [outage(179, 181)]
    # The deadline of the fifth hour is still to come.
    if how == "paused":
        watched.ask(PauseMonitor(), 305)
    else:
        of_schedule = Monitor(MonitorDefinition(schedule="s"), MonitorState(""))
        watched.ask(PutMonitor(), 305, Timer("a", "m", START, "", START, START, monitor=of_schedule))
    assert watched.periods[1:] == [
        (60, PeriodStatus.MISSED, 2),
        (180, PeriodStatus.EXCUSED, 1),
        (240, PeriodStatus.MISSED, 1),
    ]
    assert (watched.state.expected, watched.reported) == (None, ["late"])


def test_pause_of_a_job_that_is_not_late_ends_no_period() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    watched.ask(PauseMonitor(), 61)
    assert len(watched.periods) == 1


def test_put_keeps_the_state_and_plans_another_timing_from_now_on() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)

    def wanted(definition: MonitorDefinition) -> Timer:
        return Timer("a", "m", START, "", START, START, monitor=Monitor(definition, MonitorState("")))

    assert change(PutMonitor(), watched.timer, wanted(CRON), START, ()) is watched.timer
    watched.ask(PutMonitor(1), 2, wanted(msgspec.structs.replace(CRON, grace_us=20 * MINUTE)))
    assert (watched.at, watched.state.version) == (START + 80 * MINUTE, 2)
    watched.ask(PutMonitor(), 3, wanted(EVERY))
    assert watched.at == START + 73 * MINUTE
    assert isinstance(change(PutMonitor(1), watched.timer, wanted(CRON), START, ()), VersionConflict)
    assert watched.state.token == "token"


def test_former_token_is_unknown() -> None:
    watched = Watched(CRON)
    watched.ask(RotateToken("other"), 1)
    refused = change(msgspec.structs.replace(OK, token="token"), watched.timer, None, START, ())
    assert isinstance(refused, MonitorNotFound)


def test_tokens_are_random_and_recognised_by_their_form() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == len({hash_token(token) for token in tokens}) == 100
    assert all(map(is_token, tokens))
    assert not any(map(is_token, ("", "x" * 21, "x" * 23, "é" * 22, "a/b" + "x" * 19)))


def test_only_late_and_recovered_have_hooks() -> None:
    watched = Watched(CRON)
    watched.ask(OK, 1)
    turn = overdue(watched.timer, START + 70 * MINUTE, ())
    assert turn.reported == [(Event.LATE, "late")]
