"""Runs: a run is what becomes of one instant of a timer, with all of its attempts. It begins when the timer is created, gets
another instant, or is rescheduled by its receiver, and ends when the timer ends or its next run begins."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.model.json_record import JsonRecord
from tocsin.model.schedule import Source
from tocsin.model.timer import LoggedAttempt, Status, Timer


class RunStatus(StrEnum):
    """How a run ended. The first five are also statuses of timers; after the others, the timer went on: its receiver
    rescheduled it, or a client gave it another instant or created it again."""

    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"
    RESCHEDULED = "rescheduled"
    SUPERSEDED = "superseded"
    #: Instants of a schedule that did not fire, with no occurrence before them.
    MISSED = "missed"


#: How runs end that failed, or were too late.
FAILED_RUNS = frozenset({RunStatus.FAILED, RunStatus.EXPIRED})


class MissedInstants(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Instants of a schedule that did not fire, from the first to the last. At most 1,000 are counted."""

    reason: str
    instants: int
    first_at: int
    last_at: int


class Run(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One run. Instants are microseconds. `firing` is that of its timer. `made` attempts were made, the first at
    `first_attempt_at`, of which `attempts` has the last ones, oldest first. `missed` are instants between this occurrence of
    a schedule and the next. `replay`: the firing had ended before, and was replayed."""

    execute_at: int
    status: RunStatus
    firing: str = ""
    made: int = 0
    first_attempt_at: int | None = None
    attempts: tuple[LoggedAttempt, ...] = ()
    missed: tuple[MissedInstants, ...] = ()
    replay: bool = False

    @property
    def identity(self) -> tuple[int, int | None]:
        """The same for every state of this run that is stored, different for any other run of the timer with attempts."""
        return (self.execute_at, self.first_attempt_at)


def source_of(run: Run) -> Source:
    """Why an occurrence fired."""
    if run.replay:
        return Source.REPLAY
    return {"m": Source.TRIGGER, "b": Source.BACKFILL}.get(run.firing[:1], Source.REGULAR)


def run_of(timer: Timer, status: RunStatus | Status) -> Run:
    """The run of a timer as it stands. The timer's log also has the attempts of earlier runs."""
    made = timer.attempts
    attempts = timer.attempt_log[-made:] if made else ()
    replay = bool(timer.replay) or (timer.schedule is not None and timer.schedule.state.source is Source.REPLAY)
    return Run(timer.execute_at, RunStatus(status), timer.firing, made, timer.first_attempt_at, attempts, replay=replay)


_stored = JsonRecord(Run)
encode_run, decode_run = _stored.encode, _stored.decode
