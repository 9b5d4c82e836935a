"""Namespaces, API keys, secrets, sign-ins and the audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from bson import Int64
from pymongo import errors

from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditEntry, decode_audit, encode_audit
from tocsin.model.errors import StoreUnavailable
from tocsin.model.namespace import Namespace, decode_namespace, encode_namespace
from tocsin.ports.store import AuditQuery, SignIn
from tocsin.stores.mongodb.client import Document, MongoClient, Session

_key_encoder = msgspec.json.Encoder()
_key_decoder = msgspec.json.Decoder(ApiKey)


async def namespaces(client: MongoClient) -> list[Namespace]:
    """All of them, by name."""
    documents = await _documents(client, "namespaces")
    records = ((document["_id"], document.get("record")) for document in documents)
    return [decode_namespace(name, record if isinstance(record, bytes) else b"") for name, record in records]


async def put_namespace(client: MongoClient, namespace: Namespace, *, create: bool) -> bool:
    """With `create`, inserts the namespace; False when it already exists. The version is also a field of its own, for the
    condition."""
    values = {"record": encode_namespace(namespace), "version": Int64(namespace.version)}
    collection = client.collection("namespaces")

    async def put(session: Session) -> bool:
        if not create:
            query = {"_id": namespace.name, "version": Int64(namespace.version - 1)}
            return (await collection.update_one(query, {"$set": values}, session=session)).matched_count > 0
        try:
            await collection.insert_one({"_id": namespace.name, **values}, session=session)
        except errors.DuplicateKeyError:
            return False
        return True

    return await client.write(put)


async def api_keys(client: MongoClient) -> list[ApiKey]:
    """All of them, by key_id."""
    return [_key_decoder.decode(bytes(document["record"])) for document in await _documents(client, "api_keys")]


async def _documents(client: MongoClient, name: str) -> list[Document]:
    return await client.read(lambda session: client.collection(name).find(session=session, sort=[("_id", 1)]).to_list())


async def put_api_key(client: MongoClient, api_key: ApiKey) -> None:
    """Inserts the key, or replaces the one with its `key_id`."""
    values = {"record": _key_encoder.encode(api_key)}
    await client.write(
        lambda session: client.collection("api_keys").update_one(
            {"_id": api_key.key_id}, {"$set": values}, upsert=True, session=session
        )
    )


async def delete_api_key(client: MongoClient, key_id: str) -> bool:
    """Removes the key and its sign-ins. The key is deleted first: sign-ins without a key are invalid, and the next call
    deletes the rest."""

    async def delete(session: Session) -> bool:
        deleted = await client.collection("api_keys").delete_one({"_id": key_id}, session=session)
        await client.collection("sign_ins").delete_many({"key_id": key_id}, session=session)
        return deleted.deleted_count > 0

    return await client.write(delete)


async def shared_secret(client: MongoClient, name: str, fresh: str) -> str:
    """The secret of that name that all nodes of this store share: the stored one, or else `fresh`, which is then
    stored."""

    secrets = client.collection("secrets")

    async def put(session: Session) -> None:
        try:
            await secrets.insert_one({"_id": name, "secret": fresh}, session=session)
        except errors.DuplicateKeyError:
            # It has been stored before.
            return

    async def get(session: Session) -> str:
        stored = await secrets.find_one({"_id": name}, session=session)
        if stored is None:
            raise StoreUnavailable(f"{client.place}: the secret {name} was removed meanwhile")
        return str(stored["secret"])

    await client.write(put)
    return await client.read(get)


# -- sign-ins


async def put_sign_in(client: MongoClient, sign_in: SignIn, now_us: int, keep: int) -> None:
    """Stores a sign-in, or replaces the one with its `token_hash`. The sign-in is stored first; after a failure, the next
    call removes what is left."""
    collection = client.collection("sign_ins")
    values = {
        "key_id": sign_in.key_id,
        "seen_at": Int64(sign_in.seen_at),
        "expires_at": Int64(sign_in.expires_at),
    }

    async def put(session: Session) -> None:
        await collection.update_one({"_id": sign_in.token_hash}, {"$set": values}, upsert=True, session=session)
        others = {"_id": {"$ne": sign_in.token_hash}}
        await collection.delete_many({**others, "expires_at": {"$lte": Int64(now_us)}}, session=session)
        beyond = collection.find(
            {**others, "key_id": sign_in.key_id},
            projection={"_id": 1},
            sort=[("seen_at", -1), ("_id", -1)],
            skip=keep - 1,
            session=session,
        )
        ids = [document["_id"] for document in await beyond.to_list()]
        if ids:
            await collection.delete_many({"_id": {"$in": ids}}, session=session)

    await client.write(put)


async def sign_ins(client: MongoClient, token_hashes: Sequence[str]) -> list[SignIn]:
    """The stored sign-ins with these token hashes, expired ones included, in any order."""
    query = {"_id": {"$in": list(set(token_hashes))}}
    documents = await client.read(lambda session: client.collection("sign_ins").find(query, session=session).to_list())
    return [SignIn(each["_id"], each["key_id"], int(each["seen_at"]), int(each["expires_at"])) for each in documents]


async def touch_sign_in(client: MongoClient, token_hash: str, seen_at: int) -> bool:
    """Updates the sign-in's last use, never to an earlier instant."""
    found = await client.write(
        lambda session: client.collection("sign_ins").update_one(
            {"_id": token_hash}, {"$max": {"seen_at": Int64(seen_at)}}, session=session
        )
    )
    return found.matched_count > 0


