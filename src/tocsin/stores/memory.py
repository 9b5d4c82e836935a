"""The store as a specification: the semantics of `tocsin.ports.store.Store`, in the clearest code, in memory.

Every method is atomic because none of them awaits anything. Nothing survives the process.
"""

from __future__ import annotations

import builtins
import heapq
import time
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar

from tocsin.model.errors import DefiniteFailure
from tocsin.model.timer import Status
from tocsin.ports.clock import Clock
from tocsin.ports.records import RECORD_KEY_END, Record
from tocsin.ports.store import (
    KEY_MAX,
    PAGE_BYTES_MAX,
    SCHEDULES_SUFFIX,
    Applied,
    Capabilities,
    Ends,
    FailurePlace,
    FailureRow,
    FireKey,
    Found,
    HistoryRow,
    ListCursor,
    Listed,
    ListQuery,
    Loaded,
    Member,
    RunRow,
    ShardBatch,
    ShardState,
    StoredRow,
    StoreFacts,
    schedules_of,
    shards_are_fixed,
    total_shards_changed,
    within,
)
from tocsin.stores import TOTAL_SHARDS_DEFAULT

_K = TypeVar("_K", FireKey, ListCursor)
_R = TypeVar("_R", HistoryRow, RunRow)

#: From this many new keys on, sorting a whole shard's keys once is cheaper than inserting one by one.
_SORT_FROM_KEYS = 64


class _Shard:
    """One shard's rows by uuid, and the sorted keys of live rows, suspended rows and history."""

    def __init__(self) -> None:
        self.epoch = 0
        self.owner: bytes | None = None
        self.live: dict[bytes, StoredRow] = {}
        self.keys: list[FireKey] = []
        self.suspended_keys: list[FireKey] = []
        self.history: dict[bytes, dict[bytes, HistoryRow]] = {}
        self.history_keys: list[ListCursor] = []
        self.runs: dict[bytes, dict[bytes, RunRow]] = {}
        self.failures: dict[tuple[bytes, bytes], FailureRow] = {}

    def remove(self, uuid: bytes) -> None:
        row = self.live.pop(uuid, None)
        if row is not None:
            keys = self.keys if row.suspended is None else self.suspended_keys
            del keys[bisect_left(keys, row.key)]

    def remove_to(self, key: FireKey) -> None:
        end = bisect_right(self.keys, key)
        for _, uuid in self.keys[:end]:
            del self.live[uuid]
        del self.keys[:end]

    def upsert(self, rows: list[StoredRow]) -> None:
        for row in rows:
            self.remove(row.uuid)
            self.live[row.uuid] = row
        _insert_sorted(self.keys, [row.key for row in rows if row.suspended is None])
        _insert_sorted(self.suspended_keys, [row.key for row in rows if row.suspended is not None])

    def remember(self, rows: list[HistoryRow]) -> None:
        added: dict[ListCursor, None] = {}
        for row in rows:
            of_timer = self.history.setdefault(row.uuid, {})
            former = of_timer.get(row.generation)
            if former is not None:
                place = _history_place(former)
                if added.pop(place, True):
                    del self.history_keys[bisect_left(self.history_keys, place)]
            of_timer[row.generation] = row
            added[_history_place(row)] = None
        _insert_sorted(self.history_keys, list(added))

    def expire(self, expires_at: int, uuid: bytes, generation: bytes) -> int:
        """Removes one row of this identity that expires then: of the history, a run or a failure; returns how many."""
        # A row that was written again has a later entry, or the same entry twice.
        ended = self.history.get(uuid, {}).get(generation)
        if ended is not None and ended.expires_at == expires_at:
            _forget(self.history, uuid, generation)
            del self.history_keys[bisect_left(self.history_keys, _history_place(ended))]
            return 1
        run = self.runs.get(uuid, {}).get(generation)
        if run is not None and run.expires_at == expires_at:
            _forget(self.runs, uuid, generation)
            return 1
        failure = self.failures.get((uuid, generation))
        if failure is not None and failure.expires_at == expires_at:
            del self.failures[uuid, generation]
            return 1
        return 0

    def forget(self, uuid: bytes) -> None:
        """Removes what is left of a timer besides its live row."""
        for ended in self.history.pop(uuid, {}).values():
            del self.history_keys[bisect_left(self.history_keys, _history_place(ended))]
        self.runs.pop(uuid, None)

    def runs_before(self, uuid: bytes, before: bytes | None) -> list[HistoryRow | RunRow]:
        every: list[HistoryRow | RunRow] = [*self.history.get(uuid, {}).values(), *self.runs.get(uuid, {}).values()]
        return sorted(
            (row for row in every if before is None or row.generation < before),
            key=lambda row: row.generation,
            reverse=True,
        )

    def newest_history(self, uuid: bytes) -> HistoryRow | None:
        of_timer = self.history.get(uuid)
        return of_timer[max(of_timer)] if of_timer else None

    def walk_live(
        self, keys: list[FireKey], start: ListCursor, *, descending: bool
    ) -> Iterator[tuple[ListCursor, StoredRow | HistoryRow]]:
        for key in _behind(keys, start[:2], descending=descending):
            row = self.live[key[1]]
            place = (*key, row.generation)
            if place < start if descending else place > start:
                yield place, row

    def walk_history(
        self, start: ListCursor, *, descending: bool
    ) -> Iterator[tuple[ListCursor, StoredRow | HistoryRow]]:
        for place in _behind(self.history_keys, start, descending=descending):
            if place != start:
                yield place, self.history[place[1]][place[2]]


