"""Schedules: which occurrence follows, and transitions of their rows that random runs meet rarely."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
from tests.support.cases import each
from tests.support.window_bench import Bench, at_once

from tocsin.model.calendar import NO_CALENDARS, Calendars
from tocsin.model.errors import (
    BacklogFull,
    InvalidInput,
    ScheduleEnded,
    TocsinError,
    Unavailable,
    VersionConflict,
)
from tocsin.model.run import source_of
from tocsin.model.schedule import (
    REPLAYS_MAX,
    TRIGGERS_MAX,
    CatchUp,
    Definition,
    DefinitionChanges,
    Edit,
    FailedOccurrence,
    Fire,
    Pause,
    Put,
    Refill,
    Remove,
    Replay,
    Resume,
    Schedule,
    ScheduleChange,
    Source,
    State,
)
from tocsin.model.timer import Changes, Status, Timer, decode_record
from tocsin.timers.engine import recurring, schedule_changes
from tocsin.timers.engine.assembly import RECKONING_MAX
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.recurring import MissedRange, Turn
from tocsin.timers.engine.rows import (
    ExistingRow,
    FinalAttempt,
    LoadRequest,
    NextAttempt,
    OpKind,
    Row,
    WriteOp,
    conclusion_op,
    decoded_row,
)
from tocsin.timers.engine.runs import ended_run

SECOND = 1_000_000
MINUTE = 60 * SECOND
UUID = b"s" * 16
BEGIN = 1_800_000_000 * SECOND


def template(**definition: object) -> Timer:
    """What a client sends."""
    rule = Definition(**{"every_us": MINUTE, "anchor": BEGIN, **definition})  # type: ignore[arg-type]
    return Timer("n", "s", 0, "http://h/", 0, 0, schedule=Schedule(rule, State(0)))


class Plan:
    """A schedule's row, changed and answered without a window."""

    def __init__(self, now: int = BEGIN, calendars: Calendars = NO_CALENDARS, **definition: object) -> None:
        self.calendars = calendars
        self.now, self.at, self.count = now, 0, 0
        self.timer: Timer | None = None
        self.turn: Turn | None = None
        self.ask(Put(), timer=template(**definition))

    def ask(
        self,
        change: ScheduleChange,
        *,
        in_flight: bool = False,
        timer: Timer | None = None,
        changes: Changes | None = None,
    ) -> Turn | Timer | TocsinError:
        self.count += 1
        op = WriteOp(OpKind.SCHEDULE, UUID, "n", timer=timer, changes=changes or Changes(), change=change)
        live = self.timer if self.timer is not None and self.timer.status is Status.PENDING else None
        found = schedule_changes.Subject(live, self.timer, self.at, in_flight, str(self.count), self.calendars)
        outcome = schedule_changes.change(op, found, self.now)
        return self.took(outcome) if isinstance(outcome, Turn) else outcome

    def took(self, turn: Turn) -> Turn:
        self.turn, self.timer, self.at = turn, turn.timer, turn.at
        return turn

    def answered(self, status: Status = Status.COMPLETED, *, again_at: int = 0, **changes: object) -> Turn:
        """The attempt's result at this moment."""
        assert self.timer is not None
        fields = {"status": status, "attempts": self.timer.attempts + 1, "first_attempt_at": self.now, **changes}
        result = msgspec.structs.replace(self.timer, **fields)
        return self.took(recurring.recur(self.timer, UUID, result, again_at, self.now, self.calendars))

    @property
    def state(self) -> State:
        assert self.timer is not None
        assert self.timer.schedule is not None
        return self.timer.schedule.state

    @property
    def minute(self) -> float:
        """The instant of the current occurrence."""
        assert self.timer is not None
        return (self.timer.execute_at - BEGIN) / MINUTE


