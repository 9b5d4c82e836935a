"""The rows of a store as a transfer reads, places, writes and compares them."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tocsin.administration import flows
from tocsin.model.errors import DefiniteFailure, StoreUnavailable
from tocsin.model.ids import namespace_hash, shard_of
from tocsin.model.namespace import Namespace
from tocsin.ports.records import Records
from tocsin.ports.store import (
    EVENTS_SUFFIX,
    FLOWS_SUFFIX,
    KEY_MAX,
    KEY_MIN,
    NOTIFICATIONS_SUFFIX,
    SCHEDULES_SUFFIX,
    Applied,
    FailurePlace,
    FailureRow,
    FireKey,
    HistoryRow,
    Loaded,
    RunRow,
    ShardBatch,
    Store,
    StoredRow,
)
from tocsin.server.transfer_log import CHANGES, Row
from tocsin.server.transfer_mark import TransferRefused

#: Rows of one page that is read.
_PAGE_ROWS = 1_000
#: Rows and bytes of records that are written at once, unless the store takes fewer.
_BATCH_ROWS, _BATCH_BYTES = 2_000, 4 * 1024 * 1024
#: Namespaces among which the place of a uuid is looked for.
_ARCS_MAX = 100
#: Rows of one timer that are written at once where transactions are small: they are one transaction together.
_TIMER_ROWS_MAX = 20
_DIGEST_BYTES = 16
#: Parts of all uuids by which two stores are compared while one of them changes.
BUCKETS = 2**18


@dataclass
class Contents:
    """How many rows there are of each kind, and a digest of all of their fields, whatever their order and shards.

    `calls` are service calls, if they were counted. `largest` is the row with the largest record."""

    timers: int = 0
    schedules: int = 0
    notifications: int = 0
    events: int = 0
    history: int = 0
    runs: int = 0
    failures: int = 0
    calls: int | None = field(default=None, compare=False)
    digest: str = ""
    largest: HistoryRow | RunRow | StoredRow | None = field(default=None, repr=False, compare=False)

    @property
    def rows(self) -> int:
        """All rows."""
        live = self.timers + self.schedules + self.notifications + self.events
        return live + self.history + self.runs + self.failures

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
        elif row.namespace.endswith(EVENTS_SUFFIX):
            self.events += 1
        else:
            self.timers += 1


async def measured(
    store: Store, shards: int, after_us: int, advance: Callable[[int], None], buckets: array[int] | None = None
) -> Contents:
    """What is in a store, without ends whose retention ends at `after_us` or before. With `buckets`, as many as BUCKETS, each
    gets the digest of those uuids that belong to it (`bucket_of`)."""
    contents, total = Contents(), 0
    for shard_id in range(shards):
        async for page in shard_rows(store, shard_id, after_us):
            for row in page:
                contents.add(row)
                digest = int.from_bytes(_digest(row), "big")
                total += digest
                if buckets is not None:
                    bucket = bucket_of(row.uuid)
                    buckets[bucket] = (buckets[bucket] + digest) % 2**64
            advance(len(page))
    contents.digest = f"{total % 2 ** (8 * _DIGEST_BYTES):0{2 * _DIGEST_BYTES}x}"
    return contents


def bucket_of(uuid: bytes) -> int:
    """To which bucket the rows of a uuid belong."""
    return int.from_bytes(uuid[-4:], "big") % BUCKETS


def _digest(row: Row) -> bytes:
    """A digest of the row's kind and fields. Those of all rows are added up, so that their order does not matter."""
    encoded = msgspec.msgpack.encode((type(row).__name__, *row))
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).digest()


class _Place(msgspec.Struct, array_like=True):
    """How far the rows of a shard are read: which kind, and behind which row of it."""

    step: int = 0
    key: FireKey = KEY_MIN
    cursor: bytes | None = None
    failure: FailurePlace | None = None


_place_decoder = msgspec.msgpack.Decoder(_Place)
#: The place before everything in a shard.
ROWS_START = msgspec.msgpack.encode(_Place()).hex()


