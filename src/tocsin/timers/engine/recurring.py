"""Schedules: which occurrence follows, and what an attempt's result or a client's change makes of a schedule's row. Pure.

A row has one current occurrence, with its attempts. It has *begun* when its first attempt has; until then it may give way to
another one. What it stands for leaves the state only when it has ended, so that planning again loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tocsin.model.calendar import NO_CALENDARS, Calendars
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.occurrences import Occurrences
from tocsin.model.recurrence import tzdata_version
from tocsin.model.schedule import (
    PAUSED_AFTER_FAILURES,
    Backfill,
    CatchUp,
    Definition,
    LastOccurrence,
    Missed,
    OnSkipped,
    Schedule,
    Source,
    State,
)
from tocsin.model.timer import Status, Timer

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
DEFINED = [name for name in Timer.__struct_fields__ if name not in _NOT_DEFINED]


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
    """An occurrence to come. `waits`: it doesn't fire, because nothing is allowed up to its instant."""

    source: Source
    instant: int
    firing: str
    due_at: int
    waits: bool = False


# ---------------------------------------------------------------------- planning


def state_of(timer: Timer) -> tuple[Definition, State]:
    assert timer.schedule is not None
    return timer.schedule.definition, timer.schedule.state


def occurrences_of(timer: Timer, uuid: bytes, calendars: Calendars) -> Occurrences:
    """The schedule's regular instants, without those that are skipped by hand."""
    definition, state = state_of(timer)
    return Occurrences(definition, uuid, timer.created_at, calendars, state.skips)


def plan(timer: Timer, uuid: bytes, now_us: int, why: Missed, calendars: Calendars) -> Turn:
    """The row with its next occurrence: triggers first, then regular instants in turn with those that are fired again: first
    replays, then backfills. It ends when none is left. Instants that have to be given up are missed for the reason `why`,
    unless they are too old. One that is due already and has not begun stays, if the window allows it."""
    definition, state = state_of(timer)
    passed: list[MissedRange] = []
    if state.calendars not in ("", stamp_of(definition, calendars)) and state.source is Source.REGULAR:
        # What has passed as excluded does not come late because a calendar allows it afterwards.
        until = min(timer.execute_at - 1, now_us)
        passed = _passed_over(timer, uuid, until, calendars)
        state = msgspec.structs.replace(state, position=max(state.position, until))
    occurrences = occurrences_of(timer, uuid, calendars)
    # What is skipped by hand is so once; a backfill asks for it all the same.
    refilled = Occurrences(definition, uuid, timer.created_at, calendars) if state.skips else occurrences
    state, backfilled = _backfilled(state, refilled, now_us)
    again = _replayed(state, now_us) or backfilled
    due = timer.execute_at if state.source is Source.REGULAR and why is Missed.LATE else None
    regular, state, missed = _regular(definition, state, occurrences, now_us, why, due)
    missed = passed + missed
    # Without catch-up, one that is due would be given up for whatever came before it.
    stays = regular is not None and definition.catch_up is CatchUp.NONE and regular.instant <= now_us
    chosen = regular if stays else _triggered(state) or regular
    if (
        not stays
        and not state.triggers
        and again is not None
        and (regular is None or regular.waits or regular.instant > now_us or state.turn is Source.BACKFILL)
    ):
        chosen = again
    if chosen is not None and chosen.source is not Source.REGULAR and regular is not None and definition.calendars:
        # What has passed as excluded by now is noted while it is known: the calendars may change before this one ends.
        until = min(regular.instant - 1, now_us)
        missed = missed + excluded_between(occurrences, state.position, until)
        position = max(state.position, until)
        state = msgspec.structs.replace(state, position=position, skips=_to_come(state.skips, position))
    state = msgspec.structs.replace(
        state,
        source=Source.REGULAR if chosen is None else chosen.source,
        missed=added(state.missed, by_reason(missed)),
        away=False,
        postponed=0,
        tzdata=tzdata_version(),
        calendars=stamp_of(definition, calendars),
        waits=chosen is not None and chosen.waits,
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
    definition: Definition, state: State, occurrences: Occurrences, now_us: int, why: Missed, due: int | None
) -> tuple[_Next | None, State, list[MissedRange]]:
    """The next regular instant; the state with its position before it; and what was missed before it. `due` is the instant
    of the row, which fires also without catch-up."""
    if definition.occurrences_max is not None and state.occurrences >= definition.occurrences_max:
        return None, state, []
    position, oldest = state.position, now_us - definition.window_us
    at, reached = occurrences.search(position)
    if at is not None and at <= now_us:
        if definition.catch_up is CatchUp.ALL:
            at, reached = (at, None) if at >= oldest else occurrences.search(oldest - 1)
        elif at != due or at < oldest or definition.catch_up is CatchUp.LATEST:
            latest = occurrences.until(now_us) if definition.catch_up is CatchUp.LATEST else None
            at, reached = (latest, None) if latest is not None and latest >= oldest else occurrences.search(now_us)
        position = now_us if at is None else at - 1
    elif at is None and reached is not None and reached <= now_us:
        at, reached = occurrences.search(now_us)
        position = now_us
    missed = []
    if position > state.position:
        too_old = (
            max(state.position, min(oldest - 1, position))
            if definition.catch_up is not CatchUp.NONE
            else state.position
        )
        missed += missed_between(occurrences, Missed.WINDOW, state.position, too_old)
        missed += missed_between(occurrences, why, too_old, position)
        missed += excluded_between(occurrences, state.position, position)
        state = msgspec.structs.replace(state, position=position, skips=_to_come(state.skips, position))
    if at is not None:
        return _Next(Source.REGULAR, at, f"s-{at}", at), state, missed
    waits = None if reached is None else _Next(Source.REGULAR, reached, f"s-{reached}", reached, waits=True)
    return waits, state, missed


