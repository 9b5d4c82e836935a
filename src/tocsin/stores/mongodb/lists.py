"""Lists of timers and schedules. A call reads from one snapshot.

A step finds, from the indexes alone, where the next rows of live and suspended timers end, and those of finished ones. Then
it reads the matching rows up to there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson import Int64, Regex

from tocsin.ports.store import (
    GENERATION_END,
    GENERATION_LOST,
    HistoryRow,
    ListCursor,
    Listed,
    ListQuery,
    StoredRow,
    schedules_of,
)
from tocsin.sql.rows import HISTORY
from tocsin.stores.client_store import ClientStore
from tocsin.stores.lists import Walk, place_of
from tocsin.stores.mongodb.client import Document, MongoClient, Session
from tocsin.stores.mongodb.documents import history_row, key_of, stored_row, uuid_binary
from tocsin.stores.mongodb.reads import in_ranges, instants_between

_CODE_POINT_MAX = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
#: Names under which other rows than timers are stored.
_WITH_SLASH = Regex("/")


async def _walked(client: MongoClient, session: Session, walk: Walk) -> Listed:
    sources = _sources(walk)
    while walk.goes_on:
        ends: list[ListCursor] = []
        for source in sources:
            end = await source.end(client, session, walk)
            if end is not None:
                ends += [end] * source.ranges
        last = walk.order.first(ends)
        pages = [await source.rows(client, session, walk, last) for source in sources]
        cuts = [place_of(rows[-1]) for rows, cut in pages if cut]
        # Where a page was cut, the other's rows behind it must wait.
        cut = walk.order.first(cuts)
        matched = walk.order.sorted(
            (row for rows, _ in pages for row in rows if walk.order.within(place_of(row), cut)), key=place_of
        )
        walk.advance(matched, ends, cut_short=cut is not None)
    return walk.listed()


class _Source:
    """The documents of all ranges of one collection, in order: those of live and suspended rows, or of finished ones."""

    def __init__(self, walk: Walk, *, finished: bool) -> None:
        self._finished = finished
        self._name = "history" if finished else "timers"
        self.ranges = sum((kind == HISTORY) == finished for _, kind in walk.ranges)
        fields = ("at", "uuid", "generation") if finished else ("at", "uuid")
        self._descending = walk.order.descending
        self._sort = [(field, -1 if self._descending else 1) for field in fields]
        self._places: Document = {"shard": {"$in": walk.shards}}
        if not finished:
            self._places["suspended"] = {"$in": [False, True]}
        self._matching: Document = _matching(walk, finished=finished)

    def _behind(self, walk: Walk, last: int) -> list[Document]:
        """The conditions for documents behind the walk's place up to an instant, in order, each one range of the index. Of
        timers, the one at the place is among them: the index does not have its generation."""
        at, uuid, generation = walk.place
        if not uuid:
            return [{**self._places, **instants_between(at, last)}]
        than = "$lt" if self._descending else "$gt"
        here: Document = {**self._places, "at": Int64(at)}
        parts: list[Document] = [{**here, "uuid": {than if self._finished else than + "e": uuid_binary(uuid)}}]
        if self._finished:
            parts.insert(0, {**here, "uuid": uuid_binary(uuid), "generation": {than: generation}})
        if self._descending and last < at:
            parts.append({**self._places, **instants_between(last, at, ends=False)})
        elif at < last:
            parts.append({**self._places, **instants_between(at, last, begins=False)})
        return parts

    async def end(self, client: MongoClient, session: Session, walk: Walk) -> ListCursor | None:
        """A position behind which more documents follow than one step may read; None if there are fewer."""
        skipped = walk.span * self.ranges
        *here, behind = self._behind(walk, walk.last)
        for query in here:
            found = await self._keys(client, session, query, 0, skipped + 1)
            if len(found) > skipped:
                return found[-1]
            skipped -= len(found)
        found = await self._keys(client, session, behind, skipped, 1)
        return found[0] if found else None

    async def _keys(
        self, client: MongoClient, session: Session, query: Document, skip: int, limit: int
    ) -> list[ListCursor]:
        """Positions behind all generations of a key, read from the index alone."""
        generation = GENERATION_LOST if self._descending else GENERATION_END
        cursor = client.collection(self._name).find(
            query, projection={"_id": 0, "at": 1, "uuid": 1}, session=session, sort=self._sort, skip=skip, limit=limit
        )
        return [(*key_of(each), generation) for each in await cursor.to_list()]

    async def rows(
        self, client: MongoClient, session: Session, walk: Walk, end: ListCursor | None
    ) -> tuple[list[StoredRow | HistoryRow], bool]:
        """The matching rows up to the end, and whether some are missing because the page has no room for them."""
        rows: list[StoredRow | HistoryRow] = []
        bytes_left, wanted = walk.bytes_left, walk.rows_left
        for query in self._behind(walk, walk.last if end is None else end[0]):
            cursor = client.collection(self._name).find(
                {**query, **self._matching}, session=session, sort=self._sort, limit=wanted + 2 - len(rows)
            )
            async with cursor:
                async for document in cursor:
                    row = history_row(document) if self._finished else stored_row(document)
                    if walk.order.within(place_of(row), walk.place):
                        continue
                    if not walk.order.within(place_of(row), end):
                        return rows, False
                    if rows and (len(rows) >= wanted or bytes_left <= 0):
                        return rows, True
                    rows.append(row)
                    bytes_left -= len(row.record)
        return rows, False


def _sources(walk: Walk) -> list[_Source]:
    return [_Source(walk, finished=False)] * bool(walk.kinds) + [_Source(walk, finished=True)] * bool(walk.finished)


def _matching(walk: Walk, *, finished: bool) -> Document:
    """The condition on namespaces, id, tags and status."""
    query = walk.query
    condition: dict[str, Any] = {"namespace": {"$not": _WITH_SLASH}}
    if query.namespaces is not None:
        condition["namespace"] = {"$in": list(query.namespaces)}
    if query.id_prefix:
        condition["timer_id"] = starting_with(query.id_prefix)
    if query.tags:
        condition["tags"] = {"$all": list(query.tags)}
    if finished:
        condition["status"] = {"$in": walk.finished}
    return condition


def starting_with(prefix: str) -> Document:
    """The condition for texts with this prefix. MongoDB compares the bytes of UTF-8, which sort as code points do."""
    head = prefix.rstrip(chr(_CODE_POINT_MAX))
    if not head:
        return {"$gte": prefix}
    following = ord(head[-1]) + 1
    if following in _SURROGATES:
        following = _SURROGATES.stop
    return {"$gte": prefix, "$lt": head[:-1] + chr(following)}


class MongoLists(ClientStore[MongoClient]):
    """A store's lists of timers and schedules."""

    async def list_schedules(self, namespace: str, shards: Sequence[int], after_id: str, limit: int) -> list[StoredRow]:
        """The namespace's live schedules in these shards behind an id, in the order of ids: the first `limit`."""
        behind = {"namespace": schedules_of(namespace), "timer_id": {"$gt": after_id}}
        return await self._schedules(shards, [behind], limit)

    async def list_all_schedules(
        self, shards: Sequence[int], after: tuple[str, str] | None, limit: int
    ) -> list[StoredRow]:
        """All live schedules in these shards behind a namespace and id, by the name under which they are stored and id."""
        if after is None:
            return await self._schedules(shards, [{}], limit)
        name, after_id = schedules_of(after[0]), after[1]
        behind: list[Document] = [
            {"namespace": name, "timer_id": {"$gt": after_id}},
            {"namespace": {"$gt": name}},
        ]
        return await self._schedules(shards, behind, limit)

    async def _schedules(self, shards: Sequence[int], parts: Sequence[Document], limit: int) -> list[StoredRow]:
        """The first schedules in the parts of the index, which are in order."""
        client, sort = self._open, [("namespace", 1), ("timer_id", 1)]
        # The index has schedules only.
        ranges = [{**part, "schedule": True, "shard": {"$in": sorted(set(shards))}} for part in parts]
        return await client.read(lambda session: in_ranges(client, session, "timers", ranges, sort, limit, stored_row))

    async def list(self, query: ListQuery) -> Listed:
        """A page of timers, live and finished."""
        client = self._open
        bytes_max = min(query.bytes_max, client.options.read_bytes_max)
        walk = Walk(query, bytes_max)
        if walk.goes_on:
            # A transaction that is repeated starts over.
            return await client.snapshot(lambda session: _walked(client, session, Walk(query, bytes_max)))
        return walk.listed()
