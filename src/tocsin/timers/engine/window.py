"""The window of one shard under one claim: a pure state machine. It is given what happened and returns what to do, without
I/O and without a clock.

`tests/support/transitions.py` is the table of a timer's states and what may follow from which event. The way of most timers:

    ABSENT ─load, commit─► WAITING ─dispatch─► IN_FLIGHT ─final attempt─► FINISHED ─commit─► ABSENT
                              ▲                    │
                              └─commit─ RETRYING ◄─┘ next attempt

A row for which it is too late passes through IN_FLIGHT without a request (`end_unfired`).

Rule numbers refer to ARCHITECTURE.md, "Rules of the engine". `tests/properties` and `tests/simulation` check this code under
random interleavings and faults; `make mutants` shows that each rule is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Container, Iterable, KeysView, Sequence

from tocsin.model.errors import RequestExpired, TocsinError
from tocsin.ports.store import KEY_MIN, FireKey
from tocsin.timers.engine.event_log import EventLog
from tocsin.timers.engine.finished import Finished, FinishedTimers, RetryingRows
from tocsin.timers.engine.in_flight import AttemptsInFlight
from tocsin.timers.engine.monitored import MonitorMemory
from tocsin.timers.engine.parts import Creates, Part
from tocsin.timers.engine.recurring import suspended_reason
from tocsin.timers.engine.rows import (
    LAST_SUPERSEDING,
    Batch,
    Conclusion,
    FinalAttempt,
    InFlightAttempt,
    LoadRequest,
    NextAttempt,
    OpKind,
    Row,
    WriteOp,
    conclusion_op,
)
from tocsin.timers.engine.waiting_rows import WaitingRows, key_before
from tocsin.timers.engine.write_queue import WriteQueue

#: Operations that depend on nothing but memory.
_WITHOUT_STORE = frozenset((OpKind.CREATE, OpKind.RETRY, OpKind.HAND_OVER, OpKind.RECUR))
#: Those of them that write the row, if at all.
_WRITING = _WITHOUT_STORE - {OpKind.HAND_OVER}
#: Characters of a reason for suspending a row. An error that quotes the row is cut.
REASON_CHARS_MAX = 500
EXPIRED = "the request's time budget ran out; nothing was written"


class Window:
    """All transitions of one shard's timers under one claim (`epoch`, `incarnation`).

    A lost claim ends the window. After a new claim a fresh window takes over the in-flight attempts as `orphaned`.
    """

    def __init__(
        self,
        shard_id: int,
        epoch: int,
        incarnation: bytes,
        *,
        orphaned: Iterable[InFlightAttempt] = (),
        range_delete: bool = True,
        delete_watermark: bool = False,
    ) -> None:
        self.shard_id = shard_id
        self.epoch = epoch
        self.incarnation = incarnation
        self.range_delete = range_delete
        # Whether batches have a watermark; without `range_delete` the batch also has the deletes of all that it covers.
        self.delete_watermark = delete_watermark or range_delete
        self.horizon: FireKey = KEY_MIN
        #: They wait for their instants, or for a slot.
        self.waiting = WaitingRows()
        self.rows = self.waiting.by_uuid
        self._attempts = AttemptsInFlight()
        self.in_flight = self._attempts.by_uuid
        self.finished = FinishedTimers()
        # Rows that neither fire nor are deleted by range until a write decides about them: a client's, accepted before the
        # row's attempt ended; a suspension; or a delete that the store has refused and that is tried again.
        self.awaiting_write: dict[bytes, Row] = {}
        # The results of such attempts. Each counts if the client's write is refused.
        self.superseded: dict[bytes, Conclusion] = {}
        self.retrying = RetryingRows()
        self.queue = WriteQueue(epoch, incarnation)
        self.pending = self.queue.entries
        self._client_ops = self.queue.superseding
        # Clients' changes of schedules. Until they are written no attempt begins, so that each knows whether the occurrence
        # has begun.
        self._changes: dict[bytes, int] = {}
        # Generations that are about to be suspended. They must not fire, even if a load returns them again.
        self._suspending: dict[bytes, bytes] = {}
        self.monitors = MonitorMemory()
        self.events = EventLog(epoch)
        self._refused: deque[tuple[int, WriteOp | Finished]] = deque()
        self._load: LoadRequest | None = None
        self._load_number = 0
        self._changed_since_load: dict[bytes, Row | None] = {}
        for attempt in orphaned:
            # Only a load shows whether its row is still the durable one (rule 3).
            attempt.superseded = attempt.stale = True
            self._attempts.add(attempt)

    @property
    def in_flight_count(self) -> int:
        """Attempts in flight."""
        return self._attempts.count

    # ------------------------------------------------------------------ acceptance

    def accept(self, op: WriteOp) -> None:
        """Queues an operation for the next batch and assigns its generation. The window itself changes at the commit."""
        op.generation = self.queue.next_generation()
        if op.kind <= LAST_SUPERSEDING:
            uuid = op.uuid
            self._client_ops[uuid] = self._client_ops.get(uuid, 0) + 1
            for attempt in self.in_flight.get(uuid, ()):
                attempt.superseded = True
        elif op.kind is OpKind.SUSPEND or op.kind is OpKind.MOVE_ON:
            self._suspending[op.uuid] = op.expected
        elif op.kind is OpKind.SCHEDULE:
            self._changes[op.uuid] = self._changes.get(op.uuid, 0) + 1
        if op.timer is not None and not op.timer.firing:
            op.timer.firing = self.queue.firing_of(op)
        self.pending.append(op)

    def accept_creates(self, creates: Creates, deadline_us: int | None) -> None:
        """Queues plain creates, like as many operations, in a part."""
        self.queue.add_creates(creates, deadline_us)
        for uuid in self.in_flight.keys() & creates.uuids if self.in_flight else ():
            for attempt in self.in_flight[uuid]:
                attempt.superseded = True

    def suspend(self, row: Row, reason: str) -> str:
        """Queues the suspension of a row that must not fire until then: deferred, or awaiting a write. Returns the reason as
        it will be stored."""
        reason = reason[:REASON_CHARS_MAX]
        timer, uuid = row.timer, row.key[1]
        self.accept(WriteOp(OpKind.SUSPEND, uuid, timer.namespace, expected=row.generation, reason=reason))
        return reason

    def suspend_retrying(self, row: Row, reason: str) -> None:
        """Suspends a row whose retry can't be written, in place of the retry."""
        uuid = row.key[1]
        del self.retrying[uuid]
        self.awaiting_write[uuid] = row
        self.suspend(row, reason)

    def move_on(self, row: Row) -> None:
        """Queues what becomes of a schedule's or monitor's late row. It must be deferred, and does not fire until then."""
        self.accept(WriteOp(OpKind.MOVE_ON, row.key[1], row.timer.namespace, expected=row.generation))

    def is_changing(self, uuid: bytes) -> bool:
        """Whether a client's change of the schedule is not durable yet. Its row must be deferred until then."""
        return uuid in self._changes

    # ------------------------------------------------------------------ dispatch

    def next_key(self) -> FireKey | None:
        """The smallest key that waits for its instant; None if there is none."""
        return self.waiting.next_key()

    def longest_wait_us(self, now_us: int) -> int:
        """How long the oldest due row has waited, deferred rows included, in microseconds; 0 when none is due. Where many
        rows were accepted long after their instants, it is that of the oldest among the rows checked."""
        return self.waiting.longest_wait_us(now_us)

    def due(self, now_us: int) -> Row | None:
        """The next row whose instant has come (rule 12), or None. It stays until `dispatch` or `defer`."""
        while (row := self.waiting.first()) is not None and row.key[0] <= now_us:
            if self._suspending.get(row.key[1]) != row.generation:
                return row
            # The key is from before its attempt, which was not sent.
            self.defer()
        return None

    def defer(self) -> None:
        """Defers the row that `due` returned, because its destination is busy: it stays, and `due` no longer returns it."""
        self.waiting.defer()

    def put_back(self, row: Row) -> None:
        """Returns a deferred row to the order of instants: it is no longer due, or has to be dispatched again."""
        self.waiting.put_back(row)

    def holds(self, row: Row) -> bool:
        """Whether this very row is still in the window, and not about to be suspended: if it was put back and deferred again,
        it waits in two places. Check it before dispatching a deferred row."""
        uuid = row.key[1]
        return self.rows.get(uuid) is row and self._suspending.get(uuid) != row.generation

    def dispatch(self, row: Row) -> InFlightAttempt:
        """Moves the row from the window to an in-flight attempt, until `answered` or `not_sent`."""
        uuid = row.key[1]
        self.waiting.remove(uuid)
        superseded = uuid in self._client_ops
        if superseded:
            # A load may have returned the row before its commit is confirmed, while former attempts go on: their results
            # must not take the place of this one's.
            self._forget_former(row)
        attempt = InFlightAttempt(row, superseded, row.timer.attempts + 1)
        self._attempts.add(attempt)
        return attempt

    def answered(self, attempt: InFlightAttempt, conclusion: Conclusion, boot_us: int) -> bool:
        """Takes an attempt's result. False when it decides nothing because the timer has been changed since (rule 10)."""
        if not self._attempts.end(attempt):
            return False
        row = attempt.row
        if attempt.superseded:
            if not attempt.stale:
                self.awaiting_write[row.key[1]] = row
                self.superseded[row.key[1]] = conclusion
            return False
        self._conclude(row, conclusion, boot_us)
        return True

    def end_unfired(self, row: Row, conclusion: FinalAttempt, boot_us: int) -> bool:
        """Ends a due row without an attempt (rule 27). It decides as much as the result of an attempt that begins and ends at
        this moment: nothing if a client's write is about to change the timer (False)."""
        return self.answered(self.dispatch(row), conclusion, boot_us)

    def not_sent(self, attempt: InFlightAttempt, suspended: str | None = None) -> bool:
        """The request was never sent (rule 24): the row is due again in the same generation, unless it is not the durable one
        any more, or beyond the horizon, which may have shrunk since: then it is loaded again in time.

        With `suspended`, the row that would be due again is suspended for that reason instead; returns whether it is."""
        row = attempt.row
        if not self._attempts.end(attempt) or attempt.stale or row.key > self.horizon:
            return False
        if suspended_reason(row.timer) is not None:
            return False
        if suspended is not None:
            # First, so that the row is added to the deferred ones.
            self.suspend(row, suspended)
        self._add(row)
        return suspended is not None

    def deciding(self, uuid: bytes, identity: bytes) -> InFlightAttempt | None:
        """The in-flight attempt whose result decides about the durable row of that identity, if there is one."""
        return self._attempts.deciding(uuid, identity)

    def hand_over(self, margin_us: int) -> None:
        """Records durably that the in-flight attempts remain with this node, whoever owns the shard next (rule 25). Without a
        result within its time-out and `margin_us`, the next owner makes an attempt again."""
        for attempts in list(self.in_flight.values()):
            for attempt in attempts:
                if not attempt.superseded:
                    timer = attempt.row.timer
                    self.accept(
                        WriteOp(
                            OpKind.HAND_OVER,
                            attempt.row.key[1],
                            timer.namespace,
                            execute_at=attempt.fired_at + timer.timeout_us + margin_us,
                            expected=attempt.row.identity,
                        )
                    )

    @property
    def undecided(self) -> bool:
        """Whether an in-flight attempt's result is still to come that this window will conclude."""
        return any(not attempt.stale for attempts in self.in_flight.values() for attempt in attempts)

    def _conclude(self, row: Row, conclusion: Conclusion, boot_us: int) -> None:
        uuid = row.key[1]
        if row.timer.schedule is not None:
            self.retrying[uuid] = row
            self.accept(conclusion_op(row, row.identity, conclusion, OpKind.RECUR))
        elif isinstance(conclusion, FinalAttempt):
            self.finished[uuid] = Finished(row, conclusion.timer, boot_us)
        else:
            self.retrying[uuid] = row
            self.accept(
                WriteOp(
                    OpKind.RETRY,
                    uuid,
                    timer=conclusion.timer,
                    execute_at=conclusion.execute_at,
                    expected=row.generation,
                )
            )

    # ------------------------------------------------------------------ batches

    def has_work(self) -> bool:
        """Whether there is anything to write, now or later."""
        return bool(self.pending or self.finished or self.events.waits or self.queue.tokens.waits)

    def unwritten(self) -> tuple[int, int]:
        """How many results of attempts are not durable yet, and the bytes of those timers' records."""
        return len(self.finished) + len(self.retrying), self.finished.bytes + self.retrying.bytes

    def awaited(self) -> tuple[int, int]:
        """The same without those that the store has refused: it may never take them, and nothing should wait for that."""
        (count, size), refused = self.unwritten(), self.retrying.refused
        return count - len(refused), size - refused.bytes

    def being_written(self, uuid: bytes) -> bool:
        """Whether a batch, under way or to come, ends, retries or changes the timer."""
        return any(uuid in each for each in (self.finished, self.retrying, self.awaiting_write, self._client_ops))

    @property
    def clients_wait(self) -> bool:
        """Whether an accepted write of a client has not been answered yet, pending or in a batch under way."""
        return bool(self._client_ops or self._changes)

    @property
    def suspension(self) -> bool:
        """Whether rows wait to be suspended."""
        return bool(self._suspending)

    def to_fetch(self, rows_max: int, uuids_max: int) -> list[bytes]:
        """The uuids of the next operations whose present state has to be read from the store (rule 17): `uuids_max` at most,
        so that the batch ends before the first operation that needs another."""
        wanted: dict[bytes, None] = {}
        written: set[bytes] = set()
        for op in self.pending if len(self.pending) <= rows_max else list(self.pending)[:rows_max]:
            if isinstance(op, Part):
                written.update(op.uuids)
            elif self.needs_store(op, written):
                if len(wanted) == uuids_max and op.uuid not in wanted:
                    break
                wanted[op.uuid] = None
            elif op.kind in _WRITING:
                written.add(op.uuid)
        return list(wanted)

    def needs_store(self, op: WriteOp, written: Container[bytes]) -> bool:
        """Whether the operation depends on a state of its timer that only the store knows. `written` has the uuids that
        operations before it write."""
        if op.condition is not None and op.condition.reads:
            # A debounced create needs the live row, which has its keys, and otherwise the finished one.
            return op.condition.debounce is None or (op.uuid not in written and self.present(op.uuid) is None)
        if op.kind in _WITHOUT_STORE:
            return False
        if op.kind is OpKind.REPLAY:
            # What memory has of a finished timer need not be kept, and then an earlier run counts.
            return self.present(op.uuid) is None
        return op.uuid not in written and op.uuid not in self.finished and self.present(op.uuid) is None

    def first_unfinished(self, rewritten: Container[bytes]) -> FireKey:
        """The smallest key of a row in memory that has not finished: a range delete must not reach it. A retrying timer does
        not count if its uuid is in `rewritten`."""
        waiting = (row.key for row in self.awaiting_write.values())
        limit = min(self.waiting.first_key(), self._attempts.first_key(), *waiting)
        for uuid, row in self.retrying.items():
            if uuid not in rewritten:
                limit = min(limit, row.key)
        return limit

    def delete_refused(self, entry: Finished, boot_us: int) -> None:
        """The store refuses to delete a finished timer. Until `try_refused_again` the row awaits a write, so that it neither
        fires again on this node nor is deleted by range."""
        uuid = entry.row.key[1]
        if self.finished.get(uuid) is entry:
            del self.finished[uuid]
            self.awaiting_write[uuid] = entry.row
            self._refused.append((boot_us, entry))

    def try_refused_again(self, until_us: int) -> bool:
        """Queues again what the store refused up to that boot time; returns whether there was anything."""
        any_again = False
        while self._refused and self._refused[0][0] <= until_us:
            _, refused = self._refused.popleft()
            any_again = True
            if isinstance(refused, WriteOp):
                self.retrying.refused.pop(refused.uuid)
                self.pending.append(refused)
                continue
            uuid = refused.row.key[1]
            if self.awaiting_write.get(uuid) is refused.row:
                del self.awaiting_write[uuid]
                refused.with_history = True
                self.finished[uuid] = refused
        return any_again

    def committed(self, batch: Batch, boot_us: int) -> None:
        """Applies a durable batch: each of its uuids moves from its old state to the new one (rule 8)."""
        results = self._handed_over(batch)
        for entry in batch.finished:
            uuid = entry.row.key[1]
            if self.finished.get(uuid) is entry:
                del self.finished[uuid]
            if self._load is not None:
                self._changed_since_load[uuid] = None
        remembered = self.remembered(batch.final.keys())
        for uuid, row in batch.final.items():
            if uuid in remembered:
                if row is not None and self.has_begun(row):
                    # A load returned this row before the commit was confirmed, and it has moved on since.
                    self._forget_former(row)
                    self._adopt(row)
                    continue
                self.waiting.remove(uuid)
                # A refused delete may have been tried again since the batch was assembled.
                self.finished.pop(uuid, None)
                self.awaiting_write.pop(uuid, None)
                self.superseded.pop(uuid, None)
                self.retrying.pop(uuid, None)
                for attempt in self.in_flight.get(uuid, ()):
                    attempt.superseded = attempt.stale = True
            stays = row if uuid not in batch.suspended else None
            if stays is not None and stays.key <= self.horizon:
                self._add(stays)
            if self._load is not None:
                self._changed_since_load[uuid] = stays
        for part, _, _ in batch.parts:
            self._forget_creates(part, boot_us)
        for uuid in batch.monitors:
            self.monitors.committed(uuid, batch.final[uuid])
        self.events.committed(batch)
        self.queue.tokens.written(batch)
        for op in batch.ops:
            if op.supersedes:
                self.queue.forget((op.uuid,))
                self._reinstate(op.uuid, boot_us)
            elif op.kind is OpKind.SUSPEND or op.kind is OpKind.MOVE_ON:
                # Another row of the timer may be about to be suspended since.
                if self._suspending.get(op.uuid) == op.expected:
                    del self._suspending[op.uuid]
            elif op.kind is OpKind.SCHEDULE:
                self._forget_change(op.uuid)
        for op in results:
            self.accept(op)

    def _handed_over(self, batch: Batch) -> list[WriteOp]:
        """Releases the attempts whose rows the batch hands over; returns the operations that report those already ended."""
        results = []
        for op in batch.ops:
            row = batch.final.get(op.uuid) if op.kind is OpKind.HAND_OVER else None
            if row is None or row.generation != op.generation:
                continue
            conclusion = self.superseded.get(op.uuid)
            attempt = self.deciding(op.uuid, op.expected)
            if attempt is not None:
                self._attempts.end(attempt)
                attempt.handed_over_as = row.identity
            elif conclusion is not None and (of := self.awaiting_write[op.uuid]).identity == op.expected:
                # A schedule's row goes on with this attempt: its result would be reported by this window as well.
                del self.awaiting_write[op.uuid], self.superseded[op.uuid]
                results.append(conclusion_op(of, row.identity, conclusion))
            elif (back := self.rows.get(op.uuid)) is not None and back.identity == op.expected:
                # Its request was not sent after all: the timer is due as before.
                results.append(conclusion_op(back, row.identity, NextAttempt(back.timer, back.key[0])))
        return results

    def _forget_former(self, row: Row) -> None:
        """The row is durable: discards what memory keeps of its former generations."""
        uuid, identity = row.key[1], row.identity
        for attempt in self.in_flight.get(uuid, ()):
            if attempt.row.identity != identity:
                attempt.superseded = attempt.stale = True
        waiting = self.awaiting_write.get(uuid)
        if waiting is not None and waiting.identity != identity:
            del self.awaiting_write[uuid]
            self.superseded.pop(uuid, None)
        retried = self.retrying.get(uuid)
        if retried is not None and retried.identity != identity:
            del self.retrying[uuid]
        finished = self.finished.get(uuid)
        if finished is not None and finished.row.identity != identity:
            del self.finished[uuid]

    def _adopt(self, row: Row) -> None:
        """A schedule's durable row takes the place of former ones with the same attempt, which goes on: its result meets the
        present definition. A page that was read before may have a former row."""
        if row.timer.schedule is None:
            return
        uuid = row.key[1]
        for attempt in self.in_flight.get(uuid, ()):
            if attempt.row.identity == row.identity:
                attempt.stale, attempt.superseded = False, uuid in self._client_ops
                if attempt.row.generation < row.generation:
                    self._attempts.replace_row(attempt, row)
        for rows in (self.awaiting_write, self.retrying):
            former = rows.get(uuid)
            if former is not None and former.identity == row.identity and former.generation < row.generation:
                rows[uuid] = row
        if self._load is not None:
            self._changed_since_load[uuid] = row

    def abandon(self, batch: Batch) -> None:
        """The batch certainly had no effect: its operations return to the front of the queue."""
        self.queue.put_back(batch)

    def refuse(self, op: WriteOp | Part, error: TocsinError, boot_us: int) -> None:
        """The operation will not be written: the client gets the error, and results that it superseded count again."""
        if isinstance(op, Part):
            self._forget_creates(op, boot_us)
        elif op.supersedes:
            self.queue.forget((op.uuid,))
            self._reinstate(op.uuid, boot_us)
        elif op.kind is OpKind.SCHEDULE:
            self._forget_change(op.uuid)
        else:
            # The old row stays stored, and memory keeps it from firing, until `try_refused_again`.
            self._refused.append((boot_us, op))
            self.retrying.refuse(op.uuid)
        op.answer(error)

    def refuse_first(self, op: WriteOp, error: TocsinError, boot_us: int) -> None:
        """Refuses the first pending operation, which fails even alone in a batch."""
        if self.pending and self.pending[0] is op:
            self.pending.popleft()
            self.refuse(op, error, boot_us)

    def refuse_clients(self, error: TocsinError, boot_us: int) -> None:
        """Answers every waiting client with the error; the engine's own operations stay queued."""
        for op in self.queue.remove(lambda op: op.supersedes or op.by_client):
            self.refuse(op, error, boot_us)

    def expire(self, boot_us: int) -> bool:
        """Refuses clients' writes that are in no batch and whose deadline has passed at that boot time; whether there are."""
        expired = self.queue.remove(lambda op: op.deadline_us is not None and op.deadline_us <= boot_us)
        for op in expired:
            self.refuse(op, RequestExpired(EXPIRED), boot_us)
        return bool(expired)

    def _forget_creates(self, part: Part, boot_us: int) -> None:
        self.queue.forget(part.uuids)
        if self.in_flight or self.superseded:
            for uuid in part.uuids:
                if uuid in self.in_flight or uuid in self.superseded:
                    self._reinstate(uuid, boot_us)

    def _forget_change(self, uuid: bytes) -> None:
        self._changes[uuid] -= 1
        if self._changes[uuid]:
            return
        del self._changes[uuid]
        if (row := self.rows.get(uuid)) is not None and uuid not in self._suspending:
            # It may have been deferred since.
            self.put_back(row)

    def _reinstate(self, uuid: bytes, boot_us: int) -> None:
        """A client's write is durable or refused: attempts of the durable generation that it superseded decide again."""
        if uuid in self._client_ops:
            return
        for attempt in self.in_flight.get(uuid, ()):
            if not attempt.stale:
                attempt.superseded = False
        conclusion = self.superseded.pop(uuid, None)
        if conclusion is not None:
            self._conclude(self.awaiting_write.pop(uuid), conclusion, boot_us)

    # ------------------------------------------------------------------ loads

    def announce_load(self, up_to: FireKey) -> LoadRequest | None:
        """Begins a load of (horizon, up_to]; None while another load is under way or if `up_to` is within the horizon."""
        if self._load is not None or up_to <= self.horizon:
            return None
        self._load_number += 1
        self._changed_since_load = {}
        self._load = LoadRequest(self._load_number, self.horizon, up_to)
        return self._load

    def loaded(self, request: LoadRequest, rows: Sequence[Row], complete_to: FireKey) -> bool:
        """Merges a page that was complete from the horizon up to `complete_to` when it was read; False if the load is void.
        Commits since `announce_load` supersede it (rule 9). Undecodable rows (with `raw`) await their suspension."""
        if self._load is None or self._load.number != request.number:
            return False
        self._load = None
        for row in rows:
            uuid = row.key[1]
            if uuid in self._changed_since_load:
                continue
            if self.has_begun(row):
                for attempt in self.in_flight.get(uuid, ()):
                    if attempt.row.identity == row.identity:
                        attempt.stale, attempt.superseded = False, uuid in self._client_ops
                self._adopt(row)
                continue
            if uuid in self.rows:
                continue
            if row.raw is not None:
                self.awaiting_write[uuid] = row
                continue
            self._add(row)
        for committed in self._changed_since_load.values():
            if committed is None or not request.after < committed.key <= complete_to:
                continue
            if committed.timer.schedule is None or not self.has_begun(committed):
                self._add(committed)
        self._changed_since_load, self.horizon = {}, complete_to
        return True

    def load_failed(self, request: LoadRequest) -> None:
        """Ends a failed load; it may be announced again."""
        if self._load is not None and self._load.number == request.number:
            self._load, self._changed_since_load = None, {}

    def truncate(self, keep: int) -> None:
        """Drops all but the `keep` earliest rows. The horizon shrinks, and a load under way becomes void (rule 13)."""
        key = self.waiting.truncate(keep)
        if key is None:
            return
        self.horizon = min(self.horizon, key_before(key))
        self._load, self._changed_since_load = None, {}

    # ------------------------------------------------------------------ inside

    def present(self, uuid: bytes) -> Row | None:
        """The durable live row of the uuid, if memory has it."""
        row = self.rows.get(uuid)
        if row is not None:
            return row
        for attempt in self.in_flight.get(uuid, ()):
            if not attempt.stale:
                return attempt.row
        waiting = self.awaiting_write.get(uuid) or self.retrying.get(uuid)
        return waiting if waiting is not None else self.monitors.row(uuid)

    def remembered(self, uuids: Collection[bytes]) -> set[bytes]:
        """Those of the uuids of which memory has a row, in whatever state."""
        places = (self.rows, self.in_flight, self.finished, self.awaiting_write, self.superseded, self.retrying)
        wanted = uuids if isinstance(uuids, KeysView) else set(uuids)
        return set().union(*(place.keys() & wanted for place in places if place))

    def has_begun(self, row: Row) -> bool:
        """Whether an attempt of this very generation, or the same attempt of a schedule, is in flight, or its result waits to
        be written."""
        uuid, identity = row.key[1], row.identity
        for attempt in self.in_flight.get(uuid, ()):
            if attempt.row.identity == identity:
                return True
        finished = self.finished.get(uuid)
        if finished is not None and finished.row.identity == identity:
            return True
        waiting = self.awaiting_write.get(uuid)
        if waiting is not None and waiting.identity == identity:
            return True
        retried = self.retrying.get(uuid)
        return retried is not None and retried.identity == identity

    def _add(self, row: Row) -> None:
        self.waiting.add(row, deferred=self._suspending.get(row.key[1]) == row.generation)
