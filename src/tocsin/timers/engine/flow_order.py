"""The order of the ordered keys of flows in one shard, at its owner (ADR 105).

All timers of such a key are in one shard. One of them has the key's turn, from when it leaves the key for its destination
until it has ended, retries included. When the turn is free, the timer with the smallest key (instant, uuid) of those that
are due gets it. That one may be suspended in the store: each line knows the smallest key that may be, and nothing above
that begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush

from tocsin.model.errors import RecordUndecodable
from tocsin.model.flow import FlowRules
from tocsin.model.timer import Timer, decode_record
from tocsin.ports.store import KEY_MAX, FireKey, StoredRow
from tocsin.timers.engine.destination import Queue
from tocsin.timers.engine.flow_states import KeyState
from tocsin.timers.engine.rows import FLOW_REASON, TURN_REASON, Batch, OpKind, Row, WriteOp, shows_attempt
from tocsin.timers.engine.window import Window

#: For what due timers are suspended that come before later ones of their key. One whose address is refused is not among
#: them: it would stop its key until somebody changes the settings.
_WAITING = (FLOW_REASON, "destination:", "namespace:")
_NONE: frozenset[str] = frozenset()


class Line:
    """A key: who has its turn, and what of it is suspended.

    Nothing that is suspended has a key below `first`. `left` is the first that the present round has left suspended, `recent`
    the smallest key suspended since the round began. While `resuming` are about to return, `first` follows them."""

    __slots__ = ("first", "left", "name", "recent", "resuming", "stored", "turn", "waits")

    def __init__(self, name: tuple[str, str]) -> None:
        #: Namespace and key.
        self.name = name
        self.turn = b""
        #: Whether the timer that has the turn is suspended, because there was no room in memory.
        self.stored = False
        #: The key, if its first timer here waits for the turn, or for what is suspended.
        self.waits: KeyState | None = None
        self.first = self.left = self.recent = KEY_MAX
        self.resuming = 0


class ShardOrder:
    """The lines of a shard under one claim.

    Nothing begins in order before the timer that has the turn would be known: before all that was due at the claim has been
    loaded and dispatched, and before one round over all suspended rows has been completed since the claim, and since the
    namespace's rules are ordered."""

    def __init__(self, flows: Callable[[], Mapping[str, FlowRules]]) -> None:
        self._flows = flows
        self.lines: dict[tuple[str, str], Line] = {}
        #: Keys that waited for their order, and may be served now.
        self.ready: dict[KeyState, None] = {}
        #: Whether another round over the suspended rows is needed.
        self.wants_round = False
        # Whether all that was due at the claim has been dispatched.
        self._caught_up = False
        # Keys that wait for that and for a round, and until all that is due has been dispatched.
        self._unknown: dict[KeyState, None] = {}
        self._overtaken: dict[KeyState, None] = {}
        # Lines by the timer that has the turn, and by the timer that `first` belongs to.
        self._turns: dict[bytes, Line] = {}
        self._firsts: dict[bytes, Line] = {}
        # What is about to be resumed by a round.
        self._resuming: dict[bytes, tuple[Line, FireKey]] = {}
        # Timers between two attempts: generation and namespace, by uuid; and their keys.
        self._retries: dict[bytes, tuple[bytes, str]] = {}
        self._retry_keys: list[FireKey] = []
        # Those that are about to be resumed.
        self._returning: set[bytes] = set()
        # The rules for which the last round, and the present one, have noted what is suspended.
        self._known: dict[str, frozenset[str]] = {}
        self._noted: dict[str, frozenset[str]] | None = None
        # While a page is read: timers written since, which it may show as they were.
        self._written: set[bytes] | None = None

    @property
    def active(self) -> bool:
        """Whether anything of it depends on what is written."""
        waiting = self._unknown or self._overtaken
        return bool(self.lines or self._retries or waiting) or self._written is not None or not self._caught_up

    def is_ordered(self, timer: Timer) -> bool:
        """Whether the timer's key is ordered."""
        rules = self._flows().get(timer.namespace)
        return rules is not None and rules.is_ordered(timer.flow_key)

    def _line(self, namespace: str, key: str) -> Line:
        line = self.lines.get((namespace, key))
        if line is None:
            line = self.lines[namespace, key] = Line((namespace, key))
        return line

    def _drop_idle(self, line: Line) -> None:
        """Forgets the line if it is as good as a new one."""
        stored = min(line.first, line.left, line.recent)
        if not line.turn and not line.resuming and stored == KEY_MAX:
            self.lines.pop(line.name, None)

    # ------------------------------------------------------------------ turns

    def has_turn(self, row: Row) -> bool:
        """Whether this timer has its key's turn."""
        return row.key[1] in self._turns

    def is_behind_stored(self, row: Row) -> bool:
        """Whether an earlier timer of its key may be suspended: it would only wait for that one."""
        line = self.lines.get((row.timer.namespace, row.timer.flow_key))
        return line is not None and row.key > line.first and line.turn != row.key[1]

    def lets(self, row: Row, window: Window, state: KeyState) -> bool:
        """Whether the first of a key's timers that wait here may begin, as far as the order goes. If not, the key becomes
        `ready` when that may have changed."""
        namespace, uuid = row.timer.namespace, row.key[1]
        self.recall(row)
        line = self.lines.get((namespace, row.timer.flow_key))
        self._unknown.pop(state, None)
        self._overtaken.pop(state, None)
        if line is not None:
            line.waits = state if line.turn and line.turn != uuid else None
            if line.turn:
                return line.turn == uuid
        rules = self._flows().get(namespace)
        known = rules is None or rules.ordered <= self._known.get(namespace, _NONE)
        if not known or not self._caught_up:
            self.wants_round = self.wants_round or not known
            self._unknown[state] = None
            return False
        # What is due and not dispatched yet may be of this key.
        undispatched = window.next_key()
        if undispatched is not None and undispatched < row.key:
            self._overtaken[state] = None
            return False
        if line is None or row.key <= line.first:
            return True
        line.waits = state
        if line.first == line.recent:
            # It may have been resumed since by the round that was under way.
            self.wants_round = True
        return False

    def holds_back(self, state: KeyState) -> bool:
        """Whether the key waits for its order."""
        line = self.lines.get((state.rule.name.namespace, state.key))
        return (line is not None and line.waits is state) or state in self._unknown or state in self._overtaken

    def recall(self, row: Row) -> None:
        """A due timer that has begun before has the turn: a former owner had given it, or its key was not ordered then."""
        if shows_attempt(row.timer, row.key[0]):
            line = self._line(row.timer.namespace, row.timer.flow_key)
            if not line.turn:
                self._give_turn(line, row.key[1])

    def all_dispatched(self, window: Window, now_us: int) -> None:
        """All timers that are in the window and due have been dispatched."""
        if self._overtaken:
            self.ready |= self._overtaken
            self._overtaken = {}
        if not self._caught_up and window.horizon[0] >= now_us:
            self._caught_up = True
            self.ready |= self._unknown
            self._unknown = {}

    def _serve(self, line: Line) -> None:
        if line.waits is not None:
            self.ready[line.waits] = None
            line.waits = None

    def give_turn(self, row: Row) -> None:
        """The timer begins, or waits for its destination: nothing else of its key begins until it has ended."""
        self._give_turn(self._line(row.timer.namespace, row.timer.flow_key), row.key[1])

    def is_before(self, row: Row, other: Row) -> bool:
        """Whether a timer comes before another one of its key. One that has begun without having the turn comes next: an
        earlier owner had given it the turn, while the address of the one that has it was refused."""
        if self.has_turn(row) or self.has_turn(other):
            return self.has_turn(row)
        begun, other_begun = [shows_attempt(each.timer, each.key[0]) for each in (row, other)]
        return row.key < other.key if begun == other_begun else begun

    def _give_turn(self, line: Line, uuid: bytes) -> None:
        if line.turn != uuid:
            self._turns.pop(line.turn, None)
            line.turn, line.stored = uuid, False
            self._turns[uuid] = line

    def end_turn(self, uuid: bytes) -> None:
        """The timer has ended, or waits for another instant that it was given."""
        line = self._turns.pop(uuid, None)
        if line is not None:
            line.turn, line.stored = b"", False
            self._serve(line)
            self._drop_idle(line)

    def arrange(self, queue: Queue) -> bool:
        """Moves the last row of a key's queue to its place among the others; returns whether it is the first now."""
        rows = queue.rows
        row, place = rows[-1], len(rows) - 1
        if self.has_turn(row):
            place = 0
        else:
            while place and self.is_before(row, rows[place - 1]):
                place -= 1
        if place < len(rows) - 1:
            rows.pop()
            rows.insert(place, row)
        return place == 0

    # ------------------------------------------------------------------ what is suspended

    def suspended(self, row: Row, reason: str) -> None:
        """The row is about to be suspended."""
        if reason.startswith(_WAITING) and self.is_ordered(row.timer):
            line = self._line(row.timer.namespace, row.timer.flow_key)
            if line.turn == row.key[1]:
                line.stored = True
                return
            line.recent = min(line.recent, row.key)
            self._set_first(line, min(line.first, row.key))

    def _set_first(self, line: Line, key: FireKey) -> None:
        if line.first != key:
            if line.first < key:
                self._serve(line)
            if self._firsts.get(line.first[1]) is line:
                del self._firsts[line.first[1]]
            line.first = key
            if key != KEY_MAX:
                self._firsts[key[1]] = line

    def waits_for_stored(self, namespace: str, key: str) -> bool:
        """Whether timers of the key are suspended that come before those in memory."""
        line = self.lines.get((namespace, key))
        return line is not None and (line.stored if line.turn else line.first != KEY_MAX)

    def page_requested(self) -> None:
        """A page of suspended rows is about to be read."""
        self._written = set()

    def page_taken(self) -> None:
        """All rows of the page have been found."""
        self._written = None

    def round_begins(self, *, suspending: bool) -> None:
        """A round over all suspended rows begins. `suspending`: it may miss some whose suspension is not durable yet."""
        self.wants_round = False
        self._noted = {name: rules.ordered for name, rules in self._flows().items() if rules.ordered}
        for line in self.lines.values():
            line.left = KEY_MAX
            if not suspending:
                line.recent = KEY_MAX

    def found(self, row: StoredRow) -> Line | None:
        """The round has found this row. The line in which it waits; None if it waits in none."""
        # Schedules are stored under a longer name.
        reason, namespace = row.suspended or "", row.namespace.partition("/")[0]
        if self._written is not None and row.uuid in self._written:
            return None
        if reason.startswith(TURN_REASON):
            if row.uuid not in self._returning:
                self._await_retry(row)
            return None
        rules = self._flows().get(namespace)
        if rules is None or not rules.ordered or not reason.startswith(_WAITING):
            return None
        try:
            timer = decode_record(row.record)
        except RecordUndecodable:
            return None
        if not rules.is_ordered(timer.flow_key):
            return None
        line = self._line(namespace, timer.flow_key)
        if shows_attempt(timer, row.execute_at) and not line.turn:
            self._give_turn(line, row.uuid)
        if line.turn == row.uuid:
            # It is before all others, whatever it waits for.
            line.stored = True
            return None
        return line

    def is_left(self, line: Line, key: FireKey) -> bool:
        """Whether the round has left something that comes before this row, or leaves that to the next round."""
        return line.stored or line.left < key

    def leave(self, line: Line, key: FireKey) -> None:
        """The round leaves this row suspended."""
        line.left = min(line.left, key)
        self._set_first(line, min(line.first, key))

    def resume(self, line: Line, key: FireKey) -> None:
        """The round resumes this row."""
        line.resuming += 1
        self._resuming[key[1]] = (line, key)
        self._set_first(line, min(line.first, key))

    def refused(self, uuid: bytes) -> None:
        """The database refuses for now to resume this row, of which others behind it may be resumed: it stays suspended."""
        line, key = self._resuming.pop(uuid, (None, KEY_MAX))
        if line is not None:
            line.resuming -= 1
            line.recent = min(line.recent, key)
            self.wants_round = True
            self._settle(line)

    def round_over(self) -> None:
        """The round has read all suspended rows."""
        self._known, self._noted = self._noted or {}, None
        for line in list(self.lines.values()):
            self._settle(line)
            self._drop_idle(line)
        self.ready |= self._unknown
        self._unknown = {}

    def _settle(self, line: Line) -> None:
        if not line.resuming and self._noted is None:
            self._set_first(line, min(line.left, line.recent))

    # ------------------------------------------------------------------ between two attempts

    def _await_retry(self, row: StoredRow) -> None:
        namespace, _, key = (row.suspended or "").removeprefix(TURN_REASON).partition("/")
        if self._retries.get(row.uuid) != (row.generation, row.namespace):
            self._retries[row.uuid] = (row.generation, row.namespace)
            heappush(self._retry_keys, row.key)
        line = self._line(namespace, key)
        if not line.turn:
            self._give_turn(line, row.uuid)

    def next_retry_us(self) -> int | None:
        """The instant of the next attempt of a timer that is suspended between two."""
        while self._retry_keys and self._retry_keys[0][1] not in self._retries:
            heappop(self._retry_keys)
        return self._retry_keys[0][0] if self._retry_keys else None

    def due_retries(self, now_us: int, most: int) -> list[WriteOp]:
        """The operations that resume timers whose next attempt is due, at most so many."""
        ops: list[WriteOp] = []
        while len(ops) < most and (at_us := self.next_retry_us()) is not None and at_us <= now_us:
            uuid = heappop(self._retry_keys)[1]
            generation, namespace = self._retries.pop(uuid)
            self._returning.add(uuid)
            ops.append(WriteOp(OpKind.RESUME, uuid, namespace, expected=generation))
        return ops

    # ------------------------------------------------------------------ what is durable

    def committed(self, batch: Batch, window: Window) -> None:
        """The window has applied a durable batch."""
        for uuid, row in batch.final.items():
            stored = batch.upserts.get(uuid)
            self._retries.pop(uuid, None)
            self._returning.discard(uuid)
            if stored is not None and (stored.suspended or "").startswith(TURN_REASON):
                self._await_retry(stored)
            elif (line := self._turns.get(uuid)) is not None:
                if _goes_on(row, stored, window):
                    line.stored = stored is not None and stored.suspended is not None
                else:
                    self._leave_turn(line, row, stored)
        for entry in batch.finished:
            self.end_turn(entry.row.key[1])
        if self._written is not None:
            self._written.update(batch.final, (entry.row.key[1] for entry in batch.finished))
        for op in batch.ops:
            if op.kind is OpKind.RESUME:
                self._resumed(op.uuid)
            elif op.kind is not OpKind.SUSPEND and op.uuid in self._firsts:
                # A client has changed what the others wait for.
                self.wants_round = True
        if self._firsts and any(not self._firsts.keys().isdisjoint(each.part.uuids) for each in batch.parts):
            self.wants_round = True

    def _leave_turn(self, line: Line, row: Row | None, stored: StoredRow | None) -> None:
        """What became of a timer ends its turn. If it is suspended before it has begun, it waits like the others."""
        self.end_turn(line.turn)
        if row is not None and stored is not None and stored.suspended is not None:
            self.suspended(row, stored.suspended)

    def _resumed(self, uuid: bytes) -> None:
        if uuid in self._returning:
            # Nothing was written: it is gone.
            self._returning.discard(uuid)
            self.end_turn(uuid)
        line, key = self._resuming.pop(uuid, (None, KEY_MAX))
        if line is not None:
            line.resuming -= 1
            if line.first != KEY_MAX:
                self._set_first(line, min(max(line.first, key), line.recent))
            self._settle(line)
            self._drop_idle(line)


def _goes_on(row: Row | None, stored: StoredRow | None, window: Window) -> bool:
    """Whether a timer whose row was written still has its turn."""
    if row is None:
        return False
    if window.has_begun(row):
        return True
    if stored is not None and stored.suspended is not None and not stored.suspended.startswith(_WAITING):
        return False
    return shows_attempt(row.timer, row.key[0])