def _behind(keys: list[_K], start: _K, *, descending: bool) -> Iterator[_K]:
    """The sorted keys from one on, in their order or the opposite one."""
    if descending:
        return (keys[number] for number in range(bisect_right(keys, start) - 1, -1, -1))
    return islice(keys, bisect_left(keys, start), None)


class MemoryStore:
    """Keeps everything in this process's memory. `now` returns the time of `clock` (None: the machine's clock).

    Several nodes of a simulation that share an instance share a database. A batch that violates the rules of `ShardBatch`
    raises ValueError: it is a defect of the caller that a real database might not detect.
    """

    def __init__(self, clock: Clock | None = None, *, exclusive: bool = False) -> None:
        self.capabilities = Capabilities(range_delete=True, exclusive=exclusive)
        self._clock = clock
        self._total_shards: int | None = None
        self._shards: dict[int, _Shard] = {}
        self._expiries: list[tuple[int, int, bytes, bytes]] = []
        self._members: dict[bytes, Member] = {}
        self._records: dict[tuple[str, str], Record] = {}
        self._record_versions: defaultdict[str, int] = defaultdict(int)

    async def open(self, total_shards: int | None) -> int:
        """Fixes the number of shards at first use. Raises ConfigError for another number once a shard was claimed."""
        if self._total_shards is None or (total_shards is not None and not self._shards):
            self._total_shards = total_shards or TOTAL_SHARDS_DEFAULT
        if total_shards is not None and total_shards != self._total_shards:
            raise shards_are_fixed(self._total_shards, total_shards)
        return self._total_shards

    async def close(self) -> None:
        """Does nothing: the data lives as long as the object."""

    async def now(self) -> int:
        """The time of the given clock, or of the machine's."""
        return time.time_ns() // 1000 if self._clock is None else self._clock.now_us()

    async def facts(self) -> StoreFacts:
        """How many rows there are."""
        return StoreFacts(rows=sum(len(shard.keys) + len(shard.suspended_keys) for shard in self._shards.values()))

    # -- ownership

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed, by number."""
        return [ShardState(i, shard.epoch, shard.owner) for i, shard in sorted(self._shards.items())]

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch. A member
        whose row is gone can't be presumed dead."""
        shard = self._shards.get(shard_id)
        if (shard.epoch if shard else 0) != expected_epoch:
            return None
        if presumed_dead is not None:
            member = self._members.get(presumed_dead[0])
            if member is None or member.counter != presumed_dead[1]:
                return None
        if shard is None:
            if self._total_shards is not None and shard_id >= self._total_shards:
                raise total_shards_changed("the memory store")
            shard = self._shards[shard_id] = _Shard()
        shard.epoch += 1
        shard.owner = owner
        return shard.epoch

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        shard = self._fenced(shard_id, epoch, owner)
        if shard is None:
            return False
        shard.owner = None
        return True

    async def heartbeat(self, member: Member) -> int:
        """Writes the member row; returns the store's clock in microseconds."""
        self._members[member.incarnation] = member
        return await self.now()

    async def members(self) -> builtins.list[Member]:
        """All member rows, in the order of their first heartbeats."""
        return list(self._members.values())

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member row; with `counter`, only while the member's heartbeat counter is still that one, so that a member
        that has resumed since stays. It has no effect on unknown members."""
        member = self._members.get(incarnation)
        if member is not None and counter in (None, member.counter):
            del self._members[incarnation]

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. Everything is checked before
        anything changes."""
        _check_batches(batches)
        results = []
        for batch in batches:
            shard = self._fenced(batch.shard_id, batch.epoch, batch.owner)
            if shard is None:
                results.append(Applied.OWNERSHIP_LOST)
                continue
            self._take(shard, batch)
            results.append(Applied.DURABLE)
        return results

    def _take(self, shard: _Shard, batch: ShardBatch) -> None:
        for uuid in batch.deletes:
            shard.remove(uuid)
        if batch.delete_to is not None:
            shard.remove_to(batch.delete_to)
        shard.upsert(batch.upserts)
        shard.remember(batch.history)
        for run in batch.runs:
            shard.runs.setdefault(run.uuid, {})[run.generation] = run
        for failure in batch.failures:
            shard.failures[failure.uuid, failure.generation] = failure
        for identity in batch.resolved:
            shard.failures.pop(identity, None)
        rows: builtins.list[HistoryRow | RunRow | FailureRow] = [*batch.history, *batch.runs, *batch.failures]
        for row in rows:
            heapq.heappush(self._expiries, (row.expires_at, batch.shard_id, row.uuid, row.generation))

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to: at most `limit`, smallest keys first, from a snapshot
        that began after the call."""
        shard = self._shards.get(shard_id)
        return Loaded([], up_to) if shard is None else _page(shard, shard.keys, after, up_to, limit)

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, as `load` returns live ones."""
        shard = self._shards.get(shard_id)
        return Loaded([], KEY_MAX) if shard is None else _page(shard, shard.suspended_keys, after, KEY_MAX, limit)

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        shard = self._shards.get(shard_id)
        if shard is None:
            return {}
        found = {uuid: Found(shard.live.get(uuid), shard.newest_history(uuid)) for uuid in uuids}
        return {uuid: each for uuid, each in found.items() if each != (None, None)}

    async def list(self, query: ListQuery) -> Listed:
        """A page of timers, live and finished. Merges the shards' sorted rows, from the cursor on."""
        low: ListCursor = (-(2**63) if query.execute_after is None else query.execute_after, b"", b"")
        high: ListCursor = (2**63 if query.execute_before is None else query.execute_before, b"", b"")
        if query.descending:
            start, end = min(high, query.cursor or high), low
        else:
            start, end = max(low, query.cursor or low), high
        rows: list[StoredRow | HistoryRow] = []
        bytes_left = query.bytes_max
        last: ListCursor | None = None
        walks = heapq.merge(*self._walks(query, start), key=_place_of, reverse=query.descending)
        for scanned, (place, row) in enumerate(walks):
            if place < end if query.descending else place >= end:
                break
            if len(rows) >= query.limit or scanned >= query.scan_rows_max or (rows and bytes_left <= 0):
                return Listed(rows, last)
            last = place
            if matches(query, row):
                rows.append(row)
                bytes_left -= len(row.record)
        return Listed(rows, None)

    def _walks(
        self, query: ListQuery, start: ListCursor
    ) -> Iterator[Iterator[tuple[ListCursor, StoredRow | HistoryRow]]]:
        for shard_id in sorted(set(query.shards)):
            shard = self._shards.get(shard_id)
            if shard is None:
                continue
            if Status.PENDING in query.statuses:
                yield shard.walk_live(shard.keys, start, descending=query.descending)
                yield shard.walk_live(shard.suspended_keys, start, descending=query.descending)
            if query.statuses - {Status.PENDING}:
                yield shard.walk_history(start, descending=query.descending)

    async def list_schedules(
        self, namespace: str, shards: Sequence[int], after_id: str, limit: int
    ) -> builtins.list[StoredRow]:
        """The namespace's schedules in these shards behind an id, in the order of their ids' bytes."""
        rows = [
            row
            for shard_id in set(shards)
            if (shard := self._shards.get(shard_id)) is not None
            for row in shard.live.values()
            if row.namespace == schedules_of(namespace) and row.timer_id.encode() > after_id.encode()
        ]
        return sorted(rows, key=lambda row: row.timer_id.encode())[:limit]

    async def list_all_schedules(
        self, shards: Sequence[int], after: tuple[str, str] | None, limit: int
    ) -> builtins.list[StoredRow]:
        """All schedules behind a namespace and id, by namespace and id."""
        found = {
            (row.namespace, row.timer_id.encode()): row
            for shard_id in set(shards)
            if (shard := self._shards.get(shard_id)) is not None
            for row in shard.live.values()
            if row.namespace.endswith(SCHEDULES_SUFFIX)
        }
        place = ("", b"") if after is None else (schedules_of(after[0]), after[1].encode())
        return [found[each] for each in sorted(found) if each > place][:limit]

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> builtins.list[HistoryRow | RunRow]:
        """The timer's history rows and run rows with generation < before, greatest generation first: at most `limit`, up to
        the one with which their records have `bytes_max` bytes."""
        shard = self._shards.get(shard_id)
        return [] if shard is None else [*within(bytes_max, shard.runs_before(uuid, before)[:limit])]

    async def ends(self, shard_id: int, cursor: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX) -> Ends:
        """A page of a shard's history rows, by uuid and generation, and then of its run rows."""
        shard = self._shards.get(shard_id)
        if shard is None:
            return Ends([], None)
        every: list[tuple[bytes, dict[bytes, HistoryRow] | dict[bytes, RunRow]]] = []
        every += [(b"h" + uuid, of_timer) for uuid, of_timer in shard.history.items()]
        every += [(b"r" + uuid, of_timer) for uuid, of_timer in shard.runs.items()]
        ended = {key + generation: row for key, of_timer in every for generation, row in of_timer.items()}
        places = sorted(place for place in ended if cursor is None or place > cursor)
        rows = [*within(bytes_max, [ended[place] for place in places[:limit]])]
        return Ends(rows, places[len(rows) - 1] if len(rows) < len(places) else None)

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` history, run and failure rows with expires_at ≤ now_us and returns how many."""
        removed = 0
        while self._expiries and self._expiries[0][0] <= now_us and removed < limit:
            expires_at, shard_id, uuid, generation = heapq.heappop(self._expiries)
            removed += self._shards[shard_id].expire(expires_at, uuid, generation)
        return removed

    async def failures(
        self, shard_id: int, after: FailurePlace | None, limit: int, *, descending: bool = False
    ) -> builtins.list[FailureRow]:
        """A shard's failure rows behind a place, or in the opposite order before it."""
        shard = self._shards.get(shard_id)
        rows = [] if shard is None else sorted(shard.failures.values(), key=_place_of_failure, reverse=descending)
        if after is not None:
            rows = [row for row in rows if (row.place < after if descending else row.place > after)]
        return rows[:limit]

    async def remove_failures(self, shard_id: int, places: Sequence[FailurePlace]) -> None:
        """Removes the failure rows at these places."""
        shard = self._shards.get(shard_id)
        if shard is not None:
            for _, uuid, generation in places:
                shard.failures.pop((uuid, generation), None)

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Removes run rows of one uuid, smallest generations first, until `keep` are left or `limit` are removed; returns how
        many."""
        shard = self._shards.get(shard_id)
        generations = [] if shard is None else sorted(shard.runs.get(uuid, {}))
        removed = generations[: min(max(len(generations) - keep, 0), limit)]
        for generation in removed:
            assert shard is not None
            _forget(shard.runs, uuid, generation)
        return len(removed)

    async def forget(self, shard_id: int, uuids: Sequence[bytes]) -> None:
        """Removes all history, run and failure rows of these uuids."""
        shard = self._shards.get(shard_id)
        if shard is None:
            return
        for uuid in uuids:
            shard.forget(uuid)
        gone = set(uuids)
        for identity in [each for each in shard.failures if each[0] in gone]:
            del shard.failures[identity]

    # -- records

    async def record(self, kind: str, key: str) -> Record | None:
        """The record with this key."""
        return self._records.get((kind, key))

    async def records(
        self, kind: str, after: str = "", before: str = RECORD_KEY_END, *, limit: int, descending: bool = False
    ) -> builtins.list[Record]:
        """The records with after < key < before in the order of their keys: the first `limit`, or the last ones, last
        first."""
        keys = sorted((key for of, key in self._records if of == kind and after < key < before), reverse=descending)
        return [self._records[kind, key] for key in keys[:limit]]

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        """Replaces the record's value if its version is `expected`; with None, creates the record if there is none."""
        stored = self._records.get((kind, key))
        if (stored is None) != (expected is None) or (stored is not None and stored.version != expected):
            return False
        self._records[kind, key] = Record(key, value, (expected or 0) + 1)
        self._record_versions[kind] += 1
        return True

    async def delete_records(self, kind: str, keys: Sequence[str]) -> bool:
        """Removes the records with these keys, all together; whether there was any."""
        removed = [self._records.pop((kind, key)) for key in set(keys) if (kind, key) in self._records]
        self._record_versions[kind] += bool(removed)
        return bool(removed)

    async def records_versions(self, *kinds: str, urgent: bool = False) -> tuple[int, ...]:
        """How many writes of each kind there were."""
        return tuple(self._record_versions[kind] for kind in kinds)

    def _fenced(self, shard_id: int, epoch: int, owner: bytes) -> _Shard | None:
        shard = self._shards.get(shard_id)
        return shard if shard is not None and (shard.epoch, shard.owner) == (epoch, owner) else None


def matches(query: ListQuery, row: StoredRow | HistoryRow) -> bool:
    """Whether the row matches the query, apart from the cursor and the execute range."""
    status = row.status if isinstance(row, HistoryRow) else Status.PENDING
    return (
        query.covers(row.namespace)
        and status in query.statuses
        and row.timer_id.startswith(query.id_prefix)
        and all(tag in row.tags for tag in query.tags)
    )


def _page(shard: _Shard, keys: list[FireKey], after: FireKey, up_to: FireKey, limit: int) -> Loaded:
    begin, end = bisect_right(keys, after), bisect_right(keys, up_to)
    rows = [shard.live[uuid] for _, uuid in keys[begin : min(end, begin + limit)]]
    return Loaded(rows, up_to if end - begin <= limit else (rows[-1].key if rows else after))


def _forget(rows: dict[bytes, dict[bytes, _R]], uuid: bytes, generation: bytes) -> None:
    del rows[uuid][generation]
    if not rows[uuid]:
        del rows[uuid]


def _insert_sorted(keys: list[_K], added: list[_K]) -> None:
    if len(added) >= _SORT_FROM_KEYS:
        keys.extend(added)
        keys.sort()
    else:
        for key in added:
            insort(keys, key)


def _history_place(row: HistoryRow) -> ListCursor:
    return (row.execute_at, row.uuid, row.generation)


def _place_of_failure(row: FailureRow) -> FailurePlace:
    return row.place


def _place_of(item: tuple[ListCursor, StoredRow | HistoryRow]) -> ListCursor:
    return item[0]


def _check_batches(batches: Sequence[ShardBatch]) -> None:
    """Checks the rules of `ShardBatch`, and refuses keys of the wrong size, as every database does."""
    if len({batch.shard_id for batch in batches}) != len(batches):
        raise ValueError("one apply has several batches of one shard")
    for batch in batches:
        written = {row.uuid for row in batch.upserts}
        if len(written) != len(batch.upserts) or not written.isdisjoint(batch.deletes):
            raise ValueError(f"shard {batch.shard_id}: a uuid is written or deleted twice in one batch")
        watermark = batch.delete_to
        if watermark is not None and any(row.suspended is None and row.key <= watermark for row in batch.upserts):
            raise ValueError(f"shard {batch.shard_id}: an upsert lies in the deleted range")
        keys = [row.key for row in batch.upserts] + [(row.execute_at, row.uuid) for row in batch.history]
        keys += [(0, run.uuid) for run in batch.runs] + [(row.failed_at, row.uuid) for row in batch.failures]
        if not {(row.uuid, row.generation) for row in batch.failures}.isdisjoint(batch.resolved):
            raise ValueError(f"shard {batch.shard_id}: a failure is written and resolved in one batch")
        for at, uuid in keys:
            if len(uuid) != 16 or not -(2**63) <= at < 2**63:
                raise DefiniteFailure(f"shard {batch.shard_id}: a row's key is out of range")
