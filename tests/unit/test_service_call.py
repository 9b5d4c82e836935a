"""The transitions of a service call, one by one. Invariants over all transitions are in tests/properties."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from tests.support.cases import each

import tocsin
from tocsin.model.ids import Uuid7Source
from tocsin.model.retry import RetryPolicy
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import (
    CallStatus,
    CheckExecution,
    ErrorMeta,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionStarted,
    ExecutionSucceeded,
    RequestSpec,
    ResponseMeta,
    RetrySpec,
    ScheduleTimer,
    ServiceCallFailed,
    ServiceCallRetrying,
    ServiceCallRunning,
    ServiceCallScheduled,
    ServiceCallSubmitted,
    ServiceCallSucceeded,
    StartExecution,
    SubmitServiceCall,
)
from tocsin.service_calls.orchestration import service_call
from tocsin.service_calls.orchestration.service_call import FINAL_KINDS, FailureVerdict, Step, judge
from tocsin.service_calls.ports import CallOutcome, ServiceCall
from tocsin.testing.clock import EPOCH_US, FakeClock

LIMITS = AgentLimits()
SECOND = 1_000_000
SPEC = RequestSpec("POST", "http://service/x", {"a": "b"}, msgspec.Raw(b'{"n":1}'))
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OK = ResponseMeta(200, {}, "fine", 3.0)
OOPS = ErrorMeta("HTTP_STATUS", "the service answered 500", 3.0)


class World:
    """One call and its clock."""

    def __init__(
        self, due_at_us: int | None = None, limits: AgentLimits = LIMITS, policy: RetryPolicy | None = None
    ) -> None:
        self.clock = FakeClock()
        self.new_id = Uuid7Source(self.clock.now_us)
        self.limits = limits
        self.id = self.new_id()
        retries = None if policy is None else RetrySpec.of(policy)
        command = SubmitServiceCall(self.id, "bill", SPEC, "f", due_at_us, ("x",), "key", retries, TRACEPARENT)
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

    def failed(self, error: ErrorMeta = OOPS, response: ResponseMeta | None = None) -> Step | None:
        event = ExecutionFailed(self.id, self.execution_id, self.clock.now_us(), error, response)
        return self.then(service_call.failed(self.call, event, limits=self.limits))

    def retry_due(self) -> Step | None:
        assert self.call.next_attempt_at is not None
        self.clock.advance(self.call.next_attempt_at - self.clock.now_us())
        return self.then(
            service_call.due(
                self.call, self.call.next_attempt_at, now_us=self.clock.now_us(), new_id=self.new_id, limits=self.limits
            )
        )

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


def test_a_call_with_a_future_due_time_is_scheduled():
    due_at = EPOCH_US + 60 * SECOND
    world = World(due_at)
    assert world.call.status is CallStatus.SCHEDULED
    assert world.call.watch_at == due_at + LIMITS.watchdog_grace_us
    assert world.submitted.messages == (
        ServiceCallSubmitted(world.id, "bill", "POST", SPEC.url, due_at, ("x",)),
        ServiceCallScheduled(world.id, due_at),
        ScheduleTimer(world.id, due_at),
    )


def test_the_event_of_a_submission_contains_no_secret():
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


@each("due_at", [None, EPOCH_US, EPOCH_US - 5 * SECOND])
def test_a_call_without_due_time_runs_at_once(due_at: int | None):
    world = World(due_at)
    assert world.call.status is CallStatus.RUNNING
    assert world.call.due_at == (EPOCH_US if due_at is None else due_at)
    assert world.call.watch_at == EPOCH_US + LIMITS.watchdog_grace_us
    assert world.submitted.messages == (
        ServiceCallSubmitted(world.id, "bill", "POST", SPEC.url, world.call.due_at, ("x",)),
        ServiceCallRunning(world.id, world.execution_id),
        StartExecution(world.id, world.execution_id, SPEC, TRACEPARENT),
    )


def test_a_due_call_starts_and_succeeds():
    world = World(EPOCH_US + SECOND)
    world.clock.advance(2 * SECOND)
    step = world.due()
    assert step is not None
    assert step.messages == (
        ServiceCallRunning(world.id, world.execution_id),
        StartExecution(world.id, world.execution_id, SPEC, TRACEPARENT),
    )
    assert (world.call.status, world.call.started_at, world.call.executions) == (CallStatus.RUNNING, None, 1)
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
    assert (world.call.status, world.call.finished_at) == (CallStatus.SUCCEEDED, EPOCH_US + 9 * SECOND)
    assert world.call.outcome == CallOutcome(OK)
    assert service_call.succeeded(world.call, end) is None
    assert (
        service_call.failed(world.call, ExecutionFailed(world.id, world.execution_id, 1, OOPS), limits=LIMITS) is None
    )


def test_a_failed_call_keeps_the_response():
    world = World()
    end = ExecutionFailed(world.id, world.execution_id, EPOCH_US, OOPS, OK)
    step = service_call.failed(world.call, end, limits=LIMITS)
    assert step is not None
    assert step.messages == (ServiceCallFailed(world.id, OOPS, OK),)
    assert step.after.outcome == CallOutcome(OK, OOPS)


def test_interrupted_executions_are_repeated_up_to_a_limit():
    world = World(limits=AgentLimits(executions_max=2))
    first = world.execution_id
    world.started()
    step = world.interrupted()
    assert step is not None
    assert world.execution_id != first
    assert step.messages == (
        ServiceCallRunning(world.id, world.execution_id),
        StartExecution(world.id, world.execution_id, SPEC, TRACEPARENT),
    )
    assert (world.call.started_at, world.call.executions) == (None, 2)
    step = world.interrupted()
    assert step is not None
    assert world.call.status is CallStatus.FAILED
    assert world.call.outcome is not None
    assert world.call.outcome.error_meta is not None
    assert world.call.outcome.error_meta.kind == "INTERRUPTED"


class TestWatchdog:
    def test_an_unstarted_order_is_repeated_at_growing_intervals_without_limit(self):
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
                StartExecution(world.id, execution_id, SPEC, TRACEPARENT),
            )
        assert looks < 15
        assert world.call.status is CallStatus.RUNNING

    def test_a_started_overdue_call_is_checked_and_never_failed(self):
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
        assert world.call.status is CallStatus.SUCCEEDED


POLICY = RetryPolicy(
    max_attempts=3, initial_interval_us=10 * SECOND, backoff_multiplier=2.0, max_interval_us=60 * SECOND
)
TIMEOUT = ErrorMeta("TIMEOUT", "no answer", 3.0)
INTERRUPTED = ErrorMeta("INTERRUPTED", "the process ended during the execution, and there were 3 already")


class TestRetries:
    def test_a_failed_attempt_is_retried_at_its_time(self):
        world = World(policy=POLICY)
        world.started()
        first, began = world.execution_id, world.clock.now_us()
        world.clock.advance(SECOND)
        failed_at = world.clock.now_us()
        step = world.failed(TIMEOUT)
        assert step is not None
        next_at = world.call.next_attempt_at
        assert next_at is not None
        assert failed_at + 9 * SECOND <= next_at <= failed_at + 10 * SECOND
        assert step.messages == (ServiceCallRetrying(world.id, 1, next_at, TIMEOUT), ScheduleTimer(world.id, next_at))
        assert (world.call.status, world.call.attempts, world.call.finished_at) == (CallStatus.RETRYING, 1, None)
        assert world.call.outcome == CallOutcome(None, TIMEOUT)
        assert world.call.watch_at == next_at + LIMITS.watchdog_grace_us
        # The first due time is reported once more.
        assert world.due() is None
        assert world.failed(TIMEOUT) is None
        step = world.retry_due()
        assert step is not None
        assert step.messages == (
            ServiceCallRunning(world.id, world.execution_id),
            StartExecution(world.id, world.execution_id, SPEC, TRACEPARENT),
        )
        assert world.execution_id != first
        assert (world.call.status, world.call.outcome, world.call.first_attempt_at) == (CallStatus.RUNNING, None, began)
        end = ExecutionSucceeded(world.id, world.execution_id, world.clock.now_us(), OK)
        assert world.then(service_call.succeeded(world.call, end)) is not None
        assert (world.call.status, world.call.attempts, world.call.executions) == (CallStatus.SUCCEEDED, 2, 2)

    def test_the_last_attempt_fails_the_call(self):
        world = World(policy=POLICY)
        for _ in range(2):
            world.failed()
            world.retry_due()
        step = world.failed()
        assert step is not None
        assert step.messages == (ServiceCallFailed(world.id, OOPS),)
        assert (world.call.status, world.call.attempts) == (CallStatus.FAILED, 3)

    def test_no_attempt_begins_after_the_policys_duration(self):
        world = World(policy=RetryPolicy(max_attempts=9, initial_interval_us=10 * SECOND, max_duration_us=20 * SECOND))
        world.started()
        world.failed()
        assert world.call.status is CallStatus.RETRYING
        world.retry_due()
        world.clock.advance(5 * SECOND)
        world.failed()
        assert world.call.status is CallStatus.FAILED

    def test_a_late_report_plans_the_same_retry(self):
        plans = set()
        for late_us in (0, 3_600 * SECOND):
            world = World(policy=POLICY)
            ended_at = world.clock.now_us()
            execution_id = "01890a5d-ac96-774b-bcce-b302099a8057"
            world.call = msgspec.structs.replace(world.call, execution_id=execution_id)
            world.clock.advance(late_us)
            event = ExecutionFailed(world.id, execution_id, ended_at, TIMEOUT)
            step = service_call.failed(world.call, event, limits=LIMITS)
            assert step is not None
            plans.add(step.after.next_attempt_at)
        assert len(plans) == 1

    def test_after_a_retry_with_the_clock_set_back_the_next_attempt_is_later_than_the_last_schedule(self):
        world = World(policy=RetryPolicy(max_attempts=9, initial_interval_us=10 * SECOND))
        world.failed()
        scheduled_at = world.call.next_attempt_at
        assert scheduled_at is not None
        world.retry_due()
        world.failed(OOPS, ResponseMeta(404, {}, "", 1.0))
        world.clock.jump(-3_600 * SECOND)
        step = service_call.retry(world.call, now_us=world.clock.now_us(), new_id=world.new_id, limits=LIMITS)
        assert world.then(step) is not None
        assert world.call.status is CallStatus.RUNNING
        step = world.failed()
        assert step is not None
        (scheduled,) = (message for message in step.messages if isinstance(message, ScheduleTimer))
        assert scheduled.due_at > scheduled_at

    def test_interruptions_beyond_the_limit_count_as_failed_attempts(self):
        """With `executions_max` 3, two interrupted executions are repeated at once and do not count; each further one
        is a failed attempt."""
        world = World(policy=POLICY)
        for _ in range(2):
            world.interrupted()
            assert (world.call.status, world.call.attempts) == (CallStatus.RUNNING, 0)
        for attempts in (1, 2):
            world.interrupted()
            assert (world.call.status, world.call.attempts) == (CallStatus.RETRYING, attempts)
            world.retry_due()
        world.interrupted()
        assert (world.call.status, world.call.attempts, world.call.executions) == (CallStatus.FAILED, 3, 5)

    def test_retry_after_delays_the_next_attempt(self):
        world = World(policy=POLICY)
        world.failed(OOPS, ResponseMeta(503, {"retry-after": "120"}, "", 1.0))
        assert world.call.next_attempt_at == world.clock.now_us() + 120 * SECOND


@each(
    "kind, status, final",
    [
        *(("HTTP_STATUS", status, True) for status in (400, 401, 403, 404, 409, 410, 422, 451)),
        *(("HTTP_STATUS", status, False) for status in (301, 304, 408, 425, 429, 500, 503, 599)),
        *((kind, None, False) for kind in ("TIMEOUT", "CONNECTION_FAILED", "NAME_NOT_RESOLVED", "START_TIMEOUT")),
        *((kind, None, True) for kind in sorted(FINAL_KINDS)),
    ],
)
def test_which_failures_are_retried(kind: str, status: int | None, final: bool):
    response = None if status is None else ResponseMeta(status, {}, "", 1.0)
    assert judge(ErrorMeta(kind, ""), response, EPOCH_US, SECOND) == FailureVerdict(final)


def test_every_final_error_of_the_http_client_is_final():
    """The HTTP client marks an outcome as final; the event has only its kind."""
    source = Path(tocsin.__file__).parent
    texts = [
        path.read_text()
        for folder in ("http_client", "service_calls/execution")
        for path in (source / folder).rglob("*.py")
    ]
    found = {kind for text in texts for kind in re.findall(r'NoResponse\("([A-Z_]+)"[^\n]*final=True', text)}
    assert found == FINAL_KINDS
