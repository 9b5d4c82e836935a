"""Lists of timers and schedules. A call reads from one snapshot.

A step finds where the next rows of live and suspended timers, and those of finished ones, end, from the indexes alone. Then it
reads the matching rows up to there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson import Int64

from tocsin.ports.store import GENERATION_END, HistoryRow, ListCursor, Listed, ListQuery, StoredRow, schedules_of
from tocsin.sql.listing import Walk, place_of
from tocsin.sql.rows import HISTORY
from tocsin.stores.mongodb.client import Document, MongoClient, Session
from tocsin.stores.mongodb.documents import history_row, stored_row, uuid_binary

_CODE_POINT_MAX = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


async def list_rows(client: MongoClient, query: ListQuery) -> Listed:
    """A page of one namespace's timers, live and finished."""
    walk = Walk(query, client.settings.read_bytes_max)
    if walk.goes_on:
        # A transaction that is repeated begins anew.
        return await client.snapshot(
            lambda session: _walked(client, session, Walk(query, client.settings.read_bytes_max))
        )
    return walk.listed()


async def _walked(client: MongoClient, session: Session, walk: Walk) -> Listed:
    sources = _sources(walk)
    while walk.goes_on:
        ends: list[ListCursor] = []
        for source in sources:
            end = await source.end(client, session, walk)
            ends += [end] * (0 if end is None else source.ranges)
        last = min(ends, default=None)
        pages = [await source.rows(client, session, walk, last) for source in sources]
        cuts = [place_of(rows[-1]) for rows, cut in pages if cut]
        # Where a page was cut, the other's rows behind it must wait.
        cut = min(cuts, default=None)
        matched = sorted(
            (row for rows, _ in pages for row in rows if cut is None or place_of(row) <= cut), key=place_of
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
        self._sort = [(field, 1) for field in fields]
        self._places: Document = {"shard": {"$in": walk.shards}}
        if not finished:
            self._places["suspended"] = {"$in": [False, True]}
        self._matching: Document = _matching(walk, finished=finished)

    def _between(self, walk: Walk, end: ListCursor | None) -> Document:
        """Documents behind the walk's place, up to `end` or the last instant. Of timers, the one at the place may be among
        them: the index does not have its generation."""
        at, uuid, generation = walk.place
        last = walk.last if end is None else min(end[0], walk.last)
        parts: list[Document] = [{**self._places, "at": {"$gte": Int64(at), "$lte": Int64(last)}}]
        if uuid:
            here: list[Document] = [{"at": Int64(at), "uuid": {"$gt" if self._finished else "$gte": uuid_binary(uuid)}}]
            if self._finished:
                here.append({"at": Int64(at), "uuid": uuid_binary(uuid), "generation": {"$gt": generation}})
            parts.append({"$or": [{"at": {"$gt": Int64(at)}}, *here]})
        if end is not None:
            # All generations of the end's uuid are included.
            parts.append({"$or": [{"at": {"$lt": Int64(end[0])}}, {"uuid": {"$lte": uuid_binary(end[1])}}]})
        return {"$and": parts}

    async def end(self, client: MongoClient, session: Session, walk: Walk) -> ListCursor | None:
        """A position behind which more documents follow than one step may read; None if there are not so many."""
        cursor = client.collection(self._name).find(
            self._between(walk, None),
            projection={"_id": 0, "at": 1, "uuid": 1},
            session=session,
            sort=self._sort,
            skip=walk.span * self.ranges,
            limit=1,
            hint="by_instant",
        )
        found = await cursor.to_list()
        return (int(found[0]["at"]), bytes(found[0]["uuid"]), GENERATION_END) if found else None

    async def rows(
        self, client: MongoClient, session: Session, walk: Walk, end: ListCursor | None
    ) -> tuple[list[StoredRow | HistoryRow], bool]:
        """The matching rows up to the end, and whether some are missing because the page has no room for them."""
        rows: list[StoredRow | HistoryRow] = []
        bytes_left, wanted = walk.bytes_left, walk.rows_left
        cursor = client.collection(self._name).find(
            {"$and": [self._between(walk, end), self._matching]},
            session=session,
            sort=self._sort,
            limit=wanted + 2,
            hint="by_instant",
        )
        async with cursor as found:
            async for document in found:
                row = history_row(document) if self._finished else stored_row(document)
                if place_of(row) <= walk.place:
                    continue
                if rows and (len(rows) >= wanted or bytes_left <= 0):
                    return rows, True
                rows.append(row)
                bytes_left -= len(row.record)
        return rows, False


def _sources(walk: Walk) -> list[_Source]:
    return [_Source(walk, finished=False)] * bool(walk.kinds) + [_Source(walk, finished=True)] * bool(walk.finished)


def _matching(walk: Walk, *, finished: bool) -> Document:
    """The condition on namespace, id, tags and status."""
    query = walk.query
    condition: dict[str, Any] = {"namespace": query.namespace}
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


async def list_schedules(
    client: MongoClient, namespace: str, shards: Sequence[int], after_id: str, limit: int
) -> list[StoredRow]:
    """The namespace's live schedules in these shards behind an id, in the order of ids: the first `limit`."""
    query = {
        "namespace": schedules_of(namespace),
        "timer_id": {"$gt": after_id},
        # The index has schedules only.
        "schedule": True,
        "shard": {"$in": sorted(set(shards))},
    }

    async def found(session: Session) -> list[StoredRow]:
        cursor = client.collection("timers").find(
            query, session=session, sort=[("namespace", 1), ("timer_id", 1)], limit=limit, hint="schedules"
        )
        return [stored_row(document) for document in await cursor.to_list()]

    return await client.read(found)
