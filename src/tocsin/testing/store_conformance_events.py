"""Store conformance: the rows of events that wait for sinks. They are suspended rows behind all timers, so no store knows
them; what the engine relies on is tested here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tocsin.model.timer import Status
from tocsin.ports.store import (
    EVENTS_END,
    EVENTS_START,
    EVENTS_SUFFIX,
    TIMERS_END_US,
    Applied,
    FireKey,
    ListQuery,
    Store,
    StoredRow,
    event_instant,
)
from tocsin.testing.store_conformance_base import StoreSuite, claimed, finished, loaded, row, suspended


def event(number: int, *, epoch: int = 1, record: bytes = b'{"type":"timer.failed"}') -> StoredRow:
    """An event. Its uuid sorts against epoch and number."""
    at, uuid = event_instant(epoch, number), ((2**32 - epoch) << 64 | 2**64 - number).to_bytes(16, "big")
    return row(number, at, uuid=uuid, namespace=f"default{EVENTS_SUFFIX}", record=record, suspended="sink")


async def events(store: Store, after: FireKey = EVENTS_START, *, page_rows: int = 100) -> list[StoredRow]:
    """The events of a shard behind a place, read page by page."""
    rows: list[StoredRow] = []
    while after < EVENTS_END:
        page = await store.load_suspended(0, after, page_rows)
        rows += page.rows
        after = page.complete_to
    return rows


class EventConformance(StoreSuite):
    """Events: in the order of their commits, written and removed with the rest of a batch, and seen by nothing else."""

    @pytest.mark.parametrize("page_rows", [1, 2, 100])
    async def test_events_are_read_in_the_order_of_epochs_and_numbers(self, store: Store, page_rows: int) -> None:
        batch = await claimed(store)
        rows = [
            event(number, epoch=epoch)
            for epoch, number in ((1, 1), (1, 2), (1, 300), (2, 1), (70_000, 1), (70_000, 2**37), (2**22, 1))
        ]
        others = [
            row(1, 5),
            row(2, 6, suspended="paused:default"),
            row(3, TIMERS_END_US - 1, suspended="paused:default"),
        ]
        await store.apply([replace(batch, upserts=[*reversed(rows), *others])])
        assert await events(store, page_rows=page_rows) == rows
        assert await events(store, rows[2].key, page_rows=page_rows) == rows[3:]
        assert await suspended(store, page_rows=page_rows) == [*others[1:], *rows]
        assert await loaded(store) == others[:1]

    async def test_events_come_with_what_they_report_and_go_one_by_one(self, store: Store) -> None:
        batch = await claimed(store)
        done, rows = row(1, 10), [event(number) for number in range(1, 6)]
        together = {each.uuid: done.uuid for each in rows}
        await store.apply([replace(batch, upserts=[done])])
        ended = replace(batch, upserts=rows, deletes=[done.uuid], history=[finished(done)], together=together)
        assert await store.apply([ended]) == [Applied.DURABLE]
        assert await events(store) == rows
        gap = rows[3]._replace(record=b'{"type":"gap"}')
        await store.apply([replace(batch, upserts=[gap], deletes=[rows[0].uuid, rows[2].uuid, event(9).uuid])])
        assert await events(store) == [rows[1], gap, rows[4]]

    async def test_a_range_delete_removes_no_event(self, store: Store) -> None:
        self.require_range_delete(store)
        batch, rows = await claimed(store), [event(1), event(2)]
        await store.apply([replace(batch, upserts=[row(1, 10), *rows])])
        await store.apply([replace(batch, delete_to=(TIMERS_END_US, b"\xff" * 16))])
        assert await events(store) == rows

    async def test_lists_end_before_events(self, store: Store) -> None:
        batch, timer = await claimed(store), row(1, 10)
        await store.apply([replace(batch, upserts=[timer, *(event(number) for number in range(1, 40))])])
        query = ListQuery(
            ("default",), (0,), frozenset(Status), execute_before=TIMERS_END_US, limit=10, scan_rows_max=5
        )
        found = await store.list(query)
        assert (found.rows, found.cursor) == ([timer], None)

    async def test_a_list_by_their_name_has_the_first_event(self, store: Store) -> None:
        batch, rows = await claimed(store), [event(number) for number in range(1, 40)]
        others = [
            each._replace(namespace=f"other{EVENTS_SUFFIX}", uuid=each.uuid[::-1], execute_at=each.execute_at - 100)
            for each in rows
        ]
        await store.apply([replace(batch, upserts=[row(1, 10), *others, *rows])])
        found, cursor = list[bytes](), None
        for _ in range(100):
            query = ListQuery(
                (f"default{EVENTS_SUFFIX}",), (0,), frozenset({Status.PENDING}), execute_after=TIMERS_END_US,
                cursor=cursor, limit=1, scan_rows_max=20,
            )  # fmt: skip
            page = await store.list(query)
            found += [each.uuid for each in page.rows]
            if found or (cursor := page.cursor) is None:
                break
        assert found == [rows[0].uuid]
