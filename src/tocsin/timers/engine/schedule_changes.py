"""What clients' changes make of schedules. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tocsin.model.calendar import NO_CALENDARS, Calendars
from tocsin.model.errors import (
    BacklogFull,
    FieldError,
    InvalidInput,
    ScheduleEnded,
    TocsinError,
    VersionConflict,
    version_conflict,
)
from tocsin.model.occurrences import Occurrences, check
from tocsin.model.schedule import (
    BACKFILLS_MAX,
    PAUSED_BY_REQUEST,
    REFILL_MIN,
    REPLAYS_MAX,
    SKIPS_MAX,
    TRIGGERS_MAX,
    Backfill,
    Definition,
    Edit,
    Fire,
    Missed,
    Pause,
    Put,
    Refill,
    Remove,
    Replan,
    Replay,
    Resume,
    Schedule,
    Skip,
    Source,
    State,
    Trigger,
    Unskip,
)
from tocsin.model.timer import Status, Timer
from tocsin.timers.engine.monitoring import version_of
from tocsin.timers.engine.recurring import (
    DEFINED,
    MissedRange,
    Turn,
    added,
    by_reason,
    ended,
    excluded_between,
    has_begun,
    has_moved,
    missed_between,
    occurrences_of,
    plan,
    state_of,
    suspended_reason,
)
from tocsin.timers.engine.rows import WriteOp


@dataclass(slots=True)
class Subject:
    """What a change applies to: the live row's timer, or the one that ended last. `at` is the instant of the live row's key,
    `in_flight` whether an attempt of its occurrence is in flight or has just ended, `firing` the name of a firing that the
    change begins. `calendars` are those of its namespace."""

    live: Timer | None
    ended: Timer | None
    at: int
    in_flight: bool
    firing: str
    calendars: Calendars = NO_CALENDARS


def change(op: WriteOp, found: Subject, now_us: int) -> Turn | Timer | TocsinError:
    """What the change makes of the row; or the timer, if there is nothing to change; or why it is refused."""
    refused = unexpected(op, found.live)
    if refused is not None:
        return refused
    turn = _change(op, found, now_us)
    if isinstance(turn, Turn) and not isinstance(op.change, Fire | Refill | Replay | Replan):
        definition, state = state_of(turn.timer)
        state = msgspec.structs.replace(state, changed_at=now_us, version=state.version + 1)
        turn.timer.schedule = Schedule(definition, state)
    return turn


def unexpected(op: WriteOp, live: Timer | None) -> VersionConflict | None:
    """Why the change is not for the schedule of this live row; None if it is."""
    expected = op.change.expected_version if isinstance(op.change, Put | Edit | Remove) else None
    if expected is None:
        return None
    if live is not None and live.monitor is not None:
        return version_conflict(f"monitor {live.id!r}", version_of(live), expected)
    # One that can't be read has none.
    present = 0 if live is None or live.schedule is None else live.schedule.state.version
    what = "the schedule" if live is None else f"schedule {live.id!r}"
    return version_conflict(what, present, expected)


def _change(op: WriteOp, found: Subject, now_us: int) -> Turn | Timer | TocsinError:
    asked = op.change
    if isinstance(asked, Put):
        return _put(op, asked, found, now_us)
    timer = found.live
    assert timer is not None
    definition, state = state_of(timer)
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
    if isinstance(asked, Skip | Unskip):
        return _skipped(timer, asked, op.uuid, found, now_us)
    assert isinstance(asked, Refill)
    return _refilled(timer, asked, op.uuid, found, now_us)


def _put(op: WriteOp, asked: Put, found: Subject, now_us: int) -> Turn | Timer | TocsinError:
    wanted = op.timer
    assert wanted is not None
    assert wanted.schedule is not None
    definition = wanted.schedule.definition
    if found.live is not None:
        return _redefined(found.live, wanted, _marked(definition, found.live), op.uuid, found, now_us)
    state, created_at = State(now_us), now_us
    if found.ended is not None and found.ended.schedule is not None:
        # A version that was read of one that was deleted is none of the new one.
        state = State(now_us, version=found.ended.schedule.state.version)
    if found.ended is not None and found.ended.schedule is not None and found.ended.status is Status.COMPLETED:
        definition = _marked(definition, found.ended)
        if _same(found.ended, wanted) and found.ended.schedule.definition == definition:
            return found.ended
        # It goes on where it ended.
        state = msgspec.structs.replace(found.ended.schedule.state, position=now_us, paused=None, failures=0)
        created_at = found.ended.created_at
    if asked.paused:
        state = msgspec.structs.replace(state, paused=PAUSED_BY_REQUEST)
    timer = msgspec.structs.replace(
        wanted, created_at=created_at, updated_at=now_us, firing="", schedule=Schedule(definition, state)
    )
    turn = plan(timer, op.uuid, now_us, Missed.LATE, found.calendars)
    if turn.timer.status is not Status.PENDING:
        return ScheduleEnded("the schedule has no instant left; nothing was written")
    turn.changed = "created"
    return turn


def _marked(definition: Definition, former: Timer) -> Definition:
    """The definition, with the former one's mark of who manages it unless it has its own."""
    if definition.managed_by is not None:
        return definition
    return msgspec.structs.replace(definition, managed_by=state_of(former)[0].managed_by)


