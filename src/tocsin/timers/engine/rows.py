"""The window's data: rows, write operations, attempts and their conclusions, and the batch that changes them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tocsin.model.condition import Condition, Outcome
from tocsin.model.errors import FieldError, PayloadTooLarge, RecordUndecodable, TocsinError
from tocsin.model.flow import FlowRules
from tocsin.model.job import RowFilter
from tocsin.model.monitor import MonitorChange
from tocsin.model.schedule import ScheduleChange
from tocsin.model.timer import Changes, Timer, decode_record, encode_record, unreadable_timer
from tocsin.ports.completion import Completion
from tocsin.ports.observer import Event
from tocsin.ports.store import (
    MONITORS_SUFFIX,
    NOTIFICATIONS_SUFFIX,
    FireKey,
    Found,
    ShardBatch,
    StoredRow,
    schedules_of,
)
from tocsin.timers.engine.finished import Finished
from tocsin.timers.engine.watching import Seen

if TYPE_CHECKING:
    from tocsin.timers.engine.event_log import Gap
    from tocsin.timers.engine.flow_accounts import Account
    from tocsin.timers.engine.flow_tokens import TokenPlace
    from tocsin.timers.engine.parts import WrittenPart

#: The row waits for its flow.
HELD = -1
#: How reasons begin for which rows are suspended that wait for their flow.
FLOW_REASON = "flow:"
#: The same of rows of ordered keys that have their key's turn and wait for the instant of their next attempt.
TURN_REASON = "turn:"


class RowRoom(NamedTuple):
    """How large a record may be, and how much of that clients leave for what the engine adds to it later."""

    bytes_max: int
    reserve_bytes: int


UNBOUNDED = RowRoom(sys.maxsize, 0)


class Row:
    """A timer in memory: its key (instant of the next attempt, uuid), the generation of the write that produced it, the
    decoded timer, and the size of its stored record in bytes. On a row that can't be decoded, `raw` is the stored row and
    `timer` a placeholder.

    `identity` (32 bytes) is what an attempt's result is for: that generation; on a schedule's row, that attempt of that
    occurrence, whatever has become of the definition since.

    `let_at`: when the limits of its flow, or its destination's breaker or pause, let it pass last (microseconds), HELD while
    they hold it, 0 if they never did: what they ask for is not late."""

    __slots__ = ("generation", "identity", "key", "let_at", "raw", "size", "timer")

    #: What a create that is answered with this row has done.
    outcome = Outcome.CREATED

    def __init__(self, key: FireKey, generation: bytes, timer: Timer, size: int, raw: StoredRow | None = None) -> None:
        self.key = key
        self.generation = generation
        self.identity = generation if timer.schedule is None else _identity_of_attempt(timer)
        self.timer = timer
        self.size = size
        self.raw = raw
        self.let_at = 0

    def waited_us(self, now_us: int) -> int:
        """How long it has been due, in microseconds: since its instant, or since it was accepted or what held it let it
        pass if that is later. Negative before it is due; 0 while it is held."""
        # The node that took the request dates its acceptance, and its clock may be a little ahead.
        waited_us = min(now_us - self.key[0], max(now_us - self.timer.updated_at, 0))
        if not self.let_at:
            return waited_us
        return 0 if self.let_at == HELD else min(waited_us, max(now_us - self.let_at, 0))


def _identity_of_attempt(timer: Timer) -> bytes:
    """A schedule that is deleted and created again is another one, hence the instant of its creation."""
    return hashlib.sha256(f"{timer.created_at} {timer.firing} {timer.attempts}".encode()).digest()


class PackedRow(Row):
    """A new timer's row, made of the record as it is stored. Its timer is decoded where it is first asked for: the timer of
    a row beyond the horizon never is."""

    __slots__ = ("_record",)

    def __init__(self, key: FireKey, generation: bytes, record: bytes) -> None:
        self.key = key
        self.generation = self.identity = generation
        self.size = len(record)
        self.raw = None
        self.let_at = 0
        self._record = record

    def __getattr__(self, name: str) -> Any:
        """Called for what is not set."""
        if name != "timer":
            raise AttributeError(name)
        self.timer = timer = decode_record(self._record)
        # The timer may live long.
        del self._record
        return timer


class ExistingRow(Row):
    """The existing timer, pending or finished, that a conditional create found. Nothing was written. `outcome` states why:
    the create is a repetition, or `on_conflict` asked to keep the timer."""

    __slots__ = ("outcome",)

    def __init__(self, row: Row, outcome: Outcome) -> None:
        super().__init__(row.key, row.generation, row.timer, row.size)
        self.outcome = outcome


class OpKind(IntEnum):
    """What an operation does. The first four and SCHEDULE are clients' writes. Operations up to HAND_OVER supersede results
    of in-flight attempts that arrive before the operation is durable or refused."""

    CREATE = 1
    UPDATE = 2
    DELETE = 3
    REPLAY = 4
    CONCLUDE = 5
    HAND_OVER = 6
    RETRY = 7
    SUSPEND = 8
    RESUME = 9
    RECUR = 10
    SCHEDULE = 11
    MOVE_ON = 12


#: The last kind of operation that supersedes results.
LAST_SUPERSEDING = OpKind.HAND_OVER
#: Kinds that have the result of an attempt after which the timer stays pending.
ATTEMPT_RESULTS = frozenset((OpKind.RETRY, OpKind.RECUR))
#: The answer to a write: the row as durably written, or as found (ExistingRow); None for a delete; or an error.
WriteAnswer = Row | TocsinError | None


class WriteOp(msgspec.Struct, eq=False):
    """An accepted operation on one uuid that waits for a batch.

    CREATE has `timer`, and `condition` if it is conditional. UPDATE has `changes`. REPLAY has `changes` of instant, URL and
    headers, and `expected`: the generation of the finished run, or empty for the latest. RETRY has `timer` and the key's new
    instant `execute_at`. SUSPEND has `reason`. HAND_OVER leaves an in-flight attempt to the node that began it: the row's
    instant becomes `execute_at`, at which it is due again if no result is reported. CONCLUDE reports that result: `timer`,
    and `execute_at` while the timer is pending. All kinds from CONCLUDE to RESUME apply only to the generation `expected`.

    On schedules' rows: RECUR is the result of an attempt, like CONCLUDE, at the node that made it; HAND_OVER, CONCLUDE and
    RECUR apply to the attempt with the identity `expected`. SCHEDULE is a client's `change`, with `timer` or `changes` where
    that needs them, or the owner's own (Replan). MOVE_ON plans the late row of the generation `expected` again. SCHEDULE is
    also a change of a monitor, and MOVE_ON what happens at a monitor's deadline, or after a look at its schedule (`seen`).

    UPDATE, DELETE and SCHEDULE of a job have `only_if`: they apply to a row that matches it then.

    `completion` is who waits for the operation, if anybody does."""

    kind: OpKind
    uuid: bytes
    namespace: str = ""
    generation: bytes = b""
    timer: Timer | None = None
    changes: Changes | None = None
    execute_at: int = 0
    expected: bytes = b""
    reason: str | None = None
    completion: Completion[Row | None] | None = None
    deadline_us: int | None = None
    condition: Condition | None = None
    change: ScheduleChange | MonitorChange | None = None
    only_if: RowFilter | None = None
    seen: Seen | None = None
    #: Whether a client's write was passed on to the shard's owner, another node.
    forwarded: bool = False

    def answer(self, answer: WriteAnswer) -> None:
        """Answers the client, if one waits; only the first answer counts."""
        # The completion usually refers to the operation. Released here, both are freed at once instead of by the garbage
        # collector, whose pauses would grow with the load.
        completion, self.completion = self.completion, None
        if completion is None:
            return
        if isinstance(answer, TocsinError):
            completion.refuse(answer)
        else:
            completion.resolve(answer)

    @property
    def supersedes(self) -> bool:
        """Whether results of in-flight attempts decide nothing until this operation is durable or refused.

        Such an operation may be refused, and its sender may repeat it; the engine's other operations stay queued until they
        are durable.
        """
        return self.kind <= LAST_SUPERSEDING

    @property
    def by_client(self) -> bool:
        """Whether a client waits for it who gets an error where the timer is not found."""
        return self.kind <= OpKind.REPLAY or self.kind is OpKind.SCHEDULE


class FinalAttempt(msgspec.Struct, frozen=True, gc=False):
    """The attempt was the timer's last: `timer` has its final status."""

    timer: Timer


