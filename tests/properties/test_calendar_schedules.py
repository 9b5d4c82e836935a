"""Schedules with calendars, from one occurrence to the next: with jitter, catch-up, backfills and skips by hand, they fire
at the instants that a slow reckoning leaves, and account for the others."""

from __future__ import annotations

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.properties.test_calendars import BEGIN, CRONS, END, ZONES, calendars, expected, is_excluded, regular, us
from tocsin.model.calendar import Calendar, Calendars
from tocsin.model.occurrences import Occurrences
from tocsin.model.recurrence import Cron
from tocsin.model.schedule import CatchUp, Definition, Missed, OnSkipped, Put, Refill, Schedule, Skip, Source, State
from tocsin.model.timer import Status, Timer
from tocsin.timers.engine import recurring
from tocsin.timers.engine.recurring import Turn
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.engine.schedule_changes import Subject, change

HOUR = 3_600_000_000
DAY = 24 * HOUR
UUID = b"s" * 16
START = us(BEGIN) + 20 * DAY
CATCH_UPS = st.sampled_from(list(CatchUp))
JITTERS = st.sampled_from([0, HOUR // 2, 30 * HOUR])


def definition_of(cron: str, zone: str, jitter: int, catch_up: CatchUp, on_skipped: OnSkipped) -> Definition:
    return Definition(
        cron=cron, time_zone=zone, jitter_us=jitter, catch_up=catch_up, skip=("skip",), on_skipped=on_skipped,
        catch_up_window_us=100 * DAY,
    )  # fmt: skip


def delayed(definition: Definition, nominal: list[int]) -> list[int]:
    """The instants with their jitter, by a schedule that nothing is excluded from."""
    cron = definition.cron or ""
    if definition.on_skipped is OnSkipped.NEXT:
        cron = " ".join([*cron.split()[:2], "* * *"])
    plain = msgspec.structs.replace(definition, cron=cron, skip=(), on_skipped=OnSkipped.NONE)
    rule, occurrences = Cron(cron, definition.time_zone), Occurrences(plain, UUID, 0)
    found = []
    for at in nominal:
        following = rule.after(at)
        assert following is not None
        late = next(each for each in occurrences.following(at - 1) if each >= at)
        assert at <= late < following
        found.append(late)
    return found


def goes_on(cron: str, zone: str, calendar: Calendar, *, moves: bool = False) -> bool:
    """Whether the rule has instants left on later dates, of which the calendar has only weekdays."""
    nominal = expected(Cron(cron, zone), zone, [], [calendar], moves=moves)
    return bool(nominal) and nominal[-1] > us(END) - 20 * DAY


class Bench:
    """One schedule and its clock."""

    def __init__(self, definition: Definition, calendar: Calendar) -> None:
        self.calendars, self.now = Calendars([calendar]), START
        self.fired: list[tuple[Source, int]] = []
        self.missed: list[recurring.MissedRange] = []
        timer = Timer("n", "s", 0, "http://h/", 0, 0, schedule=Schedule(definition, State(0)))
        self.take(self.ask(Put(), timer))

    def ask(self, asked: object, timer: Timer | None = None) -> object:
        live = None if timer is not None else self.timer
        at = 0 if live is None else live.execute_at
        op = WriteOp(OpKind.SCHEDULE, UUID, "n", timer=timer, change=asked)  # type: ignore[arg-type]
        return change(op, Subject(live, None, at, False, "f", self.calendars), self.now)

    def take(self, turn: object) -> None:
        assert isinstance(turn, Turn), turn
        assert turn.timer.status is Status.PENDING
        self.timer, self.at = turn.timer, turn.at
        self.missed += turn.missed
        assert not recurring.has_moved(self.timer, UUID, self.calendars)

    def step(self, late: int) -> None:
        """The next occurrence fires, so late, and is done."""
        self.now = max(self.now, self.at) + late
        while recurring.gives_way(self.timer, UUID, self.now, self.calendars):
            self.take(recurring.move_on(self.timer, UUID, self.now, self.calendars))
            if self.at > self.now:
                self.now = self.at
        assert self.timer.schedule is not None
        self.fired.append((self.timer.schedule.state.source, self.timer.execute_at))
        done = msgspec.structs.replace(self.timer, status=Status.COMPLETED, attempts=1, executed_at=self.now)
        self.take(recurring.recur(self.timer, UUID, done, 0, self.now, self.calendars))

    @property
    def position(self) -> int:
        assert self.timer.schedule is not None
        return self.timer.schedule.state.position


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(CRONS),
    st.sampled_from(ZONES),
    JITTERS,
    CATCH_UPS,
    st.sampled_from(list(OnSkipped)),
    calendars("skip"),
    st.lists(st.sampled_from([0, HOUR, 30 * HOUR, 9 * DAY]), min_size=2, max_size=5),
)
def test_every_instant_fires_or_is_accounted_for(
    cron: str, zone: str, jitter: int, catch_up: CatchUp, on_skipped: OnSkipped, calendar: Calendar, delays: list[int]
) -> None:
    assume(goes_on(cron, zone, calendar))
    definition, rule = definition_of(cron, zone, jitter, catch_up, on_skipped), Cron(cron, zone)
    bench = Bench(definition, calendar)
    for late in delays:
        bench.step(late)
    assume(bench.position < us(END))
    nominal = expected(rule, zone, [], [calendar], moves=on_skipped is OnSkipped.NEXT)
    wanted = [at for at in delayed(definition, nominal) if START < at <= bench.position]
    fired = [at for source, at in bench.fired if source is Source.REGULAR]
    assert sorted(set(fired)) == fired
    assert set(fired) <= set(wanted)
    others = [at for at in wanted if at not in fired]
    ranges = [each for each in bench.missed if each.reason is not Missed.EXCLUDED]
    assert sum(each.instants for each in ranges) == len(others)
    assert all(any(each.first_at <= at <= each.last_at for each in ranges) for at in others)
    excluded = sum(each.instants for each in bench.missed if each.reason is Missed.EXCLUDED)
    if on_skipped is OnSkipped.NEXT:
        assert excluded == 0
        return
    left_out = [at for at in regular(rule, us(BEGIN), us(END)) if is_excluded(at, [], [calendar])]
    assert excluded == sum(START < at <= bench.position for at in delayed(definition, left_out))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(CRONS), st.sampled_from(ZONES), JITTERS, calendars("skip"), st.integers(0, 30), st.integers(1, 20)
)
def test_a_backfill_fires_what_calendars_leave(
    cron: str, zone: str, jitter: int, calendar: Calendar, first: int, days: int
) -> None:
    assume(goes_on(cron, zone, calendar))
    definition, rule = definition_of(cron, zone, jitter, CatchUp.NONE, OnSkipped.NONE), Cron(cron, zone)
    bench = Bench(definition, calendar)
    bench.now = START + 60 * DAY
    after = START + first * DAY
    nominal = expected(rule, zone, [], [calendar], moves=False)
    wanted = [at for at in delayed(definition, nominal) if after < at < after + days * DAY]
    turn = bench.ask(Refill(after, after + days * DAY))
    assert isinstance(turn, Turn) == bool(wanted)
    if not wanted:
        return
    bench.take(turn)
    while len([source for source, _ in bench.fired if source is Source.BACKFILL]) < len(wanted):
        bench.step(0)
    assert [at for source, at in bench.fired if source is Source.BACKFILL] == wanted


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(CRONS), st.sampled_from(ZONES), JITTERS, calendars("skip"), st.sets(st.integers(0, 6), max_size=4)
)
def test_instants_skipped_by_hand_are_left_out_and_counted(
    cron: str, zone: str, jitter: int, calendar: Calendar, skipped: set[int]
) -> None:
    assume(goes_on(cron, zone, calendar))
    definition = definition_of(cron, zone, jitter, CatchUp.ALL, OnSkipped.NEXT)
    plain = Occurrences(definition, UUID, 0, Calendars([calendar]))
    upcoming = [at for at, _ in zip(plain.following(START), range(8), strict=False)]
    assume(len(upcoming) == 8)
    bench = Bench(definition, calendar)
    for number in skipped:
        bench.take(bench.ask(Skip(upcoming[number])))
    for _ in range(8 - len(skipped)):
        bench.step(0)
    assert [at for _, at in bench.fired] == [at for number, at in enumerate(upcoming) if number not in skipped]
    assert sum(each.instants for each in bench.missed) == len(skipped)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(CRONS), st.sampled_from(ZONES), JITTERS, calendars("skip"), calendars("skip"), st.integers(0, 3))
def test_no_row_fires_at_an_instant_that_a_changed_calendar_excludes(
    cron: str, zone: str, jitter: int, before: Calendar, after: Calendar, steps: int
) -> None:
    assume(goes_on(cron, zone, before) and goes_on(cron, zone, after))
    definition = definition_of(cron, zone, jitter, CatchUp.LATEST, OnSkipped.NONE)
    bench = Bench(definition, before)
    for _ in range(steps):
        bench.step(0)
    bench.calendars = Calendars([msgspec.structs.replace(after, version=2)])
    right = Occurrences(definition, UUID, 0, bench.calendars)
    wanted = right.after(bench.position)
    if wanted != bench.timer.execute_at:
        assert recurring.has_moved(bench.timer, UUID, bench.calendars)
    bench.step(0)
    assert right.until(bench.fired[-1][1]) == bench.fired[-1][1]
