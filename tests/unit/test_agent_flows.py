"""Orchestration of calls whose executions wait for their flow."""

from __future__ import annotations

from tests.unit.test_agent_orchestration import SPEC, World

from tocsin.service_calls.events import CallRescued
from tocsin.service_calls.messages import (
    ExecutionStarted,
    ExecutionSuspended,
    Instant,
    StartExecution,
    SubmitServiceCall,
)
from tocsin.testing.clock import EPOCH_US


async def test_a_call_that_waits_for_its_flow_is_asked_for_seldom_and_not_rescued() -> None:
    world = World()
    key, limits = world.key(), world.limits
    await world.ask(world.seal(key, SubmitServiceCall(key.service_call_id, "bill", SPEC, "f", flow_key="vendor")))
    (order,) = [each for each in world.tables.messages(key) if each.type == "StartExecution"]
    message = world.registry.open(order)
    assert isinstance(message, StartExecution)
    assert message.flow_key == world.call(key).flow_key == "vendor"
    waits = ExecutionSuspended(key.service_call_id, world.execution_id(key), Instant(EPOCH_US))
    await world.deliver(world.seal(key, waits))
    world.events.clear()
    for _ in range(3):
        world.clock.advance(limits.start_timeout_us - 1)
        assert await world.watchdog.check() == 0
        world.clock.advance(1)
        assert await world.watchdog.check() == 1
    assert world.types(key)[-2:] == ["CheckExecution", "StartExecution"]
    assert not [event for event in world.events if isinstance(event, CallRescued)]
    begun = ExecutionStarted(key.service_call_id, world.execution_id(key), Instant(world.clock.now_us()))
    await world.deliver(world.seal(key, begun))
    watched = world.call(key)
    # It comes again, late.
    await world.deliver(world.seal(key, waits))
    assert world.call(key) == watched
