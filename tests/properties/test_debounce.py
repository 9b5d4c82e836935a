"""Debounced creates compared with a slow reference, which computes each row again from all creates of its window: whatever is
in memory, in the store or on the way there, and whichever node owns the shard. At the end nothing acknowledged was lost."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from tests.support.checked_window import CheckedWindow, TransitionCheck
from tests.support.window_bench import at_once
from tocsin.model.condition import Condition, OnConflict, Outcome
from tocsin.model.debounce import Debounce
from tocsin.model.errors import CollectionFull
from tocsin.model.namespace import HistoryMode
from tocsin.model.timer import CreateKey, Status, Timer, decode_record
from tocsin.ports.store import Applied
from tocsin.stores.memory import MemoryStore
from tocsin.timers.engine.assembly import Assembly
from tocsin.timers.engine.rows import (
    Batch,
    ExistingRow,
    FinalAttempt,
    InFlightAttempt,
    NextAttempt,
    OpKind,
    Row,
    WriteOp,
    decoded_row,
)

_CHUNK = 250
_TIMEOUT_US = 7


@dataclass(frozen=True)
class Sent:
    """A create of a window: when it was assembled, what it asked for, its payload."""

    at: int
    wanted: Debounce
    payload: int


@dataclass
class Window:
    """The reference's live timer: all creates of its window, what it took over, and the names of its rows."""

    creates: list[Sent]
    taken: list[Any] = field(default_factory=list)
    earliest: int = 0
    row: bytes = b""
    retried: bool = False

    def due(self) -> int:
        return max(min(self.creates[-1].at + self.creates[-1].wanted.delay_us, self.latest()), self.earliest)

    def latest(self) -> int:
        return max(self.creates[0].at + min(each.wanted.max_delay_us for each in self.creates), self.earliest)

    def payload(self) -> Any:
        """A list of payloads if the latest create collects them, else its own."""
        payload: Any = list(self.taken)
        for sent in self.creates:
            if sent.wanted.collect:
                payload = [*(payload if isinstance(payload, list) else [payload]), sent.payload]
            else:
                payload = sent.payload
        return payload

    def payloads(self) -> list[int]:
        payload = self.payload()
        return payload if isinstance(payload, list) else [payload]


