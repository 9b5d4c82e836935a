"""The window of one shard under one claim: a pure state machine. It is given what happened and returns what to do, without
I/O and without a clock.

The states of a timer's durable row as memory sees them, and what moves it:

                            load joins / commit (key ≤ horizon)
        beyond the horizon ─────────────────────────────────────► WINDOW ◄─────────────┐
               ▲                                           ▲       │   │ defer         │ commit of the retry,
               │ truncate                         not sent │       │   └─► (deferred)  │ key ≤ horizon
               └───────────────────────────────────────────│───────│                   │
                                                           │       ▼ dispatch          │
                                          superseded       └── IN FLIGHT ──next────► RETRYING
                        AWAITING WRITE ◄──────────────────────────│        attempt
                                   │                               └──final attempt──► FINISHED
                                   │ commit of the superseding write                    │ commit of the batch that
                                   ▼                                                    ▼ deletes it
                         wherever that write puts it                                   gone

Rule numbers refer to ARCHITECTURE.md, "Rules of the engine". `tests/properties` and `tests/simulation` check this code under
random interleavings and faults; `make mutants` shows that each rule is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from tocsin.model.errors import (
    DefiniteFailure,
    InvalidInput,
    RecordUndecodable,
    RequestExpired,
    TimerNotFound,
    TimerNotPending,
    TocsinError,
)
from tocsin.model.namespace import HistoryMode
from tocsin.model.timer import UNUSABLE, Status, Timer, decode_record, encode_record, unreadable_timer
from tocsin.ports.store import KEY_MAX, KEY_MIN, FireKey, Found, HistoryRow, ShardBatch, StoredRow, generation
from tocsin.timers.engine.existing import create_if, keeps, kept_for_its_keys
from tocsin.timers.engine.rows import (
    AwaitingWrite,
    Batch,
    Conclusion,
    FinalAttempt,
    Finished,
    InFlightAttempt,
    LoadRequest,
    NextAttempt,
    OpKind,
    Row,
    WriteOp,
    longest_wait_us,
)

#: Which finished timers of a namespace are kept, and for how many microseconds.
HistoryRule = Callable[[str], tuple[HistoryMode, int]]

#: Characters of a reason for suspending a row. An error that quotes the row is cut.
_REASON_CHARS_MAX = 500
_EXPIRED = "the request's time budget ran out; nothing was written"
#: Returned instead of an answer: the operation waits until the store has been asked for the timer's present state.
_FETCH_FIRST = object()


def key_before(key: FireKey) -> FireKey:
    """The greatest key below the given one."""
    instant, uuid = key
    number = int.from_bytes(uuid, "big")
    return (instant, (number - 1).to_bytes(16, "big")) if number else (instant - 1, b"\xff" * 16)


def stored(row: Row, suspended: str | None = None) -> StoredRow:
    """The row in its stored form. An undecodable row is returned verbatim."""
    if row.raw is not None:
        return row.raw._replace(generation=row.generation, suspended=suspended)
    timer = row.timer
    record = encode_record(timer)
    row.size = len(record)
    return StoredRow(row.key[0], row.key[1], row.generation, timer.namespace, timer.id, timer.tags, record, suspended)


def decoded_row(found: StoredRow) -> Row:
    """A stored row, decoded. Raises RecordUndecodable or RecordTooNew."""
    return Row(found.key, found.generation, decode_record(found.record), len(found.record))


def undecodable_row(found: StoredRow, reason: str) -> Row:
    """A stored row whose record can't be decoded. It keeps the record unchanged."""
    blank = unreadable_timer(found.namespace, found.timer_id, found.execute_at, reason)
    return Row(found.key, found.generation, blank, len(found.record), found)