class NextAttempt(msgspec.Struct, frozen=True, gc=False):
    """Another attempt follows at `execute_at`: a retry, or a reschedule that the receiver asked for."""

    timer: Timer
    execute_at: int


Conclusion = FinalAttempt | NextAttempt


class InFlightAttempt(msgspec.Struct, eq=False, gc=False):
    """What the window knows of an attempt whose result is not recorded yet. `number` counts the firing's attempts from 1;
    `fired_at` is the wall clock at which it began.

    `superseded`: a newer write was accepted, so the result decides nothing. `stale`: the dispatched row is no longer, or not
    known to be, the durable one. `handed_over_as`: the identity of the row that waits for the result at the shard's next
    owner; empty while this window concludes the attempt.
    """

    row: Row
    superseded: bool
    number: int
    stale: bool = False
    fired_at: int = 0
    handed_over_as: bytes = b""


@dataclass(slots=True)
class Batch:
    """A shard's part of a commit, and how the window changes when it is durable.

    `final` has one entry per uuid written: its new row, or None when it is deleted. `ended` has the timers that the batch's
    operations end, each with its final status. `upserts` has the rows in their stored form. `relied_on` has finished timers
    whose end is part of an answer, so that their deletes belong to this batch. `suspended` has rows that leave the window
    and stay stored. `answers` belong to `ops`, in order. `parts` are those that the batch writes as a whole. `events` are
    observed when the batch is durable. `refused` states whether operations were refused that would have been in it, so that
    rows that waited for them may be due. `accounted` has, of schedules whose occurrences the batch records, how many instants
    were accounted for before and are after it. `reckoned` is how much of the reckoning of schedules that one commit may do
    was done for it.
    """

    store: ShardBatch
    ops: list[WriteOp] = field(default_factory=list)
    answers: list[WriteAnswer] = field(default_factory=list)
    parts: list[WrittenPart] = field(default_factory=list)
    final: dict[bytes, Row | None] = field(default_factory=dict)
    ended: dict[bytes, Row] = field(default_factory=dict)
    upserts: dict[bytes, StoredRow] = field(default_factory=dict)
    suspended: set[bytes] = field(default_factory=set)
    relied_on: set[bytes] = field(default_factory=set)
    finished: list[Finished] = field(default_factory=list)
    accounted: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    #: The monitors that it writes or deletes.
    monitors: set[bytes] = field(default_factory=set)
    #: (uuid, reason) of operations and history rows that could not be encoded as records.
    unusable: list[tuple[bytes, str]] = field(default_factory=list)
    refused: bool = False
    #: Timers that the batch creates in namespaces whose pending timers have a quota.
    creates: dict[str, int] = field(default_factory=dict)
    #: Operations of parts.
    packed: int = 0
    #: Events that it adds for sinks, those that it removes, and gaps that take the place of some.
    events_added: int = 0
    events_removed: list[bytes] = field(default_factory=list)
    gaps: Sequence[Gap] = ()
    #: Tokens of slow rates that it writes: of which account, and when all would be there.
    tokens: list[tuple[TokenPlace, Account, int]] = field(default_factory=list)
    bytes: int = 0
    reckoned: int = 0
    events: list[Event] = field(default_factory=list)

    def add_part(self, part: WrittenPart, stored: Iterable[StoredRow], size: int) -> None:
        """Adds a part, with its rows in their stored form and the bytes of their records. Of several rows with one uuid, the
        last counts."""
        self.parts.append(part)
        self.packed += len(part.rows)
        upserts, final, uuids = self.upserts, self.final, part.part.uuids
        for uuid, row, record in zip(uuids, part.rows, stored, strict=True):
            final[uuid] = row
            upserts[uuid] = record
        if self.suspended:
            self.suspended.difference_update(uuids)
        self.bytes += size

    @property
    def writes(self) -> int:
        """How many operations it has, those of parts included."""
        return len(self.ops) + self.packed

    @property
    def drains_events(self) -> bool:
        """Whether it removes events that waited for sinks."""
        return bool(self.events_removed or self.gaps)

    def answer(self) -> None:
        """Answers every client of the batch, which is durable."""
        for part, _, rows in self.parts:
            part.answer(rows)
        for op, answer in zip(self.ops, self.answers, strict=True):
            op.answer(answer)

    def refuse(self, error: TocsinError) -> None:
        """Answers every client of the batch with the error."""
        for part, _, _ in self.parts:
            part.answer(error)
        for op in self.ops:
            op.answer(error)


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """An announced load of (after, up_to]. `number` identifies it, so that a load that became void is recognised."""

    number: int
    after: FireKey
    up_to: FireKey