@each(
    "catch_up, window, follows, missed",
    [
        (CatchUp.LATEST, None, 5, [("overlap", 3, 2, 4)]),
        (CatchUp.NONE, None, 6, [("overlap", 4, 2, 5)]),
        (CatchUp.ALL, None, 2, []),
        (CatchUp.ALL, 2 * MINUTE, 4, [("window", 2, 2, 3)]),
        (CatchUp.LATEST, 2 * MINUTE, 5, [("window", 2, 2, 3), ("overlap", 1, 4, 4)]),
        (CatchUp.LATEST, 0, 6, [("window", 4, 2, 5)]),
    ],
)
def test_instants_that_passed_during_an_attempt(
    catch_up: CatchUp, window: int | None, follows: int, missed: list[tuple[str, int, int, int]]
) -> None:
    plan = Plan(catch_up=catch_up, catch_up_window_us=window)
    assert (plan.minute, plan.at) == (1, BEGIN + MINUTE)
    plan.now = BEGIN + 5 * MINUTE + 30 * SECOND
    turn = plan.answered()
    assert plan.minute == follows
    expected = [
        MissedRange(reason, count, BEGIN + first * MINUTE, BEGIN + last * MINUTE)
        for reason, count, first, last in missed
    ]  # type: ignore[arg-type]
    assert turn.missed == expected
    assert plan.state.missed == {reason: count for reason, count, _, _ in missed}
    assert plan.state.counts == {"completed": 1}


def test_retries_begin_before_the_next_instant_unless_all_are_caught_up() -> None:
    for catch_up, tried in ((CatchUp.LATEST, False), (CatchUp.NONE, False), (CatchUp.ALL, True)):
        plan = Plan(catch_up=catch_up)
        plan.now = BEGIN + MINUTE + SECOND
        plan.answered(Status.PENDING, again_at=BEGIN + 2 * MINUTE - 1, last_error="no")
        assert (plan.minute, plan.timer and plan.timer.attempts, plan.at) == (1, 1, BEGIN + 2 * MINUTE - 1)
        plan.answered(Status.PENDING, again_at=BEGIN + 2 * MINUTE, last_error="no")
        assert (plan.minute == 1) is tried
        assert plan.state.counts == ({} if tried else {"failed": 1})


def test_a_postponed_occurrence_has_another_name_and_is_bounded_likewise() -> None:
    plan = Plan()
    assert plan.timer is not None
    name = plan.timer.firing
    plan.answered(Status.PENDING, again_at=BEGIN + MINUTE + SECOND, attempts=0, firing=recurring.postponed(plan.timer))
    assert (plan.timer.firing, plan.at, plan.minute) == (f"{name}.1", BEGIN + MINUTE + SECOND, 1)
    plan.now = plan.at
    turn = plan.answered(Status.PENDING, again_at=BEGIN + 2 * MINUTE, attempts=0, firing=f"{name}.2")
    assert turn.run is not None
    assert (plan.minute, turn.run.status) == (2, Status.COMPLETED)


def test_triggers_come_first_then_regular_and_backfilled_instants_in_turn() -> None:
    plan = Plan(now=BEGIN + 10 * MINUTE + 1, catch_up=CatchUp.ALL)
    assert plan.minute == 11
    assert isinstance(plan.ask(Refill(BEGIN + 2 * MINUTE, BEGIN + 5 * MINUTE)), Turn)
    assert (plan.minute, plan.state.source, plan.at) == (3, Source.BACKFILL, plan.now)
    plan.ask(Fire(), in_flight=True)
    assert plan.state.source is Source.BACKFILL
    plan.now = BEGIN + 11 * MINUTE
    sources = []
    for _ in range(4):
        plan.answered()
        sources.append((plan.state.source.value, plan.minute if plan.state.source is not Source.TRIGGER else None))
    assert sources == [("trigger", None), ("regular", 11), ("backfill", 4), ("regular", 12)]
    assert plan.state.counts == {"completed": 4}


def test_failed_occurrences_are_replayed_under_their_names_in_turn_with_regular_ones() -> None:
    plan = Plan(catch_up=CatchUp.ALL)
    names = []
    for minute in (1, 2):
        plan.now = BEGIN + minute * MINUTE
        names.append(plan.timer.firing)
        plan.answered(Status.FAILED)
    plan.now = BEGIN + 9 * MINUTE
    failed = tuple(FailedOccurrence(BEGIN + at * MINUTE, name) for at, name in zip((1, 2), names, strict=True))
    assert isinstance(plan.ask(Replay(failed[:1])), Turn)
    assert isinstance(plan.ask(Refill(BEGIN, BEGIN + 2 * MINUTE)), Turn)
    # What waits already is not taken twice.
    assert isinstance(plan.ask(Replay(failed)), Turn)
    assert isinstance(plan.ask(Replay(failed)), Timer)
    fired = []
    for _ in range(6):
        fired.append((str(plan.state.source), plan.minute, plan.timer.firing in names, plan.at <= plan.now))
        plan.answered()
    assert fired == [
        ("replay", 1, True, True), ("regular", 3, False, True), ("replay", 2, True, True), ("regular", 4, False, True),
        ("backfill", 1, False, True), ("regular", 5, False, True),
    ]  # fmt: skip
    assert not plan.state.replays


