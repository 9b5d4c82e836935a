"""What is recorded of runs whose timers go on and of the occurrences of schedules, and the events that report these. Pure.

A run that ends with its timer is in the timer's history row. The others get their own row in the batch that ends them.
Its generation is that of the live row which the batch replaces, and of no history row.

A run whose row leaves memory gets a row, too, as if it ended there: a plain create, which reads nothing, may replace it
unseen. If the run goes on, its later record hides this one, whose generation stays the same during an epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from tocsin.model.errors import RecordUndecodable
from tocsin.model.failure import failure_of
from tocsin.model.namespace import HistoryMode
from tocsin.model.run import FAILED_RUNS, MissedInstants, Run, RunStatus, encode_run, run_of
from tocsin.model.schedule import PAUSED_AFTER_FAILURES, Missed, State
from tocsin.model.timer import Status, Timer, encode_record
from tocsin.ports.observer import Event, OccurrenceEnded, OccurrencesMissed, ScheduleChanged
from tocsin.ports.store import FailureRow, Found, HistoryRow, RunRow
from tocsin.timers.engine.recurring import Turn
from tocsin.timers.engine.rows import Batch, Conclusion, Row, decoded_row, stored_namespace

if TYPE_CHECKING:
    from tocsin.timers.engine.window import Window

#: Which finished timers of a namespace are kept, and for how many microseconds.
HistoryRule = Callable[[str], tuple[HistoryMode, int]]
#: What was read from the store: None for a timer that it doesn't have.
Fetched = Mapping[bytes, Found | None]


def superseded_run(former: Row, conclusion: Conclusion | None) -> Run | None:
    """The run that a client's new instant ends; None if it has no attempts. `conclusion` is that of an attempt of the former
    row which decides nothing, because the client's write came first."""
    timer = former.timer
    if conclusion is not None and conclusion.timer.attempt_log != timer.attempt_log:
        return _after_attempt(timer, conclusion.timer, RunStatus.SUPERSEDED)
    return run_of(timer, RunStatus.SUPERSEDED) if timer.attempts else None


def attempted_run(former: Row, after: Timer, *, in_memory: bool) -> Run | None:
    """The run whose attempt led to another one, by the timer as it was before and is after the attempt; None if there is
    nothing to keep, because the run goes on. `in_memory` is whether the timer's next row stays in memory."""
    if after.attempts:
        return None if in_memory else run_of(after, RunStatus.SUPERSEDED)
    if after.attempt_log == former.timer.attempt_log:
        # The request was not sent.
        return None
    return _after_attempt(former.timer, after, RunStatus.RESCHEDULED)


def suspended_run(row: Row) -> Run | None:
    """The run of a row that leaves memory to be suspended; None if it has no attempts."""
    return run_of(row.timer, RunStatus.SUPERSEDED) if row.timer.attempts else None


def run_row(former: Row, run: Run, mode: HistoryMode, retention_us: int, now_us: int, *, ended: bool) -> RunRow | None:
    """The row of a run that ended with a live row, or of one whose live row leaves memory; None if the namespace's history
    mode does not keep it. To be rescheduled is no failure."""
    missed = any(each.reason != Missed.EXCLUDED for each in run.missed)
    fine = run.status in (RunStatus.RESCHEDULED, RunStatus.COMPLETED) and not missed
    if mode is HistoryMode.NONE or (mode is HistoryMode.FAILURES and fine):
        return None
    kept_as = former.generation if ended else _generation_of_state(former)
    return RunRow(former.key[1], kept_as, encode_run(run), now_us + retention_us)


def _generation_of_state(row: Row) -> bytes:
    """The same for all rows of a run that one owner has written: the generation with which the run began, or, if that was in
    another epoch, one before the first of this epoch."""
    began_in, dash, sequence = (row.timer.replay or row.timer.firing).partition("-")
    is_same = dash and began_in == f"{int.from_bytes(row.generation[:8], 'big'):x}"
    return row.generation[:-8] + (int(sequence, 16) if is_same else 0).to_bytes(8, "big")


def _after_attempt(former: Timer, after: Timer, status: RunStatus) -> Run:
    """The former state's run with one attempt more, the last of the later state's log."""
    made = former.attempts + 1
    first = after.attempt_log[-1].at if former.first_attempt_at is None else former.first_attempt_at
    return Run(former.execute_at, status, former.firing, made, first, after.attempt_log[-made:])


