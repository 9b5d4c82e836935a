"""Writes of timers, shards and members: batches, claims, releases, heartbeats."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from bson import Int64
from pymongo import DeleteMany, InsertOne, ReplaceOne, errors

from tocsin.model.errors import DefiniteFailure
from tocsin.ports.store import Applied, FailurePlace, FireKey, Member, ShardBatch
from tocsin.sql.keys import UUID_MIN, LeftEdges, at_least, at_most
from tocsin.sql.rows import cut
from tocsin.stores.client_store import ClientStore
from tocsin.stores.mongodb.client import Conflict, Document, MongoClient, Session
from tocsin.stores.mongodb.documents import (
    date_after,
    failure_document,
    history_document,
    of_timer,
    run_document,
    shard_state,
    stored_document,
    timer_id,
    uuid_binary,
)
from tocsin.stores.mongodb.errors import Refused

_Write: TypeAlias = InsertOne[Document] | ReplaceOne[Document] | DeleteMany
#: A batch's writes in each collection.
Part: TypeAlias = dict[str, list[_Write]]

#: Timers whose rows one transaction removes: a schedule may have thousands of occurrences.
_FORGOTTEN_MAX = 20


def writes_of(batch: ShardBatch) -> Part:
    """The batch's writes in each collection, except the delete of a range. Raises DefiniteFailure for a row that does not
    fit."""
    shard_id = batch.shard_id
    timers: list[_Write] = [_replace(stored_document(shard_id, row)) for row in batch.upserts]
    if batch.deletes:
        ids = [timer_id(shard_id, uuid) for uuid in batch.deletes]
        timers.append(DeleteMany({"_id": {"$in": ids}, "shard": shard_id}))
    return {
        "timers": timers,
        "history": [_replace_ended(history_document(shard_id, row)) for row in batch.history],
        "runs": [_replace_ended(run_document(shard_id, row)) for row in batch.runs],
        "failures": [
            *(_replace_ended(failure_document(shard_id, row)) for row in batch.failures),
            *(_delete_failure(shard_id, *each) for each in batch.resolved),
        ],
    }


def _replace(document: Document) -> ReplaceOne[Document]:
    return ReplaceOne({"_id": document["_id"], "shard": document["shard"]}, document, upsert=True)


def _replace_ended(document: Document) -> ReplaceOne[Document]:
    identity = {name: document[name] for name in ("shard", "uuid", "generation")}
    return ReplaceOne(identity, document, upsert=True)


def _delete_failure(shard_id: int, uuid: bytes, generation: bytes) -> DeleteMany:
    return DeleteMany({**of_timer(shard_id, uuid), "generation": generation})


def delete_range(shard_id: int, edge: FireKey, watermark: FireKey) -> list[_Write]:
    """Deletes every row up to the watermark that is not suspended: at earlier instants, and at its own. Below the edge there
    are none."""
    last = at_most(watermark)
    if last is None:
        return []
    (first_at, first_uuid), (at, uuid) = at_least(edge), last
    live = {"shard": shard_id, "suspended": False}
    uuids = {"$gte": uuid_binary(first_uuid if first_at == at else UUID_MIN), "$lte": uuid_binary(uuid)}
    return [
        DeleteMany({**live, "at": {"$gte": Int64(first_at), "$lt": Int64(at)}}),
        DeleteMany({**live, "at": Int64(at), "uuid": uuids}),
    ]


async def _check_shard(client: MongoClient, shard_id: int) -> None:
    """Raises DefiniteFailure if the shard's document exists, but is damaged."""
    found = await client.read(lambda session: client.collection("shards").find_one({"_id": shard_id}, session=session))
    if found is not None and shard_state(found) is None:
        raise DefiniteFailure(
            f"the document of shard {shard_id} in the collection shards is damaged: it has no epoch; restore one that is not "
            "lower than the last"
        )


async def _raise_epoch(client: MongoClient, session: Session, shard_id: int, expected_epoch: int, owner: bytes) -> None:
    shards = client.collection("shards")
    claimed = {"epoch": Int64(expected_epoch + 1), "owner": owner, "session": session.session_id["id"]}
    if expected_epoch:
        found = await shards.update_one(
            {"_id": shard_id, "epoch": Int64(expected_epoch)}, {"$set": claimed}, session=session
        )
        if not found.matched_count:
            raise Refused
        return
    try:
        await shards.insert_one({"_id": shard_id, **claimed}, session=session)
    except errors.DuplicateKeyError as error:
        raise Refused from error


async def _end_former(client: MongoClient, own: Session, shard_id: int, epoch: int) -> bool:
    """Ends the session of the owner that claimed in this epoch, with its transaction. False if there is none."""
    query = {"_id": shard_id, "epoch": Int64(epoch)}
    shard = await client.read(lambda session: client.collection("shards").find_one(query, session=session))
    former = None if shard is None else shard.get("session")
    if former is None or former == own.session_id["id"]:
        return False
    await client.end_transaction_of(bytes(former))
    return True