async def delete_sign_in(client: MongoClient, token_hash: str) -> bool:
    """Removes the sign-in."""
    deleted = await client.write(
        lambda session: client.collection("sign_ins").delete_one({"_id": token_hash}, session=session)
    )
    return deleted.deleted_count > 0


# -- the audit trail


async def put_audit(client: MongoClient, entry: AuditEntry) -> None:
    """Stores an entry."""
    at, entry_id = entry.place
    values: Document = {
        "at": Int64(at),
        "entry": entry_id,
        "record": encode_audit(entry),
        "action": entry.action,
        "subject": entry.subject,
        "key_id": entry.key_id,
    }
    identity = {"at": values["at"], "entry": entry_id}
    await client.write(
        lambda session: client.collection("audit").update_one(
            {"_id": identity}, {"$setOnInsert": values}, upsert=True, session=session
        )
    )


async def audit(client: MongoClient, query: AuditQuery) -> list[AuditEntry]:
    """At most `limit` entries by (at, entry_id), descending."""
    instants: dict[str, Any] = {}
    if query.after is not None:
        instants["$gte"] = Int64(query.after)
    if query.before is not None:
        instants["$lt"] = Int64(query.before)
    condition: Document = {"at": instants} if instants else {}
    if query.cursor is not None:
        at, entry_id = query.cursor
        condition["$or"] = [{"at": {"$lt": Int64(at)}}, {"at": Int64(at), "entry": {"$lt": entry_id}}]
    if query.subject is not None:
        condition["subject"] = query.subject
    if query.key_id is not None:
        condition["key_id"] = query.key_id
    if query.actions:
        condition["action"] = {"$in": sorted(query.actions)}
    documents = await client.read(
        lambda session: (
            client.collection("audit")
            .find(condition, session=session, sort=[("at", -1), ("entry", -1)], limit=query.limit)
            .to_list()
        )
    )
    return [decode_audit(document["record"].encode()) for document in documents]


async def purge_audit(client: MongoClient, before_us: int, limit: int) -> int:
    """Removes up to `limit` entries with at < before_us, oldest first; returns how many."""
    collection = client.collection("audit")

    async def purge(session: Session) -> int:
        old = collection.find(
            {"at": {"$lt": Int64(before_us)}},
            projection={"_id": 1},
            sort=[("at", 1), ("entry", 1)],
            limit=limit,
            session=session,
        )
        ids = [document["_id"] for document in await old.to_list()]
        if not ids:
            return 0
        return (await collection.delete_many({"_id": {"$in": ids}}, session=session)).deleted_count

    return await client.write(purge)
