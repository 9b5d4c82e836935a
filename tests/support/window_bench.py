"""A window that owns its shard in a memory store, for tests of single transitions."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from tests.support.checked_window import CheckedWindow, TransitionCheck
from tests.support.completions import Noted
from tests.support.parts import NotedCreates
from tocsin.model.calendar import NO_CALENDARS
from tocsin.model.namespace import HistoryMode
from tocsin.model.timer import Status, Timer
from tocsin.ports.store import Applied
from tocsin.stores.memory import MemoryStore
from tocsin.timers.engine.assembly import Assembly, CalendarsOf
from tocsin.timers.engine.rows import Batch, FinalAttempt, InFlightAttempt, OpKind, Row, RowRoom, WriteOp, decoded_row

UUID, OTHER = b"u" * 16, b"v" * 16
OWNER = b"o" * 16
FAR = (10_000, b"\xff" * 16)


def at_once(call: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine of the memory store, which never waits."""
    try:
        call.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the memory store waited")


def completed(timer: Timer) -> Timer:
    return msgspec.structs.replace(timer, status=Status.COMPLETED)


class Bench:
    """A window that owns its shard in a memory store."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.row_bytes_max, self.row_reserve_bytes = sys.maxsize, 0
        self.transitions = TransitionCheck()
        self.window: CheckedWindow
        self.claim(0)
        self.answers: list[Any] = []
        #: The wall clock, in microseconds.
        self.now = 0
        self.calendars_of: CalendarsOf = lambda _: NO_CALENDARS
        self.load()

    def claim(self, expected_epoch: int, orphaned: Sequence[InFlightAttempt] = ()) -> None:
        """An empty window under a new claim."""
        epoch = at_once(self.store.claim(0, expected_epoch=expected_epoch, owner=OWNER))
        self.window = CheckedWindow(self.transitions, 0, epoch, OWNER, orphaned=orphaned)

    def load(self) -> None:
        request = self.window.announce_load((self.window.horizon[0] + 1 if self.window.rows else 10_000, FAR[1]))
        if request is not None:
            page = at_once(self.store.load(0, request.after, request.up_to, 100))
            self.window.loaded(request, [decoded_row(row) for row in page.rows], page.complete_to)

    @property
    def answered(self) -> Noted:
        """The completion of an operation, whose answer is noted."""
        return Noted(self.answers.append)

    def create(self, at: int, uuid: bytes = UUID) -> WriteOp:
        op = WriteOp(OpKind.CREATE, uuid, "n", timer=Timer("n", "t", at, "http://h/", 0, 0), completion=self.answered)
        self.window.accept(op)
        return op

    def create_together(self, *creates: tuple[int, bytes], deadline_us: int | None = None) -> NotedCreates:
        """Plain creates of one request, by their instants and uuids; their answers are noted."""
        sent = [(uuid, Timer("n", "t", at, "http://h/", 0, 0), self.answers.append) for at, uuid in creates]
        together = NotedCreates(*sent)
        self.window.accept_creates(together, deadline_us)
        return together

    def created(self, at: int, uuid: bytes = UUID) -> None:
        """A durable timer."""
        self.create(at, uuid)
        self.commit(self.assemble())

    def history_rule(self, _: str) -> tuple[HistoryMode, int]:
        return HistoryMode.ALL, 1_000

    def assemble(self, *, rows_max: int = 100, finished_max: int = 100, exact_after: int = 1_000) -> Batch:
        uuids = self.window.to_fetch(100, 100)
        found = at_once(self.store.fetch(0, uuids))
        assembly = Assembly(
            self.window,
            now_us=self.now,
            boot_us=0,
            history_rule=self.history_rule,
            failure_retention_us=2_000,
            fetched={uuid: found.get(uuid) for uuid in uuids},
            room=RowRoom(self.row_bytes_max, self.row_reserve_bytes),
        )
        assembly.calendars_of = self.calendars_of
        return assembly.batch(
            rows_max=rows_max, bytes_max=100_000, finished_max=finished_max, exact_after_us=exact_after
        )

    def apply(self, batch: Batch) -> None:
        assert at_once(self.store.apply([batch.store])) == [Applied.DURABLE]

    def commit(self, batch: Batch) -> None:
        self.apply(batch)
        self.window.committed(batch, 0)
        batch.answer()

    def fire(self, now: int = 100) -> Row:
        row = self.window.due(now)
        assert row is not None
        self.attempt = self.window.dispatch(row)
        return row

    def finish(self) -> bool:
        return self.window.answered(self.attempt, FinalAttempt(completed(self.attempt.row.timer)), 0)

    def stored(self) -> dict[bytes, Any]:
        return self.store._shards[0].live
