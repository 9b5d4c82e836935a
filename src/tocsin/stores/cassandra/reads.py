"""Reads of timers, shards and members, all from a quorum. Each row is read as of a commit that was durable when the call
began, or of a later one. Entries and the rows that they lead to are two reads, not a snapshot, which suffices because each
shard has one writer (rule 9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from tocsin.ports.store import (
    PAGE_BYTES_MAX,
    Ends,
    FailurePlace,
    FailureRow,
    FireKey,
    Found,
    HistoryRow,
    Loaded,
    Member,
    RunRow,
    ShardState,
    StoredRow,
    within,
)
from tocsin.sql.rows import cut, found_of
from tocsin.stores.cassandra.client import CassandraClient, Row, Write
from tocsin.stores.cassandra.keys import MEMBERS, end_of, history_key, run_key, runs_begin, timer_key
from tocsin.stores.cassandra.rows import (
    DAMAGE,
    damaged_row,
    entry_of,
    failure_row_of,
    member_of,
    row_of,
    row_or_damaged,
    run_row_of,
)
from tocsin.stores.client_store import ClientStore
from tocsin.stores.lists import READ_ROWS_MAX, newest_runs
from tocsin.stores.orders import (
    FINISHED,
    LIVE,
    SUSPENDED,
    behind,
    failures_behind,
    fire_key_of,
    order_key,
    place_of_key,
)

RANGE = "SELECT k, v FROM {t} WHERE p = ? AND k >= ? AND k <= ? LIMIT ?"
RANGE_DESCENDING = "SELECT k, v FROM {t} WHERE p = ? AND k >= ? AND k < ? ORDER BY k DESC LIMIT ?"
_FAILURES = RANGE_DESCENDING.replace(" ORDER BY k DESC", "")
KEYS = "SELECT k, v FROM {t} WHERE p = ? AND k IN ?"


class Damaged(NamedTuple):
    """A value that can't be decoded, and why."""

    value: bytes | None
    error: Exception

    def row(self, key: bytes, order: bytes, entry: bytes) -> StoredRow | HistoryRow:
        """What is left of the row: its key's part, and that of an entry of an order (key and value) that leads to it."""
        return damaged_row(key, self.value, self.error, order, entry_of(entry))


class Rows(NamedTuple):
    """Rows by their keys, and apart from them the values that are damaged."""

    found: dict[bytes, StoredRow | HistoryRow]
    damaged: dict[bytes, Damaged]


async def rows_by_key(client: CassandraClient, shard_id: int, keys: Iterable[bytes]) -> Rows:
    """The rows of these keys of timers, live and finished."""
    keys, partition, size = list(keys), client.shard(shard_id), client.options.keys_max
    if not keys:
        return Rows({}, {})
    read = partial(client.read, KEYS, partition)
    pages = await client.in_parallel(read, cut(keys, size))
    try:
        return Rows({key: row_of(key, value) for page in pages for key, value in page}, {})
    except DAMAGE:
        return _decoded_singly(row for page in pages for row in page)


def _decoded_singly(values: Iterable[Row]) -> Rows:
    """Rule 15: a damaged row keeps no other from being read."""
    rows = Rows({}, {})
    for key, value in values:
        try:
            rows.found[key] = row_of(key, value)
        except DAMAGE as error:
            rows.damaged[key] = Damaged(value, error)
    return rows


def _damaged_rows(entries: Iterable[Row], damaged: dict[bytes, Damaged]) -> Iterator[StoredRow]:
    """The damaged rows of these entries, each by its first one: which of them is outdated can't be known."""
    left = dict(damaged)
    for order, entry in entries:
        key = timer_key(fire_key_of(order)[1])
        if (each := left.pop(key, None)) is not None and isinstance(row := each.row(key, order, entry), StoredRow):
            yield row


def _within(bytes_max: int, entries: Sequence[Row]) -> Sequence[Row]:
    """The first entries, up to the one with which the records to which they lead have this many bytes."""
    for number, (_, value) in enumerate(entries, start=1):
        entry = entry_of(value)
        bytes_max -= 0 if entry is None else entry.record_bytes
        if bytes_max <= 0:
            return entries[:number]
    return entries


def outdated(entries: Sequence[Row], rows: Sequence[StoredRow]) -> list[Row]:
    """The entries that lead to none of these rows."""
    known = {row.key for row in rows}
    return [entry for entry in entries if fire_key_of(entry[0]) not in known]


async def delete_entries(client: CassandraClient, shard_id: int, entries: Sequence[Row]) -> None:
    """Removes these entries, unless one of them was written again since."""
    partition = client.shard(shard_id)
    statement = "DELETE FROM {t} WHERE p = ? AND k = ? IF v = ?"
    await client.write_all(Write(statement, (partition, key, value)) for key, value in entries)