def stored(row: Row, suspended: str | None = None) -> StoredRow:
    """The row in its stored form. An undecodable row is returned verbatim."""
    if row.raw is not None:
        return row.raw._replace(generation=row.generation, suspended=suspended)
    timer = row.timer
    record = encode_record(timer)
    row.size = len(record)
    return StoredRow(
        row.key[0], row.key[1], row.generation, stored_namespace(timer), timer.id, timer.tags, record, suspended
    )


def stored_namespace(timer: Timer) -> str:
    """The name by which the store lists the row."""
    if timer.notifies is not None:
        return timer.namespace + NOTIFICATIONS_SUFFIX
    if timer.monitor is not None:
        return timer.namespace + MONITORS_SUFFIX
    return timer.namespace if timer.schedule is None else schedules_of(timer.namespace)


def shows_attempt(timer: Timer, at_us: int) -> bool:
    """Whether the row of a timer, whose next attempt is at this instant, shows that an attempt was made for its present
    instant, or was in flight when its shard was handed over."""
    if timer.attempts:
        return True
    return timer.schedule.state.away if timer.schedule is not None else at_us != timer.execute_at


#: The reason for which a row is suspended that has its key's turn; None if it is not.
TurnReason = Callable[[Row], str | None]


def turn_reason(rules: Mapping[str, FlowRules], now_us: int, row: Row) -> str | None:
    """The reason for which a row is suspended that waits for its next attempt and has the turn of an ordered key; None for
    others. The next owner of its shard finds it among the suspended rows, however far its instant is."""
    timer, at_us = row.timer, row.key[0]
    found = rules.get(timer.namespace) if timer.flow_key else None
    if found is None or at_us <= now_us or not shows_attempt(timer, at_us) or not found.is_ordered(timer.flow_key):
        return None
    return f"{TURN_REASON}{timer.namespace}/{timer.flow_key}"


