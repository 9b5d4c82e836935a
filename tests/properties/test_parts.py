"""Creates have the same effect in a part as one by one: the same rows, runs, answers and window, whatever memory has of their
timers and whatever else waits for the batch."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import msgspec

from tests.support.cases import each
from tests.support.completions import Noted
from tests.support.parts import NotedCreates
from tests.support.window_bench import Bench, completed
from tocsin.model.condition import Condition
from tocsin.model.retry import RetryPolicy
from tocsin.model.timer import Changes, CreateKey, LoggedAttempt, Timer
from tocsin.timers.engine.parts import JOINED_WITHIN_US
from tocsin.timers.engine.rows import FinalAttempt, InFlightAttempt, NextAttempt, OpKind, Row, WriteOp

_UUIDS = [bytes([number]) * 16 for number in range(1, 6)]
_STEPS = 60
#: Creates with deadlines that differ by as much are no part.
_FAR_US = 2 * JOINED_WITHIN_US


class Side(Bench):
    """One of two benches to which the same happens."""

    def __init__(self, *, in_parts: bool) -> None:
        super().__init__()
        self.in_parts = in_parts
        self.answered_as: dict[int, object] = {}
        self.attempts: list[InFlightAttempt] = []

    def note(self, number: int, answer: Any) -> None:
        """What a write was answered with."""
        shown = (answer.key, answer.generation, answer.timer) if isinstance(answer, Row) else str(answer)
        self.answered_as[number] = shown

    def send(self, number: int, creates: list[tuple[bytes, Timer]], deadline_us: int | None) -> None:
        """Sends copies of the creates."""
        copies = [(uuid, msgspec.structs.replace(timer)) for uuid, timer in creates]
        notes = [partial(self.note, number + each) for each in range(len(creates))]
        if self.in_parts:
            together = [(uuid, timer, note) for (uuid, timer), note in zip(copies, notes, strict=True)]
            self.window.accept_creates(NotedCreates(*together), deadline_us)
            return
        for (uuid, timer), note in zip(copies, notes, strict=True):
            op = WriteOp(OpKind.CREATE, uuid, "n", timer=timer, deadline_us=deadline_us, completion=Noted(note))
            if timer.keys:
                op.condition, timer.keys = Condition(key=timer.keys[0], first_try=True), ()
            self.window.accept(op)

    def change(self, number: int, kind: OpKind, uuid: bytes, changes: Changes | None) -> None:
        """Sends an update or a delete."""
        note = partial(self.note, number)
        self.window.accept(WriteOp(kind, uuid, "n", changes=changes, completion=Noted(note)))

    def begin(self, now: int) -> None:
        """Begins all attempts that are due."""
        while (row := self.window.due(now)) is not None:
            self.attempts.append(self.window.dispatch(row))

    def end(self, index: int, retry_at: int | None, now: int) -> None:
        """Ends an attempt, for good or with another one to come."""
        if not self.attempts:
            return
        attempt = self.attempts.pop(index % len(self.attempts))
        timer = attempt.row.timer
        log = (*timer.attempt_log, LoggedAttempt(now, 1, 200))
        timer = msgspec.structs.replace(timer, attempts=timer.attempts + 1, attempt_log=log)
        if retry_at is None:
            self.window.answered(attempt, FinalAttempt(completed(timer)), now)
        else:
            self.window.answered(attempt, NextAttempt(timer, retry_at), now)

    def write(self, rows_max: int, *, fails: bool, loads_first: bool) -> None:
        """Assembles a batch, and writes it unless it fails. A load may come between its writing and its confirmation."""
        batch = self.assemble(rows_max=rows_max)
        if fails:
            self.window.abandon(batch)
            return
        self.apply(batch)
        if loads_first:
            self.load()
            self.begin(self.window.horizon[0])
        self.window.committed(batch, 0)
        batch.answer()

    def state(self) -> dict[str, Any]:
        """All that can be seen of it."""
        window, shard = self.window, self.store._shards[0]
        places = (window.rows, window.finished, window.awaiting_write, window.superseded, window.retrying)
        return {
            "live": shard.live,
            "history": shard.history,
            "runs": shard.runs,
            "answers": self.answered_as,
            "in flight": [
                (attempt.row.generation, attempt.superseded, attempt.stale)
                for attempts in window.in_flight.values()
                for attempt in attempts
            ],
            "window": [sorted(place) for place in places],
            "waiting": [(row.key, row.generation, row.size) for row in window.rows.values()],
            "writes": dict(window.queue.superseding),
            "bytes": window.waiting.bytes,
            "horizon": window.horizon,
        }


def _creates(rng: random.Random, number: int, now: int) -> list[tuple[bytes, Timer]]:
    """Some timers, perhaps two with one id."""
    made = []
    for place in range(rng.randint(1, 5)):
        at = now + rng.choice((-2, 0, 3, 10, 50, 20_000))
        text = "x" * rng.choice((1, 1, 1, 40))
        timer = Timer(
            "n", "t", at, "http://h/", now, now, payload=msgspec.Raw(b'"%d%s"' % (number + place, text.encode()))
        )
        timer.retry = RetryPolicy() if rng.random() < 0.3 else None
        if rng.random() < 0.3:
            # Few keys and contents, so that some are repeated, and some conflict.
            timer.keys = (CreateKey(f"key {rng.randrange(4)}", f"content {rng.randrange(2)}"),)
        made.append((rng.choice(_UUIDS), timer))
    return made


def _steps(rng: random.Random) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """What happens, as methods with their arguments."""
    steps: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    number = 0
    for now in range(_STEPS):
        choice = rng.random()
        if choice < 0.4:
            creates = _creates(rng, number, now)
            # A deadline in the past of the bench's clock, which stands still.
            steps.append(("send", (number, creates, rng.choice((None, None, None, _FAR_US, -_FAR_US))), {}))
            number += len(creates)
        elif choice < 0.5:
            kind = rng.choice((OpKind.UPDATE, OpKind.DELETE))
            changes = Changes(execute_at=now + rng.randint(0, 30)) if kind is OpKind.UPDATE else None
            steps.append(("change", (number, kind, rng.choice(_UUIDS), changes), {}))
            number += 1
        elif choice < 0.65:
            steps.append(("begin", (now,), {}))
        elif choice < 0.8:
            retry_at = rng.choice((None, now, now + 5, 20_000))
            steps.append(("end", (rng.randrange(10), retry_at, now), {}))
        else:
            options = {"fails": rng.random() < 0.2, "loads_first": rng.random() < 0.3}
            steps.append(("write", (rng.choice((2, 4, 100)),), options))
    return [*steps, ("write", (100,), {"fails": False, "loads_first": False})]


@each("seed", range(150))
def test_a_part_has_the_effect_of_its_operations(seed: int) -> None:
    rng = random.Random(f"parts/{seed}")
    packed, apart = Side(in_parts=True), Side(in_parts=False)
    room = rng.choice((10_000, 10_000, 180))
    for side in (packed, apart):
        side.row_bytes_max = room
    for method, arguments, options in _steps(rng):
        for side in (packed, apart):
            getattr(side, method)(*arguments, **options)
        assert packed.state() == apart.state(), (method, arguments, options)
