"""Schedules: which occurrence follows, and what an attempt's result or a client's change makes of a schedule's row. Pure.

A row has one current occurrence, with its attempts. It has *begun* when its first attempt has; until then it may give way to
another one. What it stands for leaves the state only when it has ended, so that planning again loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tocsin.model.errors import (
    BacklogFull,
    FieldError,
    InvalidInput,
    ScheduleEnded,
    TocsinError,
    VersionConflict,
)
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.recurrence import tzdata_version
from tocsin.model.schedule import (
    BACKFILLS_MAX,
    PAUSED_AFTER_FAILURES,
    PAUSED_BY_REQUEST,
    REPLAYS_MAX,
    TRIGGERS_MAX,
    Backfill,
    CatchUp,
    Definition,
    Edit,
    Fire,
    LastOccurrence,
    Missed,
    Occurrences,
    Pause,
    Put,
    Refill,
    Remove,
    Replan,
    Replay,
    Resume,
    Schedule,
    Source,
    State,
    Trigger,
    check,
)
from tocsin.model.timer import Status, Timer
from tocsin.timers.engine.rows import WriteOp

#: An occurrence that was late when it was chosen fires all the same for so long, so that one that is chosen again and again
#: because the store is slow fires at last.
_CHOSEN_LATE_US = 60 * US_PER_SECOND
#: No two instants without jitter are closer.
_INTERVAL_MIN_US = US_PER_SECOND
#: Fields of a timer that are no part of what a client defines.
_NOT_DEFINED = {
    "namespace", "id", "execute_at", "created_at", "updated_at", "traceparent", "firing", "attempts", "first_attempt_at",
    "last_error", "attempt_log", "status", "executed_at", "keys", "schedule", "notifies", "failed_before",
    "replay", "reduced",
}  # fmt: skip
_DEFINED = [name for name in Timer.__struct_fields__ if name not in _NOT_DEFINED]


class MissedRange(NamedTuple):
    """Instants that did not fire: how many (at most MISSED_MAX are counted), the first and the last, and why."""

    reason: Missed
    instants: int
    first_at: int
    last_at: int


@dataclass(slots=True)
class Turn:
    """What becomes of a row: its timer and the instant of its key. A timer that is no longer pending has ended. `run` is the
    occurrence that has ended with it. `changed` is what a client's change did."""

    timer: Timer
    at: int
    missed: list[MissedRange] = field(default_factory=list)
    run: Timer | None = None
    changed: str = ""


class _Next(NamedTuple):
    """An occurrence to come."""

    source: Source
    instant: int
    firing: str
    due_at: int


# ---------------------------------------------------------------------- planning


def _of(timer: Timer) -> tuple[Definition, State]:
    assert timer.schedule is not None
    return timer.schedule.definition, timer.schedule.state


def occurrences_of(timer: Timer, uuid: bytes) -> Occurrences:
    """The schedule's regular instants."""
    return Occurrences(_of(timer)[0], uuid, timer.created_at)


def _plan(timer: Timer, uuid: bytes, now_us: int, why: Missed) -> Turn:
    """The row with its next occurrence: triggers first, then regular instants in turn with those that are fired again: first
    replays, then backfills. It ends when none is left. Instants that have to be given up are missed for the reason `why`,
    unless they are too old."""
    definition, state = _of(timer)
    occurrences = occurrences_of(timer, uuid)
    state, backfilled = _backfilled(state, occurrences, now_us)
    again = _replayed(state, now_us) or backfilled
    regular, state, missed = _regular(definition, state, occurrences, now_us, why)
    chosen = _triggered(state) or regular
    if (
        not state.triggers
        and again is not None
        and (regular is None or regular.instant > now_us or state.turn is Source.BACKFILL)
    ):
        chosen = again
    state = msgspec.structs.replace(
        state,
        source=Source.REGULAR if chosen is None else chosen.source,
        missed=_with(state.missed, {each.reason: each.instants for each in missed}),
        away=False,
        postponed=0,
        tzdata=tzdata_version(),
    )
    planned = msgspec.structs.replace(
        timer,
        schedule=Schedule(definition, state),
        updated_at=now_us,
        attempts=0,
        first_attempt_at=None,
        last_error=None,
        attempt_log=(),
        status=Status.PENDING,
        executed_at=None,
    )
    if chosen is None:
        planned.status, planned.executed_at = Status.COMPLETED, now_us
        return Turn(planned, now_us, missed)
    planned.execute_at, planned.firing = chosen.instant, chosen.firing
    return Turn(planned, chosen.due_at, missed)