def too_large(timer: Timer, size: int, bytes_max: int) -> PayloadTooLarge:
    """The error of a timer whose record is larger than a row of the store may be. It names the largest part."""
    sizes = {
        "payload": len(timer.payload),
        "body": 0 if timer.body is None else len(msgspec.json.encode(timer.body)),
        "headers": 0 if timer.headers is None else len(msgspec.json.encode(timer.headers)),
    }
    largest = max(sizes, key=sizes.__getitem__)
    return PayloadTooLarge(
        FieldError(
            largest,
            f"makes the timer too large: it would take {size} bytes as stored, {sizes[largest]} of them here; the server's "
            f"database has room for {bytes_max}",
        )
    )


def decoded_row(found: StoredRow) -> Row:
    """A stored row, decoded. Raises RecordUndecodable or RecordTooNew."""
    row = Row(found.key, found.generation, decode_record(found.record), len(found.record))
    if found.suspended is not None and found.suspended.startswith(FLOW_REASON):
        row.let_at = HELD
    return row


def undecodable_row(found: StoredRow, reason: str) -> Row:
    """A stored row whose record can't be decoded. It keeps the record unchanged."""
    blank = unreadable_timer(found.namespace, found.timer_id, found.execute_at, reason)
    return Row(found.key, found.generation, blank, len(found.record), found)


def conclusion_op(row: Row, identity: bytes, conclusion: Conclusion, kind: OpKind = OpKind.CONCLUDE) -> WriteOp:
    """The operation that reports an attempt's conclusion to the owner of the row with that identity, which may be another
    node by now."""
    execute_at = conclusion.execute_at if isinstance(conclusion, NextAttempt) else 0
    timer = msgspec.structs.replace(conclusion.timer)
    return WriteOp(kind, row.key[1], timer.namespace, timer=timer, execute_at=execute_at, expected=identity)


def finished_timer(found: Found | None) -> Timer | None:
    """The finished timer, if it is stored and can be read."""
    if found is None or found.finished is None:
        return None
    try:
        return decode_record(found.finished.record)
    except RecordUndecodable:
        return None
