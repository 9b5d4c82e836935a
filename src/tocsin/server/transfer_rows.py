"""The rows of a store as a transfer reads, places, writes and compares them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from tocsin.administration import flows
from tocsin.model.errors import DefiniteFailure, StoreUnavailable
from tocsin.model.ids import namespace_hash, shard_of
from tocsin.model.namespace import Namespace
from tocsin.ports.records import Records
from tocsin.ports.store import (
    KEY_MAX,
    KEY_MIN,
    NOTIFICATIONS_SUFFIX,
    SCHEDULES_SUFFIX,
    Applied,
    FailureRow,
    FireKey,
    HistoryRow,
    Loaded,
    RunRow,
    ShardBatch,
    Store,
    StoredRow,
)
from tocsin.server.transfer_mark import TransferRefused

Row: TypeAlias = StoredRow | HistoryRow | RunRow | FailureRow

#: Rows of one page that is read.
_PAGE_ROWS = 1_000
#: Rows and bytes of records that are written at once, unless the store takes fewer.
_BATCH_ROWS, _BATCH_BYTES = 2_000, 4 * 1024 * 1024
#: Rows of one timer that are written at once where transactions are small: they are one transaction together.
_TIMER_ROWS_MAX = 20
_DIGEST_BYTES = 16


@dataclass
class Contents:
    """How many rows there are of each kind, and a digest of all of their fields, whatever their order and shards.

    `calls` are service calls, if they were counted. `largest` is the row with the largest record."""

    timers: int = 0
    schedules: int = 0
    notifications: int = 0
    history: int = 0
    runs: int = 0
    failures: int = 0
    calls: int | None = field(default=None, compare=False)
    digest: str = ""
    largest: HistoryRow | RunRow | StoredRow | None = field(default=None, repr=False, compare=False)

    @property
    def rows(self) -> int:
        """All rows."""
        return self.timers + self.schedules + self.notifications + self.history + self.runs + self.failures

    def add(self, row: Row) -> None:
        """Counts a row."""
        if not isinstance(row, FailureRow) and (self.largest is None or len(row.record) > len(self.largest.record)):
            self.largest = row
        if isinstance(row, RunRow):
            self.runs += 1
        elif isinstance(row, FailureRow):
            self.failures += 1
        elif isinstance(row, HistoryRow):
            self.history += 1
        elif row.namespace.endswith(SCHEDULES_SUFFIX):
            self.schedules += 1
        elif row.namespace.endswith(NOTIFICATIONS_SUFFIX):
            self.notifications += 1
        else:
            self.timers += 1


async def measured(store: Store, shards: int, after_us: int, advance: Callable[[int], None]) -> Contents:
    """What is in a store, without ends whose retention ends at `after_us` or before."""
    contents, total = Contents(), 0
    for shard_id in range(shards):
        async for page in shard_rows(store, shard_id, after_us):
            for row in page:
                contents.add(row)
                total += int.from_bytes(_digest(row), "big")
            advance(len(page))
    contents.digest = f"{total % 2 ** (8 * _DIGEST_BYTES):0{2 * _DIGEST_BYTES}x}"
    return contents


def _digest(row: Row) -> bytes:
    """A digest of the row's kind and fields. Those of all rows are added up, so that their order does not matter."""
    encoded = msgspec.msgpack.encode((type(row).__name__, *row))
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).digest()


async def shard_rows(store: Store, shard_id: int, after_us: int) -> AsyncIterator[Sequence[Row]]:
    """Everything in a shard, page by page, without ends whose retention ends at `after_us` or before."""
    for load in (_live, _suspended):
        place = KEY_MIN
        while place < KEY_MAX:
            loaded = await load(store, shard_id, place)
            yield loaded.rows
            place = loaded.complete_to
    cursor = None
    while True:
        page = await store.ends(shard_id, cursor, _PAGE_ROWS)
        yield [row for row in page.rows if row.expires_at > after_us]
        if (cursor := page.cursor) is None:
            break
    failed = await store.failures(shard_id, None, _PAGE_ROWS)
    while failed:
        yield [row for row in failed if row.expires_at > after_us]
        failed = await store.failures(shard_id, failed[-1].place, _PAGE_ROWS)


def _live(store: Store, shard_id: int, after: FireKey) -> Awaitable[Loaded]:
    return store.load(shard_id, after, KEY_MAX, _PAGE_ROWS)


def _suspended(store: Store, shard_id: int, after: FireKey) -> Awaitable[Loaded]:
    return store.load_suspended(shard_id, after, _PAGE_ROWS)


