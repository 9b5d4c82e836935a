"""The attempts of a window that are in flight."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from tocsin.ports.store import KEY_MAX, FireKey
from tocsin.timers.engine.rows import InFlightAttempt, Row

#: Keys of ended attempts are dropped once there are this many more than two for each attempt.
_OUTDATED_MAX = 1_000


class AttemptsInFlight:
    """Attempts by uuid: more than one where a row was replaced while its attempt went on. And in the order of their keys."""

    __slots__ = ("_order", "by_uuid", "count")

    def __init__(self) -> None:
        self.by_uuid: dict[bytes, tuple[InFlightAttempt, ...]] = {}
        self.count = 0
        # Keys and identities of their rows, some of them outdated.
        self._order: list[tuple[FireKey, bytes]] = []

    def add(self, attempt: InFlightAttempt) -> None:
        """Adds an attempt."""
        row = attempt.row
        uuid = row.key[1]
        others = self.by_uuid.get(uuid)
        self.by_uuid[uuid] = (attempt,) if others is None else (*others, attempt)
        self.count += 1
        heappush(self._order, (row.key, row.identity))
        if len(self._order) > 2 * self.count + _OUTDATED_MAX:
            # Otherwise entries of ended attempts would pile up behind one slow attempt at the top.
            self._order = [(f.row.key, f.row.identity) for fs in self.by_uuid.values() for f in fs]
            heapify(self._order)

    def end(self, attempt: InFlightAttempt) -> bool:
        """Removes an attempt; False if it isn't among these."""
        uuid = attempt.row.key[1]
        attempts = self.by_uuid.get(uuid, ())
        if attempt not in attempts:
            return False
        if len(attempts) == 1:
            del self.by_uuid[uuid]
        else:
            self.by_uuid[uuid] = tuple(f for f in attempts if f is not attempt)
        self.count -= 1
        return True

    def replace_row(self, attempt: InFlightAttempt, row: Row) -> None:
        """The attempt of a schedule's row goes on for a newer row of the same identity."""
        attempt.row = row
        heappush(self._order, (row.key, row.identity))

    def deciding(self, uuid: bytes, identity: bytes) -> InFlightAttempt | None:
        """The attempt whose result decides about the durable row of that identity, if there is one."""
        return next((f for f in self.by_uuid.get(uuid, ()) if not f.stale and f.row.identity == identity), None)

    def first_key(self) -> FireKey:
        """The smallest key of a row with an attempt in flight; KEY_MAX if there is none."""
        while self._order:
            key, identity = self._order[0]
            for attempt in self.by_uuid.get(key[1], ()):
                if attempt.row.identity == identity:
                    return key
            heappop(self._order)
        return KEY_MAX