class Run:
    """One seeded run of two timers, whose clients collect payloads, or don't, or do either."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(f"debounce/{seed}")
        self.store = MemoryStore()
        self.mode = rng.choice(list(HistoryMode))
        self.collects = rng.choice(((0,), (3, 100), (0, 2, 100)))
        self.uuids = [rng.randbytes(16) for _ in range(2)]
        self.now, self.claims, self.numbers = 1_000, 0, 0
        self.live: dict[bytes, Window] = {}
        self.keys: dict[bytes, tuple[CreateKey, ...]] = dict.fromkeys(self.uuids, ())
        #: The reference's knowledge of the owner's memory: attempts under way, and results that are not durable.
        self.flying: list[InFlightAttempt] = []
        self.results: dict[bytes, FinalAttempt | NextAttempt] = {}
        #: What each firing was sent with, and the payloads that nobody is owed any more.
        self.contents: dict[str, bytes] = {}
        self.settled: dict[bytes, set[int]] = {uuid: set() for uuid in self.uuids}
        self.acknowledged: dict[bytes, list[Sent]] = {uuid: [] for uuid in self.uuids}
        self.claim()

    def claim(self) -> None:
        """Changes the owner: the same process, whose attempts go on, or another one, which knows of none."""
        self.claims += 1
        self.results.clear()
        if self.rng.random() < 0.5:
            self.flying.clear()
        owner = self.claims.to_bytes(16, "big")
        epoch = at_once(self.store.claim(0, expected_epoch=self.claims - 1, owner=owner))
        self.window = CheckedWindow(TransitionCheck(), 0, epoch, owner, orphaned=list(self.flying))

    def load(self) -> None:
        request = self.window.announce_load((self.now + self.rng.choice((5, 1_000)), b"\xff" * 16))
        if request is not None:
            page = at_once(self.store.load(0, request.after, request.up_to, self.rng.choice((1, 10))))
            self.window.loaded(request, [decoded_row(row) for row in page.rows], page.complete_to)

    def accept(self) -> None:
        rng, uuid = self.rng, self.rng.choice(self.uuids)
        if rng.random() < 0.05:
            self.window.accept(WriteOp(OpKind.DELETE, uuid, "n"))
            return
        self.numbers += 1
        timer = Timer("n", uuid.hex()[:4], 0, "http://h/", 0, 0, payload=msgspec.Raw(b"%d" % self.numbers))
        timer.timeout_us = _TIMEOUT_US
        delay = rng.choice((0, 3, 10))
        wanted = Debounce(delay, delay + rng.choice((0, 5, 20)), rng.choice(self.collects))
        known = self.keys[uuid]
        key = CreateKey(f"k{self.numbers}", "b") if rng.random() < 0.5 else None
        if known and rng.random() < 0.1:
            key = rng.choice(known)
        op = WriteOp(
            OpKind.CREATE, uuid, "n", timer=timer, condition=Condition(OnConflict.DEBOUNCE, key, False, wanted)
        )
        self.window.accept(op)

    def fire(self) -> None:
        row = self.window.due(self.now)
        if row is None:
            return
        attempt = self.window.dispatch(row)
        attempt.fired_at = self.now
        self.flying.append(attempt)
        timer = row.timer
        assert self.contents.setdefault(timer.firing, bytes(timer.payload)) == bytes(timer.payload), (
            "one name, two contents"
        )
        assert timer.debounced is not None
        assert timer.attempts or row.key[0] <= timer.debounced.latest_at

    def answered(self) -> None:
        if not self.flying:
            return
        attempt = self.rng.choice(self.flying)
        self.flying.remove(attempt)
        timer = msgspec.structs.replace(attempt.row.timer, attempts=attempt.number)
        result: FinalAttempt | NextAttempt = NextAttempt(timer, self.now + 2)
        outcome = self.rng.choice(("done", "done", "failed", "retried"))
        if outcome != "retried":
            timer.status = Status.COMPLETED if outcome == "done" else Status.FAILED
            result = FinalAttempt(timer)
        if outcome == "done":
            sent = json.loads(bytes(timer.payload))
            self.settled[attempt.row.key[1]].update(sent if isinstance(sent, list) else [sent])
        if not attempt.stale:
            self.results[attempt.row.generation] = result
        self.window.answered(attempt, result, self.now)

    def unsent(self) -> None:
        if self.flying and self.rng.random() < 0.3:
            attempt = self.flying.pop(self.rng.randrange(len(self.flying)))
            self.window.not_sent(attempt)

    def tick(self) -> None:
        self.now += self.rng.choice((1, 1, 4))

    # ------------------------------------------------------------------ batches

    def commit(self) -> None:
        """Commits a batch, which may be lost, and whose answer may be lost."""
        rng, window = self.rng, self.window
        rows_max = rng.choice((1, 2, 100))
        uuids = window.to_fetch(rows_max, rows_max)
        fetched = at_once(self.store.fetch(0, uuids))
        before = copy.deepcopy((self.live, self.keys))
        for uuid, entry in window.finished.items():
            self.end(uuid, failed=entry.timer.status is Status.FAILED)
        batch = Assembly(
            window, now_us=self.now, boot_us=self.now, history_rule=lambda _: (self.mode, 1_000),
            failure_retention_us=0, fetched={uuid: fetched.get(uuid) for uuid in uuids},
        ).batch(rows_max=rows_max, bytes_max=100_000, exact_after_us=0, finished_max=100)  # fmt: skip
        acknowledged = self.checked(batch)
        if rng.random() < 0.1:
            self.live, self.keys = before
            self.claim()
            return
        assert at_once(self.store.apply([batch.store])) == [Applied.DURABLE]
        for uuid, sent in acknowledged:
            self.acknowledged[uuid].append(sent)
        if rng.random() < 0.1:
            self.claim()
            return
        window.committed(batch, self.now)

    def end(self, uuid: bytes, *, failed: bool) -> None:
        window = self.live.pop(uuid, None)
        if failed and window is not None:
            self.settled[uuid].update(window.payloads())

    def checked(self, batch: Batch) -> list[tuple[bytes, Sent]]:
        """Compares each answer with the reference's; returns the creates that are written if the batch is."""
        written = []
        for op, answer in zip(batch.ops, batch.answers, strict=True):
            if op.kind is OpKind.CREATE:
                sent = self.expect(op, answer)
                written += [(op.uuid, sent)] if sent is not None else []
            elif op.kind is OpKind.DELETE and answer is None:
                self.end(op.uuid, failed=True)
            elif op.kind is OpKind.RETRY and isinstance(answer, Row):
                self.live[op.uuid].row, self.live[op.uuid].retried = op.generation, True
        return written

    def expect(self, op: WriteOp, answer: object) -> Sent | None:
        """Applies a create to the reference, and compares the answer."""
        assert op.condition is not None
        assert op.timer is not None
        wanted, uuid, live = op.condition.debounce, op.uuid, self.live.get(op.uuid)
        assert wanted is not None
        if op.condition.key in self.keys[uuid] and op.condition.key is not None:
            assert isinstance(answer, ExistingRow)
            assert answer.outcome is Outcome.REPLAYED
            return None
        sent = Sent(self.now, wanted, int(bytes(op.timer.payload)))
        window = Window([sent])
        if live is not None:
            flying = [each for each in self.flying if each.row.generation == live.row]
            result = self.results.get(live.row)
            if not (live.retried or flying or result is not None):
                window = Window([*live.creates, sent], live.taken, live.earliest)
            elif wanted.collect and not (isinstance(result, FinalAttempt) and result.timer.status is Status.COMPLETED):
                ends = [each.fired_at + _TIMEOUT_US for each in flying]
                window = Window([sent], live.payloads(), max(ends, default=0))
        if wanted.collect and len(window.payloads()) > wanted.collect:
            assert isinstance(answer, CollectionFull)
            return None
        window.row = op.generation
        self.live[uuid] = window
        if op.condition.key is not None:
            self.keys[uuid] = (*self.keys[uuid], op.condition.key)
        self.keys[uuid] = self.keys[uuid][-max(16, wanted.collect) :]
        assert type(answer) is Row
        state = answer.timer.debounced
        assert state is not None
        shown = (
            answer.key[0],
            json.loads(bytes(answer.timer.payload)),
            answer.timer.keys,
            state.creates,
            state.first_at,
        )
        assert shown == (window.due(), window.payload(), self.keys[uuid], len(window.creates), window.creates[0].at)
        assert state.latest_at == window.latest()
        return sent

    # ------------------------------------------------------------------ the whole run

    def run(self) -> None:
        steps = (
            (self.accept,) * 4 + (self.commit,) * 4 + (self.fire,) * 3 + (self.answered,) * 2
            + (self.tick, self.tick, self.load, self.load, self.unsent)
        )  # fmt: skip
        for _ in range(150):
            self.rng.choice(steps)()
        self.finish()

    def finish(self) -> None:
        """Lets everything fire. What was acknowledged has then been delivered, or was in a timer that failed or was deleted;
        without `collect`, that is the latest payload of all."""
        for _ in range(200):
            for step in (self.load, self.commit, self.fire, self.answered, self.tick):
                step()
        while self.live:
            for step in (self.load, self.commit, self.fire, self.answered, self.tick):
                step()
        assert not any(decode_record(row.record) for row in self.store._shards[0].live.values())
        for uuid, creates in self.acknowledged.items():
            owed = creates if 0 not in self.collects else creates[-1:]
            assert {each.payload for each in owed} <= self.settled[uuid]


@pytest.mark.parametrize("first", range(0, 1_000, _CHUNK))
def test_debounced_creates_are_those_of_a_slow_reference(first: int) -> None:
    for seed in range(first, first + _CHUNK):
        try:
            Run(seed).run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