def _same(timer: Timer, other: Timer) -> bool:
    return all(getattr(timer, name) == getattr(other, name) for name in DEFINED)


def _redefined(
    timer: Timer, wanted: Timer, definition: Definition, uuid: bytes, found: Subject, now_us: int
) -> Turn | Timer:
    """The schedule with another definition. The current occurrence goes on if it has begun; other timing is planned strictly
    after now, what the former one leaves until then is missed, and of what is skipped by hand its own instants are left."""
    present, state = state_of(timer)
    if present == definition and _same(timer, wanted):
        return timer
    fields = {name: getattr(wanted, name) for name in DEFINED}
    begun, missed = found.in_flight or has_begun(timer), list[MissedRange]()
    if present.timing != definition.timing:
        missed = _left_by_former(timer, uuid, found, now_us)
        # Also after the occurrence that goes on, whose node's clock may be ahead.
        at_hand = timer.execute_at if begun and state.source is Source.REGULAR else now_us
        skips = tuple(each for each in state.skips if each > now_us)
        if skips:
            planned = Occurrences(definition, uuid, timer.created_at, found.calendars)
            skips = tuple(each for each in skips if planned.after(each - 1) == each)
        state = msgspec.structs.replace(
            state,
            position=max(state.position, now_us, at_hand),
            missed=added(state.missed, by_reason(missed)),
            skips=skips,
        )
    changed = msgspec.structs.replace(timer, updated_at=now_us, schedule=Schedule(definition, state), **fields)
    if present.timing == definition.timing or begun:
        return Turn(changed, found.at, missed, changed="changed")
    turn = plan(changed, uuid, now_us, Missed.LATE, found.calendars)
    turn.missed, turn.changed = missed + turn.missed, "changed"
    return turn


def _left_by_former(timer: Timer, uuid: bytes, found: Subject, now_us: int) -> list[MissedRange]:
    """The instants up to now of a timing that is about to change, except that of an occurrence that has begun."""
    definition, state = state_of(timer)
    begun = found.in_flight or has_begun(timer)
    goes_on = begun and state.source is Source.REGULAR
    if definition.occurrences_max is not None and state.occurrences + goes_on >= definition.occurrences_max:
        return []
    try:
        occurrences = occurrences_of(timer, uuid, found.calendars)
    except ValueError:
        # Nobody knows the instants of a time zone that this node can't read. Another one mends the schedule.
        return []
    why = Missed.PAUSED if state.paused is not None else Missed.OVERLAP if begun else Missed.LATE
    after = max(state.position, timer.execute_at) if goes_on else state.position
    return missed_between(occurrences, why, after, now_us) + excluded_between(occurrences, state.position, now_us)


def _with_state(timer: Timer, state: State, uuid: bytes, found: Subject, now_us: int, changed: str) -> Turn:
    """The row with another state, planned again unless its occurrence has begun. One of a paused schedule whose result was
    lost with its node ends, or is missed if nobody knows whether it was called."""
    timer = msgspec.structs.replace(timer, updated_at=now_us, schedule=Schedule(state_of(timer)[0], state))
    if found.in_flight or has_begun(timer):
        awaited = found.in_flight or (state.away and found.at > now_us)
        if awaited or suspended_reason(timer) is None:
            return Turn(timer, found.at, changed=changed)
    if timer.attempts or state.postponed:
        turn = _without_result(timer, uuid, found, now_us)
    else:
        turn = plan(timer, uuid, now_us, Missed.LATE if state.paused is None else Missed.PAUSED, found.calendars)
    turn.changed = changed
    return turn


