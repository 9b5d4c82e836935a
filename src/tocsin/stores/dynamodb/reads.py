"""Reads of timers, shard items and members. All reads are strongly consistent. A query is not a snapshot: it returns each
item as of some committed transaction, which suffices because each shard has one writer (rule 9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tocsin.ports.store import (
    GENERATION_END,
    PAGE_BYTES_MAX,
    Ends,
    FailurePlace,
    FailureRow,
    FireKey,
    Found,
    HistoryRow,
    Loaded,
    Member,
    RunRow,
    ShardState,
    StoredRow,
    within,
)
from tocsin.sql.rows import found_of
from tocsin.stores.client_store import ClientStore
from tocsin.stores.dynamodb.client import DynamoClient
from tocsin.stores.dynamodb.items import bytes_in, failure_row_of, row_of, run_row_of, text_in
from tocsin.stores.dynamodb.keys import (
    BY_INSTANT,
    MEMBERS,
    RUNS_BEGIN,
    Item,
    history_key,
    is_run,
    partition_of,
    run_key,
    shard_key,
)
from tocsin.stores.lists import READ_ROWS_MAX, newest_runs
from tocsin.stores.orders import FINISHED, behind, failures_behind, fire_key_of, order_key

#: Sorts after what follows the beginning of a key.
_END = b"\xff" * 64
_RANGE = "p = :p AND o BETWEEN :first AND :last"


def between(first: bytes, last: bytes) -> dict[str, Any]:
    """The arguments of a query for a range of the index by instant; `first` must not be above `last`."""
    return {
        "index": BY_INSTANT,
        "KeyConditionExpression": _RANGE,
        "ExpressionAttributeValues": {":first": {"B": first}, ":last": {"B": last}},
    }


def between_keys(first: Item, last: Item) -> dict[str, Any]:
    """The arguments of a query for the items between two primary keys."""
    return {
        "KeyConditionExpression": "p = :p AND s BETWEEN :first AND :last",
        "ExpressionAttributeValues": {":first": first["s"], ":last": last["s"]},
    }


class DynamoReads(ClientStore[DynamoClient]):
    """A store's reads of timers, shards and members."""

    async def _page(self, kind: bytes, shard_id: int, after: FireKey, last: FireKey, limit: int) -> Loaded:
        """One page of live or suspended rows with after < key ≤ last: at most `limit`, and what DynamoDB reads at once (1
        MB)."""
        client = self._open
        begin, stop = behind(order_key(kind, *after)), order_key(kind, *last)
        more: dict[str, Any] = {}
        while begin <= stop:
            page = await client.query(
                partition_of(shard_id),
                Limit=min(limit, client.options.page_items_max),
                Select="ALL_ATTRIBUTES",
                **between(begin, stop),
                **more,
            )
            rows = [row for item in page["Items"] if isinstance(row := row_of(item), StoredRow)]
            if "LastEvaluatedKey" not in page:
                return Loaded(rows, last)
            if rows:
                # Completeness follows from LastEvaluatedKey, never from the number of rows.
                return Loaded(rows, fire_key_of(bytes(page["LastEvaluatedKey"]["o"]["B"])))
            more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        return Loaded([], last)

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any item is absent. One query per uuid, in descending order: first the
        live row, then the newest finished one."""
        client = self._open

        async def of_timer(uuid: bytes) -> list[Item]:
            return await client.items(
                partition_of(shard_id),
                limit=2,
                KeyConditionExpression="p = :p AND begins_with(s, :uuid)",
                ExpressionAttributeValues={":uuid": {"B": uuid}},
                ScanIndexForward=False,
            )

        pages = await client.in_parallel(of_timer, dict.fromkeys(uuids))
        # Of two finished rows the newer one counts.
        return found_of((row_of(item) for page in pages for item in reversed(page)), uuids)

    async def runs(
        self, shard_id: int, uuid: bytes, before: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX
    ) -> list[HistoryRow | RunRow]:
        """Finished rows and runs of one timer with generation < before, greatest generation first: a few, whose sizes are not
        known before. One query for each kind."""
        client = self._open
        limit = min(limit, READ_ROWS_MAX)

        async def of_kind(key_of: Callable[[int, bytes, bytes], Item]) -> list[Item]:
            # One item more: the range includes its ends.
            generations = b"", before or GENERATION_END
            return await client.items(
                partition_of(shard_id),
                limit=limit + 1,
                ScanIndexForward=False,
                **between_keys(*(key_of(shard_id, uuid, each) for each in generations)),
            )

        finished, others = await client.in_parallel(of_kind, [history_key, run_key])
        rows: list[HistoryRow | RunRow] = [row for item in finished if isinstance(row := row_of(item), HistoryRow)]
        rows += map(run_row_of, others)
        below = [row for row in rows if before is None or row.generation < before]
        return newest_runs(below, limit, bytes_max)

    async def ends(self, shard_id: int, cursor: bytes | None, limit: int, bytes_max: int = PAGE_BYTES_MAX) -> Ends:
        """A page of a shard's finished rows, along the index by instant, and then of its runs, by uuid and generation."""
        client, limit = self._open, min(limit, READ_ROWS_MAX)
        begin = behind(cursor) if cursor else FINISHED
        finished = begin.startswith(FINISHED)
        if finished:
            query = between(begin, FINISHED + _END) | {"Select": "ALL_ATTRIBUTES"}
        else:
            first, last = (run_key(shard_id, uuid, b"") for uuid in (b"", _END))
            query = between_keys(first | {"s": {"B": max(begin, first["s"]["B"])}}, last)
        items = await client.items(partition_of(shard_id), limit=limit, **query)
        # Keys of runs begin like the uuids of some timers, and are longer.
        ended = [item for item in items if finished or is_run(bytes(item["s"]["B"]))]
        every = [row_of(item) if finished else run_row_of(item) for item in ended]
        kept = [row for row in every if isinstance(row, HistoryRow | RunRow)]
        rows = [*within(bytes_max, kept)]
        if len(rows) < len(kept):
            items = ended[: len(rows)]
        elif len(items) < limit:
            return Ends(rows, RUNS_BEGIN if finished else None)
        return Ends(rows, bytes(items[-1]["o" if finished else "s"]["B"]))

    async def failures(
        self, shard_id: int, after: FailurePlace | None, limit: int, *, descending: bool = False
    ) -> list[FailureRow]:
        """A shard's failures behind a place, or in the opposite order before it. One item more: the range includes its
        ends."""
        first, end = failures_behind(after, descending=descending)
        items = await self._open.items(
            partition_of(shard_id),
            limit=limit + 1,
            Select="ALL_ATTRIBUTES",
            ScanIndexForward=not descending,
            **between(first, end),
        )
        return [failure_row_of(item) for item in items if bytes(item["o"]["B"]) != end][:limit]

    async def shards(self) -> list[ShardState]:
        """Every shard that was ever claimed, by number."""
        items = await self._open.batch_get([shard_key(shard_id) for shard_id in range(self._total_shards)])
        return sorted(_shard_state(item) for item in items if "v" in item)

    async def members(self) -> list[Member]:
        """All members' items."""
        return [_member(item) for item in await self._open.all(MEMBERS)]


def _shard_state(item: Item) -> ShardState:
    owner = bytes(item["w"]["B"]) if "w" in item else None
    return ShardState(int(item["p"]["S"].partition("/")[2]), int(item["v"]["N"]), owner)


def _member(item: Item) -> Member:
    counter = int(item.get("c", {}).get("N", 0))
    return Member(bytes_in(item, "s"), text_in(item, "node"), text_in(item, "address"), counter)
