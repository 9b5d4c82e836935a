"""Reads of timers, shards and members, on the primary, of what a majority has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from bson import Int64
from pymongo.asynchronous.command_cursor import AsyncCommandCursor

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
from tocsin.sql.keys import INSTANT_MAX, INSTANT_MIN, UUID_MAX, UUID_MIN, above, at_most
from tocsin.sql.rows import cut, found_of
from tocsin.stores.client_store import ClientStore
from tocsin.stores.lists import READ_ROWS_MAX, newest_runs
from tocsin.stores.mongodb.client import Document, MongoClient, Session
from tocsin.stores.mongodb.documents import (
    failure_row,
    history_row,
    of_timer,
    run_row,
    shard_state,
    stored_row,
    timer_id,
    uuid_binary,
)
from tocsin.stores.orders import SUSPENDED

R = TypeVar("R")

#: How the cursor of a page of ends begins, before a uuid and generation.
_HISTORY, _RUNS = b"h", b"r"
_BY_KEY = [("at", 1), ("uuid", 1)]


def key_ranges(first: tuple[int, bytes], last: tuple[int, bytes]) -> list[Document]:
    """The conditions on `at` and `uuid` for first ≤ key ≤ last, in order. Each is one range of an index, which a condition
    with alternatives would not be."""
    (begin, least), (end, most) = first, last
    if begin == end:
        return [{"at": Int64(begin), "uuid": {"$gte": uuid_binary(least), "$lte": uuid_binary(most)}}]
    ranges: list[Document] = [instants_between(begin, end, begins=least == UUID_MIN, ends=most == UUID_MAX)]
    if least != UUID_MIN:
        ranges.insert(0, {"at": Int64(begin), "uuid": {"$gte": uuid_binary(least)}})
    if most != UUID_MAX:
        ranges.append({"at": Int64(end), "uuid": {"$lte": uuid_binary(most)}})
    return ranges


def instants_between(begin: int, end: int, *, begins: bool = True, ends: bool = True) -> Document:
    """The condition on `at` for the instants from `begin` to `end`, with the first if it `begins` there, and with the last if
    it `ends` there."""
    condition: Document = {}
    if not begins or begin > INSTANT_MIN:
        condition["$gte" if begins else "$gt"] = Int64(begin)
    if not ends or end < INSTANT_MAX:
        condition["$lte" if ends else "$lt"] = Int64(end)
    return {"at": condition} if condition else {}


async def _newest(
    client: MongoClient, session: Session, shard_id: int, uuids: Sequence[bytes]
) -> AsyncCommandCursor[Document]:
    """The newest finished row of each uuid, in the order of the index."""
    return await client.collection("history").aggregate(
        [
            {"$match": {"shard": shard_id, "uuid": {"$in": [uuid_binary(uuid) for uuid in uuids]}}},
            {"$sort": {"shard": 1, "uuid": 1, "generation": -1}},
            {"$group": {"_id": "$uuid", "newest": {"$first": "$$ROOT"}}},
        ],
        session=session,
    )


async def in_ranges(
    client: MongoClient,
    session: Session,
    name: str,
    ranges: Iterable[Document],
    sort: list[tuple[str, int]],
    limit: int,
    decode: Callable[[Document], R],
) -> list[R]:
    """The first rows of a collection in these ranges of an index, which are in order."""
    rows: list[R] = []
    for query in ranges:
        if len(rows) < limit:
            cursor = client.collection(name).find(query, session=session, sort=sort, limit=limit - len(rows))
            rows += [decode(document) async for document in cursor]
    return rows


async def _all(client: MongoClient, name: str) -> list[Document]:
    return await client.read(lambda session: client.collection(name).find(session=session, sort=[("_id", 1)]).to_list())


class MongoReads(ClientStore[MongoClient]):
    """A store's reads of timers, shards and members."""

    async def _page(self, kind: bytes, shard_id: int, after: FireKey, last: FireKey, limit: int) -> Loaded:
        """One page of live or suspended rows with after < key ≤ last, from a snapshot: at most `limit`, and about
        `read_bytes_max`."""
        client = self._open
        begin, end = above(after), at_most(last)
        if begin is None or end is None or begin > end:
            return Loaded([], last)
        ranges = [{"shard": shard_id, "suspended": kind == SUSPENDED, **each} for each in key_ranges(begin, end)]

        async def page(session: Session) -> Loaded:
            rows: list[StoredRow] = []
            bytes_left = client.options.read_bytes_max
            for query in ranges:
                wanted = limit + 1 - len(rows)
                cursor = client.collection("timers").find(
                    query, session=session, sort=_BY_KEY, limit=wanted, batch_size=wanted
                )
                async with cursor:
                    async for document in cursor:
                        if len(rows) == limit or (rows and bytes_left <= 0):
                            return Loaded(rows, rows[-1].key)
                        row = stored_row(document)
                        rows.append(row)
                        bytes_left -= len(row.record)
            return Loaded(rows, last)

        return await client.snapshot(page)

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any document is absent. Live rows are read first, so that a timer that
        finishes in between is found as one or the other."""
        client = self._open

        async def found(session: Session) -> dict[bytes, Found]:
            rows: list[StoredRow | HistoryRow] = []
            asked = list(dict.fromkeys(uuids))
            for some in cut(asked):
                query = {"_id": {"$in": [timer_id(shard_id, uuid) for uuid in some]}, "shard": shard_id}
                rows += [stored_row(each) async for each in client.collection("timers").find(query, session=session)]
            for some in cut(asked):
                newest = await _newest(client, session, shard_id, some)
                rows += [history_row(each["newest"]) async for each in newest]
            return found_of(rows, asked)

        return await client.read(found)

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> list[HistoryRow | RunRow]:
        """Finished rows and runs of one timer with generation < before, greatest generation first: a few, whose sizes are not
        known before."""
        client = self._open
        limit = min(limit, READ_ROWS_MAX)
        query = of_timer(shard_id, uuid, before)

        async def of_kind(name: str, session: Session) -> list[Document]:
            cursor = client.collection(name).find(query, session=session, sort=[("generation", -1)], limit=limit)
            return await cursor.to_list()

        async def both(session: Session) -> list[HistoryRow | RunRow]:
            finished = [history_row(document) for document in await of_kind("history", session)]
            return [*finished, *(run_row(document) for document in await of_kind("runs", session))]

        return newest_runs(await client.snapshot(both), limit, bytes_max)

    async def ends(self, shard_id: int, cursor: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX) -> Ends:
        """A page of a shard's finished rows, and then of its runs, in the order of the index by timer: those of a timer from
        the newest on."""
        client, limit, cursor = self._open, min(limit, READ_ROWS_MAX), cursor or _HISTORY
        kind, uuid, generation = cursor[:1], cursor[1:17], cursor[17:]
        name = "history" if kind == _HISTORY else "runs"
        ended: Callable[[Document], HistoryRow | RunRow] = history_row if kind == _HISTORY else run_row
        ranges: list[Document] = [{"shard": shard_id}]
        if uuid:
            after = uuid_binary(uuid)
            ranges = [
                {"shard": shard_id, "uuid": after, "generation": {"$lt": generation}},
                {"shard": shard_id, "uuid": {"$gt": after}},
            ]
        sort = [("uuid", 1), ("generation", -1)]
        found = await client.read(lambda session: in_ranges(client, session, name, ranges, sort, limit, ended))
        rows = [*within(bytes_max, found)]
        if len(found) < limit and len(rows) == len(found):
            return Ends(rows, _RUNS if kind == _HISTORY else None)
        return Ends(rows, kind + rows[-1].uuid + rows[-1].generation)

    async def failures(
        self, shard_id: int, after: FailurePlace | None, limit: int, *, descending: bool = False
    ) -> list[FailureRow]:
        """A shard's failures behind a place, or in the opposite order before it: range by range of the index."""
        client, than, order = self._open, "$lt" if descending else "$gt", -1 if descending else 1
        ranges: list[Document] = [{"shard": shard_id}]
        if after is not None:
            at, uuid, generation = Int64(after[0]), uuid_binary(after[1]), after[2]
            ranges = [
                {"shard": shard_id, "at": at, "uuid": uuid, "generation": {than: generation}},
                {"shard": shard_id, "at": at, "uuid": {than: uuid}},
                {"shard": shard_id, "at": {than: at}},
            ]
        sort = [(name, order) for name in ("at", "uuid", "generation")]
        return await client.read(
            lambda session: in_ranges(client, session, "failures", ranges, sort, limit, failure_row)
        )

    async def shards(self) -> list[ShardState]:
        """Every shard that was ever claimed, by number, without those whose documents are damaged."""
        states = [shard_state(document) for document in await _all(self._open, "shards")]
        return [state for state in states if state is not None]

    async def members(self) -> list[Member]:
        """All members."""
        return [_member(document) for document in await _all(self._open, "members")]


def _member(document: Document) -> Member:
    node, address = str(document.get("node", "")), str(document.get("address", ""))
    return Member(bytes(document["_id"]), node, address, int(document.get("counter", 0)))
