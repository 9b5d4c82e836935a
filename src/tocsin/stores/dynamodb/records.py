"""Records in DynamoDB: a partition for each kind, an item for each record. The kind's version is in the item before them all,
which every write changes in the same transaction."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from tocsin.ports.records import RECORD_KEY_END, Record
from tocsin.stores.client_store import ClientStore
from tocsin.stores.dynamodb.client import DynamoClient
from tocsin.stores.dynamodb.errors import ConditionFailed
from tocsin.stores.dynamodb.items import bytes_in, text_in
from tocsin.stores.dynamodb.keys import Item, key, records_of

#: The sort key of the kind's version; those of records are visible characters.
_VERSION = b"\x00"


class DynamoRecords(ClientStore[DynamoClient]):
    """The records of a store."""

    async def record(self, kind: str, key: str) -> Record | None:
        """The record with this key."""
        item = await self._open.get(_place(kind, key))
        return None if item is None else _record(item)

    async def records(
        self, kind: str, after: str = "", before: str = RECORD_KEY_END, *, limit: int, descending: bool = False
    ) -> builtins.list[Record]:
        """The records with after < key < before in the order of their keys: the first `limit`, or the last ones, last
        first."""
        # A range includes its ends, of which the first is the smallest key behind `after`, and the last is dropped.
        first, last = after.encode() + b"\x01", before.encode()
        found: list[Record] = []
        more: dict[str, Any] = {}
        while len(found) < limit and first <= last:
            page = await self._open.query(
                records_of(kind),
                KeyConditionExpression="p = :p AND s BETWEEN :first AND :last",
                ExpressionAttributeValues={":first": {"B": first}, ":last": {"B": last}},
                ScanIndexForward=not descending,
                Limit=min(limit + 1 - len(found), self._open.options.page_items_max),
                **more,
            )
            found += [_record(item) for item in page["Items"] if bytes_in(item, "s") != last]
            if "LastEvaluatedKey" not in page:
                break
            more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        return found[:limit]

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        """Replaces the record's value if its version is `expected`; with None, creates the record if there is none."""
        item = {**_place(kind, key), "r": {"S": value}, "v": {"N": str((expected or 0) + 1)}}
        put: Item = {"Item": item, "ConditionExpression": "attribute_not_exists(p)"}
        if expected is not None:
            put |= {"ConditionExpression": "v = :v", "ExpressionAttributeValues": {":v": {"N": str(expected)}}}
        try:
            await self._open.transact([{"Put": put}, self._next_version(kind)])
        except ConditionFailed:
            return False
        return True

    async def delete_records(self, kind: str, keys: Sequence[str]) -> bool:
        """Removes the records with these keys, all together; whether there was any."""
        places = [_place(kind, key) for key in set(keys)]
        while found := await self._open.batch_get(places):
            keys_found = [{"p": item["p"], "s": item["s"]} for item in found]
            deletes: list[Item] = [
                {"Delete": {"Key": each, "ConditionExpression": "attribute_exists(p)"}} for each in keys_found
            ]
            try:
                await self._open.transact([*deletes, self._next_version(kind)])
            except ConditionFailed:
                # Another node has removed one of them meanwhile.
                continue
            return True
        return False

    async def records_versions(self, *kinds: str, urgent: bool = False) -> tuple[int, ...]:
        """How many writes of each kind there were."""
        client = self._open
        items = await client.in_parallel(client.get, [key(records_of(kind), _VERSION) for kind in kinds])
        return tuple(0 if item is None else _record(item).version for item in items)

    def _next_version(self, kind: str) -> Item:
        return {
            "Update": {
                "Key": key(records_of(kind), _VERSION),
                "UpdateExpression": "ADD v :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
        }


def _place(kind: str, record_key: str) -> Item:
    return key(records_of(kind), record_key.encode())


def _record(item: Item) -> Record:
    version = str(item.get("v", {}).get("N", ""))
    return Record(bytes_in(item, "s").decode(), text_in(item, "r"), int(version) if version.isdecimal() else 0)
