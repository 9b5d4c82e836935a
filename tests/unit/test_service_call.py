"""Transitions of a service call, one by one. What holds for all of them is in tests/properties."""

from __future__ import annotations

import msgspec
import pytest

from tocsin.agent.limits import AgentLimits
from tocsin.agent.messages import (
    CheckExecution,
    ErrorMeta,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionStarted,
    ExecutionSucceeded,
    RequestSpec,
    ResponseMeta,
    ScheduleTimer,
    ServiceCallDeleted,
    ServiceCallFailed,
    ServiceCallRunning,
    ServiceCallScheduled,
    ServiceCallSubmitted,
    ServiceCallSucceeded,
    StartExecution,
    SubmitServiceCall,
)
from tocsin.agent.orchestration import service_call
from tocsin.agent.orchestration.service_call import Outcome, ServiceCall, Status, Step
from tocsin.model.uuid7 import Uuid7Source
from tocsin.testing.clock import EPOCH_US, FakeClock

LIMITS = AgentLimits()
SECOND = 1_000_000
SPEC = RequestSpec("POST", "http://service/x", {"a": "b"}, msgspec.Raw(b'{"n":1}'))
OK = ResponseMeta(200, {}, "fine", 3.0)
OOPS = ErrorMeta("HTTP_STATUS", "the service answered 500", 3.0)


class World:
    """One call and its clock."""

    def __init__(self, due_at_us: int | None = None, limits: AgentLimits = LIMITS) -> None:
        self.clock = FakeClock()
        self.new_id = Uuid7Source(self.clock.now_us)
        self.limits = limits
        self.id = self.new_id()
        command = SubmitServiceCall(self.id, "bill", SPEC, "f", due_at_us, ("x",), "key")
        self.submitted = service_call.submit(
            command,
            tenant_id=self.new_id(),
            correlation_id="corr",
            now_us=self.clock.now_us(),
            new_id=self.new_id,
            limits=limits,
        )
        self.call: ServiceCall = self.submitted.after

    def due(self) -> Step | None:
        return self.then(
            service_call.due(
                self.call, self.call.due_at, now_us=self.clock.now_us(), new_id=self.new_id, limits=self.limits
            )
        )

    def started(self) -> Step | None:
        event = ExecutionStarted(self.id, self.execution_id, self.clock.now_us())
        return self.then(service_call.started(self.call, event, limits=self.limits))

    def interrupted(self) -> Step | None:
        event = ExecutionInterrupted(self.id, self.execution_id, EPOCH_US + 7, self.clock.now_us())
        return self.then(
            service_call.interrupted(
                self.call, event, now_us=self.clock.now_us(), new_id=self.new_id, limits=self.limits
            )
        )

    def watch(self) -> Step | None:
        return self.then(
            service_call.watch(self.call, now_us=self.clock.now_us(), new_id=self.new_id, limits=self.limits)
        )

    def then(self, step: Step | None) -> Step | None:
        if step is not None:
            self.call = step.after
        return step

    @property
    def execution_id(self) -> str:
        assert self.call.execution_id is not None
        return self.call.execution_id


def test_a_call_for_later_is_scheduled():
    due_at = EPOCH_US + 60 * SECOND
    world = World(due_at)
    assert world.call.status is Status.SCHEDULED
    assert world.call.watch_at == due_at + LIMITS.watchdog_grace_us
    assert world.submitted.messages == (
        ServiceCallSubmitted(world.id, "bill", "POST", SPEC.url, due_at, ("x",)),
        ServiceCallScheduled(world.id, due_at),
        ScheduleTimer(world.id, due_at),
    )


def test_the_event_of_a_submission_keeps_no_secret():
    secret = msgspec.structs.replace(SPEC, url="http://service/x?api_key=abc123&a=b")
    step = service_call.submit(
        SubmitServiceCall(World().id, "bill", secret, "f"),
        tenant_id=World().new_id(),
        correlation_id="corr",
        now_us=EPOCH_US,
        new_id=World().new_id,
        limits=LIMITS,
    )
    submitted = step.messages[0]
    assert isinstance(submitted, ServiceCallSubmitted)
    assert "abc123" not in submitted.url
    assert submitted.url.endswith("&a=b")


@pytest.mark.parametrize("due_at", [None, EPOCH_US, EPOCH_US - 5 * SECOND])
def test_a_call_for_now_runs_at_once(due_at: int | None):
    world = World(due_at)
    assert world.call.status is Status.RUNNING
    assert world.call.due_at == (EPOCH_US if due_at is None else due_at)
    assert world.call.watch_at == EPOCH_US + LIMITS.watchdog_grace_us
    assert world.submitted.messages == (
        ServiceCallSubmitted(world.id, "bill", "POST", SPEC.url, world.call.due_at, ("x",)),
        ServiceCallRunning(world.id, world.execution_id),
        StartExecution(world.id, world.execution_id, SPEC),
    )


