"""Conditional creates compared with a reference model: the window's answers equal the model's, whatever is in memory, in the
store or on the way there, and whichever node owns the shard."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import msgspec
import pytest

from tests.support.checked_window import CheckedWindow, TransitionCheck
from tests.support.window_bench import at_once
from tocsin.model.condition import KEYS_MAX, Condition, OnConflict, Outcome
from tocsin.model.errors import IdempotencyConflict, TimerExists, TimerNotFound, TimerNotPending
from tocsin.model.instants import US_PER_DAY
from tocsin.model.namespace import HistoryMode
from tocsin.model.timer import Changes, CreateKey, Status, Timer, decode_record
from tocsin.ports.store import Applied
from tocsin.stores.memory import MemoryStore
from tocsin.timers.engine.assembly import Assembly
from tocsin.timers.engine.rows import Batch, ExistingRow, FinalAttempt, NextAttempt, OpKind, Row, WriteOp, decoded_row

_CHUNK = 250
_PENDING = Status.PENDING


@dataclass(frozen=True)
class Known:
    """A timer in the model: its create, its firing, its keys with the hashes of the requests, its end."""

    number: int
    firing: str
    keys: tuple[CreateKey, ...] = ()
    status: Status = _PENDING


class Model:
    """The reference model of one namespace: each id's live timer, and the latest finished one that is retained."""

    def __init__(self, mode: HistoryMode) -> None:
        self.mode = mode
        self.live: dict[bytes, Known] = {}
        self.retained: dict[bytes, Known] = {}

    def end(self, uuid: bytes, status: Status) -> None:
        timer = replace(self.live.pop(uuid), status=status)
        failure = self.mode is HistoryMode.FAILURES and status is Status.FAILED
        if timer.keys or failure or self.mode is HistoryMode.ALL:
            self.retained[uuid] = timer

    def answer(self, op: WriteOp, number: int, *, forgets: bool = False) -> object:
        """Applies an operation and returns its answer. `forgets`: a create does not know the former timer."""
        uuid = op.uuid
        former = self.live.get(uuid) or self.retained.get(uuid)
        if op.kind is OpKind.CREATE:
            found = None if op.condition is None or former is None else self._found(op.condition, former)
            if found is not None:
                return found
            assert op.timer is not None
            keys = () if op.condition is None else op.condition.keys_after(None)
            if keys and former is not None and not forgets:
                keys = (*former.keys, *keys)[-KEYS_MAX:]
            self.live[uuid] = Known(number, op.timer.firing, keys)
            return self.live[uuid]
        if uuid not in self.live:
            return "gone"
        if op.kind is OpKind.UPDATE:
            self.live[uuid] = replace(self.live[uuid], firing=op_firing(op))
            return self.live[uuid]
        self.end(uuid, Status.CANCELED)
        return None

    def _found(self, condition: Condition, former: Known) -> object:
        for known in former.keys:
            if condition.key is not None and known.key == condition.key.key:
                return (Outcome.REPLAYED, former) if known.body == condition.key.body else IdempotencyConflict
        if condition.on_conflict is OnConflict.KEEP:
            return (Outcome.EXISTING, former)
        return TimerExists if condition.on_conflict is OnConflict.REJECT else None

    def copy(self) -> Model:
        other = Model(self.mode)
        other.live, other.retained = dict(self.live), dict(self.retained)
        return other


def op_firing(op: WriteOp) -> str:
    """The name of the firing that an update begins."""
    epoch, sequence = int.from_bytes(op.generation[:8], "big"), int.from_bytes(op.generation[-8:], "big")
    return f"{epoch:x}-{sequence:x}"