def excluded_between(occurrences: Occurrences, after: int, until: int) -> list[MissedRange]:
    """The instants that were excluded, or skipped by hand."""
    if until <= after:
        return []
    return [MissedRange(Missed.EXCLUDED, *each) for each in occurrences.excluded(after, until)]


def _passed_over(timer: Timer, uuid: bytes, until: int, calendars: Calendars) -> list[MissedRange]:
    """The instants between the position and the current occurrence, up to `until`: all of them were excluded when that was
    chosen, whatever calendars have now."""
    definition, state = state_of(timer)
    if definition.on_skipped is OnSkipped.NEXT or not definition.calendars:
        return excluded_between(occurrences_of(timer, uuid, calendars), state.position, until)
    plain = msgspec.structs.replace(definition, only=(), skip=())
    return missed_between(Occurrences(plain, uuid, timer.created_at), Missed.EXCLUDED, state.position, until)


def _to_come(skips: tuple[int, ...], position: int) -> tuple[int, ...]:
    """The skipped instants that have not passed."""
    return tuple(each for each in skips if each > position) if skips else skips


def missed_between(occurrences: Occurrences, reason: Missed, after: int, until: int) -> list[MissedRange]:
    first = occurrences.after(after) if until > after else None
    if first is None or first > until:
        return []
    # The search for the last one ends where very many dates are excluded.
    last = occurrences.until(until) or first
    return [MissedRange(reason, max(occurrences.count(after, until), 1), first, last)]