class CassandraReads(ClientStore[CassandraClient]):
    """A store's reads of timers, shards and members."""

    async def _page(self, kind: bytes, shard_id: int, after: FireKey, last: FireKey, limit: int) -> Loaded:
        """One page of live or suspended rows with after < key ≤ last: at most `limit`, of which the
        records have about `read_bytes_max` bytes."""
        client = self._open
        partition = client.shard(shard_id)
        first, stop = behind(order_key(kind, *after)), order_key(kind, *last)
        limit = min(limit, client.options.page_rows_max)
        while first <= stop:
            found_entries = await client.read(RANGE, partition, first, stop, limit)
            entries = _within(client.options.read_bytes_max, found_entries)
            # An entry counts if its timer has its instant. A timer may have several, of which the others are outdated.
            keys = {timer_key(fire_key_of(key)[1]) for key, _ in entries}
            found, damaged = await rows_by_key(client, shard_id, keys)
            rows = [
                row
                for key, _ in entries
                if isinstance(row := found.get(timer_key(fire_key_of(key)[1])), StoredRow)
                and row.key == fire_key_of(key)
                and (row.suspended is None) == (kind == LIVE)
            ]
            if damaged:
                rows = sorted([*rows, *_damaged_rows(entries, damaged)])
            if kind == SUSPENDED and len(rows) < len(entries) and not damaged:
                # No range delete ever covers them.
                await delete_entries(client, shard_id, outdated(entries, rows))
            if len(entries) == len(found_entries) < limit:
                return Loaded(rows, last)
            if rows:
                # Outdated entries are passed as well: completeness never follows from the number of rows.
                return Loaded(rows, fire_key_of(entries[-1][0]))
            first = behind(entries[-1][0])
        return Loaded([], last)

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent. In descending order a timer's live row is first,
        and then its newest finished one."""
        client = self._open
        partition = client.shard(shard_id)

        async def of_timer(uuid: bytes) -> list[Row]:
            return await client.read(RANGE_DESCENDING, partition, history_key(uuid), behind(timer_key(uuid)), 2)

        pages = await client.in_parallel(of_timer, dict.fromkeys(uuids))
        # Of two finished rows the newer one counts.
        return found_of((row_or_damaged(key, value) for page in pages for key, value in reversed(page)), uuids)

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> list[HistoryRow | RunRow]:
        """Finished rows and runs of one timer with generation < before, greatest generation first: a few, whose sizes are not
        known before."""
        client = self._open
        limit = min(limit, READ_ROWS_MAX)
        partition = client.shard(shard_id)
        pages = await client.in_parallel(
            lambda key_of: client.read(
                RANGE_DESCENDING,
                partition,
                key_of(uuid),
                end_of(key_of(uuid)) if before is None else key_of(uuid, before),
                limit,
            ),
            [history_key, run_key],
        )
        rows: list[HistoryRow | RunRow] = [
            row for key, value in pages[0] if isinstance(row := row_or_damaged(key, value), HistoryRow)
        ]
        rows += [run_row_of(key, value) for key, value in pages[1]]
        return newest_runs(rows, limit, bytes_max)

    async def ends(self, shard_id: int, cursor: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX) -> Ends:
        """A page of a shard's finished rows, in the order of their entries, and then of its runs, by uuid and generation."""
        client, limit = self._open, min(limit, READ_ROWS_MAX)
        first = behind(cursor) if cursor else FINISHED
        finished = first.startswith(FINISHED)
        end = end_of(FINISHED if finished else runs_begin())
        page = await client.read(RANGE, client.shard(shard_id), first, end, limit)
        keys = [key for key, _ in page]
        rows: list[HistoryRow | RunRow]
        if finished:
            places = {key: history_key(*place_of_key(key)[1:]) for key in keys}
            found, damaged = await rows_by_key(client, shard_id, places.values())
            every = {
                key: found.get(place) or (damaged[place].row(place, key, value) if place in damaged else None)
                for (key, place), (_, value) in zip(places.items(), page, strict=True)
            }
            kept = {key: row for key, row in every.items() if isinstance(row, HistoryRow)}
            rows = [*within(bytes_max, [*kept.values()])]
            cut_short = len(rows) < len(kept)
            last = [*kept][len(rows) - 1] if cut_short else (keys or [FINISHED])[-1]
        else:
            runs = [run_row_of(key, value) for key, value in page]
            rows = [*within(bytes_max, runs)]
            cut_short = len(rows) < len(runs)
            last = keys[len(rows) - 1] if rows else first
        if len(page) == limit or cut_short:
            return Ends(rows, last)
        return Ends(rows, runs_begin() if finished else None)

    async def failures(
        self, shard_id: int, after: FailurePlace | None, limit: int, *, descending: bool = False
    ) -> list[FailureRow]:
        """A shard's failures behind a place, or in the opposite order before it."""
        client, statement = self._open, RANGE_DESCENDING if descending else _FAILURES
        rows = await client.read(
            statement, client.shard(shard_id), *failures_behind(after, descending=descending), limit
        )
        return [failure_row_of(key, value) for key, value in rows]

    async def shards(self) -> list[ShardState]:
        """Every shard that was ever claimed, by number."""
        client = self._open
        numbers = {client.shard(shard_id): shard_id for shard_id in range(self._total_shards)}
        read = partial(client.read, "SELECT DISTINCT p, epoch, owner FROM {t} WHERE p IN ?")
        pages = await client.in_parallel(read, cut(list(numbers), client.options.keys_max))
        return sorted(
            ShardState(numbers[p], epoch, owner) for page in pages for p, epoch, owner in page if epoch is not None
        )

    async def members(self) -> list[Member]:
        """All members' rows."""
        client = self._open
        rows = await client.read("SELECT k, v, n FROM {t} WHERE p = ?", client.partition(MEMBERS))
        return [member_of(key, value, counter) for key, value, counter in rows]