def _triggered(state: State) -> _Next | None:
    if not state.triggers:
        return None
    first = state.triggers[0]
    return _Next(Source.TRIGGER, first.instant, first.firing, first.instant)


def _replayed(state: State, now_us: int) -> _Next | None:
    if not state.replays:
        return None
    first = state.replays[0]
    return _Next(Source.REPLAY, first.instant, first.firing, now_us)


def _backfilled(state: State, occurrences: Occurrences, now_us: int) -> tuple[State, _Next | None]:
    """The next backfilled instant, and the state without ranges that have none left."""
    for index, (number, after, before) in enumerate((each.number, each.after, each.before) for each in state.backfills):
        at = occurrences.after(after)
        if at is not None and at < before:
            left = msgspec.structs.replace(state, backfills=state.backfills[index:])
            return left, _Next(Source.BACKFILL, at, f"b{number}-{at}", now_us)
    return msgspec.structs.replace(state, backfills=()), None


def _regular(
    definition: Definition, state: State, occurrences: Occurrences, now_us: int, why: Missed
) -> tuple[_Next | None, State, list[MissedRange]]:
    """The next regular instant; the state with its position before it; and what was missed before it."""
    if definition.occurrences_max is not None and state.occurrences >= definition.occurrences_max:
        return None, state, []
    position, oldest = state.position, now_us - definition.window_us
    at = occurrences.after(position)
    if at is not None and at <= now_us:
        if definition.catch_up is CatchUp.ALL:
            at = at if at >= oldest else occurrences.after(oldest - 1)
        else:
            latest = occurrences.until(now_us) if definition.catch_up is CatchUp.LATEST else None
            at = latest if latest is not None and latest >= oldest else occurrences.after(now_us)
        position = now_us if at is None else at - 1
    missed = []
    if position > state.position:
        too_old = (
            max(state.position, min(oldest - 1, position))
            if definition.catch_up is not CatchUp.NONE
            else state.position
        )
        missed += _missed(occurrences, Missed.WINDOW, state.position, too_old)
        missed += _missed(occurrences, why, too_old, position)
        state = msgspec.structs.replace(state, position=position)
    return None if at is None else _Next(Source.REGULAR, at, f"s-{at}", at), state, missed


def _missed(occurrences: Occurrences, reason: Missed, after: int, until: int) -> list[MissedRange]:
    first = occurrences.after(after) if until > after else None
    if first is None or first > until:
        return []
    last = occurrences.until(until)
    assert last is not None
    return [MissedRange(reason, occurrences.count(after, until), first, last)]


