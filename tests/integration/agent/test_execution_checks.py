"""How the execution module answers CheckExecution, and which orders it refuses."""

from __future__ import annotations

import asyncio

import msgspec

from tests.integration.agent.execution_parts import Arrival, Bench, Service, answer, limited
from tocsin.model.ids import Uuid7Source
from tocsin.service_calls.events import ExecutionsInterrupted
from tocsin.service_calls.messages import ExecutionFailed, ExecutionInterrupted, ExecutionSucceeded
from tocsin.telemetry.clock import SystemClock


async def test_a_logged_end_is_published_again() -> None:
    async def reply(arrival: Arrival) -> bytes | None:
        if b"/broken" in arrival.line.encode():
            return None
        long = b"x" * 30 if "/long" in arrival.line else b"ok"
        return answer(503 if "/odd" in arrival.line else 200, long, "x-a: 1")

    async with Bench(limited(snippet_bytes_max=20)) as bench, Service(reply, bench.changes) as service:
        orders = [bench.order(service.url + path) for path in ("", "/long", "/odd", "/broken")]
        ends = await bench.run(*orders)
        assert [type(end) for end in ends] == [ExecutionSucceeded] * 2 + [ExecutionFailed] * 2
        for order, end in zip(orders, ends, strict=True):
            (again,) = await bench.check(order)
            # The log does not store the latency; it has the start of the execution.
            assert _without_latency(again) == _without_latency(end)
        assert len(service.arrivals) == 4


def _without_latency(message: object) -> object:
    plain = msgspec.to_builtins(message, enc_hook=int)
    for meta in ("responseMeta", "errorMeta"):
        if plain.get(meta):
            assert plain[meta].pop("latencyMs", 0) >= 0
    return plain


async def test_executions_in_flight_or_not_logged_are_not_reported() -> None:
    go = asyncio.Event()

    async def reply(arrival: Arrival) -> bytes | None:
        await go.wait()
        return answer()

    async with Bench() as bench, Service(reply, bench.changes) as service:
        order = bench.order(service.url)
        assert await bench.check(order, begun=False) == []
        await bench.hand_over(order)
        await bench.changes.until(lambda: service.in_flight == 1)
        assert await bench.check(order) == []
        go.set()
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(order)))
        assert isinstance(bench.end(bench.execution_id(order)), ExecutionSucceeded)


async def test_an_execution_whose_order_can_never_be_published_has_failed_unless_it_began() -> None:
    async def reply(arrival: Arrival) -> bytes | None:
        return answer()

    async with Bench() as bench, Service(reply, bench.changes) as service:
        order, done = bench.order(service.url), bench.order(service.url)
        (failed,) = await bench.check(order, begun=False, refused="too large")
        assert isinstance(failed, ExecutionFailed)
        assert (failed.error_meta.kind, failed.error_meta.message) == ("INVALID_REQUEST", "too large")
        # An earlier copy of this order arrived.
        await bench.run(done)
        (ended,) = await bench.check(done, begun=False, refused="too large")
        assert isinstance(ended, ExecutionSucceeded)


async def test_a_logged_execution_without_end_that_is_not_in_flight_was_interrupted() -> None:
    async with Bench() as bench:
        order = bench.order("http://127.0.0.1:1/")
        await bench.hand_over(order)
        execution_id = bench.execution_id(order)
        await bench.changes.until(lambda: bench.has_ended(execution_id))
        start, _ = bench.log.rows[execution_id]
        bench.log.rows[execution_id] = start, None
        bench.events.clear()
        (event,) = await bench.check(order)
        assert isinstance(event, ExecutionInterrupted)
        assert bench.events == [ExecutionsInterrupted(1)]
        (again,) = await bench.check(order)
        assert again == event


async def test_an_execution_that_began_but_is_not_logged_has_failed() -> None:
    async with Bench() as bench:
        (event,) = await bench.check(bench.order("http://127.0.0.1:1/"))
        assert isinstance(event, ExecutionFailed)
        assert event.error_meta.kind == "WATCHDOG_TIMEOUT"


async def test_a_late_order_is_failed_and_never_sent() -> None:
    go = asyncio.Event()

    async def reply(arrival: Arrival) -> bytes | None:
        await go.wait()
        return answer()

    limits = limited(executions_per_destination_max=1)
    async with Bench(limits) as bench, Service(reply, bench.changes) as service:
        await bench.hand_over(bench.order(service.url))
        await bench.changes.until(lambda: service.in_flight == 1)
        # Its id has the instant at which it was ordered, and it waits for the first one.
        bench.new_id = Uuid7Source(lambda: SystemClock().now_us() - limits.start_timeout_us)
        second = bench.order(service.url)
        await bench.hand_over(second)
        go.set()
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(second)))
        end = bench.end(bench.execution_id(second))
        assert isinstance(end, ExecutionFailed)
        assert end.error_meta.kind == "START_TIMEOUT"
        (again,) = await bench.check(second)
        assert isinstance(again, ExecutionFailed)
        assert again.error_meta.kind == "START_TIMEOUT"
        assert len(service.arrivals) == 1
