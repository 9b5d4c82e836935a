"""Creates or checks the table, and fixes the number of shards."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tocsin.model.errors import (
    ConfigError,
    DefiniteFailure,
    OutcomeUnknown,
    StoreCorrupted,
    StoreError,
    StoreUnavailable,
)
from tocsin.ports.store import FORMAT, refuse_newer_schema, refuse_other_format, shards_are_fixed
from tocsin.stores import TOTAL_SHARDS_SHARED_DEFAULT
from tocsin.stores.dynamodb.address import LAYOUT, LAYOUT_READABLE_FROM
from tocsin.stores.dynamodb.client import DynamoClient, RequestKind
from tocsin.stores.dynamodb.errors import ConditionFailed, Verdict, code_of, verdict_of
from tocsin.stores.dynamodb.keys import BY_EXPIRY, BY_INSTANT, META_KEY, PROJECTED, Item

_KEYS = {"p": "HASH", "s": "RANGE"}
_TYPES = {"p": "S", "s": "B", "o": "B", "e": "B"}
#: The sort key and the projected attributes of each local index.
_INDEXES: dict[str, tuple[str, tuple[str, ...]]] = {BY_INSTANT: ("o", PROJECTED), BY_EXPIRY: ("e", ())}
_POLL_S = 0.5
#: The attribute with the second after which DynamoDB may remove an item.
_TTL = "ttl"


def definition() -> dict[str, Any]:
    """The arguments of CreateTable, except name and capacity."""
    return {
        "KeySchema": _schema(_KEYS),
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": kind} for name, kind in _TYPES.items()],
        "LocalSecondaryIndexes": [
            {
                "IndexName": name,
                "KeySchema": _schema({"p": "HASH", attribute: "RANGE"}),
                "Projection": _projection(projected),
            }
            for name, (attribute, projected) in _INDEXES.items()
        ],
    }


def _projection(attributes: tuple[str, ...]) -> dict[str, Any]:
    if not attributes:
        return {"ProjectionType": "KEYS_ONLY"}
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(attributes)}


def _schema(keys: dict[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()]


async def prepare(client: DynamoClient, total_shards: int | None, *, create: bool) -> int:
    """Creates the table if it is missing, and fixes the number of shards; returns that number.

    Raises ConfigError for missing rights, a server that is not DynamoDB, or another number of shards than the stored one;
    StoreCorrupted for a table of another shape, StoreUnavailable for a missing table without `create`, SchemaTooNew for a
    newer layout. With the setting `time_to_live`, ConfigError for a table that has it not.
    """
    description = await _describe(client)
    creates = description is None
    if creates:
        if not create:
            raise StoreUnavailable(f"{client.place} does not exist; `tocsin migrate` creates it")
        await _create(client)
        description = await _describe(client)
    description = await _active(client, description)
    _check(client.place, description)
    if creates or (create and client.options.time_to_live and not await _removes_expired(client)):
        # Also if this node has not created the table: whoever has may have ended before.
        await _enable_time_to_live(client)
    if client.options.time_to_live and not await _removes_expired(client):
        raise ConfigError(
            f"dynamodb.time_to_live: {client.place} removes nothing that has expired; enable time to live on its attribute "
            f"{_TTL} (aws dynamodb update-time-to-live), or leave the setting off"
        )
    return await _fix_total_shards(client, total_shards)


async def _describe(client: DynamoClient) -> dict[str, Any] | None:
    try:
        return dict((await client.call("describe_table", RequestKind.READ, TableName=client.table))["Table"])
    except StoreError as error:
        if _verdict(error) is Verdict.MISSING:
            return None
        raise refused(client, error, "DescribeTable") from error


def refused(client: DynamoClient, error: StoreError, action: str) -> StoreError | ConfigError:
    """The error to raise at the start: ConfigError for missing rights, invalid credentials or another kind of server, which
    no retry helps."""
    if _verdict(error) in (Verdict.DENIED, Verdict.FOREIGN):
        return ConfigError(f"store: {error} ({action} on {client.table})")
    return error


def _verdict(error: BaseException) -> Verdict | None:
    return None if error.__cause__ is None else verdict_of(error.__cause__)


async def _create(client: DynamoClient) -> None:
    """Creates the table, billed on demand. Nodes that start at once create one table. Where an answer is lost, the repeated
    request is refused because the former one was successful."""
    try:
        await client.call(
            "create_table",
            RequestKind.WRITE,
            TableName=client.table,
            BillingMode="PAY_PER_REQUEST",
            **definition(),
        )
    except (DefiniteFailure, OutcomeUnknown) as error:
        if error.__cause__ is None or code_of(error.__cause__) != "ResourceInUseException":
            raise refused(client, error, "CreateTable") from error


async def _enable_time_to_live(client: DynamoClient) -> None:
    """Has DynamoDB remove what has expired: it works on that once the table is there."""
    try:
        await client.call(
            "update_time_to_live",
            RequestKind.WRITE,
            TableName=client.table,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": _TTL},
        )
    except (DefiniteFailure, OutcomeUnknown) as error:
        # DynamoDB refuses what another node has enabled already. Any other failure ends this start; the table stays.
        if error.__cause__ is None or code_of(error.__cause__) != "ValidationException":
            raise refused(client, error, "UpdateTimeToLive") from error


async def _active(client: DynamoClient, description: dict[str, Any] | None) -> dict[str, Any]:
    """Waits until the table has been created."""
    deadline = time.monotonic() + client.options.create_timeout_s
    while description is None or description["TableStatus"] == "CREATING":
        if time.monotonic() >= deadline:
            raise StoreUnavailable(
                f"{client.place} is still being created after {client.options.create_timeout_s:g} s; start again later"
            )
        # DynamoDB has no notification.
        await asyncio.sleep(_POLL_S)
        description = await _describe(client)
    if description["TableStatus"] == "DELETING":
        raise StoreUnavailable(f"{client.place} is being deleted")
    return description


async def _removes_expired(client: DynamoClient) -> bool:
    """Whether DynamoDB removes what has expired."""
    try:
        answer = await client.call("describe_time_to_live", RequestKind.READ, TableName=client.table)
    except StoreError as error:
        raise refused(client, error, "DescribeTimeToLive") from error
    found = answer["TimeToLiveDescription"]
    return (found.get("TimeToLiveStatus"), found.get("AttributeName")) in {("ENABLED", _TTL), ("ENABLING", _TTL)}


def _check(place: str, description: dict[str, Any]) -> None:
    """Raises StoreCorrupted for a table of another shape, because local indexes cannot be added to a table."""
    types = {each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]}
    indexes = {each["IndexName"]: each for each in description.get("LocalSecondaryIndexes", ())}
    wrong = []
    if _keys(description) != _KEYS:
        wrong.append(f"its key is {_written(_keys(description))}, not {_written(_KEYS)}")
    for name, (attribute, projected) in _INDEXES.items():
        index = indexes.get(name)
        if index is None:
            wrong.append(f"it has no local index {name}")
        elif _keys(index) != {"p": "HASH", attribute: "RANGE"}:
            wrong.append(f"its local index {name} sorts by {_written(_keys(index))}")
        elif not _has(index["Projection"], projected):
            wrong.append(f"its local index {name} lacks some of {', '.join(projected)}")
    wrong += [
        f"its attribute {name} is of type {types[name]}, not {kind}"
        for name, kind in _TYPES.items()
        if types.get(name, kind) != kind
    ]
    if wrong:
        raise StoreCorrupted(f"{place} is another application's: {'; '.join(wrong)}. Name a table of Tocsin's own")


def _has(projection: dict[str, Any], attributes: tuple[str, ...]) -> bool:
    return projection["ProjectionType"] == "ALL" or set(attributes) <= set(projection.get("NonKeyAttributes", ()))


def _keys(description: dict[str, Any]) -> dict[str, str]:
    return {each["AttributeName"]: each["KeyType"] for each in description["KeySchema"]}


def _written(keys: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in keys.items())


async def _fix_total_shards(client: DynamoClient, wanted: int | None) -> int:
    """Fixes the number. It can be changed until the first claim."""
    while True:
        item = await _meta(client)
        if item is not None:
            refuse_other_format(client.place, int(item["format"]["N"]) if "format" in item else None)
            refuse_newer_schema(client.place, int(item["layout"]["N"]), LAYOUT, int(item["readable_from"]["N"]))
        fixed = None if item is None else int(item["total_shards"]["N"])
        if fixed is not None and wanted in (None, fixed):
            return fixed
        if item is not None and "claimed" in item:
            raise shards_are_fixed(int(item["total_shards"]["N"]), wanted)
        number = wanted or TOTAL_SHARDS_SHARED_DEFAULT
        if await _put_total_shards(client, fixed, number, item or {}):
            return number


async def _meta(client: DynamoClient) -> Item | None:
    """The item of the number of shards. Read in a transaction, so that a server without transactions is refused at the
    start."""
    try:
        answer = await client.read_together([{"Get": {"Key": META_KEY}}])
    except StoreError as error:
        raise refused(client, error, "GetItem") from error
    found: Item | None = answer["Responses"][0].get("Item")
    return found


async def _put_total_shards(client: DynamoClient, former: int | None, number: int, found: Item) -> bool:
    """False if another node has changed the number. The layout that was `found` stays, as a newer release may have written
    it."""
    layout: Item = {
        "format": {"N": str(FORMAT)},
        "layout": {"N": str(LAYOUT)},
        "readable_from": {"N": str(LAYOUT_READABLE_FROM)},
    }
    item: Item = {**layout, **found, **META_KEY, "total_shards": {"N": str(number)}}
    condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(p)"}
    if former is not None:
        condition = {
            "ConditionExpression": "total_shards = :former AND attribute_not_exists(claimed)",
            "ExpressionAttributeValues": {":former": {"N": str(former)}},
        }
    try:
        await client.put(item, **condition)
    except ConditionFailed:
        return False
    except StoreError as error:
        raise refused(client, error, "PutItem") from error
    return True


async def begin_data(client: DynamoClient, total_shards: int) -> bool:
    """Fixes the number of shards. False if another node has changed it."""
    try:
        await client.update(
            META_KEY,
            "SET claimed = :yes",
            kind=RequestKind.WRITE,
            ConditionExpression="total_shards = :n",
            ExpressionAttributeValues={":yes": {"BOOL": True}, ":n": {"N": str(total_shards)}},
        )
    except ConditionFailed:
        return False
    return True
