"""Lists over DynamoDB: of timers, along the index by instant, and of schedules.

DynamoDB filters the entries and returns how far it has read. Then the rows of the chosen entries are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tocsin.model.timer import Status
from tocsin.ports.store import SCHEDULES_SUFFIX, HistoryRow, Listed, ListQuery, StoredRow, schedules_of
from tocsin.stores.client_store import ClientStore
from tocsin.stores.dynamodb.client import DynamoClient
from tocsin.stores.dynamodb.items import generation_of_entry, row_of
from tocsin.stores.dynamodb.keys import (
    BY_EXPIRY,
    SCHEDULES_BEGIN,
    SCHEDULES_END,
    Item,
    behind,
    partition_of,
    schedule_order,
    schedules_end,
)
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
        partition_of(shard_id),
        FilterExpression=condition,
        ExpressionAttributeNames=names,
        Limit=limit,
        ScanIndexForward=not query.descending,
        **arguments,
    )
    matches = []
    for item in page["Items"]:
        place = place_of_key(bytes(item["o"]["B"]))
        if kind != FINISHED:
            place = (*place[:2], generation_of_entry(item))
        matches.append(Match(place, {"p": item["p"], "s": item["s"]}))
    ended = "LastEvaluatedKey" not in page
    last_read = None if ended else bytes(page["LastEvaluatedKey"]["o"]["B"])
    reached = None if last_read is None else place_of_key(last_read, descending=query.descending)
    return Page(matches, reached, int(page["ScannedCount"]))


async def _rows(client: DynamoClient, keys: Sequence[Item]) -> list[StoredRow | HistoryRow | None]:
    """The rows of these primary keys."""
    found = {_identity(item): row_of(item) for item in await client.batch_get(keys)}
    return [found.get(_identity(key)) for key in keys]


def _identity(key: Item) -> tuple[str, bytes]:
    return key["p"]["S"], bytes(key["s"]["B"])


def _filter(query: ListQuery, *, finished: bool) -> tuple[str, dict[str, str], dict[str, Any]]:
    """The condition on namespaces, id, tags and status, with its names and values."""
    names, values = {"#n": "n"}, {}
    if query.namespaces is None:
        parts, values[":n"] = ["NOT contains(#n, :n)"], {"S": "/"}
    else:
        # No list is empty in a condition; the empty name is no namespace's.
        values = {f":n{number}": {"S": name} for number, name in enumerate(query.namespaces or ("",))}
        parts = [f"#n IN ({', '.join(values)})"]
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


async def _schedule_entries(
    client: DynamoClient, first: bytes, last: bytes, limit: int, own: bool, shard_id: int
) -> list[Item]:
    """The entries of a shard's schedules behind `first`, with `own` also those at it: `limit` and one more, or all."""
    found = await client.items(
        partition_of(shard_id),
        limit=limit + 1,
        index=BY_EXPIRY,
        KeyConditionExpression="p = :p AND e BETWEEN :first AND :last",
        ExpressionAttributeValues={":first": {"B": first if own else behind(first)}, ":last": {"B": last}},
    )
    return [item for item in found if own or _expiry_of(item) > first]


def _expiry_of(item: Item) -> bytes:
    return bytes(item["e"]["B"])


def _place_of_schedule(name: str, schedule_id: str) -> tuple[bytes, str]:
    return schedule_order(name, schedule_id), name


def _has_namespace(row: StoredRow) -> bool:
    """Not so of a damaged one that has lost it."""
    return row.namespace.endswith(SCHEDULES_SUFFIX)


class DynamoLists(ClientStore[DynamoClient]):
    """A store's lists of timers and schedules. None is a snapshot."""

    async def list_schedules(self, namespace: str, shards: Sequence[int], after_id: str, limit: int) -> list[StoredRow]:
        """The namespace's live schedules in these shards behind an id, in the order of ids: the first `limit`."""
        name = schedules_of(namespace)
        first, last = schedule_order(name, after_id), schedules_end(name)
        return await self._schedules(shards, first, last, limit, lambda row: row.namespace == name)

    async def list_all_schedules(
        self, shards: Sequence[int], after: tuple[str, str] | None, limit: int
    ) -> list[StoredRow]:
        """All live schedules in these shards behind a namespace and id, by the hashes of namespaces and the ids."""
        if after is None:
            return await self._schedules(shards, SCHEDULES_BEGIN, SCHEDULES_END, limit, _has_namespace)
        place = _place_of_schedule(schedules_of(after[0]), after[1])
        # Another namespace with the same hash may have a schedule of this id, too.
        return await self._schedules(
            shards,
            place[0],
            SCHEDULES_END,
            limit,
            lambda row: _has_namespace(row) and _place_of_schedule(row.namespace, row.timer_id) > place,
            own=True,
        )

    async def _schedules(
        self,
        shards: Sequence[int],
        first: bytes,
        last: bytes,
        limit: int,
        wants: Callable[[StoredRow], bool],
        *,
        own: bool = False,
    ) -> list[StoredRow]:
        """The schedules that `wants` has, in the order of their entries behind `first`, with `own` also those at it."""
        client = self._open
        found: list[StoredRow] = []
        while len(found) < limit:
            wanted = limit - len(found)
            read = partial(_schedule_entries, client, first, last, wanted, own)
            of_shards = await client.in_parallel(read, sorted(set(shards)))
            ahead = sorted((each for entries in of_shards for each in entries), key=_expiry_of)
            # With those of the same `e` as the last: their namespaces have the same hash.
            entries = [each for each in ahead if _expiry_of(each) <= _expiry_of(ahead[:wanted][-1])]
            items = await client.batch_get([{"p": each["p"], "s": each["s"]} for each in entries]) if entries else []
            # One may have ended since its entry was read, or be another namespace's. A damaged one that has lost its id would
            # begin the list again if it ended a page.
            rows = [row for item in items if isinstance(row := row_of(item), StoredRow)]
            found += [row for row in rows if row.timer_id and wants(row)]
            if len(entries) < wanted:
                break
            first, own = _expiry_of(entries[-1]), False
        return sorted(found, key=lambda row: _place_of_schedule(row.namespace, row.timer_id))

    async def list(self, query: ListQuery) -> Listed:
        """A page of timers, live and finished, in the order of the query."""
        client = self._open
        rows_of = partial(_rows, client)
        return await merge(client, query, partial(_read, client, query), rows_of, client.options.page_items_max)