def added(counts: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    if not more:
        return counts
    return {**counts, **{str(name): counts.get(name, 0) + count for name, count in more.items()}}


def by_reason(missed: Iterable[MissedRange]) -> dict[str, int]:
    """How many instants were missed for each reason."""
    found: dict[str, int] = {}
    for each in missed:
        found[each.reason] = found.get(each.reason, 0) + each.instants
    return found


def suspended_reason(timer: Timer) -> str | None:
    """The reason for which the row is stored suspended, if it is: a paused schedule fires only what is triggered."""
    if timer.schedule is None or timer.schedule.state.paused is None or timer.schedule.state.source is Source.TRIGGER:
        return None
    return "schedule:paused"


def gives_way(timer: Timer, uuid: bytes, now_us: int, calendars: Calendars = NO_CALENDARS) -> bool:
    """Whether the due row has to be planned again instead of fired: it is later than the catch-up window allows, a later
    instant has come that takes its place, or by newer rules of its time zone or its calendars it is not due at its
    instant."""
    definition, state = state_of(timer)
    if state.source is not Source.REGULAR or has_begun(timer):
        return False
    if state.waits or has_moved(timer, uuid, calendars):
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
    following = occurrences_of(timer, uuid, calendars).after(timer.execute_at)
    return following is not None and following <= now_us


def stamp_of(definition: Definition, calendars: Calendars) -> str:
    """What shows by which calendars a schedule was planned; empty if it names none."""
    exclusions = calendars.exclusions(definition.only, definition.skip)
    return "" if exclusions is None else exclusions.stamp


def has_moved(timer: Timer, uuid: bytes, calendars: Calendars = NO_CALENDARS) -> bool:
    """Whether the current occurrence, which has not begun, was planned for another instant than this node would: by a node
    with older time zones, or before a calendar was changed. During a rolling upgrade, a node with older time zones fires
    what it finds. A paused schedule is planned anyway when it is resumed."""
    definition, state = state_of(timer)
    if state.source is not Source.REGULAR or has_begun(timer) or state.paused is not None:
        return False
    outdated = definition.cron is not None and is_outdated(state.tzdata)
    if not outdated and state.calendars == stamp_of(definition, calendars):
        return False
    at = occurrences_of(timer, uuid, calendars).after(state.position)
    return at is not None if state.waits else at != timer.execute_at


def is_outdated(tzdata: str) -> bool:
    """Whether that version of the time zones is older than this node's."""
    return tzdata != tzdata_version() and _release(tzdata) < _release(tzdata_version())


def _release(tzdata: str) -> tuple[int, ...]:
    return tuple(int(part) for part in tzdata.split(".") if part.isdecimal())


def has_begun(timer: Timer) -> bool:
    """Whether the row shows that an attempt of the current occurrence was made. One in flight here shows only in memory."""
    _, state = state_of(timer)
    return bool(timer.attempts or state.away or state.postponed)


def move_on(timer: Timer, uuid: bytes, now_us: int, calendars: Calendars = NO_CALENDARS) -> Turn:
    """Plans a row again whose occurrence gives way."""
    return plan(timer, uuid, now_us, Missed.LATE, calendars)


# ---------------------------------------------------------------------- results


def left(timer: Timer) -> Timer:
    """The row's timer while its attempt in flight remains with a node that hands the shard over."""
    definition, state = state_of(timer)
    return msgspec.structs.replace(timer, schedule=Schedule(definition, msgspec.structs.replace(state, away=True)))


def postponed(timer: Timer) -> str:
    """The name of the firing after the receiver has postponed the occurrence: the next attempt is no repetition."""
    # A replay goes on from the name that the occurrence had when it failed.
    name, _, count = timer.firing.partition(".")
    return f"{name}.{int(count or 0) + 1}"


def recur(
    present: Timer, uuid: bytes, result: Timer, again_at: int, now_us: int, calendars: Calendars = NO_CALENDARS
) -> Turn:
    """The result of an attempt, applied to the present definition. `result` is the timer as it was dispatched, with the
    result; `again_at` is the instant of another attempt, if one is wanted."""
    definition, state = state_of(present)
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
        if _may_try_again(present, uuid, again_at, calendars):
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
    return ended(after, uuid, now_us, calendars)


def _may_try_again(timer: Timer, uuid: bytes, again_at: int, calendars: Calendars) -> bool:
    """Whether another attempt of the current occurrence may begin at that instant."""
    definition, state = state_of(timer)
    if state.paused is not None:
        # No instant follows that could take its place. A pause ends what had been asked for before it.
        return state.source is Source.TRIGGER and timer.execute_at >= state.changed_at
    if definition.catch_up is CatchUp.ALL:
        return True
    if definition.occurrences_max is not None:
        this = state.source is Source.REGULAR
        if state.occurrences + this >= definition.occurrences_max:
            return True
    position = max(state.position, timer.execute_at) if state.source is Source.REGULAR else state.position
    following = occurrences_of(timer, uuid, calendars).after(position)
    return following is None or again_at < following


def ended(after: Timer, uuid: bytes, now_us: int, calendars: Calendars) -> Turn:
    """The current occurrence has ended with the timer's status: counts it, and plans the next."""
    definition, state = state_of(after)
    outcome, source = after.status.value, state.source
    # A paused schedule fires only what is triggered. Other instants pass because of the pause.
    why = Missed.PAUSED if state.paused is not None and source is Source.TRIGGER else Missed.OVERLAP
    failures = 0 if after.status is Status.COMPLETED else state.failures + 1
    last = LastOccurrence(after.execute_at, source, outcome, after.executed_at or now_us, after.attempts)
    paused = state.paused
    if paused is None and 0 < definition.pause_after_failures <= failures:
        paused = PAUSED_AFTER_FAILURES
    state = msgspec.structs.replace(
        state, counts=added(state.counts, {outcome: 1}), failures=failures, last=last, paused=paused
    )
    excluded: list[MissedRange] = []
    if source is Source.TRIGGER:
        state = msgspec.structs.replace(state, triggers=state.triggers[1:])
    elif source is Source.REPLAY:
        state = msgspec.structs.replace(state, replays=state.replays[1:], turn=Source.REGULAR)
    elif source is Source.BACKFILL:
        first = state.backfills[0]
        rest = (Backfill(first.number, after.execute_at, first.before), *state.backfills[1:])
        state = msgspec.structs.replace(state, backfills=rest, turn=Source.REGULAR)
    else:
        # Those before this occurrence have passed only now: until then, a changed calendar may have allowed them.
        position = max(state.position, after.execute_at)
        excluded = _passed_over(after, uuid, after.execute_at - 1, calendars)
        state = msgspec.structs.replace(
            state,
            position=position,
            occurrences=state.occurrences + 1,
            turn=Source.BACKFILL,
            missed=added(state.missed, by_reason(excluded)),
            skips=_to_come(state.skips, position),
        )
    turn = plan(msgspec.structs.replace(after, schedule=Schedule(definition, state)), uuid, now_us, why, calendars)
    turn.run, turn.missed = after, [*excluded, *turn.missed]
    return turn
