"""Lists over Cassandra: of timers, along the entries of the orders, and of schedules.

Entries are read page by page and filtered here; Cassandra would read as much to filter them. Then the rows of the chosen
entries are read, and those that have changed since are dropped. A timer whose entry is damaged may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from tocsin.model.timer import Status
from tocsin.ports.store import HistoryRow, Listed, ListQuery, StoredRow, schedules_of
from tocsin.stores.cassandra.client import CassandraClient, Row
from tocsin.stores.cassandra.keys import (
    SCHEDULES_BEGIN,
    SCHEDULES_END,
    history_key,
    schedule_id_of,
    schedule_key,
    timer_key,
)
from tocsin.stores.cassandra.reads import RANGE, RANGE_DESCENDING, delete_entries, rows_by_key
from tocsin.stores.cassandra.rows import Entry, entry_of, row_or_damaged, schedule_entry_of
from tocsin.stores.client_store import ClientStore
from tocsin.stores.lists import Match, Page, merge
from tocsin.stores.orders import FINISHED, behind, fire_key_of, place_of_key


class _Key(NamedTuple):
    """The shard and key of a row, and an entry (key and value) that leads to it."""

    shard_id: int
    key: bytes
    order: Row


async def _read(
    client: CassandraClient, query: ListQuery, shard_id: int, kind: bytes, first: bytes, last: bytes, limit: int
) -> Page[_Key]:
    """The matching entries among the first `limit` of a range."""
    if query.descending:
        rows = await client.read(RANGE_DESCENDING, client.shard(shard_id), first, behind(last), limit)
    else:
        rows = await client.read(RANGE, client.shard(shard_id), first, last, limit)
    matches = []
    for key, value in rows:
        entry = entry_of(value)
        if entry is not None and _matches(query, entry):
            at, uuid = fire_key_of(key)
            leads_to = history_key(uuid, entry.generation) if kind == FINISHED else timer_key(uuid)
            matches.append(Match((at, uuid, entry.generation), _Key(shard_id, leads_to, (key, value))))
    reached = place_of_key(rows[-1][0], descending=query.descending) if len(rows) == limit else None
    return Page(matches, reached, len(rows))


async def _rows(client: CassandraClient, keys: Sequence[_Key]) -> list[StoredRow | HistoryRow | None]:
    """The rows of these keys; damaged ones as far as keys and entries have them."""
    of_shards: dict[int, list[bytes]] = {}
    for each in keys:
        of_shards.setdefault(each.shard_id, []).append(each.key)
    read = {shard_id: await rows_by_key(client, shard_id, some) for shard_id, some in of_shards.items()}
    rows: list[StoredRow | HistoryRow | None] = []
    for shard_id, key, order in keys:
        damaged = read[shard_id].damaged.get(key)
        rows.append(read[shard_id].found.get(key) if damaged is None else damaged.row(key, *order))
    return rows


def _matches(query: ListQuery, entry: Entry) -> bool:
    return (
        query.covers(entry.namespace)
        and Status(entry.status) in query.statuses
        and entry.timer_id.startswith(query.id_prefix)
        and all(tag in entry.tags for tag in query.tags)
    )


class _Listed(NamedTuple):
    """An entry of the list of schedules. Sorts by id."""

    key: bytes
    shard_id: int
    value: bytes


async def _schedule(client: CassandraClient, name: str | None, listed: _Listed) -> StoredRow | None:
    """The entry's schedule; None if it has ended, or the entry is damaged. The entry of one that has ended is removed, unless
    it was written again since. `name` is the one under which it is stored; None: any, and then without damaged ones."""
    entry = schedule_entry_of(listed.value)
    if entry is None:
        return None
    key = timer_key(entry.uuid)
    found, damaged = await rows_by_key(client, listed.shard_id, [key])
    if key in damaged:
        left = row_or_damaged(key, damaged[key].value)
        if name is None or not isinstance(left, StoredRow):
            return None
        return left._replace(namespace=name, timer_id=schedule_id_of(listed.key))
    row = found.get(key)
    if isinstance(row, StoredRow) and schedule_key(row.namespace, row.timer_id) == listed.key:
        return row if name in (None, row.namespace) else None
    await delete_entries(client, listed.shard_id, [(listed.key, listed.value)])
    return None


class CassandraLists(ClientStore[CassandraClient]):
    """A store's lists of timers and schedules. None is a snapshot."""

    async def list_schedules(self, namespace: str, shards: Sequence[int], after_id: str, limit: int) -> list[StoredRow]:
        """The namespace's live schedules in these shards behind an id, in the order of ids: the first `limit`."""
        name = schedules_of(namespace)
        first, last = behind(schedule_key(name, after_id)), schedule_key(name) + b"\xff"
        return await self._schedules(name, shards, first, last, limit)

    async def list_all_schedules(
        self, shards: Sequence[int], after: tuple[str, str] | None, limit: int
    ) -> list[StoredRow]:
        """All live schedules in these shards behind a namespace and id, by the hashes of namespaces and the ids."""
        first = SCHEDULES_BEGIN if after is None else behind(schedule_key(schedules_of(after[0]), after[1]))
        return await self._schedules(None, shards, first, SCHEDULES_END, limit)

    async def _schedules(
        self, name: str | None, shards: Sequence[int], first: bytes, last: bytes, limit: int
    ) -> list[StoredRow]:
        client = self._open
        rows: list[StoredRow] = []
        while len(rows) < limit:
            wanted = limit - len(rows)

            async def of_shard(shard_id: int, first: bytes = first, wanted: int = wanted) -> list[_Listed]:
                page = await client.read(RANGE, client.shard(shard_id), first, last, wanted)
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

    async def list(self, query: ListQuery) -> Listed:
        """A page of timers, live and finished, in the order of the query."""
        client = self._open
        read, rows_of = partial(_read, client, query), partial(_rows, client)
        return await merge(client, query, read, rows_of, client.options.page_rows_max)
