"""Lists over Cassandra: a merge of sorted ranges (per shard: live, suspended, finished) with bounded work, and schedules.

Entries are read page by page and filtered here; Cassandra would read as much to filter them. Then the rows of the chosen
entries are read, and those that have changed since are dropped. A list is not a snapshot: a timer that moves during the reads
may be missing. So may a timer whose entry is damaged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from tocsin.model.timer import Status
from tocsin.ports.store import (
    GENERATION_END,
    HistoryRow,
    ListCursor,
    Listed,
    ListQuery,
    StoredRow,
    schedules_of,
)
from tocsin.stores.cassandra.client import CassandraClient, Row
from tocsin.stores.cassandra.keys import (
    FINISHED,
    LIVE,
    SUSPENDED,
    behind,
    entry_key,
    history_key,
    partition_of,
    place_of,
    schedule_id_of,
    schedule_key,
    timer_key,
)
from tocsin.stores.cassandra.reads import RANGE, delete_entries, rows_by_key
from tocsin.stores.cassandra.rows import Entry, entry_of, row_or_damaged, schedule_entry_of

_INSTANT_MIN, _INSTANT_MAX = -(2**63), 2**63 - 1
_UUID_MAX = b"\xff" * 16
#: Entries that a first request reads at least.
_PAGE_ROWS_FIRST = 8


class _Candidate(NamedTuple):
    """An entry, its place, and the shard and key of the row it leads to."""

    place: ListCursor
    shard_id: int
    key: bytes
    entry: Entry
    order: Row


class _Range:
    """Entries of one kind in one shard behind a place, in order."""

    def __init__(self, client: CassandraClient, shard_id: int, kind: bytes, start: ListCursor, last_us: int) -> None:
        self.entries: deque[_Candidate] = deque()
        self.ended = False
        self._client = client
        self._shard_id = shard_id
        self._kind = kind
        self._start = start
        # Keys of live rows have no generation, so the row at the place itself may still follow.
        generation = start[2] if kind == FINISHED else b""
        self._next = entry_key(kind, start[0], start[1], generation)
        self._last = entry_key(kind, last_us, _UUID_MAX, GENERATION_END if kind == FINISHED else b"")

    async def read(self, page_rows: int) -> None:
        """Reads the next entries."""
        partition = self._client.partition(partition_of(self._shard_id))
        while not self.entries and not self.ended:
            page = await self._client.read(RANGE, partition, self._next, self._last, page_rows)
            self.ended = len(page) < page_rows
            if page:
                self._next = behind(page[-1][0])
            for key, value in page:
                entry = entry_of(value)
                if entry is None:
                    continue
                place = place_of(key, entry.generation)
                if place > self._start:
                    leads_to = history_key(place[1], place[2]) if self._kind == FINISHED else timer_key(place[1])
                    self.entries.append(_Candidate(place, self._shard_id, leads_to, entry, (key, value)))


async def list_rows(client: CassandraClient, query: ListQuery) -> Listed:
    """A page of one namespace's timers, live and finished, in the order of the query."""
    start: ListCursor = (_INSTANT_MIN if query.execute_after is None else query.execute_after, b"", b"")
    start = max(start, query.cursor or start)
    last_us = _INSTANT_MAX if query.execute_before is None else query.execute_before - 1
    ranges = _ranges(client, query, start, last_us) if start[0] <= last_us else []
    chosen: list[_Candidate] = []
    page_rows = max(_PAGE_ROWS_FIRST, 2 * query.limit // max(len(ranges), 1))
    last: ListCursor | None = None
    scanned = 0
    while True:
        if empty := [each for each in ranges if not each.entries and not each.ended]:
            await client.in_parallel(partial(_read, min(page_rows, client.settings.page_rows_max)), empty)
            page_rows *= 2
        first = min((each for each in ranges if each.entries), key=lambda each: each.entries[0].place, default=None)
        if first is None:
            return Listed(await _rows(client, chosen), None)
        if len(chosen) >= query.limit or scanned >= query.scan_rows_max:
            return Listed(await _rows(client, chosen), last)
        candidate = first.entries.popleft()
        scanned, last = scanned + 1, candidate.place
        if _matches(query, candidate.entry):
            chosen.append(candidate)


async def _read(page_rows: int, each: _Range) -> None:
    await each.read(page_rows)


def _ranges(client: CassandraClient, query: ListQuery, start: ListCursor, last_us: int) -> list[_Range]:
    kinds = [LIVE, SUSPENDED] if Status.PENDING in query.statuses else []
    if query.statuses - {Status.PENDING}:
        kinds.append(FINISHED)
    return [_Range(client, shard_id, kind, start, last_us) for shard_id in sorted(set(query.shards)) for kind in kinds]


def _matches(query: ListQuery, entry: Entry) -> bool:
    return (
        entry.namespace == query.namespace
        and Status(entry.status) in query.statuses
        and entry.timer_id.startswith(query.id_prefix)
        and all(tag in entry.tags for tag in query.tags)
    )


async def _rows(client: CassandraClient, chosen: Sequence[_Candidate]) -> list[StoredRow | HistoryRow]:
    """The rows of these entries, except those that have changed since their entries were written."""
    keys: dict[int, list[bytes]] = {}
    for each in chosen:
        keys.setdefault(each.shard_id, []).append(each.key)
    found = {shard_id: await rows_by_key(client, shard_id, of_shard) for shard_id, of_shard in keys.items()}
    rows = []
    for each in chosen:
        of_shard = found[each.shard_id]
        row = of_shard.found.get(each.key)
        if row is None and (damaged := of_shard.damaged.get(each.key)) is not None:
            row = damaged.row(each.key, *each.order)
        if row is not None and (row.execute_at, row.uuid, row.generation) == each.place:
            rows.append(row)
    return rows


class _Listed(NamedTuple):
    """An entry of the list of schedules. Sorts by id."""

    key: bytes
    shard_id: int
    value: bytes


async def list_schedules(
    client: CassandraClient, namespace: str, shards: Sequence[int], after_id: str, limit: int
) -> list[StoredRow]:
    """The namespace's live schedules in these shards behind an id, in the order of ids: the first `limit`."""
    name = schedules_of(namespace)
    first, last = behind(schedule_key(name, after_id)), schedule_key(name) + b"\xff"
    rows: list[StoredRow] = []
    while len(rows) < limit:
        wanted = limit - len(rows)

        async def of_shard(shard_id: int, first: bytes = first, wanted: int = wanted) -> list[_Listed]:
            page = await client.read(RANGE, client.partition(partition_of(shard_id)), first, last, wanted)
            return [_Listed(key, shard_id, value) for key, value in page]

        pages = await client.in_parallel(of_shard, sorted(set(shards)))
        entries = sorted(each for page in pages for each in page)[:wanted]
        for each in entries:
            row = await _schedule(client, name, each)
            if row is not None:
                rows.append(row)
        if len(entries) < wanted:
            break
        first = behind(entries[-1].key)
    return rows


async def _schedule(client: CassandraClient, name: str, listed: _Listed) -> StoredRow | None:
    """The entry's schedule; None if it has ended, or the entry is damaged. The entry of one that has ended is removed, unless
    it was written again since."""
    entry = schedule_entry_of(listed.value)
    if entry is None:
        return None
    key = timer_key(entry.uuid)
    found, damaged = await rows_by_key(client, listed.shard_id, [key])
    if key in damaged:
        left = row_or_damaged(key, damaged[key].value)
        return (
            left._replace(namespace=name, timer_id=schedule_id_of(listed.key)) if isinstance(left, StoredRow) else None
        )
    row = found.get(key)
    if isinstance(row, StoredRow) and schedule_key(row.namespace, row.timer_id) == listed.key and row.namespace == name:
        return row
    await delete_entries(client, listed.shard_id, [(listed.key, listed.value)])
    return None
