"""What is recorded of a schedule's occurrences, and the events that report them. Pure."""

from __future__ import annotations

import msgspec

from tocsin.model.run import MissedInstants, Run, RunStatus, run_of
from tocsin.model.schedule import State
from tocsin.model.timer import Status, Timer
from tocsin.ports.observer import Event, OccurrenceEnded, OccurrencesMissed, ScheduleChanged
from tocsin.timers.engine.recurring import PAUSED_AFTER_FAILURES, Turn


def ended_run(turn: Turn) -> Run | None:
    """The record of the occurrence that has ended, with the instants missed after it; or of instants missed without one."""
    missed = tuple(MissedInstants(*each) for each in turn.missed)
    if turn.run is not None:
        return msgspec.structs.replace(run_of(turn.run, turn.run.status), missed=missed)
    return Run(missed[0].first_at, RunStatus.MISSED, missed=missed) if missed else None


def accounted(timer: Timer) -> int:
    """How many instants of the schedule have ended or were missed since its creation. Each record of an occurrence adds at
    least one."""
    state = _state(timer)
    return sum(state.counts.values()) + sum(state.missed.values())


def events(shard_id: int, turn: Turn) -> list[Event]:
    """The events of the turn once it is durable."""
    timer, reported = turn.timer, list[Event]()
    if turn.run is not None:
        ended = turn.run
        source = _state(ended).source
        reported.append(
            OccurrenceEnded(
                shard_id,
                timer.namespace,
                timer.id,
                source,
                ended.execute_at,
                ended.firing,
                ended.status,
                ended.attempts,
            )
        )
    reported += [OccurrencesMissed(shard_id, timer.namespace, timer.id, *missed) for missed in turn.missed]
    changed = turn.changed
    if changed:
        reported.append(ScheduleChanged(shard_id, timer.namespace, timer.id, changed))
    if timer.status is not Status.PENDING:
        reported.append(ScheduleChanged(shard_id, timer.namespace, timer.id, "ended"))
    elif turn.run is not None and _state(timer).paused == PAUSED_AFTER_FAILURES:
        reported.append(ScheduleChanged(shard_id, timer.namespace, timer.id, "paused_after_failures"))
    return reported


def deleted(shard_id: int, timer: Timer) -> Event:
    """The event of a schedule's delete."""
    return ScheduleChanged(shard_id, timer.namespace, timer.id, "deleted")


def _state(timer: Timer) -> State:
    # The placeholder of a record that can't be read has none.
    return timer.schedule.state if timer.schedule is not None else State(0)
