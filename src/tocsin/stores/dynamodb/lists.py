"""Lists over DynamoDB: a merge of sorted ranges (per shard: live, suspended, finished) with bounded work, and schedules.

Each range is read page by page from the index; DynamoDB filters the entries and returns how far it has read. The result is
complete up to the place that all ranges have reached. Finally the rows of the chosen entries are read. A list is not a
snapshot: a timer that moves during the reads may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from tocsin.model.timer import Status
from tocsin.ports.store import (
    GENERATION_END,
    HistoryRow,
    ListCursor,
    Listed,
    ListQuery,
    StoredRow,
    schedules_of,
)
from tocsin.stores.dynamodb.client import DynamoClient
from tocsin.stores.dynamodb.items import generation_of_entry, row_of
from tocsin.stores.dynamodb.keys import (
    BY_EXPIRY,
    FINISHED,
    LIVE,
    SUSPENDED,
    Item,
    order,
    partition_of,
    place_of,
    schedule_order,
    schedules_end,
)
from tocsin.stores.dynamodb.reads import between

_INSTANT_MIN, _INSTANT_MAX = -(2**63), 2**63 - 1
_UUID_MAX = b"\xff" * 16
#: Rows that a first request may pass at least, and any at most.
_SPAN_ROWS_FIRST, _SPAN_ROWS_MAX = 8, 2_000

Row = StoredRow | HistoryRow


class _Entry(NamedTuple):
    """A row that matches: its place, and its primary key."""

    place: ListCursor
    key: Item


class _Range:
    """Rows of one kind in one shard, in order: matching entries that are not chosen yet, and how far it has been read."""

    def __init__(self, shard_id: int, kind: bytes, start: ListCursor) -> None:
        self.entries: list[_Entry] = []
        self.reached = start
        self.ended = False
        self._partition = partition_of(shard_id)
        self._kind = kind

    async def read(self, client: DynamoClient, query: ListQuery, last_us: int, span: int) -> int:
        """Reads up to `span` rows more; returns how many were passed."""
        at, uuid, generation = self.reached
        if self._kind == FINISHED or generation == GENERATION_END:
            # After the place. The `o` of live rows has no generation, so the row at the place itself may still follow.
            first = order(self._kind, at, uuid, generation if self._kind == FINISHED else b"") + b"\x00"
        else:
            first = order(self._kind, at, uuid)
        last = order(self._kind, last_us, _UUID_MAX, GENERATION_END if self._kind == FINISHED else b"")
        if first > last:
            self.ended = True
            return 0
        arguments = between(first, last)
        condition, names, values = _filter(query, finished=self._kind == FINISHED)
        page = await client.query(
            self._partition,
            index=arguments["index"],
            KeyConditionExpression=arguments["KeyConditionExpression"],
            FilterExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=arguments["ExpressionAttributeValues"] | values,
            Limit=span,
        )
        for item in page["Items"]:
            place = place_of(bytes(item["o"]["B"]))
            if self._kind != FINISHED:
                place = (*place[:2], generation_of_entry(item))
            if place > self.reached:
                self.entries.append(_Entry(place, {"p": item["p"], "s": item["s"]}))
        if "LastEvaluatedKey" in page:
            self.reached = place_of(bytes(page["LastEvaluatedKey"]["o"]["B"]))
        else:
            self.ended = True
        return int(page["ScannedCount"])


async def list_rows(client: DynamoClient, query: ListQuery) -> Listed:
    """A page of one namespace's timers, live and finished, in the order of the query. Each call reads at least one entry of
    each range, even beyond `scan_rows_max`, so that it advances."""
    start: ListCursor = (_INSTANT_MIN if query.execute_after is None else query.execute_after, b"", b"")
    start = max(start, query.cursor or start)
    last_us = _INSTANT_MAX if query.execute_before is None else query.execute_before - 1
    ranges = _ranges(query, start) if last_us >= _INSTANT_MIN else []
    chosen: list[_Entry] = []
    scanned = 0
    span = max(1, min(_share(query.limit, ranges), query.scan_rows_max // max(len(ranges), 1)))
    while True:
        behind = [each for each in ranges if not each.ended]
        # Entries are complete up to the place that all ranges have reached.
        frontier = min((each.reached for each in behind), default=None)
        if scanned or frontier is None:
            if not _take(ranges, frontier, query.limit - len(chosen), chosen):
                return Listed(await _rows(client, chosen), chosen[-1].place)
            if frontier is None or len(chosen) >= query.limit or scanned >= query.scan_rows_max:
                return Listed(await _rows(client, chosen), frontier)
        wanted = _may_have_more(behind, ranges, query.limit - len(chosen))
        size = min(span, client.settings.page_items_max)
        passed = await client.in_parallel(partial(_read, client, query, last_us, size), wanted)
        scanned += max(sum(passed), 1)
        span = max(1, min(2 * span, _SPAN_ROWS_MAX, (query.scan_rows_max - scanned) // len(ranges)))


def _share(limit: int, ranges: Sequence[_Range]) -> int:
    """Entries that the first request to each range reads: twice its share of a page, but at least as many as one read unit
    usually pays for."""
    return max(_SPAN_ROWS_FIRST, 2 * limit // max(len(ranges), 1))


def _may_have_more(behind: list[_Range], ranges: list[_Range], missing: int) -> list[_Range]:
    """The ranges of `behind`, which have more entries, that may contain entries of this page."""
    known = sorted(entry.place for each in ranges for entry in each.entries)
    if len(known) < missing:
        return behind
    return [each for each in behind if each.reached < known[missing - 1]]


async def _read(client: DynamoClient, query: ListQuery, last_us: int, span: int, each: _Range) -> int:
    return await each.read(client, query, last_us, span)


async def _rows(client: DynamoClient, chosen: Sequence[_Entry]) -> list[Row]:
    """The rows of these entries, except those that have changed since their entries were read."""
    found: dict[tuple[str, bytes], Row] = {}
    for item in await client.batch_get([each.key for each in chosen]) if chosen else ():
        found[item["p"]["S"], bytes(item["s"]["B"])] = row_of(item)
    rows = []
    for each in chosen:
        row = found.get((each.key["p"]["S"], bytes(each.key["s"]["B"])))
        if row is not None and (row.execute_at, row.uuid, row.generation) == each.place:
            rows.append(row)
    return rows


def _ranges(query: ListQuery, start: ListCursor) -> list[_Range]:
    kinds = [LIVE, SUSPENDED] if Status.PENDING in query.statuses else []
    if query.statuses - {Status.PENDING}:
        kinds.append(FINISHED)
    return [_Range(shard_id, kind, start) for shard_id in sorted(set(query.shards)) for kind in kinds]


def _take(ranges: list[_Range], frontier: ListCursor | None, limit: int, chosen: list[_Entry]) -> bool:
    """Moves up to `limit` entries that are not after the frontier into `chosen`. False if there were more."""
    ready = sorted(
        (entry for each in ranges for entry in each.entries if frontier is None or entry.place <= frontier),
        key=lambda entry: entry.place,
    )
    chosen += ready[:limit]
    for each in ranges:
        each.entries = [entry for entry in each.entries if frontier is not None and entry.place > frontier]
    return len(ready) <= limit


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


async def list_schedules(
    client: DynamoClient, namespace: str, shards: Sequence[int], after_id: str, limit: int
) -> list[StoredRow]:
    """The namespace's live schedules in these shards behind an id, in the order of ids: the first `limit`."""
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
        # One may have ended since its entry was read, or be another namespace's.
        found += [row for item in items if isinstance(row := row_of(item), StoredRow) and row.namespace == name]
        if len(entries) < wanted:
            break
        first = _expiry_of(entries[-1])
    return sorted(found, key=lambda row: row.timer_id.encode())


async def _schedule_entries(client: DynamoClient, first: bytes, last: bytes, limit: int, shard_id: int) -> list[Item]:
    """The entries of a shard's schedules behind `first`: `limit` and one more, or all."""
    found: list[Item] = []
    more: dict[str, Any] = {}
    while len(found) <= limit:
        page = await client.query(
            partition_of(shard_id),
            index=BY_EXPIRY,
            KeyConditionExpression="p = :p AND e BETWEEN :first AND :last",
            ExpressionAttributeValues={":first": {"B": first}, ":last": {"B": last}},
            # The range includes its beginning.
            Limit=min(limit - len(found) + 2, client.settings.page_items_max),
            **more,
        )
        found += [item for item in page["Items"] if _expiry_of(item) > first]
        if "LastEvaluatedKey" not in page:
            break
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    return found


def _expiry_of(item: Item) -> bytes:
    return bytes(item["e"]["B"])
