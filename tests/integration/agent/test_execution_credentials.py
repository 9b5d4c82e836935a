"""Orders that wait for their credential and for a flow: they stand at the flow's gate only while they could begin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.integration.agent.execution_parts import Arrival, Bench, FakeDelivery, Service, SwitchedCredentials, limited
from tests.integration.agent.test_execution_flows import ok, paths
from tests.support.cases import each
from tests.support.flow_gates import SlotsGate
from tocsin.model.errors import StoreUnavailable
from tocsin.ports.http import Request, Result
from tocsin.service_calls.events import ExecutionNotSent
from tocsin.service_calls.messages import ExecutionFailed, ExecutionSucceeded
from tocsin.service_calls.orchestration.service_call import judge

HOUR_US = 3_600_000_000


def waiting(*ready: str) -> Bench:
    """A bench whose flow `k` has one slot. No round helps within a test."""
    bench = Bench(
        limits=limited(flow_round_interval_us=HOUR_US), gate=SlotsGate(), credentials=SwitchedCredentials(*ready)
    )
    bench.gate.slots["k"] = 1
    return bench


async def suspended(bench: Bench, orders: list[FakeDelivery]) -> None:
    """Hands over orders that have to wait, and returns when they are in the table."""
    await bench.hand_over(*orders)
    await bench.changes.until(lambda: all(order.settled == "acked" for order in orders))
    assert bench.executor.suspended == len(orders)


def orders_of(bench: Bench, service: Service, number: int) -> list[FakeDelivery]:
    return [bench.order(f"{service.url}/{n}", flow_key="k", credential="api") for n in range(number)]


async def test_what_waits_for_a_credential_is_not_at_the_gate_of_its_flow() -> None:
    # More of them than are in memory.
    async with waiting() as bench, Service(ok, bench.changes) as service:
        held = orders_of(bench, service, 40)
        await suspended(bench, held)
        assert bench.gate.waiting == {}
        others = [bench.order(f"{service.url}/other", flow_key="k", credential=name) for name in (None, "other")]
        bench.credentials.ready.add("other")
        assert all(isinstance(end, ExecutionSucceeded) for end in await bench.run(*others))
        bench.credentials.put("api")
        await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in held))
        assert paths(service) == ["/do/other"] * 2 + [f"/do/{n}" for n in range(40)]
        assert service.under_way_max == 1
        assert (bench.log.suspended, bench.executor.suspended, bench.gate.waiting) == ({}, 0, {})
        assert not any(bench.gate.in_use.values())


async def test_a_credential_that_is_lost_while_its_flow_is_closed_leaves_the_gate() -> None:
    async with waiting("api") as bench, Service(ok, bench.changes) as service:
        bench.gate.slots["k"] = 0
        held = orders_of(bench, service, 3)
        await suspended(bench, held)
        assert bench.gate.waiting == {"k": 3}
        bench.credentials.ready.clear()
        bench.gate.open("k", 1)
        assert (bench.gate.waiting, service.arrivals) == ({}, [])
        bench.credentials.put("api")
        await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in held))
        assert len(service.arrivals) == 3


async def test_the_next_process_finds_what_waits_for_credential_and_flow() -> None:
    async with waiting() as bench, Service(ok, bench.changes) as service:
        held = orders_of(bench, service, 3)
        await suspended(bench, held)
        await bench.executor.drain(0)
        credentials = SwitchedCredentials()
        async with Bench(log=bench.log, gate=bench.gate, credentials=credentials) as successor:
            await successor.flows.round()
            assert (successor.executor.suspended, bench.gate.waiting) == (3, {})
            credentials.put("api")
            await bench.changes.until(lambda: all(bench.has_ended(bench.execution_id(order)) for order in held))
        assert paths(service) == [f"/do/{n}" for n in range(3)]


@pytest.mark.parametrize("logged", [False, True])
async def test_a_credential_that_is_lost_while_the_database_is_away_keeps_no_slot_of_the_flow(logged: bool) -> None:
    async with waiting("api") as bench, Service(ok, bench.changes) as service:
        bench.log.open.clear()
        if logged:
            bench.log.lost_commits = 1
        else:
            bench.log.begin_failures.append(StoreUnavailable("away"))
        held = bench.order(f"{service.url}/held", flow_key="k", credential="api")
        await bench.hand_over(held)
        assert (bench.executor.in_flight, bench.gate.in_use["k"]) == (1, 1)
        # The write is under way.
        await asyncio.sleep(0)
        bench.credentials.ready.clear()
        bench.log.open.set()
        await bench.changes.until(lambda: held.settled == "acked")
        assert len(bench.log.rows) == bench.executor.in_flight == logged
        assert bench.gate.in_use["k"] == 0
        (end,) = await bench.run(bench.order(f"{service.url}/other", flow_key="k"))
        assert isinstance(end, ExecutionSucceeded)
        bench.credentials.put("other")
        # What has begun asks again when its credential can be sent, and not before.
        assert sum(isinstance(event, ExecutionNotSent) for event in bench.events) == logged
        bench.credentials.put("api")
        await bench.changes.until(lambda: bench.has_ended(bench.execution_id(held)))
        assert paths(service) == ["/do/other", "/do/held"]
        await bench.changes.until(lambda: bench.executor.in_flight == 0)
        assert (bench.log.suspended, bench.gate.waiting, bench.gate.in_use["k"]) == ({}, {}, 0)


async def test_an_error_of_one_order_keeps_the_credential_from_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(str(context["exception"])))
    async with waiting("api") as bench, Service(ok, bench.changes) as service:
        bench.log.open.clear()
        held = [bench.order(f"{service.url}/{n}", credential="api") for n in range(2)]
        await bench.hand_over(*held)
        # The write is under way.
        await asyncio.sleep(0)
        bench.credentials.ready.clear()
        bench.log.open.set()
        await bench.changes.until(lambda: all(order.settled == "acked" for order in held))
        send = bench.caller.send

        def fail_once(request: Request, done: Callable[[Result], None]) -> None:
            monkeypatch.setattr(bench.caller, "send", send)
            raise RuntimeError("a defect")

        monkeypatch.setattr(bench.caller, "send", fail_once)
        bench.credentials.put("api")
        await bench.changes.until(lambda: any(bench.has_ended(bench.execution_id(order)) for order in held))
        assert errors == ["a defect"]
        assert paths(service) == ["/do/1"]


@each("stale, final", [(True, False), (False, True)])
async def test_a_401_is_retried_if_it_may_be_due_to_the_token(stale: bool, final: bool) -> None:
    async def refuse(_: Arrival) -> bytes:
        return b"HTTP/1.1 401 X\r\ncontent-length: 0\r\n\r\n"

    async with waiting("api") as bench, Service(refuse, bench.changes) as service:
        bench.credentials.stale = stale
        order = bench.order(service.url, credential="api")
        (ended,) = await bench.run(order)
        assert isinstance(ended, ExecutionFailed)
        assert judge(ended.error_meta, ended.response_meta, ended.finished_at, HOUR_US).final is final
        # The log reproduces it.
        (known,) = await bench.check(order)
        assert isinstance(known, ExecutionFailed)
        assert judge(known.error_meta, known.response_meta, known.finished_at, HOUR_US).final is final
