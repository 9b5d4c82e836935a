"""A destination that hangs, with many orders for it, keeps nothing of others from the bus."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.integration.agent.execution_parts import Arrival, Bench, FakeDelivery, Service, answer, limited
from tests.support.agent_memory import MemoryOutbox, MemoryTables
from tocsin.messaging.embedded import EmbeddedBus
from tocsin.messaging.limits import BusLimits
from tocsin.service_calls.background import AgentContext
from tocsin.service_calls.execution.slots import Slots
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import ExecutionFailed, ExecutionSucceeded, ExecutionSuspended
from tocsin.service_calls.outbox import OutboxDispatcher

#: None waits for so long that it would be suspended for that.
FEW = limited(
    outbox_in_flight_max=20, executions_per_destination_max=1, orders_deferred_max=10, watchdog_grace_us=3_600_000_000
)


class Stalled:
    """A service that answers nothing until it is released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def __call__(self, arrival: Arrival) -> bytes | None:
        await self.released.wait()
        return answer()


async def respond_ok(arrival: Arrival) -> bytes | None:
    return answer()


@asynccontextmanager
async def published(limits: AgentLimits) -> AsyncIterator[tuple[Bench, MemoryTables]]:
    """The execution module on the embedded bus, with the outbox that its orders come from."""
    async with Bench(limits) as bench:
        bus = EmbeddedBus(BusLimits(), bench.registry.check, bench.observe)
        bench.handlers.attach(bus)
        await bus.start()
        tables = MemoryTables()
        context = AgentContext(bench.registry, bench.clock, limits, bench.observe)
        outbox = OutboxDispatcher(MemoryOutbox(tables), bus, context, random.Random(1))
        outbox.start()
        yield bench, tables
        await bench.executor.drain(0)
        await bus.drain()
        await bus.close()
        await outbox.close()


def all_ended(bench: Bench, orders: list[FakeDelivery]) -> bool:
    return all(bench.has_ended(bench.execution_id(order)) for order in orders)


async def test_calls_to_a_service_that_hangs_leave_room_for_others() -> None:
    stalled = Stalled()
    async with published(FEW) as (bench, tables), Service(stalled, bench.changes) as hung:
        many = [bench.order(hung.url) for _ in range(40)]
        tables.append([order.envelope for order in many])
        async with Service(respond_ok, bench.changes) as healthy:
            one = bench.order(healthy.url)
            tables.append([one.envelope])
            await bench.changes.until(lambda: all_ended(bench, [one]))
        assert not any(bench.has_ended(bench.execution_id(order)) for order in many)
        stalled.released.set()
        await bench.changes.until(lambda: all_ended(bench, many))
        assert all(isinstance(bench.end(bench.execution_id(order)), ExecutionSucceeded) for order in many)
        assert (len(hung.arrivals), hung.under_way_max, bench.log.suspended) == (40, 1, {})


async def test_orders_that_wait_for_a_slot_for_long_are_acknowledged_and_reported() -> None:
    stalled = Stalled()
    limits = limited(executions_per_destination_max=1, watchdog_grace_us=30_000)
    async with Bench(limits) as bench, Service(stalled, bench.changes) as hung:
        orders = [bench.order(hung.url) for _ in range(5)]
        await bench.hand_over(*orders)
        await bench.changes.until(lambda: all(order.settled == "acked" for order in orders))
        await bench.changes.until(lambda: len(bench.log.reported) == 4)
        assert (bench.executor.deferred, bench.executor.suspended) == (0, 4)
        reports = [each for order in orders for each in bench.published(bench.execution_id(order))]
        assert sum(isinstance(each, ExecutionSuspended) for each in reports) == 4
        # Start_timeout holds for them.
        bench.clock.ahead_us = limits.start_timeout_us
        stalled.released.set()
        await bench.changes.until(lambda: all_ended(bench, orders))
        ends = [bench.published(bench.execution_id(order))[-1] for order in orders]
        assert [end.error_meta.kind for end in ends if isinstance(end, ExecutionFailed)] == ["START_TIMEOUT"] * 4
        assert len(hung.arrivals) == 1


class Item:
    def __init__(self, destination: str) -> None:
        self.destination = destination


def test_a_destination_is_crowded_when_as_many_wait_for_it_as_there_is_room_for_others() -> None:
    slots: Slots[Item] = Slots(10, 2)

    def add(destination: str) -> int:
        added = 0
        while not slots.is_crowded(destination, 12):
            slots.add(Item(destination))
            added += 1
        slots.admit()
        return added

    # Two of each begin.
    assert [add("a"), add("b"), add("c")] == [7, 5, 3]
    assert slots.deferred == 9
    assert not slots.is_crowded("d", 12)
    assert len(slots.drop_if(lambda item: item.destination == "a")) == 5
    assert (slots.deferred, slots.is_crowded("a", 12)) == (4, False)
