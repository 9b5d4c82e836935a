"""What the owner of a shard knows of its events that wait for a sink: how many there are, and which are to be removed.

The events themselves are in the store alone, as rows in the order of their commits (`tocsin.ports.store.event_instant`)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from tocsin.ports.store import UUID_BYTES, FireKey, StoredRow, event_instant

if TYPE_CHECKING:
    from tocsin.timers.engine.rows import Batch

#: Why the rows of events are suspended: they fire nothing.
SINK = "sink"
#: Events that one batch removes.
REMOVED_MAX = 500


class EventLog:
    """The events of one shard under one claim."""

    __slots__ = ("_epoch", "_number", "committed_to", "counted", "gaps", "removed", "rows")

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._number = 0
        #: How many are stored, `counted` if those of earlier owners are among them.
        self.rows = 0
        self.counted = False
        #: Up to which key everything is durable.
        self.committed_to: FireKey = self.claimed_at
        #: Events that are published, or lost: their rows are deleted by the next batches.
        self.removed: dict[bytes, None] = {}
        #: Rows that are about to be replaced by gaps.
        self.gaps: dict[bytes, StoredRow] = {}

    @property
    def claimed_at(self) -> FireKey:
        """Before all events of this claim, and after all of earlier ones."""
        return (event_instant(self._epoch, 0), b"")

    @property
    def waits(self) -> bool:
        """Whether something of the log is to be written."""
        return bool(self.removed or self.gaps)

    def count_earlier(self, rows: int) -> None:
        """Earlier owners have left so many events."""
        self.rows += rows
        self.counted = True

    def next_instant(self) -> int:
        """The instant of the next event's key."""
        self._number += 1
        return event_instant(self._epoch, self._number)

    def remove(self, uuids: Iterable[bytes]) -> None:
        """Has these events removed."""
        self.removed.update(dict.fromkeys(uuids))

    def add_to(self, batch: Batch) -> None:
        """Adds what is to be written of the log to a batch: some removals, and gaps along with the events that they stand
        for, which were removed last."""
        if len(self.removed) <= REMOVED_MAX:
            batch.upserts.update(self.gaps)
            batch.gaps = list(self.gaps.values())
        batch.events_removed = list(islice(self.removed, REMOVED_MAX))
        batch.store.deletes += batch.events_removed

    def committed(self, batch: Batch) -> None:
        """The batch is durable."""
        if batch.events_added:
            self.rows += batch.events_added
            # What a later batch writes has a greater instant.
            self.committed_to = (event_instant(self._epoch, self._number), b"\xff" * UUID_BYTES)
        for uuid in batch.events_removed:
            del self.removed[uuid]
        self.rows -= len(batch.events_removed)
        for row in batch.gaps:
            if self.gaps.get(row.uuid) is row:
                del self.gaps[row.uuid]
