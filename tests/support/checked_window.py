"""A window that checks what becomes of its timers against the engine's table of transitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from tests.support.transitions import TRANSITIONS, TimerState, WindowEvent
from tocsin.model.errors import TocsinError
from tocsin.ports.store import FireKey
from tocsin.timers.engine import shard
from tocsin.timers.engine.finished import Finished
from tocsin.timers.engine.parts import Creates, Part
from tocsin.timers.engine.rows import (
    Batch,
    Conclusion,
    FinalAttempt,
    InFlightAttempt,
    LoadRequest,
    OpKind,
    Row,
    WriteOp,
)
from tocsin.timers.engine.window import Window

Transition = tuple[TimerState, WindowEvent, TimerState]
#: All that the table permits.
PERMITTED: frozenset[Transition] = frozenset(
    (state, event, after)
    for state, events in TRANSITIONS.items()
    for event, states in events.items()
    for after in states
)
#: The states in which a write is accepted and not yet decided.
_WRITE_PENDING = (TimerState.SUPERSEDED, TimerState.SUPERSEDED_RESULT)


class ForbiddenTransition(AssertionError):
    """The table does not permit it."""


def _refuse(kind: str, detail: str) -> None:
    raise ForbiddenTransition(detail)


class TransitionCheck:
    """Reports what the table does not permit to `broken`, as a kind and its detail, and has all else that happened."""

    def __init__(self, broken: Callable[[str, str], None] = _refuse) -> None:
        self.reached: set[Transition] = set()
        self.broken = broken

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Meanwhile, the engine's windows are checked."""
        with patch.object(shard, "Window", partial(CheckedWindow, self)):
            yield


