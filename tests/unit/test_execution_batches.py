"""Group commit: which items accumulate, which are retried, which are refused."""

from __future__ import annotations

import asyncio

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreUnavailable
from tocsin.model.ids import Uuid7Source
from tocsin.service_calls.background import AgentContext, GroupCommit
from tocsin.service_calls.events import AgentEvent, AgentStepFailed
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import Registry
from tocsin.testing.clock import FakeClock


class Table:
    """Writes what it receives, unless set otherwise; `written` grows by batches."""

    def __init__(self) -> None:
        self.written: list[list[int]] = []
        self.failures: list[Exception] = []
        self.bad: set[int] = set()
        self.refused: list[tuple[int, str]] = []
        self.reported: list[str] = []
        self.open = asyncio.Event()
        self.open.set()
        self.changed = asyncio.Condition()

    def batches(self) -> GroupCommit[int]:
        limits = AgentLimits(outbox_backoff_initial_us=1_000, outbox_backoff_max_us=2_000)
        clock = FakeClock()
        context = AgentContext(Registry(Uuid7Source(clock.now_us), clock.now_us), clock, limits, self.observe)
        return GroupCommit("write", self.write, context, lambda item, error: self.refused.append((item, str(error))))

    def observe(self, event: AgentEvent) -> None:
        assert isinstance(event, AgentStepFailed)
        self.reported.append(event.error.partition(":")[0])

    async def write(self, items: list[int]) -> None:
        await self.open.wait()
        if self.failures:
            raise self.failures.pop(0)
        if self.bad.intersection(items):
            raise DefiniteFailure("bad item")
        self.written.append(items)
        async with self.changed:
            self.changed.notify_all()

    async def until(self, items: set[int]) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: items <= {item for batch in self.written for item in batch})


async def test_items_added_during_a_write_form_the_next_batch() -> None:
    table = Table()
    batches = table.batches()
    table.open.clear()
    batches.add(1)
    batches.add(2)
    await asyncio.sleep(0)
    for item in (3, 4, 5):
        batches.add(item)
    table.open.set()
    await table.until({5})
    assert table.written == [[1, 2], [3, 4, 5]]
    batches.add(6)
    await table.until({6})


async def test_an_unavailable_database_only_delays() -> None:
    table = Table()
    table.failures = [StoreUnavailable("away"), OutcomeUnknown("?"), StoreUnavailable("away")] * 2
    batches = table.batches()
    batches.add(1)
    await table.until({1})
    assert table.reported == ["StoreUnavailable", "OutcomeUnknown", "StoreUnavailable"] * 2
    assert table.refused == []


async def test_one_bad_item_is_refused_alone() -> None:
    table = Table()
    table.bad = {37}
    batches = table.batches()
    for item in range(100):
        batches.add(item)
    await table.until(set(range(100)) - {37})
    assert table.refused == [(37, "bad item")]


async def test_a_programming_error_is_refused_too() -> None:
    table = Table()
    table.failures = [KeyError("x"), KeyError("x")]
    batches = table.batches()
    batches.add(1)
    batches.add(2)
    await table.until({1, 2})
    assert table.reported == ["KeyError", "KeyError"]


async def test_close_cancels_and_nothing_is_written_afterwards() -> None:
    table = Table()
    table.failures = [StoreUnavailable("away")] * 1_000
    batches = table.batches()
    batches.add(1)
    await asyncio.sleep(0)
    await batches.close()
    batches.add(2)
    assert batches.take_back() == [2]
    await batches.close()
    assert table.written == []