def _paused(timer: Timer, uuid: bytes, found: Subject, now_us: int) -> Turn:
    definition, state = state_of(timer)
    state = msgspec.structs.replace(state, paused=PAUSED_BY_REQUEST)
    timer = msgspec.structs.replace(timer, updated_at=now_us, schedule=Schedule(definition, state))
    if found.in_flight or state.away or not has_begun(timer):
        return Turn(timer, found.at, changed="paused")
    turn = _without_result(timer, uuid, found, now_us)
    turn.changed = "paused"
    return turn


def _without_result(timer: Timer, uuid: bytes, found: Subject, now_us: int) -> Turn:
    """A paused schedule whose occurrence waits for another attempt, which it does not make: that has ended."""
    timer.status, timer.executed_at = (Status.FAILED if timer.last_error else Status.COMPLETED), now_us
    return ended(timer, uuid, now_us, found.calendars)


def _resumed(timer: Timer, uuid: bytes, found: Subject, now_us: int) -> Turn:
    state = state_of(timer)[1]
    fires = state.source is Source.REGULAR and (found.in_flight or has_begun(timer))
    after = max(state.position, timer.execute_at) if fires else state.position
    occurrences = occurrences_of(timer, uuid, found.calendars)
    missed = missed_between(occurrences, Missed.PAUSED, after, now_us)
    missed += excluded_between(occurrences, after, now_us)
    state = msgspec.structs.replace(
        state,
        paused=None,
        failures=0,
        position=max(state.position, now_us),
        missed=added(state.missed, by_reason(missed)),
        skips=tuple(each for each in state.skips if each > now_us),
    )
    turn = _with_state(timer, state, uuid, found, now_us, "resumed")
    turn.missed = missed + turn.missed
    return turn


def _skipped(
    timer: Timer, asked: Skip | Unskip, uuid: bytes, found: Subject, now_us: int
) -> Turn | Timer | TocsinError:
    """The schedule that skips an instant to come, or doesn't any more. What is so already is not written."""
    state, instant = state_of(timer)[1], asked.instant
    if isinstance(asked, Unskip):
        if instant in state.skips:
            skips = tuple(each for each in state.skips if each != instant)
            return _with_state(timer, msgspec.structs.replace(state, skips=skips), uuid, found, now_us, "unskipped")
        if instant > now_us:
            return timer
        return InvalidInput(FieldError("instant", "is past; send an instant to come, or backfill the schedule"))
    if instant in state.skips:
        return timer
    begun = state.source is Source.REGULAR and timer.execute_at == instant and (found.in_flight or has_begun(timer))
    if begun or instant <= max(now_us, state.position):
        return InvalidInput(FieldError("instant", "has come already; send one that is still to come"))
    if occurrences_of(timer, uuid, found.calendars).after(instant - 1) != instant:
        reason = "is no instant of the schedule; schedules/preview lists those to come, send one exactly as it is there"
        return InvalidInput(FieldError("instant", reason))
    if len(state.skips) >= SKIPS_MAX:
        return BacklogFull(f"{SKIPS_MAX} instants of the schedule are skipped already; put these dates into a calendar")
    state = msgspec.structs.replace(state, skips=tuple(sorted((*state.skips, instant))))
    return _with_state(timer, state, uuid, found, now_us, "skipped")


def _replanned(timer: Timer, uuid: bytes, found: Subject, now_us: int) -> Turn | Timer:
    """The schedule with the instant that newer time zones give the current occurrence."""
    if found.in_flight or not has_moved(timer, uuid, found.calendars):
        return timer
    turn = plan(timer, uuid, now_us, Missed.LATE, found.calendars)
    turn.changed = "replanned"
    return turn


def _refilled(timer: Timer, asked: Refill, uuid: bytes, found: Subject, now_us: int) -> Turn | TocsinError:
    definition, state = state_of(timer)
    after, before = max(asked.after, REFILL_MIN), min(asked.before, now_us)
    following = Occurrences(definition, uuid, timer.created_at, found.calendars).after(after)
    if following is None or following >= before:
        return InvalidInput(
            FieldError("before", "has no instant of the schedule before it in the past; choose another range")
        )
    if len(state.backfills) >= BACKFILLS_MAX:
        return BacklogFull(f"{BACKFILLS_MAX} backfills of the schedule wait already; try again later")
    # Also different from those of a schedule of the same id that was deleted.
    number = max(state.backfills_made + 1, now_us // 1_000)
    state = msgspec.structs.replace(
        state, backfills=(*state.backfills, Backfill(number, after, before)), backfills_made=number
    )
    return _with_state(timer, state, uuid, found, now_us, "backfilled")
