"""Parts: plain creates of one shard that go through the engine together.

A plain create has no condition: it writes its timer whatever the store has of it. The first try of an idempotency key is one,
too, while memory has nothing of its timer. Creates of one shard that arrive at about
the same time, of one request or of several, become one part, which is queued, written, and answered as a whole, at a
fraction of what as many operations cost. Where creates need a decision each, as under a quota, or after the store has
refused a batch, the part is taken apart, and its operations go the way of all others.

The engine uses a part only by the methods here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import compress, count
from operator import attrgetter
from typing import NamedTuple

import msgspec

from tocsin.model.condition import Condition
from tocsin.model.errors import TocsinError
from tocsin.model.packed import NewTimer, unpacked
from tocsin.model.timer import Timer, encode_record
from tocsin.ports.completion import Completion
from tocsin.ports.store import StoredRow
from tocsin.timers.engine.rows import OpKind, PackedRow, Row, WriteOp

#: Creates that a part takes from several requests. One request may bring more.
JOINED_MAX = 1_000
#: How much later than a part's first creates others may join it, in microseconds. All of them have the deadline of the first.
JOINED_WITHIN_US = 10_000

_namespace_of, _keys_of = attrgetter("namespace"), attrgetter("keys")


class Creates(Completion[Sequence[Row]]):
    """Plain creates of one request in one shard, in order: `uuids` and `timers` belong together. One of which the timer
    has a key is the key's first try. They are resolved with their rows, or refused, all at once; if their part is taken
    apart, each of them is completed by itself instead. `deadline_us` is the boot time after which none of them is written,
    once they are accepted."""

    __slots__ = ("deadline_us", "timers", "uuids")

    uuids: Sequence[bytes]
    timers: Sequence[NewTimer]
    deadline_us: int | None

    @abstractmethod
    def operations(self) -> Sequence[WriteOp]:
        """The creates as operations, each of which its own completion waits for; nothing completes this one any more."""


def operation(uuid: bytes, timer: NewTimer, deadline_us: int | None) -> WriteOp:
    """A create of a part as an operation. One with a key has the condition of its first try."""
    single, condition = unpacked(timer), None
    if single.keys:
        (key,) = single.keys
        # Not in place: who waits for its part may have the timer.
        single, condition = msgspec.structs.replace(single, keys=()), Condition(key=key, first_try=True)
    return WriteOp(
        OpKind.CREATE, uuid, single.namespace, timer=single, condition=condition, deadline_us=deadline_us
    )  # fmt: skip


class WrittenPart(NamedTuple):
    """A part in a batch: before how many of the batch's operations its creates come, and the rows that they become."""

    part: Part
    position: int
    rows: list[Row]


class Part:
    """Creates that wait for one batch. `claim` is a generation of the shard's claim without its sequence number, `firings`
    how the names of the claim's firings begin, `first_sequence` the number of the first create in both; those of the others
    follow. `deadline_us` is the boot time after which none of them is written. `first_tries` has the uuids of those with an
    idempotency key."""

    __slots__ = ("_claim", "_creates", "_firings", "_first_sequence", "_timers", "deadline_us", "first_tries", "uuids")

    #: As of the operations in it.
    supersedes = by_client = True

    def __init__(self, claim: bytes, firings: str, first_sequence: int, deadline_us: int | None) -> None:
        self.uuids: list[bytes] = []
        self.first_tries: set[bytes] = set()
        self.deadline_us = deadline_us
        self._claim, self._firings = claim, firings
        self._first_sequence = first_sequence
        self._timers: list[NewTimer] = []
        self._creates: list[Creates] = []

    def __len__(self) -> int:
        return len(self.uuids)

    def may_take(self, creates: int, next_sequence: int, deadline_us: int | None) -> bool:
        """Whether so many creates may join: the part has room, nothing was accepted since its last create, and their deadline
        is about its own."""
        size = len(self.uuids)
        if size + creates > JOINED_MAX or self._first_sequence + size != next_sequence:
            return False
        if self.deadline_us is None or deadline_us is None:
            return self.deadline_us is deadline_us
        return 0 <= deadline_us - self.deadline_us <= JOINED_WITHIN_US

    def add(self, creates: Creates) -> None:
        """Adds creates that were accepted just now."""
        creates.deadline_us = self.deadline_us
        self.uuids += creates.uuids
        self._timers += creates.timers
        self._creates.append(creates)
        self.first_tries.update(compress(creates.uuids, map(_keys_of, creates.timers)))

    def created(self) -> Mapping[str, int]:
        """How many timers it creates in each namespace."""
        return Counter(map(_namespace_of, self._timers))

    def may_repeat(self, remembered: Callable[[set[bytes]], set[bytes]], *known: Container[bytes]) -> bool:
        """Whether anything is known of a timer of which this has a first try of a key: it may have that key already.
        `remembered` returns those of some uuids of which memory has a row; `known` has others of which something is known."""
        keyed = self.first_tries
        if not keyed:
            return False
        twice = len(set(self.uuids)) < len(self.uuids)
        return twice or bool(remembered(keyed)) or any(uuid in place for place in known for uuid in keyed)

    def rows(self) -> tuple[list[Row], list[StoredRow]]:
        """Its rows in memory and as stored, in the order of acceptance: of rows with one uuid, the last counts. Raises what
        encoding a record raises."""
        rows, stored, claim, firings = list[Row](), list[StoredRow](), self._claim, self._firings
        for sequence, uuid, timer in zip(count(self._first_sequence), self.uuids, self._timers):
            at, generation = timer.execute_at, claim + sequence.to_bytes(8, "big")
            timer.firing = f"{firings}{sequence:x}"
            if isinstance(timer, Timer):
                record, tags = encode_record(timer), timer.tags
                rows.append(Row((at, uuid), generation, timer, len(record)))
            else:
                record, tags = timer.record(), ()
                rows.append(PackedRow((at, uuid), generation, record))
            stored.append(StoredRow(at, uuid, generation, timer.namespace, timer.id, tags, record))
        return rows, stored

    def answer(self, answer: Sequence[Row] | TocsinError) -> None:
        """Answers who waits for the creates; only the first answer counts."""
        # As after `WriteOp.answer`, nothing of it is left for the garbage collector.
        waiting, self._creates = self._creates, []
        if isinstance(answer, TocsinError):
            for creates in waiting:
                creates.refuse(answer)
            return
        begin = 0
        for creates in waiting:
            end = begin + len(creates.uuids)
            creates.resolve(answer[begin:end])
            begin = end

    def operations(self) -> list[WriteOp]:
        """Takes the part apart: its creates as operations in their order, with the generations that they have."""
        waiting, self._creates = self._creates, []
        ops = [op for creates in waiting for op in creates.operations()] or [
            # They were answered before their outcome was known.
            operation(uuid, timer, self.deadline_us)
            for uuid, timer in zip(self.uuids, self._timers, strict=True)
        ]
        for sequence, op in enumerate(ops, start=self._first_sequence):
            op.generation = self._claim + sequence.to_bytes(8, "big")
            assert op.timer is not None
            op.timer.firing = f"{self._firings}{sequence:x}"
        return ops
