"""Reads of timers, shards and members, on the primary, of what a majority has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson import Int64, MaxKey

from tocsin.ports.store import FireKey, Found, HistoryRow, Loaded, Member, RunRow, ShardState, StoredRow
from tocsin.sql.keys import INSTANT_MAX, above
from tocsin.stores.mongodb.client import Document, MongoClient, Session
from tocsin.stores.mongodb.documents import (
    history_row,
    ids_of,
    run_row,
    stored_row,
    timer_id,
    uuid_binary,
)
from tocsin.stores.mongodb.schema import BY_INSTANT

_ASCENDING = [(field, 1) for field in BY_INSTANT]
#: Uuids in one query.
_UUIDS_MAX = 1_000


async def load(
    client: MongoClient, shard_id: int, after: FireKey, up_to: FireKey, limit: int, *, suspended: bool
) -> Loaded:
    """One page of live or suspended rows with after < key ≤ up_to: at most `limit`, and about `read_bytes_max`."""
    first = above(after)
    if first is None or after >= up_to:
        return Loaded([], up_to)
    begin, end = _bound(shard_id, suspended, first), _bound(shard_id, suspended, above(up_to))
    if up_to[1] == b"":
        # A key without a uuid is below all rows of its instant.
        end = _bound(shard_id, suspended, up_to)

    async def page(session: Session) -> Loaded:
        rows: list[StoredRow] = []
        bytes_left = client.settings.read_bytes_max
        # With `min` and `max` the range is the index's own, exactly; no query plan is chosen.
        cursor = client.collection("timers").find(session=session, limit=limit + 1, batch_size=limit + 1)
        async with cursor.hint("by_instant").sort(_ASCENDING).min(begin).max(end) as found:
            async for document in found:
                if len(rows) == limit or (rows and bytes_left <= 0):
                    return Loaded(rows, rows[-1].key if rows else after)
                row = stored_row(document)
                rows.append(row)
                bytes_left -= len(row.record)
        return Loaded(rows, up_to)

    return await client.snapshot(page)


def _bound(shard_id: int, suspended: bool, key: FireKey | None) -> list[tuple[str, Any]]:
    """A position in the index; behind all rows for None."""
    at, uuid = (INSTANT_MAX, MaxKey()) if key is None else (key[0], uuid_binary(key[1] or bytes(16)))
    return list(zip(BY_INSTANT, (shard_id, suspended, Int64(at), uuid), strict=True))


async def fetch(client: MongoClient, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
    """What is stored for each uuid; a uuid without any document is absent. Live rows are read first, so that a timer that
    finishes meanwhile is found as one or the other."""

    async def found(session: Session) -> dict[bytes, Found]:
        live: dict[bytes, StoredRow] = {}
        asked = list(dict.fromkeys(uuids))
        for begin in range(0, len(asked), _UUIDS_MAX):
            ids = [timer_id(shard_id, uuid) for uuid in asked[begin : begin + _UUIDS_MAX]]
            query = {"_id": {"$in": ids}, "shard": shard_id}
            async for document in client.collection("timers").find(query, session=session):
                row = stored_row(document)
                live[row.uuid] = row
        result = {}
        for uuid in asked:
            found = Found(live.get(uuid), await _newest(client, session, shard_id, uuid))
            if found != (None, None):
                result[uuid] = found
        return result

    return await client.read(found)


async def _newest(client: MongoClient, session: Session, shard_id: int, uuid: bytes) -> HistoryRow | None:
    query = {"_id": ids_of(shard_id, uuid), "shard": shard_id}
    document = await client.collection("history").find_one(query, session=session, sort=[("_id", -1)])
    return None if document is None else history_row(document)


async def runs(
    client: MongoClient, shard_id: int, uuid: bytes, before: bytes | None, limit: int
) -> list[HistoryRow | RunRow]:
    """Finished rows and runs of one timer with generation < before, greatest generation first."""
    query = {"_id": ids_of(shard_id, uuid, before), "shard": shard_id}

    async def of_kind(name: str, session: Session) -> list[Document]:
        cursor = client.collection(name).find(query, session=session, sort=[("_id", -1)], limit=limit)
        return await cursor.to_list()

    async def both(session: Session) -> list[HistoryRow | RunRow]:
        finished = [history_row(document) for document in await of_kind("history", session)]
        return [*finished, *(run_row(document) for document in await of_kind("runs", session))]

    return sorted(await client.snapshot(both), key=lambda row: row.generation, reverse=True)[:limit]


async def shards(client: MongoClient) -> list[ShardState]:
    """Every shard that was ever claimed, by number."""
    documents = await _all(client, "shards")
    return [ShardState(each["_id"], int(each["epoch"]), _optional(each["owner"])) for each in documents]


async def members(client: MongoClient) -> list[Member]:
    """All members."""
    documents = await _all(client, "members")
    return [Member(bytes(each["_id"]), each["node"], each["address"], int(each["counter"])) for each in documents]


async def _all(client: MongoClient, name: str) -> list[Document]:
    return await client.read(
        lambda session: client.collection(name).find(session=session, sort=[("_id", 1)]).to_list()
    )


def _optional(owner: bytes | None) -> bytes | None:
    return None if owner is None else bytes(owner)