class CheckedWindow(Window):
    """Each call that may move timers is an event of those that it names; afterwards, their states are compared with the
    former ones. `check_all` finds timers that have moved without one."""

    def __init__(self, check: TransitionCheck, *args: Any, **options: Any) -> None:
        self._check = check
        self._states: dict[bytes, TimerState] = {}
        self._in_event = False
        super().__init__(*args, **options)

    def check_all(self) -> None:
        """Reports timers that are not in the state in which their last event has left them."""
        parts = (self._states, self.rows, self.in_flight, self.awaiting_write, self.retrying, self.finished)
        for uuid in {uuid for part in parts for uuid in part}:
            before, after = self._states.get(uuid, TimerState.ABSENT), state_of(self, uuid)
            if before is not after:
                self._check.broken("TRANSITION", f"{uuid.hex()[:6]} {before.name} without an event {after.name}")

    @contextmanager
    def _event(self, event: WindowEvent, uuids: Iterable[bytes]) -> Iterator[None]:
        with self._events(dict.fromkeys(uuids, event)):
            yield

    @contextmanager
    def _events(self, events: Mapping[bytes, WindowEvent]) -> Iterator[None]:
        if self._in_event:
            # It is part of another one.
            yield
            return
        self._in_event = True
        try:
            yield
        finally:
            self._in_event = False
        for uuid, event in events.items():
            self._moved(uuid, event)

    def _moved(self, uuid: bytes, event: WindowEvent) -> None:
        before, after = self._states.get(uuid, TimerState.ABSENT), state_of(self, uuid)
        if after is TimerState.ABSENT:
            self._states.pop(uuid, None)
        else:
            self._states[uuid] = after
        what = f"{uuid.hex()[:6]} {before.name} {event.name} {after.name}"
        if (uuid in self._client_ops and after is TimerState.IN_FLIGHT) or (
            uuid not in self._client_ops and after in _WRITE_PENDING
        ):
            self._check.broken("TRANSITION", f"{what}, writes pending: {self._client_ops.get(uuid, 0)}")
        if before is after:
            return
        if (before, event, after) in PERMITTED:
            self._check.reached.add((before, event, after))
        else:
            self._check.broken("TRANSITION", what)

    # ------------------------------------------------------------------ events

    def accept(self, op: WriteOp) -> None:
        event = WindowEvent.WRITE_ACCEPTED
        if op.kind is OpKind.SUSPEND or op.kind is OpKind.MOVE_ON:
            event = WindowEvent.SUSPEND
        with self._event(event, [op.uuid]):
            super().accept(op)

    def accept_creates(self, creates: Creates, deadline_us: int | None) -> None:
        with self._event(WindowEvent.WRITE_ACCEPTED, creates.uuids):
            super().accept_creates(creates, deadline_us)

    def hand_over(self, margin_us: int) -> None:
        with self._event(WindowEvent.WRITE_ACCEPTED, list(self.in_flight)):
            super().hand_over(margin_us)

    def due(self, now_us: int) -> Row | None:
        # What it defers by itself is about to be suspended.
        with self._events({}):
            return super().due(now_us)

    def defer(self) -> None:
        with self._event(WindowEvent.DEFER, [self.waiting._order[0][1]]):
            super().defer()

    def put_back(self, row: Row) -> None:
        with self._event(WindowEvent.PUT_BACK, [row.key[1]]):
            super().put_back(row)

    def dispatch(self, row: Row) -> InFlightAttempt:
        with self._event(WindowEvent.DISPATCH, [row.key[1]]):
            return super().dispatch(row)

    def end_unfired(self, row: Row, conclusion: FinalAttempt, boot_us: int) -> bool:
        with self._event(WindowEvent.EXPIRE, [row.key[1]]):
            return super().end_unfired(row, conclusion, boot_us)

    def not_sent(self, attempt: InFlightAttempt, suspended: str | None = None) -> bool:
        event = WindowEvent.NOT_SENT if suspended is None else WindowEvent.ADDRESS_REFUSED
        with self._event(event, [attempt.row.key[1]]):
            return super().not_sent(attempt, suspended)

    def answered(self, attempt: InFlightAttempt, conclusion: Conclusion, boot_us: int) -> bool:
        final = isinstance(conclusion, FinalAttempt) and attempt.row.timer.schedule is None
        with self._event(WindowEvent.FINAL_ATTEMPT if final else WindowEvent.NEXT_ATTEMPT, [attempt.row.key[1]]):
            return super().answered(attempt, conclusion, boot_us)

    def refuse(self, op: WriteOp | Part, error: TocsinError, boot_us: int) -> None:
        with self._event(WindowEvent.WRITE_REFUSED, op.uuids if isinstance(op, Part) else [op.uuid]):
            super().refuse(op, error, boot_us)

    def suspend_retrying(self, row: Row, reason: str) -> None:
        with self._event(WindowEvent.RETRY_UNUSABLE, [row.key[1]]):
            super().suspend_retrying(row, reason)

    def delete_refused(self, entry: Finished, boot_us: int) -> None:
        with self._event(WindowEvent.DELETE_REFUSED, [entry.row.key[1]]):
            super().delete_refused(entry, boot_us)

    def try_refused_again(self, until_us: int) -> bool:
        deletes = [entry.row.key[1] for _, entry in self._refused if isinstance(entry, Finished)]
        with self._event(WindowEvent.DELETE_AGAIN, deletes):
            return super().try_refused_again(until_us)

    def loaded(self, request: LoadRequest, rows: Sequence[Row], complete_to: FireKey) -> bool:
        events = dict.fromkeys(self._changed_since_load, WindowEvent.LOAD)
        for row in rows:
            if row.key[1] in self._changed_since_load:
                # Superseded by what was committed meanwhile, whatever this row's attempt does.
                continue
            attempts = self.in_flight.get(row.key[1], ())
            begun = any(attempt.row.identity == row.identity for attempt in attempts)
            events[row.key[1]] = WindowEvent.LOAD_IN_FLIGHT if begun else WindowEvent.LOAD
        with self._events(events):
            return super().loaded(request, rows, complete_to)

    def truncate(self, keep: int) -> None:
        with self._event(WindowEvent.TRUNCATE, list(self.rows)):
            super().truncate(keep)

    def committed(self, batch: Batch, boot_us: int) -> None:
        events = {op.uuid: WindowEvent.COMMIT_UNCHANGED for op in batch.ops}
        events |= {entry.row.key[1]: WindowEvent.COMMIT_AWAY for entry in batch.finished}
        # The attempts of these end here, although schedules' rows go on with them.
        handed_over = {op.generation for op in batch.ops if op.kind is OpKind.HAND_OVER}
        for uuid, row in batch.final.items():
            if row is not None and row.generation not in handed_over and self.has_begun(row):
                events[uuid] = WindowEvent.COMMIT_UNCHANGED
            elif row is None or uuid in batch.suspended or row.key > self.horizon:
                events[uuid] = WindowEvent.COMMIT_AWAY
            else:
                events[uuid] = WindowEvent.COMMIT
        with self._events(events):
            super().committed(batch, boot_us)


def state_of(window: Window, uuid: bytes) -> TimerState:
    """The state of a timer, by the newest of its rows."""
    known: list[tuple[bytes, TimerState]] = []
    for attempt in window.in_flight.get(uuid, ()):
        if not attempt.stale:
            state = TimerState.SUPERSEDED if attempt.superseded else TimerState.IN_FLIGHT
            known.append((attempt.row.generation, state))
    if (awaiting := window.awaiting_write.get(uuid)) is not None:
        state = TimerState.SUPERSEDED_RESULT if uuid in window.superseded else TimerState.AWAITING_WRITE
        known.append((awaiting.generation, state))
    if (retried := window.retrying.get(uuid)) is not None:
        known.append((retried.generation, TimerState.RETRYING))
    if (finished := window.finished.get(uuid)) is not None:
        known.append((finished.row.generation, TimerState.FINISHED))
    newest, state = max(known, default=(b"", TimerState.ABSENT), key=lambda each: each[0])
    row = window.rows.get(uuid)
    if row is None or row.generation < newest:
        return state
    if known:
        return TimerState.EARLY
    if window._suspending.get(uuid) == row.generation:
        return TimerState.SUSPENDING
    return TimerState.WAITING if row.key in window.waiting._order else TimerState.DEFERRED