def test_replayed_occurrence_is_known_as_a_replay_and_never_too_late() -> None:
    plan = Plan()
    plan.timer.expire_after_us = SECOND
    plan.now = BEGIN + MINUTE
    name = plan.timer.firing
    plan.answered(Status.EXPIRED)
    plan.now += 30 * SECOND
    plan.ask(Replay((FailedOccurrence(BEGIN + MINUTE, name),)))
    assert (plan.state.source, plan.minute, plan.timer.expires_at) == (Source.REPLAY, 1, None)
    turn = plan.answered(Status.FAILED)
    run = ended_run(turn)
    assert run is not None
    assert (run.replay, run.firing, source_of(run)) == (True, name, Source.REPLAY)
    assert plan.state.source is Source.REGULAR


def test_postponed_occurrence_that_is_replayed_and_postponed_again_has_a_new_name() -> None:
    plan = Plan()
    plan.now = BEGIN + MINUTE
    name = recurring.postponed(plan.timer)
    plan.answered(Status.PENDING, again_at=plan.now + SECOND, firing=name)
    plan.answered(Status.FAILED, firing=name)
    plan.ask(Replay((FailedOccurrence(BEGIN + MINUTE, name),)))
    assert plan.timer.firing == name
    assert recurring.postponed(plan.timer) not in (name, name.partition(".")[0])


def test_replays_of_a_paused_schedule_wait_until_it_is_resumed() -> None:
    plan = Plan()
    plan.now = BEGIN + MINUTE
    name = plan.timer.firing
    plan.answered(Status.FAILED)
    plan.ask(Pause())
    plan.ask(Replay((FailedOccurrence(BEGIN + MINUTE, name),)))
    assert recurring.suspended_reason(plan.timer) is not None
    plan.ask(Resume())
    assert plan.state.source is Source.REPLAY


def test_the_backlog_is_bounded() -> None:
    plan = Plan()
    for _ in range(TRIGGERS_MAX):
        assert isinstance(plan.ask(Fire()), Turn)
    assert isinstance(plan.ask(Fire()), BacklogFull)
    assert isinstance(plan.ask(Refill(BEGIN - 1, BEGIN)), InvalidInput)
    many = tuple(FailedOccurrence(BEGIN - number, "s") for number in range(REPLAYS_MAX))
    assert isinstance(plan.ask(Replay(many)), Turn)
    assert isinstance(plan.ask(Replay((FailedOccurrence(BEGIN + 1, "s"),))), BacklogFull)


def test_a_schedule_ends_after_its_last_occurrence_and_begins_again_with_another_definition() -> None:
    plan = Plan(occurrences_max=1)
    plan.now = BEGIN + MINUTE
    turn = plan.answered()
    assert (turn.timer.status, turn.at) == (Status.COMPLETED, plan.now)
    same = plan.ask(Put(), timer=template(occurrences_max=1))
    assert isinstance(same, Timer)
    assert isinstance(plan.ask(Put(), timer=template(occurrences_max=1, every_us=SECOND)), ScheduleEnded)
    assert isinstance(plan.ask(Put(), timer=template(occurrences_max=2)), Turn)
    assert (plan.minute, plan.state.occurrences) == (2, 1)


def test_creating_again_keeps_the_state_and_other_timing_is_planned_after_now() -> None:
    plan = Plan()
    plan.now = BEGIN + 90 * SECOND
    assert isinstance(plan.ask(Put(), timer=template()), Timer)
    plan.ask(Put(), timer=msgspec.structs.replace(template(), url="http://other/"))
    assert plan.minute == 1
    plan.ask(Put(), timer=template(every_us=SECOND))
    assert plan.timer is not None
    assert plan.timer.execute_at == BEGIN + 91 * SECOND
    plan.ask(Put(), in_flight=True, timer=template(every_us=2 * SECOND))
    assert plan.timer.execute_at == BEGIN + 91 * SECOND
    plan.now = BEGIN + 93 * SECOND
    plan.answered()
    assert plan.timer.execute_at == BEGIN + 92 * SECOND


