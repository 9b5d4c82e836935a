"""Namespaces, API keys, secrets, sign-ins and the audit trail: one partition per kind, one item each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditEntry, decode_audit, encode_audit
from tocsin.model.namespace import Namespace, decode_namespace, encode_namespace
from tocsin.ports.store import AuditQuery, SignIn
from tocsin.stores.dynamodb.client import DynamoClient, RequestKind
from tocsin.stores.dynamodb.errors import ConditionFailed
from tocsin.stores.dynamodb.items import bytes_in
from tocsin.stores.dynamodb.keys import API_KEYS, AUDIT, NAMESPACES, SECRETS, SIGN_INS, Item, instant_bytes, key

_key_encoder = msgspec.json.Encoder()
_key_decoder = msgspec.json.Decoder(ApiKey)

#: Sorts after every place in the audit trail.
_AUDIT_END = b"\xff" * 25


async def namespaces(client: DynamoClient) -> list[Namespace]:
    """All of them, by name."""
    items = await client.all(NAMESPACES)
    return [decode_namespace(bytes(item["s"]["B"]).decode(), bytes_in(item, "r")) for item in items]


async def put_namespace(client: DynamoClient, namespace: Namespace, *, create: bool) -> bool:
    """With `create`, inserts the namespace; False when it already exists. The version is also an attribute of its own, for
    the condition."""
    item = {
        **key(NAMESPACES, namespace.name.encode()),
        "r": {"B": encode_namespace(namespace)},
        "v": {"N": str(namespace.version)},
    }
    condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(p)"}
    if not create:
        condition = {
            "ConditionExpression": "v = :v",
            "ExpressionAttributeValues": {":v": {"N": str(namespace.version - 1)}},
        }
    try:
        await client.put(item, kind=RequestKind.WRITE_ONCE, **condition)
    except ConditionFailed:
        return False
    return True


async def api_keys(client: DynamoClient) -> list[ApiKey]:
    """All of them, by key_id."""
    return [_key_decoder.decode(bytes(item["r"]["B"])) for item in await client.all(API_KEYS)]


async def put_api_key(client: DynamoClient, api_key: ApiKey) -> None:
    """Inserts the key, or replaces the one with its `key_id`."""
    await client.put({**key(API_KEYS, api_key.key_id.encode()), "r": {"B": _key_encoder.encode(api_key)}})


async def delete_api_key(client: DynamoClient, key_id: str) -> bool:
    """Removes the key and its sign-ins. The key is deleted first: sign-ins without a key are invalid, and the next call
    deletes the rest."""
    answer = await client.delete(key(API_KEYS, key_id.encode()), kind=RequestKind.WRITE_ONCE, ReturnValues="ALL_OLD")
    items = await client.all(SIGN_INS)
    await client.batch_delete([_place(item) for item in items if item["k"]["S"] == key_id])
    return "Attributes" in answer


async def shared_secret(client: DynamoClient, name: str, fresh: str) -> str:
    """The secret of that name that all nodes of this store share: the stored one, or else `fresh`, which is then
    stored."""
    answer = await client.update(
        key(SECRETS, name.encode()),
        "SET r = if_not_exists(r, :fresh)",
        kind=RequestKind.WRITE,
        ExpressionAttributeValues={":fresh": {"S": fresh}},
        ReturnValues="ALL_NEW",
    )
    return str(answer["Attributes"]["r"]["S"])


# -- sign-ins


async def put_sign_in(client: DynamoClient, sign_in: SignIn, now_us: int, keep: int) -> None:
    """Stores a sign-in, or replaces the one with its `token_hash`. The sign-in is stored first; after a failure, the next
    call removes what is left."""
    await client.put(
        {
            **key(SIGN_INS, sign_in.token_hash.encode()),
            "k": {"S": sign_in.key_id},
            "a": {"N": str(sign_in.seen_at)},
            "x": {"N": str(sign_in.expires_at)},
        }
    )
    others = [each for each in map(_sign_in, await client.all(SIGN_INS)) if each.token_hash != sign_in.token_hash]
    gone = [each for each in others if each.expires_at <= now_us]
    of_key = [each for each in others if each.key_id == sign_in.key_id and each.expires_at > now_us]
    gone += sorted(of_key, key=lambda each: (each.seen_at, each.token_hash), reverse=True)[keep - 1 :]
    await client.batch_delete([key(SIGN_INS, each.token_hash.encode()) for each in gone])


async def sign_ins(client: DynamoClient, token_hashes: Sequence[str]) -> list[SignIn]:
    """The stored sign-ins with these token hashes, expired ones included, in any order."""
    keys = [key(SIGN_INS, token_hash.encode()) for token_hash in dict.fromkeys(token_hashes)]
    return [_sign_in(item) for item in await client.batch_get(keys)] if keys else []


async def touch_sign_in(client: DynamoClient, token_hash: str, seen_at: int) -> bool:
    """Updates the sign-in's last use, never to an earlier instant."""
    try:
        await client.update(
            key(SIGN_INS, token_hash.encode()),
            "SET a = :a",
            kind=RequestKind.WRITE,
            ConditionExpression="attribute_exists(p) AND a < :a",
            ExpressionAttributeValues={":a": {"N": str(seen_at)}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    except ConditionFailed as refused:
        return refused.items.get(0) is not None
    return True


async def delete_sign_in(client: DynamoClient, token_hash: str) -> bool:
    """Removes the sign-in."""
    place = key(SIGN_INS, token_hash.encode())
    return "Attributes" in await client.delete(place, kind=RequestKind.WRITE_ONCE, ReturnValues="ALL_OLD")


def _sign_in(item: Item) -> SignIn:
    return SignIn(bytes(item["s"]["B"]).decode(), item["k"]["S"], int(item["a"]["N"]), int(item["x"]["N"]))


def _place(item: Item) -> Item:
    return {"p": item["p"], "s": item["s"]}


# -- the audit trail


async def put_audit(client: DynamoClient, entry: AuditEntry) -> None:
    """Stores an entry."""
    item = {**key(AUDIT, _audit_sort(*entry.place)), "r": {"B": encode_audit(entry)}, "action": {"S": entry.action},
            "subject": {"S": entry.subject}}  # fmt: skip
    if entry.key_id is not None:
        item["k"] = {"S": entry.key_id}
    try:
        await client.put(item, ConditionExpression="attribute_not_exists(p)")
    except ConditionFailed:
        # It has been stored before.
        return


async def audit(client: DynamoClient, query: AuditQuery) -> list[AuditEntry]:
    """At most `limit` entries by (at, entry_id), descending. Queries the partition in descending order. Query ranges
    include their end, which is dropped here."""
    first = b"\x00" if query.after is None else instant_bytes(query.after)
    last = _AUDIT_END if query.before is None else instant_bytes(query.before)
    if query.cursor is not None:
        last = min(last, _audit_sort(*query.cursor))
    if first > last:
        return []
    values: Item = {":first": {"B": first}, ":last": {"B": last}}
    parts, names = [], {}
    for name, wanted in (("subject", query.subject), ("k", query.key_id)):
        if wanted is not None:
            parts.append(f"#{name} = :{name}")
            names[f"#{name}"] = name
            values[f":{name}"] = {"S": wanted}
    if query.actions:
        names["#action"] = "action"
        actions = {f":a{number}": {"S": action} for number, action in enumerate(sorted(query.actions))}
        parts.append(f"#action IN ({', '.join(actions)})")
        values |= actions
    more: dict[str, Any] = {}
    if parts:
        more = {"FilterExpression": " AND ".join(parts), "ExpressionAttributeNames": names}
    found: list[AuditEntry] = []
    while len(found) < query.limit:
        page = await client.query(
            AUDIT,
            KeyConditionExpression="p = :p AND s BETWEEN :first AND :last",
            ExpressionAttributeValues=values,
            ScanIndexForward=False,
            Limit=client.settings.page_items_max if parts else min(query.limit + 1, client.settings.page_items_max),
            **more,
        )
        found += [decode_audit(bytes(item["r"]["B"])) for item in page["Items"] if bytes(item["s"]["B"]) < last]
        if "LastEvaluatedKey" not in page:
            break
        more["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    return found[: query.limit]


async def purge_audit(client: DynamoClient, before_us: int, limit: int) -> int:
    """Removes up to `limit` entries with at < before_us, oldest first; returns how many."""
    keys: list[Item] = []
    more: dict[str, Any] = {}
    while len(keys) < limit:
        page = await client.query(
            AUDIT,
            KeyConditionExpression="p = :p AND s < :before",
            ExpressionAttributeValues={":before": {"B": instant_bytes(before_us)}},
            ProjectionExpression="p, s",
            Limit=limit - len(keys),
            **more,
        )
        keys += page["Items"]
        if "LastEvaluatedKey" not in page:
            break
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    await client.batch_delete(keys)
    return len(keys)


def _audit_sort(at: int, entry_id: bytes) -> bytes:
    return instant_bytes(at) + entry_id
