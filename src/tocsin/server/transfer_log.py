"""How servers log what they change while their store is transferred, and how the transfer reads it.

With each batch a server writes one row more, in the same transaction, which names the timers that the batch changes. It is
a suspended row under a name that no namespace has, so that every store has a place for it, and no list shows it. It has no
more than their ids: the transfer reads the timers again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

import msgspec

from tocsin.administration import delete_range, encoded, every
from tocsin.model.errors import DefiniteFailure
from tocsin.ports.records import Records
from tocsin.ports.store import (
    KEY_MAX,
    UUID_BYTES,
    Applied,
    Capabilities,
    FailurePlace,
    FailureRow,
    FireKey,
    HistoryRow,
    Loaded,
    RunRow,
    ShardBatch,
    Store,
    StoredRow,
    generation,
)
from tocsin.server.transfer_mark import TRANSFER, read_mark

#: The name under which the rows of the log are stored.
CHANGES = "/change"
_REASON = "transfer"
#: The rows' instants order them by epoch, then by number. They lie behind those of all timers, and every database can show
#: them.
_FIRST_US, _NUMBERS = 2**62, 2**32
#: Before everything in the log.
LOG_START: FireKey = (_FIRST_US - 1, b"\xff" * UUID_BYTES)
#: Rows of the log that one read returns.
_PAGE_ROWS = 500
#: Rows of a log that is obsolete that one batch removes.
_TIDIED_MAX = 50
#: Beginnings of keys of records: which servers log their changes, which failures were dismissed, and of which timers the ends
#: were removed.
_LOGGING, _DISMISSED, _FORGOTTEN = "logging/", "dismissed/", "forgotten/"


Row: TypeAlias = StoredRow | HistoryRow | RunRow | FailureRow


class _Entry(msgspec.Struct, array_like=True):
    """What a batch changes: uuids, one behind the other; history rows and run rows that it adds, by uuid and generation;
    failures that it adds; failures that it removes, by uuid and generation."""

    uuids: bytes
    ends: list[tuple[bytes, bytes]]
    failures: list[FailurePlace]
    resolved: list[tuple[bytes, bytes]]


_decoder = msgspec.msgpack.Decoder(_Entry)


class Changes(NamedTuple):
    """What was changed in a shard: timers; the generations of history rows and run rows that they got; failures that were
    added, and such that were removed."""

    uuids: dict[bytes, None]
    ends: dict[bytes, set[bytes]]
    failures: set[FailurePlace]
    resolved: set[tuple[bytes, bytes]]


def _log_row(batch: ShardBatch, number: int) -> StoredRow:
    rows: Iterable[Row] = chain(batch.upserts, batch.history, batch.runs, batch.failures)
    uuids = dict.fromkeys(chain((row.uuid for row in rows), batch.deletes, (uuid for uuid, _ in batch.resolved)))
    ends: Iterable[HistoryRow | RunRow] = chain(batch.history, batch.runs)
    entry = _Entry(
        b"".join(uuids),
        [(row.uuid, row.generation) for row in ends],
        [row.place for row in batch.failures],
        batch.resolved,
    )
    at_us = _FIRST_US + batch.epoch * _NUMBERS + number
    return StoredRow(
        at_us,
        at_us.to_bytes(UUID_BYTES, "big"),
        generation(batch.epoch, batch.owner, 0),
        CHANGES,
        "",
        (),
        msgspec.msgpack.encode(entry),
        _REASON,
    )


async def read_changes(store: Store, shard_id: int, after: FireKey) -> tuple[Changes, FireKey]:
    """What the shard's log has behind a place, and the place from which to go on.

    The last row is read again the next time: a store that writes a batch in parts may have written only the first, which has
    the row. The next batch of the shard does not begin before the last part is written."""
    changes = Changes({}, {}, set(), set())
    place = previous = after
    while True:
        page = await store.load_suspended(shard_id, place, _PAGE_ROWS)
        for row in page.rows:
            if row.namespace == CHANGES:
                entry = _decoder.decode(row.record)
                uuids = entry.uuids
                changes.uuids.update((uuids[at : at + UUID_BYTES], None) for at in range(0, len(uuids), UUID_BYTES))
                for uuid, ended_as in entry.ends:
                    changes.ends.setdefault(uuid, set()).add(ended_as)
                changes.failures.update(entry.failures)
                changes.resolved.update(entry.resolved)
                previous, place = place, row.key
        if page.complete_to >= KEY_MAX:
            return changes, previous
        place = max(place, page.complete_to)


async def logging_servers(records: Records, transfer: str) -> set[bytes]:
    """The incarnations that log everything that they change for this transfer."""
    found = every(records, TRANSFER, _LOGGING, _LOGGING + "~")
    return {bytes.fromhex(each.key.removeprefix(_LOGGING)) async for each in found if each.value == encoded(transfer)}


async def dismissed_failures(records: Records) -> list[tuple[int, FailurePlace]]:
    """The failures that people have dismissed since the transfer began, each with its shard; perhaps not all of them."""
    found = []
    async for record in every(records, TRANSFER, _DISMISSED, _DISMISSED + "~"):
        shard_id, places = msgspec.json.decode(record.value, type=tuple[int, list[FailurePlace]])
        found += [(shard_id, place) for place in places]
    return found


class Forgotten(NamedTuple):
    """A timer of which everything but a live row was removed, or is about to be: once for each `record`."""

    record: str
    shard_id: int
    uuid: bytes


async def forgotten_timers(records: Records) -> list[Forgotten]:
    """The timers whose ends were removed since the transfer began."""
    found = []
    async for record in every(records, TRANSFER, _FORGOTTEN, _FORGOTTEN + "~"):
        shard_id, uuids = msgspec.json.decode(record.value, type=tuple[int, list[bytes]])
        found += [Forgotten(record.key, shard_id, each) for each in uuids]
    return found


async def forget_log(records: Records) -> None:
    """Removes the records of a transfer that was cancelled."""
    await delete_range(records, TRANSFER)


class ChangeLog:
    """A node's store, which logs what is changed by it while `on`. Everything else is the store's own.

    A claim is followed by a read of the mark: so whoever claims a shard after the mark was written logs all its changes."""

    def __init__(self, store: Store, incarnation: bytes) -> None:
        self._store = store
        self._incarnation = incarnation
        self._number = 0
        self.on = False
        # Calls that are changing rows, batches each with their shards; shards with a batch whose outcome is not known.
        self._writing: dict[int, set[int]] = {}
        self._unknown: set[int] = set()
        # Which of them began before everything was logged.
        self._unlogged: set[int] | None = None
        # Rows of logs that are not needed any more, by shard.
        self._obsolete: dict[int, list[bytes]] = {}

    def __getattr__(self, name: str) -> Any:
        # All that needs no log.
        return getattr(self._store, name)

    @property
    def capabilities(self) -> Capabilities:
        """The store's. While changes are logged, batches name each timer that they delete."""
        found = self._store.capabilities
        return replace(found, range_delete=False, delete_watermark=True) if self.on else found

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard. Raises DefiniteFailure while a transfer has paused the servers."""
        epoch = await self._store.claim(
            shard_id, expected_epoch=expected_epoch, owner=owner, presumed_dead=presumed_dead
        )
        if epoch is not None:
            mark = await read_mark(self._store)
            if mark is not None and mark.role == "source":
                self.on = True
                if mark.phase != "copying":
                    raise DefiniteFailure(f"the store is being transferred to {mark.other}")
            self._unknown.discard(shard_id)
        return epoch

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        """Writes the batches, with what they change if that is logged."""
        if self.on:
            batches = [self._logged(batch) for batch in batches]
        elif self._obsolete:
            batches = [self._tidied(batch) for batch in batches]
        shards = {batch.shard_id for batch in batches}
        with self._changing(shards):
            try:
                return await self._store.apply(batches)
            except DefiniteFailure:
                raise
            except BaseException:
                # Cancelled as well: it took too long.
                self._unknown |= shards
                raise

    @contextmanager
    def _changing(self, shards: Iterable[int] = ()) -> Iterator[None]:
        """A call that changes rows, for whose end `settled` waits if it begins before everything is logged."""
        self._number += 1
        number = self._number
        self._writing[number] = {*shards}
        try:
            yield
        finally:
            del self._writing[number]

    def _logged(self, batch: ShardBatch) -> ShardBatch:
        self._number += 1
        return replace(batch, upserts=[_log_row(batch, self._number), *batch.upserts])

    def _tidied(self, batch: ShardBatch) -> ShardBatch:
        obsolete = self._obsolete.pop(batch.shard_id, [])
        if len(obsolete) > _TIDIED_MAX:
            self._obsolete[batch.shard_id] = obsolete[_TIDIED_MAX:]
        return replace(batch, deletes=[*batch.deletes, *obsolete[:_TIDIED_MAX]])

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """The store's suspended rows without the log, which lies behind all of them. What a cancelled transfer has left of
        one is removed, a little with each batch."""
        page = await self._store.load_suspended(shard_id, after, limit)
        rows = [row for row in page.rows if row.namespace != CHANGES]
        if len(rows) == len(page.rows):
            return page
        if self.on:
            return Loaded(rows, KEY_MAX)
        known = set(self._obsolete.get(shard_id, ()))
        found = [row.uuid for row in page.rows if row.namespace == CHANGES and row.uuid not in known]
        self._obsolete.setdefault(shard_id, []).extend(found)
        return Loaded(rows, page.complete_to)

    async def remove_failures(self, shard_id: int, places: Sequence[FailurePlace]) -> None:
        """Removes the failure rows, and logs it before."""
        with self._changing():
            if self.on:
                await self._put(_DISMISSED, (shard_id, places))
            await self._store.remove_failures(shard_id, places)

    async def forget(self, shard_id: int, uuids: Sequence[bytes]) -> None:
        """Removes all failure rows, run rows and history rows of the uuids, and logs it before."""
        with self._changing():
            if self.on:
                await self._put(_FORGOTTEN, (shard_id, uuids))
            await self._store.forget(shard_id, uuids)

    async def _put(self, beginning: str, removed: tuple[int, Sequence[Any]]) -> None:
        await self._store.put_record(TRANSFER, f"{beginning}{uuid4().hex}", encoded(removed), None)

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Nothing while changes are logged: the target's servers will do it."""
        with self._changing():
            return 0 if self.on else await self._store.purge_history(now_us, limit)

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Nothing while changes are logged: the target's servers will do it."""
        with self._changing():
            return 0 if self.on else await self._store.trim_runs(shard_id, uuid, keep, limit)

    # ------------------------------------------------------------------ when everything is logged

    async def settled(self) -> bool:
        """Whether no call that was not logged can change anything any more. Asked for the first time a while after `on` was
        set: batches that were being assembled then count as not logged."""
        if self._unlogged is None:
            self._unlogged = set(self._writing)
        if self._unlogged & self._writing.keys():
            return False
        if self._unknown:
            # A claim by another node excludes them as well.
            states = await self._store.shards()
            self._unknown &= {state.shard_id for state in states if state.owner == self._incarnation}
        return not self._unknown

    async def announce(self, transfer: str) -> None:
        """Announces that this node logs everything that it changes."""
        key, value = f"{_LOGGING}{self._incarnation.hex()}", encoded(transfer)
        found = await self._store.record(TRANSFER, key)
        if found is None or found.value != value:
            await self._store.put_record(TRANSFER, key, value, None if found is None else found.version)

    def end(self) -> None:
        """Logs nothing any more."""
        self.on, self._unlogged = False, None
