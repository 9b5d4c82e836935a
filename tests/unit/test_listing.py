"""The store reads of one page of a list."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import msgspec
from tests.support.cases import each

from tocsin.model.timer import Status, Timer, encode_record
from tocsin.ports.store import Listed, ListQuery, StoredRow, within
from tocsin.stores.memory import MemoryStore
from tocsin.testing.store_conformance_base import claimed, finished, row
from tocsin.timers.listing import LIST_BYTES_MAX, IdListRequest, ListRequest, list_page, page_by_id

ROWS = 1_000
#: Rows with payloads of 200,000 characters that a page has room for.
LARGE_ROWS = LIST_BYTES_MAX // 200_000 + 1
_RECORD = encode_record(Timer("default", "order", 1, "http://shop.test", 0, 0))


class ManyRows:
    """Lists a store with `ROWS` pending timers, each with a payload of that many characters, but for the first small ones."""

    def __init__(self, payload_chars: int, small_rows: int = 0) -> None:
        payload = msgspec.Raw(b'"' + b"x" * payload_chars + b'"')
        self.small_rows = small_rows
        self.small, self.large = (
            encode_record(Timer("shop", "order", 1, "http://shop.test", 0, 0, sent)) for sent in (None, payload)
        )

    async def read(self, query: ListQuery) -> Listed:
        first = 0 if query.cursor is None else query.cursor[0] + 1
        last = min(first + query.limit, ROWS) - 1
        rows = [
            StoredRow(
                number,
                bytes(16),
                bytes(32),
                "shop",
                "order",
                (),
                self.small if number < self.small_rows else self.large,
            )
            for number in range(first, last + 1)
        ]
        kept = within(query.bytes_max, rows)
        end = first + len(kept) - 1
        return Listed([*kept], None if end == ROWS - 1 else (end, bytes(16), bytes(32)))


class RowsById:
    """Reads a store with `ROWS` rows by their ids."""

    def __init__(self, payload_chars: int) -> None:
        self.payload = msgspec.Raw(b'"' + b"x" * payload_chars + b'"')
        self.reads = 0

    async def __call__(self, after_id: str, limit: int) -> list[StoredRow]:
        self.reads += 1
        names = [name for number in range(1, ROWS + 1) if (name := f"{number:04}") > after_id][:limit]
        timers = [Timer("shop", name, 1, "http://shop.test", 0, 0, self.payload) for name in names]
        return [StoredRow(0, bytes(16), bytes(8), "shop", each.id, (), encode_record(each)) for each in timers]


@each(
    "payload_chars, small_rows, rows",
    # The last: rows that the first read finds small, and the next large.
    [(10, 0, 500), (200_000, 0, LARGE_ROWS), (200_000, 100, 100 + LARGE_ROWS)],
)
def test_page_is_full_unless_its_rows_are_large_and_the_next_one_continues_it(
    payload_chars: int, small_rows: int, rows: int
) -> None:
    request = ListRequest("shop", limit=500, reads_max=1)
    read = ManyRows(payload_chars, small_rows).read
    views, cursor = asyncio.run(list_page(request, ("shop",), (0,), read, lambda _: 0))
    assert cursor is not None
    assert len(views) == rows
    (following, *_), _ = asyncio.run(list_page(replace(request, cursor=cursor), ("shop",), (0,), read, lambda _: 0))
    assert (views[-1].next_attempt_at, following.next_attempt_at) == (rows - 1, rows)


def test_page_is_as_short_as_its_request_wants() -> None:
    request = ListRequest("shop", limit=500, bytes_max=500_000)
    views, cursor = asyncio.run(list_page(request, ("shop",), (0,), ManyRows(200_000).read, lambda _: 0))
    assert (len(views), cursor is None) == (3, False)


@each(
    "payload_chars, limit, rows, more",
    [(10, 250, 250, True), (10, 999, 999, True), (10, 1_000, 1_000, False), (200_000, 1_000, LARGE_ROWS, True)],
)
def test_page_in_the_order_of_ids_is_full_unless_its_rows_are_large(
    payload_chars: int, limit: int, rows: int, more: bool
) -> None:
    read = RowsById(payload_chars)
    views, cursor = asyncio.run(page_by_id(IdListRequest(limit=limit), read, lambda _: 0))
    assert len(views) == rows
    assert cursor == (f"{rows:04}" if more else None)


@each("limit, every, prefix", [(3, 1, ""), (3, 7, ""), (100, 50, "0"), (1, 999, ""), (9, 10, "03")])
def test_pages_of_a_filtered_list_have_every_match_once_and_bounded_reads(limit: int, every: int, prefix: str) -> None:
    read = RowsById(10)

    def matches(timer: Timer) -> bool:
        return int(timer.id) % every == 0

    found: list[str] = []
    after = prefix
    while True:
        read.reads = 0
        request = IdListRequest(after, limit, prefix, matches, reads_max=2)
        views, cursor = asyncio.run(page_by_id(request, read, lambda _: 0))
        assert read.reads <= 2
        assert len(views) <= limit
        found += [view.timer.id for view in views]
        if cursor is None:
            break
        after = cursor
    wanted = [f"{number:04}" for number in range(every, ROWS + 1, every)]
    assert found == [name for name in wanted if name.startswith(prefix)]


async def test_page_with_the_latest_first_is_one_read() -> None:
    store = MemoryStore()
    await store.open(4)
    for shard_id in range(4):
        batch = await claimed(store, shard_id)
        rows = [row(number, number**3, record=_RECORD) for number in range(shard_id, ROWS, 4)]
        batch.upserts, batch.history = rows[: ROWS // 8], [finished(each, Status.FAILED) for each in rows[ROWS // 8 :]]
        await store.apply([batch])
    queries: list[ListQuery] = []

    async def read(query: ListQuery) -> Listed:
        queries.append(query)
        return await store.list(query)

    request = ListRequest("default", limit=50, descending=True)
    views, cursor = await list_page(request, ("default",), range(4), read, lambda _: 0)
    following, _ = await list_page(replace(request, cursor=cursor), ("default",), range(4), read, lambda _: 0)
    numbers = [int.from_bytes(view.uuid, "big") for view in (*views, *following)]
    assert numbers == [*range(ROWS - 1, ROWS - 101, -1)]
    assert len(queries) == 2