class Run:
    """One seeded run."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(f"repeats/{seed}")
        self.store = MemoryStore()
        self.model = Model(rng.choice(list(HistoryMode)))
        self.retention_us = rng.choice((US_PER_DAY // 24, 3 * US_PER_DAY))
        self.uuids = [rng.randbytes(16) for _ in range(2)]
        self.numbers: dict[int, int] = {}
        self.now = 1_000
        self.claims = 0
        #: Keys that were sent as first tries.
        self.first_tries = 0
        #: Firings that an answer has reported as finished.
        self.over: set[str] = set()
        self.claim()

    def claim(self) -> None:
        """Changes the owner; the former one's memory is lost."""
        self.claims += 1
        self.owner = self.claims.to_bytes(16, "big")
        epoch = at_once(self.store.claim(0, expected_epoch=self.claims - 1, owner=self.owner))
        self.window = CheckedWindow(TransitionCheck(), 0, epoch, self.owner)

    def load(self) -> None:
        request = self.window.announce_load((self.now + self.rng.choice((5, 1_000)), b"\xff" * 16))
        if request is not None:
            page = at_once(self.store.load(0, request.after, request.up_to, self.rng.choice((1, 10))))
            self.window.loaded(request, [decoded_row(row) for row in page.rows], page.complete_to)

    def accept(self) -> None:
        rng, uuid = self.rng, self.rng.choice(self.uuids)
        kind = rng.choice((OpKind.CREATE,) * 8 + (OpKind.UPDATE, OpKind.DELETE))
        op = WriteOp(kind, uuid, "n")
        due = self.now + rng.choice((0, 0, 3, 20))
        if kind is OpKind.CREATE:
            op.timer = Timer("n", uuid.hex()[:4], due, "http://h/?token=1", 0, 0, payload=msgspec.Raw(b"1"))
            op.condition = self.condition()
        elif kind is OpKind.UPDATE:
            op.changes = Changes(execute_at=due)
        self.numbers[id(op)] = len(self.numbers)
        self.window.accept(op)

    def condition(self) -> Condition | None:
        rng = self.rng
        if rng.random() < 0.2:
            self.first_tries += 1
            return Condition(key=CreateKey(f"f{self.first_tries}", "b0"), first_try=True)
        name = f"f{rng.randint(max(self.first_tries - 2, 0), self.first_tries)}" if rng.random() < 0.3 else ""
        key = CreateKey(name or f"k{rng.randrange(6)}", f"b{int(rng.random() < 0.1)}") if rng.random() < 0.7 else None
        on_conflict = rng.choice(list(OnConflict))
        return None if key is None and on_conflict is OnConflict.REPLACE else Condition(on_conflict, key)

    def commit(self) -> None:
        """Commits a batch, which may be lost, and whose answer may be lost."""
        rng, window = self.rng, self.window
        rows_max = rng.choice((1, 2, 100))
        uuids = window.to_fetch(rows_max, rows_max)
        fetched = at_once(self.store.fetch(0, uuids))
        before = self.model.copy()
        for uuid, entry in window.finished.items():
            self.model.end(uuid, entry.timer.status)
        batch = Assembly(
            window, now_us=self.now, boot_us=self.now, history_rule=lambda _: (self.model.mode, self.retention_us),
            failure_retention_us=0, fetched={uuid: fetched.get(uuid) for uuid in uuids},
        ).batch(
            rows_max=rows_max, bytes_max=100_000, exact_after_us=rng.choice((0, 1_000)),
            finished_max=rng.choice((0, 100)),
        )  # fmt: skip
        self.check_answers(batch)
        if rng.random() < 0.1:
            # It never takes effect, and its sender is gone.
            self.model = before
            self.claim()
            return
        assert at_once(self.store.apply([batch.store])) == [Applied.DURABLE]
        gone = {entry.row.key[1] for entry in batch.finished}
        for uuid in window.finished.keys() - gone:
            # Its end isn't durable yet: it counts only for whoever asks this owner.
            self.model.live[uuid] = before.live[uuid]
            self.model.retained.pop(uuid, None)
            if uuid in before.retained:
                self.model.retained[uuid] = before.retained[uuid]
        self.note_over(batch)
        if rng.random() < 0.1:
            self.claim()
            return
        window.committed(batch, self.now)

    def check_answers(self, batch: Batch) -> None:
        for op, answer in zip(batch.ops, batch.answers, strict=True):
            if op.kind > OpKind.DELETE:
                continue
            expected = self.model.answer(op, self.numbers[id(op)], forgets=_forgets(op, answer))
            assert seen(answer, expected) == expected, (op.kind.name, op.condition, answer)

    def note_over(self, batch: Batch) -> None:
        for answer in batch.answers:
            if isinstance(answer, ExistingRow) and answer.timer.status is not _PENDING:
                self.over.add(answer.timer.firing)

    def fire(self) -> None:
        row = self.window.due(self.now)
        if row is None:
            return
        self.window.dispatch(row)
        firing = row.timer.firing
        assert firing not in self.over, "it fires after an answer that it has finished"
        assert decode_record(self.store._shards[0].live[row.key[1]].record).firing == firing

    def answered(self) -> None:
        attempts = [attempt for each in self.window.in_flight.values() for attempt in each]
        if not attempts:
            return
        attempt = self.rng.choice(attempts)
        timer = msgspec.structs.replace(attempt.row.timer, status=self.rng.choice((Status.COMPLETED, Status.FAILED)))
        end = FinalAttempt(timer) if self.rng.random() < 0.8 else NextAttempt(attempt.row.timer, self.now + 2)
        self.window.answered(attempt, end, self.now)

    def tick(self) -> None:
        self.now += 1

    def run(self) -> None:
        steps = (
            (self.accept,) * 3 + (self.commit,) * 3 + (self.fire,) * 3 + (self.answered,) * 2 + (self.tick, self.load)
        )
        for _ in range(120):
            self.rng.choice(steps)()


def _forgets(op: WriteOp, answer: object) -> bool:
    """Whether a first try was answered by an owner that does not have the former timer in memory: it reads nothing more."""
    first_try = op.condition is not None and not op.condition.reads
    return first_try and isinstance(answer, Row) and len(answer.timer.keys) == 1


def seen(answer: object, expected: object) -> object:
    """The answer in the model's form."""
    if isinstance(answer, ExistingRow):
        assert isinstance(expected, tuple)
        return (answer.outcome, _as_known(answer, expected[1].number))
    if isinstance(answer, Row):
        return _as_known(answer, expected.number if isinstance(expected, Known) else -1)
    if isinstance(answer, TimerNotFound | TimerNotPending):
        return "gone"
    return type(answer) if isinstance(answer, Exception) else answer


def _as_known(row: Row, number: int) -> Known:
    return Known(number, row.timer.firing, row.timer.keys, row.timer.status)


@pytest.mark.parametrize("first", range(0, 1_000, _CHUNK))
def test_every_create_is_answered_as_by_a_reference_model(first: int) -> None:
    for seed in range(first, first + _CHUNK):
        try:
            Run(seed).run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
