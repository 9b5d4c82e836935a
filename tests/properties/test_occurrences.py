"""A model of its own of rule 10's amendment: on a schedule's row, "this generation" reads "this occurrence and attempt".

One row, several owners one after the other, one client. Nothing here is the engine's code: the model shows that the
rules suffice, and its mutants that each is needed. A step is one of: dispatch, answer, change, send a batch, deliver it,
confirm it, lose the claim, hand the shard over, report a result, load. Time is the number of steps, and the next occurrence
is one greater than the last.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

#: Rules, each of which a mutant drops.
RULES = {
    "generation": "the attempt is identified by the row's generation",
    "dispatched": "the next row has the definition of the dispatch",
    "later": "the next row is written by a later batch than the end of the last one",
    "unadopted": "a durable change does not reach the attempt in flight",
    "unloaded": "a load does not show an attempt that outlived its claim the present row",
    "unguarded": "a result applies to whichever occurrence is present",
    "unblocked": "an attempt begins while a change is not durable",
}
ATTEMPTS_MAX = 3


class Broken(AssertionError):
    """A promise is broken."""


@dataclass(frozen=True)
class Row:
    """The durable row: which attempt of which occurrence is due, and the definition (its version)."""

    occurrence: int
    attempt: int
    definition: int
    generation: int
    #: An attempt is in flight at a former owner.
    away: bool = False


@dataclass
class WriteOp:
    """A result of an attempt, or a client's change of the definition."""

    result: Row | None = None
    ends: bool = False
    definition: int = 0
    retimes: bool = False


@dataclass
class Batch:
    """A write under way: the row that it leaves (None: deleted), and what follows it."""

    epoch: int
    ops: list[WriteOp]
    row: Row | None
    #: Occurrences that end with it.
    ended: list[int]
    durable: bool = False


@dataclass
class Owner:
    """What the owner of the shard has in memory under one claim."""

    epoch: int
    row: Row | None = None
    in_flight: Row | None = None
    #: The attempt in flight outlived a claim, and no load has shown its row since.
    stale: bool = False
    answered: Row | None = None
    pending: list[WriteOp] = field(default_factory=list)
    batch: Batch | None = None
    loaded: bool = False


