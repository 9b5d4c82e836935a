"""Reads of timers, shards and members, on the primary, of what a majority has."""

from __future__ import annotations

from collections.abc import Sequence

from bson import Int64
from pymongo.asynchronous.command_cursor import AsyncCommandCursor

from tocsin.ports.store import FireKey, Found, HistoryRow, Loaded, Member, RunRow, ShardState, StoredRow
from tocsin.sql.keys import INSTANT_MAX, INSTANT_MIN, UUID_MAX, UUID_MIN, above, at_most
from tocsin.sql.rows import cut
from tocsin.stores.lists import READ_ROWS_MAX, newest_runs
from tocsin.stores.mongodb.client import Document, MongoClient, Session
from tocsin.stores.mongodb.documents import (
    history_row,
    of_timer,
    run_row,
    shard_state,
    stored_row,
    timer_id,
    uuid_binary,
)

_BY_KEY = [("at", 1), ("uuid", 1)]


async def load(
    client: MongoClient, shard_id: int, after: FireKey, up_to: FireKey, limit: int, *, suspended: bool
) -> Loaded:
    """One page of live or suspended rows with after < key ≤ up_to: at most `limit`, and about `read_bytes_max`."""
    first, last = above(after), at_most(up_to)
    if first is None or last is None or first > last:
        return Loaded([], up_to)
    ranges = [{"shard": shard_id, "suspended": suspended, **each} for each in key_ranges(first, last)]

    async def page(session: Session) -> Loaded:
        rows: list[StoredRow] = []
        bytes_left = client.settings.read_bytes_max
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
        return Loaded(rows, up_to)

    return await client.snapshot(page)


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


async def fetch(client: MongoClient, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
    """What is stored for each uuid; a uuid without any document is absent. Live rows are read first, so that a timer that
    finishes in between is found as one or the other."""

    async def found(session: Session) -> dict[bytes, Found]:
        live: dict[bytes, StoredRow] = {}
        asked = list(dict.fromkeys(uuids))
        for some in cut(asked):
            query = {"_id": {"$in": [timer_id(shard_id, uuid) for uuid in some]}, "shard": shard_id}
            async for document in client.collection("timers").find(query, session=session):
                row = stored_row(document)
                live[row.uuid] = row
        finished: dict[bytes, HistoryRow] = {}
        for some in cut(asked):
            async for document in await _newest(client, session, shard_id, some):
                ended = history_row(document["newest"])
                finished[ended.uuid] = ended
        both = {uuid: Found(live.get(uuid), finished.get(uuid)) for uuid in asked}
        return {uuid: each for uuid, each in both.items() if each != (None, None)}

    return await client.read(found)


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


async def runs(
    client: MongoClient, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int
) -> list[HistoryRow | RunRow]:
    """Finished rows and runs of one timer with generation < before, greatest generation first: a few, whose sizes are not
    known before."""
    limit = min(limit, READ_ROWS_MAX)
    query = of_timer(shard_id, uuid, before)

    async def of_kind(name: str, session: Session) -> list[Document]:
        cursor = client.collection(name).find(query, session=session, sort=[("generation", -1)], limit=limit)
        return await cursor.to_list()

    async def both(session: Session) -> list[HistoryRow | RunRow]:
        finished = [history_row(document) for document in await of_kind("history", session)]
        return [*finished, *(run_row(document) for document in await of_kind("runs", session))]

    return newest_runs(await client.snapshot(both), limit, bytes_max)


async def shards(client: MongoClient) -> list[ShardState]:
    """Every shard that was ever claimed, by number, without those whose documents are damaged."""
    states = [shard_state(document) for document in await _all(client, "shards")]
    return [state for state in states if state is not None]


async def members(client: MongoClient) -> list[Member]:
    """All members."""
    documents = await _all(client, "members")
    return [
        Member(bytes(each["_id"]), str(each.get("node", "")), str(each.get("address", "")), int(each.get("counter", 0)))
        for each in documents
    ]


async def _all(client: MongoClient, name: str) -> list[Document]:
    return await client.read(lambda session: client.collection(name).find(session=session, sort=[("_id", 1)]).to_list())