def test_a_pause_lets_the_attempt_end_and_skips_instants() -> None:
    plan = Plan(catch_up=CatchUp.ALL)
    plan.now = BEGIN + MINUTE
    plan.ask(Pause(), in_flight=True)
    assert plan.timer is not None
    assert recurring.suspended_reason(plan.timer) == "schedule:paused"
    plan.answered(Status.PENDING, again_at=plan.now + 1, last_error="no")
    assert (plan.state.counts, recurring.suspended_reason(plan.timer)) == ({"failed": 1}, "schedule:paused")
    plan.ask(Fire())
    assert recurring.suspended_reason(plan.timer) is None
    plan.answered()
    assert recurring.suspended_reason(plan.timer) == "schedule:paused"
    plan.now = BEGIN + 4 * MINUTE
    turn = plan.ask(Resume())
    assert isinstance(turn, Turn)
    assert turn.missed == [MissedRange("paused", 3, BEGIN + 2 * MINUTE, BEGIN + 4 * MINUTE)]  # type: ignore[arg-type]
    assert (plan.minute, recurring.suspended_reason(plan.timer)) == (5, None)


def test_instants_that_pass_while_a_paused_schedule_is_triggered_are_missed_because_of_the_pause() -> None:
    plan = Plan()
    plan.ask(Pause())
    plan.now = BEGIN + 3 * MINUTE
    plan.ask(Fire())
    plan.now = BEGIN + 5 * MINUTE
    plan.answered()
    plan.now = BEGIN + 6 * MINUTE
    plan.ask(Resume())
    assert plan.state.missed == {"paused": 6}
    assert plan.state.counts == {"completed": 1}


def test_a_schedule_pauses_after_failures_in_a_row() -> None:
    plan = Plan(pause_after_failures=2)
    for number in range(1, 3):
        plan.now = BEGIN + number * MINUTE
        assert plan.state.paused is None
        plan.answered(Status.FAILED)
    assert plan.state.paused == "failures"


def test_a_late_row_moves_on_once() -> None:
    plan = Plan()
    assert plan.timer is not None
    assert not recurring.gives_way(plan.timer, UUID, BEGIN + MINUTE + 59 * SECOND)
    late = BEGIN + 4 * MINUTE + 50 * SECOND
    assert recurring.gives_way(plan.timer, UUID, late)
    turn = plan.took(recurring.move_on(plan.timer, UUID, late))
    assert (plan.minute, turn.missed) == (4, [MissedRange("late", 3, BEGIN + MINUTE, BEGIN + 3 * MINUTE)])  # type: ignore[arg-type]
    # Chosen although it is late: however slow the store is, it fires.
    assert not recurring.gives_way(plan.timer, UUID, late + 30 * SECOND)


def test_an_instant_that_is_none_by_newer_time_zones_gives_way() -> None:
    plan = Plan(cron="0 9 * * *", time_zone="Europe/Berlin", every_us=None, anchor=None)
    assert plan.timer is not None
    right = plan.timer.execute_at
    # As if it had been planned before the zone's clocks were moved by an hour.
    early = right - 60 * MINUTE
    for tzdata, gives_way in (("2000.1", True), ("", True), (plan.state.tzdata, False), ("9999.1", False)):
        state = msgspec.structs.replace(plan.state, tzdata=tzdata)
        schedule = Schedule(plan.timer.schedule.definition, state)  # type: ignore[union-attr]
        timer = msgspec.structs.replace(plan.timer, execute_at=early, schedule=schedule)
        assert recurring.gives_way(timer, UUID, early) == gives_way
        assert not recurring.gives_way(msgspec.structs.replace(timer, execute_at=right), UUID, right)
        turn = recurring.move_on(timer, UUID, early)
        assert (turn.timer.execute_at, turn.missed) == (right, [])


# ---------------------------------------------------------------------- the window


class ScheduleBench(Bench):
    """A window with one schedule in its store."""

    def __init__(self) -> None:
        super().__init__()
        self.ask(Put(), timer=template(anchor=0, every_us=SECOND))

    def ask(self, change: ScheduleChange, *, timer: Timer | None = None, changes: Changes | None = None) -> None:
        self.begin(change, timer=timer, changes=changes)
        self.commit(self.assemble())

    def begin(self, change: ScheduleChange, *, timer: Timer | None = None, changes: Changes | None = None) -> None:
        self.window.accept(
            WriteOp(OpKind.SCHEDULE, UUID, "n", timer=timer, changes=changes, change=change, completion=self.answered)
        )

    def renamed(self, url: str) -> None:
        self.ask(Edit(DefinitionChanges()), changes=Changes(url=url))

    def load(self) -> None:
        request = self.window.announce_load((10 * SECOND, b"\xff" * 16))
        if request is not None:
            self.merge(request)

    def merge(self, request: LoadRequest) -> None:
        page = at_once(self.store.load(0, request.after, request.up_to, 100))
        self.window.loaded(request, [decoded_row(row) for row in page.rows], page.complete_to)

    def url(self) -> str:
        """The stored definition."""
        return decode_record(self.stored()[UUID].record).url


