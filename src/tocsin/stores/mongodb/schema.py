"""Collections with their validators and indexes, and the number of shards."""

from __future__ import annotations

from typing import Any

from pymongo import errors

from tocsin.model.errors import ConfigError, StoreCorrupted, StoreUnavailable
from tocsin.ports.store import FORMAT, refuse_newer_schema, refuse_other_format, shards_are_fixed
from tocsin.stores import TOTAL_SHARDS_SHARED_DEFAULT
from tocsin.stores.mongodb.address import LAYOUT, LAYOUT_READABLE_FROM
from tocsin.stores.mongodb.client import Document, MongoClient, Session
from tocsin.stores.mongodb.errors import NAMESPACE_EXISTS, TRANSLATED, code_of, is_denied, translate_error

_META = "meta"
#: Loads and lists of live timers (`suspended` false) and suspended ones.
_TIMERS = [("shard", 1), ("suspended", 1), ("at", 1), ("uuid", 1)]
#: Lists of finished timers, and of failures.
_FINISHED = [("shard", 1), ("at", 1), ("uuid", 1), ("generation", 1)]
#: A timer's finished rows and its runs, newest first. Unique, so that writing one twice leaves one.
_OF_TIMER = [("shard", 1), ("uuid", 1), ("generation", -1)]

_KEY = {"shard": "int", "uuid": "binData", "generation": "binData", "record": "binData"}
_TIMER = {**_KEY, "at": "long", "namespace": "string", "timer_id": "string", "tags": "array"}
_EXPIRES = {"expires_at": "long", "expires": "date"}
#: The types of fields that each document must have.
VALIDATORS: dict[str, dict[str, str]] = {
    "timers": {**_TIMER, "suspended": "bool"},
    "history": {**_TIMER, **_EXPIRES, "status": "string", "finished_at": "long"},
    "runs": {**_KEY, **_EXPIRES},
    "failures": {
        **{name: kind for name, kind in _TIMER.items() if name not in ("record", "tags")},
        **_EXPIRES,
        "cause": "string",
        "execute_at": "long",
    },
    "shards": {"epoch": "long"},
    "members": {"counter": "long"},
    "records": {"value": "string", "version": "long"},
}


def indexes(*, expire: bool) -> list[tuple[str, str, list[tuple[str, int]], dict[str, Any]]]:
    """(collection, name, fields, options) of each index. With `expire`, MongoDB deletes what has expired, too."""
    ttl = {"expireAfterSeconds": 0} if expire else {}
    return [
        ("timers", "by_instant", _TIMERS, {}),
        ("timers", "schedules", [("namespace", 1), ("timer_id", 1)], {"partialFilterExpression": {"schedule": True}}),
        ("history", "by_instant", _FINISHED, {}),
        ("history", "by_timer", _OF_TIMER, {"unique": True}),
        ("history", "by_expiry", [("expires", 1)], ttl),
        ("runs", "by_timer", _OF_TIMER, {"unique": True}),
        ("runs", "by_expiry", [("expires", 1)], ttl),
        ("failures", "by_instant", _FINISHED, {}),
        ("failures", "by_timer", _OF_TIMER, {"unique": True}),
        ("failures", "by_expiry", [("expires", 1)], ttl),
    ]


async def prepare(client: MongoClient, total_shards: int | None, *, create: bool) -> int:
    """Creates what is missing, and fixes the number of shards; returns that number.

    Raises ConfigError for missing rights or another number of shards than the stored one; StoreCorrupted for a database of
    another application, StoreUnavailable for a missing one without `create`, SchemaTooNew for a newer layout.
    """
    try:
        if await client.read(lambda session: _meta(client, session)) is None:
            if not create:
                raise StoreUnavailable(f"{client.place} has no timers; `tocsin migrate` prepares it")
            await _check_empty(client)
        number = await _fix_total_shards(client, total_shards)
        if create:
            await _create(client)
    except TRANSLATED as error:
        raise translate_error(error, client.place, in_doubt=False) from error
    except StoreUnavailable as error:
        if error.__cause__ is not None and is_denied(error.__cause__):
            # No retry helps.
            raise ConfigError(f"store: {error}; the rights that it takes stand in docs/how-to/mongodb.md") from error
        raise
    return number


async def _meta(client: MongoClient, session: Session) -> Document | None:
    return await client.collection(_META).find_one({"_id": _META}, session=session)


async def _check_empty(client: MongoClient) -> None:
    """Raises StoreCorrupted if the database has collections, since none of them is Tocsin's."""
    names = [name for name in await client.database.list_collection_names() if not name.startswith("system.")]
    if names and await client.read(lambda session: _meta(client, session)) is None:
        raise StoreCorrupted(
            f"{client.place} is another application's: it has the collection {min(names)}. Name a database of Tocsin's own"
        )


async def _create(client: MongoClient) -> None:
    """Creates collections and indexes that are missing. Nodes that start at once create each once."""
    present = set(await client.database.list_collection_names())
    for name, fields in VALIDATORS.items():
        if name not in present:
            try:
                await client.database.create_collection(name, validator=validator(fields))
            except errors.CollectionInvalid:
                # Another node has created it since.
                continue
            except errors.OperationFailure as error:
                if code_of(error) != NAMESPACE_EXISTS:
                    raise
    for collection, name, keys, options in indexes(expire=client.options.expire):
        await client.collection(collection).create_index(keys, name=name, **options)


def validator(fields: dict[str, str]) -> Document:
    """A collection's validator: the fields that a document must have, with their types. It may have more."""
    properties = {name: {"bsonType": kind} for name, kind in fields.items()}
    return {"$jsonSchema": {"bsonType": "object", "required": list(fields), "properties": properties}}


async def _fix_total_shards(client: MongoClient, wanted: int | None) -> int:
    """Fixes the number. It can be changed until the first claim."""
    while True:
        meta = await client.read(lambda session: _meta(client, session))
        if meta is not None:
            refuse_other_format(client.place, meta.get("format"))
            refuse_newer_schema(client.place, int(meta["layout"]), LAYOUT, int(meta["readable_from"]))
        fixed = None if meta is None else int(meta["total_shards"])
        if fixed is not None and wanted in (None, fixed):
            return fixed
        if meta is not None and meta["claimed"]:
            raise shards_are_fixed(int(meta["total_shards"]), wanted)
        number = wanted or TOTAL_SHARDS_SHARED_DEFAULT
        if await _put_total_shards(client, fixed, number):
            return number


async def _put_total_shards(client: MongoClient, former: int | None, number: int) -> bool:
    """False if another node has changed the number."""
    collection = client.collection(_META)
    if former is None:
        try:
            await collection.insert_one(
                {
                    "_id": _META,
                    "format": FORMAT,
                    "layout": LAYOUT,
                    "readable_from": LAYOUT_READABLE_FROM,
                    "total_shards": number,
                    "claimed": False,
                }
            )
        except errors.DuplicateKeyError:
            return False
        return True
    changed = await collection.update_one(
        {"_id": _META, "total_shards": former, "claimed": False}, {"$set": {"total_shards": number}}
    )
    return changed.matched_count > 0


async def begin_data(client: MongoClient, total_shards: int) -> bool:
    """Fixes the number of shards. False if another node has changed it."""
    changed = await client.write(
        lambda session: client.collection(_META).update_one(
            {"_id": _META, "total_shards": total_shards}, {"$set": {"claimed": True}}, session=session
        )
    )
    return changed.matched_count > 0
