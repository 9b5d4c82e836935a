"""The state machine of a service call under any interleaving and repetition of events."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

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
    Message,
    RequestSpec,
    ResponseMeta,
    RetrySpec,
    ScheduleTimer,
    ServiceCallDeleted,
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
from tocsin.service_calls.orchestration.service_call import Step
from tocsin.service_calls.ports import WAITING, ServiceCall
from tocsin.testing.clock import EPOCH_US

LIMITS = AgentLimits(
    watchdog_grace_us=10_000_000, request_timeout_us=20_000_000, start_timeout_us=100_000_000, executions_max=3
)
POLICIES = [
    RetryPolicy(max_attempts=3, initial_interval_us=1, max_interval_us=30_000_000),
    RetryPolicy(max_attempts=9, initial_interval_us=9_000_000, max_interval_us=60_000_000, max_duration_us=80_000_000),
]
ERRORS = [ErrorMeta("TIMEOUT", "t", 1.0), ErrorMeta("EGRESS_REFUSED", "t", 1.0)]
FINAL = (CallStatus.SUCCEEDED, CallStatus.FAILED)
LEGAL = {
    CallStatus.SCHEDULED: {CallStatus.SCHEDULED, CallStatus.RUNNING},
    CallStatus.RUNNING: {CallStatus.RUNNING, CallStatus.RETRYING, *FINAL},
    CallStatus.RETRYING: {CallStatus.RUNNING},
    CallStatus.SUCCEEDED: set(),
    CallStatus.FAILED: set(),
}


class ServiceCallMachine(RuleBasedStateMachine):
    """Events about any execution that was ever ordered (or never was) arrive in any order, any number of times."""

    def __init__(self) -> None:
        super().__init__()
        self.now_us = EPOCH_US
        self.new_id = Uuid7Source(lambda: self.now_us)
        self.call_id = self.new_id()
        self.call: ServiceCall | None = None
        self.sent: list[Message] = []
        self.ordered: list[str] = []

    @initialize(ahead_us=st.none() | st.integers(-50_000_000, 50_000_000), policy=st.none() | st.sampled_from(POLICIES))
    def submit(self, ahead_us: int | None, policy: RetryPolicy | None) -> None:
        due_at_us = None if ahead_us is None else self.now_us + ahead_us
        self.attempts_max = 1 if policy is None else policy.max_attempts
        command = SubmitServiceCall(
            self.call_id,
            "n",
            RequestSpec("GET", "http://x"),
            "f",
            due_at_us,
            ("b", "a", "b"),
            retry_policy=None if policy is None else RetrySpec.of(policy),
        )
        step = service_call.submit(
            command,
            tenant_id=self.new_id(),
            correlation_id=self.new_id(),
            now_us=self.now_us,
            new_id=self.new_id,
            limits=LIMITS,
        )
        self.call, self.sent = step.after, list(step.messages)
        kinds = [type(message) for message in step.messages]
        if ahead_us is not None and ahead_us > 0:
            assert step.after.status is CallStatus.SCHEDULED
            assert kinds == [ServiceCallSubmitted, ServiceCallScheduled, ScheduleTimer]
        else:
            assert step.after.status is CallStatus.RUNNING
            assert kinds == [ServiceCallSubmitted, ServiceCallRunning, StartExecution]
            assert step.after.execution_id is not None
            self.ordered.append(step.after.execution_id)
        assert step.after.tags == ("a", "b")

    def take(self, step: Step | None, *, may_order: bool = False) -> None:
        """Applies a step and checks the invariants of each."""
        if step is None:
            return
        before, after = self.call, step.after
        assert before is not None
        assert after.status in LEGAL[before.status]
        starts = [message for message in step.messages if isinstance(message, StartExecution)]
        if after.execution_id != before.execution_id:
            assert may_order
            assert len(starts) == 1
            assert after.execution_id not in self.ordered
            assert after.started_at is None
            assert after.execution_id is not None
            self.ordered.append(after.execution_id)
        for start in starts:
            assert start.execution_id == after.execution_id
        assert (after.status is CallStatus.RETRYING) == any(isinstance(m, ServiceCallRetrying) for m in step.messages)
        assert (after.status in FINAL) == (
            [type(m) for m in step.messages if isinstance(m, ServiceCallSucceeded | ServiceCallFailed)] != []
        )
        assert (after.key, after.due_at, after.submitted_at) == (before.key, before.due_at, before.submitted_at)
        self.call = after
        self.sent.extend(step.messages)

    def some_execution(self, data: Any) -> str:
        return str(data.draw(st.sampled_from([*self.ordered, self.new_id()])))

    @rule(passed_us=st.integers(0, 60_000_000))
    def time_passes(self, passed_us: int) -> None:
        self.now_us += passed_us

    @precondition(lambda self: self.call is not None)
    @rule(early_us=st.integers(-1, 1))
    def due(self, early_us: int) -> None:
        assert self.call is not None
        was, due_at = self.call.status, self.call.awaited_at + early_us
        step = service_call.due(self.call, due_at, now_us=self.now_us, new_id=self.new_id, limits=LIMITS)
        assert (step is not None) == (was in WAITING and early_us >= 0)
        self.take(step, may_order=True)

    @precondition(lambda self: self.call is not None)
    @rule(data=st.data())
    def started(self, data: Any) -> None:
        assert self.call is not None
        event = ExecutionStarted(self.call_id, self.some_execution(data), self.now_us)
        step = service_call.started(self.call, event, limits=LIMITS)
        self.check_concern(event.execution_id, step)
        self.take(step)

    @precondition(lambda self: self.call is not None)
    @rule(data=st.data())
    def succeeded(self, data: Any) -> None:
        assert self.call is not None
        event = ExecutionSucceeded(self.call_id, self.some_execution(data), self.now_us, ResponseMeta(200, {}, "", 1.0))
        step = service_call.succeeded(self.call, event)
        self.check_concern(event.execution_id, step)
        self.take(step)

    @precondition(lambda self: self.call is not None)
    @rule(data=st.data(), error=st.sampled_from(ERRORS))
    def failed(self, data: Any, error: ErrorMeta) -> None:
        assert self.call is not None
        event = ExecutionFailed(self.call_id, self.some_execution(data), self.now_us, error)
        step = service_call.failed(self.call, event, limits=LIMITS)
        self.check_concern(event.execution_id, step)
        self.take(step)

    @precondition(lambda self: self.call is not None)
    @rule(data=st.data())
    def interrupted(self, data: Any) -> None:
        assert self.call is not None
        event = ExecutionInterrupted(self.call_id, self.some_execution(data), self.now_us, self.now_us)
        step = service_call.interrupted(self.call, event, now_us=self.now_us, new_id=self.new_id, limits=LIMITS)
        self.check_concern(event.execution_id, step)
        self.take(step, may_order=True)

    @precondition(lambda self: self.call is not None)
    @rule()
    def watch(self) -> None:
        assert self.call is not None
        call = self.call
        step = service_call.watch(call, now_us=self.now_us, new_id=self.new_id, limits=LIMITS)
        assert (step is not None) == (call.watch_at is not None and call.watch_at <= self.now_us)
        if step is not None and call.status is CallStatus.RUNNING and call.started_at is not None:
            assert [type(message) for message in step.messages] == [CheckExecution]
        if step is not None:
            assert step.after.status is CallStatus.RUNNING
        self.take(step, may_order=call.status in WAITING)
        if step is not None and self.call.watch_at is not None:
            assert self.call.watch_at > self.now_us

    @precondition(lambda self: self.call is not None)
    @rule()
    def delete(self) -> None:
        assert self.call is not None
        messages = service_call.delete(self.call)
        assert (messages is not None) == (self.call.status in WAITING)
        if messages is not None:
            assert messages == (ServiceCallDeleted(self.call_id),)

    def check_concern(self, execution_id: str, step: Step | None) -> None:
        """Only the execution that was ordered last can change a call, and only a Running one."""
        assert self.call is not None
        if step is not None:
            assert self.call.status is CallStatus.RUNNING
            assert execution_id == self.ordered[-1]

    @invariant()
    def terminal_once(self) -> None:
        ends = [message for message in self.sent if isinstance(message, ServiceCallSucceeded | ServiceCallFailed)]
        assert len(ends) == (1 if self.call is not None and self.call.status in FINAL else 0)

    @invariant()
    def fields_fit_the_status(self) -> None:
        call = self.call
        if call is None:
            return
        final = call.status in FINAL
        assert (call.finished_at is not None) == final
        assert (call.outcome is not None) == (final or call.status is CallStatus.RETRYING)
        assert (call.watch_at is None) == final
        assert (call.execution_id is None) == (call.status is CallStatus.SCHEDULED)
        assert call.executions == len(self.ordered)
        assert call.attempts <= self.attempts_max
        # Interruptions do not count up to the limit; beyond it they count as attempts.
        assert call.executions < call.attempts + LIMITS.executions_max + (not final)
        if call.status is CallStatus.RETRYING:
            scheduled = [message.due_at for message in self.sent if isinstance(message, ScheduleTimer)]
            assert scheduled[-1] == call.next_attempt_at
            assert scheduled == sorted(set(scheduled))
        if call.status is CallStatus.SUCCEEDED:
            assert call.outcome is not None
            assert call.outcome.error_meta is None
        if call.status is CallStatus.FAILED:
            assert call.outcome is not None
            assert call.outcome.error_meta is not None


TestServiceCall = ServiceCallMachine.TestCase
TestServiceCall.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
