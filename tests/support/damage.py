"""Damages one row or namespace in a store, as a console, a script or a restore in part would."""

from __future__ import annotations

from typing import Any

from bson import Binary

from tocsin.administration import NAMESPACES
from tocsin.model.namespace import Namespace
from tocsin.ports.store import HistoryRow, RunRow, Store, StoredRow
from tocsin.server.transfer_log import ChangeLog
from tocsin.sql.dialect import Step
from tocsin.sql.store import SqlStore
from tocsin.stores.cassandra import keys as cassandra_keys
from tocsin.stores.cassandra.store import CassandraStore
from tocsin.stores.dynamodb import keys as dynamodb_keys
from tocsin.stores.dynamodb.client import RequestKind
from tocsin.stores.dynamodb.store import DynamoStore
from tocsin.stores.memory import MemoryStore
from tocsin.stores.mongodb.documents import timer_id, uuid_binary
from tocsin.stores.mongodb.store import MongoStore

Stored = StoredRow | HistoryRow | RunRow | Namespace

#: No text, no JSON, and no MessagePack of a row.
GARBAGE = b"\xc1\xff{"


async def damage(store: Store, what: Stored, shard_id: int = 0) -> None:
    """Damages what is stored of a row of that shard, or of a namespace."""
    if isinstance(store, ChangeLog):
        # A server's own: damage comes to the store behind it.
        store = store._store
    if isinstance(store, MemoryStore):
        _in_memory(store, what, shard_id)
    elif isinstance(store, SqlStore):
        await _in_sql(store, what, shard_id)
    elif isinstance(store, CassandraStore):
        await _in_cassandra(store, what, shard_id)
    elif isinstance(store, DynamoStore):
        await _in_dynamodb(store, what, shard_id)
    elif isinstance(store, MongoStore):
        await _in_mongodb(store, what, shard_id)
    else:
        raise TypeError(type(store).__name__)


def _in_memory(store: MemoryStore, what: Stored, shard_id: int) -> None:
    if isinstance(what, Namespace):
        stored = store._records[NAMESPACES, what.name]
        store._records[NAMESPACES, what.name] = stored._replace(value='{"name":')
        return
    shard = store._shards[shard_id]
    if isinstance(what, StoredRow):
        shard.live[what.uuid] = what._replace(record=GARBAGE)
    elif isinstance(what, HistoryRow):
        shard.history[what.uuid][what.generation] = what._replace(record=GARBAGE)
    else:
        shard.runs[what.uuid][what.generation] = what._replace(record=GARBAGE)


async def _in_sql(store: SqlStore, what: Stored, shard_id: int) -> None:
    if isinstance(what, Namespace):
        sql = "UPDATE records SET record_value = ? WHERE record_kind = ? AND record_key = ?"
        step = Step(sql, ('{"name":', NAMESPACES, what.name))
    elif isinstance(what, StoredRow):
        sql = "UPDATE timers SET timer_record = ? WHERE shard_id = ? AND timer_uuid = ?"
        step = Step(sql, (GARBAGE, shard_id, what.uuid))
    elif isinstance(what, HistoryRow):
        sql = "UPDATE history SET timer_record = ? WHERE shard_id = ? AND timer_uuid = ? AND timer_generation = ?"
        step = Step(sql, (GARBAGE, shard_id, what.uuid, what.generation))
    else:
        sql = "UPDATE runs SET run_record = ? WHERE shard_id = ? AND run_uuid = ? AND run_generation = ?"
        step = Step(sql, (GARBAGE, shard_id, what.uuid, what.generation))
    assert await store._change(step) == 1


async def _in_cassandra(store: CassandraStore, what: Stored, shard_id: int) -> None:
    """Cuts the value in half."""
    client = store._open
    partition, key = cassandra_keys.partition_of(shard_id), b""
    if isinstance(what, Namespace):
        partition, key = cassandra_keys.records_of(NAMESPACES), what.name.encode()
    elif isinstance(what, StoredRow):
        key = cassandra_keys.timer_key(what.uuid)
    elif isinstance(what, HistoryRow):
        key = cassandra_keys.history_key(what.uuid, what.generation)
    else:
        key = cassandra_keys.run_key(what.uuid, what.generation)
    place = (client.partition(partition), key)
    ((value,),) = await client.read("SELECT v FROM {t} WHERE p = ? AND k = ?", *place)
    await client.write("UPDATE {t} SET v = ? WHERE p = ? AND k = ? IF EXISTS", value[: len(value) // 2], *place)


async def _in_dynamodb(store: DynamoStore, what: Stored, shard_id: int) -> None:
    """Removes an attribute."""
    if isinstance(what, Namespace):
        place, lost = dynamodb_keys.key(dynamodb_keys.records_of(NAMESPACES), what.name.encode()), "r"
    elif isinstance(what, StoredRow):
        place, lost = dynamodb_keys.timer_key(shard_id, what.uuid), "r"
    elif isinstance(what, HistoryRow):
        place, lost = dynamodb_keys.history_key(shard_id, what.uuid, what.generation), "z"
    else:
        place, lost = dynamodb_keys.run_key(shard_id, what.uuid, what.generation), "r"
    names = {"#lost": lost}
    await store._open.update(place, "REMOVE #lost", kind=RequestKind.WRITE, ExpressionAttributeNames=names)


async def _in_mongodb(store: MongoStore, what: Stored, shard_id: int) -> None:
    """Removes a field, or puts something else there."""
    client, change = store._open, {"$unset": {"record": ""}}
    query: dict[str, Any]
    if isinstance(what, Namespace):
        name, query = "records", {"_id": f"{NAMESPACES} {what.name}"}
        change = {"$set": {"value": Binary(GARBAGE)}}
    elif isinstance(what, StoredRow):
        name, query = "timers", {"_id": timer_id(shard_id, what.uuid)}
    else:
        name = "history" if isinstance(what, HistoryRow) else "runs"
        query = {"shard": shard_id, "uuid": uuid_binary(what.uuid), "generation": what.generation}
    changed = await client.write(
        # Past the collection's validator, as a restore goes.
        lambda session: client.collection(name).update_one(
            query, change, bypass_document_validation=True, session=session
        )
    )
    assert changed.modified_count == 1