class Model:
    """One run. `broken` names the rules that this mutant drops."""

    def __init__(self, seed: int, broken: frozenset[str] = frozenset()) -> None:
        self.rng = random.Random(seed)
        self.broken = broken
        self.faulty = seed % 3 != 0
        self.epoch, self.generations = 1, 1
        self.stored: Row | None = Row(1, 1, 1, 1)
        self.owner = Owner(1)
        self.calls: list[tuple[int, int]] = []
        self.asked, self.acknowledged = 1, 1
        self.counted: list[int] = []
        self.superseded: set[int] = set()
        #: An attempt that was in flight at a node when it lost its claim, and one whose result a former owner reports.
        self.orphan: Row | None = None
        self.left: Row | None = None
        #: An attempt whose owner has gone may overlap with the next.
        self.excused = False

    def identity(self, row: Row) -> object:
        return row.generation if "generation" in self.broken else (row.occurrence, row.attempt)

    def same(self, one: Row | None, other: Row | None) -> bool:
        return one is not None and other is not None and self.identity(one) == self.identity(other)

    # ------------------------------------------------------------------ steps

    def dispatch(self) -> None:
        """The row is due. No attempt begins while a change is under way: the change has to know whether one has."""
        owner = self.owner
        changing = any(op.result is None for op in (*owner.pending, *(owner.batch.ops if owner.batch else ())))
        if owner.row is None or (changing and "unblocked" not in self.broken):
            return
        if owner.row.away:
            # It is not due before the result is overdue.
            if self.rng.random() < 0.9:
                return
            self.excused = True
        row, owner.row = owner.row, None
        call = (row.occurrence, row.attempt)
        if self.calls and call < self.calls[-1]:
            raise Broken(f"{call} after {self.calls[-1]}")
        if call in self.calls and not self.excused:
            raise Broken(f"{call} twice")
        if owner.in_flight is not None and not self.excused:
            raise Broken(f"{call} beside {owner.in_flight}")
        if row.definition < self.acknowledged:
            raise Broken(f"{call} with definition {row.definition}, {self.acknowledged} was acknowledged")
        self.calls.append(call)
        owner.in_flight, owner.stale = row, False

    def answer(self) -> None:
        """The attempt in flight ends: the occurrence ends with it, or has another attempt."""
        owner = self.owner
        if owner.in_flight is None:
            return
        row, owner.in_flight = owner.in_flight, None
        if owner.stale:
            return
        ends = row.attempt >= ATTEMPTS_MAX or self.rng.random() < 0.6
        owner.answered = row
        owner.pending.append(WriteOp(result=row, ends=ends))

    def change(self) -> None:
        """A client changes the definition."""
        if len(self.owner.pending) < 3:
            self.asked += 1
            self.owner.pending.append(WriteOp(definition=self.asked, retimes=self.rng.random() < 0.5))

    def send(self) -> None:
        """Assembles the pending operations into one batch: each applies to the row as it is then."""
        owner = self.owner
        if owner.batch is not None or not owner.pending or not owner.loaded:
            return
        row = self.present()
        ops, owner.pending = owner.pending, []
        ended: list[int] = []
        for op in ops:
            self.generations += 1
            if op.result is None:
                if row is None:
                    continue
                begun = row.attempt > 1 or self.same(row, owner.in_flight) or self.same(row, owner.answered) or row.away
                if op.retimes and not begun:
                    self.superseded.add(row.occurrence)
                    row = replace(row, occurrence=row.occurrence + 1)
                row = replace(row, definition=op.definition, generation=self.generations)
            elif row is not None and (self.same(row, op.result) or "unguarded" in self.broken):
                ended += [op.result.occurrence] * op.ends
                definition = op.result.definition if "dispatched" in self.broken else row.definition
                following = (row.occurrence + 1, 1) if op.ends else (row.occurrence, row.attempt + 1)
                row = Row(*following, definition, self.generations)
                if op.ends and "later" in self.broken:
                    owner.pending.append(WriteOp(definition=definition))
                    row = None
        owner.batch = Batch(owner.epoch, ops, row, ended)

    def present(self) -> Row | None:
        """The durable row as memory has it; what memory doesn't know is read."""
        owner = self.owner
        if owner.row is not None:
            return owner.row
        if owner.in_flight is not None and not owner.stale:
            return owner.in_flight
        return owner.answered or self.stored

    def deliver(self) -> None:
        """The batch reaches the store, which checks its fence."""
        batch = self.owner.batch
        if batch is not None and not batch.durable and batch.epoch == self.epoch:
            batch.durable = True
            self.stored = batch.row
            self.counted += batch.ended

    def confirm(self) -> None:
        """The owner learns that the batch is durable: its row takes the place of the former one."""
        owner, batch = self.owner, self.owner.batch
        if batch is None or not batch.durable:
            return
        owner.batch, row = None, batch.row
        self.acknowledged = max([self.acknowledged, *(op.definition for op in batch.ops)])
        if "unadopted" not in self.broken:
            if self.same(owner.in_flight, row):
                owner.in_flight, owner.stale = row, False
                return
            if self.same(owner.answered, row):
                owner.answered = row
                return
        elif self.same(owner.in_flight, row) or self.same(owner.answered, row):
            return
        owner.row, owner.answered = row, None
        if owner.in_flight is not None:
            owner.stale = True

    def lose(self) -> None:
        """The claim is lost, or the outcome of a batch is unknown. The attempt in flight stays with this node, or goes with
        it."""
        if not self.faulty:
            return
        former, self.excused = self.owner, True
        # A batch that was on its way lands before the new claim, or never.
        if self.rng.random() < 0.5:
            self.deliver()
        self.epoch += 1
        self.owner = Owner(self.epoch)
        # This node again, or another one, which may have owned the shard before.
        self.owner.in_flight = self.rng.choice([former.in_flight, self.orphan, None])
        self.owner.stale = True
        self.orphan = former.in_flight or self.orphan

    def hand_over(self) -> None:
        """The shard gets another owner. The attempt in flight stays with this node, which reports its result; if it takes too
        long, the next owner makes it again."""
        former = self.owner
        if former.batch is not None or former.pending or not former.loaded or self.left is not None:
            return
        if former.in_flight is not None and not former.stale and self.stored is not None:
            self.left, self.stored = former.in_flight, replace(self.stored, away=True)
        self.epoch += 1
        self.owner = Owner(self.epoch)

    def report(self) -> None:
        """The result of an attempt that was left to a former owner."""
        if self.left is not None:
            self.owner.pending.append(WriteOp(result=self.left, ends=self.rng.random() < 0.6))
            self.left = None

    def load(self) -> None:
        """The owner reads the row after its claim."""
        owner = self.owner
        if owner.loaded:
            return
        owner.loaded, row = True, self.stored
        if self.same(owner.in_flight, row):
            owner.stale = False
            if "unloaded" not in self.broken:
                owner.in_flight = row
        else:
            owner.row = row

    def run(self, steps: int) -> None:
        """Takes random steps, then faultless ones until nothing is under way; checks what has to hold at the end."""
        actions = [self.dispatch, self.answer, self.change, self.send, self.deliver, self.confirm, self.load]
        actions += [self.report]
        for _ in range(steps):
            self.rng.choice([self.lose, self.hand_over] if self.rng.random() < 0.08 else actions)()
        for _ in range(5):
            for action in (
                self.report,
                self.load,
                self.deliver,
                self.confirm,
                self.answer,
                self.send,
                self.deliver,
                self.confirm,
            ):
                action()
        if self.stored is None:
            raise Broken("the schedule is lost")
        if self.stored.definition < self.acknowledged:
            raise Broken(f"definition {self.acknowledged} was acknowledged, {self.stored.definition} is stored")
        if sorted(set(self.counted)) != self.counted:
            raise Broken(f"an occurrence ended twice: {self.counted}")
        begun = {occurrence for occurrence, _ in self.calls}
        if not begun | self.superseded >= set(range(1, self.stored.occurrence)):
            raise Broken(f"an occurrence was left out: {sorted(begun)}")


def test_rules_hold_under_random_interleavings() -> None:
    for seed in range(3_000):
        Model(seed).run(60)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_needed(rule: str) -> None:
    for seed in range(3_000):
        try:
            Model(seed, frozenset({rule})).run(60)
        except Broken:
            return
    pytest.fail(f"no run shows that {RULES[rule]}")