def test_due_then_started_then_succeeded():
    world = World(EPOCH_US + SECOND)
    world.clock.advance(2 * SECOND)
    step = world.due()
    assert step is not None
    assert step.messages == (
        ServiceCallRunning(world.id, world.execution_id),
        StartExecution(world.id, world.execution_id, SPEC),
    )
    assert (world.call.status, world.call.started_at, world.call.executions) == (Status.RUNNING, None, 1)
    assert world.due() is None
    step = world.started()
    assert step is not None
    assert step.messages == ()
    assert world.call.started_at == world.clock.now_us()
    assert world.call.watch_at == world.clock.now_us() + LIMITS.request_timeout_us + LIMITS.watchdog_grace_us
    assert world.started() is None
    end = ExecutionSucceeded(world.id, world.execution_id, EPOCH_US + 9 * SECOND, OK)
    step = world.then(service_call.succeeded(world.call, end))
    assert step is not None
    assert step.messages == (ServiceCallSucceeded(world.id, OK),)
    assert (world.call.status, world.call.finished_at) == (Status.SUCCEEDED, EPOCH_US + 9 * SECOND)
    assert world.call.outcome == Outcome(OK)
    assert service_call.succeeded(world.call, end) is None
    assert service_call.failed(world.call, ExecutionFailed(world.id, world.execution_id, 1, OOPS)) is None


def test_a_failure_keeps_the_answer():
    world = World()
    end = ExecutionFailed(world.id, world.execution_id, EPOCH_US, OOPS, OK)
    step = service_call.failed(world.call, end)
    assert step is not None
    assert step.messages == (ServiceCallFailed(world.id, OOPS, OK),)
    assert step.after.outcome == Outcome(OK, OOPS)


def test_results_of_another_execution_mean_nothing():
    world = World()
    other = world.new_id()
    assert service_call.started(world.call, ExecutionStarted(world.id, other, EPOCH_US), limits=LIMITS) is None
    assert service_call.succeeded(world.call, ExecutionSucceeded(world.id, other, EPOCH_US, OK)) is None
    assert service_call.failed(world.call, ExecutionFailed(world.id, other, EPOCH_US, OOPS)) is None


def test_interrupted_executions_are_repeated_up_to_a_limit():
    world = World(limits=AgentLimits(executions_max=2))
    first = world.execution_id
    world.started()
    step = world.interrupted()
    assert step is not None
    assert world.execution_id != first
    assert step.messages == (
        ServiceCallRunning(world.id, world.execution_id),
        StartExecution(world.id, world.execution_id, SPEC),
    )
    assert (world.call.started_at, world.call.executions) == (None, 2)
    step = world.interrupted()
    assert step is not None
    assert world.call.status is Status.FAILED
    assert world.call.outcome is not None
    assert world.call.outcome.error_meta is not None
    assert world.call.outcome.error_meta.kind == "INTERRUPTED"


class TestWatchdog:
    def test_an_overdue_call_is_dispatched(self):
        world = World(EPOCH_US + SECOND)
        world.clock.advance(SECOND + LIMITS.watchdog_grace_us - 1)
        assert world.watch() is None
        world.clock.advance(1)
        assert world.watch() is not None
        assert world.call.status is Status.RUNNING

    def test_an_order_that_nobody_began_is_repeated_at_growing_intervals_without_end(self):
        world = World()
        execution_id, looks = world.execution_id, 0
        while world.clock.now_us() < EPOCH_US + 3 * LIMITS.start_timeout_us:
            before_us = world.clock.now_us()
            assert world.call.watch_at is not None
            world.clock.advance(world.call.watch_at - before_us)
            assert world.clock.now_us() - before_us <= LIMITS.start_timeout_us
            step = world.watch()
            assert step is not None
            looks += 1
            assert step.messages == (
                CheckExecution(world.id, execution_id),
                StartExecution(world.id, execution_id, SPEC),
            )
        assert looks < 15
        assert world.call.status is Status.RUNNING

    def test_a_call_whose_execution_began_is_asked_after_and_never_failed(self):
        world = World()
        world.clock.advance(SECOND)
        world.started()
        world.clock.advance(LIMITS.request_timeout_us + LIMITS.watchdog_grace_us)
        for _ in range(3):
            step = world.watch()
            assert step is not None
            assert step.messages == (CheckExecution(world.id, world.execution_id, True),)
            assert world.watch() is None
            assert world.call.watch_at is not None
            world.clock.advance(world.call.watch_at - world.clock.now_us())
        end = ExecutionSucceeded(world.id, world.execution_id, world.clock.now_us(), OK)
        assert world.then(service_call.succeeded(world.call, end)) is not None
        assert world.call.status is Status.SUCCEEDED


def test_only_a_scheduled_call_can_be_deleted():
    assert service_call.delete(World().call) is None
    world = World(EPOCH_US + SECOND)
    assert service_call.delete(world.call) == (ServiceCallDeleted(world.id),)