async def with_ordered_flows(store: Records) -> frozenset[str]:
    """The namespaces with rules of flows that are ordered. Each has one shard, and keeps one."""
    return frozenset(flow.namespace for flow in await flows(store) if flow.ordered)


def spread(namespace: Namespace, source_shards: int, target_shards: int, ordered: Container[str]) -> Namespace:
    """The namespace in a store with another number of shards: one that has all shards keeps all, unless it is among the
    `ordered` ones; one that has a part keeps the number, as far as there are so many."""
    if namespace.num_shards >= source_shards and namespace.name not in ordered:
        return msgspec.structs.replace(namespace, num_shards=target_shards)
    return msgspec.structs.replace(namespace, num_shards=min(namespace.num_shards, target_shards))


class Placement:
    """The shards of the target in which rows belong, as the engine finds them there."""

    def __init__(
        self, namespaces: Iterable[Namespace], source_shards: int, target_shards: int, ordered: Container[str] = ()
    ) -> None:
        self._total = target_shards
        self._arcs = {
            each.name: (namespace_hash(each.name), spread(each, source_shards, target_shards, ordered).num_shards)
            for each in namespaces
        }

    def __call__(self, name: str, uuid: bytes, shard_id: int) -> int:
        """The shard of a row that is stored under this name and in this shard of the source. What belongs to no known
        namespace, such as a damaged row, is found by nobody, and may be anywhere."""
        arc = self._arcs.get(name.partition("/")[0])
        return shard_id % self._total if arc is None else shard_of(arc[0], uuid, arc[1], self._total)


class RowWriter:
    """Writes rows to the shards of the target, which `owner` owns in these `epochs`. Each row replaces the one with the same
    identity, so that a part of a transfer can be repeated."""

    def __init__(self, target: Store, epochs: Mapping[int, int], owner: bytes, placement: Placement) -> None:
        self._target, self._epochs, self._owner, self._placement = target, epochs, owner, placement
        limits = target.capabilities
        self._rows_max = min(_BATCH_ROWS, limits.batch_rows_max or _BATCH_ROWS)
        self._bytes_max = min(_BATCH_BYTES, limits.batch_bytes_max or _BATCH_BYTES)
        self._timer_rows_max = self._rows_max if limits.batch_rows_max is None else _TIMER_ROWS_MAX
        self._batches: dict[int, ShardBatch] = {}
        self._rows_of: Counter[bytes] = Counter()
        self._rows = self._bytes = 0

    async def write(self, source: Store, shard_id: int, rows: Sequence[Row]) -> None:
        """Writes rows of a shard of the source; `flush` makes them durable. A run is placed by its timer."""
        runs = {row.uuid for row in rows if isinstance(row, RunRow)}
        found = await source.fetch(shard_id, list(runs)) if runs else {}
        names = {uuid: (each.live or each.finished) for uuid, each in found.items()}
        for row in rows:
            if isinstance(row, RunRow):
                timer = names.get(row.uuid)
                name = "" if timer is None else timer.namespace
            else:
                name = row.namespace
            await self._add(self._placement(name, row.uuid, shard_id), row)

    async def _add(self, shard_id: int, row: Row) -> None:
        size = 0 if isinstance(row, FailureRow) else len(row.record)
        if (
            self._rows >= self._rows_max
            or (self._rows and self._bytes + size > self._bytes_max)
            or self._rows_of[row.uuid] >= self._timer_rows_max
        ):
            await self.flush()
        self._rows_of[row.uuid] += 1
        batch = self._batches.get(shard_id)
        if batch is None:
            batch = self._batches[shard_id] = ShardBatch(shard_id, self._epochs[shard_id], self._owner)
        if isinstance(row, StoredRow):
            batch.upserts.append(row)
        elif isinstance(row, HistoryRow):
            batch.history.append(row)
        elif isinstance(row, RunRow):
            batch.runs.append(row)
        else:
            batch.failures.append(row)
        self._rows += 1
        self._bytes += size

    async def flush(self) -> None:
        """Makes everything durable that was written. Raises TransferRefused for a row that the target can't hold, and if the
        target's shards are another's."""
        batches, self._batches, self._rows, self._bytes = [*self._batches.values()], {}, 0, 0
        self._rows_of.clear()
        if not batches:
            return
        try:
            results = await self._target.apply(batches)
        except StoreUnavailable:
            raise
        except DefiniteFailure as error:
            raise TransferRefused(
                f"--to: the target refuses rows: {error}; change or delete them in the source, and start over"
            ) from error
        if set(results) != {Applied.DURABLE}:
            raise TransferRefused("--to: a server has claimed shards of the target; stop it, and start over")
