"""The database: the weakest that the engine's stores may be.

Each write is a generator. Where it yields, anything else may happen first; at a yield of True its sender is still needed, so
that the rest never happens if the sender or its connection is gone.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import zip_longest
from random import Random
from typing import NamedTuple

from .rules import Mutant
from .values import KEY_MIN, Batch, Event, EventKey, Key, Outcome, Row

_COARSE_TICKS = 8


class Traits(NamedTuple):
    """What one run's database can't do."""

    #: Changes that fit in one transaction; a longer batch takes several, each with its own fence.
    changes_max: int
    #: Whether a load sees a transaction at once, not row by row.
    isolated: bool
    range_delete: bool


class Page(NamedTuple):
    rows: list[Row]
    complete_to: Key


class _Change(NamedTuple):
    """Writes `row`, or the end of a run, with its event if there is a sink; or deletes: the row of `uuid` (if it has the key,
    where one is given), all from `above` to `to`, or an event that was `published`."""

    row: Row | None = None
    ended: Row | None = None
    event: Event | None = None
    published: EventKey | None = None
    uuid: int = -1
    key: Key | None = None
    above: Key = KEY_MIN
    to: Key | None = None


class Store:
    """Timers' rows by uuid, the shard's epoch and owner, and the members' heartbeat counters."""

    def __init__(self, random: Random, traits: Traits, mutant: Mutant | None) -> None:
        self.rows: dict[int, Row] = {}
        #: Timers of which a finished run is kept.
        self.history: set[int] = set()
        #: What has ended, by its spec, and the events that no owner has deleted yet.
        self.ended: set[int] = set()
        self.events: dict[EventKey, Event] = {}
        self.epoch = 0
        self.owner: int | None = None
        self.counters: dict[int, int] = {}
        self.traits = traits
        self._random = random
        self._mutant = mutant
        # What loads still see of a transaction that is durable: its rows' former states.
        self._unseen: dict[int, Row | None] = {}
        self._unseen_events: set[EventKey] = set()
        self._earlier: list[Row] = []

    # ------------------------------------------------------------------ members and claims

    def heartbeat(self, incarnation: int, counter: int) -> Generator[bool, None, None]:
        """Writes a member's counter."""
        self.counters[incarnation] = counter
        yield False

    def claim(
        self, expected_epoch: int, owner: int, presumed_dead: tuple[int, int] | None
    ) -> Generator[bool, None, int | None]:
        """Returns the new epoch; None if the shard changed hands, or the member presumed dead has sent a heartbeat. The
        counter is read an arbitrary time before the shard is written: no condition of Cassandra spans two partitions."""
        if presumed_dead is not None:
            member, counter = presumed_dead
            if self.counters.get(member, 0) != counter:
                return None
            yield True
        if self.epoch != expected_epoch:
            return None
        self.epoch, self.owner = expected_epoch + 1, owner
        yield True
        while (self._unseen or self._unseen_events) and self._mutant is not Mutant.CLAIM_DOES_NOT_SETTLE:
            yield True
        return expected_epoch + 1

    def release(self, epoch: int, owner: int) -> Generator[bool, None, None]:
        """Gives the shard up, if it is still the owner's."""
        if (self.epoch, self.owner) == (epoch, owner):
            self.owner = None
        yield False

    # ------------------------------------------------------------------ batches

    def apply(self, batch: Batch) -> Generator[bool, None, Outcome]:
        """Writes the batch. REFUSED: the shard isn't the owner's any more, and nothing was written."""
        for number, chunk in enumerate(self._chunks(batch)):
            if number:
                yield True
            if not self._is_fenced(batch):
                return Outcome.UNKNOWN if number else Outcome.REFUSED
            if self._mutant is Mutant.FENCE_ONLY_READS:
                yield False
            self._write(chunk)
            while self._unseen or self._unseen_events:
                yield False
                self._show_one()
        return Outcome.DURABLE

    def _is_fenced(self, batch: Batch) -> bool:
        return self._mutant is Mutant.NO_FENCE or (self.epoch, self.owner) == (batch.epoch, batch.owner)

    def _chunks(self, batch: Batch) -> list[list[_Change]]:
        upserts = [_Change(row=self._stored(row)) for row in batch.upserts]
        ends = zip_longest(batch.finished, batch.events)
        upserts += [_Change(ended=row, event=event) for row, event in ends]
        deletes = [_Change(uuid=uuid, key=key) for uuid, key in batch.deletes]
        if batch.delete_to is not None:
            deletes.append(_Change(above=batch.delete_above, to=batch.delete_to))
        deletes += [_Change(published=key) for key in batch.published]
        changes = upserts + deletes
        if self._mutant is Mutant.DELETES_BEFORE_UPSERTS:
            changes = [*deletes, *(_Change(uuid=row.key[1]) for row in batch.upserts), *upserts]
        size = self.traits.changes_max
        return [changes[i : i + size] for i in range(0, len(changes), size)] or [[]]

    def _write(self, changes: list[_Change]) -> None:
        """One transaction. The order of its statements is the database's."""
        former = dict(self.rows)
        for change in self._random.sample(changes, len(changes)):
            if change.row is not None:
                self.rows[change.row.key[1]] = change.row
            elif change.ended is not None or change.event is not None:
                self._end(change.ended, change.event)
            elif change.published is not None:
                self.events.pop(change.published, None)
            elif change.to is not None:
                self._delete_range(change.above, change.to)
            elif change.key is None or (row := self.rows.get(change.uuid)) is None or row.key == change.key:
                self.rows.pop(change.uuid, None)
        if not self.traits.isolated:
            touched = former.keys() | self.rows.keys()
            changed = {uuid: former.get(uuid) for uuid in touched if former.get(uuid) is not self.rows.get(uuid)}
            self._unseen = {**changed, **self._unseen}

    def _end(self, row: Row | None, event: Event | None) -> None:
        if row is not None:
            self.history.add(row.key[1])
            self.ended.add(row.spec)
        if event is not None:
            self.events[event.key] = event
            if not self.traits.isolated:
                self._unseen_events.add(event.key)

    def _delete_range(self, above: Key, to: Key) -> None:
        low, high = self._order(above), self._order(to)
        for uuid, row in list(self.rows.items()):
            if low < self._order(row.key) <= high:
                del self.rows[uuid]

    def _show_one(self) -> None:
        if self._unseen:
            del self._unseen[self._random.choice(sorted(self._unseen))]
        elif self._unseen_events:
            self._unseen_events.remove(self._random.choice(sorted(self._unseen_events)))

    # ------------------------------------------------------------------ loads

    def fetch(self, uuid: int) -> tuple[Row | None, bool]:
        """The timer's row, and whether a finished run of it is kept."""
        return self.rows.get(uuid), uuid in self.history

    def first_event(self, after: EventKey, up_to: EventKey) -> Event | None:
        """The first event of (after, up_to] that a read sees."""
        seen = [key for key in self.events.keys() - self._unseen_events if after < key <= up_to]
        return self.events[min(seen)] if seen else None

    def page(self, after: Key, up_to: Key, rows_max: int) -> Page:
        """Rows in (after, up_to] in order, and the key up to which they are all: a page may end before `rows_max`."""
        rows = self.visible()
        if self._mutant is Mutant.LOAD_READS_EARLIER_SNAPSHOT:
            rows, self._earlier = self._earlier, rows
        return self._paged(rows, after, up_to, rows_max)

    def visible(self) -> list[Row]:
        """What a load would see of the rows at this moment."""
        shown = {**self.rows, **self._unseen}
        return [row for row in shown.values() if row is not None]

    def _paged(self, rows: Iterable[Row], after: Key, up_to: Key, rows_max: int) -> Page:
        low, high = self._order(after), self._order(up_to)
        found = sorted(
            (row for row in rows if low < self._order(row.key) <= high), key=lambda row: self._order(row.key)
        )
        size = self._random.randint(1, rows_max)
        if len(found) <= size or (size < rows_max and self._mutant is Mutant.SHORT_PAGE_IS_COMPLETE):
            return Page(found[:size], up_to)
        return Page(found[:size], found[size - 1].key)

    def _order(self, key: Key) -> Key:
        return (key[0], -key[1]) if self._mutant is Mutant.OTHER_UUID_ORDER else key

    def _stored(self, row: Row) -> Row:
        if self._mutant is not Mutant.COARSE_INSTANTS:
            return row
        instant, uuid = row.key
        return row._replace(key=(instant - instant % _COARSE_TICKS, uuid))
