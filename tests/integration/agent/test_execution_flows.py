"""Orders that wait for their flow: acknowledged, in a table, in turn; whatever waits hinders nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.integration.agent.execution_parts import Arrival, Bench, Changes, Service, answer, limited
from tests.support.flow_gates import SlotsGate
from tests.support.patience import PATIENCE_S
from tocsin.model.errors import DefiniteFailure, StoreUnavailable
from tocsin.service_calls.messages import ExecutionFailed, ExecutionSucceeded, ExecutionSuspended
from tocsin.service_calls.ports import Readable, SuspendedOrder


def flowing(**changes: Any) -> Bench:
    """A bench whose flows have no slot at first."""
    return Bench(limits=limited(**changes), gate=SlotsGate())


async def ok(arrival: Arrival) -> bytes:
    return answer()


def paths(service: Service) -> list[str]:
    return [arrival.line.split(" ")[1] for arrival in service.arrivals]


async def test_orders_of_a_closed_flow_are_acknowledged_and_begin_in_order_once_it_opens() -> None:
    async with flowing(executions_in_flight_max=1) as bench, Service(ok, bench.changes) as service:
        bench.gate.slots["open"] = 1
        held = [bench.order(f"{service.url}/held{n}", flow_key="closed") for n in range(3)]
        await bench.hand_over(*held)
        await bench.changes.until(lambda: all(order.settled == "acked" for order in held))
        assert (bench.executor.in_flight, bench.executor.deferred, bench.executor.suspended) == (0, 0, 3)
        # Neither the one slot nor the destination is theirs.
        free = [bench.order(f"{service.url}/free{n}", flow_key=key) for n, key in enumerate((None, "open"))]
        assert all(isinstance(end, ExecutionSucceeded) for end in await bench.run(*free))
        assert len(bench.log.suspended) == 3
        bench.gate.open("closed", 1)
        await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in held))
        assert paths(service)[2:] == [f"/do/held{n}" for n in range(3)]
        assert (bench.log.suspended, bench.executor.suspended, bench.gate.waiting) == ({}, 0, {})
        assert all(not used for used in bench.gate.in_use.values())


async def test_an_answer_frees_the_slot_of_its_flow_and_may_close_it() -> None:
    async def busy(arrival: Arrival) -> bytes:
        return answer(503, b"", "Retry-After: 7")

    async with flowing() as bench, Service(busy, bench.changes) as service:
        bench.gate.slots["one"] = 1
        orders = [bench.order(service.url, flow_key="one") for _ in range(5)]
        assert all(isinstance(end, ExecutionFailed) for end in await bench.run(*orders))
        assert service.under_way_max == 1
        assert 6_000_000 < bench.gate.closed_for["one"] <= 7_000_000
        assert bench.gate.in_use["one"] == 0


async def test_a_flow_that_opened_before_a_batch_lets_what_follows_wait_behind() -> None:
    async with flowing() as bench, Service(ok, bench.changes) as service:
        first = bench.order(f"{service.url}/first", flow_key="k")
        await bench.hand_over(first)
        await bench.changes.until(lambda: bench.executor.suspended == 1)
        bench.gate.slots["k"] = 1
        # Not served yet: it must not be overtaken.
        second = bench.order(f"{service.url}/second", flow_key="k")
        await bench.hand_over(second)
        bench.gate.wake("k")
        await bench.changes.until(lambda: len(service.arrivals) == 2)
        assert paths(service) == ["/do/first", "/do/second"]


async def test_few_of_many_that_wait_are_in_memory() -> None:
    async with flowing(suspended_orders_max=10) as bench, Service(ok, bench.changes) as service:
        orders = [bench.order(service.url, flow_key=f"k{number % 4}") for number in range(200)]
        await bench.hand_over(*orders)
        await bench.changes.until(lambda: all(order.settled == "acked" for order in orders))
        assert bench.executor.suspended == len(bench.log.suspended) == 200
        assert sum(bench.executor.knows(bench.execution_id(order)) for order in orders) == 10
        for number in range(4):
            bench.gate.open(f"k{number}", 2)
        await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in orders))
        assert len(service.arrivals) == 200
        assert bench.executor.suspended == 0
        assert bench.gate.waiting == {}


async def test_the_next_process_executes_what_waited() -> None:
    async with flowing() as bench, Service(ok, bench.changes) as service:
        orders = [bench.order(service.url, flow_key=f"k{number}") for number in range(40)]
        await bench.hand_over(*orders)
        await bench.changes.until(lambda: len(bench.log.suspended) == 40)
        await bench.executor.drain(0)
        gate = SlotsGate()
        gate.slots |= {f"k{number}": 1 for number in range(40)}
        # Fewer keys than wait are known at a time.
        async with Bench(limits=limited(flow_keys_max=3), log=bench.log, gate=gate) as successor:
            # One was not acknowledged in time, and comes again.
            again = successor.delivery(bench.registry.open(orders[0].envelope))
            await successor.hand_over(again)
            async with asyncio.timeout(PATIENCE_S):
                while not all(bench.has_ended(bench.execution_id(order)) for order in orders):
                    await successor.flows.round()
                    await asyncio.sleep(0)
        assert len(service.arrivals) == 40


async def test_repetitions_of_what_waits_or_is_logged_are_executed_once() -> None:
    async with flowing() as bench, Service(ok, bench.changes) as service:
        order = bench.order(service.url, flow_key="k")
        message = bench.registry.open(order.envelope)
        await bench.hand_over(order, bench.delivery(message))
        await bench.changes.until(lambda: bench.executor.suspended == 1)
        repeated = bench.delivery(message)
        await bench.hand_over(repeated)
        assert repeated.settled == "acked"
        bench.gate.open("k", 1)
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(order)))
        bench.gate.slots["k"] = 0
        late = bench.delivery(message)
        await bench.hand_over(late)
        await bench.changes.until(lambda: late.settled == "acked")
        bench.gate.open("k", 1)
        async with asyncio.timeout(PATIENCE_S):
            while bench.gate.waiting:  # noqa: ASYNC110 -- nothing reports that the table was read
                await asyncio.sleep(0)
        assert (len(service.arrivals), bench.log.suspended) == (1, {})


async def test_a_destination_without_slots_keeps_nobody_else_of_its_key() -> None:
    changes, answering = Changes(), asyncio.Event()

    async def slow(arrival: Arrival) -> bytes:
        await answering.wait()
        return answer()

    async with (
        flowing(executions_per_destination_max=1) as bench,
        Service(slow, changes) as hanging,
        Service(ok, bench.changes) as healthy,
    ):
        await bench.hand_over(bench.order(hanging.url))
        await changes.until(lambda: len(hanging.arrivals) == 1)
        stuck = [bench.order(hanging.url, flow_key="k") for _ in range(5)]
        free = [bench.order(healthy.url, flow_key="k") for _ in range(5)]
        await bench.hand_over(*stuck, *free)
        await bench.changes.until(lambda: len(bench.log.suspended) == 10)
        bench.gate.open("k", 1)
        await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in free))
        assert (len(hanging.arrivals), bench.gate.in_use["k"]) == (1, 0)
        # What waits for the destination takes nothing of the flow, and is not in memory twice.
        assert (bench.executor.deferred, bench.executor.suspended) == (0, 5)
        answering.set()
        await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in stuck))


async def test_a_slot_of_the_total_is_taken_by_what_waits_for_another_destination() -> None:
    changes, answering = Changes(), asyncio.Event()

    async def slow(arrival: Arrival) -> bytes:
        await answering.wait()
        return answer()

    async with (
        flowing(executions_in_flight_max=1) as bench,
        Service(slow, changes) as slow_one,
        Service(ok, bench.changes) as service,
    ):
        await bench.hand_over(bench.order(slow_one.url))
        await changes.until(lambda: len(slow_one.arrivals) == 1)
        orders = [bench.order(service.url, flow_key=key) for key in ("a", "b")]
        await bench.hand_over(*orders)
        await bench.changes.until(lambda: len(bench.log.suspended) == 2)
        for key in ("a", "b"):
            bench.gate.open(key, 1)
        answering.set()
        await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in orders))


async def test_what_waits_is_never_too_late_and_is_reported_before_the_watchdog_looks_for_it() -> None:
    async with flowing(start_timeout_us=1, watchdog_grace_us=30_000) as bench, Service(ok, bench.changes) as service:
        order = bench.order(service.url, flow_key="k")
        await bench.hand_over(order)
        await bench.changes.until(lambda: bool(bench.log.outbox))
        (reported,) = bench.published(bench.execution_id(order))
        assert isinstance(reported, ExecutionSuspended)
        bench.gate.open("k", 1)
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(order)))
        assert isinstance(bench.published(bench.execution_id(order))[-1], ExecutionSucceeded)


async def test_an_order_that_cannot_be_suspended_goes_back_to_the_bus() -> None:
    async with flowing() as bench, Service(ok, bench.changes) as service:
        bench.suspended.failures = [StoreUnavailable("for a moment"), *[DefiniteFailure("its text")] * 2]
        order = bench.order(service.url, flow_key="k")
        await bench.hand_over(order)
        await bench.changes.until(lambda: order.settled is not None)
        assert isinstance(order.settled, DefiniteFailure)
        assert not bench.executor.knows(bench.execution_id(order))


async def test_an_order_whose_execution_cannot_be_logged_keeps_nobody_waiting() -> None:
    async with flowing() as bench, Service(ok, bench.changes) as service:
        bad, good = (bench.order(service.url, flow_key="k") for _ in range(2))
        await bench.hand_over(bad)
        await bench.changes.until(lambda: bench.executor.suspended == 1)
        bench.log.begin_failures = [DefiniteFailure("its text")] * 2
        bench.gate.open("k", 1)
        await bench.changes.until(lambda: not bench.executor.knows(bench.execution_id(bad)))
        await bench.run(good)
        assert (bench.gate.in_use["k"], len(service.arrivals)) == (0, 1)
        # It is tried again by the next process.
        assert list(bench.log.suspended) == [bench.execution_id(bad)]


async def test_a_failed_read_is_repeated_by_the_next_round() -> None:
    async with flowing(suspended_orders_max=0) as bench, Service(ok, bench.changes) as service:
        order = bench.order(service.url, flow_key="k")
        await bench.hand_over(order)
        await bench.changes.until(lambda: bench.executor.suspended == 1)
        first, failures = bench.suspended.first, [StoreUnavailable("for a moment")]

        async def failing(flow_key: str, limit: int) -> list[SuspendedOrder]:
            if failures:
                raise failures.pop()
            return list(await first(flow_key, limit))

        bench.suspended.first = failing
        bench.gate.open("k", 1)
        await bench.changes.until(lambda: not failures)
        await bench.flows.round()
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(order)))


async def test_drained_orders_are_left_to_the_next_process() -> None:
    async with flowing() as bench, Service(ok, bench.changes) as service:
        bench.log.open.clear()
        order = bench.order(service.url, flow_key="k")
        await bench.hand_over(order)
        assert await bench.executor.drain(0)
        assert order.settled is None
        assert (bench.gate.serve, bench.gate.waiting) == (None, {})


async def test_a_key_that_cannot_be_read_keeps_no_other_from_its_turn() -> None:
    async with flowing() as before, Service(ok, before.changes) as service:
        orders = [before.order(f"{service.url}/{key}", flow_key=key) for key in ("a", "b")]
        await before.hand_over(*orders)
        await before.changes.until(lambda: len(before.log.suspended) == 2)
        read, broken = before.suspended.first, True

        async def first(place: str, limit: int) -> Readable[SuspendedOrder]:
            if broken and place == "a":
                raise ValueError("no row of this table")
            return await read(place, limit)

        before.suspended.first = first
        gate = SlotsGate()
        gate.slots |= {"a": 1, "b": 1}
        async with Bench(gate=gate, log=before.log, suspended=before.suspended) as bench:
            await before.changes.until(lambda: len(service.arrivals) == 1)
            assert paths(service) == ["/do/b"]
            broken = False
            await bench.flows.round()
            await before.changes.until(lambda: len(service.arrivals) == 2)
