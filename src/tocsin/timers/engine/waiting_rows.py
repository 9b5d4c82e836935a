"""The rows of a window that wait for their instants, or for a slot."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import islice

from tocsin.ports.store import KEY_MAX, FireKey
from tocsin.timers.engine.rows import HELD, Row

#: Rows of each heap among which `longest_wait_us` looks for the oldest.
_WAITS_CHECKED_MAX = 100
#: Keys of each heap that it reads: those of rows that their flows hold do not count.
_KEYS_READ_MAX = 2_000
#: Outdated keys are dropped once a heap has this many more than two for each row.
_OUTDATED_MAX = 1_000


def key_before(key: FireKey) -> FireKey:
    """The greatest key below the given one."""
    instant, uuid = key
    number = int.from_bytes(uuid, "big")
    return (instant, (number - 1).to_bytes(16, "big")) if number else (instant - 1, b"\xff" * 16)


def _key_of(row: Row) -> FireKey:
    return row.key


class WaitingRows:
    """Rows by uuid, in two orders of their keys: those that wait for their instant, and those that were deferred."""

    __slots__ = ("_deferred", "_order", "by_uuid", "bytes")

    def __init__(self) -> None:
        self.by_uuid: dict[bytes, Row] = {}
        #: Bytes of their records.
        self.bytes = 0
        # Keys of rows, some of them outdated.
        self._order: list[FireKey] = []
        self._deferred: list[FireKey] = []

    def add(self, row: Row, *, deferred: bool) -> None:
        """Adds a row, in place of a former one of its uuid."""
        uuid = row.key[1]
        former = self.by_uuid.get(uuid)
        if former is not None:
            self.bytes -= former.size
        self.by_uuid[uuid] = row
        self.bytes += row.size
        heappush(self._deferred if deferred else self._order, row.key)
        if len(self._order) > 2 * len(self.by_uuid) + _OUTDATED_MAX:
            # Otherwise outdated keys far from the top would pile up for the whole look-ahead.
            self._order = self._compacted(self._order)

    def remove(self, uuid: bytes) -> None:
        """Removes the row of this uuid, if there is one."""
        row = self.by_uuid.pop(uuid, None)
        if row is not None:
            self.bytes -= row.size

    def fitting(self, count_max: int, bytes_max: int) -> int:
        """How many of the earliest rows are at most so many, with so many bytes; but up to the first one that is not
        deferred at least: else those that are would keep the window from all others."""
        order, size, any_waits = set(self._order), 0, False
        for number, row in enumerate(sorted(self.by_uuid.values(), key=_key_of)):
            size += row.size
            if any_waits and (number >= count_max or size > bytes_max):
                return number
            any_waits = any_waits or row.key in order
        return len(self.by_uuid)

    def truncate(self, keep: int) -> FireKey | None:
        """Removes all but the `keep` earliest rows; returns the smallest key removed, or None."""
        if len(self.by_uuid) <= keep:
            return None
        keys = sorted(row.key for row in self.by_uuid.values())
        for key in keys[keep:]:
            self.remove(key[1])
        self._order = self._compacted(self._order)
        self._deferred = self._compacted(self._deferred)
        return keys[keep]

    # ------------------------------------------------------------------ order

    def next_key(self) -> FireKey | None:
        """The smallest key that waits for its instant; None if there is none."""
        row = self.first()
        return None if row is None else row.key

    def first(self) -> Row | None:
        """The row with the smallest key that waits for its instant; None if there is none."""
        return self._top(self._order)

    def first_key(self) -> FireKey:
        """The smallest key of all rows; KEY_MAX if there is none."""
        tops = (self._top(self._order), self._top(self._deferred))
        return min((row.key for row in tops if row is not None), default=KEY_MAX)

    def defer(self) -> None:
        """Defers the row whose key is `next_key`."""
        key = heappop(self._order)
        while self._order and self._order[0] == key:
            heappop(self._order)
        heappush(self._deferred, key)
        if len(self._deferred) > 2 * len(self.by_uuid) + _OUTDATED_MAX:
            self._deferred = self._compacted(self._deferred)

    def put_back(self, row: Row) -> None:
        """Returns a deferred row to the order of instants."""
        heappush(self._order, row.key)

    def longest_wait_us(self, now_us: int) -> int:
        """How long the oldest due row has waited that its flow does not hold, in microseconds; 0 when none is. Where many
        rows were accepted long after their instants, it is that of the oldest among the rows checked."""
        longest = 0
        for heap in (self._order, self._deferred):
            top = self._top(heap)
            if top is None or top.key[0] > now_us:
                continue
            checked = 0
            for key in islice(heap, _KEYS_READ_MAX):
                if self._is_current(key) and (row := self.by_uuid[key[1]]).let_at != HELD:
                    longest = max(longest, row.waited_us(now_us))
                    checked += 1
                    if checked == _WAITS_CHECKED_MAX:
                        break
        return longest

    def _compacted(self, heap: list[FireKey]) -> list[FireKey]:
        kept = list({key: None for key in heap if self._is_current(key)})
        heapify(kept)
        return kept

    def _is_current(self, key: FireKey) -> bool:
        row = self.by_uuid.get(key[1])
        return row is not None and row.key == key

    def _top(self, heap: list[FireKey]) -> Row | None:
        """The row whose key is the smallest of the heap; drops outdated keys above it."""
        by_uuid = self.by_uuid
        while heap:
            key = heap[0]
            row = by_uuid.get(key[1])
            if row is not None and row.key == key:
                return row
            heappop(heap)
        return None
