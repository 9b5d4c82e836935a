"""Records in MongoDB: a collection `records`, whose `_id` is kind and key. A kind's version is in its document without a key,
which every write changes in the same transaction."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Sequence

from bson import Int64
from pymongo import errors

from tocsin.ports.records import RECORD_KEY_END, Record
from tocsin.stores.client_store import ClientStore
from tocsin.stores.mongodb.client import Document, MongoClient, Session


class _CreatedMeanwhile(Exception):
    """Another transaction has created the document after this one began."""


class MongoRecords(ClientStore[MongoClient]):
    """The records of a store."""

    async def record(self, kind: str, key: str) -> Record | None:
        """The record with this key."""
        document = await self._open.read(lambda session: self._find(session, kind, key))
        return None if document is None else _record(document)

    async def records(
        self, kind: str, after: str = "", before: str = RECORD_KEY_END, *, limit: int, descending: bool = False
    ) -> builtins.list[Record]:
        """The records with after < key < before in the order of their keys: the first `limit`, or the last ones, last
        first."""
        query = {"_id": {"$gt": _id(kind, after), "$lt": _id(kind, before)}}
        order = [("_id", -1 if descending else 1)]
        documents = await self._open.read(
            lambda session: (
                self._open.collection("records").find(query, session=session, sort=order, limit=limit).to_list()
            )
        )
        return [_record(document) for document in documents]

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        """Replaces the record's value if its version is `expected`; with None, creates the record if there is none."""
        fields = {"value": value, "version": Int64((expected or 0) + 1)}

        async def put(session: Session) -> bool:
            collection = self._open.collection("records")
            if expected is None:
                if await self._find(session, kind, key) is not None:
                    return False
                await collection.insert_one({"_id": _id(kind, key), **fields}, session=session)
                return True
            query = {"_id": _id(kind, key), "version": Int64(expected)}
            return (await collection.update_one(query, {"$set": fields}, session=session)).matched_count > 0

        return await self._change(kind, put)

    async def delete_records(self, kind: str, keys: Sequence[str]) -> bool:
        """Removes the records with these keys, all together; whether there was any."""
        query = {"_id": {"$in": [_id(kind, key) for key in keys]}}

        async def delete(session: Session) -> bool:
            return (await self._open.collection("records").delete_many(query, session=session)).deleted_count > 0

        return await self._change(kind, delete)

    async def records_versions(self, *kinds: str, urgent: bool = False) -> tuple[int, ...]:
        """How many writes of each kind there were."""
        query = {"_id": {"$in": [_id(kind, "") for kind in kinds]}}
        documents = await self._open.read(
            lambda session: self._open.collection("records").find(query, session=session).to_list()
        )
        found = {document["_id"]: _record(document).version for document in documents}
        return tuple(found.get(_id(kind, ""), 0) for kind in kinds)

    async def _find(self, session: Session, kind: str, key: str) -> Document | None:
        return await self._open.collection("records").find_one({"_id": _id(kind, key)}, session=session)

    async def _change(self, kind: str, change: Callable[[Session], Awaitable[bool]]) -> bool:
        """The result of the change, in one transaction with the kind's next version."""
        next_version = {"$inc": {"version": Int64(1)}, "$setOnInsert": {"value": ""}}

        async def work(session: Session) -> bool:
            try:
                changed = await change(session)
                if changed:
                    collection = self._open.collection("records")
                    await collection.update_one({"_id": _id(kind, "")}, next_version, upsert=True, session=session)
            except errors.DuplicateKeyError as error:
                raise _CreatedMeanwhile from error
            return changed

        while True:
            try:
                return await self._open.change(work)
            except _CreatedMeanwhile:
                # A new transaction sees the document.
                continue


def _id(kind: str, key: str) -> str:
    # Sorts before all that a kind or a key may contain.
    return f"{kind} {key}"


def _record(document: Document) -> Record:
    value, version = document.get("value"), document.get("version")
    return Record(
        document["_id"].partition(" ")[2],
        value if isinstance(value, str) else "",
        # Not the driver's own type of integer: versions are sent to other nodes.
        int(version) if isinstance(version, int) else 0,
    )
