"""What the window is made of: rows, operations, attempts, and the batch that changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice

from tocsin.model.condition import Condition, Outcome
from tocsin.model.errors import TocsinError
from tocsin.model.timer import Changes, Timer
from tocsin.ports.store import FireKey, ShardBatch, StoredRow

#: Rows of which `longest_wait_us` takes the oldest, of each heap.
_WAITS_LOOKED_AT_MAX = 100


class Row:
    """A timer in memory: its key (instant of the next attempt, uuid), the generation of the write that made it so, the
    decoded timer, and the size of its stored record in bytes. `raw` is set instead of `timer` on a row that can't be
    decoded."""

    __slots__ = ("generation", "key", "raw", "size", "timer")

    def __init__(self, key: FireKey, generation: bytes, timer: Timer, size: int, raw: StoredRow | None = None) -> None:
        self.key = key
        self.generation = generation
        self.timer = timer
        self.size = size
        self.raw = raw

    def waited_us(self, now_us: int) -> int:
        """How long it has been due: since its instant, or since it was accepted if that was later. Negative before."""
        # Acceptance is dated by the node that was asked, whose clock may be a little ahead.
        return min(now_us - self.key[0], max(now_us - self.timer.updated_at, 0))


class ExistingRow(Row):
    """The timer that a create on a condition found, as it stands: pending, or finished. Nothing was written. `outcome` says
    why: the create is a repetition, or the timer was to be kept."""

    __slots__ = ("outcome",)

    def __init__(self, row: Row, outcome: Outcome) -> None:
        super().__init__(row.key, row.generation, row.timer, row.size)
        self.outcome = outcome


def longest_wait_us(rows: Mapping[bytes, Row], heaps: Sequence[list[FireKey]], now_us: int) -> int:
    """How long the oldest due one has waited; 0 when none is due. The heaps have their keys, of which all but the first may
    be outdated. Where many have instants of long before they were accepted, it is the oldest of those looked at."""
    longest = 0
    for heap in heaps:
        if heap[0][0] > now_us:
            continue
        for key in islice(heap, _WAITS_LOOKED_AT_MAX):
            row = rows.get(key[1])
            if row is not None and row.key == key:
                longest = max(longest, row.waited_us(now_us))
    return longest


class OpKind(IntEnum):
    """What an operation wants. The first three are clients' writes; those up to HAND_OVER overrule answers of attempts in
    attempt that come before they are through."""

    CREATE = 1
    UPDATE = 2
    DELETE = 3
    CONCLUDE = 4
    HAND_OVER = 5
    RETRY = 6
    SUSPEND = 7
    RESUME = 8


#: What a client's write is answered with: the row as durably written, or as found (ExistingRow), None for a delete, or the
#: error.
Reply = Callable[[Row | TocsinError | None], None]


class WriteOp:
    """An accepted operation on one uuid, waiting for a batch.

    CREATE brings `timer`, and `condition` if it has one; UPDATE brings `changes`; RETRY brings `timer` and the key's new
    instant `execute_at`; SUSPEND brings `reason`. HAND_OVER leaves an attempt in flight to the node that began it: its row
    gets the instant `execute_at`, at which it is due again if nobody reports a result. CONCLUDE is that result: `timer`, and
    `execute_at` while it is pending. All from CONCLUDE on apply only to the generation `expected`.
    """

    __slots__ = (
        "changes", "condition", "deadline_us", "execute_at", "expected", "generation", "kind",
        "namespace", "reason", "reply", "timer", "uuid",
    )  # fmt: skip

    def __init__(
        self,
        kind: OpKind,
        uuid: bytes,
        namespace: str = "",
        *,
        timer: Timer | None = None,
        changes: Changes | None = None,
        execute_at: int = 0,
        expected: bytes = b"",
        reason: str | None = None,
        reply: Reply | None = None,
        deadline_us: int | None = None,
        condition: Condition | None = None,
    ) -> None:
        self.kind = kind
        self.uuid = uuid
        self.namespace = namespace
        self.generation = b""
        self.timer = timer
        self.changes = changes
        self.execute_at = execute_at
        self.expected = expected
        self.reason = reason
        self.reply = reply
        self.deadline_us = deadline_us
        self.condition = condition

    @property
    def supersedes(self) -> bool:
        """Whether answers of attempts in flight decide nothing until it is through. It may be refused, and asked for again
        by whoever wants it; the engine's other operations stay until they are durable."""
        return self.kind <= OpKind.HAND_OVER


@dataclass(frozen=True, slots=True)
class FinalAttempt:
    """The timer is answered for good: `timer` carries its final status."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """The timer is to be attempted again at `execute_at` (a retry, or a reschedule by the receiver)."""

    timer: Timer
    execute_at: int


Conclusion = FinalAttempt | NextAttempt


class InFlightAttempt:
    """An attempt under way. `superseded`: a client's newer write has been accepted, so that the answer decides nothing.
    `stale`: the row is not (known to be) the durable one any more. `handed_over_generation`: the generation of
    the row that waits for the result, wherever its shard is owned by then; empty while this window concludes it."""

    __slots__ = ("fired_at", "handed_over_generation", "number", "row", "stale", "superseded")

    def __init__(self, row: Row, superseded: bool) -> None:
        self.row = row
        self.superseded = superseded
        self.stale = False
        self.number = 0
        self.fired_at = 0
        self.handed_over_generation = b""


class AwaitingWrite:
    """Answered, but overruled by a client's write that is not durable yet; or set aside as undecodable until the batch
    that suspends it is durable (then there is no conclusion)."""

    __slots__ = ("conclusion", "row")

    def __init__(self, row: Row, conclusion: Conclusion | None) -> None:
        self.row = row
        self.conclusion = conclusion


class Finished:
    """Answered for good; its delete is not durable yet. `since_us` is boot time."""

    __slots__ = ("row", "since_us", "timer", "with_history")

    def __init__(self, row: Row, timer: Timer, since_us: int) -> None:
        self.row = row
        self.timer = timer
        self.since_us = since_us
        self.with_history = True


@dataclass(slots=True)
class Batch:
    """A shard's part of a commit, and what becomes of the window when it is durable.

    `final` has one entry per uuid written: its new row, or None when deleted; `ended` has the timers that its operations
    have ended, each with its final status; `upserts` has the stored form of the rows;
    `relied_on` names finished timers whose end an answer tells, so that their deletes have to go along;
    `suspended` names those that leave the window although they stay stored. `answers` go to the operations in order.
    """

    store: ShardBatch
    ops: list[WriteOp] = field(default_factory=list)
    answers: list[Row | TocsinError | None] = field(default_factory=list)
    final: dict[bytes, Row | None] = field(default_factory=dict)
    ended: dict[bytes, Row] = field(default_factory=dict)
    upserts: dict[bytes, StoredRow] = field(default_factory=dict)
    suspended: set[bytes] = field(default_factory=set)
    relied_on: set[bytes] = field(default_factory=set)
    finished: list[Finished] = field(default_factory=list)
    #: Operations and history that could not be made into records, by uuid, and why.
    unusable: list[tuple[bytes, str]] = field(default_factory=list)
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """An announced load: its number voids it when the window was truncated meanwhile."""

    number: int
    after: FireKey
    up_to: FireKey
