"""What clients were promised, and whether it was kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .values import Attempt, Event, EventKey, Kind, Outcome, Row, Write

#: Among the possible states of a timer: it was deleted.
DELETED = 0


class Violation(Exception):
    """A promise was broken; its text names it."""


class Ledger:
    """Each uuid has one client, whose writes follow one another."""

    def __init__(self) -> None:
        #: The states that a uuid's timer may be in by what its client knows: specs, or DELETED.
        self.possible: dict[int, set[int]] = {}
        #: Specs that were done, by the epochs of those attempts.
        self.done: dict[int, set[int]] = {}
        #: How many events of each end the sink has, and the last of its events.
        self.reported: Counter[int] = Counter()
        self.last_event: EventKey = (0, 0)
        self.fired = 0
        self.repeats = 0
        #: Whether a fault or a change of owner may have repeated a call.
        self.repeats_excused = False
        self._specs = 0
        self._asked: dict[int, int] = {}
        self._acknowledged: set[int] = set()
        self._busy: set[int] = set()
        self._attempts: dict[Row, set[int]] = {}

    # ------------------------------------------------------------------ clients

    def is_busy(self, uuid: int) -> bool:
        """Whether the client still waits for an answer."""
        return uuid in self._busy

    def issue(self, kind: Kind, uuid: int, at: int) -> Write:
        """A client's next write."""
        self._specs += 1
        write = Write(kind, uuid, DELETED if kind is Kind.DELETE else self._specs, at)
        self._asked[write.spec] = at
        self._busy.add(uuid)
        self.possible.setdefault(uuid, set()).add(write.spec)
        write.answer = lambda outcome: self._answered(write, outcome)
        return write

    def _answered(self, write: Write, outcome: Outcome) -> None:
        write.answer = lambda outcome: None
        self._busy.discard(write.uuid)
        if outcome is Outcome.DURABLE:
            before = self.possible[write.uuid] - {write.spec}
            if write.kind is Kind.REPLAY and not before & {DELETED, *self.done}:
                raise Violation(f"replayed a pending timer: {write}")
            self.possible[write.uuid] = {write.spec}
            self._acknowledged.add(write.uuid)
        elif outcome is Outcome.REFUSED and write.spec != DELETED:
            self.possible[write.uuid].discard(write.spec)

    # ------------------------------------------------------------------ checks

    def fires(self, attempt: Attempt, now: int) -> None:
        """An attempt begins on a node whose clock shows `now`."""
        row, epoch = attempt.row, attempt.epoch
        possible = self.possible[row.key[1]]
        self.fired += 1
        if now < max(row.key[0], self._asked[row.spec]):
            raise Violation(f"early: {row}")
        if row.spec not in possible:
            raise Violation(f"{'fired after delete' if possible == {DELETED} else 'fired a superseded state'}: {row}")
        earlier = self._attempts.setdefault(row, set()) | self.done.get(row.spec, set())
        if earlier:
            self.repeats += 1
            if epoch in earlier or not self.repeats_excused:
                raise Violation(f"fired twice: {row}")
        self._attempts[row].add(epoch)

    def ends(self, attempt: Attempt) -> None:
        """The receiver has taken the call."""
        self.done.setdefault(attempt.row.spec, set()).add(attempt.epoch)

    def reports(self, event: Event) -> None:
        """The sink gets an event that it does not have yet."""
        if event.key < self.last_event:
            raise Violation(f"out of order: {event}")
        self.last_event = event.key
        self.reported[event.spec] += 1
        # A batch in several transactions may have stored the event and not the end, which then comes again.
        if self.reported[event.spec] > len(self.done[event.spec]):
            raise Violation(f"reported too often: {event}")

    def check_all_reported(self, ended: Iterable[int]) -> None:
        """At the end of all, each end was reported to the sink."""
        if unreported := set(ended) - self.reported.keys():
            raise Violation(f"never reported: {sorted(unreported)}")

    def check_none_lost(self, rows: Iterable[Row]) -> None:
        """Every acknowledged timer is stored, done, or perhaps deleted."""
        stored = {row.spec for row in rows}
        for uuid in self._acknowledged:
            possible = self.possible[uuid]
            if DELETED not in possible and not possible & stored and not possible & self.done.keys():
                raise Violation(f"lost: uuid {uuid}, state {sorted(possible)}")

    def check_all_fired(self, rows: Iterable[Row]) -> None:
        """At the end of all, nothing is left."""
        for row in rows:
            wanted = row.spec in self.possible[row.key[1]] and row.spec not in self.done
            raise Violation(f"{'never fired' if wanted else 'never deleted'}: {row}")