class MongoWrites(ClientStore[MongoClient]):
    """A store's writes of timers, shards and members."""

    #: Where range deletes begin.
    _edges: LeftEdges

    def _write(self, batch: ShardBatch) -> Callable[[], Awaitable[Applied]]:
        """One transaction."""
        return partial(self._apply, batch, writes_of(batch))

    async def _claim(
        self, shard_id: int, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None
    ) -> int | None:
        """Claims the shard, and returns the new epoch, or None if the conditions no longer hold.

        A transaction of the former owner that was never committed, because its node died or froze, would be in the way until
        MongoDB ends it after a minute. Each claim records the session in which its owner writes, so that the next can end it.
        """
        client = self._open
        session = client.session_of(shard_id)

        async def work() -> None:
            await _raise_epoch(client, session, shard_id, expected_epoch, owner)
            if presumed_dead is not None:
                # A write, because a heartbeat at the same time does not conflict with a read.
                found = await client.collection("members").update_one(
                    {"_id": presumed_dead[0], "counter": Int64(presumed_dead[1])},
                    {"$inc": {"presumed_dead": Int64(1)}},
                    session=session,
                )
                if not found.matched_count:
                    raise Refused

        try:
            try:
                await client.transaction(session, work)
            except Conflict:
                if not await _end_former(client, session, shard_id, expected_epoch):
                    raise
                await client.transaction(session, work)
        except Refused:
            if expected_epoch == 0:
                await _check_shard(client, shard_id)
            return None
        return expected_epoch + 1

    async def _release(self, shard_id: int, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        client = self._open
        query = {"_id": shard_id, "epoch": Int64(epoch), "owner": owner}
        found = await client.write(
            lambda session: client.collection("shards").update_one(query, {"$set": {"owner": None}}, session=session)
        )
        return found.matched_count > 0

    async def _apply(self, batch: ShardBatch, writes: Part) -> Applied:
        """One transaction. Its first statement is the fence: an update of the shard where epoch and owner are the batch's."""
        client = self._open
        session = client.session_of(batch.shard_id)
        edge = self._edges.take(batch)
        if batch.delete_to is not None:
            ranges = delete_range(batch.shard_id, edge, batch.delete_to)
            writes = {**writes, "timers": [*writes["timers"], *ranges]}

        async def work() -> None:
            fence = {"_id": batch.shard_id, "epoch": Int64(batch.epoch), "owner": batch.owner}
            passed = await client.collection("shards").update_one(
                fence, {"$inc": {"commits": Int64(1)}}, session=session
            )
            if not passed.matched_count:
                raise Refused
            for name, requests in writes.items():
                if requests:
                    await client.collection(name).bulk_write(requests, ordered=False, session=session)

        try:
            await client.transaction(session, work)
        except Refused:
            return Applied.OWNERSHIP_LOST
        self._edges.put(batch, edge)
        return Applied.DURABLE

    async def heartbeat(self, member: Member) -> int:
        """Writes the member's document; returns the store's clock in microseconds."""
        client = self._open
        values = {"counter": Int64(member.counter), "node": member.node, "address": member.address}
        await client.write(
            lambda session: client.collection("members").update_one(
                {"_id": member.incarnation}, {"$set": values}, upsert=True, session=session
            )
        )
        return await self.now()

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member's document; with `counter`, only while its heartbeat counter is still that one."""
        client = self._open
        query: dict[str, Any] = {"_id": incarnation}
        if counter is not None:
            query["counter"] = Int64(counter)
        await client.write(lambda session: client.collection("members").delete_one(query, session=session))

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` finished timers, runs and failures with expires_at ≤ now_us and returns how many."""
        removed = 0
        for name in ("history", "runs", "failures"):
            removed += await self._purge(name, now_us, limit - removed)
        return removed

    async def remove_failures(self, shard_id: int, places: Sequence[FailurePlace]) -> None:
        """Removes the failures at these places, some at a time."""
        client = self._open

        async def remove(session: Session, some: Sequence[FailurePlace]) -> None:
            deletes = [_delete_failure(shard_id, uuid, generation) for _, uuid, generation in some]
            await client.collection("failures").bulk_write(deletes, session=session)

        for some in cut(places):
            await client.write(partial(remove, some=some))

    async def trim_runs(self, shard_id: int, uuid: bytes, keep: int, limit: int) -> int:
        """Removes run rows of one uuid, smallest generations first, until `keep` are left or `limit` are removed; returns how
        many."""
        client = self._open
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
            return (
                await collection.delete_many({"_id": {"$in": ids}, "shard": shard_id}, session=session)
            ).deleted_count

        return await client.write(remove)

    async def forget(self, shard_id: int, uuids: Sequence[bytes]) -> None:
        """Removes all failures, runs and finished rows of these uuids, those of a few at a time."""
        client = self._open

        async def remove(session: Session, name: str, some: Sequence[bytes]) -> None:
            of_timers = {"shard": shard_id, "uuid": {"$in": [uuid_binary(uuid) for uuid in some]}}
            await client.collection(name).delete_many(of_timers, session=session)

        for some in cut(list(dict.fromkeys(uuids)), _FORGOTTEN_MAX):
            for name in ("failures", "runs", "history"):
                await client.write(partial(remove, name=name, some=some))

    async def _purge(self, name: str, now_us: int, limit: int) -> int:
        client = self._open
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
