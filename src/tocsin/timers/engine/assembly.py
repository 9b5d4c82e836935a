"""How a batch is assembled from a window: first its operations, in order, then its finished timers (rules 4, 11, 17 and 18).

Pure, like the window: nothing here waits or reads a clock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import starmap
from operator import itemgetter

import msgspec

from tocsin.model.calendar import NO_CALENDARS, Calendars
from tocsin.model.condition import Outcome
from tocsin.model.errors import (
    DefiniteFailure,
    InvalidInput,
    PayloadTooLarge,
    RecordTooNew,
    RecordUndecodable,
    RequestExpired,
    ScheduleEnded,
    TimerNotFound,
    TimerNotPending,
    TocsinError,
)
from tocsin.model.failure import FAILED
from tocsin.model.hooks import Event, Hooks
from tocsin.model.monitor import MonitorChange
from tocsin.model.quota import Quota, Room, no_room
from tocsin.model.schedule import Put, Replan, Replay
from tocsin.model.timer import UNUSABLE, Status, Timer
from tocsin.ports.observer import TimerSuspended
from tocsin.ports.quotas import QuotaRefused
from tocsin.ports.store import RunRow, ShardBatch
from tocsin.timers.engine import recurring
from tocsin.timers.engine.ends import EndRows
from tocsin.timers.engine.finished import Finished
from tocsin.timers.engine.idempotency import create_if, former_row, replay, stored_by_newer
from tocsin.timers.engine.monitored import MonitorWrites
from tocsin.timers.engine.notifications import (
    Subject,
    due_at,
    end_of_timer,
    is_notified,
    notification,
    turn_of_schedule,
)
from tocsin.timers.engine.parts import Part, WrittenPart
from tocsin.timers.engine.rows import (
    UNBOUNDED,
    Batch,
    ExistingRow,
    OpKind,
    Row,
    RowRoom,
    TurnReason,
    WriteAnswer,
    WriteOp,
    decoded_row,
    finished_timer,
    stored,
    too_large,
    undecodable_row,
)
from tocsin.timers.engine.runs import (
    Fetched,
    HistoryRule,
    RunRows,
    accounted_instants,
    ended_run,
    events_of,
    schedule_deleted,
    suspended_run,
)
from tocsin.timers.engine.schedule_changes import Subject as Changed
from tocsin.timers.engine.schedule_changes import change, unexpected
from tocsin.timers.engine.window import EXPIRED, REASON_CHARS_MAX, Window

#: The key of a stored row, and of one that has finished.
_key_of_stored = itemgetter(0, 1)
#: The reckoning of schedules for one commit, during which the event loop does nothing else: what becomes of a row takes 0.1
#: ms and counts as one. A change counts more, even if it is refused: its rule may be new to this node. So many looks at
#: calendars count as one more.
RECKONING_MAX, _RECKONING_OF_CHANGE, _LOOKS_OF_RECKONING = 250, 5, 100
#: What clients, and jobs for them, can no longer do in a namespace that is being deleted.
_CHANGES = frozenset((OpKind.CREATE, OpKind.UPDATE, OpKind.REPLAY, OpKind.SCHEDULE))
#: The hooks of a namespace, for its timers without their own.
HooksOf = Callable[[str], Hooks | None]
#: Why nothing can be created or changed in a namespace; None if it can.
RefusalOf = Callable[[str], TocsinError | None]
#: The room that a namespace has for creates; None: for any number.
RoomFor = Callable[[str], Room | None]
#: The calendars of a namespace.
CalendarsOf = Callable[[str], Calendars]


class Assembly:
    """One batch in the making, at the given moment of the wall clock and the boot time clock. The window changes when the
    batch is durable; until then only the operations leave its queue."""

    def __init__(
        self,
        window: Window,
        *,
        now_us: int,
        boot_us: int,
        history_rule: HistoryRule,
        failure_retention_us: int,
        hooks_of: HooksOf = lambda namespace: None,
        refusal_of: RefusalOf = lambda namespace: None,
        fetched: Fetched | None = None,
        room: RowRoom = UNBOUNDED,
    ) -> None:
        self._window = window
        self._now_us, self._boot_us = now_us, boot_us
        self._history_rule = history_rule
        self._hooks_of, self._refusal_of = hooks_of, refusal_of
        #: The room of namespaces for creates; None: none of them has a quota.
        self.room_for: RoomFor | None = None
        #: Why a row is suspended that has the turn of an ordered flow's key; None: none has.
        self.turn_reason: TurnReason | None = None
        #: The calendars of the namespaces.
        self.calendars_of: CalendarsOf = lambda namespace: NO_CALENDARS
        # Namespaces that take changes, as far as this batch has asked.
        self._open: set[str] = set()
        self._fetched: Fetched = {} if fetched is None else fetched
        self._batch = Batch(ShardBatch(window.shard_id, window.epoch, window.incarnation))
        self._runs = RunRows(window, self._batch, self._fetched, history_rule, failure_retention_us, now_us)
        self._monitors = MonitorWrites(window, self._batch, history_rule, now_us)
        #: What is written of ends; it has to know which namespaces have a sink.
        self.ends = EndRows(window, self._batch, history_rule, failure_retention_us, now_us)
        self._row_bytes_max, self._client_bytes_max = room.bytes_max, room.bytes_max - room.reserve_bytes
        # What the record of the present operation may have.
        self._bytes_max = room.bytes_max

    def batch(
        self,
        *,
        rows_max: int,
        bytes_max: int,
        finished_max: int,
        exact_after_us: int,
        reckoning_max: int = RECKONING_MAX,
    ) -> Batch:
        """Pending operations in order up to the limits, with one final state per uuid (rule 4), and at most `finished_max`
        finished timers, besides those that an operation depends on. If it is empty, its fence still proves answers of
        "will not fire" (rule 16)."""
        window, batch = self._window, self._batch
        while window.pending and batch.writes < rows_max and batch.bytes < bytes_max and batch.reckoned < reckoning_max:
            op = window.pending[0]
            if op.deadline_us is not None and op.deadline_us <= self._boot_us:
                window.pending.popleft()
                window.refuse(op, RequestExpired(EXPIRED), self._boot_us)
                batch.refused = True
                continue
            if isinstance(op, Part):
                if self._write_part(op, rows_max - batch.writes, bytes_max - batch.bytes):
                    window.pending.popleft()
                else:
                    window.queue.take_apart(op)
                continue
            if op.uuid not in self._fetched and window.needs_store(op, batch.final):
                break
            brings = op.by_client and (op.timer is not None or op.changes is not None)
            self._bytes_max = self._client_bytes_max if brings else self._row_bytes_max
            try:
                answer = self._resolve(op)
            except (PayloadTooLarge, *UNUSABLE) as error:
                if not (op.by_client and isinstance(error, PayloadTooLarge)):
                    self._refuse_unusable(op, error)
                    continue
                answer = error
            window.pending.popleft()
            batch.ops.append(op)
            batch.answers.append(answer)
        batch.store.deletes += [uuid for uuid, row in batch.final.items() if row is None]
        if finished_max and window.finished:
            self._take_finished(finished_max, exact_after_us)
        elif window.finished:
            # Each once: a replay relies on the end of the timer that it writes.
            for uuid in dict.fromkeys((*batch.final, *sorted(batch.relied_on))):
                if uuid in window.finished:
                    self._take(window.finished[uuid])
        if finished_max and window.events.waits:
            window.events.add_to(batch)
        return self._with_upserts()

    def only(self, entry: Finished) -> Batch:
        """A batch with only the exact delete of one finished timer, and what reports its end."""
        self._take(entry)
        return self._with_upserts()

    def _with_upserts(self) -> Batch:
        self._batch.store.upserts = sorted(self._batch.upserts.values(), key=_key_of_stored)
        return self._batch

    # ------------------------------------------------------------------ operations

    def _write_part(self, part: Part, rows_max: int, bytes_max: int) -> bool:
        """Adds the creates of the part to the batch, each with the effect that it has as an operation; False, and nothing
        is added, if one of them has to be decided by itself, or the batch has no room for all."""
        batch, created = self._batch, part.created()
        if len(part) > rows_max or not all(starmap(self._admits, created.items())):
            return False
        if part.may_repeat(self._window.remembered, batch.final, self._fetched):
            return False
        try:
            rows, stored_rows = part.rows()
        except UNUSABLE:
            return False
        sizes = [row.size for row in rows]
        if max(sizes) > self._client_bytes_max or sum(sizes) > bytes_max:
            return False
        for run in self._runs.superseded_by(part.uuids):
            self._add_run(run)
        for namespace, count in created.items():
            if self.room_for is not None and self.room_for(namespace) is not None:
                batch.creates[namespace] = batch.creates.get(namespace, 0) + count
        batch.add_part(WrittenPart(part, len(batch.ops), rows), stored_rows, sum(sizes))
        return True

    def _admits(self, namespace: str, count: int) -> bool:
        """Whether the namespace takes so many creates."""
        if namespace not in self._open:
            if self._refusal_of(namespace) is not None:
                return False
            self._open.add(namespace)
        room = None if self.room_for is None else self.room_for(namespace)
        return room is None or self._batch.creates.get(namespace, 0) + count <= room.left

    def _resolve(self, op: WriteOp) -> WriteAnswer:
        """Adds the operation's effect to the batch; returns its answer."""
        uuid, kind, window, batch = op.uuid, op.kind, self._window, self._batch
        if op.namespace not in self._open and (refused := self._refused(op)) is not None:
            return refused
        if kind is OpKind.CREATE:
            assert op.timer is not None
            if op.condition is None:
                row = Row((op.timer.execute_at, uuid), op.generation, op.timer, 0)
                return self._create(op, row)
            found, mode = self._fetched.get(uuid), self._history_rule(op.namespace)[0]
            answer = create_if(op, batch, window, found, mode, self._now_us)
            return self._create(op, answer) if type(answer) is Row else answer
        if kind is OpKind.REPLAY:
            return self._replay(op)
        if kind is OpKind.RETRY:
            assert op.timer is not None
            answered = window.retrying.get(uuid)
            if uuid in batch.final or answered is None or answered.generation != op.expected:
                return None
            return self._write_attempted(answered, op)
        if kind is OpKind.HAND_OVER:
            attempt = window.deciding(uuid, op.expected)
            if uuid in batch.final or attempt is None:
                return None
            timer = attempt.row.timer
            if timer.schedule is not None:
                timer = recurring.left(timer)
            return self.write(Row((op.execute_at, uuid), op.generation, timer, 0), recurring.suspended_reason(timer))
        if kind is OpKind.RECUR:
            answered = batch.final[uuid] if uuid in batch.final else window.retrying.get(uuid)
            return self._recur(op, answered)
        present = self._present(op)
        if op.only_if is not None and isinstance(present, Row) and not op.only_if.matches(present.timer):
            return TimerNotPending("what the job examined has changed since, and is not among its rows any more")
        if kind is OpKind.SCHEDULE:
            return self._change_schedule(op, present)
        if not isinstance(present, Row):
            return present
        if kind is OpKind.UPDATE:
            return self._update(op, present)
        if kind is OpKind.DELETE:
            if refused := unexpected(op, present.timer):
                return refused
            if present.timer.monitor is not None:
                return self._monitors.delete(self, op, present)
            timer = msgspec.structs.replace(present.timer, status=Status.CANCELED, updated_at=self._now_us)
            self.end(op, present, timer)
            if timer.schedule is not None:
                batch.events.append(schedule_deleted(window.shard_id, timer))
            return None
        if kind is OpKind.CONCLUDE and present.timer.schedule is not None:
            return self._recur(op, present)
        if present.generation != op.expected:
            return None
        if kind is OpKind.MOVE_ON and present.timer.monitor is not None:
            return self._monitors.overdue(self, op, present)
        if kind is OpKind.MOVE_ON:
            known = self.calendars_of(op.namespace)
            return self._turn(op, present, recurring.move_on(present.timer, uuid, self._now_us, known))
        if kind is OpKind.CONCLUDE:
            assert op.timer is not None
            if op.timer.status is Status.PENDING:
                return self._write_attempted(present, op)
            self.end(op, present, op.timer)
            self._notify_end(present, op.timer, op.generation)
            return None
        if kind is OpKind.SUSPEND:
            row = Row(present.key, op.generation, present.timer, 0, present.raw)
            return self.write(row, op.reason, self._runs.row(present, suspended_run(present), ended=False))
        row = Row(present.key, op.generation, present.timer, 0, present.raw)
        row.let_at = present.let_at and self._now_us
        if present.raw is None:
            return self.write(row)
        # Damaged while it was suspended for another reason: it stays suspended, unchanged (rule 15).
        reason = f"bad_record: {present.timer.last_error}"[:REASON_CHARS_MAX]
        batch.events.append(TimerSuspended(window.shard_id, uuid, reason))
        return self.write(row, reason)

    def _refused(self, op: WriteOp) -> TocsinError | None:
        """Why a client's change is not made in its namespace; None if it is."""
        refused = self._refusal_of(op.namespace)
        if refused is None:
            self._open.add(op.namespace)
        return refused if op.kind in _CHANGES and type(op.change) is not Replan else None

    def _create(self, op: WriteOp, row: Row) -> Row | TocsinError:
        """Writes what a create has made, unless it adds a timer to a namespace with as many pending as its quota allows."""
        namespace = op.namespace
        room = None if self.room_for is None or row.timer.has_joined else self.room_for(namespace)
        if room is None:
            return self.write(row, run=self._runs.superseded(op.uuid))
        created = self._batch.creates.get(namespace, 0)
        if created >= room.left:
            self._batch.events.append(QuotaRefused(namespace, Quota.PENDING))
            return no_room(namespace, room.quota)
        self.write(row, run=self._runs.superseded(op.uuid))
        self._batch.creates[namespace] = created + 1
        return row

    def _replay(self, op: WriteOp) -> WriteAnswer:
        uuid, window, batch = op.uuid, self._window, self._batch
        finished, mode = window.finished.get(uuid), self._history_rule(op.namespace)[0]
        try:
            former = former_row(uuid, batch, finished, window.present(uuid), self._fetched.get(uuid), mode)
        except RecordTooNew as error:
            return stored_by_newer(error)
        answer = replay(op, former, self._now_us, window.queue.firing_of(op))
        if former is None or type(answer) is not Row:
            return answer
        self.write(answer)
        if former.timer.status in FAILED:
            batch.store.resolved.append((uuid, former.generation))
        return answer

    def _present(self, op: WriteOp) -> WriteAnswer:
        """The timer's live row as of this batch. If there is none, the answer: an error for a client."""
        uuid, by_client, batch = op.uuid, op.by_client, self._batch
        if uuid in batch.final:
            return batch.final[uuid] or (TimerNotPending("the timer was deleted") if by_client else None)
        if uuid in self._window.finished:
            batch.relied_on.add(uuid)
            return TimerNotPending("the timer has finished") if by_client else None
        if (present := self._window.present(uuid)) is not None:
            return present
        found = self._fetched.get(uuid)
        if found is None:
            return TimerNotFound("no such timer") if by_client else None
        if found.live is None:
            return TimerNotPending("the timer has finished") if by_client else None
        if found.live.suspended is None and op.kind is OpKind.RESUME:
            return None
        try:
            return decoded_row(found.live)
        except RecordUndecodable as error:
            return undecodable_row(found.live, str(error))

    def _update(self, op: WriteOp, present: Row) -> Row | TocsinError:
        assert op.changes is not None
        if present.raw is not None:
            return TimerNotPending(
                f"the stored record can't be read ({present.timer.last_error}); create the timer again"
            )
        now_us = self._now_us
        if op.only_if is not None and op.only_if.updated_before is not None:
            # Whatever this node's clock shows, the job does not find the timer among its rows again.
            now_us = max(now_us, op.only_if.updated_before)
        try:
            timer = op.changes.apply(present.timer, now_us)
        except InvalidInput as error:
            return error
        # Renewed even if the instant stays: a receiver that has seen the former id would take the new state for a duplicate.
        timer.firing, timer.replay = self._window.queue.firing_of(op), ""
        if not op.changes.moves:
            return self.write(Row((present.key[0], op.uuid), op.generation, timer, 0))
        run = self._runs.superseded(op.uuid, present)
        return self.write(Row((timer.execute_at, op.uuid), op.generation, timer, 0), run=run)

    # ------------------------------------------------------------------ schedules

    def _recur(self, op: WriteOp, present: Row | None) -> Row | None:
        """Applies the result of a schedule's attempt to the present definition, unless another attempt is due by now."""
        assert op.timer is not None
        if present is None or present.identity != op.expected:
            return None
        known = self.calendars_of(op.namespace)
        turn = recurring.recur(present.timer, op.uuid, op.timer, op.execute_at, self._now_us, known)
        return self._turn(op, present, turn)

    def _change_schedule(self, op: WriteOp, present: WriteAnswer) -> WriteAnswer:
        """Applies a client's change to the schedule or monitor, or creates it."""
        if isinstance(op.change, MonitorChange):
            return self._monitors.change(self, op, op.change, present)
        window, live, ended = self._window, None, None
        self._batch.reckoned += _RECKONING_OF_CHANGE
        if isinstance(present, Row):
            live = present.timer if present.raw is None else None
        elif isinstance(op.change, Put):
            ended = self._ended_schedule(op.uuid)
        elif isinstance(present, TimerNotPending):
            return ScheduleEnded("the schedule has ended; create it again")
        else:
            return present
        if live is None and not isinstance(op.change, Put):
            return TimerNotPending("the stored record can't be read; create the schedule again")
        at = present.key[0] if isinstance(present, Row) else 0
        begun = isinstance(present, Row) and window.has_begun(present)
        calendars = self.calendars_of(op.namespace)
        outcome = change(op, Changed(live, ended, at, begun, window.queue.firing_of(op), calendars), self._now_us)
        self._batch.reckoned += calendars.looked() // _LOOKS_OF_RECKONING
        if isinstance(outcome, recurring.Turn):
            if isinstance(op.change, Replay):
                self._batch.store.resolved += [(op.uuid, generation) for generation in op.change.generations]
            return self._turn(op, present if isinstance(present, Row) else None, outcome)
        if isinstance(outcome, Timer):
            return ExistingRow(Row((at, op.uuid), op.generation, outcome, 0), Outcome.EXISTING)
        return outcome

    def _ended_schedule(self, uuid: bytes) -> Timer | None:
        """The schedule of that uuid that ended last, if it is retained and can be read."""
        if uuid in self._batch.ended:
            return self._batch.ended[uuid].timer
        return finished_timer(self._fetched.get(uuid))

    def _turn(self, op: WriteOp, former: Row | None, turn: recurring.Turn) -> Row:
        """Writes what becomes of a schedule's row: its next occurrence, or its end; and with it what came before."""
        timer, batch, shard_id = turn.timer, self._batch, self._window.shard_id
        batch.reckoned += 1 + self.calendars_of(op.namespace).looked() // _LOOKS_OF_RECKONING
        row = Row((turn.at, op.uuid), op.generation, timer, 0)
        run = None if former is None else self._runs.row(former, ended_run(turn))
        if former is not None and run is not None:
            before = batch.accounted[op.uuid][0] if op.uuid in batch.accounted else accounted_instants(former.timer)
            batch.accounted[op.uuid] = (before, accounted_instants(timer))
            if turn.run is not None and turn.run.status in FAILED:
                self.ends.fail(op.uuid, run.generation, turn.run, turn.run.executed_at or self._now_us)
        if timer.status is Status.PENDING:
            self.write(row, recurring.suspended_reason(timer), run)
        else:
            self.end(op, row, timer)
            if run is not None:
                self._add_run(run)
        batch.events += events_of(shard_id, turn)
        if self.ends.sinks is not None:
            self.ends.turned(op.uuid, turn)
        if is_notified(row, self._hooks_of(timer.namespace)):
            self.notify(row, op.generation, turn_of_schedule(turn))
        return row

    def _write_attempted(self, former: Row, op: WriteOp) -> Row:
        """Writes what the timer is after an attempt of its former row, and the run that this attempt ends."""
        assert op.timer is not None
        row = Row((op.execute_at, op.uuid), op.generation, op.timer, 0)
        stays = self.turn_reason is None or self.turn_reason(row) is None
        return self.write(row, run=self._runs.attempted(former, row, stays=stays))

    def write(self, row: Row, suspended: str | None = None, run: RunRow | None = None) -> Row:
        """Writes the row, and with it the run that it ends. Raises PayloadTooLarge."""
        if suspended is None and self.turn_reason is not None:
            suspended = self.turn_reason(row)
        uuid, batch, record = row.key[1], self._batch, stored(row, suspended)
        if row.size > self._bytes_max:
            raise too_large(row.timer, row.size, self._bytes_max)
        batch.upserts[uuid] = record
        if run is not None:
            self._add_run(run)
        batch.final[uuid] = row
        batch.bytes += row.size
        if suspended is None:
            batch.suspended.discard(uuid)
        else:
            batch.suspended.add(uuid)
        return row

    def _add_run(self, run: RunRow) -> None:
        self._batch.store.runs.append(run)
        self._batch.bytes += len(run.record)

    def end(self, op: WriteOp, present: Row, timer: Timer) -> None:
        """The operation ends the timer: its row is deleted, and its history is written."""
        # What can fail comes first: a refused operation must leave nothing in the batch.
        batch, ended = self._batch, Row(present.key, op.generation, timer, present.size)
        if timer.id and timer.namespace:
            # A damaged row may have lost them.
            self.ends.record(ended, timer)
        batch.final[op.uuid] = None
        batch.ended[op.uuid] = ended
        batch.upserts.pop(op.uuid, None)
        batch.suspended.discard(op.uuid)

    def _refuse_unusable(self, op: WriteOp, error: BaseException) -> None:
        """Refuses an operation that can't be encoded; a retry's timer is suspended with the reason instead (rule 15)."""
        window, reason = self._window, f"{type(error).__name__}: {error}"[:REASON_CHARS_MAX]
        self._batch.unusable.append((op.uuid, reason))
        present = window.retrying.get(op.uuid) if op.kind in (OpKind.RETRY, OpKind.RECUR) else None
        window.pending.popleft()
        if present is None:
            window.refuse(op, DefiniteFailure(f"the timer can't be written: {reason}"), self._boot_us)
            self._batch.refused = True
        else:
            window.suspend_retrying(present, f"bad_record: {reason}")

    # ------------------------------------------------------------------ finished timers

    def _take_finished(self, finished_max: int, exact_after_us: int) -> None:
        """Rule 11: the delete watermark, the range delete up to it, and exact deletes of what has waited above it for
        long."""
        window, batch = self._window, self._batch
        candidates, watermark = window.finished.first(finished_max + 1), None
        chosen = candidates[:finished_max]
        if window.delete_watermark:
            limit = window.first_unfinished(batch.final)
            for upsert in batch.upserts.values():
                if upsert.suspended is None and (upsert.execute_at, upsert.uuid) < limit:
                    limit = (upsert.execute_at, upsert.uuid)
            if len(chosen) < len(candidates):
                limit = min(limit, candidates[len(chosen)].row.key)
            for entry in chosen:
                if entry.row.key >= limit or entry.row.key > window.horizon:
                    break
                watermark = entry.row.key
        batch.store.delete_to = watermark
        taken = set[bytes]()
        for entry in chosen:
            if watermark is None or entry.row.key > watermark:
                break
            taken.add(entry.row.key[1])
            self._take(entry)
        needed = (window.finished.keys() & (batch.final.keys() | batch.relied_on)) - taken
        for uuid in sorted(needed):
            self._take(window.finished[uuid])
        taken |= needed
        waits_since_us = self._boot_us - exact_after_us if window.range_delete else sys.maxsize
        # In the order in which they finished.
        for entry in window.finished.values():
            if entry.since_us > waits_since_us or len(batch.finished) >= len(chosen):
                break
            if entry.row.key[1] not in taken:
                self._take(entry)

    def _take(self, entry: Finished) -> None:
        """Adds a finished timer to the batch: the range delete removes it, an upsert replaces it, or its uuid is deleted."""
        key, batch = entry.row.key, self._batch
        batch.finished.append(entry)
        if entry.with_history:
            try:
                self.ends.keep(entry.row, entry.timer)
            except UNUSABLE as error:
                entry.with_history = False
                batch.unusable.append((key[1], f"history: {type(error).__name__}: {error}"[:REASON_CHARS_MAX]))
            self._notify_end(entry.row, entry.timer, entry.row.generation)
        try:
            # Also of an end whose history can't be kept: no gap would state that its event is missing.
            self.ends.ended(entry.row, entry.timer)
        except UNUSABLE as error:
            batch.unusable.append((key[1], f"event: {type(error).__name__}: {error}"[:REASON_CHARS_MAX]))
        watermark = batch.store.delete_to
        in_range = self._window.range_delete and watermark is not None and key <= watermark
        if key[1] not in batch.final and not in_range:
            batch.store.deletes.append(key[1])

    # ------------------------------------------------------------------ notifications

    def _notify_end(self, row: Row, timer: Timer, ended_as: bytes) -> None:
        if is_notified(row, self._hooks_of(timer.namespace)):
            self.notify(row, ended_as, end_of_timer(timer))

    def notify(self, row: Row, ended_as: bytes, reported: Iterable[tuple[Event, Subject]]) -> None:
        """Adds the notifications of the events, as timers of the same chunk (rule 18). One that can't be encoded is left out
        and reported, and keeps nothing else from being written."""
        batch, now_us, subject_uuid = self._batch, self._now_us, row.key[1]
        defaults, at_us = self._hooks_of(row.timer.namespace), due_at(now_us, batch.store.delete_to)
        for event, subject in reported:
            if row.timer.monitor is not None:
                self.ends.monitor(subject_uuid, row.timer, subject.verb)
            try:
                made = notification(event, subject, defaults, subject_uuid, ended_as, at_us, now_us)
                if made is None:
                    continue
                uuid, timer = made
                self._bytes_max = self._row_bytes_max
                self.write(Row((at_us, uuid), self._window.queue.next_generation(), timer, 0))
                batch.store.together[uuid] = subject_uuid
            except (PayloadTooLarge, *UNUSABLE) as error:
                reason = f"notification: {type(error).__name__}: {error}"[:REASON_CHARS_MAX]
                batch.unusable.append((subject_uuid, reason))
