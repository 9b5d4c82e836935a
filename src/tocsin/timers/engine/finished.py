"""What a window holds of results that are not durable yet: above all, the timers that have finished and are not deleted
yet."""

from __future__ import annotations

from bisect import insort
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from tocsin.ports.store import FireKey

if TYPE_CHECKING:
    from tocsin.model.timer import Timer
    from tocsin.timers.engine.rows import Row

#: Outdated keys are dropped once there are this many more than two for each timer.
_OUTDATED_MAX = 1_000


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=_Sized)


class SizedByUuid(dict[bytes, S]):
    """By uuid, with the bytes of the records. Entries are set, deleted and popped, one at a time."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __setitem__(self, uuid: bytes, entry: S) -> None:
        former = self.get(uuid)
        if former is not None:
            self.bytes -= former.size
        self.bytes += entry.size
        dict.__setitem__(self, uuid, entry)

    def __delitem__(self, uuid: bytes) -> None:
        self.bytes -= dict.pop(self, uuid).size

    def pop(self, uuid: bytes, default: S | None = None) -> S | None:  # type: ignore[override]
        """Removes the entry and returns it, or the default."""
        entry = dict.pop(self, uuid, None)
        if entry is None:
            return default
        self.bytes -= entry.size
        return entry


class RetryingRows(SizedByUuid["Row"]):
    """Rows whose next attempt, or what follows an occurrence, is not durable yet; `refused` are those of them that the store
    has refused to write."""

    __slots__ = ("refused",)

    def __init__(self) -> None:
        super().__init__()
        self.refused = SizedByUuid["Row"]()

    def __setitem__(self, uuid: bytes, row: Row) -> None:
        self.refused.pop(uuid)
        SizedByUuid.__setitem__(self, uuid, row)

    def __delitem__(self, uuid: bytes) -> None:
        self.refused.pop(uuid)
        SizedByUuid.__delitem__(self, uuid)

    def pop(self, uuid: bytes, default: Row | None = None) -> Row | None:  # type: ignore[override]
        """Removes the row and returns it, or the default."""
        self.refused.pop(uuid)
        return SizedByUuid.pop(self, uuid, default)

    def refuse(self, uuid: bytes) -> None:
        """The store has refused to write the row, if it is here."""
        row = self.get(uuid)
        if row is not None:
            self.refused[uuid] = row


class Finished(msgspec.Struct, eq=False, gc=False):
    """A timer that has finished and whose delete is not durable yet. `since_us` is when it finished, in boot time.
    `with_history` is whether its history row is written along with the delete."""

    row: Row
    timer: Timer
    since_us: int
    with_history: bool = True

    @property
    def size(self) -> int:
        """Bytes of the timer's record."""
        return self.row.size


class FinishedTimers(SizedByUuid[Finished]):
    """By uuid, in the order in which they finished; `first` has them in the order of their keys. After a burst tens of
    thousands wait here, of which a commit takes hundreds: so none of them is looked at for each commit."""

    __slots__ = ("_first", "_later")

    def __init__(self) -> None:
        super().__init__()
        # Keys, some of them outdated: the smallest ones, sorted, as `first` has found them last; and all others, as a heap.
        self._first: list[FireKey] = []
        self._later: list[FireKey] = []

    def __setitem__(self, uuid: bytes, entry: Finished) -> None:
        SizedByUuid.__setitem__(self, uuid, entry)
        key = entry.row.key
        if self._first and key <= self._first[-1]:
            insort(self._first, key)
            return
        heappush(self._later, key)
        if len(self._later) > 2 * len(self) + _OUTDATED_MAX:
            # Otherwise they would pile up while one slow attempt holds back the range delete.
            self._later = list({key: None for key in self._later if self._at(key) is not None})
            heapify(self._later)

    def first(self, count: int) -> list[Finished]:
        """Those with the smallest keys, at most so many, by key."""
        found = {key: entry for key in self._first if (entry := self._at(key)) is not None}
        later = self._later
        while len(found) < count and later:
            key = heappop(later)
            # As `_at`, without the call: each timer passes here.
            entry = self.get(key[1])
            if entry is not None and entry.row.key == key:
                found[key] = entry
        self._first = list(found)
        return list(found.values())[:count]

    def _at(self, key: FireKey) -> Finished | None:
        """The timer with this key; None if the key is outdated."""
        entry = self.get(key[1])
        return entry if entry is not None and entry.row.key == key else None
