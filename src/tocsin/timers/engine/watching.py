"""Monitors of schedules: what becomes of a monitor's row after a look at the schedule that it watches. Pure.

Nothing is sent to such a monitor. Its row is due when it is time to look at the schedule's durable row and at the runs that
have ended since the last look, which its owner reads (`tocsin.timers.engine.schedule_looks`). So no report can be lost, and
a look that is repeated finds the same (ADR 123).

An occurrence should have ended a grace after its instant. What keeps it from that, and is not the job's: a pause, an end, a
calendar, and outages of ours, of which the schedule's shard has its own (rule 33).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from tocsin.model.hooks import Event
from tocsin.model.instants import US_PER_SECOND, format_instant
from tocsin.model.monitor import PERIODS_MAX, Monitor, MonitorDefinition, MonitorState, MonitorStatus, Watched
from tocsin.model.period import Period, PeriodStatus
from tocsin.model.run import FAILED_RUNS, MissedInstants, Run, RunStatus, source_of
from tocsin.model.schedule import LastOccurrence, Missed, Source, State
from tocsin.model.timer import Status, Timer
from tocsin.timers.engine.monitoring import TROUBLE, MonitorTurn, Outage, monitor_of

#: The first look at an occurrence comes so long after its instant, and one after its deadline, by which a hand-over of its
#: shard is over and a result is written: only then it is late.
_FIRST_US, _SETTLED_US = 2 * US_PER_SECOND, 5 * US_PER_SECOND
#: No two looks are closer, unless a deadline or a repetition is between them, or further apart: so late a change of the
#: schedule is seen.
_LOOK_US_MIN, LOOK_US_MAX = 2 * US_PER_SECOND, 300 * US_PER_SECOND
#: While it isn't known whether the schedule's shard had an owner, the next look is so much later: nodes record that as often.
_UNDECIDED_US = 10 * US_PER_SECOND
#: Why instants did not fire that should have, in words.
_UNWANTED = {
    Missed.LATE: "it could not fire in time",
    Missed.OVERLAP: "the occurrence before had not ended",
    Missed.WINDOW: "it was too late for it",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look has found: the schedule's row, if there is one; the runs that have ended since the last look, oldest first,
    and the generation that none of them has; `more`: others have ended since, for the next look. `at` is when it began,
    `held` whether the namespace fires nothing: then nothing was read. `outages` are those of the schedule's shard, known
    until `known_until`. `changed_at` is when the namespace was changed last."""

    at: int
    schedule: Timer | None
    generation: bytes
    runs: Sequence[Run] = ()
    more: bool = False
    held: bool = False
    outages: Sequence[Outage] = ()
    known_until: int = 0
    changed_at: int = 0


@dataclass(frozen=True, slots=True)
class _Open:
    """An occurrence that has not ended: its instant, and until when it should have; by its grace, and by the outages."""

    instant: int
    due: int
    deadline: int
    outages: tuple[Outage, ...] = ()


def watched(timer: Timer, seen: Seen, now_us: int) -> MonitorTurn:
    """What becomes of the monitor's row."""
    definition, state = monitor_of(timer)
    before = state.watched
    quiet_at = now_us if before is None else _quiet_until(before, seen)
    ended = [] if before is None else list(_ended(definition, before, seen, quiet_at))
    reported: list[tuple[Event, str]] = []
    results = [each for each in ended if each.ended_at is not None]
    status = state.status
    if results:
        if status is not MonitorStatus.FAILED and any(each.state is PeriodStatus.FAILED for each in results):
            reported.append((Event.LATE, "failed"))
        status = MonitorStatus.FAILED if results[-1].state is PeriodStatus.FAILED else MonitorStatus.UP
        if status is MonitorStatus.UP and (state.status in TROUBLE or reported):
            reported.append((Event.RECOVERY, "recovered"))
    schedule = _firing(seen)
    quiet_at = now_us if schedule is None else quiet_at
    found = None if schedule is None else _open(definition, state, schedule, seen, quiet_at, resolved=bool(results))
    notified_at = 0 if before is None else before.notified_at
    if found is not None and seen.at >= found.deadline + _SETTLED_US and seen.known_until >= found.deadline:
        again = definition.repeat_us is not None and now_us >= notified_at + definition.repeat_us
        if status is not MonitorStatus.LATE or again:
            status, notified_at = MonitorStatus.LATE, now_us
            reported.append((Event.LATE, "late"))
    last = None if seen.schedule is None else _state(seen.schedule).last
    # What has ended before the first look counts for nothing.
    known = Watched(ended_at=seen.at) if before is None else before
    after = msgspec.structs.replace(
        state,
        status=status,
        since=state.since if status is state.status else now_us,
        last_ping=max([state.last_ping or 0, *(each.ended_at or 0 for each in results)]) or None,
        expected=None if found is None else found.instant,
        opens=0 if found is None else found.instant,
        due=None if found is None else found.due,
        deadline=None if found is None else found.deadline,
        excused_from=found.outages[0].from_us if found is not None and found.outages else None,
        excused_until=found.outages[-1].until_us if found is not None and found.outages else None,
        started=None if schedule is None or found is None else schedule.first_attempt_at,
        watched=before
        if before is None and seen.held
        else Watched(
            seen.generation or known.generation,
            known.ended_at if last is None or seen.more else max(known.ended_at, last.finished_at),
            known.missed if seen.schedule is None or seen.more else _missed(_state(seen.schedule)),
            now_us,
            quiet_at,
            notified_at,
        ),
    )
    turn = MonitorTurn(
        msgspec.structs.replace(timer, updated_at=now_us, monitor=Monitor(definition, after)), None, ended, reported
    )
    turn.at = now_us if seen.more else _next_look(definition, after, found, now_us)
    return turn


