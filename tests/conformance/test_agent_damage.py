"""Rows that can't be decoded, on every database: each is passed by and reported, and hides no other."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.agent.execution_parts import Arrival, Bench, Changes, Service, answer
from tests.support.agent_database import NOW, append, call, envelope, insert, load, new_id, rows, start, write
from tests.support.flow_gates import SlotsGate
from tests.support.patience import PATIENCE_S
from tocsin.ports.bus import Envelope, InvalidMessage
from tocsin.service_calls.background import AgentContext, Wakeup
from tocsin.service_calls.events import (
    AgentEvent,
    AgentRowDamaged,
    CallRescued,
    ExecutionsInterrupted,
    MessageSuspended,
)
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import CallStatus, DueTimeReached, Instant, Registry
from tocsin.service_calls.orchestration.handlers import Watchdog
from tocsin.service_calls.outbox import OutboxDispatcher
from tocsin.service_calls.ports import ServiceCall, SuspendedOrder
from tocsin.stores.service_calls.database import AgentDatabase
from tocsin.testing.clock import FakeClock


async def damage(database: AgentDatabase, change: str, column: str, value: str) -> None:
    """Has an UPDATE change rows of which a column has this value."""
    assert await write(database, lambda session: session.count(f"UPDATE {change} WHERE {column} = '{value}'", ())) == 1


class Agent:
    """The context of modules, which collects what they report."""

    def __init__(self, **limits: Any) -> None:
        self.clock = FakeClock(NOW)
        self.events: list[AgentEvent] = []
        self.happened = Wakeup()
        registry = Registry(new_id, self.clock.now_us)
        self.context = AgentContext(registry, self.clock, AgentLimits(**limits), self._observe)

    def _observe(self, event: AgentEvent) -> None:
        self.events.append(event)
        self.happened.wake()

    def reported(self, kind: type[AgentEvent]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def due(self, of: ServiceCall) -> Envelope:
        message = DueTimeReached(of.service_call_id, Instant(NOW), Instant(NOW))
        return self.context.registry.seal(
            message, tenant_id=of.tenant_id, correlation_id=of.correlation_id, causation_id=None
        )


async def test_a_damaged_call_hides_no_overdue_one_from_the_watchdog(database: AgentDatabase) -> None:
    # More damaged rows than one transaction reads, all overdue for longer.
    agent = Agent(watchdog_batch_max=2)
    damaged = [call(watch_at=NOW - 20 + number) for number in range(3)]
    overdue = call(due_at=NOW - 30, watch_at=NOW - 10)
    await insert(database, *damaged, overdue)
    for each in damaged:
        await damage(database, "service_calls SET request_spec = '{'", "service_call_id", each.service_call_id)
    watchdog = Watchdog(database.calls, agent.context)
    assert await watchdog.check() == 1
    stored = await load(database, overdue.key)
    assert stored is not None and stored.status is CallStatus.RUNNING
    assert [event.service_call_id for event in agent.reported(CallRescued)] == [overdue.service_call_id]
    assert [event.service_call_id for event in agent.reported(AgentRowDamaged)] == [
        each.service_call_id for each in damaged
    ]
    # Reported once, and again when it is looked at again.
    assert await watchdog.check() == 0
    assert len(agent.reported(AgentRowDamaged)) == 3
    agent.clock.advance(agent.context.limits.start_timeout_us)
    await watchdog.check()
    assert len(agent.reported(AgentRowDamaged)) == 6


class CheckingBus:
    """A bus that takes every message that can be opened."""

    def __init__(self, agent: Agent) -> None:
        self.taken: list[str] = []
        self._agent = agent

    def post(self, message: Envelope, done: Callable[[Exception | None], None]) -> None:
        error: Exception | None = None
        try:
            self._agent.context.registry.check(message)
            self.taken.append(message.id)
        except InvalidMessage as invalid:
            error = invalid
        asyncio.get_running_loop().call_soon(done, error)
        asyncio.get_running_loop().call_soon(self._agent.happened.wake)


async def test_a_damaged_message_hides_no_other_from_the_dispatcher(database: AgentDatabase) -> None:
    agent = Agent()
    calls = [call() for _ in range(3)]
    await insert(database, *calls)
    messages = [agent.due(each) for each in calls]
    numbers = await append(database, *messages)
    await damage(database, "outbox SET event_payload = '{'", "envelope_id", messages[1].id)
    bus = CheckingBus(agent)
    dispatcher = OutboxDispatcher(database.outbox, bus, agent.context, random.Random(1))  # type: ignore[arg-type]
    dispatcher.start()
    async with asyncio.timeout(PATIENCE_S):
        while await database.outbox.unpublished(0, 10):
            await agent.happened.wait(20_000)
    await dispatcher.close()
    assert bus.taken == [messages[0].id, messages[2].id]
    (suspended,) = agent.reported(MessageSuspended)
    assert suspended.service_call_id == calls[1].service_call_id
    assert await rows(database, "SELECT id FROM outbox WHERE suspended_at IS NOT NULL") == [(numbers[1],)]


async def _two_begun(database: AgentDatabase) -> str:
    """Begins the executions of two calls. The id of one of them."""
    calls = call(), call()
    await insert(database, *calls)
    begun = [(start(each), envelope(each, "ExecutionStarted")) for each in calls]
    assert len(await database.executions.begin(begun)) == 2
    return begun[0][0].execution_id


async def test_a_damaged_row_of_the_log_does_not_keep_the_agent_from_starting(database: AgentDatabase) -> None:
    damaged = await _two_begun(database)
    await damage(database, "http_execution_log SET request_headers = '{'", "execution_id", damaged)
    async with Bench(log=database.executions) as bench:
        assert await bench.executor.recover() == 2
        assert bench.events == [ExecutionsInterrupted(2)]
    assert (await database.executions.unfinished(10)).rows == []


async def test_an_execution_that_began_at_no_instant_is_reported_and_stays(database: AgentDatabase) -> None:
    if database.shared:
        pytest.skip("PostgreSQL's type of instants has none that can't be read")
    damaged = await _two_begun(database)
    await damage(database, "http_execution_log SET started_at = '2027'", "execution_id", damaged)
    async with Bench(log=database.executions) as bench:
        assert await bench.executor.recover() == 1
        assert [event.execution_id for event in bench.events if isinstance(event, AgentRowDamaged)] == [damaged]


async def test_a_damaged_order_hides_no_other_that_waits(database: AgentDatabase) -> None:
    async def ok(arrival: Arrival) -> bytes:
        return answer()

    changes, gate = Changes(), SlotsGate()
    gate.slots |= {"a": 1, "b": 1}
    async with Service(ok, changes) as service:
        async with Bench() as before:
            orders = [before.order(f"{service.url}/{key}", flow_key=key) for key in ("a", "a", "b")]
            waiting = [
                SuspendedOrder(
                    before.tenant_id, order.envelope.aggregate_id, before.execution_id(order), place, 0, order.envelope
                )
                for order, place in zip(orders, "aab", strict=True)
            ]
        await insert(
            database,
            *(
                call(row.tenant_id, service_call_id=row.service_call_id, execution_id=row.execution_id)
                for row in waiting
            ),
        )
        await database.suspended.suspend(waiting)
        damaged = waiting[0].execution_id
        await damage(database, "suspended_executions SET envelope = '{'", "execution_id", damaged)
        async with Bench(log=database.executions, suspended=database.suspended, gate=gate) as bench:
            await changes.until(lambda: len(service.arrivals) == 2)
            assert {arrival.line.split(" ")[1] for arrival in service.arrivals} == {"/do/a", "/do/b"}
            reported = [event for event in bench.events if isinstance(event, AgentRowDamaged)]
            assert [event.execution_id for event in reported] == [damaged]
            # The reports of orders that wait pass it by as well, once.
            await bench.flows.report()
            assert (await database.suspended.unreported(NOW * 2, 10)).damaged == []