def ended_run(turn: Turn) -> Run | None:
    """The record of the occurrence that has ended, with the instants missed after it; or of instants missed without one."""
    missed = tuple(MissedInstants(*each) for each in turn.missed)
    if turn.run is not None:
        return msgspec.structs.replace(run_of(turn.run, turn.run.status), missed=missed)
    return Run(missed[0].first_at, RunStatus.MISSED, missed=missed) if missed else None


def accounted_instants(timer: Timer) -> int:
    """How many instants of the schedule have ended or were missed since its creation. Each record of an occurrence adds at
    least one."""
    state = _state(timer)
    return sum(state.counts.values()) + sum(state.missed.values())


def history_row(row: Row, timer: Timer, ended: int, retention_us: int) -> HistoryRow:
    """What is kept of a timer that ended, with its row, at that instant."""
    return HistoryRow(
        row.key[0], row.key[1], row.generation, stored_namespace(timer), timer.id, timer.tags,
        encode_record(timer), timer.status, ended, ended + retention_us,
    )  # fmt: skip


def failure_row(uuid: bytes, generation: bytes, ended: Timer, failed_at: int, retention_us: int) -> FailureRow:
    """The failure of a timer or occurrence that ended at that instant."""
    return FailureRow(
        uuid, generation, stored_namespace(ended), ended.id, failure_of(ended), failed_at, ended.execute_at,
        failed_at + retention_us,
    )  # fmt: skip


class RunRows:
    """The rows of the runs that one batch ends, made at the given moment of the wall clock. None stands for a run that is not
    kept."""

    __slots__ = ("_batch", "_failure_retention_us", "_fetched", "_history_rule", "_now_us", "_window")

    def __init__(
        self,
        window: Window,
        batch: Batch,
        fetched: Fetched,
        history_rule: HistoryRule,
        failure_retention_us: int,
        now_us: int,
    ) -> None:
        self._window, self._batch, self._fetched = window, batch, fetched
        self._history_rule, self._failure_retention_us, self._now_us = history_rule, failure_retention_us, now_us

    def superseded(self, uuid: bytes, former: Row | None = None) -> RunRow | None:
        """The run that a client's new instant ends, if it has attempts; None too if a create does not know of it."""
        if former is None and (former := self._replaced(uuid)) is None:
            return None
        window = self._window
        conclusion = window.superseded.get(uuid) if window.awaiting_write.get(uuid) is former else None
        return self.row(former, superseded_run(former, conclusion))

    def superseded_by(self, uuids: Sequence[bytes]) -> list[RunRow]:
        """Likewise those that plain creates of these uuids end."""
        known = self._window.remembered(uuids)
        if self._batch.final or self._fetched:
            known.update(uuid for uuid in uuids if uuid in self._batch.final or uuid in self._fetched)
        return [run for uuid in sorted(known) if (run := self.superseded(uuid)) is not None]

    def _replaced(self, uuid: bytes) -> Row | None:
        """The live row that a create replaces, as far as memory has it or it was read anyway."""
        window = self._window
        if uuid in self._batch.final:
            return self._batch.final[uuid]
        if uuid in window.finished:
            return None
        present = window.present(uuid)
        if present is None and (found := self._fetched.get(uuid)) is not None and found.live is not None:
            try:
                return decoded_row(found.live)
            except RecordUndecodable:
                return None
        return present

    def attempted(self, former: Row, row: Row, *, stays: bool) -> RunRow | None:
        """The run whose attempt has led to the row that is to be written; `stays`: it is not suspended."""
        in_memory = stays and row.key <= self._window.horizon
        return self.row(former, attempted_run(former, row.timer, in_memory=in_memory), ended=not row.timer.attempts)

    def row(self, former: Row, run: Run | None, *, ended: bool = True) -> RunRow | None:
        """The row of a run of the former row, by its namespace's rules."""
        if run is None:
            return None
        mode, retention_us = self._history_rule(former.timer.namespace)
        if run.status in FAILED_RUNS:
            retention_us = max(retention_us, self._failure_retention_us)
        return run_row(former, run, mode, retention_us, self._now_us, ended=ended)


def events_of(shard_id: int, turn: Turn) -> list[Event]:
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


def schedule_deleted(shard_id: int, timer: Timer) -> Event:
    """The event of a schedule's delete."""
    return ScheduleChanged(shard_id, timer.namespace, timer.id, "deleted")


def _state(timer: Timer) -> State:
    # The placeholder of a record that can't be read has none.
    return timer.schedule.state if timer.schedule is not None else State(0)