async def shard_rows(store: Store, shard_id: int, after_us: int) -> AsyncIterator[Sequence[Row]]:
    """Everything in a shard, page by page, without ends whose retention ends at `after_us` or before."""
    async for rows, _ in rows_from(store, shard_id, after_us, ""):
        yield rows


async def rows_from(store: Store, shard_id: int, after_us: int, place: str) -> AsyncIterator[tuple[Sequence[Row], str]]:
    """The same from a place on, each page with the place behind it. Everything begins at an empty one."""
    at = _place_decoder.decode(bytes.fromhex(place)) if place else _Place()

    def behind(**where: Any) -> str:
        return msgspec.msgpack.encode(_Place(at.step, **where)).hex()

    for step, load in enumerate((_live, _suspended)):
        key = at.key
        while at.step == step and key < KEY_MAX:
            loaded = await load(store, shard_id, key)
            key = loaded.complete_to
            yield [row for row in loaded.rows if row.namespace != CHANGES], behind(key=key)
        if at.step == step:
            at = _Place(step + 1)
    cursor = at.cursor
    while at.step == _ENDS:
        page = await store.ends(shard_id, cursor, _PAGE_ROWS)
        if (cursor := page.cursor) is None:
            at = _Place(_ENDS + 1)
        yield [row for row in page.rows if row.expires_at > after_us], behind(cursor=cursor)
    failed = await store.failures(shard_id, at.failure, _PAGE_ROWS)
    while failed:
        yield [row for row in failed if row.expires_at > after_us], behind(failure=failed[-1].place)
        failed = await store.failures(shard_id, failed[-1].place, _PAGE_ROWS)


#: The step of `_Place` behind live and suspended rows.
_ENDS = 2


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
        arc = self._arc(name)
        return shard_id % self._total if arc is None else shard_of(arc[0], uuid, arc[1], self._total)

    def _arc(self, name: str) -> tuple[int, int] | None:
        # The uuid alone determines where tokens of flows are.
        return (0, self._total) if name.endswith(FLOWS_SUFFIX) else self._arcs.get(name.partition("/")[0])

    def candidates(self, uuid: bytes, name: str = "") -> Iterable[int]:
        """The shards in which rows of this uuid may be, of which the name under which they are stored may not be known."""
        if (arc := self._arc(name)) is not None:
            return (shard_of(arc[0], uuid, arc[1], self._total),)
        if len(self._arcs) > _ARCS_MAX:
            return range(self._total)
        return {shard_of(place, uuid, shards, self._total) for place, shards in self._arcs.values()}


