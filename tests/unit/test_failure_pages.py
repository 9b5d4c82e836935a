"""The store reads of pages of failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar, cast

from tocsin.model.failure_groups import GroupKey
from tocsin.model.ids import timer_uuid
from tocsin.ports.store import GENERATION_BYTES, FailurePlace, FailureRow, Store
from tocsin.tasks import Turns
from tocsin.timers.failures import FailureFilter, Failures
from tocsin.timers.namespaces import Namespaces

T = TypeVar("T")
SHARDS, ROWS, PAGE_ROWS = 24, 12_000, 500


class ManyFailures:
    """A store with timers that have failed one after the other, in shards as their ids have them, all with this cause but
    every hundredth. It is the namespaces too, of which all shards have rows."""

    def __init__(self) -> None:
        self.rows_read = self.reads = 0
        self.shards: list[list[FailureRow]] = [[] for _ in range(SHARDS)]
        for number in reversed(range(ROWS)):
            uuid, cause = timer_uuid("a", str(number)), "HTTP 503" if number % 100 else "HTTP 410"
            row = FailureRow(
                uuid, bytes(GENERATION_BYTES), "a", str(number), f"http://h/\x1f{cause}", number, number, 0
            )
            self.shards[uuid[0] % SHARDS].append(row)

    async def failures(
        self, shard_id: int, after: FailurePlace | None, limit: int, *, descending: bool
    ) -> list[FailureRow]:
        assert descending
        rows = [row for row in self.shards[shard_id] if after is None or row.place < after][:limit]
        self.rows_read += len(rows)
        self.reads += 1
        return rows

    async def ensure_known(self, name: str) -> None:
        assert name == "a"

    def shards_of(self, _: Any) -> range:
        return range(SHARDS)

    async def read(self, call: Awaitable[T]) -> T:
        return await call


async def _pages(many: ManyFailures, wanted: FailureFilter) -> list[str]:
    """The ids of all pages' failures."""
    failures = Failures(cast("Store", many), cast("Namespaces", many), Turns(), SHARDS)
    found: list[str] = []
    cursor: str | None = None
    while True:
        rows, cursor = await failures.members(wanted, PAGE_ROWS, cursor)
        found += [row.timer_id for row in rows]
        if cursor is None:
            return found


def test_pages_have_all_failures_in_order_and_read_few_that_they_leave_out() -> None:
    many = ManyFailures()
    assert asyncio.run(_pages(many, FailureFilter("a"))) == [str(number) for number in reversed(range(ROWS))]
    assert many.rows_read < 3 * ROWS


def test_page_of_a_rare_group_reads_more_at_a_time() -> None:
    many = ManyFailures()
    wanted = FailureFilter("a", group=GroupKey(error="HTTP 410"))
    assert asyncio.run(_pages(many, wanted)) == [str(number) for number in reversed(range(0, ROWS, 100))]
    assert many.reads < 7 * SHARDS