def test_a_result_meets_the_definition_of_the_present_row() -> None:
    bench = ScheduleBench()
    bench.fire(SECOND)
    bench.renamed("http://two/")
    assert bench.attempt.row.timer.url == "http://two/"
    assert bench.window.due(SECOND) is None
    assert bench.finish()
    bench.commit(bench.assemble())
    assert bench.url() == "http://two/"
    assert bench.window.due(2 * SECOND) is not None
    assert bench.window.in_flight_count == 0


def test_a_batch_ends_after_a_number_of_changes_even_if_they_are_refused() -> None:
    bench = ScheduleBench()
    for _ in range(RECKONING_MAX):
        change = Edit(DefinitionChanges(cron="0 0 LW * */7"))
        bench.window.accept(WriteOp(OpKind.SCHEDULE, UUID, "n", changes=Changes(), change=change))
    batch = bench.assemble(rows_max=RECKONING_MAX)
    assert {type(answer) for answer in batch.answers} == {InvalidInput}
    assert 0 < len(batch.ops) < RECKONING_MAX == len(batch.ops) + len(bench.window.pending)


def test_a_page_shows_an_attempt_that_outlived_its_claim_the_present_row() -> None:
    bench = ScheduleBench()
    bench.fire(SECOND)
    attempt = bench.attempt
    # Another owner changes the definition.
    bench.claim(1)
    bench.load()
    bench.renamed("http://two/")
    bench.claim(2, orphaned=[attempt])
    bench.load()
    assert bench.window.due(SECOND) is None
    assert bench.finish()
    bench.commit(bench.assemble())
    assert bench.url() == "http://two/"


def test_a_page_read_before_a_change_does_not_bring_the_former_row() -> None:
    bench = ScheduleBench()
    bench.fire(SECOND)
    bench.create(2, b"o" * 16)
    bench.commit(bench.assemble())
    bench.window.truncate(0)
    request = bench.window.announce_load((10 * SECOND, b"\xff" * 16))
    assert request is not None
    former = at_once(bench.store.load(0, request.after, request.up_to, 100))
    bench.renamed("http://two/")
    bench.window.not_sent(bench.attempt)
    bench.window.loaded(request, [decoded_row(row) for row in former.rows], former.complete_to)
    row = bench.window.rows[UUID]
    assert row.timer.url == "http://two/"


def test_a_paused_schedule_whose_request_was_not_sent_does_not_fire() -> None:
    bench = ScheduleBench()
    bench.fire(SECOND)
    bench.ask(Pause())
    bench.window.not_sent(bench.attempt)
    assert bench.window.due(10 * SECOND) is None
    assert bench.stored()[UUID].suspended == "schedule:paused"
    bench.ask(Resume())
    assert bench.window.due(10 * SECOND) is not None


def test_an_identical_definition_writes_nothing() -> None:
    bench = ScheduleBench()
    generation = bench.stored()[UUID].generation
    bench.ask(Put(), timer=template(anchor=0, every_us=SECOND))
    assert isinstance(bench.answers[-1], ExistingRow)
    assert bench.stored()[UUID].generation == generation


def test_a_result_handed_over_meets_a_definition_changed_by_the_next_owner() -> None:
    bench = ScheduleBench()
    bench.fire(SECOND)
    bench.attempt.fired_at = SECOND
    bench.window.hand_over(SECOND)
    bench.commit(bench.assemble())
    identity = bench.attempt.handed_over_as
    assert not bench.window.in_flight_count
    bench.claim(1)
    bench.load()
    # Other timing does not replan it: its attempt has begun.
    bench.ask(Edit(DefinitionChanges(every_us=2 * SECOND)), changes=Changes(url="http://two/"))
    result = msgspec.structs.replace(bench.attempt.row.timer, status=Status.COMPLETED, attempts=1)
    bench.window.accept(conclusion_op(bench.attempt.row, identity, FinalAttempt(result)))
    bench.commit(bench.assemble())
    assert bench.url() == "http://two/"
    schedule = decode_record(bench.stored()[UUID].record).schedule
    assert schedule is not None
    assert sum(schedule.state.counts.values()) == 1
    assert bench.window.rows[UUID].timer.execute_at == 2 * SECOND
    bench.window.accept(conclusion_op(bench.attempt.row, identity, NextAttempt(result, 5)))
    assert bench.assemble().answers == [None]
    assert isinstance(bench.window.rows[UUID], Row)