def _next_look(definition: MonitorDefinition, state: MonitorState, found: _Open | None, now_us: int) -> int:
    """When to look again: soon after an occurrence's instant, then as much later as it has lasted, and after its deadline."""
    latest = now_us + LOOK_US_MAX
    if found is None:
        return latest
    base, settled = found.due - definition.grace_us, found.deadline + _SETTLED_US
    if base >= now_us:
        return min(base + _FIRST_US, settled, latest)
    at = min(now_us + max(now_us - base, _LOOK_US_MIN), latest)
    if state.status is not MonitorStatus.LATE:
        at = min(at, settled if settled > now_us else now_us + _UNDECIDED_US)
    elif definition.repeat_us is not None:
        assert state.watched is not None
        at = min(at, max(state.watched.notified_at + definition.repeat_us, now_us + _LOOK_US_MIN))
    return at


def needed_at_us(timer: Timer, at_us: int, acted_us: int) -> int | None:
    """The first instant at which a look finds something new, of a monitor whose next look is at `at_us`, if nothing happens
    until then but looks, and nothing has happened since `acted_us`; None if there is none."""
    definition, state = monitor_of(timer)
    if timer.updated_at <= acted_us:
        return at_us
    if state.deadline is None:
        return None
    if state.status is not MonitorStatus.LATE:
        return max(at_us, state.deadline + _SETTLED_US)
    if definition.repeat_us is None or state.watched is None:
        return None
    return max(at_us, state.watched.notified_at + definition.repeat_us)


def _quiet_until(before: Watched, seen: Seen) -> int:
    """Until when nothing was expected: when the last look found that, or after that one, when the namespace was resumed."""
    was_quiet = before.quiet_at >= before.looked_at
    return max(before.quiet_at, min(seen.changed_at, seen.at)) if was_quiet else before.quiet_at


def _firing(seen: Seen) -> Timer | None:
    """The schedule's row, if an occurrence is expected of it."""
    timer = seen.schedule
    if timer is None or timer.status is not Status.PENDING or seen.held:
        return None
    state = _state(timer)
    return None if state.waits or (state.paused is not None and state.source is not Source.TRIGGER) else timer


def _open(
    definition: MonitorDefinition, state: MonitorState, schedule: Timer, seen: Seen, quiet_at: int, *, resolved: bool
) -> _Open:
    """The occurrence that is expected; an earlier one if it was overtaken, and none has ended since (`resolved`). What was
    before the last look that expected nothing, or before a client's change, counts from then on."""
    current, before = _state(schedule), state.watched
    last = 0 if current.last is None else current.last.finished_at
    instant = schedule.execute_at
    if current.source is not Source.REGULAR:
        # What is asked for by hand may have to wait until the occurrence before has ended; the others follow it at once.
        turn = max(instant, last) if current.source is Source.TRIGGER else schedule.updated_at
        instant = schedule.first_attempt_at or turn
    floor = max(quiet_at, current.changed_at)
    if (
        state.expected is not None
        and before is not None
        and not resolved
        and state.expected < instant
        and current.changed_at <= before.looked_at
        and _missed(current) > before.missed
        and not _during(seen.outages, state.expected, state.deadline or instant)
    ):
        instant = state.expected
    elif state.expected is not None and state.status is MonitorStatus.LATE and not resolved:
        # It stays the one that is late, until another one ends.
        instant = min(instant, state.expected)
    base = max(_in_turn(instant, quiet_at, last), floor)
    return _until(instant, base, definition.grace_us, seen.outages, last)


def _until(instant: int, base: int, grace_us: int, outages: Sequence[Outage], before_us: int) -> _Open:
    """Until when an occurrence should end that is expected at `base`. By each outage it may be later; what waited for its
    turn after one counts from the end of the occurrence before, `before_us`."""
    due = deadline = base + grace_us
    met, until = [], base
    for each in sorted(outages):
        if each.until_us > base and each.from_us < deadline:
            deadline += max(each.until_us - max(each.from_us, until), 0)
            until = max(until, each.until_us)
            met.append(each)
    if met:
        deadline = max(deadline, before_us + grace_us)
    return _Open(instant, due, deadline, tuple(met))


