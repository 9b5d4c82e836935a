"""What the owner of a shard knows of its events that wait for a sink: how many there are, and which are to be removed.

The events themselves are in the store alone, as rows in the order of their commits (`tocsin.ports.store.event_instant`)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tocsin.ports.store import UUID_BYTES, FireKey, StoredRow, event_instant

if TYPE_CHECKING:
    from tocsin.timers.engine.rows import Batch

#: Why the rows of events are suspended: they fire nothing.
SINK = "sink"
#: Events that one batch removes.
_REMOVED_MAX = 500


class Gap(NamedTuple):
    """The row of a gap, which replaces that of the last event that it stands for, and the uuids of the others."""

    row: StoredRow
    instead_of: list[bytes]


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
        #: Events that are published: their rows are deleted by the next batches.
        self.removed: dict[bytes, None] = {}
        #: The gaps that are about to take the place of rows, by their uuids.
        self.gaps: dict[bytes, Gap] = {}

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

    def leaving(self) -> set[bytes]:
        """The events whose rows are about to be deleted."""
        return self.removed.keys() | {uuid for gap in self.gaps.values() for uuid in gap.instead_of}

    def add_to(self, batch: Batch) -> None:
        """Adds what is to be written of the log to a batch: some removals; and gaps, each in one chunk with the deletes of
        what it stands for."""
        batch.gaps = list(self.gaps.values())
        batch.events_removed = list(islice(self.removed, _REMOVED_MAX))
        for row, instead_of in batch.gaps:
            batch.upserts[row.uuid] = row
            batch.store.together.update(dict.fromkeys(instead_of, row.uuid))
            batch.events_removed += instead_of
        batch.store.deletes += batch.events_removed

    def committed(self, batch: Batch) -> None:
        """The batch is durable."""
        if batch.events_added:
            self.rows += batch.events_added
            # What a later batch writes has a greater instant.
            self.committed_to = (event_instant(self._epoch, self._number), b"\xff" * UUID_BYTES)
        for uuid in batch.events_removed:
            self.removed.pop(uuid, None)
        self.rows -= len(batch.events_removed)
        for gap in batch.gaps:
            if self.gaps.get(gap.row.uuid) is gap:
                del self.gaps[gap.row.uuid]