def test_a_result_that_arrives_during_its_hand_over_is_reported_once() -> None:
    bench = ScheduleBench()
    bench.fire(SECOND)
    bench.attempt.fired_at = SECOND
    bench.window.hand_over(SECOND)
    batch = bench.assemble()
    bench.finish()
    bench.commit(batch)
    assert [op.kind for op in bench.window.pending] == [OpKind.CONCLUDE]
    bench.commit(bench.assemble())
    schedule = decode_record(bench.stored()[UUID].record).schedule
    assert schedule is not None
    assert schedule.state.counts == {"completed": 1}


def test_a_row_put_back_by_a_refused_change_does_not_fire_once_it_is_being_suspended() -> None:
    bench = ScheduleBench()
    row = bench.window.due(SECOND)
    assert row is not None
    # Its destination is busy, and its row waits there.
    bench.window.defer()
    bench.begin(Edit(DefinitionChanges(every_us=2 * SECOND)), changes=Changes())
    bench.window.refuse_clients(Unavailable("no"), 0)
    assert bench.window.due(SECOND) is row
    assert bench.window.holds(row)
    # By now there is no room to wait in.
    bench.window.defer()
    bench.window.suspend(row, "destination:h")
    assert not bench.window.holds(row)


def test_no_attempt_begins_while_a_client_changes_its_schedule() -> None:
    bench = ScheduleBench()
    bench.begin(Edit(DefinitionChanges(every_us=2 * SECOND)), changes=Changes())
    batch = bench.assemble()
    row = bench.window.due(SECOND)
    assert row is not None
    # Otherwise the attempt would overlap with the next occurrence, which the batch plans because none has begun.
    shard = SimpleNamespace(window=bench.window)
    dispatcher = object.__new__(Dispatcher)
    dispatcher.context = SimpleNamespace(calendars_of=lambda namespace: NO_CALENDARS)  # type: ignore[assignment]
    assert Dispatcher._waits(dispatcher, shard, row, SECOND)  # type: ignore[arg-type]
    bench.window.defer()
    bench.commit(batch)
    changed = bench.window.due(2 * SECOND)
    assert changed is not None
    assert not Dispatcher._waits(dispatcher, shard, changed, 2 * SECOND)  # type: ignore[arg-type]


def test_a_change_applies_only_to_the_version_that_it_expects() -> None:
    plan = Plan()
    assert plan.state.version == 1
    for change in (Put(0), Put(2), Edit(expected_version=2)):
        assert isinstance(plan.ask(change, timer=template(every_us=SECOND)), VersionConflict)
    assert isinstance(plan.ask(Put(1), timer=template(every_us=SECOND)), Turn)
    plan.ask(Pause())
    # Triggers are no changes of what is declared.
    plan.ask(Fire())
    assert plan.state.version == 3


def test_a_version_of_a_deleted_schedule_is_none_of_one_that_is_created_again() -> None:
    plan = Plan()
    assert plan.timer is not None
    plan.timer = msgspec.structs.replace(plan.timer, status=Status.CANCELED)
    assert isinstance(plan.ask(Put(0), timer=template(every_us=SECOND)), Turn)
    assert plan.state.version == 2
    assert isinstance(plan.ask(Put(1), timer=template()), VersionConflict)


def test_a_delete_applies_only_to_the_version_that_it_expects() -> None:
    bench = ScheduleBench()
    for version in (2, 0):
        bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n", change=Remove(version), completion=bench.answered))
        bench.commit(bench.assemble())
        assert isinstance(bench.answers[-1], VersionConflict)
    assert UUID in bench.stored()
    bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n", change=Remove(1), completion=bench.answered))
    bench.commit(bench.assemble())
    assert bench.answers[-1] is None


def test_who_manages_a_schedule_stays_unless_another_is_named() -> None:
    plan = Plan(managed_by="shop")

    def mark() -> str | None:
        assert plan.timer is not None
        assert plan.timer.schedule is not None
        return plan.timer.schedule.definition.managed_by

    plan.ask(Put(), timer=template(every_us=SECOND))
    assert mark() == "shop"
    plan.ask(Put(), timer=template(every_us=SECOND, managed_by="other"))
    assert mark() == "other"
    plan.ask(Edit(DefinitionChanges(managed_by=None)))
    assert mark() is None