def _with(counts: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    if not more:
        return counts
    return {**counts, **{str(name): counts.get(name, 0) + count for name, count in more.items()}}


def suspended_reason(timer: Timer) -> str | None:
    """The reason for which the row is stored suspended, if it is: a paused schedule fires only what is triggered."""
    if timer.schedule is None or timer.schedule.state.paused is None or timer.schedule.state.source is Source.TRIGGER:
        return None
    return "schedule:paused"


def gives_way(timer: Timer, uuid: bytes, now_us: int) -> bool:
    """Whether the due row has to be planned again instead of fired: it is later than the catch-up window allows, a later
    instant has come that takes its place, or by newer rules of its time zone it is not due at its instant."""
    definition, state = _of(timer)
    if state.source is not Source.REGULAR or has_begun(timer):
        return False
    if has_moved(timer, uuid):
        return True
    late_us = now_us - timer.execute_at
    if late_us < _INTERVAL_MIN_US:
        return False
    if timer.updated_at >= timer.execute_at and now_us - timer.updated_at < _CHOSEN_LATE_US:
        return False
    if late_us > definition.window_us:
        return True
    if definition.catch_up is not CatchUp.LATEST:
        return False
    following = occurrences_of(timer, uuid).after(timer.execute_at)
    return following is not None and following <= now_us


def has_moved(timer: Timer, uuid: bytes) -> bool:
    """Whether a node with older time zones has planned the current occurrence, which has not begun, for another instant than
    this node would. During a rolling upgrade, a node with older ones fires what it finds. A paused schedule is planned anyway
    when it is resumed."""
    definition, state = _of(timer)
    if state.source is not Source.REGULAR or definition.cron is None or not is_outdated(state.tzdata):
        return False
    if has_begun(timer) or state.paused is not None:
        return False
    return occurrences_of(timer, uuid).after(state.position) != timer.execute_at


def is_outdated(tzdata: str) -> bool:
    """Whether that version of the time zones is older than this node's."""
    return tzdata != tzdata_version() and _release(tzdata) < _release(tzdata_version())


def _release(tzdata: str) -> tuple[int, ...]:
    return tuple(int(part) for part in tzdata.split(".") if part.isdecimal())


def has_begun(timer: Timer) -> bool:
    """Whether the row shows that an attempt of the current occurrence was made. One in flight here shows only in memory."""
    _, state = _of(timer)
    return bool(timer.attempts or state.away or state.postponed)


def move_on(timer: Timer, uuid: bytes, now_us: int) -> Turn:
    """Plans a row again whose occurrence gives way."""
    return _plan(timer, uuid, now_us, Missed.LATE)


# ---------------------------------------------------------------------- results


def left(timer: Timer) -> Timer:
    """The row's timer while its attempt in flight remains with a node that hands the shard over."""
    definition, state = _of(timer)
    return msgspec.structs.replace(timer, schedule=Schedule(definition, msgspec.structs.replace(state, away=True)))


def postponed(timer: Timer) -> str:
    """The name of the firing after the receiver has postponed the occurrence: the next attempt is no repetition."""
    # A replay goes on from the name that the occurrence had when it failed.
    name, _, count = timer.firing.partition(".")
    return f"{name}.{int(count or 0) + 1}"


def recur(present: Timer, uuid: bytes, result: Timer, again_at: int, now_us: int) -> Turn:
    """The result of an attempt, applied to the present definition. `result` is the timer as it was dispatched, with the
    result; `again_at` is the instant of another attempt, if one is wanted."""
    definition, state = _of(present)
    if (result.firing, result.attempts, result.status) == (present.firing, present.attempts, Status.PENDING):
        # The request was not sent. The row is due as before.
        timer = msgspec.structs.replace(
            present, schedule=Schedule(definition, msgspec.structs.replace(state, away=False))
        )
        return Turn(timer, again_at)
    after = msgspec.structs.replace(
        present,
        updated_at=now_us,
        attempts=result.attempts,
        first_attempt_at=result.first_attempt_at,
        last_error=result.last_error,
        attempt_log=result.attempt_log,
    )
    if result.status is Status.PENDING:
        if _may_try_again(present, uuid, again_at):
            count = state.postponed + (result.firing != present.firing)
            state = msgspec.structs.replace(state, away=False, postponed=count)
            after.firing, after.schedule = result.firing, Schedule(definition, state)
            return Turn(after, again_at)
        # The next occurrence calls a receiver that has asked for it; otherwise the attempt was the last one.
        asked = result.firing != present.firing
        after.status = Status.COMPLETED if asked else Status.FAILED
        after.attempts = result.attempts or present.attempts + 1
        after.executed_at = now_us
    else:
        after.status, after.executed_at = result.status, result.executed_at or now_us
    return _ended(after, uuid, now_us)


def _may_try_again(timer: Timer, uuid: bytes, again_at: int) -> bool:
    """Whether another attempt of the current occurrence may begin at that instant."""
    definition, state = _of(timer)
    if state.paused is not None:
        return False
    if definition.catch_up is CatchUp.ALL:
        return True
    if definition.occurrences_max is not None:
        this = state.source is Source.REGULAR
        if state.occurrences + this >= definition.occurrences_max:
            return True
    position = max(state.position, timer.execute_at) if state.source is Source.REGULAR else state.position
    following = occurrences_of(timer, uuid).after(position)
    return following is None or again_at < following


def _ended(after: Timer, uuid: bytes, now_us: int) -> Turn:
    """The current occurrence has ended with the timer's status: counts it, and plans the next."""
    definition, state = _of(after)
    outcome, source = after.status.value, state.source
    # A paused schedule fires only what is triggered. Other instants pass because of the pause.
    why = Missed.PAUSED if state.paused is not None and source is Source.TRIGGER else Missed.OVERLAP
    failures = 0 if after.status is Status.COMPLETED else state.failures + 1
    last = LastOccurrence(after.execute_at, source, outcome, after.executed_at or now_us, after.attempts)
    paused = state.paused
    if paused is None and 0 < definition.pause_after_failures <= failures:
        paused = PAUSED_AFTER_FAILURES
    state = msgspec.structs.replace(
        state, counts=_with(state.counts, {outcome: 1}), failures=failures, last=last, paused=paused
    )
    if source is Source.TRIGGER:
        state = msgspec.structs.replace(state, triggers=state.triggers[1:])
    elif source is Source.REPLAY:
        state = msgspec.structs.replace(state, replays=state.replays[1:], turn=Source.REGULAR)
    elif source is Source.BACKFILL:
        first = state.backfills[0]
        rest = (Backfill(first.number, after.execute_at, first.before), *state.backfills[1:])
        state = msgspec.structs.replace(state, backfills=rest, turn=Source.REGULAR)
    else:
        state = msgspec.structs.replace(
            state,
            position=max(state.position, after.execute_at),
            occurrences=state.occurrences + 1,
            turn=Source.BACKFILL,
        )
    turn = _plan(msgspec.structs.replace(after, schedule=Schedule(definition, state)), uuid, now_us, why)
    turn.run = after
    return turn


# ---------------------------------------------------------------------- clients' changes


@dataclass(slots=True)
class Subject:
    """What a change applies to: the live row's timer, or the one that ended last. `at` is the instant of the live row's key,
    `in_flight` whether an attempt of its occurrence is in flight or has just ended, `firing` the name of a firing that the
    change begins."""

    live: Timer | None
    ended: Timer | None
    at: int
    in_flight: bool
    firing: str


def change(op: WriteOp, found: Subject, now_us: int) -> Turn | Timer | TocsinError:
    """What the change makes of the row; or the timer, if there is nothing to change; or why it is refused."""
    refused = unexpected(op, found.live)
    if refused is not None:
        return refused
    turn = _change(op, found, now_us)
    if isinstance(turn, Turn) and not isinstance(op.change, Fire | Refill | Replay | Replan):
        definition, state = _of(turn.timer)
        state = msgspec.structs.replace(state, changed_at=now_us, version=state.version + 1)
        turn.timer.schedule = Schedule(definition, state)
    return turn


def unexpected(op: WriteOp, live: Timer | None) -> VersionConflict | None:
    """Why the change is not for the schedule of this live row; None if it is."""
    expected = op.change.expected_version if isinstance(op.change, Put | Edit | Remove) else None
    if expected is None:
        return None
    # One that can't be read has none.
    present = 0 if live is None or live.schedule is None else live.schedule.state.version
    if expected == present:
        return None
    if live is None or not present:
        return VersionConflict(f"there is no such schedule any more, but version {expected} of it is expected")
    if expected == 0:
        return VersionConflict(f"schedule {live.id!r} exists, in version {present}, but none is expected")
    return VersionConflict(f"schedule {live.id!r} has version {present}, but version {expected} is expected")


def _change(op: WriteOp, found: Subject, now_us: int) -> Turn | Timer | TocsinError:
    asked = op.change
    if isinstance(asked, Put):
        return _put(op, found, now_us)
    timer = found.live
    assert timer is not None
    definition, state = _of(timer)
    if isinstance(asked, Edit):
        assert op.changes is not None
        wanted = asked.definition.apply(definition)
        errors = check(wanted, now_us)
        if errors:
            return InvalidInput(*errors)
        try:
            changed = op.changes.apply(timer, now_us)
        except InvalidInput as error:
            return error
        return _redefined(timer, changed, wanted, op.uuid, found, now_us)
    if isinstance(asked, Pause):
        if state.paused is not None:
            return timer
        return _paused(timer, op.uuid, found, now_us)
    if isinstance(asked, Resume):
        return timer if state.paused is None else _resumed(timer, op.uuid, found, now_us)
    if isinstance(asked, Replan):
        return _replanned(timer, op.uuid, found, now_us)
    if isinstance(asked, Fire):
        if len(state.triggers) >= TRIGGERS_MAX:
            return BacklogFull(f"{TRIGGERS_MAX} triggers of the schedule wait already; try again later")
        state = msgspec.structs.replace(state, triggers=(*state.triggers, Trigger(now_us, f"m-{found.firing}")))
        return _with_state(timer, state, op.uuid, found, now_us, "triggered")
    if isinstance(asked, Replay):
        # Those that wait already are not taken twice: a request may be repeated.
        added = tuple(each for each in asked.occurrences if each not in state.replays)
        if len(state.replays) + len(added) > REPLAYS_MAX:
            reason = f"{len(state.replays)} replays of the schedule wait already, and at most {REPLAYS_MAX} may"
            return BacklogFull(f"{reason}; try again later, or with fewer")
        if not added:
            return timer
        state = msgspec.structs.replace(state, replays=state.replays + added)
        return _with_state(timer, state, op.uuid, found, now_us, "replayed")
    assert isinstance(asked, Refill)
    return _refilled(timer, asked, op.uuid, found, now_us)


def _put(op: WriteOp, found: Subject, now_us: int) -> Turn | Timer | TocsinError:
    wanted = op.timer
    assert wanted is not None
    assert wanted.schedule is not None
    definition = wanted.schedule.definition
    if found.live is not None:
        return _redefined(found.live, wanted, _marked(definition, found.live), op.uuid, found, now_us)
    state, created_at = State(now_us), now_us
    if found.ended is not None and found.ended.schedule is not None and found.ended.status is Status.COMPLETED:
        definition = _marked(definition, found.ended)
        if _same(found.ended, wanted) and found.ended.schedule.definition == definition:
            return found.ended
        # It goes on where it ended.
        state = msgspec.structs.replace(found.ended.schedule.state, position=now_us, paused=None, failures=0)
        created_at = found.ended.created_at
    timer = msgspec.structs.replace(
        wanted, created_at=created_at, updated_at=now_us, firing="", schedule=Schedule(definition, state)
    )
    turn = _plan(timer, op.uuid, now_us, Missed.LATE)
    if turn.timer.status is not Status.PENDING:
        return ScheduleEnded("the schedule has no instant left; nothing was written")
    turn.changed = "created"
    return turn


def _marked(definition: Definition, former: Timer) -> Definition:
    """The definition, with the former one's mark of who manages it unless it has its own."""
    if definition.managed_by is not None:
        return definition
    return msgspec.structs.replace(definition, managed_by=_of(former)[0].managed_by)


def _same(timer: Timer, other: Timer) -> bool:
    return all(getattr(timer, name) == getattr(other, name) for name in _DEFINED)


def _redefined(
    timer: Timer, wanted: Timer, definition: Definition, uuid: bytes, found: Subject, now_us: int
) -> Turn | Timer:
    """The schedule with another definition. The current occurrence goes on if it has begun; other timing is planned strictly
    after now."""
    present, state = _of(timer)
    if present == definition and _same(timer, wanted):
        return timer
    fields = {name: getattr(wanted, name) for name in _DEFINED}
    begun = found.in_flight or has_begun(timer)
    if present.timing != definition.timing:
        # Also after the occurrence that goes on, whose node's clock may be ahead.
        at_hand = timer.execute_at if begun and state.source is Source.REGULAR else now_us
        state = msgspec.structs.replace(state, position=max(state.position, now_us, at_hand))
    changed = msgspec.structs.replace(timer, updated_at=now_us, schedule=Schedule(definition, state), **fields)
    if present.timing == definition.timing or begun:
        return Turn(changed, found.at, changed="changed")
    turn = _plan(changed, uuid, now_us, Missed.LATE)
    turn.changed = "changed"
    return turn


def _with_state(timer: Timer, state: State, uuid: bytes, found: Subject, now_us: int, changed: str) -> Turn:
    """The row with another state, planned again unless its occurrence has begun."""
    timer = msgspec.structs.replace(timer, updated_at=now_us, schedule=Schedule(_of(timer)[0], state))
    if found.in_flight or has_begun(timer):
        return Turn(timer, found.at, changed=changed)
    turn = _plan(timer, uuid, now_us, Missed.LATE if state.paused is None else Missed.PAUSED)
    turn.changed = changed
    return turn


def _paused(timer: Timer, uuid: bytes, found: Subject, now_us: int) -> Turn:
    definition, state = _of(timer)
    state = msgspec.structs.replace(state, paused=PAUSED_BY_REQUEST)
    timer = msgspec.structs.replace(timer, updated_at=now_us, schedule=Schedule(definition, state))
    if found.in_flight or state.away or not has_begun(timer):
        return Turn(timer, found.at, changed="paused")
    # It waits for another attempt, which a paused schedule does not make.
    timer.status, timer.executed_at = (Status.FAILED if timer.last_error else Status.COMPLETED), now_us
    turn = _ended(timer, uuid, now_us)
    turn.changed = "paused"
    return turn


def _resumed(timer: Timer, uuid: bytes, found: Subject, now_us: int) -> Turn:
    state = _of(timer)[1]
    fires = state.source is Source.REGULAR and (found.in_flight or has_begun(timer))
    after = max(state.position, timer.execute_at) if fires else state.position
    missed = _missed(occurrences_of(timer, uuid), Missed.PAUSED, after, now_us)
    state = msgspec.structs.replace(
        state,
        paused=None,
        failures=0,
        position=max(state.position, now_us),
        missed=_with(state.missed, {each.reason: each.instants for each in missed}),
    )
    turn = _with_state(timer, state, uuid, found, now_us, "resumed")
    turn.missed = missed + turn.missed
    return turn


def _replanned(timer: Timer, uuid: bytes, found: Subject, now_us: int) -> Turn | Timer:
    """The schedule with the instant that newer time zones give the current occurrence."""
    if found.in_flight or not has_moved(timer, uuid):
        return timer
    turn = _plan(timer, uuid, now_us, Missed.LATE)
    turn.changed = "replanned"
    return turn


def _refilled(timer: Timer, asked: Refill, uuid: bytes, found: Subject, now_us: int) -> Turn | TocsinError:
    _, state = _of(timer)
    before = min(asked.before, now_us)
    following = occurrences_of(timer, uuid).after(asked.after)
    if following is None or following >= before:
        return InvalidInput(
            FieldError("before", "has no instant of the schedule before it in the past; choose another range")
        )
    if len(state.backfills) >= BACKFILLS_MAX:
        return BacklogFull(f"{BACKFILLS_MAX} backfills of the schedule wait already; try again later")
    # Also different from those of a schedule of the same id that was deleted.
    number = max(state.backfills_made + 1, now_us // 1_000)
    state = msgspec.structs.replace(
        state, backfills=(*state.backfills, Backfill(number, asked.after, before)), backfills_made=number
    )
    return _with_state(timer, state, uuid, found, now_us, "backfilled")