class RowWriter:
    """Writes rows to the shards of the target, which `owner` owns in these `epochs`. Each row replaces the one with the same
    identity, so that a part of a transfer can be repeated."""

    def __init__(self, target: Store, epochs: Mapping[int, int], owner: bytes, placement: Placement) -> None:
        self._target, self._epochs, self._owner, self._placement = target, epochs, owner, placement
        limits = target.capabilities
        self._together = limits.shards_together
        # Of a transaction: of all shards together, or of each.
        self._rows_max = min(_BATCH_ROWS, limits.batch_rows_max or _BATCH_ROWS)
        self._bytes_max = min(_BATCH_BYTES, limits.batch_bytes_max or _BATCH_BYTES)
        self._timer_rows_max = self._rows_max if limits.batch_rows_max is None else _TIMER_ROWS_MAX
        self._batches: dict[int, ShardBatch] = {}
        self._rows_of: Counter[bytes] = Counter()
        self._live: set[bytes] = set()
        # What is in the batches, by shard if each has a transaction of its own, and in all of them.
        self._rows, self._bytes = Counter[int](), Counter[int]()
        self._all_rows = self._all_bytes = 0

    async def write(self, source: Store, shard_id: int, rows: Sequence[Row]) -> None:
        """Writes rows of a shard of the source; `flush` makes them durable. A run is placed by its timer."""
        runs = {row.uuid for row in rows if isinstance(row, RunRow)}
        found = await source.fetch(shard_id, list(runs)) if runs else {}
        names = {uuid: (each.live or each.finished) for uuid, each in found.items()}
        for row in rows:
            if not isinstance(row, RunRow):
                place = self._placement(row.namespace, row.uuid, shard_id)
            elif (timer := names.get(row.uuid)) is not None:
                place = self._placement(timer.namespace, row.uuid, shard_id)
            else:
                place = await self._place_of_orphan(row.uuid, shard_id)
            await self._add(place, row)

    async def _place_of_orphan(self, uuid: bytes, shard_id: int) -> int:
        """The shard of a run whose timer is not there: that of its other runs, which may have been written while it was."""
        if uuid in self._rows_of:
            await self.flush()
        for place in self._placement.candidates(uuid):
            if await self._target.runs(place, uuid, None, 1):
                return place
        return self._placement("", uuid, shard_id)

    async def delete(self, uuid: bytes, namespace: str) -> None:
        """Deletes the live row of a uuid, of which none is written before `flush`. With an empty name it is deleted wherever
        it may be."""
        await self._once(uuid)
        for shard_id in self._placement.candidates(uuid, namespace):
            (await self._batch(shard_id, uuid, 0)).deletes.append(uuid)

    async def resolve(self, uuid: bytes, generation: bytes) -> None:
        """Removes a failure, of which none is written before `flush`."""
        for shard_id in self._placement.candidates(uuid):
            (await self._batch(shard_id, uuid, 0)).resolved.append((uuid, generation))

    async def remove_failures(self, places: Iterable[FailurePlace]) -> None:
        """Removes failures, at once."""
        found: dict[int, list[FailurePlace]] = {}
        for place in places:
            for shard_id in self._placement.candidates(place[1]):
                found.setdefault(shard_id, []).append(place)
        for shard_id, here in found.items():
            for first in range(0, len(here), _PAGE_ROWS):
                await self._target.remove_failures(shard_id, here[first : first + _PAGE_ROWS])

    async def forget(self, shard_id: int, uuid: bytes) -> None:
        """Removes all ends and failures of a uuid of this shard of the source, at once. None is written before `flush`."""
        # A run whose timer was gone already may be where nobody looks for it.
        elsewhere = (self._placement(name, uuid, shard_id) for name in ("", FLOWS_SUFFIX))
        for place in {*self._placement.candidates(uuid), *elsewhere}:
            await self._target.forget(place, [uuid])

    async def _once(self, uuid: bytes) -> None:
        """A live row that was moved while its shard was read is found twice, but a batch may have it once."""
        if uuid in self._live:
            await self.flush()
        self._live.add(uuid)

    async def _batch(self, shard_id: int, uuid: bytes, size: int) -> ShardBatch:
        """The batch of a shard with room for another row of a uuid."""
        place = 0 if self._together else shard_id
        if (
            self._rows[place] >= self._rows_max
            or self._all_rows >= _BATCH_ROWS
            or (self._rows[place] and self._bytes[place] + size > self._bytes_max)
            or (self._all_rows and self._all_bytes + size > _BATCH_BYTES)
            or self._rows_of[uuid] >= self._timer_rows_max
        ):
            await self.flush()
        self._rows_of[uuid] += 1
        self._rows[place] += 1
        self._bytes[place] += size
        self._all_rows += 1
        self._all_bytes += size
        batch = self._batches.get(shard_id)
        if batch is None:
            batch = self._batches[shard_id] = ShardBatch(shard_id, self._epochs[shard_id], self._owner)
        return batch

    async def _add(self, shard_id: int, row: Row) -> None:
        if isinstance(row, StoredRow):
            await self._once(row.uuid)
        batch = await self._batch(shard_id, row.uuid, 0 if isinstance(row, FailureRow) else len(row.record))
        if isinstance(row, StoredRow):
            batch.upserts.append(row)
        elif isinstance(row, HistoryRow):
            batch.history.append(row)
        elif isinstance(row, RunRow):
            batch.runs.append(row)
        else:
            batch.failures.append(row)

    async def flush(self) -> None:
        """Makes everything durable that was written. Raises TransferRefused for a row that the target can't hold, and if the
        target's shards are another's."""
        batches, self._batches = [*self._batches.values()], {}
        self._rows.clear()
        self._bytes.clear()
        self._all_rows = self._all_bytes = 0
        self._rows_of.clear()
        self._live.clear()
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
