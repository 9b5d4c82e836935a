"""Lists over DynamoDB: of timers, along the index by instant, and of schedules.

DynamoDB filters the entries and returns how far it has read. Then the rows of the chosen entries are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tocsin.model.timer import Status
from tocsin.ports.store import HistoryRow, Listed, ListQuery, StoredRow, schedules_of
from tocsin.stores.client_store import ClientStore
from tocsin.stores.dynamodb.client import DynamoClient
from tocsin.stores.dynamodb.items import generation_of_entry, row_of
from tocsin.stores.dynamodb.keys import BY_EXPIRY, Item, behind, partition_of, schedule_order, schedules_end
from tocsin.stores.dynamodb.reads import between
from tocsin.stores.lists import Match, Page, merge
from tocsin.stores.orders import FINISHED, place_of_key


async def _read(
    client: DynamoClient, query: ListQuery, shard_id: int, kind: bytes, first: bytes, last: bytes, limit: int
) -> Page[Item]:
    """The primary keys of the matching entries among the first `limit` of a range."""
    arguments = between(first, last)
    condition, names, values = _filter(query, finished=kind == FINISHED)
    arguments["ExpressionAttributeValues"] |= values
    page = await client.query(
        partition_of(shard_id), FilterExpression=condition, ExpressionAttributeNames=names, Limit=limit, **arguments
    )
    matches = []
    for item in page["Items"]:
        place = place_of_key(bytes(item["o"]["B"]))
        if kind != FINISHED:
            place = (*place[:2], generation_of_entry(item))
        matches.append(Match(place, {"p": item["p"], "s": item["s"]}))
    ended = "LastEvaluatedKey" not in page
    reached = None if ended else place_of_key(bytes(page["LastEvaluatedKey"]["o"]["B"]))
    return Page(matches, reached, int(page["ScannedCount"]))


async def _rows(client: DynamoClient, keys: Sequence[Item]) -> list[StoredRow | HistoryRow | None]:
    """The rows of these primary keys."""
    found = {_identity(item): row_of(item) for item in await client.batch_get(keys)}
    return [found.get(_identity(key)) for key in keys]


def _identity(key: Item) -> tuple[str, bytes]:
    return key["p"]["S"], bytes(key["s"]["B"])


def _filter(query: ListQuery, *, finished: bool) -> tuple[str, dict[str, str], dict[str, Any]]:
    """The condition on namespace, id, tags and status, with its names and values."""
    parts, names, values = ["#n = :n"], {"#n": "n"}, {":n": {"S": query.namespace}}
    if query.id_prefix:
        parts.append("begins_with(#i, :i)")
        names["#i"] = "i"
        values[":i"] = {"S": query.id_prefix}
    for number, tag in enumerate(query.tags):
        parts.append(f"contains(#t, :t{number})")
        names["#t"] = "t"
        values[f":t{number}"] = {"S": tag}
    if finished:
        names["#z"] = "z"
        wanted = sorted(status.value for status in query.statuses if status is not Status.PENDING)
        values |= {f":z{number}": {"S": status} for number, status in enumerate(wanted)}
        parts.append(f"#z IN ({', '.join(f':z{number}' for number in range(len(wanted)))})")
    return " AND ".join(parts), names, values


async def _schedule_entries(client: DynamoClient, first: bytes, last: bytes, limit: int, shard_id: int) -> list[Item]:
    """The entries of a shard's schedules behind `first`: `limit` and one more, or all."""
    found = await client.items(
        partition_of(shard_id),
        limit=limit + 1,
        index=BY_EXPIRY,
        KeyConditionExpression="p = :p AND e BETWEEN :behind AND :last",
        ExpressionAttributeValues={":behind": {"B": behind(first)}, ":last": {"B": last}},
    )
    return [item for item in found if _expiry_of(item) > first]


def _expiry_of(item: Item) -> bytes:
    return bytes(item["e"]["B"])


class DynamoLists(ClientStore[DynamoClient]):
    """A store's lists of timers and schedules. None is a snapshot."""

    async def list_schedules(self, namespace: str, shards: Sequence[int], after_id: str, limit: int) -> list[StoredRow]:
        """The namespace's live schedules in these shards behind an id, in the order of ids: the first `limit`."""
        client = self._open
        name = schedules_of(namespace)
        first, last = schedule_order(name, after_id), schedules_end(name)
        found: list[StoredRow] = []
        while len(found) < limit:
            wanted = limit - len(found)
            read = partial(_schedule_entries, client, first, last, wanted)
            of_shards = await client.in_parallel(read, sorted(set(shards)))
            ahead = sorted((each for entries in of_shards for each in entries), key=_expiry_of)
            # With those of the same `e` as the last: their namespaces have the same hash.
            entries = [each for each in ahead if _expiry_of(each) <= _expiry_of(ahead[:wanted][-1])]
            items = await client.batch_get([{"p": each["p"], "s": each["s"]} for each in entries]) if entries else []
            # One may have ended since its entry was read, or be another namespace's. A damaged one that has lost its id would
            # begin the list again if it ended a page.
            rows = [row for item in items if isinstance(row := row_of(item), StoredRow)]
            found += [row for row in rows if row.namespace == name and row.timer_id]
            if len(entries) < wanted:
                break
            first = _expiry_of(entries[-1])
        return sorted(found, key=lambda row: row.timer_id.encode())

    async def list(self, query: ListQuery) -> Listed:
        """A page of one namespace's timers, live and finished, in the order of the query."""
        client = self._open
        rows_of = partial(_rows, client)
        return await merge(client, query, partial(_read, client, query), rows_of, client.options.page_items_max)