def conclusion_op(row: Row, row_generation: bytes, conclusion: Conclusion) -> WriteOp:
    """The operation that reports an attempt's conclusion to the owner of the row that was handed over as `row_generation`."""
    execute_at = conclusion.execute_at if isinstance(conclusion, NextAttempt) else 0
    timer = msgspec.structs.replace(conclusion.timer)
    return WriteOp(
        OpKind.CONCLUDE, row.key[1], timer.namespace, timer=timer, execute_at=execute_at, expected=row_generation
    )


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
    ) -> None:
        self.shard_id = shard_id
        self.epoch = epoch
        self.incarnation = incarnation
        self.range_delete = range_delete
        self.horizon: FireKey = KEY_MIN
        self.rows: dict[bytes, Row] = {}
        self.bytes = 0
        self.in_flight: dict[bytes, tuple[InFlightAttempt, ...]] = {}
        self.in_flight_count = 0
        self.finished: dict[bytes, Finished] = {}
        self.awaiting_write: dict[bytes, AwaitingWrite] = {}
        self.retrying: dict[bytes, Row] = {}
        self.pending: deque[WriteOp] = deque()
        self._client_ops: dict[bytes, int] = {}
        # Generations that are about to be suspended. They must not fire meanwhile, even if a load returns them again.
        self._suspending: dict[bytes, bytes] = {}
        self._refused: deque[tuple[int, WriteOp | Finished]] = deque()
        self._sequence = 0
        # Keys of self.rows, some of them outdated: `_order` waits for the instant, `_deferred` for a busy destination.
        self._order: list[FireKey] = []
        self._deferred: list[FireKey] = []
        self._in_flight_order: list[tuple[FireKey, bytes]] = []
        self._load: LoadRequest | None = None
        self._load_number = 0
        self._changed_since_load: dict[bytes, Row | None] = {}
        for attempt in orphaned:
            # Only a load shows whether its row is still the durable one (rule 3).
            attempt.superseded = attempt.stale = True
            self._add_attempt(attempt)

    # ------------------------------------------------------------------ acceptance

    def accept(self, op: WriteOp) -> None:
        """Queues an operation for the next batch and assigns its generation. The window itself changes at the commit."""
        self._sequence += 1
        op.generation = generation(self.epoch, self.incarnation, self._sequence)
        if op.kind <= OpKind.HAND_OVER:
            uuid = op.uuid
            self._client_ops[uuid] = self._client_ops.get(uuid, 0) + 1
            for attempt in self.in_flight.get(uuid, ()):
                attempt.superseded = True
        elif op.kind is OpKind.SUSPEND:
            self._suspending[op.uuid] = op.expected
        if op.timer is not None and not op.timer.firing:
            op.timer.firing = self._firing(op)
        self.pending.append(op)

    def _firing(self, op: WriteOp) -> str:
        return f"{self.epoch:x}-{int.from_bytes(op.generation[-8:], 'big'):x}"

    # ------------------------------------------------------------------ dispatch

    def next_key(self) -> FireKey | None:
        """The smallest key that waits for its instant; None if there is none."""
        return self._top(self._order)

    def longest_wait_us(self, now_us: int) -> int:
        """How long the oldest due row has waited, deferred rows included, in microseconds; 0 when none is due."""
        heaps = [heap for heap in (self._order, self._deferred) if self._top(heap) is not None]
        return longest_wait_us(self.rows, heaps, now_us)

    def due(self, now_us: int) -> Row | None:
        """The next row whose instant has come (rule 12), or None. It stays until `dispatch` or `defer`."""
        key = self._top(self._order)
        if key is None or key[0] > now_us:
            return None
        return self.rows[key[1]]

    def defer(self) -> None:
        """Defers the row that `due` returned, because its destination is busy: it stays, and `due` no longer returns it."""
        key = heappop(self._order)
        while self._order and self._order[0] == key:
            heappop(self._order)
        heappush(self._deferred, key)
        if len(self._deferred) > 2 * len(self.rows) + 1_000:
            self._deferred = self._compacted(self._deferred)

    def put_back(self, row: Row) -> None:
        """Returns a deferred row to the order of instants: it is no longer due, or has to be dispatched again."""
        heappush(self._order, row.key)

    def holds(self, row: Row) -> bool:
        """Whether this very row is still in the window. Check it before dispatching a deferred row."""
        return self.rows.get(row.key[1]) is row

    def dispatch(self, row: Row) -> InFlightAttempt:
        """Moves the row from the window to an in-flight attempt, until `answered` or `not_sent`."""
        uuid = row.key[1]
        del self.rows[uuid]
        self.bytes -= row.size
        attempt = InFlightAttempt(row, superseded=uuid in self._client_ops)
        self._add_attempt(attempt)
        return attempt

    def _add_attempt(self, attempt: InFlightAttempt) -> None:
        row = attempt.row
        uuid = row.key[1]
        others = self.in_flight.get(uuid)
        self.in_flight[uuid] = (attempt,) if others is None else (*others, attempt)
        self.in_flight_count += 1
        heappush(self._in_flight_order, (row.key, row.generation))
        if len(self._in_flight_order) > 2 * self.in_flight_count + 1_000:
            # Otherwise entries of ended attempts would pile up behind one slow attempt at the top.
            self._in_flight_order = [(f.row.key, f.row.generation) for fs in self.in_flight.values() for f in fs]
            heapify(self._in_flight_order)

    def answered(self, attempt: InFlightAttempt, conclusion: Conclusion, boot_us: int) -> bool:
        """Takes an attempt's result. False when it decides nothing because the timer was changed meanwhile (rule 10)."""
        if not self._end_attempt(attempt):
            return False
        row = attempt.row
        if attempt.superseded:
            if not attempt.stale:
                self.awaiting_write[row.key[1]] = AwaitingWrite(row, conclusion)
            return False
        self._conclude(row, conclusion, boot_us)
        return True

    def not_sent(self, attempt: InFlightAttempt) -> None:
        """The request was never sent (rule 24): the row is due again in the same generation, unless it is not the durable one
        any more, or beyond the horizon, which may have shrunk meanwhile: then it is loaded again in time."""
        if self._end_attempt(attempt) and not attempt.stale and attempt.row.key <= self.horizon:
            self._add(attempt.row)

    def _end_attempt(self, attempt: InFlightAttempt) -> bool:
        """Removes the attempt from those in flight; False if this window doesn't know it."""
        uuid = attempt.row.key[1]
        attempts = self.in_flight.get(uuid, ())
        others = tuple(f for f in attempts if f is not attempt)
        if len(others) == len(attempts):
            return False
        if others:
            self.in_flight[uuid] = others
        else:
            del self.in_flight[uuid]
        self.in_flight_count -= 1
        return True

    def _deciding(self, uuid: bytes, row_generation: bytes) -> InFlightAttempt | None:
        """The in-flight attempt whose result decides about that durable generation, if there is one."""
        return next(
            (f for f in self.in_flight.get(uuid, ()) if not f.stale and f.row.generation == row_generation), None
        )

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
                            expected=attempt.row.generation,
                        )
                    )

    @property
    def undecided(self) -> bool:
        """Whether an in-flight attempt's result is still to come that this window will conclude."""
        return any(not attempt.stale for attempts in self.in_flight.values() for attempt in attempts)

    def _conclude(self, row: Row, conclusion: Conclusion, boot_us: int) -> None:
        uuid = row.key[1]
        if isinstance(conclusion, FinalAttempt):
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
        return bool(self.pending or self.finished)

    def unwritten(self) -> tuple[int, int]:
        """How many results of attempts wait for a batch, and the bytes of those timers' records."""
        rows = [entry.row for entry in self.finished.values()]
        rows += self.retrying.values()
        return len(rows), sum(row.size for row in rows)

    @property
    def clients_wait(self) -> bool:
        """Whether an accepted write of a client has not been answered yet, pending or in a batch under way."""
        return bool(self._client_ops)

    @property
    def suspension(self) -> bool:
        """Whether rows wait to be suspended."""
        return bool(self._suspending)

    def to_fetch(self, rows_max: int) -> list[bytes]:
        """The uuids of the next operations whose present state has to be read from the store (rule 17)."""
        wanted: dict[bytes, None] = {}
        written: set[bytes] = set()
        for op in self.pending if len(self.pending) <= rows_max else list(self.pending)[:rows_max]:
            if op.condition is not None:
                wanted[op.uuid] = None
            elif op.kind is OpKind.CREATE or op.kind is OpKind.RETRY:
                written.add(op.uuid)
            elif op.uuid not in written and self._present(op.uuid) is None and op.uuid not in self.finished:
                wanted[op.uuid] = None
        return list(wanted)

    def assemble(
        self,
        *,
        now_us: int,
        boot_us: int,
        rows_max: int,
        bytes_max: int,
        exact_after_us: int,
        history_rule: HistoryRule,
        fetched: dict[bytes, Found] | None = None,
        fetched_uuids: Sequence[bytes] = (),
        finished_max: int,
    ) -> Batch:
        """The next batch: pending operations in order up to the limits, with one final state per uuid (rule 4), and at most
        `finished_max` finished timers, besides those that an operation depends on. If it is empty, its fence still proves
        answers that say "will not fire" (rule 16). `fetched` is what the store returned for `fetched_uuids`."""
        batch = Batch(ShardBatch(self.shard_id, self.epoch, self.incarnation))
        unknown = fetched or {}
        asked = frozenset(fetched_uuids)
        while self.pending and len(batch.ops) < rows_max and batch.bytes < bytes_max:
            op = self.pending[0]
            if op.deadline_us is not None and op.deadline_us <= boot_us:
                self.pending.popleft()
                self.refuse(op, RequestExpired(_EXPIRED), boot_us)
                continue
            try:
                answer = self._resolve(op, batch, unknown, asked, now_us, history_rule)
            except UNUSABLE as error:
                self._refuse_unusable(op, batch, error, boot_us)
                continue
            if answer is _FETCH_FIRST:
                break
            self.pending.popleft()
            batch.ops.append(op)
            batch.answers.append(answer)  # type: ignore[arg-type]
        for uuid, row in batch.final.items():
            if row is None:
                batch.store.deletes.append(uuid)
        batch.store.upserts = sorted(batch.upserts.values(), key=_order_of_stored)
        if finished_max and self.finished:
            self._take_finished(batch, finished_max, now_us, boot_us, exact_after_us, history_rule)
        elif self.finished:
            for uuid in (*batch.final, *sorted(batch.relied_on)):
                if uuid in self.finished:
                    self._take(batch, self.finished[uuid], now_us, history_rule)
        return batch

    def _refuse_unusable(self, op: WriteOp, batch: Batch, error: BaseException, boot_us: int) -> None:
        """Refuses an operation that can't be encoded; a retry's timer is suspended with the reason instead (rule 15)."""
        reason = f"{type(error).__name__}: {error}"[:_REASON_CHARS_MAX]
        batch.unusable.append((op.uuid, reason))
        present = self.retrying.get(op.uuid) if op.kind is OpKind.RETRY else None
        self.pending.popleft()
        if present is None:
            self.refuse(op, DefiniteFailure(f"the timer can't be written: {reason}"), boot_us)
            return
        del self.retrying[op.uuid]
        self.awaiting_write[op.uuid] = AwaitingWrite(present, None)
        self.accept(
            WriteOp(
                OpKind.SUSPEND,
                op.uuid,
                present.timer.namespace,
                expected=present.generation,
                reason=f"bad_record: {reason}"[:_REASON_CHARS_MAX],
            )
        )

    def _resolve(
        self,
        op: WriteOp,
        batch: Batch,
        fetched: dict[bytes, Found],
        asked: frozenset[bytes],
        now_us: int,
        history_rule: HistoryRule,
    ) -> object:
        """Adds the operation's effect to the batch; returns its answer, or _FETCH_FIRST if the store must be read first."""
        uuid, kind = op.uuid, op.kind
        if kind is OpKind.CREATE:
            assert op.timer is not None
            if op.condition is None:
                return self._write(batch, Row((op.timer.execute_at, uuid), op.generation, op.timer, 0))
            if uuid not in asked:
                return _FETCH_FIRST
            finished, mode = self.finished.get(uuid), history_rule(op.namespace)[0]
            answer = create_if(op, batch, finished, self._present(uuid), fetched.get(uuid), mode)
            return self._write(batch, answer) if type(answer) is Row else answer
        if kind is OpKind.RETRY:
            assert op.timer is not None
            answered = self.retrying.get(uuid)
            if uuid in batch.final or answered is None or answered.generation != op.expected:
                return None
            return self._write(batch, Row((op.execute_at, uuid), op.generation, op.timer, 0))
        if kind is OpKind.HAND_OVER:
            attempt = self._deciding(uuid, op.expected)
            if uuid in batch.final or attempt is None:
                return None
            return self._write(batch, Row((op.execute_at, uuid), op.generation, attempt.row.timer, 0))
        present: Row | None
        if uuid in batch.final:
            present = batch.final[uuid]
            if present is None and kind <= OpKind.DELETE:
                return TimerNotPending("the timer was deleted")
        elif uuid in self.finished:
            batch.relied_on.add(uuid)
            return TimerNotPending("the timer has finished") if kind <= OpKind.DELETE else None
        else:
            present = self._present(uuid)
            if present is None:
                if uuid not in asked:
                    return _FETCH_FIRST
                found = fetched.get(uuid)
                if found is None or found.live is None:
                    if kind > OpKind.DELETE:
                        return None
                    if found is None:
                        return TimerNotFound("no such timer")
                    return TimerNotPending("the timer has finished")
                if found.live.suspended is None and kind is OpKind.RESUME:
                    return None
                present = self._decoded(found.live, op)
        if kind is OpKind.UPDATE:
            return self._update(op, batch, present, now_us)
        if kind is OpKind.DELETE:
            assert present is not None
            self._delete(op, batch, present, now_us, history_rule)
            return None
        if present is None or present.generation != op.expected:
            return None
        if kind is OpKind.CONCLUDE:
            self._write_conclusion(op, batch, present, now_us, history_rule)
            return None
        if kind is OpKind.SUSPEND:
            return self._write(batch, Row(present.key, op.generation, present.timer, 0, present.raw), op.reason)
        return self._write(batch, Row(present.key, op.generation, present.timer, 0))

    def _decoded(self, live: StoredRow, op: WriteOp) -> Row:
        try:
            return decoded_row(live)
        except RecordUndecodable as error:
            return undecodable_row(live, str(error))

    def _update(self, op: WriteOp, batch: Batch, present: Row | None, now_us: int) -> Row | TocsinError:
        assert present is not None
        assert op.changes is not None
        if present.raw is not None:
            return TimerNotPending(
                f"the stored record can't be read ({present.timer.last_error}); create the timer again"
            )
        try:
            timer = op.changes.apply(present.timer, now_us)
        except InvalidInput as error:
            return error
        # Renewed even if the instant stays: a receiver that has seen the former id would take the new state for a duplicate.
        timer.firing = self._firing(op)
        instant = present.key[0] if op.changes.execute_at is msgspec.UNSET else timer.execute_at
        return self._write(batch, Row((instant, op.uuid), op.generation, timer, 0))

    def _delete(self, op: WriteOp, batch: Batch, present: Row, now_us: int, history_rule: HistoryRule) -> None:
        timer = msgspec.structs.replace(present.timer, status=Status.CANCELED, updated_at=now_us)
        self._end(op, batch, present, timer, now_us, history_rule)

    def _end(
        self, op: WriteOp, batch: Batch, present: Row, timer: Timer, now_us: int, history_rule: HistoryRule
    ) -> None:
        # What can fail comes first: a refused operation must leave nothing in the batch.
        ended = Row(present.key, op.generation, timer, present.size)
        self._record(batch, ended, timer, now_us, history_rule)
        batch.final[op.uuid] = None
        batch.ended[op.uuid] = ended
        batch.upserts.pop(op.uuid, None)
        batch.suspended.discard(op.uuid)

    def _write_conclusion(
        self, op: WriteOp, batch: Batch, present: Row, now_us: int, history_rule: HistoryRule
    ) -> None:
        assert op.timer is not None
        if op.timer.status is Status.PENDING:
            self._write(batch, Row((op.execute_at, op.uuid), op.generation, op.timer, 0))
        else:
            self._end(op, batch, present, op.timer, now_us, history_rule)

    def _write(self, batch: Batch, row: Row, suspended: str | None = None) -> Row:
        uuid = row.key[1]
        batch.upserts[uuid] = stored(row, suspended)
        batch.final[uuid] = row
        batch.bytes += row.size
        if suspended is None:
            batch.suspended.discard(uuid)
        else:
            batch.suspended.add(uuid)
        return row

    def _record(self, batch: Batch, row: Row, timer: Timer, now_us: int, history_rule: HistoryRule) -> None:
        mode, retention_us = history_rule(timer.namespace)
        if timer.keys:
            timer, retention_us = kept_for_its_keys(timer, mode, retention_us)
        elif not keeps(mode, timer):
            return
        ended = timer.executed_at or now_us
        kept = HistoryRow(
            row.key[0], row.key[1], row.generation, timer.namespace, timer.id, timer.tags,
            encode_record(timer), timer.status, ended, ended + retention_us,
        )  # fmt: skip
        batch.store.history.append(kept)
        batch.bytes += len(kept.record)

    def _take_finished(
        self, batch: Batch, finished_max: int, now_us: int, boot_us: int, exact_after_us: int, history_rule: HistoryRule
    ) -> None:
        """Rule 11: the delete watermark, the range delete up to it, and exact deletes of what has waited above it for
        long."""
        candidates = sorted(self.finished.values(), key=_order_of_finished)
        chosen = candidates[:finished_max]
        watermark = None
        if self.range_delete:
            limit = self._first_unfinished(batch)
            if len(chosen) < len(candidates):
                limit = min(limit, candidates[len(chosen)].row.key)
            for entry in chosen:
                if entry.row.key < limit and entry.row.key <= self.horizon:
                    watermark = entry.row.key
        batch.store.delete_to = watermark
        for entry in candidates:
            uuid = entry.row.key[1]
            in_range = watermark is not None and entry.row.key <= watermark
            needed = uuid in batch.final or uuid in batch.relied_on
            waited = boot_us - entry.since_us >= exact_after_us or not self.range_delete
            if in_range or needed or (waited and len(batch.finished) < len(chosen)):
                self._take(batch, entry, now_us, history_rule)

    def _take(self, batch: Batch, entry: Finished, now_us: int, history_rule: HistoryRule) -> None:
        """Adds a finished timer to the batch: the range delete removes it, an upsert replaces it, or its uuid is deleted."""
        key = entry.row.key
        batch.finished.append(entry)
        if entry.with_history:
            try:
                self._record(batch, entry.row, entry.timer, now_us, history_rule)
            except UNUSABLE as error:
                entry.with_history = False
                batch.unusable.append((key[1], f"history: {type(error).__name__}: {error}"[:_REASON_CHARS_MAX]))
        watermark = batch.store.delete_to
        if key[1] not in batch.final and (watermark is None or key > watermark):
            batch.store.deletes.append(key[1])

    def _first_unfinished(self, batch: Batch) -> FireKey:
        """The smallest key that a range delete must not reach: of all rows that have not finished, in memory or the batch."""
        limit = KEY_MAX
        for heap in (self._order, self._deferred):
            top = self._top(heap)
            if top is not None and top < limit:
                limit = top
        attempts = self._in_flight_order
        while attempts:
            key, row_generation = attempts[0]
            if any(f.row.generation == row_generation for f in self.in_flight.get(key[1], ())):
                limit = min(limit, key)
                break
            heappop(attempts)
        for awaiting in self.awaiting_write.values():
            limit = min(limit, awaiting.row.key)
        for uuid, row in self.retrying.items():
            if uuid not in batch.final:
                limit = min(limit, row.key)
        for upsert in batch.store.upserts:
            if upsert.suspended is None and (upsert.execute_at, upsert.uuid) < limit:
                limit = (upsert.execute_at, upsert.uuid)
        return limit

    def assemble_one(self, entry: Finished, now_us: int, history_rule: HistoryRule) -> Batch:
        """A batch with only the exact delete of one finished timer."""
        batch = Batch(ShardBatch(self.shard_id, self.epoch, self.incarnation))
        self._take(batch, entry, now_us, history_rule)
        return batch

    def delete_refused(self, entry: Finished, boot_us: int) -> None:
        """The store refuses to delete a finished timer. Until `try_refused_again` the row awaits a write, so that it neither
        fires again on this node nor is deleted by range."""
        uuid = entry.row.key[1]
        if self.finished.get(uuid) is entry:
            del self.finished[uuid]
            self.awaiting_write[uuid] = AwaitingWrite(entry.row, None)
            self._refused.append((boot_us, entry))

    def try_refused_again(self, until_us: int) -> bool:
        """Queues again what the store refused up to that boot time; returns whether there was anything."""
        any_again = False
        while self._refused and self._refused[0][0] <= until_us:
            _, refused = self._refused.popleft()
            any_again = True
            if isinstance(refused, WriteOp):
                self.pending.append(refused)
                continue
            uuid = refused.row.key[1]
            awaiting = self.awaiting_write.get(uuid)
            if awaiting is not None and awaiting.row is refused.row:
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
        for uuid, row in batch.final.items():
            if row is not None and self._known(row):
                # A load returned this row before the commit was confirmed, and it has moved on since.
                self._forget_former(row)
                continue
            self._remove(uuid)
            self.awaiting_write.pop(uuid, None)
            self.retrying.pop(uuid, None)
            for attempt in self.in_flight.get(uuid, ()):
                attempt.superseded = attempt.stale = True
            stays = row if uuid not in batch.suspended else None
            if stays is not None and stays.key <= self.horizon:
                self._add(stays)
            if self._load is not None:
                self._changed_since_load[uuid] = stays
        for op in batch.ops:
            if op.supersedes:
                self._forget_client_op(op.uuid)
                self._reinstate(op.uuid, boot_us)
            elif op.kind is OpKind.SUSPEND:
                self._suspending.pop(op.uuid, None)
        for op in results:
            self.accept(op)

    def _handed_over(self, batch: Batch) -> list[WriteOp]:
        """Releases the attempts whose rows the batch hands over; returns the operations that report those already ended."""
        results = []
        for op in batch.ops:
            row = batch.final.get(op.uuid) if op.kind is OpKind.HAND_OVER else None
            if row is None or row.generation != op.generation:
                continue
            awaiting = self.awaiting_write.get(op.uuid)
            attempt = self._deciding(op.uuid, op.expected)
            if attempt is not None:
                self._end_attempt(attempt)
                attempt.handed_over_generation = op.generation
            elif awaiting is not None and awaiting.conclusion is not None and awaiting.row.generation == op.expected:
                results.append(conclusion_op(awaiting.row, op.generation, awaiting.conclusion))
            elif (back := self.rows.get(op.uuid)) is not None and back.generation == op.expected:
                # Its request was not sent after all: the timer is due as before.
                results.append(conclusion_op(back, op.generation, NextAttempt(back.timer, back.key[0])))
        return results

    def _forget_former(self, row: Row) -> None:
        """The row is durable: discards what memory keeps of its former generations."""
        uuid, row_generation = row.key[1], row.generation
        for attempt in self.in_flight.get(uuid, ()):
            if attempt.row.generation != row_generation:
                attempt.superseded = attempt.stale = True
        awaiting = self.awaiting_write.get(uuid)
        if awaiting is not None and awaiting.row.generation != row_generation:
            del self.awaiting_write[uuid]
        retried = self.retrying.get(uuid)
        if retried is not None and retried.generation != row_generation:
            del self.retrying[uuid]

    def abandon(self, batch: Batch) -> None:
        """The batch certainly had no effect: its operations return to the front of the queue."""
        self.pending.extendleft(reversed(batch.ops))

    def refuse(self, op: WriteOp, error: TocsinError, boot_us: int) -> None:
        """The operation will not be written: the client gets the error, and results that it superseded count again."""
        if op.supersedes:
            self._forget_client_op(op.uuid)
            self._reinstate(op.uuid, boot_us)
        else:
            # The old row stays stored, and memory keeps it from firing, until `try_refused_again`.
            self._refused.append((boot_us, op))
        if op.reply is not None:
            op.reply(error)

    def refuse_clients(self, error: TocsinError, boot_us: int) -> None:
        """Answers every waiting client with the error; the engine's own operations stay queued."""
        mine = [op for op in self.pending if not op.supersedes]
        theirs = [op for op in self.pending if op.supersedes]
        self.pending = deque(mine)
        for op in theirs:
            self.refuse(op, error, boot_us)

    def expire(self, boot_us: int) -> None:
        """Refuses clients' writes that are in no batch and whose deadline has passed at that boot time."""
        late = [op for op in self.pending if op.deadline_us is not None and op.deadline_us <= boot_us]
        if late:
            gone = set(late)
            self.pending = deque(op for op in self.pending if op not in gone)
            for op in late:
                self.refuse(op, RequestExpired(_EXPIRED), boot_us)

    def _forget_client_op(self, uuid: bytes) -> None:
        left = self._client_ops[uuid] - 1
        if left:
            self._client_ops[uuid] = left
        else:
            del self._client_ops[uuid]

    def _reinstate(self, uuid: bytes, boot_us: int) -> None:
        """A client's write is durable or refused: attempts of the durable generation that it superseded decide again."""
        if uuid in self._client_ops:
            return
        for attempt in self.in_flight.get(uuid, ()):
            if not attempt.stale:
                attempt.superseded = False
        awaiting = self.awaiting_write.get(uuid)
        if awaiting is not None and awaiting.conclusion is not None:
            del self.awaiting_write[uuid]
            self._conclude(awaiting.row, awaiting.conclusion, boot_us)

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
            if self._known(row):
                for attempt in self.in_flight.get(uuid, ()):
                    if attempt.row.generation == row.generation:
                        attempt.stale, attempt.superseded = False, uuid in self._client_ops
                continue
            if uuid in self.rows:
                continue
            if row.raw is not None:
                self.awaiting_write[uuid] = AwaitingWrite(row, None)
                continue
            self._add(row)
        for committed in self._changed_since_load.values():
            if committed is not None and request.after < committed.key <= complete_to:
                self._add(committed)
        self._changed_since_load = {}
        self.horizon = complete_to
        return True

    def load_failed(self, request: LoadRequest) -> None:
        """Ends a failed load; it may be announced again."""
        if self._load is not None and self._load.number == request.number:
            self._load = None
            self._changed_since_load = {}

    def truncate(self, keep: int) -> None:
        """Drops all but the `keep` earliest rows. The horizon shrinks, and a load under way becomes void (rule 13)."""
        if len(self.rows) <= keep:
            return
        keys = sorted(row.key for row in self.rows.values())
        for key in keys[keep:]:
            self._remove(key[1])
        self.horizon = min(self.horizon, key_before(keys[keep]))
        self._load = None
        self._changed_since_load = {}
        self._order = self._compacted(self._order)
        self._deferred = self._compacted(self._deferred)

    # ------------------------------------------------------------------ inside

    def view(self, uuid: bytes) -> Row | Finished | None:
        """The timer's durable state as memory knows it; None if only the store knows it."""
        finished = self.finished.get(uuid)
        return finished if finished is not None else self._present(uuid)

    def _present(self, uuid: bytes) -> Row | None:
        """The durable live row of the uuid, if memory has it."""
        row = self.rows.get(uuid)
        if row is not None:
            return row
        for attempt in self.in_flight.get(uuid, ()):
            if not attempt.stale:
                return attempt.row
        awaiting = self.awaiting_write.get(uuid)
        if awaiting is not None:
            return awaiting.row
        return self.retrying.get(uuid)

    def _known(self, row: Row) -> bool:
        """Whether this very generation is in flight, awaiting a write, retrying or finished here."""
        uuid, row_generation = row.key[1], row.generation
        for attempt in self.in_flight.get(uuid, ()):
            if attempt.row.generation == row_generation:
                return True
        finished = self.finished.get(uuid)
        if finished is not None and finished.row.generation == row_generation:
            return True
        awaiting = self.awaiting_write.get(uuid)
        if awaiting is not None and awaiting.row.generation == row_generation:
            return True
        retried = self.retrying.get(uuid)
        return retried is not None and retried.generation == row_generation

    def _add(self, row: Row) -> None:
        uuid = row.key[1]
        former = self.rows.get(uuid)
        if former is not None:
            self.bytes -= former.size
        self.rows[uuid] = row
        self.bytes += row.size
        heappush(self._deferred if self._suspending.get(uuid) == row.generation else self._order, row.key)
        if len(self._order) > 2 * len(self.rows) + 1_000:
            # Otherwise outdated keys far from the top would pile up for the whole look-ahead.
            self._order = self._compacted(self._order)

    def _compacted(self, heap: list[FireKey]) -> list[FireKey]:
        kept = list({key: None for key in heap if self._current(key)})
        heapify(kept)
        return kept

    def _remove(self, uuid: bytes) -> None:
        row = self.rows.pop(uuid, None)
        if row is not None:
            self.bytes -= row.size

    def _current(self, key: FireKey) -> bool:
        row = self.rows.get(key[1])
        return row is not None and row.key == key

    def _top(self, heap: list[FireKey]) -> FireKey | None:
        while heap:
            key = heap[0]
            row = self.rows.get(key[1])
            if row is not None and row.key == key:
                return key
            heappop(heap)
        return None


def _order_of_finished(entry: Finished) -> FireKey:
    return entry.row.key


def _order_of_stored(row: StoredRow) -> FireKey:
    return (row.execute_at, row.uuid)