def _during(outages: Sequence[Outage], from_us: int, until_us: int) -> bool:
    return any(each.until_us > from_us and each.from_us < until_us for each in outages)


# ---------------------------------------------------------------------- what has ended


def _ended(definition: MonitorDefinition, before: Watched, seen: Seen, quiet_at: int) -> Iterator[Period]:
    """The periods that have ended since the last look, oldest first; those of instants that did not fire have no end. Until
    `quiet_at` nothing was expected."""
    previous = before.ended_at
    for run in seen.runs:
        if run.status in FAILED_RUNS or run.status is RunStatus.COMPLETED:
            period = _period(definition, run, seen.outages, previous, quiet_at)
            assert period.ended_at is not None
            previous = max(previous, period.ended_at)
            yield period
        yield from _not_fired(definition, run, seen.outages, quiet_at)
    last = None if seen.schedule is None else _state(seen.schedule).last
    if last is not None and not seen.more and last.finished_at > before.ended_at and not _has(seen.runs, last):
        # Its namespace keeps no run of it.
        failed = last.outcome != RunStatus.COMPLETED
        base = last.instant if last.source is Source.REGULAR else last.finished_at
        base = _in_turn(base, quiet_at, previous)
        until = _until(last.instant, base, definition.grace_us, seen.outages, previous)
        yield Period(
            last.instant,
            until.deadline,
            PeriodStatus.FAILED if failed else _state_of(until, last.finished_at),
            ended_at=last.finished_at,
        )


def _has(runs: Sequence[Run], last: LastOccurrence) -> bool:
    return any(run.execute_at == last.instant and run.status == last.outcome for run in runs)


def _in_turn(base: int, quiet_at: int, before_us: int) -> int:
    """From when on an occurrence has its grace: what was due while nothing was expected is fired afterwards, one after the
    other, each after the end of the one before."""
    return base if base > quiet_at else max(quiet_at, before_us)


def _period(definition: MonitorDefinition, run: Run, outages: Sequence[Outage], previous: int, quiet_at: int) -> Period:
    attempt = run.attempts[-1] if run.attempts else None
    ended_at = run.execute_at if attempt is None else attempt.at + attempt.duration_us
    base = run.execute_at if source_of(run) is Source.REGULAR else run.first_attempt_at or ended_at
    until = _until(run.execute_at, _in_turn(base, quiet_at, previous), definition.grace_us, outages, previous)
    failed = run.status in FAILED_RUNS
    state = PeriodStatus.FAILED if failed else _state_of(until, ended_at)
    note = None
    if failed:
        note = "it was too late for it" if attempt is None else attempt.error
    elif state is PeriodStatus.EXCUSED:
        note = _because_of(until.outages)
    return Period(run.execute_at, until.deadline, state, started_at=run.first_attempt_at, ended_at=ended_at, note=note)


def _state_of(until: _Open, ended_at: int) -> PeriodStatus:
    if ended_at <= until.due:
        return PeriodStatus.ON_TIME
    return PeriodStatus.EXCUSED if ended_at <= until.deadline else PeriodStatus.LATE


def _not_fired(definition: MonitorDefinition, run: Run, outages: Sequence[Outage], quiet_at: int) -> Iterator[Period]:
    for each in run.missed:
        why = _UNWANTED.get(Missed(each.reason))
        if why is None or each.last_at <= quiet_at:
            continue
        first_at, instants = _later(each, quiet_at)
        deadline = each.last_at + definition.grace_us
        # One that had not ended was in the way whether or not there was an outage afterwards.
        until = each.last_at if each.reason == Missed.OVERLAP else deadline
        met = tuple(out for out in sorted(outages) if _during((out,), first_at, until))
        yield Period(
            first_at,
            deadline,
            PeriodStatus.EXCUSED if met else PeriodStatus.MISSED,
            note=_because_of(met) if met else why,
            periods=min(instants, PERIODS_MAX),
        )


def _later(missed: MissedInstants, quiet_at: int) -> tuple[int, int]:
    """The first of the instants after `quiet_at`, and how many there are from it on, as if all were equally far apart."""
    if missed.first_at > quiet_at:
        return missed.first_at, missed.instants
    apart = max((missed.last_at - missed.first_at) // max(missed.instants - 1, 1), 1)
    more = (missed.last_at - quiet_at - 1) // apart
    return missed.last_at - more * apart, 1 + more


def _because_of(outages: Sequence[Outage]) -> str:
    return f"Tocsin fired nothing from {format_instant(outages[0].from_us)} to {format_instant(outages[-1].until_us)}"


def _state(schedule: Timer) -> State:
    assert schedule.schedule is not None
    return schedule.schedule.state


def _missed(state: State) -> int:
    return sum(state.missed.get(reason, 0) for reason in _UNWANTED)
