"""Removal of finished timers and runs."""

from __future__ import annotations

from bson import Int64

from tocsin.stores.mongodb.client import MongoClient, Session
from tocsin.stores.mongodb.documents import date_after, of_timer


async def purge_history(client: MongoClient, now_us: int, limit: int) -> int:
    """Removes up to `limit` finished timers and runs with expires_at ≤ now_us and returns how many."""
    removed = await _purge(client, "history", now_us, limit)
    return removed + await _purge(client, "runs", now_us, limit - removed)


async def _purge(client: MongoClient, name: str, now_us: int, limit: int) -> int:
    if limit <= 0:
        return 0
    # The index has milliseconds.
    expired = {"expires": {"$lte": date_after(now_us)}, "expires_at": {"$lte": Int64(now_us)}}

    async def remove(session: Session) -> int:
        collection = client.collection(name)
        cursor = collection.find(expired, projection={"_id": 1}, session=session, limit=limit)
        found = await cursor.to_list()
        if not found:
            return 0
        ids = [document["_id"] for document in found]
        # The condition again: one may have been written with a later expiry since.
        return (await collection.delete_many({"_id": {"$in": ids}, **expired}, session=session)).deleted_count

    return await client.write(remove)


async def trim_runs(client: MongoClient, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
    """Removes run rows of one uuid, smallest generations first, until `keep` are left or `limit` are removed; returns how
    many."""
    query = of_timer(shard_id, uuid)

    async def remove(session: Session) -> int:
        collection = client.collection("runs")
        more = await collection.count_documents(query, session=session) - keep
        if more <= 0:
            return 0
        cursor = collection.find(
            query, projection={"_id": 1}, session=session, sort=[("generation", 1)], limit=min(more, limit)
        )
        ids = [document["_id"] for document in await cursor.to_list()]
        return (await collection.delete_many({"_id": {"$in": ids}, "shard": shard_id}, session=session)).deleted_count

    return await client.write(remove)
